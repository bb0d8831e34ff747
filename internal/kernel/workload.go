// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	firstWindow = "first window of it: no reading before"
	// rarely is the number of rounds between attempts at what failed, such as opening
	// events. Lower notices sooner that it works by now, and costs CPU time.
	rarely = 64
)

// workload is one cgroup between rounds: where it is, and its sensors.
type workload struct {
	cgroup.Cgroup
	layout cgroup.Layout
	dir    string
	inode  uint64
	below  bool // there may be cgroups below it
	seen   int  // rounds in which it was read
	// limitedBy is the cgroup with the least memory limit in the last round: this one
	// or one above it.
	limitedBy string

	// The hierarchies that have its processes under the same path; the zero Hier for
	// the others.
	cpuHier, acctHier, memHier, perfHier cgroup.Hier

	files   []*unix.Kept
	cpuset  cpusetFiles
	tasks   *unix.Kept // not kept on v1, which keeps the list with the open file (cgroup_pidlist_start)
	sensors []sensor
}

// meet sets up a new workload.
func (r *Reader) meet(cg cgroup.Cgroup) *workload {
	l := r.layout
	w := &workload{Cgroup: cg, layout: l, dir: l.Path(l.Cpuset, cg.ID, "")}
	w.Owner = l.Owner(cg.ID, &r.buf)
	w.inode, w.below, _ = unix.Look(w.dir)
	hierarchy := r.membership(cg.ID)
	w.cpuHier, w.acctHier = hierarchy(l.CPU, "cpu"), hierarchy(l.CPUAcct, "cpuacct")
	w.memHier, w.perfHier = hierarchy(l.Memory, "memory"), hierarchy(l.Perf, "perf_event")
	w.tasks, w.cpuset = w.file(l.Cpuset, l.ThreadsFile()), newCpusetFiles(w)
	for _, c := range r.collectors {
		if s := c.attach(w); s != nil {
			w.sensors = append(w.sensors, s)
		}
	}
	return w
}

// file stays open between rounds, as long as there are not too many open files.
func (w *workload) file(h cgroup.Hier, name string) *unix.Kept {
	k := &unix.Kept{Path: w.layout.Path(h, w.ID, name), Loose: true}
	w.files = append(w.files, k)
	return k
}

func pick(h cgroup.Hier, v2, v1 string) string {
	if h.V2 {
		return v2
	}
	return v1
}

// same says that the directory is still the one that was met.
func (w *workload) same() bool {
	inode, below, ok := unix.Look(w.dir)
	w.below = below
	return ok && inode == w.inode
}

func (w *workload) close() {
	for _, k := range w.files {
		k.Close()
	}
}

// membership returns a filter: the hierarchy if the workload's processes are under the
// same path in it, else none. One process stands for all.
func (r *Reader) membership(id string) func(cgroup.Hier, string) cgroup.Hier {
	paths := r.pathsOf(id)
	return func(h cgroup.Hier, controller string) cgroup.Hier {
		if !h.Present() || h.Mount == r.layout.Cpuset.Mount {
			return h
		}
		if h.V2 {
			controller = ""
		}
		for _, m := range paths {
			if slices.Contains(strings.Split(m.Controllers, ","), controller) && m.Path != id {
				return cgroup.Hier{}
			}
		}
		if _, err := unix.Inode(r.layout.Path(h, id, "")); err != nil {
			return cgroup.Hier{}
		}
		return h
	}
}

// pathsOf reads /proc/PID/cgroup of the workload's first process that can be read.
func (r *Reader) pathsOf(id string) []procfs.Membership {
	r.ids, _ = r.layout.PIDs(r.ids[:0], id, &r.buf)
	for _, pid := range r.ids {
		paths, err := unix.Parsed(&r.buf, r.procPath(pid, "cgroup"), procfs.ParsePIDCgroup)
		if err == nil {
			return paths
		}
	}
	return nil
}

// readTasks lists the workload's threads. Discovery has not checked whether there are
// any.
func (w *workload) readTasks(rd *round, out *window.Workload) (err error) {
	rd.ids, err = w.listTasks(rd)
	if err == nil && len(rd.ids) == 0 {
		err = fmt.Errorf("%s has no process any more (%w)", w.ID, ErrGone)
	}
	rd.tids, rd.throttling = rd.ids, unit.None[cgroup.Throttling]()
	out.Tasks = unit.Measured(len(rd.tids), w.layout.ThreadsFile())
	return err
}

func (w *workload) listTasks(rd *round) ([]int, error) {
	if w.below {
		return w.layout.TIDs(rd.ids[:0], w.ID, &rd.buf)
	}
	data, err := w.tasks.ReadLine(&rd.buf)
	if !w.layout.Cpuset.V2 {
		w.tasks.Close()
	}
	if err != nil {
		return rd.ids[:0], unix.Explain("read", w.tasks.Path, "", err)
	}
	return procfs.AppendPIDs(rd.ids[:0], data)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
