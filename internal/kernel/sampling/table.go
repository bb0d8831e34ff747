// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// Event is a precise event that samples accesses.
type Event struct {
	Type    uint32 // perf_event_attr.type
	Config  uint64
	Leader  uint64 // config of the raw event that must lead the group; 0: none
	Latency bool   // config1 takes the least latency, in cycles
	Ops     bool   // samples operations of all kinds, loads and stores among them (AMD's IBS, Arm's SPE)
	Traced  bool   // its PMU writes into a buffer of its own (Arm's SPE)
	Precise int    // perf_event_attr.precise_ip
	Doc     string
}

// Table is how a kind of CPU samples accesses.
type Table struct {
	Name          string
	How           unit.Source // of latencies and levels; a model's are never "measured"
	Loads, Stores Event
	Note          string // what was never tried
	encoding      speEncoding
}

// Kinds are what samples loads of at least this latency and stores: one event for each, or one
// for both where a CPU has a single unit, for which two events would take turns.
func (t Table) Kinds(leastLatency int) []Config {
	if t.Loads.Ops {
		return []Config{{Table: t, Loads: true, Stores: true, LatencyThreshold: leastLatency}}
	}
	return []Config{{Table: t, Loads: true, LatencyThreshold: leastLatency}, {Table: t, Stores: true}}
}

// Lab is the table of the lab's PMU.
var Lab = sync.OnceValue(func() Table {
	known, ok := event.ByName("lab")
	if !ok {
		panic("addr: no event table for the lab")
	}
	t, err := tableOf(known)
	if err != nil {
		panic(fmt.Sprintf("addr: %v", err))
	}
	return t
})

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
	t := Table{
		Name: known.Name, How: known.How, Note: known.Note,
		Loads:  Event{Type: l.Type, Config: l.Config, Latency: true, Precise: 2, Doc: doc(l)},
		Stores: Event{Type: s.Type, Config: s.Config, Precise: 2, Doc: doc(s)},
	}
	if loads.Leader != nil {
		t.Loads.Leader = loads.Leader.Config
	}
	return t, nil
}

// Period is the period that is used where one is asked for. Of operations, loads and
// stores are a part, and slow loads a small one: a period for accesses would bring far
// more samples than they are worth. IBS takes multiples of 16.
func (t Table) Period(asked uint64) uint64 {
	if !t.Loads.Ops {
		return asked
	}
	return (max(asked, leastOps) + 15) &^ 15
}

// leastOps is some 20,000 samples a second of a CPU that runs 5 × 10⁹ operations a second:
// 2 % of its time. Lower: more samples, and a higher cost.
const leastOps = 1 << 18

// labIdentifier is the identifier of the lab's PMU module.
const labIdentifier = "homenode-lab"

// Detect selects the table for the CPUs below root, or gives one sentence
// (ErrNotSupported) why accesses cannot be sampled on them.
func Detect(root unix.Root) (Table, error) {
	var buf unix.Buffer
	id, err := buf.ReadFile(root.Path("/sys/bus/event_source/devices/cpu/identifier"))
	if err == nil && strings.Contains(string(id), labIdentifier) {
		return Lab(), nil
	}
	cpu, err := unix.Parsed(&buf, root.Path("/proc/cpuinfo"), procfs.ParseCPUInfo)
	if err != nil {
		return Table{}, err
	}
	if cpu.Vendor == "AuthenticAMD" || cpu.Vendor == "HygonGenuine" {
		return ibs(root, &buf)
	}
	if cpu.Implementer != 0 {
		return spe(root, &buf, cpu)
	}
	return tableFor(cpu)
}

const (
	ibsType = "/sys/bus/event_source/devices/ibs_op/type"
	// ibsOps counts operations instead of cycles (IBS_OP_CNT_CTL): a program that waits
	// is not sampled more often for it. Zen 1 and later have it.
	ibsOps = 1 << 19
)

// ibs is the table of AMD's instruction-based sampling: the PMU tags every n-th operation
// of any kind. It gives address, level and latency of loads that missed L1, and address of
// stores, since Linux 6.1; of single threads and cgroups since 6.2.
func ibs(root unix.Root, buf *unix.Buffer) (Table, error) {
	typ, err := typeOf(root, buf, ibsType)
	if errors.Is(err, unix.ErrGone) {
		return Table{}, refused("AMD samples operations (IBS), and there is no PMU ibs_op here; a guest mostly has none")
	}
	if err != nil {
		return Table{}, err
	}
	op := Event{Type: typ, Config: ibsOps, Ops: true, Doc: "IBS operations, counted: Linux arch/x86/events/amd/ibs.c"}
	return Table{Name: "amd-ibs", How: unit.HowMeasured, Note: "never run on hardware", Loads: op, Stores: op}, nil
}

