// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// ThreadFields are what a ThreadGroup counts, in the order their events are opened. They
// differ from a window's: a probe needs the terms of the uncore penalty, not remote
// accesses.
var ThreadFields = []Field{Cycles, Instructions, L2Misses, LLCMisses, UncoreRequests, UncoreOutstanding, UncoreWaits}

// ThreadGroup counts one thread in user mode. Each event is opened on its own: a group
// would not run at all on a PMU with fewer counters than events.
type ThreadGroup struct {
	calls   unix.Sampling
	live    bool
	events  []threadCount
	missing [nFields]bool // an event of it could not be opened
}

type threadCount struct {
	field Field
	fd    int
	at    [2][3]uint64 // value, enabled, running at Start and Stop
	seen  [2]bool
}

// OpenThread starts to count the calling thread, which the caller has locked, by a table
// With ThreadFields. What cannot be opened stays unknown; problems say why, a sentence
// each.
func OpenThread(calls unix.Sampling, table Table) (*ThreadGroup, []error) {
	_, live := calls.(unix.LivePerf)
	g := &ThreadGroup{calls: calls, live: live}
	var problems []error
	for _, e := range table.Events {
		attr := sys.PerfEventAttr{
			Type: e.Type, Config: e.Config, Ext1: e.Config1, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
			Read_format: sys.PERF_FORMAT_TOTAL_TIME_ENABLED | sys.PERF_FORMAT_TOTAL_TIME_RUNNING,
			Bits:        sys.PerfBitExcludeKernel | sys.PerfBitExcludeHv,
		}
		fd, err := calls.OpenTask(&attr, 0, -1, -1)
		if err != nil {
			what := fmt.Sprintf("event %s (type %d, %#x) of a thread", e.Field, e.Type, e.Config)
			g.missing[e.Field] = true
			problems = append(problems, unix.Explain("open", what, "CAP_PERFMON, or kernel.perf_event_paranoid of 2 or less", err))
			continue
		}
		g.events = append(g.events, threadCount{field: e.Field, fd: fd})
	}
	return g, problems
}

// Start and Stop read all counters. They allocate nothing and do not let Go's scheduler
// in: what it does to switch threads would be counted.
//
//go:nosplit
func (g *ThreadGroup) Start() { g.read(0) }

// Stop ends the interval of Counts. Counting goes on.
//
//go:nosplit
func (g *ThreadGroup) Stop() { g.read(1) }

//go:nosplit
func (g *ThreadGroup) read(which int) {
	for i := range g.events {
		e := &g.events[i]
		if g.live {
			e.seen[which] = unix.ReadCount(e.fd, &e.at[which])
			continue
		}
		n, err := g.calls.Read(e.fd, e.at[which][:])
		e.seen[which] = err == nil && n == len(e.at[which])
	}
}

// ThreadCounts are by Field, between Start and Stop. Where an event shared
// its counter with others, its count is scaled by enabled / running; one that did
// not run at all is unknown.
type ThreadCounts [nFields]unit.Opt[float64]

// Counts is what was counted between the last Start and Stop.
func (g *ThreadGroup) Counts() (c ThreadCounts) {
	missing := g.missing
	for _, e := range g.events {
		if !e.seen[0] || !e.seen[1] {
			missing[e.field] = true
			continue
		}
		n, ran := scaledCount(e.at[1], e.at[0])
		if missing[e.field] = missing[e.field] || !ran; ran {
			c[e.field] = unit.Some(c[e.field].Or(0) + float64(n))
		}
	}
	for f, m := range missing {
		if m { // a sum that lacks a part
			c[f] = unit.None[float64]()
		}
	}
	return c
}

// Close stops counting.
func (g *ThreadGroup) Close() {
	for _, e := range g.events {
		g.calls.Close(e.fd)
	}
	g.events = nil
}
