// SPDX-License-Identifier: Apache-2.0

// Package lab boots and drives a NUMA machine that exists only in software: a QEMU guest
// with the nodes of a shape, a real Linux kernel, and a modelled memory system
// (lab/plugin) whose counters are read through perf (lab/pmu), and through resctrl
// where that is loaded (lab/resctrl).
//
//	host                                   guest
//	Boot ── qemu ─ plugin ─ shared file ─── BAR 2: model, clock, counters
//	Guest.Run ─── virtio-serial, a frame a line ─── Serve
//	Guest.Fetch ◀── raw disk ─────────────────────── results, with their sum
//
// Measurements in the lab are modelled: counts are exact, cycles are a model's.
// Not for: acting on the machine that the lab runs on.
package lab
