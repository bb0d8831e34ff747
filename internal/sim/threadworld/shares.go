// SPDX-License-Identifier: Apache-2.0

package threadworld

import "math"

const (
	// shareRounds bounds the rounds of sharing CPU time: threads that wait for others, or
	// take over from others, want more or less once the others have theirs. What is not
	// settled then is left to the next step.
	shareRounds = 4
	// settled is the difference at which amounts of CPU time count as equal.
	settled = 1e-4
	// noticed is how much a load must change for the memory system to be solved again.
	noticed = 2e-3
)

// share gives out the CPUs' time.
//
//  1. The wants of each thread: everything, in a closed loop; its part, if it thinks; an
//     equal part of the demand, where all share one queue.
//  2. Each CPU is shared max-min fair by its threads: a thread that wants less than its
//     part leaves the rest to the others (sched/fair.c: entities of equal weight).
//  3. How this changes wants: threads of a queue take over what their peers cannot do;
//     threads at a barrier do as much as the slowest can; a quota holds back all of a
//     workload's threads (throttle_cfs_rq).
//  4. A step in which the workload stands still is shorter for all of its threads.
func (w *World) share(dt float64) {
	for _, wl := range w.live {
		w.desiredShares(wl, dt) // 1
	}
	w.give()                    // 2
	for round := 1; ; round++ { // 3
		again := false
		for _, wl := range w.live {
			again = w.adjust(wl, dt) || again
		}
		if w.stale = again && round == shareRounds; w.stale || !again {
			break
		}
		w.give()
	}
	for _, wl := range w.live {
		wl.clamp()
	}
	w.measure(dt)
	w.tallied = false
}

// run is the part of a step in which a workload's threads run.
func (wl *workload) run(dt float64) float64 { return wl.Demand.Duty * (1 - wl.Demand.Still/dt) }

// desiredShares is number 1.
func (w *World) desiredShares(wl *workload, dt float64) {
	run, hz := wl.run(dt), w.Config.System.Hz
	think := wl.Spec.Demand.Think.Seconds()
	each := 0.0
	if !wl.Demand.Closed {
		run = 1 - wl.Demand.Still/dt
		seconds := w.meanCycles(wl) / hz
		wl.Admit(dt, seconds, w.servers(wl))
		wl.need = wl.Wanted() / dt
		each = wl.need * seconds / float64(len(wl.threads))
	}
	for i := range wl.threads {
		t := &wl.threads[i]
		switch {
		case !wl.Demand.Closed:
			t.want = min(run, each)
		case think > 0:
			seconds := w.cyclesOf(t) / hz
			t.want = run * seconds / (seconds + think)
		case wl.Spec.Work.Barrier > 0 && !wl.Spec.Work.Spin && wl.pace > 0:
			t.want = min(run, wl.pace*w.cyclesOf(t)/hz)
		default:
			t.want = run
		}
	}
}

// give is number 2 for all CPUs.
func (w *World) give() {
	for i := range w.cpus {
		w.cpus[i].give()
	}
}

func (c *cpu) give() {
	c.load, c.spare = 0, c.room
	for _, t := range c.threads {
		c.load += t.want
		t.got = t.want
	}
	if c.load > c.room {
		level := c.level(nil)
		for _, t := range c.threads {
			t.got = min(t.want, level)
		}
	}
	for _, t := range c.threads {
		c.spare -= t.got
	}
	c.spare = max(0, c.spare)
}

// level is what each of its threads that wants more can have. One of them may be treated as
// wanting everything.
func (c *cpu) level(greedy *thread) float64 {
	level := 0.0
	for range len(c.threads) {
		left, hungry := c.room, 0.0
		for _, t := range c.threads {
			if t == greedy || t.want > level {
				hungry++
			} else {
				left -= t.want
			}
		}
		if hungry == 0 {
			return math.Inf(1)
		}
		next := max(0, left) / hungry
		if next <= level+1e-12 {
			return max(level, next)
		}
		level = next
	}
	return level
}

