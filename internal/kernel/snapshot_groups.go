// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// groupCount is a cgroup's counters since it was made.
type groupCount struct {
	oom, reclaimed unit.Value[uint64]
}

// countGroups reads the counters of every workload of the last window.
func (s *Snapshotter) countGroups() map[string]groupCount {
	all := map[string]groupCount{}
	for id, w := range s.reader.workloads {
		c := groupCount{reclaimed: unit.UnknownValue[uint64]("v1 does not count it in memory.stat")}
		c.oom = s.groupCounter(w, pick(w.memHier, "memory.events", "memory.oom_control"), cgroup.ParseOOMKills)
		if w.memHier.V2 {
			c.reclaimed = s.groupCounter(w, "memory.stat", cgroup.ParseReclaimed)
		}
		all[id] = c
	}
	return all
}

const noMemory = "no memory controller for it"

func (s *Snapshotter) groupCounter(w *workload, file string, parse func([]byte) (uint64, error)) unit.Value[uint64] {
	if !w.memHier.Present() {
		return unit.UnknownValue[uint64](noMemory)
	}
	v, err := parsed(s, path.Join(w.memHier.Mount, w.ID, file), parse)
	return valueOf(v, err, file)
}

// groups is parallel to the window's workloads.
func (s *Snapshotter) groups(w window.Window, d delta, sizes unit.Opt[[]unit.Bytes]) []snapshot.Group {
	out := make([]snapshot.Group, 0, len(w.Workloads))
	for _, wl := range w.Workloads {
		out = append(out, s.group(s.reader.workloads[wl.ID], wl, d, sizes))
	}
	return out
}

func (s *Snapshotter) group(w *workload, wl window.Workload, d delta, sizes unit.Opt[[]unit.Bytes]) snapshot.Group {
	g := snapshot.Group{ID: w.ID}
	g.ConfiguredCPUs = configured(s, w.cpuset.ownCPUs, set.ParseCPUs)
	g.ConfiguredMems = configured(s, w.cpuset.ownMems, set.ParseNodes)
	g.MemoryUsed = s.memoryUsed(w, w.ID)
	if g.MemoryLimit = wl.MemoryLimit; g.MemoryLimit.Known() {
		g.MemoryLimit.From = path.Join(w.limitedBy, limitName(w.memHier))
		if by := w.limitedBy; by != w.ID {
			g.Limited = &snapshot.Limited{ID: by, Used: s.memoryUsed(w, by), File: s.pageCache(w, by)}
		}
	}
	g.OOMKills, g.AllocStalls = unit.UnknownValue[uint64](oneReading), unit.UnknownValue[uint64](oneReading)
	if d.was != nil {
		g.OOMKills = grown(d.was.groups[w.ID].oom, d.now.groups[w.ID].oom)
		g.AllocStalls = grown(d.was.groups[w.ID].reclaimed, d.now.groups[w.ID].reclaimed)
	}
	g.Memory = s.groupMemory(w, wl)
	s.groupHuge(w, sizes, g.Memory)
	var err error
	if g.PIDs, err = s.reader.layout.PIDs(nil, w.ID, &s.buf); err != nil && !errors.Is(err, ErrGone) {
		s.problem(err)
	}
	slices.Sort(g.PIDs)
	g.PIDs = slices.Compact(g.PIDs)
	return g
}

// grown is the increase of a cgroup's counter. The zero Value is a workload that was
// not there before.
func grown(was, now unit.Value[uint64]) unit.Value[uint64] {
	if !now.Known() {
		return now
	}
	if !was.Known() {
		return unit.UnknownValue[uint64](orElse(was.From, firstWindow))
	}
	return since(was.V, now.V, now.From)
}

// configured reads a cpuset file; a missing or empty one is no setting.
func configured[K set.Kind](s *Snapshotter, k *unix.Kept, parse func(string) (set.Set[K], error)) set.Set[K] {
	data, err := k.Read(&s.buf)
	if err != nil {
		return set.Set[K]{}
	}
	v, err := parse(strings.TrimSpace(string(data)))
	s.problem(malformedSet(k.Path, err))
	return v
}

