// SPDX-License-Identifier: Apache-2.0

package unix

import (
	"context"
	"os"
	"time"
	"unsafe"

	sys "golang.org/x/sys/unix"
)

// Perf opens and reads perf events; tests have a fake one.
type Perf interface {
	Open(attr *sys.PerfEventAttr, cgroupFD, cpu, groupFD int) (int, error)
	Read(fd int, words []uint64) (int, error)
	Close(fd int)
	OpenDir(path string) (int, error)
}

// LivePerf is perf_event_open(2) of the running kernel.
type LivePerf struct{}

// Open opens one event of a cgroup on one CPU; groupFD is −1 for a leader.
func (LivePerf) Open(attr *sys.PerfEventAttr, cgroupFD, cpu, groupFD int) (int, error) {
	return sys.PerfEventOpen(attr, cgroupFD, cpu, groupFD, sys.PERF_FLAG_PID_CGROUP|sys.PERF_FLAG_FD_CLOEXEC)
}

// OpenOnCPU opens an event for everything that runs on one CPU; groupFD is −1 for a
// leader.
func OpenOnCPU(attr *sys.PerfEventAttr, cpu, groupFD int) (int, error) {
	return sys.PerfEventOpen(attr, -1, cpu, groupFD, sys.PERF_FLAG_FD_CLOEXEC)
}

// Read fills words and returns how many the kernel wrote.
func (LivePerf) Read(fd int, words []uint64) (int, error) {
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
	n, err := ignoringEINTR(func() (int, error) { return sys.Read(fd, bytes) })
	return max(n, 0) / 8, err
}

// ReadCount reads value, time enabled and time running of one event. The call does not
// wait, so Go's scheduler is not told.
//
//go:nosplit
func ReadCount(fd int, words *[3]uint64) bool {
	n, _, errno := sys.RawSyscall(sys.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(words)), unsafe.Sizeof(*words))
	return errno == 0 && n == unsafe.Sizeof(*words)
}

// Close closes an event or a directory.
func (LivePerf) Close(fd int) { sys.Close(fd) }

// OpenDir opens a cgroup's directory, which names the cgroup to the kernel.
func (LivePerf) OpenDir(path string) (int, error) {
	return sys.Open(path, sys.O_RDONLY|sys.O_DIRECTORY|sys.O_CLOEXEC, 0)
}

// Pager moves and locates pages of a process; tests have a fake one.
type Pager interface {
	// MovePages moves the pages at addrs to nodes, or only reports where they are when
	// nodes is nil. status[i] is a node or a negated errno. left is the number of pages
	// the kernel gave up on (since 4.17); their status is not set.
	MovePages(pid int, addrs []uintptr, nodes, status []int32, flags int) (left int, err error)
}

// Flags of MovePages, from include/uapi/linux/mempolicy.h.
const (
	MoveOwn = 1 << 1 // MPOL_MF_MOVE: only pages that no other process maps
	MoveAll = 1 << 2 // MPOL_MF_MOVE_ALL: shared ones too; needs CAP_SYS_NICE
)

// LivePager is move_pages(2) of the running kernel.
type LivePager struct{}

// MovePages needs len(addrs) > 0 and slices of equal length.
func (LivePager) MovePages(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
	var to unsafe.Pointer
	if nodes != nil {
		to = unsafe.Pointer(&nodes[0])
	}
	n, _, errno := sys.Syscall6(sys.SYS_MOVE_PAGES, uintptr(pid), uintptr(len(addrs)),
		uintptr(unsafe.Pointer(&addrs[0])), uintptr(to), uintptr(unsafe.Pointer(&status[0])), uintptr(flags))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// ThreadCPU is the CPU time the calling thread has used. The caller holds the
// thread with runtime.LockOSThread.
func ThreadCPU() time.Duration {
	var ts sys.Timespec // in nanoseconds, where getrusage may count in ticks
	if sys.ClockGettime(sys.CLOCK_THREAD_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// ProcessCPU is the CPU time all threads of this process have used.
func ProcessCPU() time.Duration {
	var ts sys.Timespec
	if sys.ClockGettime(sys.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Sleep waits until d is over or ctx is done, and then returns its error.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// RaiseFileLimit lifts the soft limit of open files to the hard one and returns
// what holds now.
func RaiseFileLimit() (uint64, error) {
	var lim sys.Rlimit
	if err := sys.Getrlimit(sys.RLIMIT_NOFILE, &lim); err != nil {
		return 0, Explain("read", "RLIMIT_NOFILE", "", err)
	}
	if lim.Cur == lim.Max {
		return lim.Cur, nil
	}
	want := sys.Rlimit{Cur: lim.Max, Max: lim.Max}
	if err := sys.Setrlimit(sys.RLIMIT_NOFILE, &want); err != nil {
		return lim.Cur, Explain("raise", "RLIMIT_NOFILE", "CAP_SYS_RESOURCE", err)
	}
	return want.Cur, nil
}

// TryLock takes an exclusive lock on an open file without waiting; false when another
// process holds it. The lock ends with the process, however that ends.
func TryLock(f *os.File) (bool, error) {
	_, err := ignoringEINTR(func() (int, error) { return 0, sys.Flock(int(f.Fd()), sys.LOCK_EX|sys.LOCK_NB) })
	if err == sys.EWOULDBLOCK {
		return false, nil
	}
	return err == nil, err
}

// PageSize is the size of a base page.
func PageSize() int { return os.Getpagesize() }

// RemoveDir is rmdir(2).
func RemoveDir(path string) error {
	_, err := ignoringEINTR(func() (int, error) { return 0, sys.Rmdir(path) })
	if err != nil {
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}
