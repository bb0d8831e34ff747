// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine/machinetest"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// Thousands of seeded windows with arrivals, unknown counters, pinned workloads,
// refusals, drift and hotplug: the invariants hold after each.
func TestInvariants(t *testing.T) {
	rules := map[string]int{}
	seeds, least := machinetest.Seeds(100, 200), machinetest.Seeds(2, 10)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, cfg, st := randomHost(r), randomConfig(r), State{}
		for range 40 {
			disturb(r, h)
			w := h.Window()
			before := jsonOf(t, st, w)
			next, actions, reasons := Step(h.Machine, cfg, st, w)
			again, actions2, reasons2 := Step(h.Machine, cfg, st, w)
			if jsonOf(t, st, w) != before || !reflect.DeepEqual([]any{next, actions, reasons}, []any{again, actions2, reasons2}) {
				t.Fatalf("seed %d window %d: not pure", seed, w.Seq)
			}
			if why := broken(h, w, next, actions, reasons); why != "" {
				t.Fatalf("seed %d window %d: %s\n%v\n%s", seed, w.Seq, why, actions, jsonOf(t, next))
			}
			for _, x := range reasons {
				rules[x.Rule]++
			}
			play(r, h, actions)
			st = State{}
			if err := json.Unmarshal([]byte(jsonOf(t, next)), &st); err != nil || !reflect.DeepEqual(st, next) {
				t.Fatalf("seed %d: the state changed on its way through JSON: %v\n%s\n%s", seed, err, jsonOf(t, next), jsonOf(t, st))
			}
		}
	}
	t.Log(rules)
	for _, rule := range []string{"animal.arrive", "animal.reshuffle", "animal.interference", "animal.keep", "animal.wait", "animal.refused", "animal.drifted", "animal.skip.pinned", "animal.skip.size", "animal.moving", "animal.keep.best", "animal.backoff"} {
		if rules[rule] < least {
			t.Errorf("%s: only %d times, too few to have tested anything", rule, rules[rule])
		}
	}
}

func randomConfig(r *rand.Rand) Config {
	cfg := DefaultConfig()
	cfg.Metric = []Metric{IPC, MPI}[r.IntN(2)]
	cfg.MaxMoves, cfg.Searches, cfg.StepSearches = r.IntN(4), 1+r.IntN(3000), 1+r.IntN(6000)
	cfg.CoolDown = h0 * 2
	cfg.PayRatio = []float64{0, 1, 5}[r.IntN(3)]
	cfg.Unknown = []Class{Sheep, Rabbit, Devil}[r.IntN(3)]
	cfg.GiveUp = 3 + r.IntN(10)
	if r.IntN(4) == 0 {
		cfg.ReservedCPUs = set.FromCPUs(0)
	}
	return cfg
}

const h0 = 1000000000 // cycles of a window of windowtest

func randomHost(r *rand.Rand) *windowtest.Host {
	h := &windowtest.Host{}
	ids := [][]int{{0}, {0, 1}, {0, 2, 5}, {0, 1, 2, 3}}[r.IntN(4)]
	h.Shape(ids, 1+r.IntN(6), unit.Bytes(1+r.IntN(16))*unit.GiB)
	for i := range ids {
		for j := range i {
			d := unit.Some([]int{12, 20, 160}[r.IntN(3)])
			h.Machine.Distances[i][j], h.Machine.Distances[j][i] = d, d
		}
	}
	giveCaches(&h.Machine, 4*unit.MiB)
	return h
}

