// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/unit"
)

// Field is the meaning of an event.
type Field uint8

// The fields, in the order in which tables have them and in which they are opened.
const (
	Cycles            Field = iota // unhalted core cycles
	Instructions                   // retired
	StallCycles                    // cycles that wait for memory
	LocalLoads                     // DRAM reads, lines, from the CPU's own node
	RemoteLoads                    // and from another
	L2Misses                       // of the private caches
	LLCMisses                      // of the last-level cache
	UncoreRequests                 // that leave the private caches: A of the uncore penalty
	UncoreOutstanding              // of these, summed over cycles: O
	UncoreWaits                    // cycles with at least one: W
	LoadSamples                    // samples loads with their address and latency
	StoreSamples                   // samples stores with their address
	nFields
)

var fieldNames = [nFields]string{"cycles", "instructions", "stall_cycles", "local_loads", "remote_loads", "l2_misses", "llc_misses", "uncore_requests", "uncore_outstanding", "uncore_waits", "load_samples", "store_samples"}

// String is "local_loads".
func (f Field) String() string {
	if f >= nFields {
		return fmt.Sprintf("Field(%d)", uint8(f))
	}
	return fieldNames[f]
}

// MarshalText writes the name.
func (f Field) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// Types of perf_event_attr (include/uapi/linux/perf_event.h).
const (
	TypeHardware = 0 // PERF_TYPE_HARDWARE: the kernel knows the CPU's event
	TypeRaw      = 4 // PERF_TYPE_RAW: config is the PMU's own
)

// kernelEvents are PERF_COUNT_HW_…, each at its number, by the name perf has for them.
var kernelEvents = []string{"cpu-cycles", "instructions"}

// Code is an event by its vendor's parts.
type Code struct {
	Event uint64 `json:"event"` // Intel 8 bits, AMD 12, Arm 16, POWER 60: its number of a counter is part of it
	UMask uint64 `json:"umask,omitempty"`
	CMask uint64 `json:"cmask,omitempty"` // counts cycles with at least as many
	Inv   bool   `json:"inv,omitempty"`   // fewer instead of at least as many
	Edge  bool   `json:"edge,omitempty"`  // counts when it begins
	// Config1 is the value of a register beside the counter: of Intel's OFFCORE_RSP
	// (MSR 0x1a6, 0x1a7), which says whose requests and which answers count. The kernel
	// picks the register, and refuses the event where a hypervisor hides them (ENXIO).
	Config1 uint64 `json:"config1,omitempty"`
}

// Event is an event of a PMU.
type Event struct {
	Kernel string   // "cpu-cycles", "instructions": then the kernel knows the code
	Names  []string // the vendor's; of several, unit mask and config1 are those of all of them
	// Without is the vendor's event whose answers are taken out of config1, so that the two
	// count no request twice.
	Without string
	Code    Code
	Type    uint32 // perf_event_attr.type
	Config  uint64 // perf_event_attr.config; config1 is Code.Config1
}

// PerfTerm is an event of the CPU's PMU as 'perf stat -e' takes it: "r01d3".
func PerfTerm(config, config1 uint64) string {
	if config1 == 0 {
		return fmt.Sprintf("r%04x", config)
	}
	return fmt.Sprintf("cpu/config=%#x,config1=%#x/", config, config1)
}

// Name is the vendor's, or the kernel's.
func (e Event) Name() string {
	if e.Kernel != "" {
		return e.Kernel
	}
	name := strings.Join(e.Names, " | ")
	if e.Without != "" {
		name += " without " + e.Without
	}
	return name
}

// Count is one way to count a field: the sum of its events.
type Count struct {
	Events []Event
	Leader *Event // opened first, as leader of the group that each event needs; nil: none
	Note   string // what it counts beyond the field, or leaves out
	Writes bool   // reads for writing are included; false: not, or unknown
	Near   Near   // of local and remote reads: what local means
}

// Near is what an event takes for local where a package has several nodes (Intel's
// sub-NUMA clustering, AMD's NPS). Elsewhere the package is the node.
type Near string

// What local can mean.
const (
	NearNode    Near = "node"    // the CPU's own node
	NearPackage Near = "package" // any node of the CPU's package
	NearUnknown Near = "unknown" // the vendor's list does not say
)

