// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"math"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// What is unknown in a window is unknown to the hub, and what cannot be is, too.
func TestWorkload(t *testing.T) {
	w := window.Window{At: time.Now(), Length: time.Second, Nodes: make([]window.Node, 2)}
	wl := window.Workload{ID: "/a", CPU: unit.Measured(0.0, "x"), CPUByNode: []unit.Value[float64]{unit.Measured(1.0, "x"), unit.UnknownValue[float64]("y")},
		Latency: unit.Measured(math.NaN(), "x"), Cycles: unit.Measured(uint64(0), "x")}
	f := window.FeaturesOf(wl, w.Length)
	f.LocalAccessRatio = unit.Modelled(unit.Ratio(.25), "the lab")
	got := Workload(&w, &wl, f, "", nil)
	if cpu, ok := got.CPU.Get(); !ok || cpu != 0 || got.CPUByNode != nil || got.Latency.Known() || got.MSR.Known() || got.Instructions.Known() || !got.Cycles.Known() {
		t.Errorf("%+v", got)
	}
	if got.Local.Or(0) != .25 || got.LocalHow != unit.HowModelled || got.LocalFrom != "the lab" {
		t.Errorf("the local access ratio lost how it is known: %+v", got)
	}
	if got.CPUHow != unit.HowMeasured || got.CyclesHow != unit.HowMeasured || got.LatencyHow != unit.HowUnknown || got.PagesHow != unit.HowUnknown {
		t.Errorf("how the figures are known: %+v", got)
	}
	wl.Waiting = unit.Estimated(unit.Ratio(0.5), "x")
	if got = Workload(&w, &wl, f, "", nil); got.CPUHow != unit.HowEstimated {
		t.Errorf("measured CPU time and an estimated wait are known as %s", got.CPUHow)
	}
	var none store.Window
	if got = Workload(&w, &window.Workload{ID: "/b"}, window.Features{}, "", nil); got.LocalHow != none.LocalHow || got.Local.Known() {
		t.Errorf("%+v", got)
	}
}
