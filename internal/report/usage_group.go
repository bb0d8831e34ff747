// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Workload prints one workload of a snapshot: kinds by node, and its limits.
func Workload(w io.Writer, s snapshot.Snapshot, id string, o render.TextOptions) error {
	p := newUsagePage(o)
	wl, ok := s.Window.Workload(id)
	if !ok {
		return fmt.Errorf("print workload %s: it is not in the snapshot", id)
	}
	p.headlineOf(s, wl)
	for _, g := range s.Groups {
		if g.ID == id {
			p.group(s, wl, g)
		}
	}
	p.problems(s.Problems)
	return p.Flush(w, "snapshot")
}

func (p *usagePage) headlineOf(s snapshot.Snapshot, wl window.Workload) {
	p.wrapped("", fmt.Sprintf("%s: %s, owner %s", wl.ID, show(wl.Tasks, func(n int) string { return render.Count(n, "thread") }), wl.Owner))
	if len(s.Machine.Nodes) == 1 {
		p.wrapped("", "This host has no NUMA: with one node, all memory is local to every CPU.")
	}
	may := fmt.Sprintf("may use CPUs %s and memory of nodes %s", render.Or(wl.Binding.CPUs.String(), unknown), render.Or(wl.Binding.Mems.String(), unknown))
	if wl.Binding.OursCPUs || wl.Binding.OursMems {
		may += ", as homenode set it"
	}
	if wl.Binding.PinnedWhy != "" {
		may += ": " + wl.Binding.PinnedWhy
	}
	p.wrapped("  ", may)
	f := window.FeaturesOf(wl, s.Window.Length)
	if v, ok := f.LocalAccessRatio.Get(); ok {
		p.wrapped("  ", fmt.Sprintf("%v of its DRAM reads are local (%v%s, %s)", v, f.LocalAccessRatio.How, f.Within(" ± "), f.LocalAccessRatio.From))
		if f.LocalAccessError.Or(0) > 0 {
			p.wrapped("  ", "±: "+window.ErrorBasis)
		}
	} else {
		p.wrapped("  ", "share of local DRAM reads: unknown ("+f.LocalAccessRatio.From+")")
	}
	p.wrapped("  ", fmt.Sprintf("%s: %s, by node %s%s; limit: %s", field.CPU.Name, show(wl.CPU, field.CPU.Unit.Print), cpusByNode(p, s.Machine.Nodes, wl.CPUByNode),
		estimated(wl.CPUByNode), limit(wl.Quota, field.Quota.Unit.Print)))
}

// why is the reason for an unknown figure, in brackets.
func why[T any](v unit.Value[T]) string {
	if v.Known() || v.From == "" {
		return ""
	}
	return " (" + v.From + ")"
}

// limit prints "none" if it is known that there is none.
func limit[T any](v unit.Value[T], print func(T) string) string {
	if !v.Known() && strings.HasPrefix(v.From, "no limit is set") {
		return "none"
	}
	return show(v, print) + why(v)
}

// estimated marks figures that are not measured.
func estimated(by []unit.Value[float64]) string {
	if how := weakest(by); how != unit.HowMeasured {
		return " (" + how.String() + ")"
	}
	return ""
}

// weakest is how the known figures are known: as well as the one that is known worst.
func weakest(by []unit.Value[float64]) unit.Source {
	how := unit.HowMeasured
	for _, v := range by {
		if v.Known() {
			how = min(how, v.How)
		}
	}
	return how
}

