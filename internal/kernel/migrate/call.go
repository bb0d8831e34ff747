// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
)

// worker moves batches on one thread.
type worker struct {
	r      *run
	pages  []page // of its batch
	addrs  []uintptr
	nodes  []int32
	status []int32
	lane   *lane         // its own
	still  time.Duration // slept since the clock last moved
	seen   time.Duration // of the clock
}

// outcome is the result of a batch.
type outcome struct {
	tally   tally
	calls   []sample
	retried int
	noRoom  map[int]int // pages by node
	moved   []page
	stayed  []page // that failed
	extra   []page // to be retried page by page, or in another call of Move
	err     error
}

// sample is one call.
type sample struct {
	pages int
	took  time.Duration
}

const (
	tries     = 4 // calls without progress, after which busy pages are given up
	firstWait = time.Millisecond
	// unset marks a status that the kernel did not write, because it did not get that
	// far.
	unset = -9999
)

// work moves everything, with one worker in the caller's thread, or with several in
// threads of their own. Those threads end with the workers, so that no other goroutine
// inherits their CPUs.
func (r *run) work() {
	if r.req.Workers <= 1 && r.req.CPUs.IsEmpty() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		r.loop()
		return
	}
	var all sync.WaitGroup
	for range max(1, r.req.Workers) {
		all.Add(1)
		go func() {
			defer all.Done()
			runtime.LockOSThread()
			if err := pin(r.req.CPUs); err != nil {
				r.note("pin", "run a worker on CPUs %s: %v", r.req.CPUs, err)
			}
			r.loop()
		}()
	}
	all.Wait()
}

func pin(cpus set.CPUSet) error {
	if cpus.IsEmpty() {
		return nil
	}
	return unix.LiveAffinity{}.SetAffinity(0, cpus.Words())
}

func (r *run) loop() {
	began := unix.ThreadCPU()
	w := &worker{r: r}
	for {
		b, ok := r.take(w)
		if !ok {
			break
		}
		o := w.move(&b)
		r.settle(b, o)
	}
	r.mu.Lock()
	r.res.CPU += unix.ThreadCPU() - began
	r.mu.Unlock()
}

// move moves a batch to its node:
//
//  1. What moved, is gone or failed for a reason of its own is counted.
//  2. Ask where busy pages are, and those that the kernel did not reach: some have
//     arrived by now. The rest is tried again after a short wait, as long as there is
//     progress.
//  3. Pages that the node has no room for are tried on another.
//  4. Of a huge page, ask for the last small page: the huge page has arrived when all of
//     it has.
func (w *worker) move(b *batch) (o outcome) {
	tried := set.FromNodes(b.node)
	todo := b.pages
	for try, idle := 0, 0; len(todo) > 0; try++ {
		status, err := w.call(b, todo, &o)
		full := errors.Is(err, sys.ENOMEM)
		if err != nil && !full {
			w.broken(err, b.pid, todo, &o)
			break
		}
		again, noRoom := w.sort(todo, status, &o)                        // (1)
		if again, err = w.stillElsewhere(b.pid, again, &o); err != nil { // (2)
			w.broken(err, b.pid, append(again, noRoom...), &o)
			break
		}
		if full {
			again, noRoom = nil, append(noRoom, again...)
		}
		if try == 0 {
			o.retried = len(again)
		}
		if idle++; len(again) < len(todo) {
			idle = 0
		}
		if len(noRoom) > 0 { // (3)
			again = w.elsewhere(b, again, noRoom, &tried, &o)
		}
		if todo = again; !w.mayRetry(todo, try, idle, &o) {
			break
		}
	}
	w.verify(b, &o) // (4)
	return o
}

// mayRetry waits before the next try; false when there is none.
func (w *worker) mayRetry(todo []page, try, idle int, o *outcome) bool {
	switch {
	case len(todo) == 0:
		return false
	case errors.Is(w.r.ctx.Err(), context.Canceled):
		o.extra = append(o.extra, todo...) // the next call of Move continues with them
		return false
	case idle == tries:
		o.fail(todo, "EBUSY")
		return false
	}
	if idle > 0 || try == 0 {
		w.r.m.sleep(w.r.ctx, firstWait<<idle)
	}
	return true
}

