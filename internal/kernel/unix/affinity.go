// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"unsafe"

	sys "golang.org/x/sys/unix"

	"homenode/internal/set"
)

// CPUWords holds a mask of every CPU that a set can have.
type CPUWords [(set.MaxCPU + 64) / 64]uint64

// Affinity reads and sets the CPUs on which a thread may run; tests have a fake one.
type Affinity interface {
	// Affinity fills mask and returns how many words of it the kernel knows. It leaves
	// out CPUs that are offline (sched_getaffinity in kernel/sched/core.c).
	Affinity(tid int, mask *CPUWords) (words int, err error)
	SetAffinity(tid int, mask []uint64) error
}

// LiveAffinity is sched_getaffinity(2) and sched_setaffinity(2) of the running kernel.
type LiveAffinity struct{}

// Affinity allocates nothing.
func (LiveAffinity) Affinity(tid int, mask *CPUWords) (int, error) {
	n, _, errno := sys.RawSyscall(sys.SYS_SCHED_GETAFFINITY, uintptr(tid), unsafe.Sizeof(*mask), uintptr(unsafe.Pointer(mask)))
	if errno != 0 {
		return 0, errno
	}
	return int(n) / 8, nil
}

// SetAffinity returns when a running thread has left the CPUs that are not in mask
// (__set_cpus_allowed_ptr): it waits for a moment.
func (LiveAffinity) SetAffinity(tid int, mask []uint64) error {
	_, _, errno := sys.Syscall(sys.SYS_SCHED_SETAFFINITY, uintptr(tid), uintptr(8*len(mask)), uintptr(unsafe.Pointer(&mask[0])))
	if errno != 0 {
		return errno
	}
	return nil
}

// Tasks opens and reads perf events of single threads; tests have a fake one.
type Tasks interface {
	// OpenInGroup opens one event of a thread on any CPU; group is −1 for a leader.
	OpenInGroup(attr *sys.PerfEventAttr, tid, group int) (int, error)
	Read(fd int, words []uint64) (int, error)
	Close(fd int)
}

// OpenInGroup does not follow threads that the thread starts: each is opened for itself.
func (LivePerf) OpenInGroup(attr *sys.PerfEventAttr, tid, group int) (int, error) {
	return sys.PerfEventOpen(attr, tid, -1, group, sys.PERF_FLAG_FD_CLOEXEC)
}