func (p *usagePage) group(s snapshot.Snapshot, wl window.Workload, g snapshot.Group) {
	most := limit(g.MemoryLimit, unit.Bytes.String)
	if g.MemoryLimit.Known() {
		most += " (" + g.MemoryLimit.From + ")"
	}
	p.wrapped("  ", fmt.Sprintf("memory: %s used; limit: %s; out-of-memory kills while watched: %s%s", bytesOf(g.MemoryUsed), most,
		show(g.OOMKills, render.Integer), why(g.OOMKills)))
	if len(g.Memory) != len(s.Machine.Nodes) {
		return
	}
	p.heading("Memory by kind and node")
	var rows []kindRow
	for _, k := range []struct {
		name string
		of   func(snapshot.GroupMemory) unit.Value[unit.Bytes]
	}{
		{"anon", func(m snapshot.GroupMemory) unit.Value[unit.Bytes] { return m.Anon }},
		{"file", func(m snapshot.GroupMemory) unit.Value[unit.Bytes] { return m.File }},
		{"shmem", func(m snapshot.GroupMemory) unit.Value[unit.Bytes] { return m.Shmem }},
		{"slab", func(m snapshot.GroupMemory) unit.Value[unit.Bytes] { return m.Slab }},
		{"kernel", func(m snapshot.GroupMemory) unit.Value[unit.Bytes] { return m.Kernel }},
		{"huge", func(m snapshot.GroupMemory) unit.Value[unit.Bytes] { return m.Huge }},
	} {
		row := kindRow{name: k.name}
		for _, m := range g.Memory {
			row.by = append(row.by, k.of(m).V)
		}
		rows = append(rows, row)
	}
	p.kinds(s.Machine.Nodes, rows)
	if !g.Memory[0].Shmem.Known() {
		p.wrapped("  ", "cgroup v1 has only anon, which includes shared memory, and file")
	}
	if huge := g.Memory[0].Huge; !huge.Known() {
		p.wrapped("  ", "huge: hugetlb pages, unknown and not in the total"+why(huge)+"; 'homenode maps PID' counts those of a process")
	}
}

// kindRow is a kind's memory by node.
type kindRow struct {
	name string
	by   []unit.Opt[unit.Bytes]
}

func (r kindRow) sum() unit.Opt[unit.Bytes] {
	var sum unit.Bytes
	for _, v := range r.by {
		b, ok := v.Get()
		if !ok {
			return unit.None[unit.Bytes]()
		}
		sum += b
	}
	return unit.Some(sum)
}

// kinds prints a bar per node if there is room for them side by side, else a row for
// each kind and node with some memory.
func (p *usagePage) kinds(nodes []machine.Node, rows []kindRow) {
	rows = append(rows, totalRow(nodes, rows))
	const label, total, figure, least = 6, 9, 9, 6
	bar := (p.Width-label-total-4)/max(1, len(nodes)) - figure - 4
	if bar >= least {
		p.sideBySide(nodes, rows, min(bar, 40))
		return
	}
	p.oneByOne(nodes, rows)
}

// totalRow adds up the known kinds; unknown ones are left out.
func totalRow(nodes []machine.Node, rows []kindRow) kindRow {
	all := kindRow{name: "total"}
	for i := range nodes {
		var sum unit.Bytes
		for _, r := range rows {
			sum += r.by[i].Or(0)
		}
		all.by = append(all.by, unit.Some(sum))
	}
	return all
}

// largest is the amount of the longest bar.
func largest(rows []kindRow) float64 {
	var most unit.Bytes
	for _, r := range rows {
		for _, v := range r.by {
			most = max(most, v.Or(0))
		}
	}
	return float64(most)
}

func (p *usagePage) sideBySide(nodes []machine.Node, rows []kindRow, bar int) {
	t := render.Table{Columns: []render.Column{{Head: "kind", Left: true}, {Head: "total"}}}
	for _, n := range nodes {
		t.Columns = append(t.Columns, render.Column{Head: fmt.Sprintf("node %d", n.ID)}, render.Column{Left: true})
	}
	most := largest(rows)
	for _, r := range rows {
		cells := []string{r.name, r.sum().String()}
		for _, v := range r.by {
			cells = append(cells, v.String(), render.PadRight(p.Bar(float64(v.Or(0)), most, bar), bar))
		}
		t.Add(cells...)
	}
	p.Table(t)
}

func (p *usagePage) oneByOne(nodes []machine.Node, rows []kindRow) {
	most := largest(rows)
	t := render.Table{Columns: []render.Column{{Head: "kind", Left: true}, {Head: "node"}, {Head: "memory"}, {Left: true}}}
	for _, r := range rows {
		name := r.name
		for i, v := range r.by {
			if v.Or(1) == 0 {
				continue
			}
			t.Add(name, fmt.Sprint(nodes[i].ID), v.String(), p.Bar(float64(v.Or(0)), most, min(40, p.Width-30)))
			name = ""
		}
		if name != "" {
			t.Add(name, "all", "0 B", "")
		}
	}
	p.Table(t)
}
