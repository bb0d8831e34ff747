// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

// Field is what an event means in a window.
type Field int

// The fields, in the order events are opened. Clock is the time a CPU spent on
// the cgroup, in nanoseconds; the kernel's own, not the PMU's. Those after it are
// counted only where they are asked for (Config.Fields), and of threads.
const (
	Cycles Field = iota
	Instructions
	StallCycles
	LocalLoads
	RemoteLoads
	Clock
	L2Misses
	LLCMisses
	UncoreRequests    // that leave the private caches: A of the uncore penalty
	UncoreOutstanding // of these, summed over cycles: O
	UncoreWaits       // cycles with at least one: W
	nFields
)

var fieldNames = [nFields]string{"cycles", "instructions", "stall cycles", "local loads", "remote loads", "CPU time", "L2 misses",
	"LLC misses", "uncore requests", "outstanding requests", "cycles with a request outstanding"}

// String is "LLC misses".
func (f Field) String() string { return fieldNames[f] }

// WindowFields are those that a window has, and MAO's features are made of.
var WindowFields = []Field{Cycles, Instructions, StallCycles, LocalLoads, RemoteLoads}

// fieldEvents are fields as the tables of events call them.
var fieldEvents = map[Field]event.Field{
	Cycles: event.Cycles, Instructions: event.Instructions, StallCycles: event.StallCycles, LocalLoads: event.LocalLoads, RemoteLoads: event.RemoteLoads,
	L2Misses: event.L2Misses, LLCMisses: event.LLCMisses,
	UncoreRequests: event.UncoreRequests, UncoreOutstanding: event.UncoreOutstanding, UncoreWaits: event.UncoreWaits,
}

// Event is one entry of a table. Events of one field are added up.
type Event struct {
	Field   Field
	Type    uint32 // perf_event_attr.type
	Config  uint64
	Config1 uint64     // 0, or of a register beside the counter
	Near    event.Near // of LocalLoads and RemoteLoads: what local means
	Doc     string     // what it counts, and where that is written
}

// Name is how the event is called in a window's sources: "perf r01d3".
func (e Event) Name() string {
	switch {
	case e.Type == sys.PERF_TYPE_RAW:
		return "perf " + event.PerfTerm(e.Config, e.Config1)
	case e.Field == Cycles:
		return "perf cycles"
	case e.Field == Instructions:
		return "perf instructions"
	}
	return "perf task-clock"
}

// Table lists the events of a kind of CPU by field: a choice from an event table
// (homenode/internal/event).
type Table struct {
	Name   string
	How    unit.Source // of the counts; a model's are never "measured"
	Events []Event     // of WindowFields, unless With chose others
	Note   string      // what was never tried
	Known  *event.Table

	Clustered bool // packages of this machine have several nodes: local may be the package
	plain     bool // without events that need a register beside their counter
}

var taskClock = Event{Field: Clock, Type: sys.PERF_TYPE_SOFTWARE, Config: sys.PERF_COUNT_SW_TASK_CLOCK, Doc: "ns, perf_event_open(2)"}

// The tables that need no CPU to be looked at.
var (
	Lab     = sync.OnceValue(func() Table { return Named("lab") })
	Generic = sync.OnceValue(func() Table { return Named(event.GenericName) }) // what every PMU has; the rest stays unknown
)

// Named is a table by its name; the generic one for an unknown name.
func Named(name string) Table {
	t, ok := event.ByName(name)
	if !ok {
		t, _ = event.ByName(event.GenericName)
	}
	return tableOf(t)
}

func tableOf(known *event.Table) Table {
	t := Table{Name: known.Name, How: known.How, Note: known.Note, Known: known}
	return t.With(WindowFields)
}

// With is the table with the events of these fields, as far as the CPU has them; the
// kernel's task clock is no table's.
func (t Table) With(fields []Field) Table {
	t.Events = nil
	for _, f := range fields {
		if name, ok := fieldEvents[f]; ok && t.Known != nil {
			count := t.way(name)
			for _, e := range count.Events {
				t.Events = append(t.Events, eventOf(t.Known, f, count, e))
			}
		}
	}
	return t
}

// way is how this table counts a field.
func (t Table) way(name event.Field) event.Count {
	count, _, _ := t.Known.Best(name)
	if t.plain {
		count, _, _ = t.Known.Plainest(name)
	}
	return count
}

func eventOf(known *event.Table, f Field, count event.Count, e event.Event) Event {
	return Event{Field: f, Type: e.Type, Config: e.Config, Config1: e.Code.Config1, Near: count.Near, Doc: docOf(known, e)}
}

// On is the table for a machine: sources then say where local may mean the package.
func (t Table) On(m machine.Machine) Table {
	for _, cpus := range m.Packages {
		nodes := 0
		for _, n := range m.Nodes {
			if n.CPUs.Overlaps(cpus) {
				nodes++
			}
		}
		t.Clustered = t.Clustered || nodes > 1
	}
	return t
}

// WithPenalty is the table with the events from which classes are inferred as well, as
// far as the CPU has events that fit together. Requests and waits are of use only
// together. Misses include reads for writing and are compared with requests, so requests
// must include them, too.
func (t Table) WithPenalty() Table {
	fields := slices.Clone(WindowFields)
	if t.Known != nil {
		requests, _, ok := t.Known.Best(event.UncoreRequests)
		if _, _, waits := t.Known.Best(event.UncoreWaits); ok && waits {
			fields = append(fields, UncoreRequests, UncoreWaits)
			if misses, _, ok := t.Known.Best(event.LLCMisses); ok && misses.Writes && requests.Writes {
				fields = append(fields, LLCMisses)
			}
		}
	}
	return t.With(fields)
}