// adjust is number 3. It reports whether a thread's wants have changed.
func (w *World) adjust(wl *workload, dt float64) (again bool) {
	switch {
	case !wl.Demand.Closed:
		again = w.takeOver(wl, dt)
	case wl.Spec.Work.Barrier > 0:
		again = w.hold(wl, dt)
	}
	if limit := wl.Spec.CPULimit; limit > 0 {
		got := 0.0
		for i := range wl.threads {
			got += wl.threads[i].got
		}
		if got > limit*(1+settled) {
			for i := range wl.threads {
				wl.threads[i].want = wl.threads[i].got * limit / got
			}
			return true
		}
	}
	return again
}

// takeOver lets threads of a queue do what other threads have no time for, each up to its
// fair part of its CPU.
func (w *World) takeOver(wl *workload, dt float64) bool {
	done, room, hz := 0.0, 0.0, w.Config.System.Hz
	for i := range wl.threads {
		t := &wl.threads[i]
		done += t.got * hz / w.cyclesOf(t)
	}
	missing := wl.need - done
	if missing <= settled*wl.need {
		return false
	}
	for i := range wl.threads {
		room += w.couldMore(&wl.threads[i], dt) * hz / w.cyclesOf(&wl.threads[i])
	}
	if room <= few*wl.need {
		return false
	}
	part := min(1, missing/room)
	for i := range wl.threads {
		t := &wl.threads[i]
		t.more = part * w.couldMore(t, dt)
	}
	for i := range wl.threads {
		wl.threads[i].want += wl.threads[i].more
	}
	return true
}

// couldMore is how much more of its CPU than it wants a thread of a queue could have.
func (w *World) couldMore(t *thread, dt float64) float64 {
	if t.got < t.want-near {
		return 0
	}
	return max(0, min(1-t.wl.Demand.Still/dt, w.cpus[t.cpu].level(t))-t.want)
}

// hold lets no thread do more between two barriers than the slowest can. How fast that is:
// a thread that sleeps wants everything until it waits. Of n threads whose work varies, the
// slowest takes longer than the mean (sim.Spec.Straggle).
func (w *World) hold(wl *workload, dt float64) bool {
	pace, run, hz := math.Inf(1), wl.run(dt), w.Config.System.Hz
	for i := range wl.threads {
		t := &wl.threads[i]
		could := t.got
		if !wl.Spec.Work.Spin {
			could = min(run, w.cpus[t.cpu].level(t))
		}
		pace = min(pace, could*hz/w.cyclesOf(t))
	}
	wl.pace = pace / wl.straggle
	if wl.Spec.Work.Spin {
		return false
	}
	again := false
	for i := range wl.threads {
		t := &wl.threads[i]
		want := min(run, wl.pace*w.cyclesOf(t)/hz)
		again = again || math.Abs(want-t.want) > settled
		t.want = want
	}
	return again
}

// clamp enforces a quota to the last digit.
func (wl *workload) clamp() {
	limit := wl.Spec.CPULimit
	if limit <= 0 {
		return
	}
	got := 0.0
	for i := range wl.threads {
		got += wl.threads[i].got
	}
	if got > limit {
		for i := range wl.threads {
			wl.threads[i].got *= limit / got
		}
	}
}

// servers is the number of CPUs that a workload could have at once.
func (w *World) servers(wl *workload) float64 {
	could := 0.0
	for i := range wl.threads {
		t := &wl.threads[i]
		c := &w.cpus[t.cpu]
		could += max(t.got+c.spare/float64(len(c.threads)), c.room/float64(len(c.threads)))
	}
	if limit := wl.Spec.CPULimit; limit > 0 {
		could = min(could, limit)
	}
	return max(few, min(could, float64(len(wl.threads))))
}

// measure reports whether the memory system's loads differ from those last solved.
func (w *World) measure(dt float64) {
	if w.changed {
		return
	}
	for i := range w.groups {
		w.groups[i].cpus = 0
	}
	for _, wl := range w.live {
		for i := range wl.threads {
			t := &wl.threads[i]
			w.groups[t.group].cpus += w.works(t)
		}
	}
	for i := range w.groups {
		g := &w.groups[i]
		w.changed = w.changed || math.Abs(g.cpus-g.solved) > noticed*max(g.cpus, g.solved)
	}
}

// works is the CPU time in which a thread does operations. While it spins, it does none.
func (w *World) works(t *thread) float64 {
	if t.wl.Spec.Work.Spin && t.wl.Spec.Work.Barrier > 0 {
		return min(t.got, t.wl.pace*w.cyclesOf(t)/w.Config.System.Hz)
	}
	return t.got
}
