// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// kunpengDistances are those of the recorded machine (128arm-2pa2n8cluster4co). We read
// them as a chain 0-1-2-3: 16 within a package, 25 between the inner two, 32 and 33 through
// these.
var kunpengDistances = [][]int{
	{10, 16, 32, 33},
	{16, 10, 25, 32},
	{32, 25, 10, 16},
	{33, 32, 16, 10},
}

// kunpeng is two Kunpeng 920 of 64 cores at 2.6 GHz, two nodes each. Clusters of four cores
// share no cache that Linux knows of (only L3 tags), so the model has nothing for them;
// they show only in the CPUs' numbers: 4 k to 4 k + 3. Estimates:
//
//   - Latencies: the usual ones by distance.
//   - 70 GB/s of a node: three quarters of four channels of DDR4-2933.
//   - 60 GB/s each way between the nodes of a package, and 60 between packages (three
//     ports of 30 by the maker's brief; one end of the chain has them all, as the SLIT
//     reads): two of three.
func kunpeng() (machine.Machine, memsys.System) {
	m := layout{
		name: Kunpeng, cores: 32, threads: 1, packages: 2, shared: 1,
		l2: 512 * unit.KiB, llc: 32 * unit.MiB, memory: 128 * unit.GiB, distances: kunpengDistances,
	}.machine()
	return m, figures{
		hz: 2.6e9, bandwidth: 70e9, links: []link{{0, 1, 60e9}, {1, 2, 60e9}, {2, 3, 60e9}},
		from: "cores, caches and distances: a recorded machine; latencies: a two-socket Skylake's, by SLIT distance; a chain of links: our reading of the distances; bandwidths: estimated; waits on links are a guess",
	}.system(m, Kunpeng)
}
