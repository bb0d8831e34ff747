// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// opteronDistances are those of the recorded machine, four Opteron 6272
// (64amd64-4p2n4ca2co-opteron6272): 16 is one hop, 22 two.
var opteronDistances = [][]int{
	{10, 16, 16, 22, 16, 22, 16, 22},
	{16, 10, 22, 16, 16, 22, 22, 16},
	{16, 22, 10, 16, 16, 16, 16, 16},
	{22, 16, 16, 10, 16, 16, 22, 22},
	{16, 16, 16, 16, 10, 16, 16, 22},
	{22, 22, 16, 16, 16, 10, 22, 16},
	{16, 22, 16, 22, 16, 22, 10, 16},
	{22, 16, 16, 22, 22, 16, 16, 10},
}

// Common to Bulldozer machines. Latencies are the usual ones by distance: 109 ns at 16 and
// 138 at 22, for 80.
const (
	opteronL2Cycles  = 20 // AMD's optimization guide of family 15h: 18 to 20
	opteronLLCCycles = 65 // the order measured in reviews of the same generation
	// A node's two channels of DDR3-1600 have a peak of 25.6 GB/s. Measured on such a machine:
	// 16.1 to 16.6 GB/s read by the eight threads of a node (facts/measured.md, C).
	opteronBandwidth = 16.4e9
	// One thread reads 5.7 GB/s there, by Little's law 8.6 lines at once at 80 ns and its own
	// load.
	opteronMisses = 8.6
	// HyperTransport 3.1 at 6.4 GT/s: 16 bits each way between the two nodes of a package,
	// 8 between packages. These are the limits of the data sheet; whole lines get less.
	inPackage, betweenPackages = 12.8e9, 6.4e9
)

// hyperTransport is the capacity between nodes, of which two each form a package.
func hyperTransport(a, b int) float64 {
	if a/2 == b/2 {
		return inPackage
	}
	return betweenPackages
}

// opteron is Funston's AMD machine (papers, §4), numbered as the recorded one: two nodes
// per package, 8 cores per node at 2.1 GHz, 2 MiB of L2 per pair of cores (memsys: 1 MiB
// per core), 6 MiB of LLC per node. 16 GiB per node is the recorded machine's. Pairs share
// a front end and an FPU; this is not modelled: memsys's siblings share all of a core.
func opteron() (machine.Machine, memsys.System) {
	m := layout{
		name: Opteron, order: []int{0, 1, 6, 7, 2, 3, 4, 5}, cores: 8, threads: 1, packages: 2, shared: 2,
		l2: 2 * unit.MiB, llc: 6 * unit.MiB, memory: 16 * unit.GiB, distances: opteronDistances,
	}.machine()
	return m, figures{
		hz: 2.1e9, l2: opteronL2Cycles, llc: opteronLLCCycles, bandwidth: opteronBandwidth,
		misses: memsys.Misses{L1: opteronMisses, L2: opteronMisses},
		links:  near(opteronDistances, 16, hyperTransport),
		from:   "cores, caches and distances: a recorded machine; latencies: a two-socket Skylake's, by SLIT distance; a node's and a thread's bandwidth: measured on such a machine; links: the data sheet's; waits on links are a guess",
	}.system(m, Opteron)
}
