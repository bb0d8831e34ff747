// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// trace reads the accesses that Arm's SPE wrote. Its records know neither the task nor, for a
// thread's own event, the CPU: the kernel's records beside them do.
//
//	of a CPU      SWITCH        this task runs from now on
//	              ITRACE_START  this task runs since the event was enabled
//	of a thread   AUX           these bytes of the trace were written on this CPU
//
// Times in the trace are the CPU's counter, which the kernel's clock is made from.
type trace struct {
	ring     unix.Trace
	clock    unix.Clock
	tid      int // the thread that is traced; 0: a CPU
	cpu      int
	encoding speEncoding

	data   []byte // not read yet
	at     uint64 // the place of data in all that was written
	pieces []piece
	ran    []ran
}

// piece is what an AUX record says of the trace.
type piece struct {
	at, size uint64
	cpu, pid int
}

// ran says who runs from a time on.
type ran struct {
	time     uint64
	pid, tid int // tid −1: not known
}

const (
	// idWords end every record but samples: pid|tid, time, cpu (sample_id of perf_event_open(2)).
	idWords = 3
	// maxRan bounds what is remembered until the trace is read: a sample that is older than
	// the oldest has no task. The ring brings some 3,200 at a time.
	maxRan = 1 << 16

	switchedOut = 1 << 13 // PERF_RECORD_MISC_SWITCH_OUT

	traceCut   = 1 << 0 // PERF_AUX_FLAG_TRUNCATED: the buffer was full, and the event is stopped
	traceClash = 1 << 3 // PERF_AUX_FLAG_COLLISION: a sample was due while one was on its way
)

// restart forgets who ran: nothing was recorded while the event was off.
func (t *trace) restart() {
	if t != nil {
		t.ran = t.ran[:0]
	}
}

// take appends the accesses that were written since the last call. The trace is taken before the
// ring, so that the ring has every switch until then.
func (t *trace) take(into []Access, d decoder) (all []Access, stats Stats, err error) {
	data, at := t.ring.TakeTrace(t.data)
	if len(t.data) == 0 {
		t.at = at
	}
	t.data = data
	if err := t.records(t.ring.Take(nil), &stats); err != nil {
		return into, stats, err
	}
	if t.tid == 0 {
		into = t.read(into, d, t.data, piece{at: t.at, cpu: t.cpu}, &stats)
		t.data = t.data[:0]
		return into, stats, nil
	}
	into, err = t.readPieces(into, d, &stats)
	return into, stats, err
}

// readPieces reads what AUX records have told of. What lies between their pieces is filled up, or its
// record was lost.
func (t *trace) readPieces(into []Access, d decoder, stats *Stats) ([]Access, error) {
	for len(t.pieces) > 0 {
		p := t.pieces[0]
		if p.at < t.at || p.at+p.size < p.at {
			return into, fmt.Errorf("read the trace of accesses: a piece of %d bytes at byte %d, after byte %d: %w", p.size, p.at, t.at, unix.ErrMalformed)
		}
		if p.at+p.size > t.at+uint64(len(t.data)) {
			break // written since
		}
		t.pieces = t.pieces[1:]
		stats.Lost += recordsIn(t.data[:p.at-t.at], t.at)
		into = t.read(into, d, t.data[p.at-t.at:p.at-t.at+p.size], p, stats)
		t.data, t.at = t.data[p.at-t.at+p.size:], p.at+p.size
	}
	t.data = slices.Clone(t.data) // what is not read stays, without the rest
	return into, nil
}

// recordsIn is how many records are there, those that cannot be read included.
func recordsIn(data []byte, at uint64) (n uint64) {
	bad := operations(data, at, func(operation) { n++ })
	return n + bad
}

// settle counts what is left when sampling has ended: its AUX record found no room in the ring.
func (t *trace) settle() (lost uint64) {
	lost = recordsIn(t.data, t.at)
	t.data, t.pieces = nil, nil
	return lost
}

