// SPDX-License-Identifier: Apache-2.0

// Package event holds the event tables as data: the events of a kind of CPU for what a
// window, a thread or an access sample needs, and the list that documents them.
//
//		tables/NAME.json ──Parse──▶ Table{CPUs, Reading{Field, Count{Event + Event…} | Why}, Controllers}
//		/proc/cpuinfo ──▶ CPU ──For──▶ Table ──▶ perf_event_attr type, config, config1
//
//	 1. A table has an entry for every field: ways to count it, the best one first, or
//	    why this CPU cannot tell. Unknown is not zero.
//	 2. A way is a sum of events, mostly of one. There are no differences: two counters
//	    that ran at different times, both scaled, could give less than nothing.
//	 3. An event is written down by its vendor's parts (event, unit mask, counter mask,
//	    config1), and a table's format says which bits of config they are. An event of
//	    POWER is one number, which is config.
//	 4. A way to count reads by node says what local is where a package has several nodes.
//	 5. Events of memory controllers are in the words of sysfs, whose format folder has
//	    their bits.
//
// Every event is checked against its vendor's list: scripts/check-events.py, and
// testdata/vendor.json, which holds what those lists say of the events used here.
//
// It is NOT for: opening events (kernel/perf), or what is computed from counts
// (window/features.go).
package event
