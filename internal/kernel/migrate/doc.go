// SPDX-License-Identifier: Apache-2.0

// Package migrate moves pages that already exist to another node, a bounded
// amount at a time, and remembers where it stopped.
//
//	numa_maps: mappings with pages elsewhere ─▶ move_pages(query) ─▶ move_pages(≤ 512)
//	                       └──── position by process, until the pass is complete ───┘
//
// It is NOT for: deciding what to move, page cache that nobody maps, or a bound
// in bytes per second: the caller gives a budget for each window.
package migrate