func disturb(r *rand.Rand, h *windowtest.Host) {
	id := fmt.Sprintf("/w%d", r.IntN(7))
	programs := []string{"sheep", "rabbit", "hurt", "devil"}
	line := func(format string, args ...any) {
		_, _ = h.Line(strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	switch r.IntN(12) {
	case 0, 1, 2:
		n := 1 + r.IntN(6)
		line("workload %s tasks=%d cpu=%d anon=%dMiB service=s%d", id, n, n, r.IntN(4000), r.IntN(2))
		_ = is(h, id, programs[r.IntN(4)])
	case 3, 4, 5:
		if l := h.Load(id); l.Tasks.Known() {
			_ = is(h, id, programs[r.IntN(4)])
		}
	case 6:
		line("workload %s %s=?", id, []string{"llc", "requests", "waits", "cycles", "instructions", "local", "anon", "tasks"}[r.IntN(8)])
	case 7:
		line("gone %s", id)
	case 8:
		line("outcome %s set-cpus %s because", id, []string{"refused", "drifted", "failed", "done", "dry-run", "gone"}[r.IntN(6)])
	case 9:
		n := h.Machine.Nodes[r.IntN(len(h.Machine.Nodes))].ID
		line("%s node=%d", []string{"offline", "online", "online"}[r.IntN(3)], n)
	case 10:
		if l := h.Load(id); r.IntN(3) == 0 && !l.Binding.OursCPUs {
			line(`workload %s cpus=%d pinned-cpus="taskset"`, id, r.IntN(4))
		}
	case 11:
		line("workload %s quota=%d", id, 1+r.IntN(3))
	}
}

// play does what is requested; sometimes giving back takes a while.
func play(r *rand.Rand, h *windowtest.Host, actions []action.Action) {
	for _, a := range actions {
		if a.Kind == action.Bind || r.IntN(3) > 0 {
			obey(h, a.Workload, a.Nodes, a.CPUs)
		}
	}
}

// broken names the first invariant that does not hold.
func broken(h *windowtest.Host, w window.Window, st State, actions []action.Action, reasons []action.Reason) string {
	if len(reasons) != len(w.Workloads) || len(st.VMs) != len(w.Workloads) {
		return "not one reason and one memory for each"
	}
	var given, pinned set.CPUSet
	for i, wl := range w.Workloads {
		if wl.Binding.PinnedCPUs {
			pinned = pinned.Union(wl.Binding.CPUs)
		}
		if reasons[i].Workload != wl.ID || !words.Has(reasons[i].Rule) || strings.ContainsAny(words.Sentence(reasons[i]), "{}[]") || st.VMs[i].Workload != wl.ID {
			return fmt.Sprintf("the reason of %s is %+v", wl.ID, reasons[i])
		}
	}
	for i, vm := range st.VMs {
		shares := 0.0
		for _, s := range vm.Share {
			shares += s.Of
		}
		switch {
		case vm.CPUs.IsEmpty() && vm.Nodes.IsEmpty():
			continue
		case vm.CPUs.Overlaps(given) || vm.CPUs.Overlaps(pinned):
			return fmt.Sprintf("%s has CPUs %v of others", vm.Workload, vm.CPUs)
		case !vm.CPUs.SubsetOf(h.Machine.CPUsOf(vm.Nodes)):
			return fmt.Sprintf("%s has CPUs %v, that are not of nodes %v", vm.Workload, vm.CPUs, vm.Nodes)
		case shares < 0.999 || shares > 1.001:
			return fmt.Sprintf("%s's memory is %v", vm.Workload, vm.Share)
		case w.Workloads[i].Binding.PinnedCPUs || w.Workloads[i].Binding.PinnedMems:
			return vm.Workload + " is pinned, and has a place"
		}
		given = given.Union(vm.CPUs)
	}
	return brokenAction(w, st, actions)
}

func brokenAction(w window.Window, st State, actions []action.Action) string {
	for k, a := range actions {
		i, ok := w.WorkloadIndex(a.Workload)
		if !ok || k > 0 && actions[k-1].Workload >= a.Workload || a.Reason.Rule == "" {
			return fmt.Sprintf("%v: unknown, twice, or without a reason", a)
		}
		b := w.Workloads[i].Binding
		switch {
		case b.PinnedCPUs || b.PinnedMems:
			return fmt.Sprintf("%v: it is pinned", a)
		case a.Kind == action.Unbind && !b.OursCPUs && !b.OursMems:
			return fmt.Sprintf("%v: it is not bound", a)
		case a.Kind == action.Bind && (a.CPUs.IsEmpty() || a.CPUs != st.VMs[i].CPUs || a.Nodes != st.VMs[i].Nodes):
			return fmt.Sprintf("%v: its place is %v, CPUs %v", a, st.VMs[i].Nodes, st.VMs[i].CPUs)
		case a.Kind == action.Bind && b.OursMems && b.Mems != a.Nodes:
			return fmt.Sprintf("%v: it is bound to nodes %v", a, b.Mems)
		}
	}
	return ""
}

// The memory promised to VMs that do not grow never exceeds a node's.
func TestMemoryFits(t *testing.T) {
	placed := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		h, st := randomHost(r), State{}
		for i := range 12 {
			if l := h.Load(fmt.Sprintf("/w%d", i)); !l.Tasks.Known() {
				l.Tasks = unit.Measured(1+r.IntN(4), "test")
				l.AnonByNode[0] = unit.Measured(unit.Bytes(1+r.IntN(5000))*unit.MiB, "test")
			}
			w := h.Window()
			next, actions, _ := Step(h.Machine, DefaultConfig(), st, w)
			play(r, h, actions)
			st = next
			promised := map[int]float64{}
			for k, vm := range st.VMs {
				all, _ := window.SumBytes(w.Workloads[k].AnonByNode)
				for _, s := range vm.Share {
					promised[s.Node] += s.Of * float64(all)
					placed++
				}
			}
			for _, n := range w.Nodes {
				if promised[n.ID] > float64(n.Memory.Or(0))+1 {
					t.Fatalf("seed %d: node %d has %v, and %v were promised", seed, n.ID, n.Memory, unit.Bytes(promised[n.ID]))
				}
			}
		}
	}
	if placed < 5000 {
		t.Errorf("only %d places: nothing was tested", placed)
	}
}

// Renumbering the nodes renumbers the answer: the result is equally good with any numbers,
// and identical where only one is the best.
func TestRenumbered(t *testing.T) {
	cfg := DefaultConfig()
	same, all := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		m := smallMachine(r)
		to := r.Perm(len(m.Nodes))
		two := renumbered(m, to)
		v := randomWant(r, 1)
		level := []bool{true, false}[r.IntN(2)]
		var found [2]slot
		var nodes [2]set.NodeSet
		var likes [2]float64
		taken := r.IntN(4)
		for k, x := range []struct {
			m  any
			id func(int) int
		}{{m, func(i int) int { return i }}, {two, func(i int) int { return to[i] }}} {
			mm := m
			if k == 1 {
				mm = two
			}
			b := newBoard(mm, &cfg, func(n int) set.CPUSet { return mm.CPUsOf(set.FromNodes(n)) },
				func(n int) float64 { y, _ := mm.Node(n); return float64(y.Memory.Or(0)) })
			if taken < len(m.Nodes) { // a VM is on one of them
				place := b.nodes[x.id(taken)].units[0]
				b.put(want{class: Devil}, slot{take: []grant{{place, 1}}})
			}
			_, suits := b.nearest(v)
			found[k] = b.best(v, level, suits)
			for _, s := range found[k].share {
				nodes[k] = nodes[k].With(b.nodes[s.Node].id)
			}
			likes[k] = b.preference(v, found[k])
		}
		if found[0].none() != found[1].none() || compareSlots(found[0], found[1]) != 0 || likes[0] != likes[1] {
			t.Fatalf("seed %d: %+v and, renumbered, %+v", seed, found[0], found[1])
		}
		var moved set.NodeSet
		for id := range nodes[0].All() {
			moved = moved.With(to[id])
		}
		if all++; moved == nodes[1] {
			same++
		}
	}
	if same < all*3/4 {
		t.Errorf("only %d of %d are the same", same, all)
	}
}

