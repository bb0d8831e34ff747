// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"encoding/binary"

	"homenode/internal/event"
)

// operation is one record of Arm's Statistical Profiling Extension (SPE): an operation with
// what its CPU noted of it.
type operation struct {
	memory, store bool
	kernel        bool
	ip, addr      uint64 // 0: not known
	latency       uint64 // cycles from dispatch to completion; 0: not known
	events        uint64 // bits, see spe…
	source        uint64 // by speEncoding
	sourced       bool
	counter       uint64 // of the CPU, when the record was made; 0: not known
}

// Headers of SPE's packets (Arm ARM, Statistical Profiling Extension, "packets"). Bits 4 and 5
// of most are the payload's size: 1, 2, 4 or 8 bytes.
const (
	spePad       = 0x00
	speEnd       = 0x01
	speTimestamp = 0x71 // ends a record, too
	speExtended  = 0x20 // to 0x23: the next byte is a header, or 0: fill up to a multiple of 2^(n+1)

	speEvents    = 0x42 // without the size: mask 0xcf
	speSource    = 0x43
	speContext   = 0x64 // to 0x67
	speOperation = 0x48 // to 0x4b, by class
	speCounter   = 0x98 // to 0x9f, by index
	speAddress   = 0xb0 // to 0xb7, by index

	speMemory   = speOperation + 1 // the class of loads, stores and atomics; bit 0 of its payload: a store
	speLatency  = speCounter + 0   // total
	speIP       = speAddress + 0
	speDataAddr = speAddress + 2 // virtual
)

// Bits of the events' payload.
const (
	speL1Access = 1 << 2
	speL1Refill = 1 << 3
	speLLC      = 1 << 8
	speLLCMiss  = 1 << 9
	speRemote   = 1 << 10 // another socket
	speModified = 1 << 21
	speSnooped  = 1 << 23
)

// speLine is where records begin in the CPU's buffer: they are padded up to it. Reading goes on
// there after one that makes no sense.
const speLine = 64

// operations reads records and passes each to each. at is the first byte's place in the buffer.
// It returns how many pieces it could not read: a record that is cut off is one.
func operations(data []byte, at uint64, each func(operation)) (bad uint64) {
	var op operation
	open := false // packets of a record were read, and not its end
	for len(data) > 0 {
		header, payload, n := packet(data, at)
		if n == 0 {
			bad, open, op = bad+1, false, operation{}
			n = int(min(speLine-at%speLine, uint64(len(data))))
		}
		data, at = data[n:], at+uint64(n)
		switch header {
		case spePad:
		case speEnd, speTimestamp:
			op.counter = payload
			each(op)
			open, op = false, operation{}
		default:
			open = true
			op.note(header, payload)
		}
	}
	if open {
		bad++
	}
	return bad
}

// packet is the first packet of data and its length: 0 if it is none, or not all there. Headers
// come without their sizes.
func packet(data []byte, at uint64) (header byte, payload uint64, n int) {
	header, n = data[0], 1
	further := false // an index from 8 on, of which none is read
	switch {
	case header == spePad || header == speEnd:
		return header, 0, n
	case header&0xfc == speExtended:
		if len(data) < 2 {
			return spePad, 0, 0
		}
		if data[1] == 0 {
			return spePad, 0, int(min(fill(header, at), uint64(len(data))))
		}
		further = header&3 != 0
		header, n = data[1], 2
	}
	size := 1 << (header >> 4 & 3)
	if len(data) < n+size || !known(header) {
		return spePad, 0, 0
	}
	if further {
		return spePad, 0, n + size
	}
	var word [8]byte
	copy(word[:], data[n:n+size])
	if sized := header & 0xcf; sized == speEvents || sized == speSource {
		header = sized
	}
	return header, binary.LittleEndian.Uint64(word[:]), n + size
}

// fill is how far it is from at to the next multiple of an alignment packet.
func fill(header byte, at uint64) uint64 {
	to := uint64(2) << (header & 0xf)
	return to - at&(to-1)
}

