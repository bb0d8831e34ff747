// SPDX-License-Identifier: Apache-2.0

// Package hotness finds which pages of processes were accessed recently. It uses whatever
// source the kernel has, and reports which.
//
//	PMU samples ─▶ DAMON ─▶ idle page tracking ─▶ referenced bits: the first that works
//	     │            │              │                   │
//	   a page      a region        a page             a mapping     … the smallest unit
//	     └────────────┴──────┬───────┴───────────────────┘
//	                         ▼
//	  addresses ──widened to huge pages, cut to mappings──▶ Pages: sorted spans by process
//
// The limits of each source:
//
//   - PMU samples see user mode only, and say nothing about a page that no sample hit.
//     The number of accesses to such pages is estimated, and reported in a note.
//   - DAMON checks one page of a region and takes it for the whole. It is used only where
//     no other process has set it up.
//   - Idle page tracking misses pages that are on no LRU list (hugetlbfs, or pages that
//     were just made) and pages that came or were moved during the search.
//   - Referenced bits are known for a mapping as a whole, and clearing them makes reclaim
//     forget what was used.
//
// All but samples use accessed bits, which the kernel clears without flushing TLBs: pages
// that stay in a TLB look unused (tlbNote).
//
// Where a mapping has transparent huge pages, a hit heats the aligned 2 MiB around it,
// also where these happen to be small pages: smaps does not show which are huge.
//
// It is NOT for: moving them (migrate).
package hotness
