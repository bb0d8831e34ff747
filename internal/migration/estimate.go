// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// EstimateOf is the expected cost of a move on a machine; p is its profile, or nil;
// rate 0 is as fast as possible.
//
//  1. Pages are moved one by one, each at the price of its size and its pair of nodes,
//     spread evenly over the target nodes. CPU time is the sum.
//  2. The time is that of one worker, and not less than bytes/rate. It does not model
//     several workers, nor how much of the memory is hot: so for freeze and hot it is
//     an estimate, and an upper bound.
//  3. Both the node that is read and the one that is written carry the rate of number
//     2; the share is that of the node with less bandwidth.
func EstimateOf(c Census, p *profile.Profile, m machine.Machine, from, to set.NodeSet, mode Mode, rate unit.Bytes) Estimate {
	costs := CostsOf(p, m)
	e := Estimate{Bytes: c.Elsewhere(from, to)}
	if e.Bytes == 0 {
		none := unit.Measured(0.0, "there is nothing to move")
		return Estimate{Seconds: none, CPUSeconds: none, BandwidthShare: unit.Measured(unit.Ratio(0), none.From)}
	}
	e.CPUSeconds = costs.total(c, from, to, func(f, t int, huge bool) unit.Value[float64] { return costs.PerByte(f, t, huge) }) // 1
	e.Seconds = costs.total(c, from, to, func(f, t int, huge bool) unit.Value[float64] {
		v := costs.Speed(f, t, huge)
		return unit.ValueOf(1/v.Or(0), v.How, v.From)
	})
	e.Seconds = inMode(e.Seconds, e.Bytes, mode, rate) // 2
	e.BandwidthShare = costs.share(c, from, to, e)     // 3
	return e
}

// inMode is number 2 of EstimateOf.
func inMode(fast unit.Value[float64], bytes unit.Bytes, mode Mode, rate unit.Bytes) unit.Value[float64] {
	switch mode {
	case Freeze: // has no rate
		return weaken(fast, "one worker; workers side by side are not modelled")
	case Hot:
		fast = weaken(fast, "at most: as if all of it were hot")
	}
	seconds, known := fast.Get()
	if held := float64(bytes) / float64(rate); rate > 0 && known && held > seconds {
		return unit.Estimated(held, fmt.Sprintf("%v at %v/s", bytes, rate))
	}
	return fast
}

func weaken(v unit.Value[float64], why string) unit.Value[float64] {
	if !v.Known() {
		return v
	}
	return unit.Estimated(v.Or(0), v.From+"; "+why)
}

// total adds up the seconds per byte over the bytes that are elsewhere.
func (c Costs) total(census Census, from, to set.NodeSet, of func(from, to int, huge bool) unit.Value[float64]) unit.Value[float64] {
	small, huge := elsewhere(census, from, to)
	sum, how, source := 0.0, unit.HowMeasured, ""
	for size, rows := range [][]NodeBytes{small, huge} {
		if len(rows) == 0 {
			continue
		}
		v := average(rows, to, func(f, t int) unit.Value[float64] { return of(f, t, size == 1) })
		if !v.Known() {
			return v
		}
		for _, r := range rows {
			sum += float64(v.Or(0) * float64(r.Bytes))
		}
		how = unit.Weakest(how, v.How)
		if source == "" {
			source = v.From
		} else if source != v.From {
			source += "; huge: " + v.From
		}
	}
	return unit.ValueOf(sum, how, source)
}

// elsewhere is the memory to be moved in small and in huge pages, by node.
func elsewhere(c Census, from, to set.NodeSet) (small, huge []NodeBytes) {
	for _, r := range c.Rows {
		for _, n := range r.Nodes {
			switch {
			case !Elsewhere(n.Node, from, to):
			case r.Kind == THP || r.Kind == Hugetlb:
				huge = append(huge, n)
			default:
				small = append(small, n)
			}
		}
	}
	return small, huge
}

// share is number 3 of EstimateOf.
func (c Costs) share(census Census, from, to set.NodeSet, e Estimate) unit.Value[unit.Ratio] {
	nodes := to
	small, huge := elsewhere(census, from, to)
	for _, n := range append(small, huge...) {
		nodes = nodes.With(n.Node)
	}
	var tightest unit.Value[unit.Bytes]
	for n := range nodes.All() {
		b := c.Bandwidth(n)
		if !b.Known() {
			return unit.UnknownValue[unit.Ratio](b.From)
		}
		if !tightest.Known() || b.Or(0) < tightest.Or(0) {
			tightest = b
		}
	}
	seconds, ok := e.Seconds.Get()
	if !ok || seconds <= 0 || tightest.Or(0) <= 0 {
		return unit.UnknownValue[unit.Ratio]("the time it takes is unknown")
	}
	share := float64(e.Bytes) / seconds / float64(tightest.Or(0))
	return unit.ValueOf(unit.Ratio(min(1, share)), unit.Weakest(e.Seconds.How, tightest.How), tightest.From)
}
