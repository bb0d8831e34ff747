// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"time"

	"homenode/internal/kernel/bpfcount"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// How events are counted: Config.Events. The zero value is EventsPerf.
const (
	EventsAuto = "auto" // by BPF where that works, else by perf's groups
	EventsPerf = "perf" // a group of events for each cgroup and CPU
	EventsBPF  = "bpf"  // by BPF or not at all
	EventsOff  = "off"
)

// Why a workload is not counted.
const (
	notItsTurn      = "not its turn to be counted: the budget of descriptors is less than all workloads' events"
	notOnThisPMU    = ": not counted on this PMU"
	otherPerfCgroup = "its processes are in another cgroup of the perf_event hierarchy"
)

// eventCollector counts events of the PMU and, if there is no exact source, CPU time by
// CPU: by BPF (collect_events_bpf.go), or by a group of perf events for each cgroup and
// CPU (collect_events_perf.go).
type eventCollector struct {
	base
	bpfCounting
	perfCounting
	cfg    Config
	host   *host
	of     map[string]*eventSensor
	fields int         // so many of eventFields
	meter  *perf.Meter // nil: why says why
	why    string
	start  time.Time
}

// eventSensor is a collector's sensor of one workload.
type eventSensor struct {
	c      *eventCollector
	w      *workload
	clocks []perf.CPUClock
	why    string // it is not counted
	group  *perf.Group
	failed bool // group could not be opened
	slot   bpfcount.Slot
	partly bool // not all of its cgroups are counted in slot
}

// newEventCollector prepares perf, or notes why there is none.
func newEventCollector(h *host, cfg Config) *eventCollector {
	c := &eventCollector{cfg: cfg, host: h, of: map[string]*eventSensor{}, fields: withoutPenalty, start: h.now()}
	if cfg.Penalty {
		c.fields = len(eventFields)
	}
	calls := cfg.Perf
	if calls == nil && h.live() {
		calls = unix.LivePerf{}
	}
	switch {
	case cfg.NoPerf, cfg.Events == EventsOff:
		c.why = "perf is switched off"
	case calls == nil:
		c.why = "no perf on a recorded tree"
	case !h.layout.Perf.Present():
		c.why = "no cgroup hierarchy has perf_event"
	default:
		c.openMeter(calls)
	}
	return c
}

func (c *eventCollector) openMeter(calls unix.Perf) {
	limit, err := unix.RaiseFileLimit()
	c.host.problem(err)
	cfg := perf.Config{Table: perf.Detect(c.host.root).On(c.host.topology.Machine), UserOnly: c.cfg.UserOnly}
	if c.cfg.Penalty {
		cfg.Table = cfg.Table.WithPenalty()
	}
	c.meter = perf.NewMeter(calls, cfg, limit)
	if c.budget = c.cfg.Budget; c.budget == (perf.Budget{}) {
		c.budget = perf.DefaultBudget(limit)
	}
}

// table is the name of the counters' event table; "" when nothing is counted.
func (c *eventCollector) table() string {
	if c.meter == nil {
		return ""
	}
	return c.meter.Table().Name
}

// whyNot says why reads of memory would not be counted for any workload; "" if they would.
// It opens the events of the root cgroup on one CPU, and closes them.
func (c *eventCollector) whyNot() string {
	if c.meter == nil {
		return c.why
	}
	counts := c.bpf != nil && c.bpf.Has(perf.LocalLoads)
	if c.bpf == nil {
		cpus := c.host.topology.Machine.OnlineCPUs().IDs()
		g, err := c.meter.Open(c.host.layout.Path(c.host.layout.Perf, "/", ""), cpus[:min(1, len(cpus))], false)
		if err != nil {
			return err.Error()
		}
		counts = g.Has(perf.LocalLoads)
		g.Close()
	}
	if counts {
		return ""
	}
	_, from := c.meter.Table().Source(perf.LocalLoads)
	return from + notOnThisPMU
}

func (c *eventCollector) attach(w *workload) sensor {
	c.of[w.ID] = &eventSensor{c: c, w: w}
	return c.of[w.ID]
}

func (c *eventCollector) forget(id string) {
	s := c.of[id]
	delete(c.of, id)
	s.closeGroup()
	c.turns.Forget(id)
	if c.bpf != nil && s.slot != 0 {
		c.bpf.Remove(s.slot)
	}
}

func (c *eventCollector) begin(rd *round) error {
	c.followBPF(rd)
	switch {
	case c.bpf != nil:
		return c.bpf.Update()
	case c.meter != nil:
		return c.takeTurns(rd)
	}
	return nil
}

func (c *eventCollector) close() { c.closeBPF() }