// Doubt is what to add to a figure of a machine whose packages have several nodes.
func (n Near) Doubt() string {
	switch n {
	case NearPackage:
		return "local is the package here, not the node"
	case NearUnknown:
		return "whether local is the node or the package is not known"
	}
	return ""
}

// Plain reports that the events need no register beside their counters.
func (c Count) Plain() bool {
	return !slices.ContainsFunc(c.Events, func(e Event) bool { return e.Code.Config1 != 0 })
}

// Name is "a + b".
func (c Count) Name() string {
	names := make([]string, len(c.Events))
	for i, e := range c.Events {
		names[i] = e.Name()
	}
	return strings.Join(names, " + ")
}

// Reading is a table's entry for a field: ways to count it, the best first, or why
// there is none.
type Reading struct {
	Field  Field
	Counts []Count
	Why    string
}

// Format says how an event becomes perf_event_attr.config.
type Format string

// The formats; as /sys/bus/event_source/devices/cpu/format has them.
const (
	Intel Format = "intel" // event 0-7, umask 8-15, edge 18, inv 23, cmask 24-31
	AMD   Format = "amd"   // event 0-7 and 32-35, the others as Intel's
	Arm   Format = "arm"   // event 0-15
	Power Format = "power" // event 0-59; POWER9's have 20 bits
)

// Source is a document that a table was made from.
type Source struct {
	Title   string `json:"title"`
	Version string `json:"version"`
}

// Table lists the events of a kind of CPU by field. It is shared: do not change it.
type Table struct {
	Name, Title string
	Format      Format // "" where the kernel's own events are all there is
	How         unit.Source
	Note        string // what was never tried
	LineBytes   int    // of a DRAM read
	Counters    int    // general ones of a CPU with SMT on; 0 = unknown
	CPUs        []Match
	Sources     []Source
	Readings    [nFields]Reading // by field
	Controllers []Controllers    // of its memory: the first whose PMU is there
}

// LineBytes is the size of the lines in which a window has reads of DRAM.
const LineBytes = 64

// Lines is the number of such lines that one count of a field is: 2 of reads where the
// CPU's lines have 128 bytes.
func (t *Table) Lines(f Field) uint64 {
	if f != LocalLoads && f != RemoteLoads {
		return 1
	}
	return max(1, uint64(t.LineBytes/LineBytes))
}

// Best is the first way to count a field; false where there is none, with the reason.
func (t *Table) Best(f Field) (c Count, why string, ok bool) {
	if f >= nFields {
		return Count{}, "no such field", false
	}
	r := t.Readings[f]
	if len(r.Counts) == 0 {
		return Count{}, r.Why, false
	}
	return r.Counts[0], "", true
}

// Plainest is the first way that needs no register beside the counters, which not every
// hypervisor hands on; else the first.
func (t *Table) Plainest(f Field) (c Count, why string, ok bool) {
	c, why, ok = t.Best(f)
	if ok && !c.Plain() {
		for _, other := range t.Readings[f].Counts {
			if other.Plain() {
				return other, "", true
			}
		}
	}
	return c, why, ok
}

// config packs an event's parts. Parse has checked their widths.
func (f Format) config(c Code) uint64 {
	flag := func(on bool, bit int) uint64 {
		if on {
			return 1 << bit
		}
		return 0
	}
	switch f {
	case Arm, Power:
		return c.Event
	case AMD, Intel: // an Intel event has 8 bits: nothing is left for 32-35
		return c.Event&0xff | c.UMask<<8 | flag(c.Edge, 18) | flag(c.Inv, 23) | c.CMask<<24 | c.Event>>8<<32
	}
	return 0
}

// widths are the numbers of bits of the parts: event, unit mask, counter mask, config1.
func (f Format) widths() (event, umask, cmask, config1 int) {
	switch f {
	case Intel:
		return 8, 8, 8, 64
	case AMD:
		return 12, 8, 8, 0
	case Arm:
		return 16, 0, 0, 0
	case Power:
		return 60, 0, 0, 0
	}
	return 0, 0, 0, 0
}