func (t *trace) records(data []byte, stats *Stats) error {
	for at := 0; at < len(data); {
		typ, misc, body, err := nextRecord(data, at)
		if err != nil {
			return err
		}
		words := map[uint32]int{sys.PERF_RECORD_AUX: 3, sys.PERF_RECORD_ITRACE_START: 1, sys.PERF_RECORD_SWITCH_CPU_WIDE: 1, sys.PERF_RECORD_LOST: 2}[typ]
		at += headerBytes + len(body)
		if words == 0 {
			continue
		}
		if len(body) < 8*(words+idWords) {
			return fmt.Errorf("parse perf record before byte %d: type %d has %d bytes, want %d: %w", at, typ, len(body), 8*(words+idWords), unix.ErrMalformed)
		}
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(body[8*i:]) }
		t.note(typ, misc, word, words, stats)
	}
	return nil
}

// note takes one record; id is where its sample_id begins.
func (t *trace) note(typ uint32, misc uint16, word func(int) uint64, id int, stats *Stats) {
	pid, tid, time := int(int32(word(id))), int(int32(word(id)>>32)), word(id+1)
	switch typ {
	case sys.PERF_RECORD_AUX:
		if t.tid != 0 {
			t.pieces = append(t.pieces, piece{word(0), word(1), int(uint32(word(id + 2))), pid})
		}
		if word(2)&traceClash != 0 {
			stats.Lost++ // one at least
		}
		if word(2)&traceCut != 0 {
			stats.Throttled++
			t.runs(ran{time, 0, -1})
		}
	case sys.PERF_RECORD_ITRACE_START:
		if len(t.ran) == 0 {
			time = 0 // it also ran just before
		}
		t.runs(ran{time, int(int32(word(0))), int(int32(word(0) >> 32))})
	case sys.PERF_RECORD_SWITCH_CPU_WIDE:
		if misc&switchedOut == 0 {
			t.runs(ran{time, pid, tid})
		}
	case sys.PERF_RECORD_LOST: // a switch, perhaps, since the last
		since := uint64(0)
		if n := len(t.ran); n > 0 {
			since = t.ran[n-1].time + 1
		}
		t.runs(ran{since, 0, -1})
	}
}

func (t *trace) runs(r ran) {
	if len(t.ran) == maxRan {
		t.ran = append(t.ran[:0], t.ran[maxRan/2:]...)
	}
	t.ran = append(t.ran, r)
}

// read appends the accesses of a piece.
func (t *trace) read(into []Access, d decoder, data []byte, p piece, stats *Stats) []Access {
	var last uint64
	bad := operations(data, p.at, func(op operation) {
		if !op.memory {
			return
		}
		stats.Samples++
		a := t.access(op, p)
		last = max(last, a.Time)
		if a.TID < 0 {
			stats.Lost++
			return
		}
		kind := uint64(opLoad)
		if op.store {
			kind = opStore
		}
		if d.takes(a, kind) {
			into = append(into, a)
			stats.note(a)
		}
	})
	stats.Lost += bad
	t.forget(last)
	return into
}

func (t *trace) access(op operation, p piece) Access {
	a := Access{PID: p.pid, TID: t.tid, CPU: p.cpu, Addr: op.addr, IP: op.ip, Weight: op.latency,
		Level: levelOfSPE(op, t.encoding), Store: op.store, Kernel: op.kernel, Modified: op.events&speModified != 0}
	switch {
	case t.tid != 0:
	case op.counter == 0:
		a.TID = -1
	default:
		a.Time = t.clock.At(op.counter)
		a.PID, a.TID = t.who(a.Time)
	}
	return a
}

// who ran at this time; tid −1: not known.
func (t *trace) who(time uint64) (pid, tid int) {
	next := sort.Search(len(t.ran), func(i int) bool { return t.ran[i].time > time })
	if next == 0 {
		return 0, -1
	}
	return t.ran[next-1].pid, t.ran[next-1].tid
}

// forget drops who ran before the task that ran at this time.
func (t *trace) forget(time uint64) {
	next := sort.Search(len(t.ran), func(i int) bool { return t.ran[i].time > time })
	if next > 1 {
		t.ran = append(t.ran[:0], t.ran[next-1:]...)
	}
}
