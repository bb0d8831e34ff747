// SPDX-License-Identifier: Apache-2.0

package window

import (
	"iter"

	"homenode/internal/unit"
)

// Use is how much of a host's CPUs is used in a period.
type Use struct {
	Host unit.Opt[float64] // of all its CPUs, 0 to 1
	// Idlest is that of the node that is used least: what room a binding finds at best.
	Idlest unit.Opt[float64]
	Fewest int // CPUs of a node, the fewest; 0: no node has any
}

// UseOf makes it of each node's CPUs and of how many of them are busy. A node without CPUs counts
// for nothing. If that of one node is unknown, that of the host is.
func UseOf(nodes iter.Seq2[int, unit.Opt[float64]]) Use {
	u, idlest, busy, all, known := Use{}, 1.0, 0.0, 0, true
	for cpus, used := range nodes {
		if cpus <= 0 {
			continue
		}
		x, ok := used.Get()
		known = known && ok
		busy, all, idlest = busy+x, all+cpus, min(idlest, x/float64(cpus))
		if u.Fewest == 0 || cpus < u.Fewest {
			u.Fewest = cpus
		}
	}
	if known && all > 0 {
		u.Host, u.Idlest = unit.Some(min(1, busy/float64(all))), unit.Some(idlest)
	}
	return u
}

// Use is that of the window's host.
func (w *Window) Use() Use {
	return UseOf(func(yield func(int, unit.Opt[float64]) bool) {
		for i := range w.Nodes {
			busy, ok := w.Nodes[i].CPUBusy.Get()
			if !yield(w.Nodes[i].CPUs.Len(), unit.OptOf(busy, ok)) {
				return
			}
		}
	})
}
