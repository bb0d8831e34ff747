// SPDX-License-Identifier: Apache-2.0

// Package sampling samples memory accesses: every n-th load that takes long enough,
// every n-th store, with its data address, its instruction and where it hit.
//
//	cgroup | threads | all ──Open──▶ Sampler{CPU or thread × loads, stores}
//	   table: lab | intel              │ Collect: enable, empty the rings, disable
//	                                   ▼
//	                     bytes ──parse──▶ Access, Access, …
//
// Samples cost the sampled program an interrupt each, or one for a few: the period
// bounds that. A sampler samples only while Collect runs.
//
// Samples may mean less than they seem to: Intel knows of a store only whether it hit
// L1 (Level is Unknown otherwise), selects loads at random, and gives a latency that
// includes waiting for older loads. Table.How marks what comes from a model.
//
// It is NOT for: counting (package perf), or finding the mapping or function of an
// address.
package sampling
