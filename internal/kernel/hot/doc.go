// SPDX-License-Identifier: Apache-2.0

// Package hot finds which pages of processes were accessed recently, by whatever the
// kernel has for that, and says which it was.
//
//	PMU samples ─▶ DAMON ─▶ idle page tracking ─▶ referenced bits: the first that works
//	     │            │              │                   │
//	   a page      a region        a page             a mapping     … what can be told apart
//	     └────────────┴──────┬───────┴───────────────────┘
//	                         ▼
//	  addresses ──widened to huge pages, cut to mappings──▶ Pages: sorted spans by process
//
// What each of them cannot do:
//
//   - PMU samples see user mode only, and say nothing of a page that no sample hit;
//     how much went to such pages is estimated, and told in a note.
//   - DAMON looks at one page of a region and takes it for the whole; it is used only
//     where nobody else has set it up.
//   - Idle page tracking misses pages that are on no LRU list (hugetlbfs, such as were
//     just made) and such as came or were moved while it looked.
//   - Referenced bits are known for a mapping as a whole, and clearing them makes
//     reclaim forget what was used.
//
// All but samples go by accessed bits, which the kernel clears without flushing TLBs:
// what stays in them looks unused (tlbNote).
//
// Where a mapping has transparent huge pages, a hit heats the aligned 2 MiB around
// it, also where these happen to be small pages: smaps does not say which are huge.
//
// It is NOT for: moving them (migrate).
package hot
