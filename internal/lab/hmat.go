// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"homenode/internal/machine"
)

// hmatGHz turns a shape's cycles into time: they come from nanoseconds of a CPU
// of 2.7 GHz (machine.DefaultModel).
const hmatGHz = 2.7

// hmatArgs are the latencies (ns) and bandwidths that the firmware reports, from every
// node with CPUs to every node.
func hmatArgs(s machine.Shape) []string {
	args := []string{"-machine", "hmat=on"}
	for from, n := range s.Nodes {
		if n.CPUs.Len() == 0 {
			continue
		}
		for to := range s.Nodes {
			pair := fmt.Sprintf("hmat-lb,initiator=%d,target=%d,hierarchy=memory,data-type=access-", from, to)
			args = append(args,
				"-numa", fmt.Sprintf("%slatency,latency=%d", pair, hmatLatency(s, from, to)),
				"-numa", fmt.Sprintf("%sbandwidth,bandwidth=%dM", pair, hmatBandwidth(s, from, to)))
		}
	}
	return args
}

func hmatLatency(s machine.Shape, from, to int) int {
	return int(float64(s.Model.DRAMCycles[s.Distances[from][to]])/hmatGHz + 0.5)
}

// hmatBandwidth is the bandwidth of the narrowest part of the way, in MiB/s.
func hmatBandwidth(s machine.Shape, from, to int) int {
	perLine := s.Model.MCCycles
	if from != to {
		perLine = max(perLine, s.Model.LinkCycles)
	}
	return int(64 * hmatGHz * 1e9 / float64(perLine) / (1 << 20))
}

// initiator is the node whose CPUs reach node id fastest: itself, if it has CPUs.
func initiator(s machine.Shape, id int) int {
	best := -1
	for from, n := range s.Nodes {
		switch {
		case n.CPUs.Len() == 0:
		case from == id:
			return id
		case best < 0 || hmatLatency(s, from, id) < hmatLatency(s, best, id):
			best = from
		}
	}
	return best
}
