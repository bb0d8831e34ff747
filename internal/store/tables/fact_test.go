// SPDX-License-Identifier: Apache-2.0

package tables_test

import (
	"slices"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/store/tables"
	"homenode/internal/unit"
)

// What a host had is that of the same moment, unknown where a node of it is, and never 0 instead.
func TestOfHost(t *testing.T) {
	at := time.Unix(1000, 0)
	node := func(at time.Time, n, cpus int, busy unit.Opt[float64]) store.Node {
		return store.Node{At: at, Length: 10 * time.Second, Node: n, CPUs: cpus, Busy: busy, BusyHow: unit.HowMeasured}
	}
	known := func(w store.Window, nodes ...store.Node) map[string]float64 {
		f := tables.OfWindow(w, tables.ServersOf(store.Batch{Nodes: nodes})[tables.Millis(w.At)])
		if len(f) != len(tables.WindowColumns) {
			t.Fatalf("%d sums for %d columns", len(f), len(tables.WindowColumns))
		}
		got := map[string]float64{}
		for _, c := range []string{"of_node_x_s", "of_node_known_s", "server_busy_x_s", "idlest_busy_x_s", "server_known_s", "server_how"} {
			got[c] = f[slices.Index(tables.WindowColumns, c)]
		}
		return got
	}
	w := store.Window{At: at, Length: 10 * time.Second, CPU: unit.Some(2.0)}
	unknown := unit.None[float64]()
	const noHow = 9
	for name, c := range map[string]struct {
		window store.Window
		nodes  []store.Node
		want   [6]float64 // of_node, known, busy, idlest, known, how
	}{
		"two nodes":          {w, []store.Node{node(at, 0, 4, unit.Some(1.0)), node(at, 1, 8, unit.Some(5.0))}, [6]float64{5, 10, 5, 2.5, 10, float64(unit.HowMeasured)}},
		"one has no CPUs":    {w, []store.Node{node(at, 0, 4, unit.Some(1.0)), node(at, 1, 0, unknown)}, [6]float64{5, 10, 2.5, 2.5, 10, float64(unit.HowMeasured)}},
		"one is unknown":     {w, []store.Node{node(at, 0, 4, unit.Some(1.0)), node(at, 1, 8, unknown)}, [6]float64{5, 10, 0, 0, 0, noHow}},
		"of another moment":  {w, []store.Node{node(at.Add(time.Second), 0, 4, unit.Some(1.0))}, [6]float64{0, 0, 0, 0, 0, noHow}},
		"no nodes":           {w, nil, [6]float64{0, 0, 0, 0, 0, noHow}},
		"its CPU is unknown": {store.Window{At: at, Length: 10 * time.Second}, []store.Node{node(at, 0, 4, unit.Some(1.0))}, [6]float64{0, 0, 2.5, 2.5, 10, float64(unit.HowMeasured)}},
	} {
		got := known(c.window, c.nodes...)
		for i, column := range []string{"of_node_x_s", "of_node_known_s", "server_busy_x_s", "idlest_busy_x_s", "server_known_s", "server_how"} {
			if got[column] != c.want[i] {
				t.Errorf("%s: %s is %v, want %v", name, column, got[column], c.want[i])
			}
		}
	}
}
