// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"slices"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
)

// Patient moves pages as a Mover does, and returns also when a process holds the move up:
// move_pages, and reading mappings, wait for its mmap_lock, which its owner may hold for
// ever (unix.Patience).
//
//  1. A Mover works in the background. If it has not returned for handUp after ctx is done,
//     it is left alone, and the next moves have another Mover.
//  2. None of its processes is moved before it has returned: no two Movers have the same
//     process. Its ctx is done, so it moves no more than the batches that it was stuck in.
//  3. When it has returned, what it had moved by then is part of the next result of its
//     processes, and it is continued where it stopped.
//
// Patient is for one Move at a time.
type Patient struct {
	fresh func() *Mover
	after time.Duration // handUp
	now   *Mover
	waits unix.Patience
	moves int         // calls of Move so far
	left  []*leftMove // that were not claimed
}

// leftMove is a move in the background.
type leftMove struct {
	mover    *Mover
	pids     []int
	done     chan struct{}
	returned int // the call of Move that found it done; 0: none has
	res      migration.Result
	err      error
}

// handUp is how long a Move may go on after its time. A search for pages takes lateLook
// then, and a batch max_stall. Longer holds up the round. Shorter leaves movers alone that
// are only slow: nothing is lost, but their processes wait a round for them.
const handUp = 3 * time.Second

// NewPatient needs the running kernel.
func NewPatient(live unix.Live, cfg Config) (*Patient, error) {
	if _, err := NewMover(live, cfg); err != nil {
		return nil, err
	}
	return newPatient(func() *Mover { return newMover(live.Root(), cfg) }), nil
}

func newPatient(fresh func() *Mover) *Patient {
	return &Patient{fresh: fresh, after: handUp, now: fresh()}
}

// Move is Mover's. If a process does not answer, the result is not complete and says so.
func (p *Patient) Move(ctx context.Context, req Request) (migration.Result, error) {
	p.moves++
	before := p.claim(req.PIDs)
	m := &leftMove{mover: p.now, pids: slices.Clone(req.PIDs), done: make(chan struct{})}
	over, stop := lateBy(ctx, p.after)
	defer stop()
	left, err := p.waits.Do(req.PIDs, over, func() {
		defer close(m.done)
		m.res, m.err = m.mover.Move(ctx, req)
	})
	if err == nil {
		return together(before, m.res), m.err
	}
	if left { // 1
		p.left, p.now = append(p.left, m), p.fresh()
	}
	return together(before, migration.Result{Stopped: "a process did not answer in time (" + err.Error() + "): its memory map is locked, or no CPU was free for the move; tried again when it answers"}), nil
}

// lateBy is closed a time after ctx is done.
func lateBy(ctx context.Context, d time.Duration) (late <-chan time.Time, stop func()) {
	over, stopped := make(chan time.Time), make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
		case <-stopped:
			return
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			close(over)
		case <-stopped:
		}
	}()
	return over, func() { close(stopped) }
}

// claim returns what the moves of these processes brought after they were left (3). What no
// move asks for in passLife calls is dropped.
func (p *Patient) claim(pids []int) (all migration.Result) {
	p.left = slices.DeleteFunc(p.left, func(m *leftMove) bool {
		select {
		case <-m.done:
		default:
			return false
		}
		if m.returned == 0 {
			m.returned = p.moves
			p.now.adopt(m.mover)
		}
		if slices.ContainsFunc(pids, func(pid int) bool { return slices.Contains(m.pids, pid) }) {
			all = together(all, m.res)
			return true
		}
		return p.moves-m.returned > passLife
	})
	return all
}

// adopt continues what another Mover has begun.
func (m *Mover) adopt(other *Mover) {
	for pid, p := range other.pass {
		if m.pass[pid] == nil {
			p.used, m.pass[pid] = m.moves, p
		}
	}
	for _, j := range other.journeys {
		j.used, j.listed = m.moves, 0
		m.journeys = append(m.journeys, j)
	}
}

// together adds what an earlier move brought to a result.
func together(before, r migration.Result) migration.Result {
	for _, k := range before.Kinds {
		to := r.Of(k.Kind)
		to.Moved += k.Moved
		to.Gone += k.Gone
		for _, f := range k.Failed {
			to.Fail(f.Reason, f.Bytes)
		}
	}
	r.Calls += before.Calls
	r.CPU += before.CPU
	r.Over += before.Over
	r.Retried += before.Retried
	r.Longest = max(r.Longest, before.Longest)
	return r
}
