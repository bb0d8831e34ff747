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
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// run is one Move. Workers take batches from it, move them, and record the results:
//
//	plan ─▶ lane: source ─scan▶ queues by class ─take▶ batch ─▶ worker: move_pages ─▶ settle
//	                              ▲───── what only looked like a huge page ──────────────┘
//
// One worker at a time searches a lane for pages, without holding the lock.
type run struct {
	m   *Mover
	ctx context.Context
	req Request

	j *journey

	mu      sync.Mutex
	changed *sync.Cond
	res     migration.Result
	err     error
	began   time.Duration // by the clock
	flying  map[int]int   // batches being moved, by pid
	begun   int           // batches
	late    int           // searches for pages after the deadline
	extra   []batch       // to be moved before anything else is looked for
	lanes   []*lane
	opening bool // a worker opens the next lane
	over    bool // the plan is done
	room    *room
	pace    pacer
	budget  unit.Bytes // remaining
	tried   map[class]bool
	claims  keySet       // pages in a queue or being moved that other mappings may share
	gone    map[int]bool // processes that ended
	notes   unix.Notes
	away    []bool          // by node: its pages are to be moved
	patient context.Context // without the deadline
	ends    []func()        // of it

	plan   plan
	kinds  *pagecache.Kinds // only for the worker that opens
	frames *frames          // nil: hidden

	progress sync.Mutex
	reported time.Time
	kind     migration.Kind
}

// batch is what one worker moves in one go.
type batch struct {
	pid   int
	class class
	pages []page
	node  int
	lane  *lane // nil: of extra
	from  int   // its queue in the lane
}

const (
	scanAhead    = 4    // batches
	leastAhead   = 4096 // pages: fewer make more queries
	lateLooks    = 16   // searches without a page to move; each lasts lateLook at most
	lateLook     = time.Second
	progressEach = 200 * time.Millisecond
	stillLimit   = 30 * time.Second // of sleep without the clock going on
)

func newRun(ctx context.Context, m *Mover, req Request) *run {
	r := &run{
		m: m, ctx: ctx, req: req, j: m.journeyOf(req), room: newRoom(m.root, req.To), budget: max(0, req.Budget),
		began: m.clock.Now(), flying: map[int]int{}, tried: map[class]bool{}, claims: keySet{}, gone: map[int]bool{},
		notes: unix.Notes{Most: mostAlike}, kinds: pagecache.NewKinds(m.root),
	}
	r.pace = pacer{rate: req.Rate, from: r.began}
	r.changed = sync.NewCond(&r.mu)
	r.plan.pids = unique(req.PIDs)
	r.res.Workers = max(1, req.Workers)
	if f, err := openFrames(m.root); err == nil {
		r.frames = f
	}
	r.aimAt(req.From, req.To)
	r.wait()
	return r
}

// mostAlike problems of one sort are reported one by one.
const mostAlike = 3

// problem reports something; sort groups similar problems.
func (r *run) problem(sort, format string, args ...any) {
	r.notes.Add(sort, fmt.Sprintf(format, args...))
}

// note is problem for a worker that does not hold the lock.
func (r *run) note(sort, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem(sort, format, args...)
}

func unique(pids []int) (all []int) {
	for _, pid := range pids {
		if !slices.Contains(all, pid) {
			all = append(all, pid)
		}
	}
	return all
}

// wait wakes the waiting workers at the end of ctx.
func (r *run) wait() {
	patient, cancel := context.WithCancel(context.WithoutCancel(r.ctx))
	stop := context.AfterFunc(r.ctx, func() {
		if errors.Is(r.ctx.Err(), context.Canceled) {
			cancel()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})
	r.patient = patient
	r.ends = append(r.ends, func() { stop() }, cancel)
}

// patience is ctx, or after its deadline a little more, so that even a short turn makes
// progress.
func (r *run) patience() (context.Context, context.CancelFunc) {
	if r.ctx.Err() == nil {
		return r.ctx, func() {}
	}
	return context.WithTimeout(r.patient, lateLook)
}

func (r *run) close() {
	for _, l := range r.lanes {
		l.end()
	}
	if r.frames != nil {
		r.frames.close()
	}
	for _, end := range r.ends {
		end()
	}
}

// take gives a worker its next batch; false when there is no more:
//
//  1. What other workers are doing may bring more, also at the end of the plan.
//  2. A budget that is spent on batches being moved may come back.
//  3. Pages without room on any node are counted, and the next ones tried.
func (r *run) take(w *worker) (batch, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.goOn() {
		t, ok := r.next(w)
		switch {
		case !ok && r.busy(): // (1)
			r.changed.Wait()
		case !ok:
			return batch{}, false
		case t.open:
			r.open(w)
		case t.look != nil:
			r.look(t.look)
		case r.budget <= 0 && r.flights() > 0: // (2)
			r.changed.Wait()
		case r.budget <= 0:
			r.stop("the budget of " + r.req.Budget.String() + " is used up")
		case r.paced(w, t.batch):
		case r.cut(w, &t.batch): // (3)
			return t.batch, true
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
	case err == nil || errors.Is(err, context.DeadlineExceeded) && r.begun == 0 && r.late < lateLooks:
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

func (r *run) flights() (sum int) {
	for _, n := range r.flying {
		sum += n
	}
	return sum
}

// settled waits until no batch of other processes is being moved: pages that several
// processes share would be counted twice. It is false when the run is over before.
func (r *run) settled(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.goOn() {
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

// want is the most pages that a batch should have.
func (r *run) want(c class) int {
	n := r.j.sizer(c).pages()
	n = min(n, int(min(r.pace.most(), r.budget)/unit.Bytes(c.size)))
	return max(1, n)
}

// paced waits a little when it is too early for a batch.
func (r *run) paced(w *worker, b batch) bool {
	now := r.m.clock.Now()
	wait := r.pace.wait(now, bytesOf(b.pages), r.j.sizer(b.class).expect(len(b.pages)))
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

// cut takes a picked batch out of its queue and sets its target; false when no node has
// room for it.
func (r *run) cut(w *worker, b *batch) bool {
	node, n, ok := r.room.choose(b.class, len(b.pages), set.NodeSet{})
	if ok {
		b.pages = b.pages[:n]
	}
	w.pages = append(w.pages[:0], b.pages...) // their place in the queue is reused
	b.pages = w.pages
	r.drop(*b)
	if !ok {
		r.release(b.pages)
		var t tally
		for _, p := range b.pages {
			t.fail(p, r.room.why(b.class))
			r.remember(p)
		}
		t.addTo(&r.res)
		r.changed.Broadcast() // a worker that waits for all batches waits for this one too
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
	if b.lane != nil {
		b.lane.queue[b.from] = b.lane.queue[b.from][n:]
		return
	}
	if r.extra[0].pages = r.extra[0].pages[n:]; len(r.extra[0].pages) == 0 {
		r.extra = r.extra[1:]
	}
}