// memoryUsed is the memory that a cgroup uses: the workload's own or one above it.
func (s *Snapshotter) memoryUsed(w *workload, id string) unit.Value[unit.Bytes] {
	if !w.memHier.Present() {
		return unit.UnknownValue[unit.Bytes](noMemory)
	}
	file := pick(w.memHier, "memory.current", "memory.usage_in_bytes")
	v, err := parsed(s, path.Join(w.memHier.Mount, id, file), cgroup.ParseMemoryUsage)
	return valueOf(v, err, path.Join(id, file))
}

// pageCache is the page cache in it, over all nodes.
func (s *Snapshotter) pageCache(w *workload, id string) unit.Value[unit.Bytes] {
	const file = "memory.numa_stat"
	v, err := parsed(s, path.Join(w.memHier.Mount, id, file), func(data []byte) (unit.Bytes, error) {
		stat, err := cgroup.ParseNumaStat(data, w.memHier.V2, s.reader.pageSize())
		sum := unit.Bytes(0)
		for _, b := range stat.File {
			sum += b
		}
		return sum, err
	})
	return valueOf(v, err, path.Join(id, file))
}

// groupMemory splits the window's memory by node further, if the kernel does.
func (s *Snapshotter) groupMemory(w *workload, wl window.Workload) []snapshot.GroupMemory {
	out := make([]snapshot.GroupMemory, len(wl.AnonByNode))
	var k cgroup.NumaKinds
	err := fmt.Errorf("v1's memory.numa_stat has no separate line for it (%w)", ErrNotSupported)
	if w.memHier.V2 {
		k, err = parsed(s, path.Join(w.memHier.Mount, w.ID, "memory.numa_stat"), cgroup.ParseNumaKinds)
	}
	for i, n := range s.reader.topology.Machine.Nodes[:len(out)] {
		at := func(by map[int]unit.Bytes) procfs.Bytes { return unit.OptOf(by[n.ID], by != nil) }
		const from = "memory.numa_stat"
		out[i] = snapshot.GroupMemory{Anon: wl.AnonByNode[i], File: wl.FileByNode[i], Shmem: opt(at(k.Shmem), err, from),
			Slab:   opt(plus(at(k.SlabReclaimable), at(k.SlabUnreclaimable)), err, from),
			Kernel: opt(plus(at(k.KernelStack), at(k.PageTables)), err, from)}
		if without, ok := minus(at(k.File), at(k.Shmem)).Get(); ok {
			out[i].Anon, out[i].File = unit.Measured(k.Anon[n.ID], from), unit.Measured(without, from)
		}
	}
	return out
}

// pooled are the page sizes of which some node has hugetlb pages; unknown if that is
// unknown for a node. A pool that could not be read counts as one that has.
func pooled(nodes []snapshot.Node) unit.Opt[[]unit.Bytes] {
	var sizes []unit.Bytes
	for _, n := range nodes {
		if len(n.Pools) == 0 && !n.Memory.Huge.Known() {
			return unit.None[[]unit.Bytes]()
		}
		for _, p := range n.Pools {
			if p.Total.Or(1) > 0 && !slices.Contains(sizes, p.PageSize) {
				sizes = append(sizes, p.PageSize)
			}
		}
	}
	return unit.Some(sizes)
}

// groupHuge adds the hugetlb pages, which memory.numa_stat does not have. sizes are the
// sizes that have pages: without any, no file need be read.
func (s *Snapshotter) groupHuge(w *workload, sizes unit.Opt[[]unit.Bytes], by []snapshot.GroupMemory) {
	none := opt(unit.OptOf(unit.Bytes(0), sizes.Known()), nil, "nodeN/hugepages")
	for i := range by {
		by[i].Huge = none
	}
	for _, size := range sizes.Or(nil) {
		file := cgroup.HugetlbNumaStat(size)
		stat, err := map[int]unit.Bytes(nil), fmt.Errorf("v1's hugetlb controller is not read (%w)", ErrNotSupported)
		if w.memHier.V2 {
			stat, err = parsed(s, path.Join(w.memHier.Mount, w.ID, file), cgroup.ParseHugetlbNumaStat)
		}
		if errors.Is(err, ErrGone) {
			err = fmt.Errorf("no hugetlb controller for it (%w)", ErrNotSupported)
		}
		for i, n := range s.reader.topology.Machine.Nodes[:len(by)] {
			if sum, ok := by[i].Huge.Get(); ok {
				by[i].Huge = valueOf(sum+stat[n.ID], err, file)
			}
		}
	}
}
