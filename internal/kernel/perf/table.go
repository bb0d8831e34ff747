// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Field is what an event means in a window.
type Field int

// The fields, in the order events are opened. Clock is the time a CPU spent on
// the cgroup, in nanoseconds; the kernel's own, not the PMU's.
const (
	Cycles Field = iota
	Instructions
	StallCycles
	LocalLoads
	RemoteLoads
	Clock
	nFields
)

// Event is one entry of a table.
type Event struct {
	Field  Field
	Type   uint32 // perf_event_attr.type
	Config uint64
	Doc    string // what it counts, and where that is written
}

// Name is how the event is called in a window's sources: "perf r01d3".
func (e Event) Name() string {
	switch {
	case e.Type == sys.PERF_TYPE_RAW:
		return fmt.Sprintf("perf r%04x", e.Config)
	case e.Field == Cycles:
		return "perf cycles"
	case e.Field == Instructions:
		return "perf instructions"
	}
	return "perf task-clock"
}

// Table says which events a kind of CPU has for which field.
type Table struct {
	Name   string
	How    unit.Source // of the counts; a model's are never "measured"
	Events []Event
	Note   string // what was never tried
}

var (
	cycles       = Event{Cycles, sys.PERF_TYPE_HARDWARE, sys.PERF_COUNT_HW_CPU_CYCLES, "unhalted core cycles, perf_event_open(2)"}
	instructions = Event{Instructions, sys.PERF_TYPE_HARDWARE, sys.PERF_COUNT_HW_INSTRUCTIONS, "retired instructions, perf_event_open(2)"}
	taskClock    = Event{Clock, sys.PERF_TYPE_SOFTWARE, sys.PERF_COUNT_SW_TASK_CLOCK, "ns, perf_event_open(2)"}
)

func raw(f Field, config uint64, doc string) Event {
	return Event{f, sys.PERF_TYPE_RAW, config, doc}
}

// Tables in the order they are tried.
var (
	Lab = Table{Name: "lab", How: unit.HowModelled, Events: []Event{
		cycles, instructions,
		raw(StallCycles, 0x14a3, "cycles waiting for L2, LLC or DRAM: lab/include/homenode_lab.h, HOMENODE_EV_STALL_CYCLES"),
		raw(LocalLoads, 0x01d3, "HOMENODE_EV_LOCAL_LOADS"),
		raw(RemoteLoads, 0x02d3, "HOMENODE_EV_REMOTE_LOADS"),
	}}
	// IntelSKX serves Skylake-SP, Cascade Lake, Ice Lake-SP and -D. Counts of
	// loads do not include hits in another socket's cache (REMOTE_HITM, _FWD).
	IntelSKX = Table{Name: "intel-skx", How: unit.HowMeasured, Note: "never run on hardware", Events: []Event{
		cycles, instructions,
		raw(StallCycles, 20<<24|0x14a3, "CYCLE_ACTIVITY.STALLS_MEM_ANY: intel/perfmon SKX, CLX, ICX"),
		raw(LocalLoads, 0x01d3, "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM: intel/perfmon SKX, CLX, ICX"),
		raw(RemoteLoads, 0x02d3, "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM: intel/perfmon SKX, CLX, ICX"),
	}}
	// IntelSPR serves Sapphire and Emerald Rapids, which no longer have
	// STALLS_MEM_ANY; BOUND_ON_LOADS is what Intel's top-down metrics use instead.
	IntelSPR = Table{Name: "intel-spr", How: unit.HowMeasured, Note: "never run on hardware", Events: []Event{
		cycles, instructions,
		raw(StallCycles, 5<<24|0x21a6, "EXE_ACTIVITY.BOUND_ON_LOADS: intel/perfmon SPR, EMR"),
		raw(LocalLoads, 0x01d3, "MEM_LOAD_L3_MISS_RETIRED.LOCAL_DRAM: intel/perfmon SPR, EMR"),
		raw(RemoteLoads, 0x02d3, "MEM_LOAD_L3_MISS_RETIRED.REMOTE_DRAM: intel/perfmon SPR, EMR"),
	}}
	// Generic has what every PMU has; the rest stays unknown.
	Generic = Table{Name: "generic", How: unit.HowMeasured, Events: []Event{cycles, instructions}}
)

// labIdentifier is what the lab's PMU module says of itself.
const labIdentifier = "homenode-lab"

// Detect picks the table for the CPUs below root: the lab's by its PMU's
// identifier file, Intel's by family and model, else Generic.
func Detect(root unix.Root) Table {
	var buf unix.Buffer
	id, err := buf.ReadFile(root.Path("/sys/bus/event_source/devices/cpu/identifier"))
	if err == nil && strings.Contains(string(id), labIdentifier) {
		return Lab
	}
	data, err := buf.ReadFile(root.Path("/proc/cpuinfo"))
	if err != nil {
		return Generic
	}
	cpu, err := procfs.ParseCPUInfo(data)
	if err != nil {
		return Generic
	}
	return tableFor(cpu)
}

func tableFor(cpu procfs.CPUModel) Table {
	if cpu.Vendor != "GenuineIntel" || cpu.Family != 6 {
		return Generic
	}
	switch {
	case slices.Contains([]int{0x55, 0x6a, 0x6c}, cpu.Model):
		return IntelSKX
	case slices.Contains([]int{0x8f, 0xcf}, cpu.Model):
		return IntelSPR
	}
	return Generic
}

// Source is how the value of a field read through this table is to be marked.
func (t Table) Source(f Field) (unit.Source, string) {
	for _, e := range t.Events {
		if e.Field == f && t.How == unit.HowModelled {
			return t.How, e.Name() + " (" + t.Name + ")"
		}
		if e.Field == f {
			return t.How, e.Name()
		}
	}
	if f == Clock {
		return unit.HowMeasured, taskClock.Name()
	}
	return unit.HowUnknown, "no such event in the " + t.Name + " table"
}
