// SPDX-License-Identifier: Apache-2.0

package addr

import (
	"fmt"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"

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

// Table says how a kind of CPU samples accesses.
type Table struct {
	Name          string
	How           unit.Source // of latencies and levels; a model's are never "measured"
	Loads, Stores Event
	Note          string // what was never tried
}

// The tables. Intel's serves Skylake-SP to Ice Lake-SP.
var (
	Lab = Table{
		Name: "lab", How: unit.HowModelled,
		Loads:  Event{Config: 0x01cd, Latency: true, Precise: 2, Doc: "lab/include/homenode_lab.h, HOMENODE_EV_LOAD_LATENCY"},
		Stores: Event{Config: 0x82d0, Precise: 2, Doc: "HOMENODE_EV_STORES"},
	}
	Intel = Table{
		Name: "intel", How: unit.HowMeasured, Note: "never run on hardware",
		Loads:  Event{Config: 0x01cd, Latency: true, Precise: 2, Doc: "MEM_TRANS_RETIRED.LOAD_LATENCY: intel/perfmon SKX, CLX, ICX"},
		Stores: Event{Config: 0x82d0, Precise: 2, Doc: "MEM_INST_RETIRED.ALL_STORES: intel/perfmon SKX, CLX, ICX"},
	}
)

// labIdentifier is what the lab's PMU module says of itself.
const labIdentifier = "homenode-lab"

// Detect picks the table for the CPUs below root, or says in one sentence
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
	intel := cpu.Vendor == "GenuineIntel" && cpu.Family == 6
	switch {
	case intel && slices.Contains([]int{0x55, 0x6a, 0x6c}, cpu.Model):
		return Intel, nil
	case intel && slices.Contains([]int{0x8f, 0xcf}, cpu.Model):
		return Table{}, refused("load samples of Sapphire and Emerald Rapids need an auxiliary group leader (r8203), which homenode does not open yet")
	case cpu.Vendor == "AuthenticAMD" || cpu.Vendor == "HygonGenuine":
		return Table{}, refused("AMD samples instructions instead of events (IBS, PMU ibs_op), which homenode does not read yet")
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