// call passes pages to the kernel and times it.
func (w *worker) call(b *batch, todo []page, o *outcome) ([]int32, error) {
	n := len(todo)
	w.addrs, w.nodes, w.status = slices.Grow(w.addrs[:0], n)[:n], slices.Grow(w.nodes[:0], n)[:n], slices.Grow(w.status[:0], n)[:n]
	for i, p := range todo {
		w.addrs[i], w.nodes[i], w.status[i] = uintptr(p.addr), int32(b.node), unset
	}
	m := w.r.m
	began := m.clock.Now()
	left, err := m.pager.MovePages(b.pid, w.addrs, w.nodes, w.status, m.flags)
	o.calls = append(o.calls, sample{max(1, n-left), m.clock.Now() - began})
	switch {
	case errors.Is(err, sys.ENOENT): // before 4.17: none of the pages could be moved; the statuses say why
		err = nil
	case err != nil && !errors.Is(err, sys.ENOMEM):
		err = m.explain(b.pid, w.r.req.To.String(), err)
	}
	return w.status, err
}

// sort counts what moved and what failed. It returns the pages to try again, and those
// without room. Pages that the kernel did not reach come first: busy pages may be the
// reason.
func (w *worker) sort(todo []page, status []int32, o *outcome) (again, noRoom []page) {
	if len(o.moved) == 0 && !slices.ContainsFunc(status, func(s int32) bool { return !w.r.home(s) }) {
		o.moved = todo
		return nil, nil
	}
	var busy []page
	for i, s := range status {
		p := todo[i]
		switch {
		case s == unset:
			again = append(again, p)
		case s == -int32(sys.EBUSY) || s == -int32(sys.EAGAIN):
			busy = append(busy, p)
		case s == -int32(sys.ENOMEM):
			noRoom = append(noRoom, p)
		case s == -int32(sys.ENOENT) || s == -int32(sys.EFAULT):
			o.lose(p) // unmapped or swapped out meanwhile
		case s < 0:
			o.fail(todo[i:i+1], name(s))
		case !w.r.home(s):
			busy = append(busy, p)
		default:
			o.moved = append(o.moved, p)
		}
	}
	return append(again, busy...), noRoom
}

// lose counts what is gone. Of a huge page that may be only the first small one: it may
// have been split meanwhile, or never have been a huge page.
func (o *outcome) lose(p page) {
	if p.mayBeSplit() {
		o.extra = append(o.extra, p.smalls(0)...)
		return
	}
	o.tally.lose(p)
}

func (o *outcome) fail(pages []page, why string) {
	for _, p := range pages {
		if p.looks || why == "EBUSY" && p.mayBeSplit() {
			o.extra = append(o.extra, p.smalls(0)...)
			continue
		}
		o.tally.fail(p, why)
		o.stayed = append(o.stayed, p)
	}
}

// stillElsewhere asks where pages are, and counts those that have arrived by now.
func (w *worker) stillElsewhere(pid int, pages []page, o *outcome) (rest []page, err error) {
	where, err := w.ask(pid, pages, 0)
	if err != nil {
		return pages, err
	}
	for i, p := range pages {
		switch {
		case where[i] < 0:
			o.lose(p)
		case w.r.home(where[i]):
			o.moved = append(o.moved, p)
		default:
			rest = append(rest, p)
		}
	}
	return rest, nil
}

// ask asks for each page's first small page, or its last.
func (w *worker) ask(pid int, pages []page, last uint64) ([]int32, error) {
	n := len(pages)
	w.addrs, w.status = slices.Grow(w.addrs[:0], n)[:n], slices.Grow(w.status[:0], n)[:n]
	for i, p := range pages {
		w.addrs[i] = uintptr(p.addr)
		if last > 0 {
			w.addrs[i] += uintptr(p.size - last)
		}
	}
	return w.status, w.r.m.ask(pid, w.addrs, w.status)
}

