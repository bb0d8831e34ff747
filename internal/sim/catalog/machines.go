// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/machine"
	"homenode/internal/sim/memsys"
)

// Builtin is a machine that comes with homenode.
type Builtin struct {
	Name, About string
	Make        func() (machine.Machine, memsys.System)
}

// Names that other packages use.
const (
	DualSkylake = "dual-skylake"
	DualE5620   = "dual-e5620"     // Rao's: 2 × 4 cores, 12 MiB of LLC each
	FourNodes   = "quad-e7-4830"   // four nodes of 12 cores (Funston's Intel machine)
	Opteron     = "opteron-6272"   // eight nodes of 8 cores (Funston's AMD machine)
	Kunpeng     = "kunpeng-920"    // a tree: two packages of two nodes, clusters of four cores
	QuadGold    = "quad-gold-6130" // of the measured placements
	DualE5v4    = "dual-e5-2683v4" // of the measured cache sharing
	Epyc1       = "epyc-7763-nps1" // two packages of one node, eight CCDs each
	Epyc4       = "epyc-7763-nps4" // the same with four nodes a package, two CCDs each
	XeonSNC4    = "xeon-8480-snc4" // two packages of four nodes
	Torus       = "torus-288"      // Lakew's: six servers of 48 cores, one coherent system
)

// Machines are the machines, in the order in which they are shown.
func Machines() []Builtin {
	return []Builtin{
		{DualSkylake, "Two sockets of Skylake-SP as in MAO: 2 nodes of 28 cores with 2 threads each and 192 GiB; published figures.", memsys.DualSkylake},
		{DualE5620, "Two Xeon E5620 as Rao's: 2 nodes of 4 cores with 12 MiB of LLC; sizes published, latencies and bandwidths estimated.", dualE5620},
		{FourNodes, "Four Xeon E7-4830 v3 as Funston's: 4 nodes of 12 cores with 2 threads each, all as far from each other; latencies and bandwidths estimated.", quadE7},
		{Opteron, "Four Opteron 6272 as Funston's: 8 nodes of 8 cores, recorded distances; latencies and bandwidths estimated.", opteron},
		{Kunpeng, "Two Kunpeng 920: 4 nodes of 32 cores in a chain, recorded distances; latencies and bandwidths estimated.", kunpeng},
		{QuadGold, "Four Xeon Gold 6130: 4 nodes of 16 cores with 2 threads each, one UPI link between each two; links from measured traffic, the rest estimated.", quadGold},
		{DualE5v4, "Two Xeon E5-2683 v4: 2 nodes of 16 cores with 40 MiB of LLC; latencies and bandwidths estimated.", dualE5v4},
		{Epyc1, "Two EPYC 7763 with one node a package: 2 nodes of 64 cores, 8 with 32 MiB of LLC each; data sheet, latencies from a measured one, the rest estimated.", epyc1},
		{Epyc4, "Two EPYC 7763 with four nodes a package: 8 nodes of 16 cores; data sheet, local latency measured, the rest estimated.", epyc4},
		{XeonSNC4, "Two Xeon 8480+ with four nodes a package: 8 nodes of 14 cores with 2 threads each; data sheet, latencies and bandwidths estimated.", xeonSNC4},
		{Torus, "Six servers of 48 cores on a 2 x 3 torus as Lakew's: 36 nodes of 8 cores, distances 10 to 200; latencies and bandwidths estimated.", torus},
	}
}

// MachineNamed returns the machine of that name.
func MachineNamed(name string) (Builtin, bool) {
	for _, b := range Machines() {
		if b.Name == name {
			return b, true
		}
	}
	return Builtin{}, false
}
