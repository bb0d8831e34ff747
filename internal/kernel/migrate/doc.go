// SPDX-License-Identifier: Apache-2.0

// Package migrate moves pages that already exist to another node: of processes, and of
// the files that they have. It holds a rate and the length of each call, and remembers
// where it stopped.
//
//	numa_maps, maps: mappings with pages elsewhere ─▶ pagemap: present? its frame: where?
//	kernel/pagecache: cached pages, mapped here ──▶ move_pages(query): where the others are?
//	    lanes, one a process ─▶ workers: batches as long as max-stall and rate allow
//	       └─▶ move_pages ─▶ each page: moved, gone, or failed for a reason
//
// Position is kept until all is done: by process in a pass, and of the files in the
// journey that the processes are on together. It is NOT for: deciding what to move, or
// freezing who uses it.
package migrate
