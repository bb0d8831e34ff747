// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"strings"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Event is a precise event that samples accesses.
type Event struct {
	Config  uint64 // raw
	Latency bool   // config1 takes the least latency, in cycles
	Precise int    // perf_event_attr.precise_ip
	Doc     string
}

// Table is how a kind of CPU samples accesses.
type Table struct {
	Name          string
	How           unit.Source // of latencies and levels; a model's are never "measured"
	Loads, Stores Event
	Note          string // what was never tried
}

// Lab is the table of the lab's PMU.
var Lab = labTable()

func labTable() Table {
	known, ok := event.ByName("lab")
	if !ok {
		panic("addr: no event table for the lab")
	}
	t, err := tableOf(known)
	if err != nil {
		panic(fmt.Sprintf("addr: %v", err))
	}
	return t
}

// tableOf takes the sampling events from an event table, or gives the reason why there
// are none. Both are sampled with precise_ip 2: the address is the instruction's own.
func tableOf(known *event.Table) (Table, error) {
	loads, why1, ok1 := known.Best(event.LoadSamples)
	stores, why2, ok2 := known.Best(event.StoreSamples)
	if !ok1 {
		return Table{}, refused(why1)
	}
	if !ok2 {
		return Table{}, refused(why2)
	}
	doc := func(e event.Event) string { return e.Name() + ": " + known.Sources[0].Title }
	l, s := loads.Events[0], stores.Events[0]
	return Table{
		Name: known.Name, How: known.How, Note: known.Note,
		Loads:  Event{Config: l.Config, Latency: true, Precise: 2, Doc: doc(l)},
		Stores: Event{Config: s.Config, Precise: 2, Doc: doc(s)},
	}, nil
}

// labIdentifier is the identifier of the lab's PMU module.
const labIdentifier = "homenode-lab"

// Detect selects the table for the CPUs below root, or gives one sentence
// (ErrNotSupported) why accesses cannot be sampled on them.
func Detect(root unix.Root) (Table, error) {
	var buf unix.Buffer
	id, err := buf.ReadFile(root.Path("/sys/bus/event_source/devices/cpu/identifier"))
	if err == nil && strings.Contains(string(id), labIdentifier) {
		return Lab, nil
	}
	data, err := buf.ReadFile(root.Path("/proc/cpuinfo"))
	if err != nil {
		return Table{}, unix.Explain("read", root.Path("/proc/cpuinfo"), "", err)
	}
	cpu, err := procfs.ParseCPUInfo(data)
	if err != nil {
		return Table{}, err
	}
	return tableFor(cpu)
}

func tableFor(cpu procfs.CPUModel) (Table, error) {
	known := event.For(event.CPU{Vendor: cpu.Vendor, Family: cpu.Family, Model: cpu.Model, Stepping: cpu.Stepping, Implementer: cpu.Implementer, Part: cpu.Part, Mixed: cpu.Mixed})
	switch {
	case known.Name != event.GenericName:
		return tableOf(known)
	case cpu.Vendor == "AuthenticAMD" || cpu.Vendor == "HygonGenuine":
		return Table{}, refused("AMD samples instructions instead of events (IBS, PMU ibs_op), which homenode does not read yet")
	case cpu.Implementer != 0:
		return Table{}, refused(fmt.Sprintf("no event is known that samples addresses on this CPU (implementer %#x, part %#x)", cpu.Implementer, cpu.Part))
	}
	return Table{}, refused(fmt.Sprintf("no event is known that samples addresses on this CPU (vendor %q, family %d, model %#x)", cpu.Vendor, cpu.Family, cpu.Model))
}

func refused(why string) error {
	return fmt.Errorf("sample memory accesses: %s: %w", why, unix.ErrNotSupported)
}

func (c Config) attr(e Event) sys.PerfEventAttr {
	a := sys.PerfEventAttr{
		Type: sys.PERF_TYPE_RAW, Config: e.Config, Size: attrBytes,
		Sample: c.Period, Sample_type: sampleType,
		Bits:    sys.PerfBitDisabled | sys.PerfBitUseClockID,
		Clockid: sys.CLOCK_MONOTONIC,
	}
	a.Bits |= uint64(e.Precise) << preciseShift
	if e.Latency {
		a.Ext1 = uint64(c.LatencyThreshold)
	}
	if c.UserOnly {
		a.Bits |= sys.PerfBitExcludeKernel | sys.PerfBitExcludeHv
	}
	return a
}
