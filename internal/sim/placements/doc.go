// SPDX-License-Identifier: Apache-2.0

// Package placements measures generated workloads in every important placement of a
// simulated machine: the data set that a model of placements learns from (Funston et al.,
// USENIX ATC 2018, §5).
//
//	machine, vCPUs ─placement.Important─▶ placements ┐
//	seed ─catalog.GenerateSharers─▶ workloads ───────┴─▶ one world each ─▶ operations/s, features
//	                                                       noise of the lab ─▶ Row … (Parquet)
//
// It also tries packing (pack.go): queues of such workloads with goals, packed by each policy
// of package packing, and judged in a world where they run at once.
//
//	models without a kind ─▶ predictions of that kind ─packing─▶ who is where ─▶ one world ─▶ goals missed
//
// When it is measured, a workload is alone on the machine, and its memory is where it runs:
// shared memory was touched by all threads (homenode moves memory along).
//
// It is NOT for: which placements matter (placement), what an operation costs (sim/memsys),
// or fitting (python/homenode_model).
package placements