func (s *eventSensor) read(rd *round, out *window.Workload) error {
	sample, why := s.sample(rd, out.CPU)
	if sample.OK && s.has(perf.Cycles) && sample.Total[perf.Cycles] == 0 && out.CPU.Or(0) > 0 {
		// A PMU that counted no cycle while CPU time was used is asleep: its zeros are not
		// counts. Its clock is the kernel's.
		s.unknown(rd, out, "the PMU counted no cycle while CPU time was used (is the lab's model off?)")
	} else {
		s.setCounts(out, sample, why)
	}
	if s.has(perf.Clock) && !s.w.perCPUTime() {
		out.CPUByNode = s.cpuByNode(rd, sample)
	}
	return nil
}

func (s *eventSensor) unknown(_ *round, out *window.Workload, why string) {
	for _, f := range eventFields[:s.c.fields] {
		*f.into(out) = unit.UnknownValue[uint64](why)
	}
}

// sample reads the workload's events.
func (s *eventSensor) sample(rd *round, total unit.Value[float64]) (perf.Sample, string) {
	switch {
	case s.c.meter == nil:
		return perf.Sample{}, s.c.why
	case s.c.bpf != nil:
		return s.sampleBPF(rd, total)
	}
	return s.sampleGroup(rd)
}

// NotYetCounted says that a field is unknown only for now, by its reason.
func NotYetCounted(why string) bool { return why == "" || why == firstSample || why == notItsTurn }

const firstSample = "first sample of a counter is only a base"

// has says whether a field of the workload is counted.
func (s *eventSensor) has(f perf.Field) bool {
	if s.c.bpf != nil {
		return s.slot != 0 && s.c.bpf.Has(f)
	}
	return s.group != nil && s.group.Has(f)
}

// events are those that count the workload.
func (s *eventSensor) events() []perf.Event {
	if s.c.bpf != nil {
		return s.c.bpf.Events()
	}
	return s.group.Events()
}

// eventFields are the figures of a window that events count; the last ones only with
// Config.Penalty.
var eventFields = []struct {
	into func(*window.Workload) *unit.Value[uint64]
	from perf.Field
}{
	{func(w *window.Workload) *unit.Value[uint64] { return &w.Cycles }, perf.Cycles},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.Instructions }, perf.Instructions},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.StallCycles }, perf.StallCycles},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.LocalLoads }, perf.LocalLoads},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.RemoteLoads }, perf.RemoteLoads},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.UncoreRequests }, perf.UncoreRequests},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.UncoreWaits }, perf.UncoreWaits},
	{func(w *window.Workload) *unit.Value[uint64] { return &w.LLCMisses }, perf.LLCMisses},
}

const withoutPenalty = 5

// setCounts sets the figures; why is the reason where there is no sample.
func (s *eventSensor) setCounts(out *window.Workload, sample perf.Sample, why string) {
	for _, f := range eventFields[:s.c.fields] {
		into := f.into(out)
		switch {
		case !sample.OK:
			*into = unit.UnknownValue[uint64](why)
		case !s.has(f.from):
			_, from := s.c.meter.Table().Source(f.from)
			*into = unit.UnknownValue[uint64](from + notOnThisPMU)
		default:
			*into = s.count(f.from, sample)
		}
	}
}

// count marks a figure: scaled ones are estimates, from any source.
func (s *eventSensor) count(f perf.Field, sample perf.Sample) unit.Value[uint64] {
	how, from := s.c.meter.Table().SourceOf(s.events(), f)
	switch {
	case sample.Lost > 0.05:
		return unit.UnknownValue[uint64](from + ": the PMU had no room for it in " + unit.Ratio(sample.Lost).String() + " of the time")
	case sample.Sampled:
		how, from = unit.Weakest(how, unit.HowEstimated), from+s.partOf()
	case sample.Scaled > 1:
		how, from = unit.Weakest(how, unit.HowEstimated), from+", multiplexed and scaled"
	case sample.Doubt:
		how, from = unit.Weakest(how, unit.HowEstimated), from+", no believable time to scale by"
	}
	return unit.ValueOf(s.c.meter.Table().Lines(f, sample.Total[f]), how, from)
}

// cpuByNode is the cgroup's clock on each CPU, by node.
func (s *eventSensor) cpuByNode(rd *round, sample perf.Sample) []unit.Value[float64] {
	if !sample.OK || sample.Elapsed <= 0 {
		return unknownByNode[float64](rd.nodeCount(), firstWindow)
	}
	by := rd.newPerNode(sample.Elapsed)
	for _, c := range sample.ByCPU {
		by.addTime(c.CPU, c.Time)
	}
	how, from := s.c.meter.Table().Source(perf.Clock)
	if s.c.bpf != nil {
		from = "clock at context switches (BPF)"
	}
	if sample.Sampled {
		how = unit.HowEstimated
	} else if sample.Scaled > 1 {
		how, from = unit.HowEstimated, from+", multiplexed and scaled"
	}
	return values(by.cpus, how, from)
}
