// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"math/bits"
	"sync/atomic"

	sys "golang.org/x/sys/unix"
)

type liveTrace struct {
	*liveRing
	trace []byte
}

// Trace maps the trace's buffer behind the ring. It is writable, so that the kernel stops at
// what was not taken yet.
func (LivePerf) Trace(fd, pages, tracePages int) (Trace, error) {
	r, err := ring(fd, pages)
	if err != nil {
		return nil, err
	}
	r.control.Aux_offset, r.control.Aux_size = uint64(len(r.all)), uint64(tracePages*PageSize())
	trace, err := sys.Mmap(fd, int64(len(r.all)), tracePages*PageSize(), sys.PROT_READ|sys.PROT_WRITE, sys.MAP_SHARED)
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	return &liveTrace{liveRing: r, trace: trace}, nil
}

// TakeTrace has the barriers of liveRing.Take: perf_aux_output_begin and _end are the other half.
func (t *liveTrace) TakeTrace(into []byte) ([]byte, uint64) {
	head, tail := atomic.LoadUint64(&t.control.Aux_head), t.control.Aux_tail
	into = wrapped(into, t.trace, tail, head)
	atomic.StoreUint64(&t.control.Aux_tail, head)
	return into, tail
}

func (t *liveTrace) Close() error {
	err := sys.Munmap(t.trace) // before its ring: the kernel wants it so
	if other := t.liveRing.Close(); err == nil {
		err = other
	}
	return err
}

// Bits of perf_event_mmap_page.capabilities.
const (
	capUserTimeZero  = 1 << 4
	capUserTimeShort = 1 << 5
)

// Clock reads the words again where the kernel changed them meanwhile (lock is its sequence
// counter).
func (t *liveTrace) Clock() (Clock, bool) {
	for {
		before := atomic.LoadUint32(&t.control.Lock)
		c := Clock{Shift: t.control.Time_shift, Mult: t.control.Time_mult, Zero: t.control.Time_zero, Mask: ^uint64(0)}
		can := t.control.Capabilities
		if can&capUserTimeShort != 0 {
			c.Cycles, c.Mask = t.control.Time_cycles, t.control.Time_mask
		}
		if atomic.LoadUint32(&t.control.Lock) == before && before&1 == 0 {
			return c, can&capUserTimeZero != 0
		}
	}
}

// Clock converts the CPU's counter to the time of perf's records, as
// include/uapi/linux/perf_event.h describes it.
type Clock struct {
	Shift        uint16
	Mult         uint32
	Zero         uint64
	Cycles, Mask uint64 // a counter with fewer bits: its value at some time, and its bits
}

// At is the time, in ns, when the counter had this value.
func (c Clock) At(counter uint64) uint64 {
	counter = c.Cycles + (counter-c.Cycles)&c.Mask
	high, low := bits.Mul64(counter, uint64(c.Mult))
	return c.Zero + high<<(64-c.Shift) + low>>c.Shift
}
