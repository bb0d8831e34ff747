// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// isolated is a world with resctrl, the policy with its default figures, and its actions,
// as text.
type isolated struct {
	t        *testing.T
	world    *World
	m        machine.Machine
	st       mao.State
	jobs     actuate.State
	outcomes []action.Outcome
	said     []string
	rules    []string
	last     action.Reason // of the last tick's workload
}

func newIsolated(t *testing.T, specs ...Spec) *isolated {
	t.Helper()
	m, sys := memsys.DualSkylake()
	c := Config{Machine: m, System: sys, Specs: specs, Seed: 3, Step: 5 * time.Second, Resctrl: true}
	return &isolated{t: t, world: world(t, c), m: m}
}

// tick plays n windows. It returns the last window's view of a workload, and its true
// cycles per operation.
func (l *isolated) tick(n int, id string) (cycles float64, wl window.Workload) {
	l.t.Helper()
	for range n {
		l.world.Run(10 * time.Second)
		w := l.world.Window()
		w.Outcomes = append(l.outcomes, w.Outcomes...)
		var wanted []action.Action
		var reasons []action.Reason
		l.st, wanted, reasons = mao.Step(l.m, mao.DefaultConfig(), l.st, w)
		for _, a := range wanted {
			l.said = append(l.said, string(a.Kind)+" "+a.Workload)
			l.rules = append(l.rules, a.Reason.Rule)
			l.t.Logf("window %d: %v: %s", w.Seq, a, words.Sentence(a.Reason))
		}
		cfg := actuate.DefaultConfig()
		cfg.Turn = 10 * time.Second
		var steps []action.Step
		l.jobs, steps, l.outcomes = actuate.Step(l.m, cfg, l.jobs, wanted, w)
		l.world.Apply(steps)
		wl, _ = w.Workload(id)
		if i, ok := w.WorkloadIndex(id); ok {
			l.last = reasons[i]
		}
	}
	v, ok := l.world.find(id)
	if !ok {
		l.t.Fatalf("%s is not there", id)
	}
	return poolsOf(l.world).of(v).cycles[1], wl
}

// sensitive reads at random from data that fit an LLC, and sometimes from data that do not.
// Its memory is on node 1 and its threads are elsewhere, so it is bound there. Its four
// threads use four CPUs, or a little less.
func sensitive() Spec {
	return Spec{
		Name: "victim", Threads: 4, Approved: true, Memory: MemorySpec{Shared: 1040 * unit.MiB},
		Work: WorkSpec{Cycles: 4000, Instructions: 4000, Regions: []RegionSpec{
			{Size: 16 * unit.MiB, Shared: true, Accesses: 100, Parallelism: 1}, {Size: unit.GiB, Shared: true, Accesses: 3, Parallelism: 1},
		}},
		Start: StartSpec{Touch: set.FromNodes(1)},
	}
}

// beside is a neighbour that streams through memory of this size on node 1. It starts when
// the victim has a past.
func beside(m machine.Machine, size unit.Bytes, accesses float64, threads int) Spec {
	return Spec{
		Name: "loud", Threads: threads, Memory: MemorySpec{Shared: size}, Arrive: 600 * time.Second,
		Work:  WorkSpec{Cycles: 1000, Instructions: 1000, Regions: []RegionSpec{{Size: size, Shared: true, Accesses: accesses, Parallelism: 8, Stream: true}}},
		Start: StartSpec{CPUs: m.Nodes[1].CPUs, Bind: set.FromNodes(1)},
	}
}

// A streaming neighbour takes the cache of a bound workload. MAO isolates it, and the
// victim wins back most of its loss. When the neighbour goes, so does its class.
func TestIsolationHelps(t *testing.T) {
	m, _ := memsys.DualSkylake()
	l := newIsolated(t, sensitive(), beside(m, 8*unit.GiB, 200, 8))
	alone, _ := l.tick(60, "/victim")
	hurt, _ := l.tick(2, "/victim")
	after, wl := l.tick(30, "/victim")
	back := (hurt - after) / (hurt - alone)
	t.Logf("victim's cycles an operation: alone %.0f, beside it %.0f, then %.0f: %.0f %% of what was lost is back", alone, hurt, after, back*100)
	if !slices.Contains(l.said, "isolate /loud") || hurt < 1.25*alone || back < 0.5 {
		t.Errorf("said %v; cycles %v, %v, %v; %v", l.said, alone, hurt, after, l.last)
	}
	if slices.Contains(l.said, "escalate /victim") || slices.Contains(l.rules, "mao.isolate.over") {
		t.Errorf("it helped, and yet: %v, %v", l.said, l.rules)
	}
	w := l.world.Window()
	loud, _ := w.Workload("/loud")
	if loud.Class == nil || loud.Class.None() || !wl.Waiting.Known() || !loud.LLC.Known() {
		t.Errorf("the windows tell %+v of it", loud)
	}
}

// The victim gets worse on its own. Isolating its neighbour does not help and is undone,
// and the host reports that it cannot help.
func TestIsolationDoesNotHelp(t *testing.T) {
	m, _ := memsys.DualSkylake()
	s := sensitive()
	s.Phases = []PhaseSpec{{Lasts: 800 * time.Second}, {Lasts: 100 * time.Hour, Accesses: 3}}
	l := newIsolated(t, s, beside(m, 4*unit.MiB, 20, 4))
	before, b := l.tick(70, "/victim")
	after, a := l.tick(60, "/victim")
	t.Logf("victim's cycles an operation: %.0f, then %.0f; %v/%v %v/%v", before, after, b.StallCycles, b.Cycles, a.StallCycles, a.Cycles)
	if !slices.Contains(l.said, "isolate /loud") || !slices.Contains(l.rules, "mao.isolate.over") || !slices.Contains(l.said, "escalate /victim") {
		t.Errorf("said %v by %v; %v", l.said, l.rules, l.last)
	}
	found, _ := l.world.find("/loud")
	loud := poolsOf(l.world).of(found)
	if !loud.class.None() {
		t.Errorf("it still has %+v", loud.class)
	}
}

// A host without resctrl refuses, and reports nothing that it cannot know.
func TestNoResctrl(t *testing.T) {
	m, sys := memsys.DualSkylake()
	w := world(t, Config{Machine: m, System: sys, Specs: []Spec{sensitive()}})
	w.Apply([]action.Step{{Kind: action.SetClass, Workload: "/victim", Class: &action.Class{Cache: 0.5}}})
	w.Run(time.Second)
	win := w.Window()
	if wl := &win.Workloads[0]; len(win.Outcomes) != 1 || win.Outcomes[0].Status != action.Refused || wl.LLC.Known() || wl.Traffic.Known() || wl.Waiting.Known() || wl.Class != nil {
		t.Errorf("%+v; %+v", win.Outcomes, wl)
	}
}
