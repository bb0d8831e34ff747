// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Process is what is known of a process before its memory is touched.
type Process struct {
	PID  int
	Name string        // its own name: not to be trusted
	UID  unit.Opt[int] // effective
	Mems set.NodeSet   // that its cpuset allows
}

// String names it: "process 12 (app)".
func (p Process) String() string { return fmt.Sprintf("process %d (%s)", p.PID, p.Name) }

// FindProcess refuses a pid without memory of its own: one that does not exist, has
// ended, is the kernel's, or is a thread of another process.
func FindProcess(root Root, pid int) (Process, error) {
	var buf unix.Buffer
	read := func(file string) ([]byte, error) {
		path := fmt.Sprintf("/proc/%d/%s", pid, file)
		data, err := buf.ReadFile(root.Path(path))
		if err = unix.Explain("read", path, "", err); errors.Is(err, ErrGone) {
			err = fmt.Errorf("process %d: it does not exist, or it has ended (%w)", pid, ErrGone)
		}
		return data, err
	}
	data, err := read("stat")
	if err != nil {
		return Process{}, err
	}
	p := Process{PID: pid, Name: procfs.TaskName(data)}
	st, err := procfs.ParseTaskStat(data)
	switch {
	case err != nil:
		return Process{}, err
	case st.KernelThread():
		return Process{}, fmt.Errorf("%v is a kernel thread: it has no memory of its own (%w)", p, ErrNotSupported)
	case st.State == 'Z' || st.State == 'X':
		return Process{}, fmt.Errorf("%v has ended and waits for its parent to notice: it has no memory any more (%w)", p, ErrGone)
	}
	if data, err = read("status"); err != nil {
		return Process{}, err
	}
	s, err := procfs.ParseTaskStatus(data)
	if err != nil {
		return Process{}, err
	}
	if of, ok := s.Process.Get(); ok && of != pid {
		return Process{}, fmt.Errorf("%d is a thread of process %d: give the process (%w)", pid, of, ErrMalformed)
	}
	p.UID, p.Mems = s.UID, s.Mems
	return p, nil
}

// ThreadIDs are the threads of a process, ascending.
func ThreadIDs(root Root, pid int) (tids []int, err error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tids, err = unix.IDs(root.Path(dir))
	return tids, unix.Explain("read", dir, "", err)
}

// Powers are what this process may do to other processes.
type Powers struct {
	UID  unit.Opt[int]
	caps unit.Opt[uint64]
}

// ReadPowers reads them from /proc/self/status.
func ReadPowers(root Root) (Powers, error) {
	var buf unix.Buffer
	s, err := unix.Parsed(&buf, root.Path("/proc/self/status"), procfs.ParseTaskStatus)
	return Powers{UID: s.UID, caps: s.Caps}, err
}

// Nice says that it has CAP_SYS_NICE: pages that several processes map may be moved.
func (p Powers) Nice() bool { return p.caps.Or(0)&procfs.CapNice != 0 }

// Lacks names the capabilities that acting on other users' processes needs and that
// this process does not have: kernel_move_pages in mm/migrate.c requires the right to
// trace the process, and CAP_SYS_NICE if other processes map the page too.
func (p Powers) Lacks() (names []string) {
	if !p.Nice() {
		names = append(names, "CAP_SYS_NICE")
	}
	if p.caps.Or(0)&procfs.CapPtrace == 0 {
		names = append(names, "CAP_SYS_PTRACE")
	}
	return names
}
