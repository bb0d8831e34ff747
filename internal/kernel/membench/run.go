// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// run is a running job.
type run struct {
	p       *Prober
	job     Job
	workers []*worker
	owners  []*owner

	ready     sync.WaitGroup // threads that are pinned
	done      sync.WaitGroup // threads that have ended
	start     futex          // 1: go
	stop      atomic.Bool
	late      atomic.Bool  // it was stopped because it took too long
	deadline  int64        // of nanotime: when it is late
	warming   atomic.Int32 // threads whose warming time is not over
	measuring atomic.Int32 // threads whose measured stretch is not over
}

func newRun(p *Prober, j Job, regions []*region) *run {
	r := &run{p: p, job: j}
	parts, seen := j.parts(), map[int]int{}
	for i, t := range j.Threads {
		w := &worker{run: r, thread: t, clock: loopClock(p.clock)}
		w.source = newSource(t, regions, seen[t.Buffer], parts[t.Buffer], uint64(i))
		if t.Work == Chase && parts[t.Buffer] == 1 {
			w.region = regions[t.Buffer]
		}
		w.batch = firstBatch(t)
		seen[t.Buffer]++
		if t.Work == Transfer {
			w.owner = newOwner(r, t.Owner, &w.source)
			r.owners = append(r.owners, w.owner)
		}
		r.workers = append(r.workers, w)
	}
	r.warming.Store(int32(len(r.workers)))
	r.measuring.Store(int32(len(r.workers)))
	return r
}

// parts are the threads by buffer.
func (j Job) parts() map[int]int {
	parts := map[int]int{}
	for _, t := range j.Threads {
		parts[t.Buffer]++
	}
	return parts
}

// linesFor is the number of a buffer's lines that all threads of this work share.
func linesFor(t Thread, lines int) int {
	if t.Work == Copy {
		return lines / 2
	}
	return lines
}

// newSource gives a thread its part of the buffer, or its place in the cycle: the
// part-th of parts.
func newSource(t Thread, regions []*region, part, parts int, seed uint64) source {
	r := regions[t.Buffer]
	lines, s := linesFor(t, r.lines), source{work: pure(t), reads: t.Reads, writes: t.Writes}
	if t.Work == Copy {
		s.half = uintptr(lines) * line
	}
	first := lines * part / parts
	s.base, s.lines = unsafe.Add(r.base(), first*line), lines*(part+1)/parts-first
	s.at = s.base
	if t.Work == Chase && parts == 1 && r.next != nil {
		s.at = r.next
	}
	if t.Work == Chase || t.Work == Transfer {
		s.base, s.lines = r.base(), r.lines
	}
	if t.Pause > 0 {
		s.pause = max(1, (t.Pause-spinCall)/spinTurn)
	}
	if t.AddEvery > 0 {
		shared := regions[t.Shared]
		s.shared, s.sharedLines = shared.base(), uint64(shared.lines)
		s.every, s.toAdd, s.random = t.AddEvery, t.AddEvery, seed+1
	}
	return s
}

// pure is the work of a mix with one kind only: that has a loop of its own.
func pure(t Thread) Work {
	switch {
	case t.Work == Mixed && t.Writes == 0:
		return Read
	case t.Work == Mixed && t.Reads == 0:
		return Write
	}
	return t.Work
}

// giveUp is how much of the machine's own time may pass before the prober's clock
// reaches the end: the lab's model may be ten times as slow, or off.
func (r *run) giveUp() time.Duration { return r.p.patience + 50*(r.job.Warm+r.job.Length) }

var errClock = errors.New("the threads did not get to the end of the measured stretch: does the clock run")

// do starts the threads and waits for them.
//
//  1. Each needs a P of Go's of its own, because none gives its P up, and two are for
//     everything else. Setting the number, even to its old value, also keeps the
//     runtime from adapting it every second, which stops the world
//     (sysmonUpdateGOMAXPROCS in runtime/proc.go); the runtime does not do so again
//     later.
//  2. All are pinned and sleep: from here on the clock's time counts.
//  3. They run until all measured ones have finished.
//
// A worker is not preempted, so a goroutine that stops the world waits for all workers;
// and a worker that comes out of a system call then (its futex) waits for the world. If
// a third waits for that worker, all three wait. Hence: no collection during a run
// (Run), Ps that stay (1), and no wait without an end (ended). What remains: if other
// code of this process stops the world (runtime.GC, ReadMemStats, a profile; homenode
// has none), a job can fail after giveUp, with errClock.
func (r *run) do(ctx context.Context) (Result, error) {
	before := runtime.GOMAXPROCS(0) // 1
	runtime.GOMAXPROCS(max(before, len(r.workers)+len(r.owners)+2))
	defer runtime.GOMAXPROCS(before)
	r.ready.Add(len(r.workers) + len(r.owners))
	r.done.Add(len(r.workers) + len(r.owners))
	for _, w := range r.workers {
		go w.main()
	}
	for _, o := range r.owners {
		go o.main()
	}
	r.ready.Wait() // 2
	err := stage(r.p.clock, Staged.Measure)
	if err != nil {
		r.stop.Store(true)
	}
	unhook := context.AfterFunc(ctx, func() { r.stop.Store(true) })
	defer unhook()
	r.deadline = nanotime() + int64(r.giveUp())
	late := time.AfterFunc(r.giveUp(), r.tooLate)
	defer late.Stop()
	r.start.set(1) // 3
	r.done.Wait()
	switch {
	case err != nil:
		return Result{}, err
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	}
	return r.result()
}

//go:nosplit
func (r *run) tooLate() {
	r.late.Store(true)
	r.stop.Store(true)
}

func (r *run) result() (Result, error) {
	var errs []error
	var res Result
	r.p.problems = nil
	for i, w := range r.workers {
		if w.err != nil {
			errs = append(errs, fmt.Errorf("thread %d: %w", i, w.err))
		}
		r.p.problems = append(r.p.problems, w.problems...)
		res.Threads = append(res.Threads, w.result)
		if w.region != nil {
			w.region.next = w.source.at
		}
	}
	for _, o := range r.owners {
		errs = append(errs, o.err)
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, err
	}
	if r.late.Load() {
		return Result{}, fmt.Errorf("run job: %w (%s; %v were asked for, %v have passed)", errClock, r.p.clock.Name(), r.job.Warm+r.job.Length, r.giveUp())
	}
	return res, nil
}
