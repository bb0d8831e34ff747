// SPDX-License-Identifier: Apache-2.0

package window

import (
	"homenode/internal/render"
	"homenode/internal/unit"
)

// The error that nine of ten scenarios of the lab stayed within, against the exact share
// of local reads: docs/decisions/0029-estimates.md, measured by
// scripts/bench-estimate.sh. Each constant is that of the worst shape, rounded up
// (TestErrorsOfTheWorstShape reads the decision's table).
const (
	pagesErrorOneSided = unit.Ratio(0.71) // CPU time, or pages, of one node; shape four
	pagesErrorApart    = unit.Ratio(0.66) // both on several nodes: which CPU reads which page is unknown; shape four
	faultsError        = unit.Ratio(0.28) // shape four
)

// ErrorBasis is what LocalAccessError rests on: it is printed wherever that is printed.
const ErrorBasis = "nine of ten of the lab's scenarios, each the mean of its windows, were within, on the worse of two machines (35 scenarios with two nodes, 20 with four)"

// apart is the smallest share of CPU time and of pages outside the node with most of them
// that makes a workload count as on several nodes.
const apart = 0.05

// LocalAccessError is how far an estimated local access ratio may be off, as ErrorBasis
// says. None where the ratio is counted, unknown, or estimated from counts of a part of
// the time: that error was never measured. 0 where there is only one node.
func LocalAccessError(w *Workload) unit.Opt[unit.Ratio] {
	v := LocalAccessRatio(w)
	switch {
	case v.How != unit.HowEstimated:
		return unit.None[unit.Ratio]()
	case len(w.CPUByNode) == 1:
		return unit.Some(unit.Ratio(0))
	case counts(w) == byFaults:
		return unit.Some(faultsError)
	case counts(w) != byPages: // counted, and scaled from a part of the time: not known
		return unit.None[unit.Ratio]()
	case w.OnSeveral():
		return unit.Some(pagesErrorApart)
	}
	return unit.Some(pagesErrorOneSided)
}

// OnSeveral reports that both CPU time and pages are on more than one node. If one of
// them is not, the estimate is wrong only where some pages are read more than others.
func (w *Workload) OnSeveral() bool {
	var cpu, mostCPU float64
	var bytes, mostBytes unit.Bytes
	for i := range w.CPUByNode {
		c := w.CPUByNode[i].Or(0)
		cpu, mostCPU = cpu+c, max(mostCPU, c)
	}
	for i := range w.AnonByNode {
		b := w.AnonByNode[i].Or(0) + w.FileByNode[i].Or(0)
		bytes, mostBytes = bytes+b, max(mostBytes, b)
	}
	return mostCPU < (1-apart)*cpu && float64(mostBytes) < (1-apart)*float64(bytes)
}

// Within is sign, such as " ± ", and how far an estimated local access ratio may be off
// in whole percent, "?" where that is unknown; "" where the ratio is not an estimate.
func (f Features) Within(sign string) string {
	off, ok := f.LocalAccessError.Get()
	switch {
	case f.LocalAccessRatio.How != unit.HowEstimated:
		return ""
	case !ok:
		return sign + "?"
	}
	return sign + render.WholePercent(float64(off))
}
