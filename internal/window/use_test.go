// SPDX-License-Identifier: Apache-2.0

package window_test

import (
	"testing"

	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func TestUse(t *testing.T) {
	node := func(busy unit.Value[float64], cpus ...int) window.Node {
		return window.Node{CPUs: set.FromCPUs(cpus...), CPUBusy: busy}
	}
	unknown := unit.UnknownValue[float64]("not read")
	for name, c := range map[string]struct {
		nodes  []window.Node
		host   unit.Opt[float64]
		idlest unit.Opt[float64]
		fewest int
	}{
		"two nodes":           {[]window.Node{node(unit.Measured(1.0, ""), 0, 1), node(unit.Measured(2.0, ""), 2, 3)}, unit.Some(0.75), unit.Some(0.5), 2},
		"one is larger":       {[]window.Node{node(unit.Measured(1.0, ""), 0, 1, 2, 3), node(unit.Measured(1.5, ""), 4, 5)}, unit.Some(2.5 / 6), unit.Some(0.25), 2},
		"one without CPUs":    {[]window.Node{node(unit.Measured(1.0, ""), 0, 1), node(unknown)}, unit.Some(0.5), unit.Some(0.5), 2},
		"one is unknown":      {[]window.Node{node(unit.Measured(1.0, ""), 0, 1), node(unknown, 2)}, unit.None[float64](), unit.None[float64](), 1},
		"more than there are": {[]window.Node{node(unit.Measured(2.1, ""), 0, 1)}, unit.Some(1.0), unit.Some(1.0), 2},
		"no nodes":            {nil, unit.None[float64](), unit.None[float64](), 0},
	} {
		w := window.Window{Nodes: c.nodes}
		if got := w.Use(); got.Host != c.host || got.Idlest != c.idlest || got.Fewest != c.fewest {
			t.Errorf("%s: %+v, want %v, %v and %d", name, got, c.host, c.idlest, c.fewest)
		}
	}
}
