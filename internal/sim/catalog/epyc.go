// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// Machines with several nodes, or several last-level caches, in a package.

// notLimiting is a link that no load fills: within a package memory is shared by a mesh, and
// what limits is the node.
const notLimiting = 400e9

// clustered are distances of two packages of nodes each: inside and between.
func clustered(nodes, inside, between int) [][]int {
	rows := symmetric(2*nodes, between)
	for a := range rows {
		for b := range rows {
			if a != b && a/nodes == b/nodes {
				rows[a][b] = inside
			}
		}
	}
	return rows
}

// starred are links of two packages: each node has one to its package's middle, which no load
// fills, and the middles have one between them, which all nodes share.
func starred(nodes int, bytes float64) (all []link) {
	middle := 2 * nodes
	for n := range 2 * nodes {
		all = append(all, link{n, middle + n/nodes, notLimiting})
	}
	return append(all, link{middle, middle + 1, bytes})
}

// epyc is two EPYC 7763 (data sheet: 64 cores with 2 threads at 2.45 GHz, 32 MiB of L3 for
// each 8 cores, 8 channels of DDR4-3200) with one or four nodes a package. Not from there:
//
//   - 105.6 ns locally: measured on an EPYC with four nodes a package (latency facts). That
//     machine's other nodes of the package are at 113.1, 118.6 and 117.7 ns; distance 12
//     gives 118.3 here. With one node a package all channels are as near as these together:
//     113.8 ns.
//   - Distances 12 and 32: those that such firmware tells.
//   - 168 GB/s of a package: 0.82 of the channels. 72 GB/s between packages each way: three
//     quarters of three links of 16 lanes at 16 GT/s.
//   - Transfers between cores by group, and a group's fabric: memsys's.
func epyc(name string, nodes int, local float64) (machine.Machine, memsys.System) {
	m := layout{
		name: name, cores: 64 / nodes, threads: 2, packages: nodes, shared: 1, llcs: 8 / nodes,
		l2: 512 * unit.KiB, llc: 32 * unit.MiB, memory: unit.Bytes(512/nodes) * unit.GiB, distances: clustered(nodes, 12, 32),
	}.machine()
	links := meshed(2, 72e9)
	if nodes > 1 {
		links = starred(nodes, 72e9)
	}
	return m, figures{
		hz: 2.45e9, local: local, l2: 12, llc: 46, bandwidth: 168e9 / float64(nodes), links: links,
		from: "cores, caches, clock and channels: the data sheet; local latency: measured on an EPYC with four nodes a package; the rest by SLIT distance; transfers between cores: by group, estimated; waits on links are a guess",
	}.system(m, name)
}

func epyc1() (machine.Machine, memsys.System) { return epyc(Epyc1, 1, 113.8e-9) }
func epyc4() (machine.Machine, memsys.System) { return epyc(Epyc4, 4, 105.6e-9) }

// xeonSNC4 is two Xeon Platinum 8480+ (data sheet: 56 cores with 2 threads at 2.0 GHz, 2 MiB
// of L2 a core, 105 MiB of L3, 8 channels of DDR5-4800, 4 UPI links of 16 GT/s) with four
// nodes a package. Not from there: latencies and transfers are the usual ones by distance (12
// and 21: those that such firmware tells); 63 GB/s of a node, 0.82 of its channels; 128 GB/s
// between packages each way, two thirds of four links of 24 lanes.
func xeonSNC4() (machine.Machine, memsys.System) {
	m := layout{
		name: XeonSNC4, cores: 14, threads: 2, packages: 4, shared: 1,
		l2: 2 * unit.MiB, llc: 105 * unit.MiB / 4, memory: 128 * unit.GiB, distances: clustered(4, 12, 21),
	}.machine()
	return m, figures{
		hz: 2.0e9, l2: 16, llc: 70, bandwidth: 63e9, links: starred(4, 128e9),
		from: "cores, caches, clock and channels: the data sheet; latencies: a two-socket Skylake's, by SLIT distance; bandwidths: of the data sheet's peaks; waits on links are a guess",
	}.system(m, XeonSNC4)
}
