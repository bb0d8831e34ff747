// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"slices"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// TaskFields are what a TaskMeter counts of a thread, in the order their events are
// opened. The terms of the uncore penalty come before what a PMU with few counters can do
// without.
var TaskFields = [...]Field{Cycles, Instructions, UncoreRequests, UncoreWaits, LocalLoads, RemoteLoads}

// Lengths of the part of TaskFields that such a PMU counts.
const (
	withoutLoads   = 4
	withoutPenalty = 2
)

// maxTaskEvents is room for fields that are sums: no table has more (TestTaskEventsFit).
const maxTaskEvents = 12

// taskEvents are those of a table for threads, in the order of fields. Requests alone say
// nothing about the uncore penalty: without waits they are left out.
func taskEvents(t Table) []Event {
	all := t.With(TaskFields[:]).Events
	if !has(all, UncoreWaits) {
		all = slices.DeleteFunc(all, func(e Event) bool { return e.Field == UncoreRequests })
	}
	return all
}

// TaskMeter counts threads one by one, each by one group of events, which one system call
// reads. The kernel refuses a group that the PMU can never hold (validate_group in
// arch/x86/events/core.c): then the meter uses fewer events.
type TaskMeter struct {
	calls   unix.Tasks
	cfg     Config
	choices [][]Event
	first   int // the choices before it were refused already
	limit   int
	beside  int // files of each thread that its reader keeps open beside its events
	open    int // with those
	words   [3 + maxTaskEvents]uint64
	from    [nFields]string // where a figure comes from
}

// NewTaskMeter prepares to count. limit is the process's limit of open files, beside the
// number of files that the reader keeps open for each counted thread.
func NewTaskMeter(calls unix.Tasks, cfg Config, limit uint64, beside int) *TaskMeter {
	m := &TaskMeter{calls: calls, cfg: cfg, beside: beside, limit: int(min(limit, 1<<30)) - spareFiles}
	plain := cfg.Table
	plain.plain = true
	all := taskEvents(plain)
	m.choices = [][]Event{taskEvents(cfg.Table)}
	for _, n := range []int{len(TaskFields), withoutLoads, withoutPenalty} {
		some := slices.DeleteFunc(slices.Clone(all), func(e Event) bool { return !slices.Contains(TaskFields[:n], e.Field) })
		if !slices.Equal(some, m.choices[len(m.choices)-1]) {
			m.choices = append(m.choices, some)
		}
	}
	m.name()
	return m
}

// name says where the figures of the present choice come from.
func (m *TaskMeter) name() {
	for _, f := range TaskFields {
		_, m.from[f] = m.cfg.Table.SourceOf(m.choices[m.first], f)
	}
}

// TaskGroup counts one thread.
type TaskGroup struct {
	fds    []int
	events []Event
	last   [3 + maxTaskEvents]uint64
	primed bool
}

// Open starts to count a thread. On error nothing stays open.
func (m *TaskMeter) Open(tid int) (*TaskGroup, error) {
	for {
		g, err := m.openEvents(tid, m.choices[m.first])
		if err == nil || !noPMU(err) || m.first == len(m.choices)-1 {
			return g, err
		}
		m.first++
		m.name()
	}
}

func (m *TaskMeter) openEvents(tid int, events []Event) (*TaskGroup, error) {
	if need := m.open + len(events) + m.beside; need > m.limit {
		return nil, fmt.Errorf("open perf events of thread %d: %w: %d descriptors are needed and %d allowed: raise LimitNOFILE (ulimit -n)", tid, sys.EMFILE, need+spareFiles, m.limit+spareFiles)
	}
	g := &TaskGroup{events: events}
	m.open += m.beside
	leader := -1
	for _, e := range events {
		attr := Attr(e, m.cfg.UserOnly)
		fd, err := m.calls.OpenInGroup(&attr, tid, leader)
		if err != nil {
			m.Close(g)
			if noPMU(err) {
				return nil, fmt.Errorf("open %s of thread %d: %w: this machine, or this guest, has no such counter (%w)", e.Name(), tid, err, unix.ErrNotSupported)
			}
			return nil, unix.Explain("open", fmt.Sprintf("%s of thread %d", e.Name(), tid), unix.PerfNeeds()+", or to be its user and kernel.perf_event_paranoid of 1 or less (2 where only user mode is counted)", err)
		}
		m.open++
		g.fds = append(g.fds, fd)
		leader = g.fds[0]
	}
	return g, nil
}

