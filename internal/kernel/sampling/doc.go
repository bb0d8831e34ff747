// SPDX-License-Identifier: Apache-2.0

// Package sampling samples memory accesses: every n-th load that takes long enough,
// every n-th store, with its data address, its instruction and where it hit.
//
//	cgroup | threads | all ──Open──▶ Sampler{CPU or thread × loads, stores}
//	   table: lab | intel | amd-ibs    │ Collect: enable, empty the rings, disable
//	                                   ▼
//	                     bytes ──parse──▶ Access, Access, …
//
// Samples cost the sampled an interrupt each, or each few: the period bounds
// that. A sampler samples only while Collect runs.
//
// Where samples mean less than they seem to: Intel knows of a store only whether
// it hit L1 (Level is Unknown otherwise), picks loads at random, and gives a
// latency that includes waiting for older loads. AMD's IBS samples operations of all
// kinds, of which those that were asked for are kept; its latency is that of L1's misses,
// and stores have none. What is a model's is marked so by Table.How.
//
// It is NOT for: counting (package perf), or telling which mapping or function
// an address belongs to.
package sampling
