// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"

	"homenode/internal/render"
)

// tolerance is how far figures that contradict each other may be apart before that counts:
// repeats of one latency differ by a few percent.
const tolerance = 0.05

// Contradiction is two figures of a profile that cannot both be right, and what is not
// computed from it because of that.
type Contradiction struct {
	What string `json:"what"` // the two figures
	Lost string `json:"lost"` // what is not computed
}

// String is a sentence.
func (c Contradiction) String() string { return c.What + ": " + c.Lost }

// Contradictions of a profile:
//
//  1. A read from another node that is faster than one from the own node.
//  2. Latency under load that is below the idle latency of the same pair of nodes.
//  3. Bandwidth to another node above that of the node's own memory to its own CPUs.
//
// Differences within the noise of repeats do not count.
func (p Profile) Contradictions() (all []Contradiction) {
	if why := p.remoteFaster(); why != "" {
		all = append(all, Contradiction{why, "latencies are taken from the firmware, or from SLIT distances"})
	}
	if why := p.loadedBelowIdle(); why != "" {
		all = append(all, Contradiction{why, "latencies are taken from the firmware, or from SLIT distances"})
	}
	for _, f := range p.Bandwidth { // 3
		own, ok := p.BandwidthBetween(f.To, f.To)
		if far, known := f.Median.Get(); ok && known && f.From != f.To && far > (1+tolerance)*own.Median.Or(0) {
			what := fmt.Sprintf("node %d reads %s from node %d, whose own CPUs read %s", f.From, render.Rate(far), f.To, render.Rate(own.Median.Or(0)))
			return append(all, Contradiction{what, "the bandwidth of a node is unknown unless its peak was measured, and no limit is taken from it"})
		}
	}
	return all
}

// LatencyDoubt is why the profile's latencies are not used; "": they are.
func (p Profile) LatencyDoubt() string {
	if why := p.remoteFaster(); why != "" {
		return why
	}
	return p.loadedBelowIdle()
}

// BandwidthDoubt is why the profile's bandwidths of pairs are not used; "": they are.
func (p Profile) BandwidthDoubt() string {
	for _, c := range p.Contradictions() {
		if c.What != p.remoteFaster() && c.What != p.loadedBelowIdle() {
			return c.What
		}
	}
	return ""
}

// remoteFaster is number 1.
func (p Profile) remoteFaster() string {
	for _, f := range p.Latency {
		own, ok := p.LatencyBetween(f.From, f.From)
		if far, known := f.Median.Get(); ok && known && f.From != f.To && far < (1-tolerance)*own.Median.Or(0) {
			return fmt.Sprintf("a read from node %d to node %d takes %s ns, and %s ns to its own memory", f.From, f.To, render.Commas(far), render.Commas(own.Median.Or(0)))
		}
	}
	return ""
}

// loadedBelowIdle is number 2. A curve's idle latency is that of the part "latency".
func (p Profile) loadedBelowIdle() string {
	for _, c := range p.Loaded {
		idle, ok := p.LatencyBetween(c.From, c.To)
		for _, at := range c.Points {
			if ns, known := at.Latency.Median.Get(); ok && known && ns < (1-tolerance)*idle.Median.Or(0) {
				return fmt.Sprintf("%s: a read takes %s ns under load, and %s ns without", c.Name, render.Commas(ns), render.Commas(idle.Median.Or(0)))
			}
		}
	}
	return ""
}
