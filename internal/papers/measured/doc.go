// SPDX-License-Identifier: Apache-2.0

// Package measured holds homenode's models against figures that others measured on real
// machines: slowdowns of programs that share a cache, and placements of programs on nodes.
//
//	../shared/facts/measured/*.csv ─▶ Read ─▶ Data ─▶ Classes, Placements, Simulator ─▶ Section ─▶ docs/results/measured.md
//
// A program is always predicted by constants and capacities from the other programs.
//
// It is NOT for: the models (interference, migration, sim/memsys), and not for fitting
// anything to the figures of a single program.
package measured
