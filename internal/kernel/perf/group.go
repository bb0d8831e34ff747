// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// Config says how to count.
type Config struct {
	Table    Table
	Fields   []Field // to count, in the order to open them in; nil = WindowFields
	UserOnly bool    // default: user and kernel mode together
}

// Meter opens groups and limits the number of open files.
type Meter struct {
	calls  unix.Perf
	cfg    Config
	lists  [][]Event // the table's, Fewer
	limit  int       // descriptors we may hold
	open   int
	words  []uint64 // one read: count, enabled, running, values
	deltas []reading
}

// spareFiles are left for everything else of the process: files kept open,
// sockets, the journal.
const spareFiles = 256

// NewMeter prepares to count; limit is the process's limit of open files.
func NewMeter(calls unix.Perf, cfg Config, limit uint64) *Meter {
	if cfg.Fields != nil {
		cfg.Table = cfg.Table.With(cfg.Fields)
	}
	most := max(len(cfg.Table.Events), len(Generic().Events)) + 1 // and the clock
	return &Meter{calls: calls, cfg: cfg, lists: cfg.Table.Fewer(), limit: int(min(limit, 1<<30)) - spareFiles, words: make([]uint64, 3+most)}
}

// choices are the table's events, then fewer and fewer. Without clock, cpuacct gives the
// CPU time by CPU.
func (m *Meter) choices(clock bool) [][]Event {
	all := make([][]Event, len(m.lists))
	for i, list := range m.lists {
		if all[i] = slices.Clone(list); clock {
			all[i] = append(all[i], taskClock)
		}
	}
	return all
}

// Table is the table that is used for counting.
func (m *Meter) Table() Table { return m.cfg.Table }

// Group counts one cgroup.
type Group struct {
	m      *Meter
	events []Event
	cpus   []cpuGroup
	at     time.Duration // of the last read, on the caller's clock
	primed bool
}

// cpuGroup is the events of a cgroup on one CPU; the leader is read for all.
type cpuGroup struct {
	cpu  int
	fds  []int
	last reading
}

type reading struct {
	enabled, running uint64 // ns
	value            [nFields]uint64
}

// ErrNoEvents means that this PMU could count none of the events.
var ErrNoEvents error = unix.Unsupported("no event to count")

// Open starts counting the cgroup whose directory is dir, on these CPUs. A CPU
// that went offline is left out. On error nothing stays open.
//
// A PMU that does not know the table's events (ENOENT, EOPNOTSUPP: a VM without a PMU, or
// with half of one) may know the generic ones, and the kernel always has task-clock: the
// first list that opens is taken.
func (m *Meter) Open(dir string, cpus []int, clock bool) (*Group, error) {
	dirFD, err := m.calls.OpenDir(dir)
	if err != nil {
		return nil, unix.Explain("open", dir, "", err)
	}
	defer m.calls.Close(dirFD)
	for _, events := range m.choices(clock) {
		g, err1 := m.openEvents(dirFD, cpus, events)
		if err1 == nil {
			return g, nil
		}
		if errors.Is(err1, ErrNoEvents) && err != nil {
			break // why there is none was said by the list before
		}
		if err = err1; !noPMU(err) {
			break
		}
	}
	return nil, err
}

// noPMU reports that the PMU cannot count an event. ENXIO: the register that the event
// needs is not there (x86_pmu_extra_regs in arch/x86/events/core.c; a guest, mostly).
func noPMU(err error) bool {
	return errors.Is(err, sys.ENOENT) || errors.Is(err, sys.EOPNOTSUPP) || errors.Is(err, sys.EINVAL) || errors.Is(err, sys.ENXIO)
}

