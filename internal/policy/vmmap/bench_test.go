// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// torus is Lakew's machine: six servers of six nodes of eight cores, 32 GiB each.
func torus() *windowtest.Host {
	const servers, nodes = 6, 6
	h := &windowtest.Host{}
	ids := make([]int, servers*nodes)
	for i := range ids {
		ids[i] = i
	}
	h.Shape(ids, 8, 32*unit.GiB)
	for i := range ids {
		for j := range ids {
			d := 10
			switch a, b := i/nodes, j/nodes; {
			case a != b && (a/3 == b/3 || a%3 == b%3):
				d = 160
			case a != b:
				d = 200
			case i != j:
				d = 16 + 6*((i+j)%2)
			}
			h.Machine.Distances[i][j] = unit.Some(d)
		}
	}
	giveCaches(&h.Machine, 6*unit.MiB)
	return h
}

// lakews are the paper's 20 VMs and their classes.
func lakews(h *windowtest.Host) {
	classes := []string{"sheep", "rabbit", "devil"}
	for i := range 20 {
		cpus, gib := 4, unit.Bytes(15)
		switch {
		case i < 2:
			cpus, gib = 72, 270
		case i < 4:
			cpus, gib = 16, 60
		case i < 8:
			cpus, gib = 8, 30
		}
		l := h.Load(fmt.Sprintf("/vm%02d", i))
		l.Tasks, l.CPU = unit.Measured(cpus, "test"), unit.Measured(float64(cpus), "test")
		for k := range l.AnonByNode {
			l.AnonByNode[k] = unit.Measured(gib*unit.GiB/unit.Bytes(len(l.AnonByNode)), "test")
		}
		_ = is(h, l.ID, classes[i%3])
	}
}

// counted runs a Step and checks that its searches end: each tries little more than all of
// them may together, and each that begins later still tries something. Their times are left
// to the benchmarks.
func counted(t *testing.T, h *windowtest.Host, st State, w window.Window) (next State, actions []action.Action, reasons []action.Reason, tried int) {
	t.Helper()
	r := newRound(h.Machine, DefaultConfig(), st, w)
	start := time.Now()
	next, actions, reasons = r.step()
	if took := time.Since(start); took > 30*time.Second { // without Searches and StepSearches: minutes
		t.Errorf("%d VMs take %v", len(w.Workloads), took)
	}
	if tried = r.board.work; tried > 2*r.cfg.StepSearches {
		t.Errorf("%d VMs: %d slots tried, want little more than %d", len(w.Workloads), tried, r.cfg.StepSearches)
	}
	return next, actions, reasons, tried
}

// An arrival on 36 nodes of 8 cores with 20 VMs does not search for long, even if there is
// no suitable slot.
func TestArrivalIsFast(t *testing.T) {
	h := torus()
	lakews(h)
	st := State{}
	for range 10 {
		w := h.Window()
		var actions []action.Action
		st, actions, _ = Step(h.Machine, DefaultConfig(), st, w)
		for _, a := range actions {
			obey(h, a.Workload, a.Nodes, a.CPUs)
		}
	}
	for i, vm := range st.VMs {
		if !vm.placed() {
			t.Fatalf("%s has no place", h.Window().Workloads[i].ID)
		}
	}
	for k, cpus := range []int{1, 4, 8, 12, 16, 20, 24, 28, 32} {
		l := h.Load(fmt.Sprintf("/zz%d", k))
		l.Tasks, l.CPU = unit.Measured(cpus, "test"), unit.Measured(float64(cpus), "test")
		l.AnonByNode[0] = unit.Measured(unit.Bytes(cpus)*2*unit.GiB, "test")
		_, _, reasons, tried := counted(t, h, st, h.Window())
		reason := reasons[len(reasons)-1]
		t.Logf("%d CPUs: %d tried: %s %s", cpus, tried, reason.Rule, words.Sentence(reason))
		h.Remove(l.ID)
	}
}

