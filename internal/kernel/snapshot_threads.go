// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// threadTicks is a thread's CPU time so far. With its start time a TID identifies a
// thread.
type threadTicks struct {
	ticks, start uint64
	cpu          int
	name         string
	waited       unit.Opt[time.Duration] // runnable, and not running
}

// countThreads reads the time of every thread of these processes.
func (s *Snapshotter) countThreads(pids []int) map[int]threadTicks {
	all := map[int]threadTicks{}
	for _, pid := range pids {
		for _, tid := range s.threadIDs(pid) {
			data, err := s.buf.ReadFile(s.reader.taskPath(pid, tid, "stat"))
			if err != nil {
				continue
			}
			st, err := procfs.ParseTaskStat(data)
			if s.problem(err); err == nil && !st.KernelThread() {
				all[tid] = threadTicks{st.Ticks, st.Start, st.CPU, procfs.TaskName(data), s.waited(pid, tid)}
			}
		}
	}
	return all
}

// waited is unknown if the kernel does not account it.
func (s *Snapshotter) waited(pid, tid int) unit.Opt[time.Duration] {
	data, err := s.buf.ReadFile(s.reader.taskPath(pid, tid, "schedstat"))
	if err != nil {
		return unit.None[time.Duration]()
	}
	_, w, err := procfs.ParseSchedstat(data)
	s.problem(err)
	return unit.OptOf(w, err == nil && !bytes.HasPrefix(data, []byte("0 0 0")))
}

// threadIDs is empty for a process that has ended.
func (s *Snapshotter) threadIDs(pid int) []int {
	tids, _ := ThreadIDs(s.cfg.Reader.Root, pid)
	return tids
}

// threads fills in the threads, those that ran most first, CPU by node, and the
// guest.
func (s *Snapshotter) threads(p *snapshot.Process, d delta, length time.Duration) {
	n := len(d.nodes)
	by := make([]float64, n)
	known := d.was != nil && length > 0
	whole := true // the time of every thread is known
	for _, tid := range s.threadIDs(p.PID) {
		now, ok := d.now.threads[tid]
		if !ok {
			continue
		}
		t := snapshot.Thread{TID: tid, Name: now.name, CPU: now.cpu, CPUTime: unit.UnknownValue[float64](oneReading)}
		if known {
			t.CPUTime = usedSince(d.was, tid, now, length)
			t.Waited = waitedSince(d.was.threads[tid], now, length)
		}
		if used, ok := t.CPUTime.Get(); !ok {
			whole = false
		} else if i, ok := s.reader.topology.NodeAt(now.cpu); ok {
			by[i] += used
		}
		t.Allowed = s.threadAllowed(p.PID, tid)
		p.Threads = append(p.Threads, t)
	}
	p.CPUByNode = unknownByNode[float64](n, oneReading)
	switch {
	case known && whole:
		p.CPUByNode = values(by, unit.HowEstimated, byLastCPU)
	case known:
		p.CPUByNode = unknownByNode[float64](n, "no earlier reading of some of its threads")
	}
	p.Guest = s.guest(p)
}

// uptime is from /proc/uptime: seconds since boot, with two decimals, and the idle
// time of all CPUs.
func (s *Snapshotter) uptime() unit.Opt[uint64] {
	data, err := s.buf.ReadFile(s.cfg.Reader.Root.Path("/proc/uptime"))
	if err != nil {
		return unit.None[uint64]()
	}
	text, _, _ := strings.Cut(string(data), " ")
	sec, err := strconv.ParseFloat(text, 64)
	return unit.OptOf(uint64(max(0, sec)*userHZ), err == nil && sec < 1e12)
}

// usedSince is a thread's share of a CPU. A thread that started in between used all its
// time in the period. The share of an older one that was not read before (its process
// is among the largest only now) is unknown: its time so far may be years.
func usedSince(before *reading, tid int, now threadTicks, length time.Duration) unit.Value[float64] {
	const from = "/proc/PID/task/TID/stat"
	was, seen := before.threads[tid]
	reused := seen && was.start != now.start // the other one has ended since
	if up, ok := before.uptime.Get(); !seen && !(ok && now.start >= up) {
		return unit.UnknownValue[float64]("no earlier reading of this thread")
	}
	if !seen || reused {
		was.ticks = 0
	}
	if was.ticks > now.ticks {
		return unit.UnknownValue[float64](from + ": the counter went backwards")
	}
	return unit.Measured(float64(now.ticks-was.ticks)/userHZ/length.Seconds(), from)
}

// waitedSince is the share of the period in which a thread waited for its CPU.
func waitedSince(was, now threadTicks, length time.Duration) unit.Value[float64] {
	const from = "/proc/PID/task/TID/schedstat"
	a, ok1 := was.waited.Get()
	b, ok2 := now.waited.Get()
	if !ok1 || !ok2 || was.start != now.start || b < a {
		return unit.UnknownValue[float64](from + " does not show it")
	}
	return unit.Measured(min(1, (b-a).Seconds()/length.Seconds()), from)
}

func (s *Snapshotter) threadAllowed(pid, tid int) set.CPUSet {
	data, err := s.buf.ReadFile(s.reader.taskPath(pid, tid, "status"))
	if err != nil {
		return set.CPUSet{}
	}
	st, err := procfs.ParseTaskStatus(data)
	s.problem(err)
	return st.CPUs
}

// guest recognises a virtual machine's process:
//
//  1. QEMU names its virtual CPUs' threads "CPU 0/KVM" or "CPU 0/TCG", if -name
//     debug-threads=on is given (libvirt always does so).
//  2. Otherwise the program's name shows that it is one; the number of virtual CPUs is
//     then not known.
//  3. The nodes of the guest are the "-numa node" arguments; without any the guest
//     is flat. The command line itself may hold secrets and is not kept.
func (s *Snapshotter) guest(p *snapshot.Process) *snapshot.Guest {
	g := snapshot.Guest{}
	for _, t := range p.Threads {
		if rest, ok := strings.CutPrefix(t.Name, "CPU "); ok && (strings.HasSuffix(rest, "/KVM") || strings.HasSuffix(rest, "/TCG")) {
			g.VCPUThreads = append(g.VCPUThreads, t.TID)
		}
	}
	g.VCPUs = len(g.VCPUThreads)
	if g.VCPUs == 0 && !strings.HasPrefix(p.Name, "qemu-system-") && p.Name != "qemu-kvm" {
		return nil
	}
	data, err := s.buf.Head(s.reader.procPath(p.PID, "cmdline"), maxCmdline)
	if err != nil || len(data) == 0 {
		g.Nodes = unit.UnknownValue[int](fmt.Sprintf("/proc/%d/cmdline cannot be read", p.PID))
		return &g
	}
	if len(data) == maxCmdline {
		g.Nodes = unit.UnknownValue[int](fmt.Sprintf("/proc/%d/cmdline has more than %d bytes", p.PID, maxCmdline))
		return &g
	}
	g.Nodes = unit.Measured(guestNodes(data), "-numa of its command line")
	return &g
}

// maxCmdline is the most that is read of a command line: libvirt's, with a hundred
// devices, have 30 KiB.
const maxCmdline = 1 << 20

// guestNodes counts "-numa node,…" arguments; none is one node.
func guestNodes(cmdline []byte) int {
	n, numa := 0, false
	for arg := range bytes.SplitSeq(cmdline, []byte{0}) {
		if numa && (bytes.Equal(arg, []byte("node")) || bytes.HasPrefix(arg, []byte("node,"))) {
			n++
		}
		numa = string(arg) == "-numa" || string(arg) == "--numa"
	}
	return cmp.Or(n, 1)
}