// elsewhere finds another node for pages that had no room on b's. Without one the pages
// stay, and the rest still goes to b's node.
func (w *worker) elsewhere(b *batch, again, noRoom []page, tried *set.NodeSet, o *outcome) []page {
	if o.noRoom == nil {
		o.noRoom = map[int]int{}
	}
	o.noRoom[b.node] += len(noRoom)
	if !w.r.another(b, len(noRoom), *tried) {
		o.fail(noRoom, w.r.room.why(b.class))
		return again
	}
	*tried = tried.With(b.node)
	return append(again, noRoom...)
}

// broken counts the pages of a call that failed as a whole.
func (w *worker) broken(err error, pid int, todo []page, o *outcome) {
	o.err = err
	if errors.Is(err, unix.ErrNotPermitted) && pid != 0 {
		for _, p := range todo {
			o.tally.fail(p, errnoOf(err))
		}
		return
	}
	if errors.Is(err, unix.ErrGone) {
		for _, p := range todo {
			o.tally.lose(p)
		}
		return
	}
	o.extra = append(o.extra, todo...)
}

// verify counts what moved, huge pages after a check of their last small one.
func (w *worker) verify(b *batch, o *outcome) {
	if b.class.pool || b.class.size < hugePage || len(o.moved) == 0 {
		for _, p := range o.moved {
			o.tally.move(p)
		}
		return
	}
	where, err := w.ask(b.pid, o.moved, smallPage)
	for i, p := range o.moved {
		if err != nil || where[i] < 0 || w.r.home(where[i]) {
			o.tally.move(p)
			continue
		}
		small := p.smalls(0)
		o.tally.move(small[0])
		o.extra = append(o.extra, small[1:]...)
	}
}

// settle records the result of a batch.
func (r *run) settle(b batch, o outcome) {
	r.mu.Lock()
	r.flying[b.pid]--
	moved := o.tally.addTo(&r.res)
	back := bytesOf(b.pages) - moved
	r.budget += back
	r.pace.undo(back)
	r.timed(b.class, o.calls)
	r.res.Retried += o.retried
	for _, p := range o.stayed {
		r.remember(p)
	}
	if moved > 0 {
		r.room.accepted(b.class, b.node)
	}
	for node, pages := range o.noRoom {
		if r.room.refused(b.class, node, pages) {
			r.problem("room", "%s", noRoomSentence(node, b.class))
		}
	}
	r.release(b.pages)
	r.reclaim(o.extra)
	r.bring(b, o.extra)
	if errors.Is(o.err, unix.ErrGone) {
		r.ended(b.pid)
	} else if errors.Is(o.err, unix.ErrNotPermitted) && b.pid != 0 {
		r.refuse(b.pid, o.err)
	} else if o.err != nil {
		r.fail(o.err)
	}
	r.kind = b.pages[len(b.pages)-1].kind
	r.changed.Broadcast()
	r.mu.Unlock()
	r.tell(false)
}

// bring queues the pages to be tried one by one.
func (r *run) bring(b batch, extra []page) {
	for len(extra) > 0 {
		c := extra[0].class()
		n := slices.IndexFunc(extra, func(p page) bool { return p.class() != c })
		if n < 0 {
			n = len(extra)
		}
		r.extra = append(r.extra, batch{pid: b.pid, class: c, pages: extra[:n]})
		extra = extra[n:]
	}
}

func (r *run) timed(c class, calls []sample) {
	for _, call := range calls {
		r.res.Calls++
		r.res.Longest = max(r.res.Longest, call.took)
		if r.j.sizer(c).observe(call.pages, call.took) {
			r.res.Over++
		}
	}
}

// tell reports the progress, some times a second.
func (r *run) tell(last bool) {
	if r.req.Progress == nil {
		return
	}
	r.mu.Lock()
	now := time.Now() // wall-clock time, not the model's
	due := last || now.Sub(r.reported) >= progressEach
	if due {
		r.reported = now
	}
	p := Progress{
		Moved: r.res.Moved(), Failed: r.res.Failed(), Elapsed: r.m.clock.Now() - r.began,
		Longest: r.res.Longest, Kind: r.kind,
	}
	r.mu.Unlock()
	if due {
		r.progress.Lock()
		defer r.progress.Unlock()
		r.req.Progress(p)
	}
}
