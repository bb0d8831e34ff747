// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// beforeSkylake: 10 fill buffers (Intel's optimization manual), and 16 places in the queue to
// L3, as commonly given.
var beforeSkylake = memsys.Misses{L1: 10, L2: 16}

// dualE5620 is Rao's machine (papers, §2): 2 × 4 cores at 2.4 GHz, SMT off, 12 MiB of LLC.
// What the paper does not say:
//
//   - 12 GiB a node: our choice; the programs need less.
//   - 65 ns locally, and 108 remotely by distance: of the order published for the
//     generation before (Molka et al., PACT 2009, Xeon X5570: 65 and 106 ns). L2 in 10
//     cycles and L3 in 38 are from there as well.
//   - 17 GB/s of a node, two thirds of three channels of DDR3-1066; 11.7 GB/s a QPI link
//     each way at 5.86 GT/s, its data sheet's limit.
func dualE5620() (machine.Machine, memsys.System) {
	m := layout{
		name: DualE5620, cores: 4, threads: 1, packages: 1, shared: 1,
		l2: 256 * unit.KiB, llc: 12 * unit.MiB, memory: 12 * unit.GiB, distances: symmetric(2, 21),
	}.machine()
	return m, figures{
		hz: 2.4e9, local: 65e-9, l2: 10, llc: 38, bandwidth: 17e9, misses: beforeSkylake, links: meshed(2, 11.7e9),
		from: "cores, caches and clock: the paper and the data sheet; latencies: of the order published for a Xeon X5570; bandwidths: of the data sheet's peaks; waits on links are a guess",
	}.system(m, DualE5620)
}

// quadE7 is Funston's Intel machine (papers, §4): 4 nodes of 12 cores with two threads at
// 2.1 GHz, 30 MiB of LLC, a link between every pair. What the paper does not say:
//
//   - 64 GiB a node, distance 21: our choice, the usual ones.
//   - Latencies: the usual ones by distance.
//   - 45 GB/s of a node: nine tenths of four channels of DDR4-1600 behind buffers, 51 at
//     the peak; 16 GB/s a QPI link each way at 8 GT/s, the data sheet's limit. L2 in 12
//     cycles is that generation's (Haswell).
func quadE7() (machine.Machine, memsys.System) {
	m := layout{
		name: FourNodes, cores: 12, threads: 2, packages: 1, shared: 1,
		l2: 256 * unit.KiB, llc: 30 * unit.MiB, memory: 64 * unit.GiB, distances: symmetric(4, 21),
	}.machine()
	return m, figures{
		hz: 2.1e9, l2: 12, bandwidth: 45e9, misses: beforeSkylake, links: meshed(4, 16e9),
		from: "cores, caches and clock: the paper and the data sheet; latencies: a two-socket Skylake's, by SLIT distance; bandwidths: of the data sheet's peaks; waits on links are a guess",
	}.system(m, FourNodes)
}

// quadGold is the machine of the measured placements (facts/measured.md, B): four Xeon Gold
// 6130 of 16 cores with two threads at 2.1 GHz, 22 MiB of LLC, one UPI link between each two.
// What is not published there:
//
//   - 96 GiB a node, distance 21: our choice. Latencies: the usual ones by distance.
//   - 105 GB/s of a node: 0.82 of six channels of DDR4-2666.
//   - 16.5 GB/s a link each way: what leaves node 0 with all memory there (its traffic less
//     the local share), by three links; 20.8 is the data sheet's limit.
func quadGold() (machine.Machine, memsys.System) {
	m := layout{
		name: QuadGold, cores: 16, threads: 2, packages: 1, shared: 1,
		l2: unit.MiB, llc: 22 * unit.MiB, memory: 96 * unit.GiB, distances: symmetric(4, 21),
	}.machine()
	return m, figures{
		hz: 2.1e9, bandwidth: 105e9, links: meshed(4, 16.5e9),
		from: "cores, caches and clock: the data sheet; links: from measured traffic; latencies: a two-socket Skylake's, by SLIT distance; a node's bandwidth: of the data sheet's peak; waits on links are a guess",
	}.system(m, QuadGold)
}

// dualE5v4 is the machine of the measured cache sharing (facts/measured.md, A, M16): two Xeon
// E5-2683 v4 of 16 cores without SMT at 2.58 GHz, 40 MiB of LLC and 32 GB a socket.
// What is not published there:
//
//   - Distance 21; latencies: the usual ones by distance.
//   - 62 GB/s of a node: 0.8 of four channels of DDR4-2400. Programs that saturate it move 44 to
//     49 GB/s there.
//   - 15 GB/s for each of two QPI links at 9.6 GT/s, 0.8 of the data sheet's limit.
func dualE5v4() (machine.Machine, memsys.System) {
	m := layout{
		name: DualE5v4, cores: 16, threads: 1, packages: 1, shared: 1,
		l2: 256 * unit.KiB, llc: 40 * unit.MiB, memory: 32 * unit.GiB, distances: symmetric(2, 21),
	}.machine()
	return m, figures{
		hz: 2.58e9, l2: 12, bandwidth: 62e9, misses: beforeSkylake, links: meshed(2, 30e9),
		from: "cores, caches, clock and memory: measured on such a machine; latencies: a two-socket Skylake's, by SLIT distance; bandwidths: of the data sheet's peaks; waits on links are a guess",
	}.system(m, DualE5v4)
}
