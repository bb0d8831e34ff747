// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"fmt"
	"time"

	"homenode/internal/action"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/runner"
	"homenode/internal/sim/threadworld"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// toy is a world without a machine: every workload does its rate, times a factor that the
// test chooses, and a little more depending on the seed; each thread has an equal part.
type toy struct {
	c      sim.Config
	factor float64
	now    time.Duration
	since  time.Duration // time of the last Truth
	wins   time.Duration // time of the last Window
	wait   func()        // called in each Run
}

func (w *toy) Run(d time.Duration) {
	if w.wait != nil {
		w.wait()
	}
	w.now += d
}
func (w *toy) Apply([]action.Step) {}

func (w *toy) pace() float64 { return 100 * w.factor * (1 + float64(w.c.Seed)/100) }

func (w *toy) Window() window.Window {
	win := window.Window{Schema: 1, Length: w.now - w.wins}
	for _, s := range w.c.Specs {
		win.Workloads = append(win.Workloads, window.Workload{
			ID: "/" + s.Name, UncoreRequests: unit.Modelled(uint64(10), "toy"), UncoreWaits: unit.Modelled(uint64(300), "toy"),
		})
	}
	w.wins = w.now
	return win
}

func (w *toy) Truth() (all []sim.Truth) {
	d := (w.now - w.since).Seconds()
	for _, s := range w.c.Specs {
		ops := w.pace() * d
		all = append(all, sim.Truth{
			Workload: "/" + s.Name, Service: s.Name, Seconds: d, Ops: ops, CPUSeconds: d * float64(s.Threads), Cycles: 2 * ops, Instructions: 4 * ops, Local: ops, Remote: ops / 3,
		})
	}
	w.since = w.now
	return all
}

// toyThreads is a toy that reports its threads: the last of each workload gets half of the
// CPU time of the others.
type toyThreads struct{ *toy }

func (w toyThreads) Threads() (all []threadworld.ThreadTruth) {
	id := 100
	for _, s := range w.c.Specs {
		for i := range s.Threads {
			t := threadworld.ThreadTruth{Workload: "/" + s.Name, ID: id, CPUSeconds: w.now.Seconds(), Ops: w.pace() * w.now.Seconds() / float64(s.Threads)}
			if i == s.Threads-1 {
				t.CPUSeconds /= 2
			}
			id++
			all = append(all, t)
		}
	}
	return all
}

func toyMachine(name string) Machine {
	host, system := memsys.DualSkylake()
	return Machine{Name: name, About: "two nodes", Host: host, System: system}
}

func toyMix(name string) Mix {
	return Mix{
		Name: name, About: "two loops", Lasts: 10 * time.Second, Warmup: 2 * time.Second, Period: time.Second, Step: 10 * time.Millisecond,
		Specs: func(*Machine, uint64) []sim.Spec {
			return []sim.Spec{{Name: "b", Threads: 2, Work: sim.WorkSpec{Cycles: 1}}, {Name: "a", Threads: 1, Work: sim.WorkSpec{Cycles: 1}}}
		},
	}
}

// toyPlan has worlds in which interleave is slower by half; they recognise it by its start.
func toyPlan() Plan {
	return Plan{
		Name: "toy", About: "a test", Machines: []Machine{toyMachine("one"), toyMachine("two")}, Mixes: []Mix{toyMix("loops"), toyMix("more")},
		Policies: []string{runner.None, runner.Interleave, runner.MAOB, "mao-b:other"}, Against: runner.None, Seeds: []uint64{1, 2, 3},
		Periods: map[string]time.Duration{runner.MAOB: 3 * time.Second},
		World: func(c sim.Config) (World, error) {
			for _, s := range c.Specs {
				if s.Threads < 1 {
					return nil, fmt.Errorf("workload %q has no threads", s.Name)
				}
			}
			w := &toy{c: c, factor: 1}
			if c.Interleave {
				w.factor = 0.5
			}
			return toyThreads{w}, nil
		},
	}
}
