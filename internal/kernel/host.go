// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strconv"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// userHZ is the unit of ticks in /proc: 100 a second on every architecture that
// matters here (USER_HZ, include/asm-generic/param.h).
const userHZ = 100

// host is where a reader reads, and what all readers there share.
type host struct {
	root     Root
	proc     string // "/proc/" below the root
	now      func() time.Time
	ours     func(id, file, value string) bool // Config.Ours
	bounds   MapsBounds
	layout   cgroup.Layout
	topology Topology
	buf      unix.Buffer
	patient  patient  // for files that may not answer
	ids      []int    // scratch
	problems []string // of the round

	// own is the CPU time of this program, in CPUs' worth, between the last two readings of
	// /proc/stat: what it costs to read is part of what that says, and no workload's load.
	own unit.Value[float64]
}

func newHost(cfg Config) host {
	h := host{root: cfg.Root, proc: cfg.Root.Path("/proc") + "/", now: cfg.Now, ours: cfg.Ours, bounds: cfg.Maps, topology: NewTopology(cfg.Root)}
	if h.now == nil {
		h.now = time.Now
	}
	if h.bounds == (MapsBounds{}) {
		h.bounds = defaultMaps
	}
	return h
}

// problem notes what went wrong, a sentence each.
func (h *host) problem(err error) {
	if err != nil {
		h.problems = append(h.problems, err.Error())
	}
}

// live says that this is the running kernel, not a recorded tree.
func (h *host) live() bool { return h.root.Path("/") == "/" }

func (h *host) nodeCount() int { return len(h.topology.Machine.Nodes) }

func (h *host) pageSize() unit.Bytes { return h.topology.Machine.PageSize.Or(4 * unit.KiB) }

// procPath is a file of a process. A snapshot builds thousands of them.
func (h *host) procPath(pid int, file string) string { return h.proc + strconv.Itoa(pid) + "/" + file }

// taskPath is a file of a thread.
func (h *host) taskPath(pid, tid int, file string) string {
	return h.procPath(pid, "task/"+strconv.Itoa(tid)+"/"+file)
}

// threadStat reads /proc/TID/task/TID/stat. Any thread's id leads there, while
// /proc/TID/stat adds up its whole process.
func (h *host) threadStat(tid int) (procfs.TaskStat, error) {
	data, err := h.buf.ReadFile(h.taskPath(tid, tid, "stat"))
	if err != nil {
		return procfs.TaskStat{}, err
	}
	return procfs.ParseTaskStat(data)
}

// unknownByNode is a slice by node of unknown values, with the reason.
func unknownByNode[T any](n int, why string) []unit.Value[T] {
	all := make([]unit.Value[T], n)
	for i := range all {
		all[i] = unit.UnknownValue[T](why)
	}
	return all
}

// values is a slice by node of figures from one source.
func values(by []float64, how unit.Source, from string) []unit.Value[float64] {
	out := make([]unit.Value[float64], len(by))
	for i, v := range by {
		out[i] = unit.ValueOf(v, how, from)
	}
	return out
}
