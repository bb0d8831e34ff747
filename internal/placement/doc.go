// SPDX-License-Identifier: Apache-2.0

// Package placement lists the important placements of a workload on a machine (Funston
// et al., USENIX ATC 2018): of the billions of ways to put N vCPUs on nodes, the few
// that differ in what the workload shares.
//
//	machine ─▶ concerns (one file each) ─▶ scores of a placement
//	        ─▶ counted: cores, L2s, LLCs, nodes in use ─▶ plans of a node (tree.go, plan.go)
//	        ─▶ joint: interconnect, devices            ─▶ weights of nodes and pairs
//	packings of the nodes by blocks, the dominated ones dropped (pack.go, label.go)
//	        ─▶ each block of a surviving packing × each plan = a Placement (important.go)
//
// Placements with equal scores are taken to perform alike. Packings are counted up to
// the symmetry of the machine (symmetry.go), so that large regular machines are exact.
//
// It is NOT for: predicting what a placement brings (model), binding (action), or
// measuring links (bench; a profile's bandwidths come in as a table).
package placement
