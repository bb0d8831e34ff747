// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"homenode/internal/kernel/pagecache"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// run is one Move. Workers take batches from it, move them, and settle what became of
// them:
//
//	plan ─▶ source ─scan▶ queues by class ─take▶ batch ─▶ worker: move_pages ─▶ settle
//	                        ▲───── what only looked like a huge page ──────────────┘
//
// One worker at a time looks for pages, without holding the lock.
type run struct {
	m   *Mover
	ctx context.Context
	req Request

	mu       sync.Mutex
	changed  *sync.Cond
	res      migration.Result
	err      error
	scanning bool
	flying   map[int]int   // batches being moved, by pid
	begun    int           // batches
	late     int           // looks for pages after the deadline
	began    time.Duration // by the clock
	extra    []batch       // to be moved before anything else is looked for
	queue    [3][]page     // small, huge, pool; all of process queuePID
	queuePID int
	source   source // nil: the plan has to give another one
	over     bool   // the plan is at its end
	room     *room
	pace     pacer
	budget   unit.Bytes // that is left
	share    int        // small pages that a batch should have for all workers to have some
	tried    map[class]bool
	stay     map[pageKey]bool // pages that failed and that another mapping may have
	gone     map[int]bool     // processes that ended

	// Only for the worker that scans.
	plan    plan
	kinds   *pagecache.Kinds
	frames  *frames
	foreign map[fileID]bool
	left    map[pageKey]bool // pages that were left, each counted once

	progress sync.Mutex
	told     time.Time
	kind     migration.Kind
}

// batch is what one worker moves in one go.
type batch struct {
	pid   int
	class class
	pages []page
	node  int
	from  int // the queue, or fromExtra
}

const fromExtra = -1

const (
	leastShare   = 64 // pages: smaller batches cost more than sharing them gains
	scanAhead    = 4  // batches
	leastAhead   = 512
	progressEach = 200 * time.Millisecond
	stillLimit   = 30 * time.Second // of sleep without the clock going on
)

func newRun(ctx context.Context, m *Mover, req Request) *run {
	began := m.clock.Now()
	r := &run{
		began: began,
		kinds: pagecache.NewKinds(m.root),
		m:     m, ctx: ctx, req: req, room: newRoom(m.root, req.To), budget: max(0, req.Budget),
		pace:   pacer{rate: req.Rate, from: began},
		flying: map[int]int{}, tried: map[class]bool{}, stay: map[pageKey]bool{}, gone: map[int]bool{}, left: map[pageKey]bool{},
	}
	r.changed = sync.NewCond(&r.mu)
	r.plan.pids = slices.Clone(req.PIDs)
	r.res.Workers = max(1, req.Workers)
	if f, err := openFrames(m.root); err == nil {
		r.frames = f
	}
	return r
}

func (r *run) close() {
	if r.source != nil {
		r.source.close()
	}
	if r.frames != nil {
		r.frames.close()
	}
}

// take gives a worker its next batch; false when there is no more:
//
//  1. What is waiting is moved before more is looked for.
//  2. At the end of it all others may still bring something back.
//  3. A budget that is spent on batches on their way may come back too.
//  4. What no node has room for is counted, and the next thing tried.
func (r *run) take(w *worker) (batch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.goOn() {
		b, enough := r.pick()
		switch {
		case !enough && r.scanning:
			r.changed.Wait()
		case !enough && !r.over: // (1)
			r.look()
		case !enough && r.flights() > 0: // (2)
			r.changed.Wait()
		case !enough:
			return batch{}, false
		case r.budget <= 0 && r.flights() > 0: // (3)
			r.changed.Wait()
		case r.budget <= 0:
			r.stop("the budget of " + r.req.Budget.String() + " is used up")
		case r.paced(w, b):
		case r.cut(&b): // (4)
			return b, true
		}
	}
	return batch{}, false
}

// goOn is false when there is a reason to stop.
func (r *run) goOn() bool {
	if r.err != nil || r.res.Stopped != "" {
		return false
	}
	err := r.ctx.Err()
	switch {
	case err == nil || errors.Is(err, context.DeadlineExceeded) && r.begun == 0:
	case errors.Is(err, context.DeadlineExceeded):
		r.stop("the time is over")
	default:
		r.stop("it was cancelled")
		if cause := context.Cause(r.ctx); !errors.Is(cause, context.Canceled) {
			r.stop("it was cancelled: " + cause.Error())
		}
	}
	return r.res.Stopped == ""
}

