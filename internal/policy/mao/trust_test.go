// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// local is a host whose workload /p has known reads: counted, or only from its pages.
type local struct {
	t   *testing.T
	h   windowtest.Host
	cfg Config
	st  State
}

func newLocal(t *testing.T) *local {
	p := &local{t: t, cfg: DefaultConfig()}
	p.h.Shape([]int{0, 1}, 8, 16*unit.GiB)
	lines(t, &p.h, "workload /p approved cpu=2 cpus=0-15 mems=0-1 on=1,1 anon=1GiB,1GiB")
	return p
}

func lines(t *testing.T, h *windowtest.Host, all ...string) {
	t.Helper()
	for _, line := range all {
		if _, err := h.Line(line); err != nil {
			t.Fatal(err)
		}
	}
}

// ticks plays n windows in which this percentage of reads is local; negative: not counted.
// It returns the number of windows until it was bound, and the last rule.
func (p *local) ticks(n, percent int) (bound int, rule string) {
	p.t.Helper()
	l := p.h.Load("/p")
	l.LocalLoads, l.RemoteLoads = unit.UnknownValue[uint64]("its turn comes"), unit.UnknownValue[uint64]("its turn comes")
	if percent >= 0 {
		l.LocalLoads, l.RemoteLoads = unit.Measured(uint64(percent*10000), "perf"), unit.Measured(uint64((100-percent)*10000), "perf")
	}
	for i := range n {
		st, actions, reasons := Step(p.h.Machine, p.cfg, p.st, p.h.Window())
		p.st, rule = roundTrip(p.t, st), reasons[0].Rule
		if !words.Has(reasons[0].Rule) {
			p.t.Fatalf("%s says nothing", rule)
		}
		if bound == 0 && len(actions) > 0 && actions[0].Kind == action.Bind {
			bound = i + 1
		}
	}
	return bound, rule
}

// Counters take turns. In the windows between, the estimate is 0.5 for any workload spread
// over two nodes, and does not override what was counted.
func TestEstimateDoesNotOverrideCounts(t *testing.T) {
	p := newLocal(t)
	p.ticks(3, 99)
	if bound, rule := p.ticks(p.cfg.EstimateAfter, -1); bound > 0 || rule != "mao.keep.counted-lately" {
		t.Fatalf("bound after %d, %s", bound, rule)
	}
	if m := p.st.find("/p"); m.Below != 0 || len(m.Local) != 3 {
		t.Fatalf("an estimate went into the counts: %+v", m)
	}
	if bound, _ := p.ticks(1, 99); bound > 0 {
		t.Fatal("bound by a count on target")
	}
	if bound, _ := p.ticks(p.cfg.EstimateAfter+p.cfg.EstimateBindAfter+5, -1); bound != p.cfg.EstimateAfter+p.cfg.EstimateBindAfter {
		t.Fatalf("no longer counted: bound after %d windows", bound)
	}
}

// It does not reset the count either: two counted windows below target are two in a row,
// with any number of only estimated windows between.
func TestEstimateDoesNotReset(t *testing.T) {
	p := newLocal(t)
	p.cfg.BindAfter = 2
	p.ticks(1, 20)
	lines(t, &p.h, "workload /p on=2,0 anon=2GiB,0")
	p.ticks(5, -1) // by its pages it is at home
	lines(t, &p.h, "workload /p on=1,1 anon=1GiB,1GiB")
	if bound, _ := p.ticks(1, 20); bound != 1 {
		t.Error("the second counted window below target did not bind")
	}
}

// With estimates alone more windows are needed. Where there are counts, a bind follows at
// once, and only counted windows matter.
func TestEstimateNeedsMore(t *testing.T) {
	p := newLocal(t)
	if bound, _ := p.ticks(20, -1); bound != p.cfg.EstimateBindAfter {
		t.Errorf("bound after %d windows of estimates", bound)
	}
	p = newLocal(t)
	p.ticks(p.cfg.EstimateBindAfter-1, -1)
	p.cfg.BindAfter = 2
	if bound, _ := p.ticks(3, 20); bound != 2 {
		t.Errorf("bound after %d counted windows, of 2 it takes", bound)
	}
	p = newLocal(t)
	p.cfg.EstimateMargin = 1 // on two nodes the estimate is a pure guess
	if bound, rule := p.ticks(20, -1); bound > 0 || rule != "mao.keep.on-target" {
		t.Errorf("bound after %d windows, %s", bound, rule)
	}
	p.cfg.EstimateMargin = 0.5
	if bound, _ := p.ticks(20, -1); bound == 0 {
		t.Error("half its error below target is enough now")
	}
}

