// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/policy/mao"
	"homenode/internal/policy/numad"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// toy is a world without time: the script says what happens, and steps are done at once.
type toy struct{ *windowtest.Host }

func (toy) Run(time.Duration) {}

func newToy() toy {
	h := &windowtest.Host{Length: 10 * time.Second}
	h.Shape([]int{0, 1}, 4, 16*unit.GiB)
	l := h.Load("/a")
	l.CPU, l.Approved = unit.Measured(2.0, "test"), true
	l.AnonByNode[0] = unit.Measured(1*unit.GiB, "test")
	l.AnonByNode[1] = unit.Measured(2*unit.GiB, "test")
	l.LocalLoads, l.RemoteLoads = unit.Measured(uint64(1e9), "test"), unit.Measured(uint64(1e9), "test")
	l.Binding.CPUs, l.Binding.Mems = h.Machine.OnlineCPUs(), h.Machine.NodeIDs()
	h.Spread(l)
	return toy{h}
}

func newLoop(t *testing.T, name string, w toy) *Loop {
	t.Helper()
	p, err := New(name, Options{MAO: mao.DefaultConfig(), Numad: numad.DefaultConfig()})
	if err != nil {
		t.Fatal(err)
	}
	return &Loop{World: w, Machine: w.Machine, Policy: p, Actuate: Actuate(name, actuate.DefaultConfig()), Period: 10 * time.Second}
}

func TestLoopBindsAndMemoryComesHome(t *testing.T) {
	for _, name := range []string{MAOB, MAOA, MAO, Numad} {
		w := newToy()
		l := newLoop(t, name, w)
		for range 30 {
			l.Round()
		}
		a := w.Load("/a").Workload
		local := window.FeaturesOf(a, w.Length).LocalAccessRatio.Or(0)
		if !l.Bound("/a") || l.Counts.Binds != 1 || local < 0.99 || l.Counts.Moved < float64(unit.GiB) {
			t.Errorf("%s: bound %v, %+v, %v of accesses are local", name, l.Bound("/a"), l.Counts, local)
		}
	}
}

func TestLoopLeavesAlone(t *testing.T) {
	for _, name := range []string{None, NUMABalancing, Interleave} {
		w := newToy()
		l := newLoop(t, name, w)
		for range 30 {
			l.Round()
		}
		if l.Bound("/a") || l.Counts != (Counts{}) || l.Policy.Name() != name {
			t.Errorf("%s: %+v", name, l.Counts)
		}
	}
}

// A refusal is reported to the policy in the next window, and counted.
func TestLoopCountsRefusals(t *testing.T) {
	w := newToy()
	w.Fault(action.Outcome{Step: action.Step{Workload: "/a", Kind: action.SetCPUs}, Status: action.Refused, Detail: "EBUSY"})
	l := newLoop(t, MAO, w)
	for range 4 {
		l.Round()
	}
	if l.Counts.Refused != 1 || l.Counts.Binds != 0 || l.Counts.Unbinds != 1 {
		t.Errorf("%+v", l.Counts)
	}
}

func TestNew(t *testing.T) {
	_, err := New("maybe", Options{})
	if err == nil || !strings.Contains(err.Error(), "numa-balancing") || Known("maybe") || !Known(MAO) {
		t.Errorf("error %v", err)
	}
	if _, err := New(MAO, Options{}); err == nil {
		t.Error("a MAO without a configuration was made")
	}
	for _, k := range Policies() {
		if !Known(k.Name) || k.About == "" {
			t.Errorf("%+v", k)
		}
	}
}
