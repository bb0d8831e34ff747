// SPDX-License-Identifier: Apache-2.0

// Package topology shows a machine to people and programs: text for a terminal,
// JSON with a documented shape (docs/topo-json.md), and a picture for a ticket.
//
//	machine.Machine ──▶ clean ──▶ facts (what all faces say alike) ──▶ Text
//	                                   ├──▶ document ───────────────▶ JSON
//	                                   └──▶ boxes (geometry) ───────▶ SVG
//
// What is unknown is said to be unknown: null in JSON, "unknown" where a person
// reads, and never 0.
//
// It is NOT for: reading machines (machine, kernel), hwloc's XML (machine), or
// what happens on a machine at some moment (window).
package topology