func jsonOf(t *testing.T, v ...any) string {
	t.Helper()
	var x any = v
	if len(v) == 1 {
		x = v[0]
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Learn learns the same as Step.
func TestLearnIsOfStep(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 3))
		h, cfg := randomHost(r), randomConfig(r)
		var st, learnt State
		for range 40 {
			disturb(r, h)
			w := h.Window()
			var actions []action.Action
			st, actions, _ = Step(h.Machine, cfg, st, w)
			before := jsonOf(t, learnt, w)
			next := Learn(h.Machine, cfg, learnt, w)
			if jsonOf(t, learnt, w) != before {
				t.Fatalf("seed %d window %d: not pure", seed, w.Seq)
			}
			if learnt = next; len(learnt.VMs) != len(w.Workloads) {
				t.Fatalf("seed %d window %d: %d learnt of %d", seed, w.Seq, len(learnt.VMs), len(w.Workloads))
			}
			for i := range st.VMs {
				a, b := &st.VMs[i], &learnt.VMs[i]
				if jsonOf(t, a.Look) != jsonOf(t, b.Look) || !b.CPUs.IsEmpty() {
					t.Fatalf("seed %d window %d: Step: %s\nLearn: %s", seed, w.Seq, jsonOf(t, a), jsonOf(t, b))
				}
				if sure := surelySaid(&a.Look, cfg.Infer); a.Look.Doubt(cfg.Infer) == "" != sure {
					t.Fatalf("seed %d window %d: in doubt or not: %s", seed, w.Seq, jsonOf(t, a.Look))
				}
			}
			play(r, h, actions)
		}
	}
}

// surelySaid: class and sensitivity are known, agree with its present figures, and it does
// not alternate with a phase of another class.
func surelySaid(l *Look, f Infer) bool {
	now := f.verdict(l.Mean, l.Windows)
	for _, p := range l.Past {
		if was := f.verdict(p.Mean, p.Windows); l.Back+p.Back > 0 && was.Class != Unknown && was.Class != l.Says.Class {
			return false
		}
	}
	return l.Row == 0 && l.Mean.Waits.Known() && l.Mean.Loads.Known() && l.Says.Class != Unknown && l.Says.Sensitive.Known() && l.Windows >= f.Windows && now.Class == l.Says.Class && now.Sensitive == l.Says.Sensitive
}
