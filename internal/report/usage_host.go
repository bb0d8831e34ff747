// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Host prints nodes, allocations, settings and workloads.
func Host(w io.Writer, s snapshot.Snapshot, o render.TextOptions) error {
	p := newUsagePage(o)
	p.headline(s)
	p.memory(s)
	p.pools(s)
	p.allocations(s)
	p.balancing(s)
	p.workloads(s)
	p.problems(s.Problems)
	return p.Flush(w, "snapshot")
}

// headline describes the machine; one node plainly.
func (p *usagePage) headline(s snapshot.Snapshot) {
	text := fmt.Sprintf("%s, %s", render.Count(len(s.Machine.Nodes), "node"), render.Count(s.Machine.OnlineCPUs().Len(), "CPU"))
	if s.Length > 0 {
		text += "; watched for " + render.Span(s.Length)
	}
	if name, ok := s.Hypervisor.Get(); ok && name != "" {
		text += "; a guest of " + name
	}
	p.wrapped("", text)
	if len(s.Machine.Nodes) == 1 {
		p.wrapped("", "This host has no NUMA: with one node, all memory is local to every CPU.")
	}
}

func (p *usagePage) memory(s snapshot.Snapshot) {
	p.heading("Memory by kind")
	cols := []render.Column{{Head: "node"}, {Head: field.NodeBusy.Name, Rank: 4}, {Head: "total"}, {Head: "free"}, {Head: "anon"}, {Head: "file"}, {Head: "shmem"},
		{Head: "slab", Rank: 2}, {Head: "kernel", Rank: 3}, {Head: "huge"}, {Head: "other", Rank: 5}, {Head: "anon THP", Rank: 6}, {Head: "dirty", Rank: 7}}
	var rows [][]string
	for i, n := range s.Nodes {
		m := n.Memory
		row := []string{strconv.Itoa(n.ID), busy(s, i)}
		for _, v := range []unit.Value[unit.Bytes]{m.Total, m.Free, m.Anon, m.File, m.Shmem, m.Slab, m.Kernel, m.Huge, m.Other, m.AnonHuge, m.Dirty} {
			row = append(row, bytesOf(v))
		}
		rows = append(rows, row)
	}
	p.table(cols, rows)
	p.wrapped("  ", "anon: private memory of processes; file: page cache; shmem: tmpfs and shared memory; huge: hugetlb pages of all sizes, unused ones too; other: what the kernel does not account for")
}

func busy(s snapshot.Snapshot, i int) string {
	if i >= len(s.Window.Nodes) {
		return unknown
	}
	n := s.Window.Nodes[i]
	return show(n.CPUBusy, field.NodeBusy.Unit.Print) + "/" + strconv.Itoa(n.CPUs.Len())
}

// pools prints the hugetlb pools that have pages.
func (p *usagePage) pools(s snapshot.Snapshot) {
	var rows [][]string
	for _, n := range s.Nodes {
		for _, pool := range n.Pools {
			if pool.Total.Or(1) == 0 {
				continue
			}
			rows = append(rows, []string{strconv.Itoa(n.ID), pool.PageSize.String(), show(pool.Total, render.Integer), show(pool.Free, render.Integer), show(pool.Surplus, render.Integer)})
		}
	}
	if len(rows) == 0 {
		return
	}
	p.heading("Huge page pools, pages")
	p.table([]render.Column{{Head: "node"}, {Head: "page size"}, {Head: "all"}, {Head: "free"}, {Head: "surplus"}}, rows)
}

// meanings of the counters of numastat (Documentation/admin-guide/numastat.rst).
var meanings = []struct{ name, text string }{
	{"hit", "wanted on this node, and taken here"},
	{"miss", "wanted on another node that had no room, and taken here instead"},
	{"foreign", "wanted on this node, which had no room, and taken elsewhere"},
	{"interleave", "taken here because of an interleave policy"},
	{"local", "taken here for a CPU of this node"},
	{"other", "taken here for a CPU of another node: remote from the start"},
}

func (p *usagePage) allocations(s snapshot.Snapshot) {
	if s.Length <= 0 {
		p.heading("Allocations: unknown (one reading only; they are the difference of two)")
		return
	}
	p.heading("Allocations, pages/s")
	cols := []render.Column{{Head: "node"}}
	for _, m := range meanings {
		cols = append(cols, render.Column{Head: m.name})
	}
	var rows [][]string
	for _, n := range s.Nodes {
		row := []string{strconv.Itoa(n.ID)}
		for _, v := range []unit.Value[uint64]{n.Numastat.Hit, n.Numastat.Miss, n.Numastat.Foreign, n.Numastat.InterleaveHit, n.Numastat.LocalNode, n.Numastat.OtherNode} {
			row = append(row, perSecond(v, s.Length))
		}
		rows = append(rows, row)
	}
	p.table(cols, rows)
	for _, m := range meanings {
		p.wrapped("  ", m.name+": "+m.text)
	}
}

var balancingModes = []string{"off", "on", "for memory tiers only", "on, for memory tiers too"}

