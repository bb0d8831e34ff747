// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

type byNode = []unit.Value[unit.Bytes]

// memoryByNode reads memory.numa_stat, and only where there is none the
// numa_maps of every process: that costs as much as the workload is large, so
// workloads take turns, one a round, and keep their last figures in between.
func (r *Reader) memoryByNode(w *workload) (anon, file byNode) {
	if w.memHier.Present() {
		data, err := w.numaStat.ReadLine(&r.buf)
		if err == nil {
			return r.numaStat(w, data)
		}
	}
	if w.mapsAt < 0 || r.turn(w) {
		w.numaMaps, w.mapsAt = r.sumNumaMaps(w), w.seen
	}
	from := fmt.Sprintf("numa_maps, %d windows ago", w.seen-w.mapsAt)
	return r.split(w.numaMaps, from)
}

// turn says whether it is this workload's turn: its place among all, by round.
func (r *Reader) turn(w *workload) bool {
	place := 0
	for id := range r.workloads {
		if id < w.ID {
			place++
		}
	}
	return r.seq%uint64(len(r.workloads)) == uint64(place)
}

func (r *Reader) numaStat(w *workload, data []byte) (anon, file byNode) {
	s, err := cgroup.ParseNumaStat(data, w.memHier.V2, r.pageSize())
	if err != nil {
		n := len(r.machine.Nodes)
		return unknownByNode[unit.Bytes](n, err.Error()), unknownByNode[unit.Bytes](n, err.Error())
	}
	return r.split(s, "memory.numa_stat")
}

func (r *Reader) pageSize() unit.Bytes { return r.machine.PageSize.Or(4 * unit.KiB) }

// split puts figures in the order of the machine's nodes. A node that is not
// mentioned has no memory.
func (r *Reader) split(s cgroup.NumaStat, from string) (anon, file byNode) {
	for _, n := range r.machine.Nodes {
		anon = append(anon, unit.Measured(s.Anon[n.ID], from))
		file = append(file, unit.Measured(s.File[n.ID], from))
	}
	return anon, file
}

// sumNumaMaps counts a mapping's pages as anon up to its anon count, spread over
// nodes in proportion: numa_maps has no anon count by node.
func (r *Reader) sumNumaMaps(w *workload) cgroup.NumaStat {
	s := cgroup.NumaStat{Anon: map[int]unit.Bytes{}, File: map[int]unit.Bytes{}}
	r.eachVMA(w, 1<<30, func(_ int, v procfs.VMA) {
		pages := v.Pages()
		for _, n := range v.Nodes {
			bytes := unit.Bytes(n.Pages * v.PageSize)
			anon := unit.Bytes(float64(bytes) * float64(min(v.Anon, pages)) / float64(max(pages, 1)))
			s.Anon[n.Node] += anon
			s.File[n.Node] += bytes - anon
		}
	})
	return s
}

// eachVMA visits the mappings of at most so many of a workload's processes.
func (r *Reader) eachVMA(w *workload, processes int, visit func(pid int, v procfs.VMA)) {
	pids, err := r.layout.PIDs(nil, w.ID, &r.buf)
	if err != nil {
		return
	}
	for _, pid := range pids[:min(processes, len(pids))] {
		data, err := r.buf.ReadFile(r.procPath(pid, "numa_maps"))
		if err != nil {
			if unix.Classify(err) == ErrNotPermitted {
				r.problem(unix.Explain("read", "/proc/PID/numa_maps", "CAP_SYS_PTRACE", err))
			}
			continue
		}
		vmas, err := procfs.ParseNumaMaps(data)
		r.problem(err)
		for _, v := range vmas {
			visit(pid, v)
		}
	}
}