const (
	speType   = "/sys/bus/event_source/devices/arm_spe_0/type"
	speSecond = "/sys/bus/event_source/devices/arm_spe_1/type"
	speCPUs   = "/sys/bus/event_source/devices/arm_spe_0/cpumask"
)

// spe is the table of Arm's Statistical Profiling Extension: the CPU writes a record of every n-th
// operation into a buffer of its own.
func spe(root unix.Root, buf *unix.Buffer, cpu event.CPU) (Table, error) {
	typ, err := typeOf(root, buf, speType)
	if errors.Is(err, unix.ErrGone) {
		return Table{}, refused("Arm samples operations (SPE), and there is no PMU arm_spe_0 here: the CPU or a guest has none, the module arm_spe_pmu is not loaded, or the kernel was started without kpti=off where it needs that")
	}
	if err != nil {
		return Table{}, err
	}
	if _, err := typeOf(root, buf, speSecond); err == nil {
		return Table{}, refused("CPUs of two kinds have SPE here (arm_spe_0 and arm_spe_1), and homenode samples those of one")
	}
	if err := everyCPU(root, buf); err != nil {
		return Table{}, err
	}
	op := Event{Type: typ, Ops: true, Traced: true, Doc: "SPE operations: Linux drivers/perf/arm_spe_pmu.c"}
	return Table{Name: "arm-spe", How: unit.HowMeasured, Note: "never run on hardware", Loads: op, Stores: op, encoding: encodingOf(cpu)}, nil
}

// everyCPU refuses a machine of which some CPUs have no SPE.
func everyCPU(root unix.Root, buf *unix.Buffer) error {
	online, err := buf.CPUs(root, unix.OnlineCPUs)
	if err != nil {
		return err
	}
	with, err := buf.CPUs(root, speCPUs)
	if err != nil {
		return err
	}
	if without := online.Minus(with); !without.IsEmpty() {
		return refused(fmt.Sprintf("CPUs %s have no SPE, and homenode samples where all have it", without))
	}
	return nil
}

// typeOf reads a PMU's number; ErrGone: there is no such PMU.
func typeOf(root unix.Root, buf *unix.Buffer, file string) (uint32, error) {
	data, err := buf.ReadFile(root.Path(file))
	if err != nil {
		return 0, unix.Explain("read", file, "", err)
	}
	typ, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("parse %s: line 1 %.20q: not a number (%w)", file, data, unix.ErrMalformed)
	}
	return uint32(typ), nil
}

func tableFor(cpu event.CPU) (Table, error) {
	known := event.For(cpu)
	switch {
	case known.Name != event.GenericName:
		return tableOf(known)
	}
	return Table{}, refused(fmt.Sprintf("no event is known that samples addresses on this CPU (vendor %q, family %d, model %#x)", cpu.Vendor, cpu.Family, cpu.Model))
}

func refused(why string) error {
	return fmt.Errorf("sample memory accesses: %s: %w", why, unix.ErrNotSupported)
}

func (c Config) attr(e Event) sys.PerfEventAttr {
	a := c.commonAttr(e)
	a.Type, a.Config = e.Type, e.Config
	a.Sample, a.Sample_type = c.Table.Period(c.Period), sampleType
	if e.Traced {
		// The kernel's own clock, which the trace's times become; and which task runs.
		a.Sample_type = sys.PERF_SAMPLE_TID | sys.PERF_SAMPLE_TIME | sys.PERF_SAMPLE_CPU
		a.Bits, a.Clockid = a.Bits&^sys.PerfBitUseClockID|sys.PerfBitSampleIDAll|sys.PerfBitContextSwitch, 0
		a.Aux_watermark = traceStep
	}
	a.Bits |= uint64(e.Precise) * sys.PerfBitPreciseIPBit1 // the field's lowest bit
	if e.Latency {
		a.Ext1 = uint64(c.LatencyThreshold)
	}
	return a
}

// leaderAttr only counts. The kernel wants the clock of a group to be one.
func (c Config) leaderAttr(e Event) sys.PerfEventAttr {
	a := c.commonAttr(e)
	a.Type, a.Config = sys.PERF_TYPE_RAW, e.Leader
	return a
}

// commonAttr leaves kernel mode out only where the PMU can: IBS refuses that (EINVAL).
func (c Config) commonAttr(e Event) sys.PerfEventAttr {
	a := sys.PerfEventAttr{Size: attrBytes, Bits: sys.PerfBitDisabled | sys.PerfBitUseClockID, Clockid: sys.CLOCK_MONOTONIC}
	if c.UserOnly && (!e.Ops || e.Traced) {
		a.Bits |= sys.PerfBitExcludeKernel | sys.PerfBitExcludeHv
	}
	return a
}

func (c Config) decoder(e Event) decoder {
	return decoder{ops: e.Ops, loads: c.Loads, stores: c.Stores, userOnly: c.UserOnly, least: uint64(c.LatencyThreshold)}
}
