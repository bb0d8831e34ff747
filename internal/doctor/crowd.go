// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"

	"homenode/internal/migration"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// crowding is by what factor a workload's work takes longer at another pressure, and
// between what (migration.Longer, which Pays uses, too). The share of its time in which it
// does not wait is 1 − its stalls; unknown stalls leave the widest interval.
func (l view) crowding(w window.Workload, before, after float64) (factor, low, high float64) {
	busy := 0.0
	if m, ok := window.FeaturesOf(w, l.Length).MSR.Get(); ok {
		busy = 1 - float64(m)*(1-l.lineShare(w.ID))
	}
	return migration.Longer(migration.Pressure{Node: before}, migration.Pressure{Node: after}, busy)
}

// spreading is what a workload saves, as a share of its time, if half of what a full node
// serves goes to an idle one; and at least. It saves no more than it waits.
func (l view) spreading(k int, full, idle float64) (saved, least float64) {
	w := l.Window.Workloads[k]
	factor, _, high := l.crowding(w, full, max(full/2, idle+full/2))
	waits := 1.0
	if m, ok := window.FeaturesOf(w, l.Length).MSR.Get(); ok {
		waits = float64(m)
	}
	return min(waits, max(0, 1-factor)), min(waits, max(0, 1-high))
}

// spreadWins is the cost model's answer for one workload. Spreading wins if even the least of
// the interval is a loss that is worth reporting.
func (l view) spreadWins(k int, full, idle float64) string {
	saved, least := l.spreading(k, full, idle)
	text := fmt.Sprintf(" By the cost model, to interleave %s saves %v of its time, and at least %v", l.Window.Workloads[k].ID, unit.Ratio(saved), unit.Ratio(least))
	if least < l.c.Slight {
		return text + ": that may be too little to see."
	}
	return text + ": spreading wins."
}

// fills begins a reason of filled.
const fills = "its reads would fill the memory of"

// filled says that all of a workload's reads would fill a node's memory, so that its work
// takes longer there than now even by the least of the interval; "": it would not, or what
// the node delivers is unknown.
func (l view) filled(w window.Workload, i int) string {
	reads, ok := w.Loads()
	part, _ := l.anonShares(w)
	width, known := l.delivers(i)
	is, counted := l.controllerBusy(i).Get()
	if !ok || part == nil || !known || !counted || l.Length <= 0 {
		return ""
	}
	before := 0.0
	for k := range l.Machine.Nodes {
		busy, ok := l.controllerBusy(k).Get()
		if part[k] > 0 && !ok {
			return ""
		}
		if part[k] > 0 {
			before = max(before, float64(busy))
		}
	}
	after := float64(is) + reads*(1-part[i])*window.LineBytes/l.Length.Seconds()/width
	if _, low, _ := l.crowding(w, before, after); low < 1+l.c.Slight {
		return ""
	}
	return fmt.Sprintf(fills+" %s, to %v of what it delivers", nodeName(l.id(i)), unit.Ratio(after))
}

// delivers is a node's bandwidth in bytes/s: HMAT's, else what its controller served by how
// busy it was.
func (l view) delivers(i int) (float64, bool) {
	for _, a := range l.Machine.Nodes[i].Access {
		if width, ok := a.ReadBandwidth.Get(); ok && width > 0 {
			return float64(width), true
		}
	}
	t := l.mem(i).Traffic
	busy, ok := t.Busy.Get()
	lines, _, counted := served(t)
	return float64(lines) * window.LineBytes / l.Length.Seconds() / float64(busy), ok && counted && busy > 0 && lines > 0 && l.Length > 0
}