// Fewer are the table's events, then fewer and fewer, at last none: the first list that
// the PMU accepts is counted. Events without a register beside their counter come after
// those with one: many hypervisors have none.
func (t Table) Fewer() [][]Event {
	all := [][]Event{t.Events}
	plain := t
	plain.plain = true
	for _, list := range [][]Event{plain.With(t.fields()).Events, t.With(WindowFields).Events, plain.With(WindowFields).Events} {
		if last := all[len(all)-1]; len(list) > 0 && !slices.Equal(list, last) && len(list) <= len(last) {
			all = append(all, list)
		}
	}
	return append(all, Generic().Events, nil)
}

// fields are those that the table's events count, in order.
func (t Table) fields() (fields []Field) {
	for _, e := range t.Events {
		if !slices.Contains(fields, e.Field) {
			fields = append(fields, e.Field)
		}
	}
	return fields
}

// docOf is "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM: intel/perfmon SKX core events 1.37".
func docOf(t *event.Table, e event.Event) string {
	s := t.Sources[0]
	return e.Name() + ": " + s.Title + " " + s.Version
}

// Detect picks the table for the CPUs below root: by the PMU's identifier file (the
// lab's), by family, model and stepping (x86), by implementer and part (arm64), by PVR
// (POWER).
func Detect(root unix.Root) Table { return tableOf(event.For(DetectCPU(root))) }

// DetectCPU is what the system below root shows of its CPUs; what cannot be read is
// unknown.
func DetectCPU(root unix.Root) event.CPU {
	var buf unix.Buffer
	cpu := event.CPU{}
	if id, err := buf.ReadFile(root.Path("/sys/bus/event_source/devices/cpu/identifier")); err == nil {
		cpu.Identifier = strings.TrimSpace(string(id))
	}
	if m, err := unix.Parsed(&buf, root.Path("/proc/cpuinfo"), procfs.ParseCPUInfo); err == nil {
		m.Identifier = cpu.Identifier
		cpu = m
	}
	if cpu.Vendor == "" && cpu.Implementer == 0 && cpu.PVR == 0 {
		cpu = midr(root, &buf, cpu)
	}
	return cpu
}

// midr asks every CPU's own register, as sysfs of arm64 has it.
func midr(root unix.Root, buf *unix.Buffer, cpu event.CPU) event.CPU {
	files, _ := filepath.Glob(root.Path("/sys/devices/system/cpu/cpu[0-9]*/regs/identification/midr_el1"))
	for _, file := range files {
		data, err := buf.ReadFile(file)
		if err != nil {
			continue // offline
		}
		m, err := procfs.ParseMIDR(data)
		if err != nil {
			return event.CPU{Identifier: cpu.Identifier}
		}
		m.Mixed = cpu.Mixed || cpu.Implementer != 0 && (m.Implementer != cpu.Implementer || m.Part != cpu.Part)
		m.Identifier = cpu.Identifier
		cpu = m
	}
	return cpu
}

// Source is how the value of a field read through this table is to be marked; for an
// unknown one, why it is unknown.
func (t Table) Source(f Field) (unit.Source, string) { return t.SourceOf(t.Events, f) }

// SourceOf is Source where these of the table's events were opened (Fewer).
func (t Table) SourceOf(events []Event, f Field) (unit.Source, string) {
	switch from := t.nameOf(events, f); {
	case from != "" && t.How == unit.HowModelled:
		return t.How, from + " (" + t.Name + ")"
	case from != "":
		return t.How, from
	case f == Clock:
		return unit.HowMeasured, taskClock.Name()
	}
	return unit.HowUnknown, "no such event in the " + t.Name + " table" + t.whyNot(f)
}

// Lines is what a count of a field is in a window: reads of DRAM are lines of 64 bytes
// there, and some CPUs have larger ones.
func (t Table) Lines(f Field, count uint64) uint64 {
	name, ok := fieldEvents[f]
	if !ok || t.Known == nil {
		return count
	}
	return count * t.Known.Lines(name)
}

// nameOf names the events of a field, with the lines of a count if they are several; where
// local may not be the node, it says so.
func (t Table) nameOf(events []Event, f Field) string {
	var names []string
	doubt := ""
	for _, e := range events {
		if e.Field == f {
			names = append(names, e.Name())
			doubt = e.Near.Doubt()
		}
	}
	name := strings.Join(names, " + ")
	if times := t.Lines(f, 1); times > 1 && len(names) > 0 {
		if len(names) > 1 {
			name = "(" + name + ")"
		}
		name = fmt.Sprintf("%d × %s", times, name)
	}
	if t.Clustered && doubt != "" {
		name += " (" + doubt + ")"
	}
	return name
}

// whyNot is ": REASON" where the table gives one for a CPU that it knows.
func (t Table) whyNot(f Field) string {
	name, ok := fieldEvents[f]
	if !ok || t.Known == nil || t.Name == event.GenericName {
		return ""
	}
	if _, why, ok := t.Known.Best(name); !ok {
		return ": " + why
	}
	return ""
}

// has reports whether a list of events counts a field.
func has(events []Event, f Field) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.Field == f })
}