func BenchmarkStep(b *testing.B) {
	h := torus()
	lakews(h)
	st := State{}
	var w window.Window
	for range 10 {
		w = h.Window()
		var actions []action.Action
		st, actions, _ = Step(h.Machine, DefaultConfig(), st, w)
		for _, a := range actions {
			obey(h, a.Workload, a.Nodes, a.CPUs)
		}
	}
	for b.Loop() {
		Step(h.Machine, DefaultConfig(), st, w)
	}
}

func BenchmarkReshuffle(b *testing.B) {
	cfg := DefaultConfig()
	h := torus()
	m := h.Machine
	board := newBoard(m, &cfg, func(n int) set.CPUSet { return m.CPUsOf(set.FromNodes(n)) }, func(int) float64 { return 32 << 30 })
	r := rand.New(rand.NewPCG(1, 1))
	var residents []resident
	for i := range 20 {
		v := want{id: i, class: []Class{Sheep, Rabbit, Devil}[r.IntN(3)], sensitive: true, cpus: 4 + 4*r.IntN(3), bytes: 8 << 30}
		if s := board.best(v, false, 2); !s.none() {
			board.put(v, s)
			residents = append(residents, resident{v, s, true})
		}
	}
	v := want{id: 99, class: Rabbit, sensitive: true, cpus: 130, bytes: 200 << 30}
	for b.Loop() {
		board.find(v, residents, 3)
	}
}

// wide is four nodes of 32 CPUs, with one cache each.
func wide() *windowtest.Host {
	h := &windowtest.Host{}
	h.Shape([]int{0, 1, 2, 3}, 32, 64*unit.GiB)
	giveCaches(&h.Machine, 32*unit.MiB)
	return h
}

// crowd adds VMs until few CPUs are free. Each has one CPU, or up to four; all are rabbits,
// or of all classes.
func crowd(h *windowtest.Host, r *rand.Rand, cpus, most int, classes []string) {
	for i := 0; cpus > most; i++ {
		l := h.Load(fmt.Sprintf("/vm%03d", i))
		n := 1 + r.IntN(most)
		l.Tasks, l.CPU = unit.Measured(n, "test"), unit.Measured(float64(n), "test")
		l.AnonByNode[r.IntN(len(l.AnonByNode))] = unit.Measured(unit.Bytes(1+r.IntN(2000))*unit.MiB, "test")
		_ = is(h, l.ID, classes[r.IntN(len(classes))])
		cpus -= n
	}
}

// A Step ends in time where no small number of moves helps, however many VMs there are: 127
// small VMs run worse than expected, and some more arrive.
func TestStepEndsInTime(t *testing.T) {
	for _, most := range []int{1, 4} {
		for _, classes := range [][]string{{"rabbit"}, {"sheep", "rabbit", "devil", "devil"}} {
			for k, h := range []*windowtest.Host{wide(), torus()} {
				r := rand.New(rand.NewPCG(uint64(most), uint64(k)))
				crowd(h, r, h.Machine.OnlineCPUs().Len(), most, classes)
				tried := slowestStep(t, h, r)
				t.Logf("%d VMs of up to %d CPUs, %v, on %d nodes: %d tried", len(h.Window().Workloads), most, classes, len(h.Machine.Nodes), tried)
			}
		}
	}
}

// slowestStep lets them run, then slows all to a third of their speed, and adds others.
func slowestStep(t *testing.T, h *windowtest.Host, r *rand.Rand) (slowest int) {
	st := State{}
	for tick := range 30 {
		if tick == 12 {
			for _, l := range h.Window().Workloads {
				x := h.Load(l.ID)
				for _, n := range []*unit.Value[uint64]{&x.Instructions, &x.UncoreRequests, &x.LocalLoads} {
					*n = unit.Measured(n.Or(0)/3, "test")
				}
			}
		}
		if tick%10 == 5 {
			l := h.Load(fmt.Sprintf("/zz%d", tick))
			l.Tasks = unit.Measured(1+r.IntN(2), "test")
			l.AnonByNode[0] = unit.Measured(unit.GiB, "test")
		}
		next, actions, _, tried := counted(t, h, st, h.Window())
		st, slowest = next, max(slowest, tried)
		for _, a := range actions {
			obey(h, a.Workload, a.Nodes, a.CPUs)
		}
	}
	return slowest
}
