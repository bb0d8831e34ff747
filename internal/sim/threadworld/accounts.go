// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"math"

	"homenode/internal/sim"
)

// account records what each thread did in the step.
func (w *World) account(dt float64) {
	for _, wl := range w.live {
		w.accountOf(wl, dt)
	}
}

func (w *World) accountOf(wl *workload, dt float64) {
	c := wl.NewCounts(dt)
	w.warm(wl, dt)
	part := w.part(wl, dt)
	for i := range wl.threads {
		w.accountThread(&wl.threads[i], dt, part, &c)
	}
	wl.Serve(dt, &c)
	if wl.Demand.Closed {
		c.Latency = w.inLoop(wl, dt, c.Ops)
	}
	wl.Count(&c)
	if wakes := wl.wakes(); wakes > 0 {
		wl.wakeRate = c.Ops * wakes / dt / float64(len(wl.threads))
	}
}

// inLoop is the total time of the operations of a closed loop: the time of all its threads
// in which they do not think.
func (w *World) inLoop(wl *workload, dt, ops float64) float64 {
	all := dt * float64(len(wl.threads)) * wl.Demand.Duty
	return max(0, all-ops*wl.Spec.Demand.Think.Seconds())
}

// wakes is the number of wake-ups of its threads per operation, including those after
// sleeping at barriers and after thinking.
func (wl *workload) wakes() float64 {
	wakes := wl.Spec.Wakes()
	if b := wl.Spec.Work.Barrier; b > 0 && !wl.Spec.Work.Spin {
		wakes += 1 / float64(b)
	}
	if wl.Spec.Demand.Think > 0 {
		wakes++
	}
	return wakes
}

// part is the share of the operations that its threads had time for that is done: from a
// queue, no more than there are; at barriers, no more than the slowest has done.
func (w *World) part(wl *workload, dt float64) float64 {
	if wl.Demand.Closed {
		if wl.Spec.Work.Barrier > 0 {
			return w.slowest(wl)
		}
		return 1
	}
	could := 0.0
	for i := range wl.threads {
		t := &wl.threads[i]
		could += t.able() * w.Config.System.Hz / w.groups[t.group].cycles
	}
	if wanted := wl.Wanted() / dt; could > wanted {
		return wanted / could
	}
	return 1
}

// slowest is the pace that all threads can keep, with their present cycles.
func (w *World) slowest(wl *workload) float64 {
	pace := wl.pace
	for i := range wl.threads {
		t := &wl.threads[i]
		pace = min(pace, t.able()*w.Config.System.Hz/w.groups[t.group].cycles)
	}
	return pace
}

// accountThread records one thread's step. part is the share of its operations; for threads
// that wait for each other, their pace.
func (w *World) accountThread(t *thread, dt, part float64, c *sim.Counts) {
	wl, g, hz := t.wl, &w.groups[t.group], w.Config.System.Hz
	work := &wl.Works[wl.Demand.Phase]
	ops := t.able() * hz / g.cycles * part
	if wl.Spec.Work.Barrier > 0 {
		ops = part
	}
	ops = ops * dt
	cycles := ops*g.cycles + w.bring(t, dt, c)
	instructions := ops * work.Instructions
	if wl.Spec.Work.Spin {
		if spun := max(0, t.got*hz*dt-cycles); spun > 0 {
			cycles += spun
			instructions += spun
		}
	}
	cpu := cycles / hz
	requests, waits := ops*g.requests, ops*g.waits
	t.win.cpu += cpu
	t.win.cycles += cycles
	t.win.instructions += instructions
	t.win.requests += requests
	t.win.waits += waits
	t.cpuSeconds += cpu
	t.ops += ops
	c.Ops += ops
	c.CPU += cpu
	c.Cycles += cycles
	c.Instructions += instructions
	c.Requests += requests
	c.Waits += waits
	c.Stall += ops * g.stall
	c.Local += ops * g.local
	c.Remote += ops * g.remote
	node := w.cpus[t.cpu].node
	w.Busy[node] += cpu
	wl.ByCPU[node] += cpu
	wl.used[node] += cpu
	if wl.Demand.Closed {
		wl.tail.step(t, dt, ops)
	}
}

// tail is the time of operations of a closed loop, by thread and step: bins by the
// logarithm, each with its weight and its mean.
type tail struct{ bins []bin }

type bin struct{ weight, sum float64 }

const (
	binsOctave = 32
	binsBelow  = 40 // octaves below a second
	allBins    = binsOctave * (binsBelow + 20)
)

// step adds a thread's step. Its weight is time, so a thread that hardly runs counts as
// much as the others. Time without operations is added to the thread's next step that has
// some.
func (l *tail) step(t *thread, dt, ops float64) {
	in := dt * t.wl.Demand.Duty
	if ops <= 0 {
		t.held += in
		return
	}
	per := in/ops - t.wl.Spec.Demand.Think.Seconds()
	if t.held > 0 {
		per += t.held / ops
		in += t.held
		t.held = 0
	}
	if per != t.per {
		t.per, t.bin = per, binOf(per)
	}
	l.put(t.bin, in, per)
}

func (l *tail) put(at int, weight, per float64) {
	if l.bins == nil {
		l.bins = make([]bin, allBins)
	}
	b := &l.bins[at]
	b.weight += weight
	b.sum += weight * per
}

// unfinished adds threads that have been without a finished operation for some time: theirs
// takes at least that long.
func (l *tail) unfinished(threads []thread) {
	for i := range threads {
		if t := &threads[i]; t.held > 0 {
			l.put(binOf(t.held), t.held, t.held)
			t.held = 0
		}
	}
}

func binOf(seconds float64) int {
	m, e := math.Frexp(max(seconds, 1e-300)) // m from ½ to 1
	i := (e+binsBelow)*binsOctave + int((m-0.5)*2*binsOctave)
	return min(max(i, 0), allBins-1)
}

// p99 is the time that one of a hundred exceeds; 0 without operations.
func (l *tail) p99() float64 {
	all := 0.0
	for i := range l.bins {
		all += l.bins[i].weight
	}
	left := all / 100
	for i := len(l.bins) - 1; i >= 0; i-- {
		b := &l.bins[i]
		if left -= b.weight; left < 0 {
			return b.sum / b.weight
		}
	}
	return 0
}