func (m *Meter) openEvents(dirFD int, cpus []int, events []Event) (*Group, error) {
	if len(events) == 0 {
		return nil, ErrNoEvents
	}
	if need := m.open + len(cpus)*len(events); need > m.limit {
		return nil, fmt.Errorf("open perf events: %w: %d descriptors are needed and %d allowed: raise LimitNOFILE (ulimit -n)", sys.EMFILE, need+spareFiles, m.limit+spareFiles)
	}
	g := &Group{m: m, events: events}
	for _, cpu := range cpus {
		if err := g.openCPU(dirFD, cpu); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

func (g *Group) openCPU(dirFD, cpu int) error {
	g.cpus = append(g.cpus, cpuGroup{cpu: cpu})
	c := &g.cpus[len(g.cpus)-1]
	leader := -1
	for _, e := range g.events {
		attr := Attr(e, g.m.cfg.UserOnly)
		fd, err := g.m.calls.Open(&attr, dirFD, cpu, leader)
		if errors.Is(err, sys.ENODEV) && leader < 0 {
			g.cpus = g.cpus[:len(g.cpus)-1] // offline
			return nil
		}
		if err != nil {
			return unix.Explain("open", fmt.Sprintf("%s on cpu %d", e.Name(), cpu), unix.PerfNeeds(), err)
		}
		g.m.open++
		c.fds = append(c.fds, fd)
		leader = c.fds[0]
	}
	return nil
}

// Attr describes one event. Groups are read through their leader, in order.
func Attr(e Event, userOnly bool) sys.PerfEventAttr {
	a := sys.PerfEventAttr{
		Type: e.Type, Config: e.Config, Ext1: e.Config1, Size: uint32(unsafe.Sizeof(sys.PerfEventAttr{})),
		Read_format: sys.PERF_FORMAT_GROUP | sys.PERF_FORMAT_TOTAL_TIME_ENABLED | sys.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if userOnly && e.Type != sys.PERF_TYPE_SOFTWARE {
		a.Bits |= sys.PerfBitExcludeKernel | sys.PerfBitExcludeHv
	}
	return a
}

// Close stops counting.
func (g *Group) Close() {
	for _, c := range g.cpus {
		for _, fd := range c.fds {
			g.m.calls.Close(fd)
			g.m.open--
		}
	}
	g.cpus = nil
}

// Events are those that were opened.
func (g *Group) Events() []Event { return g.events }

// Has reports whether the group counts a field.
func (g *Group) Has(f Field) bool { return has(g.events, f) }

// Sample is what happened since the previous read.
type Sample struct {
	OK      bool // false for the first, which is only a base
	Total   [nFields]uint64
	Scaled  float64       // 1, or the factor that a part of the counts was scaled by
	Doubt   bool          // no time of any group was believable: scaling is unknown
	ByCPU   []CPUClock    // Clock by CPU
	Lost    float64       // share of the time in which the PMU had no room at all for a group
	Elapsed time.Duration // the period these deltas are of
	Sampled bool          // counted in a part of the time, and scaled by ScaleBy
}

// ScaleBy scales what was counted in a part of the time to all of it.
func (s *Sample) ScaleBy(by float64) {
	s.Sampled = true
	for f := range s.Total {
		s.Total[f] = scaled(s.Total[f], by)
	}
	for i := range s.ByCPU {
		s.ByCPU[i].Time = time.Duration(float64(s.ByCPU[i].Time) * by)
	}
}

// CPUClock is the time one CPU spent on the cgroup.
type CPUClock struct {
	CPU  int
	Time time.Duration
}

// Read takes a sample; now is any monotonic clock. byCPU is reused.
func (g *Group) Read(now time.Duration, byCPU []CPUClock) (Sample, error) {
	g.m.deltas = slices.Grow(g.m.deltas[:0], len(g.cpus))[:len(g.cpus)]
	deltas := g.m.deltas
	for i := range g.cpus {
		r, err := g.readCPU(&g.cpus[i])
		if err != nil {
			return Sample{}, unix.Explain("read", fmt.Sprintf("perf events on cpu %d", g.cpus[i].cpu), "", err)
		}
		deltas[i] = r.minus(g.cpus[i].last)
		g.cpus[i].last = r
	}
	elapsed, primed := now-g.at, g.primed
	g.at, g.primed = now, true
	if !primed {
		return Sample{}, nil
	}
	return g.sum(deltas, elapsed, byCPU[:0]), nil
}

func (g *Group) readCPU(c *cpuGroup) (reading, error) {
	words := g.m.words[:3+len(g.events)]
	n, err := g.m.calls.Read(c.fds[0], words)
	if err != nil {
		return reading{}, err
	}
	if n < len(words) || words[0] != uint64(len(g.events)) {
		return reading{}, fmt.Errorf("%w: %d of %d words", unix.ErrMalformed, n, len(words))
	}
	r := reading{enabled: words[1], running: words[2]}
	for i, e := range g.events {
		r.value[e.Field] += words[3+i] // a field can be the sum of several events
	}
	return r, nil
}

// minus never goes below zero: a counter that went back was reset.
func (r reading) minus(o reading) (d reading) {
	sub := func(a, b uint64) uint64 {
		if a < b {
			return 0
		}
		return a - b
	}
	d.enabled, d.running = sub(r.enabled, o.enabled), sub(r.running, o.running)
	for f := range r.value {
		d.value[f] = sub(r.value[f], o.value[f])
	}
	return d
}

// sum adds the CPUs up.
//
//  1. A delta of time_enabled longer than the period is the garbage of a first sample: it
//     is not believed.
//  2. A believable CPU's counts are scaled by its own enabled / running.
//  3. The counts of other CPUs are scaled by the joint ratio of the believable ones.
func (g *Group) sum(deltas []reading, elapsed time.Duration, byCPU []CPUClock) Sample {
	s := Sample{OK: true, Elapsed: elapsed, ByCPU: byCPU, Scaled: 1}
	all, lost := together(deltas, elapsed)
	if all.enabled > 0 {
		s.Lost = float64(lost) / float64(all.enabled)
	}
	for i, d := range deltas {
		scale := d.scale()
		if !d.believable(elapsed) { // (1)
			scale = all.scale() // (3)
			s.Doubt = s.Doubt || all.running == 0 && d.any()
		}
		if d.any() {
			s.Scaled = max(s.Scaled, scale)
		}
		for f, v := range d.value {
			s.Total[f] += scaled(v, scale) // (2)
		}
		if g.Has(Clock) {
			s.ByCPU = append(s.ByCPU, CPUClock{g.cpus[i].cpu, time.Duration(scaled(d.value[Clock], scale))})
		}
	}
	return s
}

// together adds up the believable times, and those in which nothing ran.
func together(deltas []reading, elapsed time.Duration) (all reading, lost uint64) {
	for _, d := range deltas {
		if !d.believable(elapsed) {
			continue
		}
		all.enabled += d.enabled
		all.running += d.running
		if d.running == 0 {
			lost += d.enabled
		}
	}
	return all, lost
}

// believable allows an eighth and 20 ms for reads that were late.
func (d reading) believable(elapsed time.Duration) bool {
	return time.Duration(d.enabled) <= elapsed+elapsed/8+20*time.Millisecond && d.running <= d.enabled
}

// scale is exactly 1 while nothing was multiplexed: a difference of up to 0.1 % comes
// from the order in which the kernel takes its two times.
func (d reading) scale() float64 {
	if d.running == 0 || d.enabled <= d.running+d.running/1000 {
		return 1
	}
	return float64(d.enabled) / float64(d.running)
}

func (d reading) any() bool { return d.value != [nFields]uint64{} }

func scaled(v uint64, by float64) uint64 {
	if by == 1 {
		return v
	}
	return uint64(float64(v)*by + 0.5)
}
