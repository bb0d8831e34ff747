// SPDX-License-Identifier: Apache-2.0

package numad

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/render/words"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata")

// script plays windows to numad alone.
type script struct {
	cfg Config
	st  State
}

func (s *script) Line(h *windowtest.Host, line []string) (string, error) {
	if line[0] != "tick" {
		return "", fmt.Errorf("unknown line")
	}
	n := 1
	if len(line) > 1 {
		n, _ = strconv.Atoi(line[1])
	}
	var out strings.Builder
	for range n {
		w := h.Window()
		var actions []action.Action
		var reasons []action.Reason
		s.st, actions, reasons = Step(h.Machine, s.cfg, s.st, w)
		for _, a := range actions {
			fmt.Fprintf(&out, "%d: %v\n", w.Seq, a)
		}
		if w.Seq == h.Seq && n == 1 {
			for _, r := range reasons {
				fmt.Fprintf(&out, "  %s %s: %s\n", r.Workload, r.Rule, words.Sentence(r))
			}
		}
	}
	return out.String(), nil
}

func TestScenarios(t *testing.T) {
	windowtest.Run(t, "testdata/*.txt", *update, func() windowtest.Script { return &script{cfg: DefaultConfig()} })
}

// These hold in any window: one reason for each workload; no action on a workload that is
// small, pinned, or already in place; never a node that does not exist.
func TestAnyWindow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	binds := 0
	for range 200 {
		h := randomHost(r)
		st := State{}
		for range 40 {
			w := h.Window()
			var actions []action.Action
			var reasons []action.Reason
			st, actions, reasons = Step(h.Machine, DefaultConfig(), st, w)
			check(t, w, actions, reasons)
			binds += len(actions)
		}
	}
	if binds == 0 {
		t.Error("nothing was ever bound: nothing was tested")
	}
}

func randomHost(r *rand.Rand) *windowtest.Host {
	h := &windowtest.Host{}
	ids := [][]int{{0}, {0, 1}, {0, 2, 5}, {0, 1, 2, 3}}[r.IntN(4)]
	h.Shape(ids, 1+r.IntN(8), unit.Bytes(1+r.IntN(16))*unit.GiB)
	for i := range r.IntN(6) {
		l := h.Load(fmt.Sprintf("/w%d", i))
		l.CPU = unit.Measured(r.Float64()*8, "test")
		l.Binding.PinnedCPUs = r.IntN(5) == 0
		for k := range l.AnonByNode {
			l.AnonByNode[k] = unit.Measured(unit.Bytes(r.IntN(4))*700*unit.MiB, "test")
		}
		h.Spread(l)
	}
	return h
}

func check(t *testing.T, w window.Window, actions []action.Action, reasons []action.Reason) {
	t.Helper()
	if len(reasons) != len(w.Workloads) {
		t.Fatalf("%d reasons for %d workloads", len(reasons), len(w.Workloads))
	}
	for i, r := range reasons {
		if r.Workload != w.Workloads[i].ID || r.Rule == "" {
			t.Errorf("reason %d is %+v", i, r)
		}
	}
	for _, a := range actions {
		wl, ok := w.Workload(a.Workload)
		anon, _ := window.SumBytes(wl.AnonByNode)
		if !ok || wl.Binding.PinnedCPUs || wl.CPU.Or(0) <= 0.5 || anon <= 300*unit.MiB {
			t.Errorf("%v, of %+v", a, wl)
		}
		for id := range a.Nodes.All() {
			if _, ok := w.NodeIndex(id); !ok {
				t.Errorf("%v: there is no node %d", a, id)
			}
		}
	}
}

// Renumbering the nodes renumbers the answer, where no two nodes are alike.
func TestRenumbered(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	compared := 0
	for range 300 {
		a, b := &windowtest.Host{}, &windowtest.Host{}
		a.Shape([]int{0, 1, 2}, 4, 8*unit.GiB)
		b.Shape([]int{0, 1, 2}, 4, 8*unit.GiB)
		cpu := unit.Measured(0.6+r.Float64()*6, "test")
		for _, h := range []*windowtest.Host{a, b} {
			h.Load("/w").CPU = cpu
			h.Load("/others").CPU = unit.Measured(1.0, "test") // what makes nodes differ
			h.Load("/others").Binding.PinnedCPUs = true
			h.Load("/others").CPUByNode = make([]unit.Value[float64], 3)
		}
		for k := range 3 {
			v := unit.Measured(unit.Bytes(1+r.IntN(2<<30)), "test")
			a.Load("/w").AnonByNode[k], b.Load("/w").AnonByNode[2-k] = v, v
			v = unit.Measured(unit.Bytes(1+r.IntN(2<<30))+unit.GiB, "test")
			a.Load("/others").AnonByNode[k], b.Load("/others").AnonByNode[2-k] = v, v
			busy := unit.Measured(r.Float64(), "test")
			a.Load("/others").CPUByNode[k], b.Load("/others").CPUByNode[2-k] = busy, busy
		}
		_, one, _ := Step(a.Machine, DefaultConfig(), State{}, a.Window())
		_, two, _ := Step(b.Machine, DefaultConfig(), State{}, b.Window())
		if len(one) != len(two) {
			t.Fatalf("%v and %v", one, two)
		}
		for i := range one {
			compared++
			for id := range one[i].Nodes.All() {
				if !two[i].Nodes.Has(2 - id) {
					t.Fatalf("%v and, renumbered, %v", one[i], two[i])
				}
			}
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.MinMemory = -1 }, func(c *Config) { c.Utilisation = 0 }, func(c *Config) { c.Locality = 1.1 },
		func(c *Config) { c.MinInterval = 0 }, func(c *Config) { c.MaxInterval = 1 },
	} {
		c := DefaultConfig()
		if change(&c); c.Validate() == nil {
			t.Errorf("%+v is said to be possible", c)
		}
	}
}
