// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"time"

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
		w.mapsAt = w.seen
		if w.numaMaps, w.noMaps = r.sumNumaMaps(w); w.noMaps != nil {
			r.problem(w.noMaps)
		}
	}
	if w.noMaps != nil { // a part would be told as all
		n, why := len(r.machine.Nodes), w.noMaps.Error()
		return unknownByNode[unit.Bytes](n, why), unknownByNode[unit.Bytes](n, why)
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
// nodes in proportion: numa_maps has no anon count by node. An error says that it has not
// all of them.
func (r *Reader) sumNumaMaps(w *workload) (cgroup.NumaStat, error) {
	s := cgroup.NumaStat{Anon: map[int]unit.Bytes{}, File: map[int]unit.Bytes{}}
	err := r.eachVMA(w, 1<<30, func(_ int, v procfs.VMA) {
		pages := v.Pages()
		for _, n := range v.Nodes {
			bytes := unit.Bytes(n.Pages * v.PageSize)
			anon := unit.Bytes(float64(bytes) * float64(min(v.Anon, pages)) / float64(max(pages, 1)))
			s.Anon[n.Node] += anon
			s.File[n.Node] += bytes - anon
		}
	})
	return s, err
}

// MapsBounds is what may be read of numa_maps: any user can map a file 65,530 times under
// a path of 4 KiB, in each of his processes.
type MapsBounds struct {
	Process, Workload, Round MapsBound
}

// MapsBound is text and time.
type MapsBound struct {
	Bytes int64
	Time  time.Duration
}

// defaultMaps: a process with 65,530 mappings has 10 MB of text where paths are not made
// to be long, and the kernel takes some 1.5 ms for 100 MiB of memory. Together they take
// half of a period of 10 s at most.
var defaultMaps = MapsBounds{
	Process:  MapsBound{16 << 20, 2 * time.Second},
	Workload: MapsBound{64 << 20, 4 * time.Second},
	Round:    MapsBound{128 << 20, 5 * time.Second},
}

func (b MapsBound) begin(of *unix.Budget) *unix.Budget { return of.Within(b.Bytes, b.Time) }

// eachVMA visits the mappings of at most so many of a workload's processes, within the
// bounds. It is ErrTooLarge where one of them has more, errNoAnswer where one does not
// answer.
func (r *Reader) eachVMA(w *workload, processes int, visit func(pid int, v procfs.VMA)) error {
	pids, err := r.layout.PIDs(nil, w.ID, &r.buf)
	if err != nil {
		return nil
	}
	budget := r.cfg.Maps.Workload.begin(r.maps)
	for _, pid := range pids[:min(processes, len(pids))] {
		err := r.vmas(pid, budget, visit)
		switch {
		case errors.Is(err, errNoAnswer):
			return fmt.Errorf("%s: %w", w.ID, err)
		case errors.Is(err, unix.ErrTooLarge):
			return unix.Explain("read", fmt.Sprintf("/proc/%d/numa_maps of %s", pid, w.ID), "", err)
		case unix.Classify(err) == ErrNotPermitted:
			r.problem(unix.Explain("read", "/proc/PID/numa_maps", "CAP_SYS_PTRACE", err))
		case errors.Is(err, ErrMalformed):
			r.problem(err)
		}
	}
	return nil
}

// vmas gives up where the process does not answer: a budget's time is looked at between
// two system calls only.
func (r *Reader) vmas(pid int, of *unix.Budget, visit func(pid int, v procfs.VMA)) error {
	bound := r.cfg.Maps.Process
	before := r.patient.cpu
	err := r.patient.numaMaps(pid, r.procPath(pid, "numa_maps"), bound.begin(of), bound.Time, func(v procfs.VMA) { visit(pid, v) })
	r.cpu += r.patient.cpu - before
	return err
}
