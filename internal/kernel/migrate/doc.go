// SPDX-License-Identifier: Apache-2.0

// Package migrate moves pages that already exist to another node: of processes, and of
// the files that they have. It holds a rate and the length of each call, and remembers
// where it stopped.
//
//	numa_maps, maps: mappings with pages elsewhere ─▶ pagemap: present? ─▶ move_pages(query): where?
//	kernel/pagecache: cached pages, mapped here ──────────────────────────────▲        │
//	    workers ◀─ batches as long as max-stall and rate allow ◀───────────────────────┘
//	       └─▶ move_pages ─▶ each page: moved, gone, or failed for a reason
//
// Position is kept by process until the pass is complete. It is NOT for: deciding what
// to move, or freezing who uses it.
package migrate