func (p *usagePage) balancing(s snapshot.Snapshot) {
	b := s.Balancing
	mode := show(b.Mode, func(m int) string {
		if m < 0 || m >= len(balancingModes) {
			return "mode " + strconv.Itoa(m)
		}
		return balancingModes[m]
	})
	if !b.Mode.Known() {
		mode = "unknown (" + b.Mode.From + ")"
	}
	text := "NUMA balancing: " + mode
	if faults, ok := b.HintFaults.Get(); ok && s.Length > 0 {
		text += "; " + perSecond(b.HintFaults, s.Length) + " hint faults/s"
		if local, ok := b.HintLocal.Get(); ok && faults > 0 {
			text += ", " + percent(float64(local), float64(faults)) + " of them local"
		}
		text += "; " + perSecond(b.PagesMigrated, s.Length) + " pages/s moved, " + perSecond(b.MigrateFailed, s.Length) + "/s failed"
	}
	p.heading(text)
	set := s.Settings
	p.wrapped("", fmt.Sprintf("Transparent huge pages: %v; zone reclaim: %v; swap: %s", set.THP.V, set.ZoneReclaim.V, swap(set)))
}

func swap(set snapshot.Settings) string {
	if total, ok := set.SwapTotal.Get(); ok && total == 0 {
		return "none"
	}
	return bytesOf(set.SwapTotal) + ", " + bytesOf(set.SwapFree) + " free"
}

// workloads are sorted by memory.
func (p *usagePage) workloads(s snapshot.Snapshot) {
	if len(s.Window.Workloads) == 0 {
		p.heading("No workload: no cgroup with processes of its own was found.")
		return
	}
	p.heading("Workloads, by node: " + p.nodeNames(s))
	cols := []render.Column{{Head: "workload", Left: true, Least: 14}, {Head: field.CPU.Name, Left: true}, {Head: "memory", Left: true},
		{Head: "local reads", Left: true}, {Head: "CPUs; nodes", Left: true, Rank: 1}}
	var rows [][]string
	for _, wl := range sorted(s.Window.Workloads, byMemory) {
		f := window.FeaturesOf(wl, s.Window.Length)
		rows = append(rows, []string{named(wl), cpusByNode(p, s.Machine.Nodes, wl.CPUByNode) + mark(wl.CPUByNode), p.pagesOf(s, wl), local(f), bound(wl.Binding)})
	}
	p.table(cols, rows)
	p.wrapped("  ", "local reads: served by the memory of the CPU's own node, measured or modelled where counters exist; est.: estimated from NUMA hint faults, or Σ share of CPU time × share of pages, by node; ±: "+window.ErrorBasis)
	if slices.ContainsFunc(s.Window.Workloads, func(wl window.Workload) bool { return mark(wl.CPUByNode) != "" }) {
		p.wrapped("  ", field.CPU.Name+": ~ is estimated, ^ modelled")
	}
	if slices.ContainsFunc(s.Nodes, func(n snapshot.Node) bool { return n.Memory.Huge.Or(1) > 0 }) {
		p.wrapped("  ", "memory: anon and file, without hugetlb pages; 'homenode stat --workload' has those, where the kernel counts them")
	}
	p.wrapped("  ", "CPUs; nodes: what it may use; pinned: another process restricts it")
}

// named is a workload's path, with what the manager of its container calls it.
func named(wl window.Workload) string {
	if wl.Labels.Container == "" {
		return wl.ID
	}
	return wl.ID + " (" + wl.Labels.String() + ")"
}

func (p *usagePage) nodeNames(s snapshot.Snapshot) string {
	if len(s.Machine.Nodes) > few {
		return "N is a node"
	}
	text := ""
	for i, n := range s.Machine.Nodes {
		if i > 0 {
			text += "/"
		}
		text += strconv.Itoa(n.ID)
	}
	return text
}

func byMemory(a, b window.Workload) int {
	return int(min(1, max(-1, totalOf(b)-totalOf(a))))
}

func totalOf(wl window.Workload) (sum unit.Bytes) {
	by, _ := wl.PagesByNode()
	for _, b := range by {
		sum += b
	}
	return sum
}

// mark says how CPU time by node is known, unless it is measured.
func mark(by []unit.Value[float64]) string {
	return strings.TrimRight(" "+render.Mark(weakest(by)), " ")
}

// local is the local share, and how it is known.
func local(f window.Features) string {
	v, ok := f.LocalAccessRatio.Get()
	if !ok {
		return unknown
	}
	if f.LocalAccessRatio.How == unit.HowEstimated {
		return v.String() + " est." + f.Within(" ± ")
	}
	return v.String() + " " + f.LocalAccessRatio.How.String()
}

func (p *usagePage) pagesOf(s snapshot.Snapshot, wl window.Workload) string {
	by, ok := wl.PagesByNode()
	if !ok {
		return unknown
	}
	return bytesByNode(p, s.Machine.Nodes, by)
}

// bound is what a workload may use, and which program restricts it.
func bound(b window.Binding) string {
	text := render.Or(b.CPUs.String(), unknown) + "; " + render.Or(b.Mems.String(), unknown)
	switch {
	case b.OursCPUs || b.OursMems:
		text += " homenode's"
	case b.PinnedCPUs || b.PinnedMems:
		text += " pinned"
	}
	return text
}
