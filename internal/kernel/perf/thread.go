// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"slices"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// ThreadField is what an event of a thread means. These are other fields than a
// window's: a probe wants the terms of the uncore penalty, not what is remote.
type ThreadField int

// Fields of a thread's counts, in the order they are opened.
const (
	ThreadCycles ThreadField = iota
	ThreadInstructions
	ThreadL2Misses
	ThreadLLCMisses
	ThreadRequests    // that leave the private caches: A of the uncore penalty
	ThreadOutstanding // of these, summed over cycles: O
	ThreadCritical    // cycles with at least one: W
	nThreadFields
)

var threadFieldNames = [...]string{"cycles", "instructions", "L2 misses", "LLC misses", "uncore requests", "outstanding requests", "cycles with a request outstanding"}

// String is "LLC misses".
func (f ThreadField) String() string { return threadFieldNames[f] }

// ThreadEvent is one entry of a thread's table.
type ThreadEvent struct {
	Field  ThreadField
	Type   uint32 // perf_event_attr.type
	Config uint64
	Doc    string
}

// ThreadTable says which events a kind of CPU has for a thread's fields.
type ThreadTable struct {
	Name   string
	How    unit.Source
	Events []ThreadEvent
	Note   string
}

var threadGeneric = []ThreadEvent{
	{ThreadCycles, sys.PERF_TYPE_HARDWARE, sys.PERF_COUNT_HW_CPU_CYCLES, cycles.Doc},
	{ThreadInstructions, sys.PERF_TYPE_HARDWARE, sys.PERF_COUNT_HW_INSTRUCTIONS, instructions.Doc},
}

// threadTable adds the raw events of the other fields, in their order; 0 is one
// that this kind of CPU has not.
func threadTable(name string, how unit.Source, note, doc string, configs ...uint64) ThreadTable {
	t := ThreadTable{Name: name, How: how, Note: note, Events: slices.Clone(threadGeneric)}
	for i, c := range configs {
		if c != 0 {
			t.Events = append(t.Events, ThreadEvent{ThreadL2Misses + ThreadField(i), sys.PERF_TYPE_RAW, c, doc})
		}
	}
	return t
}

// oneOrMore is cmask=1: it turns a sum over cycles into cycles with at least one.
const oneOrMore = 1 << 24

// Tables of threads. Intel's codes are those of intel/perfmon and of
// tools/perf/pmu-events of Linux. The uncore terms of real CPUs are of data reads
// only: requests for ownership have no event of this kind on all of them.
var (
	threadLab = threadTable("lab", unit.HowModelled, "", "lab/include/homenode_lab.h, HOMENODE_EV_…",
		0x10d1, 0x412e, 0x80b0, 0x0860, oneOrMore|0x0860)
	// L2_RQSTS.MISS (0x3f24) is not supported on Ice Lake-SP: L2_RQSTS.ALL_DEMAND_MISS
	// is on all of them, and leaves the prefetchers' misses out.
	threadSKX = threadTable("intel-skx", unit.HowMeasured, "never run on hardware",
		"L2_RQSTS.ALL_DEMAND_MISS, LONGEST_LAT_CACHE.MISS, OFFCORE_REQUESTS.ALL_REQUESTS, OFFCORE_REQUESTS_OUTSTANDING.ALL_DATA_RD, the same with cmask 1",
		0x2724, 0x412e, 0x80b0, 0x0860, oneOrMore|0x0860)
	threadSPR = threadTable("intel-spr", unit.HowMeasured, "never run on hardware",
		"L2_RQSTS.ALL_DEMAND_MISS, LONGEST_LAT_CACHE.MISS, OFFCORE_REQUESTS.ALL_REQUESTS, OFFCORE_REQUESTS_OUTSTANDING.DATA_RD, the same with cmask 1",
		0x2724, 0x412e, 0x8021, 0x0820, oneOrMore|0x0820)
	threadAny = threadTable("generic", unit.HowMeasured, "", "")
)

// DetectThread picks a thread's table for the CPUs below root, as Detect does.
func DetectThread(root unix.Root) ThreadTable { return threadTableFor(Detect(root)) }

func threadTableFor(t Table) ThreadTable {
	for _, tt := range []ThreadTable{threadLab, threadSKX, threadSPR} {
		if tt.Name == t.Name {
			return tt
		}
	}
	return threadAny
}

// ThreadGroup counts one thread in user mode. Each event is opened for itself: a
// group would not run at all on a PMU with fewer counters than it has events.
type ThreadGroup struct {
	calls  unix.Sampling
	live   bool
	events []threadCount
}

type threadCount struct {
	field ThreadField
	fd    int
	at    [2][3]uint64 // value, enabled, running at Start and Stop
	seen  [2]bool
}

// OpenThread starts to count the calling thread, which the caller has locked. What
// cannot be opened stays unknown; problems say why, a sentence each.
func OpenThread(calls unix.Sampling, table ThreadTable) (*ThreadGroup, []error) {
	_, live := calls.(unix.LivePerf)
	g := &ThreadGroup{calls: calls, live: live}
	var problems []error
	for _, e := range table.Events {
		attr := sys.PerfEventAttr{
			Type: e.Type, Config: e.Config, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
			Read_format: sys.PERF_FORMAT_TOTAL_TIME_ENABLED | sys.PERF_FORMAT_TOTAL_TIME_RUNNING,
			Bits:        sys.PerfBitExcludeKernel | sys.PerfBitExcludeHv,
		}
		fd, err := calls.OpenTask(&attr, 0, -1)
		if err != nil {
			what := fmt.Sprintf("event %s (type %d, %#x) of a thread", e.Field, e.Type, e.Config)
			problems = append(problems, unix.Explain("open", what, "CAP_PERFMON, or kernel.perf_event_paranoid of 2 or less", err))
			continue
		}
		g.events = append(g.events, threadCount{field: e.Field, fd: fd})
	}
	return g, problems
}

// Start and Stop read all counters; nothing is allocated, and Go's scheduler is not
// let in: what it does to switch threads would be counted.
//
//go:nosplit
func (g *ThreadGroup) Start() { g.read(0) }

// Stop ends what Counts tells of. Counting goes on.
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

// ThreadCounts are by ThreadField, between Start and Stop. Where an event shared
// its counter with others, its count is scaled by enabled / running; one that did
// not run at all is unknown.
type ThreadCounts [nThreadFields]unit.Opt[float64]

// Counts is what was counted between the last Start and Stop.
func (g *ThreadGroup) Counts() (c ThreadCounts) {
	for _, e := range g.events {
		if !e.seen[0] || !e.seen[1] {
			continue
		}
		if n, ran := scaledCount(e.at[1], e.at[0]); ran {
			c[e.field] = unit.Some(float64(n))
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
