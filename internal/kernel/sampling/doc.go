// SPDX-License-Identifier: Apache-2.0

// Package sampling samples memory accesses: every n-th load that takes long enough,
// every n-th store, with its data address, its instruction and where it hit. It folds
// them into what a person can act on: which mapping, which function, which cache lines
// several nodes write.
//
//	cgroup | threads | all ──Open──▶ Sampler{CPU or thread × loads, stores}
//	   table: lab | intel | amd-ibs | arm-spe
//	                                   │ Collect: enable, empty the rings, disable
//	                                   ▼
//	           ring's bytes ──parse──▶ Access, Access, …
//	SPE: trace + ring ──trace.take──▶ Access, Access, …
//	                                   │ Add
//	Space: /proc/PID/maps, symbols ──▶ Folder{places by mapping, cache lines} ──Samples──▶ snapshot.Samples
//
// Samples cost the sampled program an interrupt each, or one for a few: the period
// bounds that. A sampler samples only while Collect runs.
//
// Samples may mean less than they seem to: Intel knows of a store only whether it hit
// L1 (Level is Unknown otherwise), selects loads at random, and gives a latency that
// includes waiting for older loads. AMD's IBS samples operations of all kinds, and those
// that were asked for are kept; its latency is that of L1's misses, and stores have none.
// Arm's SPE does so too, knows no level of stores, and no task: the kernel's records of switches
// tell which one ran.
// Table.How marks what comes from a model.
//
// A function is named from the symbol tables of ELF files:
//
//	/proc/PID/maps: start, file offset ─┐
//	instruction's address ──────────────┴─▶ offset in the file ──symbolTable──▶ "main.lookup"
//
// It is NOT for: counting (package perf), judging (doctor), line numbers, debug
// information, demangling, or code made at run time.
package sampling
