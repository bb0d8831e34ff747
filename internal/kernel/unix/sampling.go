// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"sync/atomic"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// Sampling opens perf events whose samples the kernel writes into a ring
// buffer; tests have a fake one.
type Sampling interface {
	Perf
	// OpenTask opens one event of a thread (pid) on one CPU; -1 means any of
	// either, but not of both. group is −1 for a leader.
	OpenTask(attr *sys.PerfEventAttr, pid, cpu, group int) (int, error)
	// Ring maps a buffer of 2^n pages for the event's samples.
	Ring(fd, pages int) (Ring, error)
	// Trace maps a ring of 2^n pages, and a buffer of 2^m for a PMU that writes by itself.
	Trace(fd, pages, tracePages int) (Trace, error)
	Enable(fd int) error
	Disable(fd int) error
}

// Ring is the ring buffer of an event.
type Ring interface {
	// Take appends the bytes of all records since the last call, whole and in order, and
	// frees their room for the kernel.
	Take(into []byte) []byte
	Close() error
}

// Trace is the ring of an event with the buffer that its PMU writes (perf's AUX area).
type Trace interface {
	Ring
	// TakeTrace appends what was written since the last call, and frees its room. at is how
	// many bytes were written before it.
	TakeTrace(into []byte) (data []byte, at uint64)
	// Clock is how times in the trace become times of the ring's records; false: the kernel
	// does not publish it.
	Clock() (Clock, bool)
}

// OpenTask opens one event of a thread, or of a CPU.
func (LivePerf) OpenTask(attr *sys.PerfEventAttr, pid, cpu, group int) (int, error) {
	return sys.PerfEventOpen(attr, pid, cpu, group, sys.PERF_FLAG_FD_CLOEXEC)
}

// Enable starts an event that was opened disabled.
func (LivePerf) Enable(fd int) error { return sys.IoctlSetInt(fd, sys.PERF_EVENT_IOC_ENABLE, 0) }

// Disable stops an event; its samples are in the ring when this returns.
func (LivePerf) Disable(fd int) error { return sys.IoctlSetInt(fd, sys.PERF_EVENT_IOC_DISABLE, 0) }

// Ring maps one page of control words and the data behind it.
func (LivePerf) Ring(fd, pages int) (Ring, error) { return ring(fd, pages) }

func ring(fd, pages int) (*liveRing, error) {
	all, err := sys.Mmap(fd, 0, (1+pages)*PageSize(), sys.PROT_READ|sys.PROT_WRITE, sys.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &liveRing{
		all: all, data: all[PageSize():],
		control: (*sys.PerfEventMmapPage)(unsafe.Pointer(&all[0])),
	}, nil
}

type liveRing struct {
	all, data []byte
	control   *sys.PerfEventMmapPage
}

// Take reads up to data_head, which the kernel writes after the records, and
// stores data_tail after they are copied (perf_output_put_handle in
// kernel/events/ring_buffer.c has the other half of these barriers).
func (r *liveRing) Take(into []byte) []byte {
	head, tail := atomic.LoadUint64(&r.control.Data_head), r.control.Data_tail
	into = wrapped(into, r.data, tail, head)
	atomic.StoreUint64(&r.control.Data_tail, head)
	return into
}

// wrapped appends what lies from tail to head, which only grow, in a buffer that is written round
// and round.
func wrapped(into, buffer []byte, tail, head uint64) []byte {
	size := uint64(len(buffer))
	for tail != head {
		at := tail % size
		n := min(head-tail, size-at)
		into = append(into, buffer[at:at+n]...)
		tail += n
	}
	return into
}

func (r *liveRing) Close() error { return sys.Munmap(r.all) }
