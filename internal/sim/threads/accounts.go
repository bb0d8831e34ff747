// SPDX-License-Identifier: Apache-2.0

package threads

import "math"

// counts are sums over time of a workload.
type counts struct {
	seconds, asked, ops, dropped float64
	cpu, cycles, instructions    float64
	stall, local, remote         float64
	requests, waits              float64
	latency                      float64
	stalled, bound               float64
}

func (c *counts) add(o *counts) {
	c.seconds += o.seconds
	c.asked += o.asked
	c.ops += o.ops
	c.dropped += o.dropped
	c.cpu += o.cpu
	c.cycles += o.cycles
	c.instructions += o.instructions
	c.stall += o.stall
	c.local += o.local
	c.remote += o.remote
	c.requests += o.requests
	c.waits += o.waits
	c.latency += o.latency
	c.stalled += o.stalled
	c.bound += o.bound
}

// account puts down what each thread did in the step.
func (w *World) account(dt float64) {
	for _, wl := range w.live {
		w.accountOf(wl, dt)
	}
}

func (w *World) accountOf(wl *workload, dt float64) {
	c := counts{seconds: dt, stalled: wl.demand.Still}
	if wl.Bound {
		c.bound = dt
	}
	w.warm(wl, dt)
	part := w.part(wl, dt)
	for i := range wl.threads {
		w.accountThread(&wl.threads[i], dt, part, &c)
	}
	s := wl.requests.Serve(dt, c.ops)
	c.asked, c.dropped = s.Asked, s.Dropped
	if wl.demand.Closed {
		c.latency = w.inLoop(wl, dt, c.ops)
	} else {
		c.latency = s.Latency
	}
	wl.win.add(&c)
	wl.truth.add(&c)
	if wakes := wl.wakes(); wakes > 0 {
		wl.wakeRate = c.ops * wakes / dt / float64(len(wl.threads))
	}
}

// inLoop is the time that operations of a closed loop take, summed: all of its threads'
// time in which they do not think.
func (w *World) inLoop(wl *workload, dt, ops float64) float64 {
	all := float64(dt * float64(len(wl.threads)) * wl.demand.Duty)
	return max(0, all-float64(ops*wl.spec.Demand.Think.Seconds()))
}

// wakes is how often one of its threads wakes up an operation: also where they sleep at
// barriers, and think.
func (wl *workload) wakes() float64 {
	wakes := wl.spec.Wakes()
	if b := wl.spec.Work.Barrier; b > 0 && !wl.spec.Work.Spin {
		wakes += 1 / float64(b)
	}
	if wl.spec.Demand.Think > 0 {
		wakes++
	}
	return wakes
}

// part is which share of the operations that its threads had time for are done: of a
// queue, no more than there are; at barriers, no more than the slowest has done.
func (w *World) part(wl *workload, dt float64) float64 {
	if wl.demand.Closed {
		if wl.spec.Work.Barrier > 0 {
			return w.slowest(wl)
		}
		return 1
	}
	could := 0.0
	for i := range wl.threads {
		t := &wl.threads[i]
		could += float64(t.able() * w.c.System.Hz / w.groups[t.group].cycles)
	}
	if wanted := wl.requests.Wanted(dt) / dt; could > wanted {
		return wanted / could
	}
	return 1
}

// slowest is the pace at which all threads can go, with cycles as they are now.
func (w *World) slowest(wl *workload) float64 {
	pace := wl.pace
	for i := range wl.threads {
		t := &wl.threads[i]
		pace = min(pace, t.able()*w.c.System.Hz/w.groups[t.group].cycles)
	}
	return pace
}

// accountThread is one thread's step. part is of its operations, or of those who wait
// for each other, their pace.
func (w *World) accountThread(t *thread, dt, part float64, c *counts) {
	wl, g, hz := t.wl, &w.groups[t.group], w.c.System.Hz
	work := &wl.works[wl.demand.Phase]
	ops := float64(t.able()*hz/g.cycles) * part
	if wl.spec.Work.Barrier > 0 {
		ops = part
	}
	ops = float64(ops * dt)
	cycles := float64(ops*g.cycles) + w.bring(t, dt, c)
	instructions := float64(ops * work.Instructions)
	if wl.spec.Work.Spin {
		if spun := max(0, float64(t.got*hz*dt)-cycles); spun > 0 {
			cycles += spun
			instructions += spun
		}
	}
	cpu := cycles / hz
	requests, waits := float64(ops*g.requests), float64(ops*g.waits)
	t.win.cpu += cpu
	t.win.cycles += cycles
	t.win.instructions += instructions
	t.win.requests += requests
	t.win.waits += waits
	t.cpuSeconds += cpu
	t.ops += ops
	c.ops += ops
	c.cpu += cpu
	c.cycles += cycles
	c.instructions += instructions
	c.requests += requests
	c.waits += waits
	c.stall += float64(ops * g.stall)
	c.local += float64(ops * g.local)
	c.remote += float64(ops * g.remote)
	node := w.cpus[t.cpu].node
	w.busy[node] += cpu
	wl.byCPU[node] += cpu
	wl.used[node] += cpu
	if wl.demand.Closed {
		wl.tail.step(t, dt, ops)
	}
}

// tail is how long operations of a closed loop take, by thread and step: bins by their
// logarithm, each with what it has been given and its mean.
type tail struct{ bins []bin }

type bin struct{ weight, sum float64 }

const (
	binsOctave = 32
	binsBelow  = 40 // octaves below a second
	allBins    = binsOctave * (binsBelow + 20)
)

// step is a thread's step. Its weight is time: a thread that hardly runs is as much a
// thread as the others. Time without operations belongs to those of its next step that has
// some.
func (l *tail) step(t *thread, dt, ops float64) {
	in := float64(dt * t.wl.demand.Duty)
	if ops <= 0 {
		t.held += in
		return
	}
	per := in/ops - t.wl.spec.Demand.Think.Seconds()
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
	b.sum += float64(weight * per)
}

// unfinished puts down threads that are without an operation since some time: theirs
// takes that long at least.
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

// p99 is what one of a hundred is beyond; 0 where there are none.
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
