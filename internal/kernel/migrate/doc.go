// SPDX-License-Identifier: Apache-2.0

// Package migrate moves existing pages to another node: pages of processes, and of the
// files that they have. It limits the rate and the length of each call, and remembers
// where it stopped.
//
//	numa_maps, maps: mappings with pages elsewhere ─▶ pagemap: present? its frame: where?
//	kernel/pagecache: cached pages, mapped here ──▶ move_pages(query): where the others are?
//	    lanes, one a process ─▶ workers: batches as long as max-stall and rate allow
//	       └─▶ move_pages ─▶ each page: moved, gone, or failed for a reason
//
// The position is kept until all is done: by process in a pass, and for the files in the
// journey that the processes share. It is NOT for: deciding what to move, or freezing the
// processes that use it.
package migrate
