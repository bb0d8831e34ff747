// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Config says how to move.
type Config struct {
	// Pager is nil for the kernel's.
	Pager unix.Pager
	// Shared also moves pages that other processes map (CAP_SYS_NICE). Those processes
	// then find them on our node.
	Shared bool
	// Clock is nil for the machine's own.
	Clock Clock
}

// Mover moves pages of processes of the running kernel. It is for one Move at a time.
type Mover struct {
	pager  unix.Pager
	flags  int
	root   unix.Root
	clock  Clock
	sleep  func(context.Context, time.Duration) // of the machine's time
	finder finder
	buf    unix.Buffer
	pass   map[int]*pass // by pid: where the last call stopped
	// journeys have the state that processes share.
	journeys []*journey
	moves    int         // calls of Move so far
	nodes    *frameNodes // nil: unknown
}

// passLife is the number of calls of Move after which an unused pass is dropped: its
// process ended, or its workload is no longer moved. Several workloads take turns.
const passLife = 64

// NewMover needs the running kernel.
func NewMover(live unix.Live, cfg Config) (*Mover, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("move pages: only the running kernel can be acted upon (%w)", unix.ErrNotSupported)
	}
	return newMover(live.Root(), cfg), nil
}

func newMover(root unix.Root, cfg Config) *Mover {
	m := &Mover{
		pager: cfg.Pager, flags: unix.MoveOwn, root: root, clock: cfg.Clock, sleep: sleep, finder: pageCache{root},
		pass: map[int]*pass{}, nodes: readFrameNodes(root),
	}
	if m.pager == nil {
		m.pager = unix.LivePager{}
	}
	if m.clock == nil {
		m.clock = Monotonic()
	}
	if cfg.Shared {
		m.flags = unix.MoveAll
	}
	return m
}

// Move moves pages of the processes to req.To until all were gone through, the budget is
// used up, or ctx is done. The next call continues where this one stopped. A ctx whose
// deadline has passed already still moves one batch: otherwise short turns would make no
// progress. The error means that continuing is useless; the result still has what was
// moved until then.
func (m *Mover) Move(ctx context.Context, req Request) (migration.Result, error) {
	if req.To.IsEmpty() {
		return migration.Result{}, errors.New("move pages: no node to move to")
	}
	m.moves++
	m.forgetOld()
	r := newRun(ctx, m, req)
	defer r.close()
	r.work()
	return r.end()
}

func (m *Mover) forgetOld() {
	for pid, p := range m.pass {
		if m.moves-p.used > passLife {
			delete(m.pass, pid)
		}
	}
}

func (m *Mover) alive(pid int) bool {
	_, err := m.buf.ReadFile(m.proc(pid, "stat"))
	return err == nil
}

// ask fills where with the node of each page, or a negated errno.
func (m *Mover) ask(pid int, addrs []uintptr, where []int32) error {
	for i := range where {
		where[i] = -int32(sys.ENOENT)
	}
	for len(addrs) > 0 {
		n := min(len(addrs), mostPages)
		if _, err := m.pager.MovePages(pid, addrs[:n], nil, where[:n], 0); err != nil {
			return m.explain(pid, "?", err)
		}
		addrs, where = addrs[n:], where[n:]
	}
	return nil
}

// explain turns the errnos of the whole call into errors (kernel_move_pages and
// do_pages_move in mm/migrate.c).
func (m *Mover) explain(pid int, to string, err error) error {
	object := fmt.Sprintf("pages of process %d", pid)
	if pid == 0 {
		object = "pages of files"
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sys.EINVAL): // find_mm_struct: it has released its memory, it is ending
		return fmt.Errorf("move %s: it is ending (%w)", object, unix.ErrGone)
	case errors.Is(err, sys.EACCES) && pid == 0:
		return fmt.Errorf("move %s: %w: the cpuset.mems that we run in does not have all of nodes %s (%w)", object, err, to, unix.ErrNotPermitted)
	case errors.Is(err, sys.EACCES):
		return fmt.Errorf("move %s: %w: its cpuset.mems does not have all of nodes %s (%w)", object, err, to, unix.ErrNotPermitted)
	case errors.Is(err, sys.ENODEV):
		return fmt.Errorf("move %s: %w: one of nodes %s is offline or has no memory", object, errOffline, to)
	}
	return unix.Explain("move", object, "CAP_SYS_NICE and CAP_SYS_PTRACE", err)
}

var errOffline = errors.New("no such node")

// sleep ends early when ctx is cancelled.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			<-timer.C // a turn that is over may still have to wait for a batch
		}
	}
}

// Monotonic is the machine's own clock.
func Monotonic() Clock { return machineClock{time.Now()} }

type machineClock struct{ began time.Time }

func (c machineClock) Now() time.Duration { return time.Since(c.began) }
func (machineClock) Name() string         { return "monotonic clock" }
func (machineClock) How() unit.Source     { return unit.HowMeasured }

// aimAt notes the nodes from which pages are to be moved.
func (r *run) aimAt(from, to set.NodeSet) {
	r.req.From, r.req.To = from, to
	r.away = make([]bool, mostNodes)
	for node := range r.away {
		r.away[node] = migration.Elsewhere(node, from, to)
	}
}

// mostNodes is more than Linux has (NODES_SHIFT is 10 at most).
const mostNodes = 1 << 10

// elsewhere reports that a page on this node is to be moved.
func (r *run) elsewhere(node int) bool {
	if node < len(r.away) {
		return r.away[node]
	}
	return migration.Elsewhere(node, r.req.From, r.req.To)
}

// home reports that a status is a node on which the page may stay.
func (r *run) home(status int32) bool { return status >= 0 && !r.elsewhere(int(status)) }

// end is the result of a run.
func (r *run) end() (migration.Result, error) {
	r.unwind()
	refused := r.err == nil && r.res.Stopped == ""
	if refused {
		r.err = r.refusedAll()
		refused = r.err != nil
	}
	r.res.Problems = r.notes.All()
	r.res.Time = r.m.clock.Now() - r.began
	r.res.Complete = r.err == nil && r.res.Stopped == ""
	r.res.OverWhy = r.overWhy()
	if r.res.Complete || refused {
		for _, pid := range r.plan.pids {
			delete(r.m.pass, pid)
		}
		r.m.forget(r.j)
	}
	r.tell(true)
	return r.res, r.err
}

// overWhy says which part of MaxStall cannot be kept, by the classes that were moved.
func (r *run) overWhy() string {
	if r.res.Over == 0 {
		return ""
	}
	var all []string
	for c, s := range r.j.sizers {
		if why := s.why(c.noun()); why != "" && r.tried[c] {
			all = append(all, why)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