// A service with a replica that makes room: the replica gets its CPUs back first, and the
// service is bound soon after, each replica with one action per round.
func TestAsideIsNotBoundAtOnce(t *testing.T) {
	var h windowtest.Host
	h.Shape([]int{0, 1}, 8, 16*unit.GiB)
	lines(t, &h, "workload /s/a approved service=s cpu=1 on=1,0 cpus=0-15 mems=0-1 anon=0,1GiB local=10000 remote=1000000",
		"workload /s/b approved service=s cpu=1 on=0,1 cpus=8-15 ours=cpus mems=0-1 anon=0,1GiB local=10000 remote=1000000")
	st, cfg := State{Workloads: []Memory{{Workload: "/s/b", Aside: set.FromNodes(1)}}}, DefaultConfig()
	cfg.MaxBindsPerWindow = 2
	var said []string
	for range 3 {
		var actions []action.Action
		st, actions, _ = Step(h.Machine, cfg, st, h.Window())
		seen := map[string]bool{}
		for _, a := range actions {
			if seen[a.Workload] {
				t.Fatalf("%s: two actions in a round: %v", a.Workload, actions)
			}
			seen[a.Workload] = true
			said = append(said, string(a.Kind)+" "+a.Workload)
		}
		lines(t, &h, "workload /s/b cpus=0-15 ours=")
	}
	if want := []string{"unbind /s/b", "bind /s/a", "bind /s/b"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

// A hog that has used up the node it keeps to gets all CPUs back while others are idle,
// unless it waits for none: two threads use up two CPUs without being short of any.
func TestAsideEndsForLackOfCPU(t *testing.T) {
	for _, c := range []struct {
		waiting unit.Value[unit.Ratio]
		want    int
	}{
		{unit.Measured(unit.Ratio(0.01), "cpu.pressure"), 0},
		{unit.Measured(unit.Ratio(0.6), "cpu.pressure"), 1},
		{unit.UnknownValue[unit.Ratio]("no PSI"), 1},
	} {
		var h windowtest.Host
		h.Shape([]int{0, 1}, 2, 16*unit.GiB)
		lines(t, &h, "workload /s approved cpu=1 on=1,0 cpus=0-1 ours=cpus,mems mems=0 anon=1GiB,0 local=1000000 remote=10000",
			"workload /hog cpu=2 on=0,2 cpus=2-3 ours=cpus mems=0-1 anon=0,1GiB local=10000 remote=1000000")
		h.Load("/hog").Waiting = c.waiting
		st := State{Workloads: []Memory{{Workload: "/hog", Aside: set.FromNodes(1)}, {Workload: "/s", Nodes: set.FromNodes(0)}}}
		_, actions, _ := Step(h.Machine, DefaultConfig(), st, h.Window())
		if len(actions) != c.want {
			t.Errorf("waiting %v: %v, want %d actions", c.waiting, actions, c.want)
		}
	}
}

// growing is a workload whose heap grows by 20 MiB per window on the node that it is bound
// to.
func growing(t *testing.T, cfg Config, mems string, n int) (st State, said []string) {
	t.Helper()
	var h windowtest.Host
	h.Shape([]int{0, 1, 2, 3}, 4, 4*unit.GiB)
	lines(t, &h, "workload /g approved cpu=1 on=0,0,0,1 cpus=0-15 mems="+mems+" anon=3000MiB local=100000 remote=900000")
	for range 60 {
		l := h.Load("/g")
		l.AnonByNode[0] = unit.Measured(l.AnonByNode[0].Or(0)+20*unit.MiB, "test")
		next, actions, _ := Step(h.Machine, cfg, st, h.Window())
		st = roundTrip(t, next)
		for _, a := range actions {
			said = append(said, a.Reason.Rule+" "+a.Nodes.String())
			if a.Kind == action.Bind {
				lines(t, &h, "workload /g cpus=0-3 ours=cpus,mems mems="+a.Nodes.String())
			} else {
				return st, said
			}
		}
		if len(said) == n {
			return st, said
		}
	}
	return st, said
}

// A binding gets only nodes that its cgroup may use, and no more than max_nodes.
func TestWidenStaysWithinWhatItMay(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MoveWeight = 100 // it begins where its memory is
	for mems, want := range map[string]string{"0-3": "mao.widen 0-1", "0,2-3": "mao.widen 0,2", "0,3": "mao.unbind.memory "} {
		if _, said := growing(t, cfg, mems, 2); len(said) != 2 || said[0] != "mao.bind 0" || said[1] != want {
			t.Errorf("mems %s: %q, want %s", mems, said, want)
		}
	}
	cfg.MaxNodes = 1
	if _, said := growing(t, cfg, "0-3", 2); len(said) != 2 || said[1] != "mao.unbind.memory " {
		t.Errorf("max_nodes 1: %q", said)
	}
}

// A wider binding that is refused and left as it was is not a refused binding: the workload
// keeps its nodes, is no orphan, and another node is tried.
func TestWidenRefused(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MoveWeight = 100
	st, said := growing(t, cfg, "0-3", 2)
	if len(said) != 2 || said[1] != "mao.widen 0-1" {
		t.Fatalf("%q", said)
	}
	var h windowtest.Host
	h.Shape([]int{0, 1, 2, 3}, 4, 4*unit.GiB)
	lines(t, &h, "workload /g approved cpu=1 on=1,0,0,0 cpus=0-3 mems=0 ours=cpus,mems anon=3800MiB local=100000 remote=0")
	h.Report(action.Outcome{Step: action.Step{Kind: action.SetCPUs, Workload: "/g", Nodes: set.FromNodes(0, 1)}, Status: action.Refused, Stays: true})
	_, actions, _ := Step(h.Machine, cfg, st, h.Window())
	if len(actions) != 1 || actions[0].Reason.Rule != "mao.widen" || actions[0].Nodes != set.FromNodes(0, 2) {
		t.Errorf("%v", actions)
	}
}

// One page above the peak is no growth, however full the node is.
func TestOnePageIsNoGrowth(t *testing.T) {
	r := round{cfg: DefaultConfig(), largest: 64e9, seconds: 10}
	l := load{Workload: &window.Workload{}, Memory: &Memory{Growth: 4096.0 / 10}, rising: true}
	if want := r.wants(&l); want != 0 {
		t.Errorf("it wants %v", want)
	}
	if l.Growth = 1e6; r.wants(&l) != 6e7 {
		t.Errorf("1 MB/s for 6 windows of 10 s: %v", r.wants(&l))
	}
}

// A heap that grows and shrinks is not bound each time that it is small.
func TestSawIsNotBoundAgainAndAgain(t *testing.T) {
	var h windowtest.Host
	h.Shape([]int{0, 1}, 8, 4*unit.GiB)
	lines(t, &h, "workload /g approved cpu=1 on=0.5,0.5 cpus=0-15 mems=0-1 anon=1840MiB,1840MiB local=500000 remote=500000")
	var st State
	n := map[string]int{}
	for i := range 600 {
		l := h.Load("/g")
		add := 20 * unit.MiB
		if i%10 == 9 {
			add = -180 * unit.MiB
		}
		all := l.AnonByNode[0].Or(0) + l.AnonByNode[1].Or(0) + add
		here := all / 2
		if b := st.Bound("/g"); b.Len() == 1 {
			if here = 0; b.Has(0) {
				here = all
			}
		}
		l.AnonByNode[0], l.AnonByNode[1] = unit.Measured(here, "t"), unit.Measured(all-here, "t")
		next, actions, _ := Step(h.Machine, DefaultConfig(), st, h.Window())
		st = next
		for _, a := range actions {
			n[a.Reason.Rule]++
			if a.Kind == action.Bind {
				lines(t, &h, "workload /g cpus="+h.Machine.CPUsOf(a.Nodes).String()+" ours=cpus,mems mems="+a.Nodes.String())
			} else {
				lines(t, &h, "workload /g cpus=0-15 ours= mems=0-1")
			}
		}
	}
	if n["mao.unbind.memory"] > 2 { // the second one after its need is forgotten
		t.Errorf("%v", n)
	}
	t.Log(n)
}

// Growth is measured over time: a calm agent's windows are ten times as long.
func TestGrowthIsByTime(t *testing.T) {
	var h windowtest.Host
	h.Shape([]int{0, 1}, 8, 64*unit.GiB)
	lines(t, &h, "workload /g cpu=1 anon=1GiB")
	var st State
	for i := range 40 {
		length := 10 * time.Second
		if i%2 == 0 {
			length = 100 * time.Second
		}
		l := h.Load("/g")
		l.AnonByNode[0] = unit.Measured(l.AnonByNode[0].Or(0)+unit.Bytes(length.Seconds()*1e6), "t")
		w := h.Window()
		w.Length = length
		st, _, _ = Step(h.Machine, DefaultConfig(), st, w)
	}
	if g := st.find("/g").Growth; g < 0.999e6 || g > 1.001e6 {
		t.Errorf("1 MB/s is taken for %v", g)
	}
}

// A workload that is not judged has a reason with its last count.
func TestEstimateWords(t *testing.T) {
	p := newLocal(t)
	p.ticks(2, 99)
	p.ticks(1, -1)
	w := p.h.Window()
	_, _, reasons := Step(p.h.Machine, p.cfg, p.st, w)
	if !strings.Contains(words.Sentence(reasons[0]), "was 99.0% by a better source 2 windows ago") {
		t.Error(words.Sentence(reasons[0]))
	}
}
