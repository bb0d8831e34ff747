// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// figures are the figures of a machine's memory that are known better than the usual ones
// of memsys.FromMachine. 0: the usual one.
type figures struct {
	hz        float64
	local     float64       // seconds for a read from the own node
	l2, llc   float64       // cycles of a hit
	bandwidth float64       // bytes/s that a node's memory delivers
	misses    memsys.Misses // lines that a core can wait for
	// links are pairs of nodes; nil: every pair has one. Numbers from the count of nodes on
	// are places without CPUs and memory, such as routers.
	links []link
	from  string // how each is known
}

// link joins two nodes, both ways.
type link struct {
	a, b  int
	bytes float64 // per second, each way
}

// system is the memory system of a machine with these figures:
//
//  1. What memsys estimates from the topology, in seconds.
//  2. Latencies are the local one, scaled by distance (machine.LatencyRatio); a line that
//     another core modified takes the usual share of that, and below groups of cores with an
//     LLC each what memsys says.
//  3. A line takes the fewest links (machine.Shape.Routes); where several ways share a
//     link, they wait for it together.
func (f figures) system(m machine.Machine, name string) memsys.System {
	y, err := memsys.FromMachine(m, nil) // 1
	if err != nil {
		panic(err) // a built-in machine has CPUs and memory
	}
	longer, stretch := 1.0, f.hz/y.Hz
	if f.local > 0 {
		longer = f.local * y.Hz / y.Latency[0][0]
	}
	grouped := len(m.LLCs) > len(m.Nodes) // then transfers are seconds by distance already
	y.Name, y.How, y.From, y.Hz = name, unit.HowEstimated, f.from, f.hz
	for i := range y.Nodes { // 2
		y.InLLC[i] *= stretch
		for j := range y.Nodes {
			y.Latency[i][j] *= longer * stretch
			if i == j || grouped {
				y.Transfer[i][j] *= stretch
			} else {
				y.Transfer[i][j] *= longer * stretch
			}
		}
		y.Nodes[i].Server = memsys.Server{Cycles: memsys.LineBytes * f.hz / f.bandwidth}
	}
	y.Misses = memsys.Misses{L1: or(f.misses.L1, y.Misses.L1), L2: or(f.misses.L2, y.Misses.L2)}
	y.L2Cycles, y.LLCCycles = or(f.l2, y.L2Cycles), or(f.llc, y.LLCCycles*stretch)
	f.route(&y) // 3
	return y
}

func or(known, usual float64) float64 {
	if known > 0 {
		return known
	}
	return usual
}

// route is number 3.
func (f figures) route(y *memsys.System) {
	places := len(y.Nodes)
	var pairs [][2]int
	y.Links = nil
	for _, l := range f.links {
		pairs = append(pairs, [2]int{l.a, l.b})
		places = max(places, l.a+1, l.b+1)
		s := memsys.Server{Cycles: memsys.LineBytes * f.hz / l.bytes}
		y.Links = append(y.Links, s, s)
	}
	routes := machine.Shape{Nodes: make([]machine.ShapeNode, places), Links: pairs}.Routes()
	for c := range y.Nodes {
		for n := range y.Nodes {
			y.Path[c][n] = routes[c][n]
		}
	}
}

// meshed is links between every pair of nodes.
func meshed(nodes int, bytes float64) (all []link) {
	for a := range nodes {
		for b := a + 1; b < nodes; b++ {
			all = append(all, link{a, b, bytes})
		}
	}
	return all
}

// near are links between the pairs at this distance.
func near(distances [][]int, distance int, bytes func(a, b int) float64) (all []link) {
	for a, row := range distances {
		for b := a + 1; b < len(row); b++ {
			if row[b] == distance {
				all = append(all, link{a, b, bytes(a, b)})
			}
		}
	}
	return all
}
