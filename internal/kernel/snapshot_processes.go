// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/snapshot"
)

// selectProcesses lists the processes to read, by PID: the named ones, and the largest
// of the others.
func (s *Snapshotter) selectProcesses() []int {
	var auto []int
	if s.cfg.Processes.All {
		auto = s.allProcesses()
	}
	for _, id := range s.cfg.Processes.Workloads {
		var err error
		if auto, err = s.reader.layout.PIDs(auto, id, &s.buf); err != nil && !errors.Is(err, ErrGone) {
			s.problem(err)
		}
	}
	slices.Sort(auto)
	auto = slices.Compact(auto)
	if s.cfg.Processes.Others {
		self := os.Getpid()
		auto = slices.DeleteFunc(auto, func(pid int) bool { return pid == self })
	}
	all := append(s.largest(auto), s.cfg.Processes.PIDs...)
	slices.Sort(all)
	return slices.Compact(all)
}

// allProcesses lists /proc.
func (s *Snapshotter) allProcesses() []int {
	pids, err := unix.IDs(s.cfg.Reader.Root.Path("/proc"))
	s.problem(unix.Explain("read", "/proc", "", err))
	return pids
}

// largest keeps Selection.Max processes, those with most resident memory. Those without
// any (kernel threads) are left out in any case.
func (s *Snapshotter) largest(pids []int) []int {
	if s.cfg.Processes.Max <= 0 && !s.cfg.Processes.All {
		return pids
	}
	type sized struct {
		pid   int
		pages uint64
	}
	var all []sized
	for _, pid := range pids {
		data, err := s.buf.ReadFile(s.reader.procPath(pid, "statm"))
		if err != nil {
			continue
		}
		pages, err := procfs.ParseStatm(data)
		if s.problem(err); pages > 0 {
			all = append(all, sized{pid, pages})
		}
	}
	slices.SortStableFunc(all, func(a, b sized) int { return cmp.Compare(b.pages, a.pages) })
	if n := s.cfg.Processes.Max; n > 0 && n < len(all) {
		all = all[:n]
	}
	out := make([]int, len(all))
	for i, p := range all {
		out[i] = p.pid
	}
	return out
}

// processes reads each. One that is gone, or has no memory, is left out, with a problem
// if it was named by number.
func (s *Snapshotter) processes(pids []int, d delta, length time.Duration) []snapshot.Process {
	out := make([]snapshot.Process, 0, len(pids))
	s.maps = s.cfg.Maps.Round.begin(nil)
	var refused []error
	for i, pid := range pids {
		if i%100 == 0 && i > 0 {
			s.cfg.Progress(fmt.Sprintf("process %d of %d", i, len(pids)))
		}
		p, err := s.process(pid, d, length)
		left := errors.Is(err, ErrGone) || errors.Is(err, errNoMemory)
		switch _, named := slices.BinarySearch(s.cfg.Processes.PIDs, pid); {
		case errors.Is(err, ErrNotPermitted) && !named:
			refused = append(refused, err)
		case named || !left:
			s.problem(err)
		}
		if !left {
			out = append(out, p)
		}
	}
	s.problem(sumUp(refused, len(pids)))
	return out
}

// sumUp makes one sentence instead of one for each process of the host.
func sumUp(refused []error, of int) error {
	if len(refused) < 2 {
		return errors.Join(refused...)
	}
	return fmt.Errorf("of %d processes, %d could not be read; the first: %w", of, len(refused), refused[0])
}

// process reads one process. With an error, unless it is gone or has no memory, the
// rest of the result is valid.
func (s *Snapshotter) process(pid int, d delta, length time.Duration) (snapshot.Process, error) {
	p := snapshot.Process{PID: pid}
	if comm, err := s.buf.Line(s.reader.procPath(pid, "comm")); err == nil {
		p.Name = string(comm)
	}
	memory := s.memory(&p)
	if memory != nil {
		p.ByKind, p.Mappings, p.MemoryHow = snapshot.ByKind{}, nil, memory.Error()
	}
	if errors.Is(memory, ErrGone) || errors.Is(memory, errNoMemory) {
		return p, memory
	}
	if s.cfg.Threads || !s.cfg.OnlyProcesses {
		s.allowed(&p)
		p.Workload = s.workloadOf(pid)
	}
	if s.cfg.Threads {
		s.threads(&p, d, length)
	}
	return p, memory
}

// allowed reads where the process may run and have memory.
func (s *Snapshotter) allowed(p *snapshot.Process) {
	data, err := s.buf.ReadFile(s.reader.procPath(p.PID, "status"))
	if err != nil {
		return
	}
	st, err := procfs.ParseTaskStatus(data)
	s.problem(err)
	p.Allowed, p.Mems = st.CPUs, st.Mems
}

// workloadOf is the workload whose cgroup, or whose child's, the process is in.
func (s *Snapshotter) workloadOf(pid int) string {
	if len(s.reader.workloads) == 0 {
		return ""
	}
	data, err := s.buf.ReadFile(s.reader.procPath(pid, "cgroup"))
	if err != nil {
		return ""
	}
	all, err := procfs.ParsePIDCgroup(data)
	s.problem(err)
	at, ok := s.reader.layout.CpusetIn(all)
	for ; ok; at = path.Dir(at) {
		if _, known := s.reader.workloads[at]; known {
			return at
		}
		ok = at != "/"
	}
	return ""
}
