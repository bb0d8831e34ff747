// SPDX-License-Identifier: Apache-2.0

package doctor

// rules in the order of the files' names in the package; the report orders their
// findings by cost. Their ids are stable: people filter by them.
var rules = []rule{
	{"allocation-fallback", 2, allocationFallback},
	{"balancing-fights-binding", 2, balancingFights},
	{"balancing-thrash", 2, balancingThrash},
	{"bandwidth-saturated", 2, bandwidthSaturated},
	{"cpuset-apart", 2, cpusetApart},
	{"firmware-doubts", 0, firmwareDoubts},
	{"first-touch", 2, firstTouch},
	{"guest-topology", 1, guestTopology},
	{"huge-page-pools", 2, hugePagePools},
	{"irq-far", 2, irqFar},
	{"memory-too-tight", 1, memoryTooTight},
	{"page-cache-fills-node", 2, pageCacheFillsNode},
	{"pinned-to-busy-cpu", 1, pinnedToBusyCPU},
	{"read-only-far", 2, readOnlyFar},
	{remoteWorkloadID, 2, remoteWorkload},
	{sharedLineID, 2, sharedLine},
	{"swap-beside-free", 2, swapBesideFree},
	{"vm-flat-topology", 2, vmFlatTopology},
	{"wider-than-node", 2, widerThanNode},
	{"zone-reclaim", 2, zoneReclaim},
}

// remoteWorkloadID is the general finding. It is dropped in favour of those in
// explaining.
const remoteWorkloadID = "remote-workload"

const sharedLineID = "shared-line"

var explaining = []string{"cpuset-apart", "first-touch", "vm-flat-topology", "wider-than-node"}