func (r *run) stop(why string) {
	r.res.Stopped = why
	r.changed.Broadcast()
}

func (r *run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.changed.Broadcast()
}

func (r *run) problem(format string, args ...any) {
	r.res.Problems = append(r.res.Problems, fmt.Sprintf(format, args...))
}

func (r *run) flights() (sum int) {
	for _, n := range r.flying {
		sum += n
	}
	return sum
}

// settled waits until no batch of other processes is on its way: pages that several
// have would be counted twice. False when it is over before.
func (r *run) settled(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.err == nil && r.res.Stopped == "" {
		waiting := r.flights() - r.flying[pid]
		for _, b := range r.extra {
			if b.pid != pid {
				waiting++
			}
		}
		if waiting == 0 {
			return true
		}
		r.changed.Wait()
	}
	return false
}

const nobody = -1 // no process: all batches count

// pick is the batch that would be next, its pages still in their queue. Of a process
// that has more, only full batches are taken; of a file all of a window, before the
// next one takes its place.
func (r *run) pick() (batch, bool) {
	if len(r.extra) > 0 {
		b := r.extra[0]
		b.pages, b.from = b.pages[:min(len(b.pages), r.want(b.class))], fromExtra
		return b, true
	}
	for i, q := range r.queue {
		if len(q) == 0 {
			continue
		}
		c := q[0].class()
		n := r.want(c)
		if same := slices.IndexFunc(q, func(p page) bool { return p.class() != c }); same >= 0 && same < n {
			n = same
		}
		if len(q) >= n || r.source == nil || r.queuePID == 0 {
			return batch{pid: r.queuePID, class: c, pages: q[:min(n, len(q))], from: i}, true
		}
	}
	return batch{}, false
}

// want is how many pages a batch should have at most.
func (r *run) want(c class) int {
	n := r.m.sizer(c).pages()
	if r.req.MaxStall == 0 && r.req.Workers > 1 {
		n = min(n, max(1, r.share*smallPage/int(c.size)))
	}
	n = min(n, int(min(r.pace.most(), r.budget)/unit.Bytes(c.size)))
	return max(1, n)
}

// paced waits a little when it is too early for a batch.
func (r *run) paced(w *worker, b batch) bool {
	now := r.m.clock.Now()
	wait := r.pace.wait(now, bytesOf(b.pages), r.m.sizer(b.class).expect(len(b.pages)))
	if wait <= 0 {
		w.still, w.seen = 0, now
		return false
	}
	if now != w.seen {
		w.still, w.seen = 0, now
	}
	nap := min(max(wait, sleepAtLeast), sleepAtMost)
	if w.still += nap; w.still > stillLimit {
		r.fail(fmt.Errorf("hold a rate of %v/s: the %s stands still", r.req.Rate, r.m.clock.Name()))
		return true
	}
	r.mu.Unlock()
	r.m.sleep(r.ctx, nap)
	r.mu.Lock()
	return true
}

// cut takes a picked batch out of its queue and says where to; false when no node has
// room for it.
func (r *run) cut(b *batch) bool {
	node, n, ok := r.room.choose(b.class, len(b.pages), set.NodeSet{})
	if ok {
		b.pages = b.pages[:n]
	}
	b.pages = slices.Clone(b.pages)
	r.drop(*b)
	if !ok {
		var t tally
		for _, p := range b.pages {
			t.fail(p, r.room.why(b.class))
			r.remember(p)
		}
		t.addTo(&r.res)
		r.changed.Broadcast() // who waits for all that is on its way waits for this too
		return false
	}
	b.node = node
	r.res.Batch = r.want(b.class)
	size := bytesOf(b.pages)
	r.budget -= size
	r.pace.begin(r.m.clock.Now(), size)
	r.flying[b.pid]++
	r.begun++
	r.tried[b.class] = true
	return true
}

// drop removes from its queue what pick took.
func (r *run) drop(b batch) {
	n := len(b.pages)
	if b.from != fromExtra {
		r.queue[b.from] = r.queue[b.from][n:]
		return
	}
	if r.extra[0].pages = r.extra[0].pages[n:]; len(r.extra[0].pages) == 0 {
		r.extra = r.extra[1:]
	}
}
