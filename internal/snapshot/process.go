// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Process is one process, its threads and its memory. Slices by node are
// parallel to Snapshot.Nodes.
type Process struct {
	PID      int    `json:"pid"`
	Name     string `json:"name"`     // comm
	Workload string `json:"workload"` // its workload; "" without one
	// MemoryHow says where Mappings come from, or why there are none.
	MemoryHow string `json:"memory_how"`
	// Mappings are those with memory: all, or only the largest if that was asked for.
	// Resident is their number.
	Mappings []Mapping `json:"mappings,omitempty"`
	Resident int       `json:"mappings_resident"`
	// ByKind are the bytes of all mappings by kind and node. Nil: they could not be
	// read. Pages that several processes map are counted in each of them.
	ByKind ByKind `json:"by_kind"`
	// CPUByNode is CPUs' worth of time on each node's CPUs; estimated from where
	// each thread last ran.
	CPUByNode []unit.Value[float64] `json:"cpu_by_node"`
	// Threads by TID; FirstTID started first.
	Threads []Thread    `json:"threads,omitempty"`
	Allowed set.CPUSet  `json:"cpus_allowed"`
	Mems    set.NodeSet `json:"mems_allowed"`
	// Guest is set for a virtual machine's process.
	Guest *Guest `json:"guest,omitempty"`
}

// Bytes is the process's memory by node, of the kinds that are known.
func (p Process) Bytes() []unit.Bytes {
	var sum []unit.Bytes
	for _, by := range p.ByKind {
		if more := len(by) - len(sum); more > 0 {
			sum = append(sum, make([]unit.Bytes, more)...)
		}
		for i := range by {
			sum[i] += by[i]
		}
	}
	return sum
}

// Known says that the memory could be read.
func (p Process) Known() bool { return p.ByKind[Anon] != nil }

// NoneKnown says that no process could be read.
func (s Snapshot) NoneKnown() bool { return !slices.ContainsFunc(s.Processes, Process.Known) }

// Total is all of the process's memory.
func (p Process) Total() (sum unit.Bytes) {
	for _, b := range p.Bytes() {
		sum += b
	}
	return sum
}

// Thread is a task of a process.
type Thread struct {
	TID     int                 `json:"tid"`
	Name    string              `json:"name"`
	CPU     int                 `json:"cpu"`      // where it last ran
	CPUTime unit.Value[float64] `json:"cpu_used"` // CPUs' worth over the period
	Allowed set.CPUSet          `json:"cpus_allowed"`
	// Waited is CPUs' worth of time in which it was runnable and did not run, 0 … 1:
	// the second figure of /proc/PID/task/TID/schedstat (since 2.6.25).
	Waited unit.Value[float64] `json:"cpu_waited"`
}

// Guest is what a virtual machine's process shows of its guest.
type Guest struct {
	VCPUs int             `json:"vcpus"`
	Nodes unit.Value[int] `json:"node_count"` // of the virtual topology; 1 is flat
	// VCPUThreads are the TIDs of its virtual CPUs.
	VCPUThreads []int `json:"vcpu_threads,omitempty"`
}

// ByKind are amounts by kind and node. On the wire they are named:
// {"heap":[4096,0],…}; null is unknown.
type ByKind [NKinds][]unit.Bytes

// MarshalJSON writes that form, in the order of the kinds.
func (b ByKind) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for k, by := range b {
		if k > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, MappingKind(k).String()), ':')
		amounts, err := json.Marshal(by)
		if err != nil {
			return nil, err
		}
		out = append(out, amounts...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads it; a missing kind is unknown.
func (b *ByKind) UnmarshalJSON(data []byte) error {
	var named map[string][]unit.Bytes
	*b = ByKind{}
	if err := json.Unmarshal(data, &named); err != nil {
		return err
	}
	for name, by := range named {
		var k MappingKind
		if err := k.UnmarshalText([]byte(name)); err != nil {
			*b = ByKind{}
			return err
		}
		b[k] = by
	}
	return nil
}

// MappingKind is what a mapping is for.
type MappingKind int

// The kinds, in the order they are shown.
const (
	Heap   MappingKind = iota // [heap]: brk
	Stack                     // [stack]
	Anon                      // private anonymous memory: malloc's arenas, thread stacks, mmap
	Shared                    // tmpfs, SysV, memfd, shared anonymous memory
	File                      // files: programs, libraries, data; with the pages of a private mapping that the process wrote
	Huge                      // hugetlb pages, for any use
	NKinds
)

var kindNames = [NKinds]string{"heap", "stack", "anon", "shared", "file", "huge"}

func (k MappingKind) String() string {
	if k < 0 || k >= NKinds {
		return "unknown"
	}
	return kindNames[k]
}

// MarshalText writes the name.
func (k MappingKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name.
func (k *MappingKind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("parse mapping kind %q: want one of %v", text, kindNames)
	}
	*k = MappingKind(i)
	return nil
}

// Mapping is a range of a process's address space. End is 0 when only numa_maps was
// read.
type Mapping struct {
	Start  uint64       `json:"start"`
	End    uint64       `json:"end,omitempty"`
	Kind   MappingKind  `json:"kind"`
	Path   string       `json:"path,omitempty"`
	Policy string       `json:"policy"`
	Access string       `json:"permissions,omitempty"` // "rw-p", "r--s"; "" when maps was not read
	ByNode []unit.Bytes `json:"by_node"`
	// Mappers is numa_maps' mapmax: the number of page tables that map its most shared
	// page; 0 or 1 for a private one.
	Mappers int `json:"mappers,omitempty"`
	// Dirty is the part that was written since it was last clean.
	Dirty unit.Bytes `json:"dirty_bytes,omitempty"`
}

// Bytes is all of a mapping's memory.
func (m Mapping) Bytes() (sum unit.Bytes) {
	for _, b := range m.ByNode {
		sum += b
	}
	return sum
}

// IRQ is an interrupt and where it is served.
type IRQ struct {
	Number string `json:"irq"` // "125"
	Name   string `json:"name"`
	// Counts are interrupts over the period, by node of the CPU that served them; nil:
	// unknown, because there was one reading only.
	Counts  []uint64   `json:"counts_by_node"`
	Allowed set.CPUSet `json:"affinity"`
	Device  string     `json:"device,omitempty"` // PCI address
	Node    DeviceNode `json:"device_node"`
}

// DeviceNode is the node a device is attached to.
type DeviceNode = unit.Opt[int]