// Close stops counting; a second one does nothing.
func (m *TaskMeter) Close(g *TaskGroup) {
	if g.events == nil {
		return
	}
	for _, fd := range g.fds {
		m.calls.Close(fd)
	}
	m.open -= len(g.fds) + m.beside
	g.fds, g.events = nil, nil
}

// TaskSample is what a thread did since the previous read.
type TaskSample struct {
	OK bool // false for the first, which is only a base
	// Time is what it was on a CPU: time_enabled goes on only while it is
	// (__perf_update_times in kernel/events/core.c; the context of a thread is in only then).
	Time   time.Duration
	Lost   bool // it ran, and the PMU had no room for its events at all
	Scaled bool // it had room a part of the time: counts are scaled
	has    [nFields]bool
	value  [nFields]uint64
}

// Read takes a sample and allocates nothing. An error means the thread's end, or that a
// PMU gave up on it.
func (m *TaskMeter) Read(g *TaskGroup, s *TaskSample) error {
	*s = TaskSample{}
	words := m.words[:3+len(g.events)]
	n, err := m.calls.Read(g.fds[0], words)
	if err != nil {
		return unix.Explain("read", "perf events of a thread", "", err)
	}
	if n < len(words) || words[0] != uint64(len(g.events)) {
		return fmt.Errorf("read perf events of a thread: fewer words than events (%w)", unix.ErrMalformed)
	}
	primed := g.primed
	last := g.last
	copy(g.last[:], words)
	if g.primed = true; primed {
		s.since(g.events, words, last[:])
	}
	return nil
}

// since makes deltas. A counter that went back was reset: then there is none.
func (s *TaskSample) since(events []Event, now, last []uint64) {
	for i := 1; i < len(now); i++ {
		if now[i] < last[i] {
			return
		}
	}
	d := reading{enabled: now[1] - last[1], running: now[2] - last[2]}
	s.OK, s.Time = true, time.Duration(d.enabled)
	s.Lost = d.running == 0 && d.enabled > 0
	scale := d.scale()
	s.Scaled = scale > 1
	for i, e := range events {
		s.has[e.Field] = !s.Lost
		s.value[e.Field] += scaled(now[3+i]-last[3+i], scale)
	}
}

// The reasons why a count is not there.
const (
	taskFirst  = "no earlier reading of this thread"
	taskLost   = "the PMU had no room for this thread's events"
	taskScaled = "perf, multiplexed and scaled"
)

// Value is a field's count, and how it is known.
func (m *TaskMeter) Value(s *TaskSample, f Field) unit.Value[uint64] {
	switch {
	case !s.OK:
		return unit.UnknownValue[uint64](taskFirst)
	case s.Lost:
		return unit.UnknownValue[uint64](taskLost)
	case !s.has[f]:
		return unit.UnknownValue[uint64](m.WhyNot(f))
	case s.Scaled:
		return unit.Value[uint64]{V: unit.Some(m.cfg.Table.Lines(f, s.value[f])), How: unit.HowEstimated, From: taskScaled}
	}
	return unit.Value[uint64]{V: unit.Some(m.cfg.Table.Lines(f, s.value[f])), How: m.cfg.Table.How, From: m.from[f]}
}

// WhyNot is the reason why a field is not counted; "" where it is.
func (m *TaskMeter) WhyNot(f Field) string {
	switch {
	case has(m.choices[m.first], f):
		return ""
	case has(m.choices[0], f):
		return "the PMU does not have this event, or no room for it beside the others"
	}
	if known := m.cfg.Table.Known; known != nil && known.Name != event.GenericName {
		for _, name := range []event.Field{fieldEvents[f], event.UncoreWaits} { // without waits no requests
			if _, why, ok := known.Best(name); !ok {
				return noEventInTable + ": " + why
			}
		}
	}
	return noEventInTable
}

const noEventInTable = "no such event is known for this kind of CPU"

// Usable returns why the uncore penalty of threads cannot be counted here; nil where it
// can, as far as is known before a thread is opened.
func (m *TaskMeter) Usable() error {
	for _, f := range []Field{UncoreRequests, UncoreWaits} {
		if why := m.WhyNot(f); why != "" {
			return Need(fmt.Errorf("%s (event table %q, %w)", why, m.cfg.Table.Name, unix.ErrNotSupported))
		}
	}
	return nil
}

// Need says what the uncore penalty needs, and why that is missing.
func Need(why error) error {
	return fmt.Errorf("count uncore requests, and the cycles that wait for them: it takes perf events OFFCORE_REQUESTS and OFFCORE_REQUESTS_OUTSTANDING of an Intel server, or the lab's: %w", why)
}

// Table is the table that is used for counting.
func (m *TaskMeter) Table() Table { return m.cfg.Table }
