// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// day is the windows of a host of 2 nodes with two approved workloads, whose memory is
// on node 1 while their threads run everywhere. load says how busy node 1 is in window
// i.
func day(t *testing.T, n int, busy func(i int) float64) (machine.Machine, []window.Window) {
	t.Helper()
	var h windowtest.Host
	h.Shape([]int{0, 1}, 4, 16*unit.GiB)
	for _, id := range []string{"/a", "/b"} {
		if _, err := h.Line("workload " + id + " approved cpu=1 quota=0.9 cpus=0-7 mems=0-1 anon=0,1GiB"); err != nil {
			t.Fatal(err)
		}
	}
	var all []window.Window
	for i := range n {
		if _, err := h.Line(fmt.Sprintf("node 1 busy=%v", busy(i))); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"/a", "/b"} {
			l := h.Load(id)
			l.LocalLoads, l.RemoteLoads = unit.Measured(uint64(5e6), "test"), unit.Measured(uint64(5e6), "test")
			for k := range l.CPUByNode {
				l.CPUByNode[k] = unit.Measured(0.5, "test")
			}
		}
		all = append(all, h.Window())
	}
	return h.Machine, all
}

func configs() (a, b Arm) {
	a, b = Arm{Name: "A", MAO: mao.DefaultConfig()}, Arm{Name: "B", MAO: mao.DefaultConfig()}
	a.MAO.Strategy = mao.StrategyA
	return a, b
}

func play(m machine.Machine, windows []window.Window, then, now Arm) Result {
	r := New(m, then, now)
	for _, w := range windows {
		r.Window(w)
	}
	return r.Result()
}

// A node is busy all day: strategy A unbinds again and again; B, which compares a node
// with its own past, does not.
func TestDecisionReplayAAgainstB(t *testing.T) {
	m, windows := day(t, 400, func(i int) float64 {
		if i < 5 {
			return 1
		}
		return 3.5
	})
	a, b := configs()
	r := play(m, windows, a, b)
	if r.Then.Unbinds == 0 || r.Now.Unbinds >= r.Then.Unbinds || r.Now.Bound <= r.Then.Bound || len(r.Differences) == 0 {
		t.Fatalf("then %+v\nnow %+v", r.Then, r.Now)
	}
	if r.Windows != 400 || r.Length != 400e9 || r.Then.Run != 800e9 || len(r.Workloads) != 2 || len(r.Notes) != 3 {
		t.Errorf("%+v", r)
	}
	then, ok := r.Then.UnboundShare.Get()
	now, ok2 := r.Now.UnboundShare.Get()
	if !ok || !ok2 || now >= then || now < 0 {
		t.Errorf("unbound: then %v, now %v", then, now)
	}
	sum := Tally{}
	for _, w := range r.Workloads {
		sum.Binds += w.Then.Binds
		sum.Bound += w.Then.Bound
	}
	if sum.Binds != r.Then.Binds || sum.Bound != r.Then.Bound {
		t.Errorf("workloads add up to %+v, the side has %+v", sum, r.Then.Tally)
	}
	if text, err := json.Marshal(r); err != nil || !strings.Contains(string(text), `"unbound_share"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// The same configuration makes the same decisions.
func TestDecisionReplaySame(t *testing.T) {
	m, windows := day(t, 100, func(i int) float64 { return float64(i%4) + 0.5 })
	_, b := configs()
	r := play(m, windows, b, b)
	if len(r.Differences) != 0 || r.Then.Tally != r.Now.Tally || r.Then.Binds == 0 {
		t.Errorf("%+v", r)
	}
	if again := play(m, windows, b, b); fmt.Sprint(again) != fmt.Sprint(r) {
		t.Error("the second result differs")
	}
}

// Recorded bindings are compared, but do not bind the arms.
func TestDecisionReplayOfBound(t *testing.T) {
	m, windows := day(t, 50, func(int) float64 { return 1 })
	_, b := configs()
	other := b
	other.MAO.Target = 0.1 // no workload is below it
	before := windows[20].Workloads[0]
	for i := range windows {
		windows[i].Workloads = append([]window.Workload{}, windows[i].Workloads...)
		if wl := &windows[i].Workloads[0]; i > 0 {
			wl.Binding.OursCPUs, wl.Binding.OursMems, wl.Binding.CPUs = true, true, m.Nodes[1].CPUs
		}
		windows[i].Outcomes = []action.Outcome{{Status: action.Refused, Step: action.Step{Kind: action.SetCPUs, Workload: "/a"}}}
	}
	r := play(m, windows, b, other)
	if r.Now.Binds+r.Now.Unbinds != 0 || r.Then.Binds == 0 || r.Then.Unbinds != 0 || r.Undone != 50 || len(r.Notes) != 4 {
		t.Errorf("%+v", r)
	}
	if alike, ok := r.AsRecorded.Get(); !ok || alike <= 0.4 || alike > 1 {
		t.Errorf("as recorded: %v", r.AsRecorded)
	}
	if before.Binding.OursCPUs {
		t.Error("the caller's windows were changed")
	}
}

// Services may get new names: if none is approved, nothing is done.
func TestDecisionReplayServices(t *testing.T) {
	m, windows := day(t, 20, func(int) float64 { return 1 })
	a, b := configs()
	b.Services = func(w *window.Window) {
		for i := range w.Workloads {
			w.Workloads[i].Approved = false
		}
	}
	r := play(m, windows, a, b)
	if r.Then.Binds == 0 || r.Now.Binds != 0 || r.Now.UnboundShare.Known() || !windows[3].Workloads[0].Approved {
		t.Errorf("%+v", r)
	}
}