func known(header byte) bool {
	switch {
	case header == speTimestamp, header&0xcf == speEvents, header&0xcf == speSource,
		header&0xfc == speContext, header&0xfc == speOperation, header&0xf8 == speCounter, header&0xf8 == speAddress:
		return true
	}
	return false
}

// address is a virtual address without the top byte, which is a tag or says who ran.
func address(payload uint64) uint64 {
	const kernelHalf = 0xf << 52
	low := payload &^ (0xff << 56)
	if low&kernelHalf == kernelHalf {
		low |= 0xff << 56
	}
	return low
}

func (op *operation) note(header byte, payload uint64) {
	const level = 61 // two bits of an instruction's address: the exception level
	switch header {
	case speMemory:
		op.memory, op.store = true, payload&1 != 0
	case speLatency:
		op.latency = payload
	case speIP:
		op.ip, op.kernel = address(payload), payload>>level&3 != 0
	case speDataAddr:
		op.addr = address(payload)
	case speEvents:
		op.events = payload
	case speSource:
		op.source, op.sourced = payload, true
	}
}

// speEncoding is what a CPU means by the source of a record: the architecture leaves it to the
// CPU. The values are those of Linux' tools/perf/util/arm-spe-decoder/arm-spe-decoder.h.
type speEncoding int

const (
	speByEvents speEncoding = iota // not known
	speNeoverse
	speAmpereOne
)

// encodingOf takes the CPUs that perf takes (common_ds_encoding_cpus and its neighbours in
// tools/perf/util/arm-spe.c).
func encodingOf(cpu event.CPU) speEncoding {
	const arm, microsoft, ampere = 0x41, 0x6d, 0xc0
	switch {
	case cpu.Implementer == ampere && cpu.Part == 0xac4:
		return speAmpereOne
	case cpu.Implementer == microsoft && cpu.Part == 0xd49: // Cobalt 100: Neoverse N2
		return speNeoverse
	case cpu.Implementer == arm && (cpu.Part == 0xd0c || cpu.Part == 0xd40 || cpu.Part == 0xd49 || cpu.Part == 0xd4f):
		return speNeoverse // N1, V1, N2, V2
	}
	return speByEvents
}

// levelOfSPE is where a load found its line; of a store SPE does not tell. What comes from another
// socket is out of its memory or of a cache there: SPE tells them apart only if it says that
// another CPU had the line.
func levelOfSPE(op operation, by speEncoding) Level {
	switch {
	case op.store:
		return Unknown
	case by == speByEvents || !op.sourced:
		return levelByEvents(op.events)
	}
	level := speSources[by][op.source] // Unknown where it is another
	if level == RemoteDRAM && op.events&(speModified|speSnooped) != 0 {
		return RemoteCache
	}
	return level
}

// speSources are the sources of a record, by encoding.
var speSources = map[speEncoding]map[uint64]Level{
	speNeoverse:  {0x0: L1, 0x8: L2, 0x9: LLC, 0xa: LLC, 0xb: LLC, 0xc: LLC, 0xd: RemoteDRAM, 0xe: LocalDRAM},
	speAmpereOne: {0x0: LLC, 0x3: LLC, 0x5: RemoteCache, 0x7: LocalDRAM, 0x8: L1, 0x9: L2},
}

// levelByEvents is known for hits, and for what came from another socket.
func levelByEvents(events uint64) Level {
	switch {
	case events&speRemote != 0 && events&(speModified|speSnooped) != 0:
		return RemoteCache
	case events&speRemote != 0:
		return RemoteDRAM
	case events&speL1Access != 0 && events&speL1Refill == 0:
		return L1
	case events&speLLC != 0 && events&speLLCMiss == 0:
		return LLC
	}
	return Unknown
}

// The fields of SPE's perf_event_attr.config (drivers/perf/arm_spe_pmu.c).
const (
	speWithTime = 1 << 0
	speJitter   = 1 << 16 // the period varies, so that a loop of its length is not sampled at one place
	speLoads    = 1 << 33
	speStores   = 1 << 34
)

// speConfig asks for loads, stores or both.
func speConfig(loads, stores bool) uint64 {
	config := uint64(speWithTime | speJitter)
	if loads {
		config |= speLoads
	}
	if stores {
		config |= speStores
	}
	return config
}
