// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"encoding/binary"
	"fmt"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// Level is where an access found its line.
type Level int

// The levels. FillBuffer is an L1 miss on a line that was already on its way;
// persistent or far memory counts as DRAM. A line that another CPU had changed
// (Access.Modified) came out of that CPU's cache: its level is the LLC if that CPU is
// on the same chip, else RemoteCache.
const (
	Unknown Level = iota
	L1
	FillBuffer
	L2
	LLC
	RemoteCache
	LocalDRAM
	RemoteDRAM
	Levels // the number of levels
)

// String is the level's name in JSON.
func (l Level) String() string {
	if l < 0 || l >= Levels {
		l = Unknown
	}
	return [Levels]string{"unknown", "l1", "fill-buffer", "l2", "llc", "remote-cache", "local-dram", "remote-dram"}[l]
}

// Access is one sampled load or store.
type Access struct {
	PID, TID, CPU int
	Addr          uint64 // virtual, of the data; 0 = not known
	IP            uint64 // of the instruction
	Time          uint64 // ns of CLOCK_MONOTONIC, when the kernel wrote the sample
	Weight        uint64 // latency in core cycles; 0 = not known
	Level         Level
	Store         bool
	Kernel        bool
	Modified      bool // another cache had changed the line (HITM)
}

// Stats is the number of samples, and of lost samples.
type Stats struct {
	Samples   uint64 // those that were not asked for (Event.Ops) included
	Qualified uint64 // accesses (Event.Ops: operations) that the events counted: of each event every period-th is a sample
	Lost      uint64 // by the kernel, for lack of room in a ring; those at the end follow from Qualified
	Throttled uint64 // times the kernel stopped an event for sampling too fast
	// Loads are those of Samples that were asked for, where one event samples operations of all kinds.
	Loads uint64
}

func (s *Stats) note(a Access) {
	if !a.Store {
		s.Loads++
	}
}

func (s *Stats) add(o Stats) {
	s.Samples += o.Samples
	s.Qualified += o.Qualified
	s.Lost += o.Lost
	s.Throttled += o.Throttled
	s.Loads += o.Loads
}

// sampleType is what we request; words lists it in the order of perf_output_sample in
// kernel/events/core.c.
const sampleType = sys.PERF_SAMPLE_IP | sys.PERF_SAMPLE_TID | sys.PERF_SAMPLE_TIME | sys.PERF_SAMPLE_ADDR |
	sys.PERF_SAMPLE_CPU | sys.PERF_SAMPLE_WEIGHT | sys.PERF_SAMPLE_DATA_SRC

const (
	wordIP = iota
	wordTID
	wordTime
	wordAddr
	wordCPU
	wordWeight
	wordDataSrc
	sampleWords
)

const headerBytes = 8 // struct perf_event_header: u32 type, u16 misc, u16 size

// decoder reads the samples of one event. The zero value takes all of them.
type decoder struct {
	ops           bool // of operations of all kinds: what is not asked for is dropped
	loads, stores bool
	userOnly      bool
	least         uint64 // latency of a load, in cycles
}

// takes reports whether a sample is one that was asked for. Only samples of operations
// need that: other PMUs pick.
func (d decoder) takes(a Access, source uint64) bool {
	switch {
	case !d.ops:
		return true
	case d.userOnly && a.Kernel || a.Addr == 0:
		return false
	case source&opStore != 0:
		return d.stores
	}
	return source&opLoad != 0 && d.loads && (d.least <= allLoads || a.Weight >= d.least)
}

// allLoads is the least latency that takes all loads: hits in L1, too, whose latency IBS
// does not give.
const allLoads = 3

// parse reads the content of a ring, records one after the other:
//
//	type 9 (SAMPLE)        ip, pid|tid, time, addr, cpu, weight, data_src
//	type 2 (LOST)          id, lost
//	type 13 (LOST_SAMPLES) lost
//	type 5 (THROTTLE)      time, id, stream
//
// and appends the samples to into. Other types are skipped. On error into is returned
// unchanged.
func (d decoder) parse(into []Access, data []byte) ([]Access, Stats, error) {
	was, stats := into, Stats{}
	for at := 0; at < len(data); {
		typ, misc, body, err := nextRecord(data, at)
		if err != nil {
			return was, Stats{}, err
		}
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(body[8*i:]) }
		need := map[uint32]int{sys.PERF_RECORD_SAMPLE: sampleWords, sys.PERF_RECORD_LOST: 2, sys.PERF_RECORD_LOST_SAMPLES: 1}[typ]
		if len(body) < 8*need {
			return was, Stats{}, fmt.Errorf("parse perf record at byte %d: type %d has %d bytes, want %d: %w", at, typ, len(body), 8*need, unix.ErrMalformed)
		}
		switch typ {
		case sys.PERF_RECORD_SAMPLE:
			stats.Samples++
			if a := d.access(word, misc); d.takes(a, word(wordDataSrc)) {
				into = append(into, a)
				if d.ops {
					stats.note(a)
				}
			}
		case sys.PERF_RECORD_LOST:
			stats.Lost += word(1)
		case sys.PERF_RECORD_LOST_SAMPLES:
			stats.Lost += word(0)
		case sys.PERF_RECORD_THROTTLE:
			stats.Throttled++
		}
		at += headerBytes + len(body)
	}
	return into, stats, nil
}

