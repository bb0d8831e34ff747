// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// Lakew's system (papers, §3): servers on a torus of 2 × 3.
const (
	servers, torusRows, torusColumns = torusRows * torusColumns, 2, 3
	serverNodes                      = 6 // of 8 cores: three packages of two nodes, like an Opteron 6380
	oneHop, moreHops                 = 160, 200
	// torusLink is bytes/s of a link each way. The maker gives 30 GB/s of switching per
	// server (numascale.com, NumaConnect SMP Adapter), and nothing for a link that carries
	// coherent reads: an estimate. A larger value makes remote bandwidth matter less.
	torusLink = 2e9
	// cardLink is the link between a server's first node and its card: a HyperTransport
	// link of 16 bits at 800 MHz, "6.4 GB/s" both ways together (ibidem).
	cardLink = 3.2e9
)

// torus is six servers of 48 cores and 192 GB that are one coherent system:
//
//  1. A server is six of the Opteron's eight nodes, at 2.5 GHz: distances 10, 16, 22.
//     The paper says "2 × AMD 6380", of 32 cores, and 48 cores: this has 48.
//  2. Servers are neighbours in rows (rings of three) and columns (of two): 160 is one
//     hop, 200 two. Which of the two the paper's machine means by which is our reading.
//  3. No latency is published. By LatencyRatio 160 is 800 ns and 200 is 992 for 80: about
//     a microsecond, as expected of such a card.
//  4. A line between servers goes by HyperTransport to the first node, over its card's
//     link, the torus and a card, and on within the server: links are shared by all that use
//     them. A card's cache of remote lines is left out.
func torus() (machine.Machine, memsys.System) {
	distances := torusDistances()
	m := layout{
		name: Torus, cores: 8, threads: 1, packages: 2, shared: 2,
		l2: 2 * unit.MiB, llc: 6 * unit.MiB, memory: 32 * unit.GiB, distances: distances,
	}.machine()
	return m, figures{
		hz: 2.5e9, l2: opteronL2Cycles, llc: opteronLLCCycles, bandwidth: opteronBandwidth,
		misses: memsys.Misses{L1: opteronMisses, L2: opteronMisses},
		links:  torusLinks(distances),
		from: "servers, cores, memory and distances: the paper; caches: the data sheet; latencies: a two-socket Skylake's, by SLIT distance, " +
			"so estimated at 160 and 200; HyperTransport: the data sheet; a torus link of 2 GB/s each way: estimated; waits on links are a guess",
	}.system(m, Torus)
}

// torusDistances is numbers 1 and 2.
func torusDistances() [][]int {
	const n = servers * serverNodes
	rows := make([][]int, n)
	for a := range rows {
		rows[a] = make([]int, n)
		for b := range rows[a] {
			switch hops(a/serverNodes, b/serverNodes) {
			case 0:
				rows[a][b] = opteronDistances[a%serverNodes][b%serverNodes]
			case 1:
				rows[a][b] = oneHop
			default:
				rows[a][b] = moreHops
			}
		}
	}
	return rows
}

// hops is the number of hops between two servers: in a ring of two or three every server is
// a neighbour.
func hops(a, b int) int {
	n := 0
	if a/torusColumns != b/torusColumns {
		n++
	}
	if a%torusColumns != b%torusColumns {
		n++
	}
	return n
}

// torusLinks is number 4. The card of server s is place n + s.
func torusLinks(distances [][]int) []link {
	links := near(distances, 16, hyperTransport)
	n := len(distances)
	for s := range servers {
		links = append(links, link{s * serverNodes, n + s, cardLink})
		for o := s + 1; o < servers; o++ {
			if hops(s, o) == 1 {
				links = append(links, link{n + s, n + o, torusLink})
			}
		}
	}
	return links
}
