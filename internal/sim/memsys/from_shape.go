// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"homenode/internal/machine"
	"homenode/internal/unit"
)

// FromShape is the system of a shape of the lab, with its own figures and queues. Accesses
// of regions are those that miss L1, as everywhere here. A chase of the lab goes over its
// region in laps (lab/workload/chase.c builds one cycle of all its lines): a Stream with a
// Parallelism of 1.
func FromShape(s machine.Shape) System {
	m := s.Model
	y := System{
		Name: s.Name, How: unit.HowModelled, From: "shape " + s.Name,
		Hz: float64(m.MHz) * 1e6,
		L2: float64(m.L2), L2Cycles: float64(m.L2Cycles), LLCCycles: float64(m.LLCCycles),
		Atomic: float64(m.AtomicCycles), Threads: max(1, s.Threads), Queue: MD1,
		Misses: Misses{L1: 1, L2: float64(m.StreamParallelism)}, // hits of L2 do not overlap there
		Path:   s.Routes(),
	}
	for id, n := range s.Nodes {
		cpus := float64(n.CPUs.Len())
		y.Nodes = append(y.Nodes, Node{ID: id, CPUs: cpus, Memory: float64(n.Memory), Server: Server{Cycles: float64(m.MCCycles)}})
		if cpus > 0 {
			y.Domains = append(y.Domains, Domain{Node: id, CPUs: cpus, LLC: float64(m.LLC)})
		}
		latency, transfer := make([]float64, len(s.Nodes)), make([]float64, len(s.Nodes))
		for to, d := range s.Distances[id] {
			latency[to], transfer[to] = float64(m.DRAMCycles[d]), float64(m.Transfer(d))
		}
		y.Latency, y.Transfer = append(y.Latency, latency), append(y.Transfer, transfer)
	}
	for range 2 * len(s.LinkPairs()) {
		y.Links = append(y.Links, Server{Cycles: float64(m.LinkCycles)})
	}
	return y
}