func nextRecord(data []byte, at int) (typ uint32, misc uint16, body []byte, err error) {
	rest := data[at:]
	if len(rest) < headerBytes {
		return 0, 0, nil, fmt.Errorf("parse perf record at byte %d: %d bytes are no header: %w", at, len(rest), unix.ErrMalformed)
	}
	typ, misc = binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint16(rest[4:])
	size := int(binary.LittleEndian.Uint16(rest[6:]))
	if size < headerBytes || size > len(rest) {
		return 0, 0, nil, fmt.Errorf("parse perf record at byte %d: size is %d, %d bytes are left: %w", at, size, len(rest), unix.ErrMalformed)
	}
	return typ, misc, rest[headerBytes:size], nil
}

// miscKernel is PERF_RECORD_MISC_KERNEL under PERF_RECORD_MISC_CPUMODE_MASK.
const miscModeMask, miscKernel = 7, 1

func (d decoder) access(word func(int) uint64, misc uint16) Access {
	source := word(wordDataSrc)
	return Access{
		PID: int(int32(word(wordTID))), TID: int(int32(word(wordTID) >> 32)), CPU: int(uint32(word(wordCPU))),
		IP: word(wordIP), Addr: word(wordAddr), Time: word(wordTime), Weight: word(wordWeight),
		Level: d.level(source), Store: source&opStore != 0, Modified: source&snoopModified != 0,
		Kernel: misc&miscModeMask == miscKernel,
	}
}

// union perf_mem_data_src of include/uapi/linux/perf_event.h, as bits.
const (
	opLoad  = 1 << 1 // mem_op, from bit 0
	opStore = 1 << 2

	lvlHit       = 1 << (5 + 1) // mem_lvl, from bit 5
	lvlL1        = 1 << (5 + 3)
	lvlLFB       = 1 << (5 + 4)
	lvlL2        = 1 << (5 + 5)
	lvlL3        = 1 << (5 + 6)
	lvlLocalRAM  = 1 << (5 + 7)
	lvlRemoteRAM = 1<<(5+8) | 1<<(5+9)   // one hop, two hops
	lvlRemoteCCE = 1<<(5+10) | 1<<(5+11) // another cache: one hop, two hops
	lvlNearCCE   = 1 << (5 + 10)

	snoopModified = 1 << (19 + 4) // mem_snoop, from bit 19: HITM

	numberShift = 33 // mem_lvl_num, four bits; kernels since 4.14
	remoteBit   = 1 << 37
)

// Values of mem_lvl_num.
const (
	numberL1 = 1 + iota
	numberL2
	numberL3
	numberCXL      = 0x9
	numberAnyCache = 0xb
	numberLFB      = 0xc
	numberRAM      = 0xd
	numberPMEM     = 0xe
)

// level reads the older field first, which every kernel fills for Intel and AMD. A miss without
// a hit shows only where the line was not.
//
// AMD's one hop is another core complex of the same node; Zen 2 and 3 say so of hits in
// the own L3, too (perf_ibs_get_mem_lvl in arch/x86/events/amd/ibs.c).
func (d decoder) level(source uint64) Level {
	if source&lvlHit == 0 {
		return levelByNumber(source)
	}
	if d.ops && source&lvlNearCCE != 0 {
		return LLC
	}
	for _, l := range []struct {
		bits uint64
		is   Level
	}{
		{lvlRemoteRAM, RemoteDRAM}, {lvlLocalRAM, LocalDRAM}, {lvlRemoteCCE, RemoteCache},
		{lvlL3, LLC}, {lvlL2, L2}, {lvlLFB, FillBuffer}, {lvlL1, L1},
	} {
		if source&l.bits != 0 {
			return l.is
		}
	}
	return levelByNumber(source)
}

const lvlMiss = 1 << (5 + 2)

func levelByNumber(source uint64) Level {
	if source&lvlMiss != 0 {
		return Unknown
	}
	remote := source&remoteBit != 0
	switch source >> numberShift & 0xf {
	case numberL1:
		return L1
	case numberLFB:
		return FillBuffer
	case numberL2:
		return L2
	case numberL3, numberAnyCache:
		if remote {
			return RemoteCache
		}
		return LLC
	case numberRAM, numberPMEM, numberCXL:
		if remote {
			return RemoteDRAM
		}
		return LocalDRAM
	}
	return Unknown
}
