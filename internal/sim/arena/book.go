// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"cmp"
	"math"
	"slices"
	"time"

	"homenode/internal/sim"

	"homenode/internal/sim/runner"
	"homenode/internal/sim/threadworld"
	"homenode/internal/window"
)

// book adds up a cell.
//
//  1. Figures are sums over the time after the warm-up, and ratios of such sums.
//  2. The 99th percentile of requests' latency is the mean of the periods' estimates,
//     weighted by operations, as in sim/scenario. In a closed loop it is over threads and
//     periods: an operation takes the period / the thread's operations. A thread that has
//     done none yet is still waiting: its next operation took all that time.
//  3. Uncore requests and waits come from the windows, as a policy sees them.
//  4. Fairness uses the CPU time of threads that were there to the end.
type book struct {
	warmup  time.Duration
	seen    time.Duration // time of the last look
	apps    map[string]*sums
	threads map[int]*threadSums
	all     runner.Tally
}

// sums are the sums of one workload.
type sums struct {
	runner.Tally
	spec            *sim.Spec
	service         string
	requests, waits float64 // uncore
	each            []float64
}

// threadSums are those of one thread: its values at the end of the warm-up, and at the last
// look.
type threadSums struct {
	workload       string
	cpu0, cpu, ops float64
	waits          float64 // seconds since it finished an operation
	here           bool
}

// tellsThreads is a world of single threads.
type tellsThreads interface {
	Threads() []threadworld.ThreadTruth
}

func newBook(specs []sim.Spec, warmup time.Duration) *book {
	b := &book{warmup: warmup, apps: map[string]*sums{}, threads: map[int]*threadSums{}}
	for i := range specs {
		for _, id := range specs[i].IDs() {
			b.apps[id] = &sums{spec: &specs[i]}
		}
	}
	return b
}

// next is the latest time at which the books must be written: the end of the warm-up.
func (b *book) next(now time.Duration) time.Duration {
	if now < b.warmup {
		return b.warmup
	}
	return math.MaxInt64
}

// look adds what workloads and threads got since the last time.
func (b *book) look(w World, now time.Duration) {
	truth := w.Truth()
	counts := now > b.warmup
	for _, t := range truth {
		if s := b.apps[t.Workload]; counts && s != nil {
			s.service = t.Service
			s.Add(&t)
			b.all.Add(&t)
		}
	}
	if single, ok := w.(tellsThreads); ok {
		b.lookAtThreads(single.Threads(), now, counts)
	} else if counts {
		for _, t := range truth {
			b.apps[t.Workload].mean(t)
		}
	}
	b.seen = now
}

// mean is number 2 where single threads are not reported.
func (s *sums) mean(t sim.Truth) {
	if s != nil && t.Ops > 0 {
		s.each = append(s.each, t.Seconds*float64(max(1, s.spec.Threads))/t.Ops)
	}
}

// lookAtThreads is numbers 2 and 4.
func (b *book) lookAtThreads(all []threadworld.ThreadTruth, now time.Duration, counts bool) {
	for _, t := range b.threads {
		t.here = false
	}
	for _, t := range all {
		s := b.threads[t.ID]
		if s == nil {
			s = &threadSums{workload: t.Workload}
			b.threads[t.ID] = s
		}
		if s.waits += (now - b.seen).Seconds(); t.Ops > s.ops {
			if app := b.apps[t.Workload]; counts && app != nil {
				app.each = append(app.each, s.waits/(t.Ops-s.ops))
			}
			s.waits = 0
		}
		s.cpu, s.ops, s.here = t.CPUSeconds, t.Ops, true
		if !counts {
			s.cpu0 = t.CPUSeconds
		}
	}
}

// window is number 3.
func (b *book) window(w window.Window) {
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		s := b.apps[wl.ID]
		requests, ok := wl.UncoreRequests.Get()
		waits, also := wl.UncoreWaits.Get()
		if s != nil && ok && also {
			s.requests += float64(requests)
			s.waits += float64(waits)
		}
	}
}

// close makes a cell from it.
func (b *book) close(j job, counts runner.Counts) Cell {
	c := Cell{
		Machine: j.machine.Name, Mix: j.mix.Name, Policy: j.policy, Seed: j.seed, Apps: []App{},
		Moves: counts.Pins + counts.Binds + counts.Asides + counts.Unbinds,
		Pins:  counts.Pins, Binds: counts.Binds, Asides: counts.Asides, Unbinds: counts.Unbinds,
		MovedB: counts.Moved, Refused: counts.Refused, MoverCPU: counts.CPU,
		LocalRatio: b.all.LocalRatio(), CPUSeconds: b.all.CPU,
	}
	fair := b.fairness()
	for id, s := range b.apps {
		if s.Seconds > 0 {
			c.Apps = append(c.Apps, s.app(id, fair))
		}
	}
	slices.SortFunc(c.Apps, func(a, b App) int { return cmp.Compare(a.ID, b.ID) })
	return c
}

func (s *sums) app(id string, fair map[string]float64) App {
	a := App{
		ID: id, Service: s.service, Threads: max(1, s.spec.Threads), Rated: s.spec.Demand.Rate > 0, Ops: runner.Over(s.Ops, s.Seconds), CPUPerOp: s.CPUPerOp(),
		LocalRatio: s.LocalRatio(), IPC: s.IPC(), MPI: runner.Over(s.Local+s.Remote, s.Instructions),
		Penalty: runner.Over(s.waits, s.requests), P99S: runner.Over(s.P99, s.Rated), Fairness: 1,
	}
	if s.Rated == 0 {
		a.P99S = percentile99(s.each)
	}
	if f, ok := fair[id]; ok {
		a.Fairness = f
	}
	return a
}

// fairness is number 4, by workload.
func (b *book) fairness() map[string]float64 {
	least, most := map[string]float64{}, map[string]float64{}
	for _, t := range b.threads { // least and most do not depend on the order
		if !t.here {
			continue
		}
		used := t.cpu - t.cpu0
		if l, ok := least[t.workload]; !ok || used < l {
			least[t.workload] = used
		}
		most[t.workload] = max(most[t.workload], used)
	}
	fair := map[string]float64{}
	for id, m := range most {
		if m > 0 {
			fair[id] = runner.Share(least[id], m)
		}
	}
	return fair
}

// percentile99 is by nearest rank; 0 without values.
func percentile99(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return all[max(0, (99*len(all)+99)/100-1)]
}
