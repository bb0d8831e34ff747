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

// memorySensor reads resident memory by node from memory.numa_stat. Without that file
// it reads the numa_maps of every process. The cost grows with the workload's size, so
// workloads take turns, one a round, and keep their last figures in between.
type memorySensor struct {
	w      *workload
	stat   *unix.Kept
	maps   cgroup.NumaStat // from numa_maps
	at     int             // the workload's round in which maps was read; −1: never
	partly error           // maps is incomplete
}

func newMemorySensor(w *workload) sensor {
	return &memorySensor{w: w, stat: w.file(w.memHier, "memory.numa_stat"), at: -1}
}

func (s *memorySensor) read(rd *round, out *window.Workload) error {
	if s.w.memHier.Present() {
		if data, err := s.stat.ReadLine(&rd.buf); err == nil {
			stat, err := cgroup.ParseNumaStat(data, s.w.memHier.V2, rd.pageSize())
			setMemory(rd, out, stat, "memory.numa_stat")
			return err
		}
	}
	if s.at < 0 || s.isTurn(rd) {
		s.at = s.w.seen
		s.maps, s.partly = sumNumaMaps(rd, s.w)
		rd.problem(s.partly)
	}
	setMemory(rd, out, s.maps, fmt.Sprintf("numa_maps, %d windows ago", s.w.seen-s.at))
	return s.partly // a part must not be reported as all
}

func (s *memorySensor) unknown(rd *round, out *window.Workload, why string) {
	n := rd.nodeCount()
	out.AnonByNode, out.FileByNode = unknownByNode[unit.Bytes](n, why), unknownByNode[unit.Bytes](n, why)
}

// isTurn compares the workload's place among all with the round.
func (s *memorySensor) isTurn(rd *round) bool {
	place, _ := slices.BinarySearchFunc(rd.workloads, s.w.ID, func(w *workload, id string) int { return strings.Compare(w.ID, id) })
	return rd.seq%uint64(len(rd.workloads)) == uint64(place)
}

// setMemory puts figures in the order of the machine's nodes. A node that is not
// mentioned has no memory.
func setMemory(rd *round, out *window.Workload, stat cgroup.NumaStat, from string) {
	out.AnonByNode, out.FileByNode = make([]unit.Value[unit.Bytes], 0, rd.nodeCount()), make([]unit.Value[unit.Bytes], 0, rd.nodeCount())
	for _, n := range rd.topology.Machine.Nodes {
		out.AnonByNode = append(out.AnonByNode, unit.Measured(stat.Anon[n.ID], from))
		out.FileByNode = append(out.FileByNode, unit.Measured(stat.File[n.ID], from))
	}
}

// sumNumaMaps counts a mapping's pages as anon up to its anon count, spread over nodes
// in proportion: numa_maps has no anon count by node. An error means that some are
// missing.
func sumNumaMaps(rd *round, w *workload) (cgroup.NumaStat, error) {
	s := cgroup.NumaStat{Anon: map[int]unit.Bytes{}, File: map[int]unit.Bytes{}}
	err := rd.eachVMA(w, 1<<30, func(_ int, v procfs.VMA) {
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
