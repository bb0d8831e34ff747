// SPDX-License-Identifier: Apache-2.0

// Package set holds sets of logical CPUs and of NUMA nodes as immutable values
// that read and print the way the kernel does.
//
//	"0-3,8\n"  ──ParseCPUs──▶  CPUSet{0 1 2 3 8}  ──String──▶  "0-3,8"
//	"010f"     ──ParseCPUMask─▶        │           ──Mask────▶  "0000010f"
//	                                   ├─ Union Intersect Minus With Without ─▶ a new set
//	                                   └─ Has Len IDs All SubsetOf Overlaps Equal
//
// CPUSet and NodeSet are two instances of one generic Set, so a node can never
// be passed where a CPU is meant. A set is a value: every operation returns a
// new one, == means equal, and a set may be the key of a map. The zero value is
// the empty set and prints as "".
//
// It is NOT for: knowing which CPUs exist, are online or belong to which node
// (internal/machine); reading or writing cpuset files (internal/kernel);
// ids of anything other than CPUs and nodes.
package set
