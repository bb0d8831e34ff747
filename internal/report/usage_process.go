// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

const sharedNote = "shared pages are counted in every process that maps them"

// Processes prints the processes of a snapshot: for a single one its kinds by node, for
// several a row each, largest first.
func Processes(w io.Writer, s snapshot.Snapshot, o render.TextOptions) error {
	p := newUsagePage(o)
	if len(s.Processes) == 1 {
		p.process(s, s.Processes[0])
	} else {
		p.manyProcesses(s)
	}
	p.problems(s.Problems)
	return p.Flush(w, "snapshot")
}

// Maps prints a process's memory by kind with a bar per node, and its largest mappings.
func Maps(w io.Writer, s snapshot.Snapshot, top int, o render.TextOptions) error {
	p := newUsagePage(o)
	for _, pr := range s.Processes {
		p.process(s, pr)
		p.biggest(s, pr, top)
	}
	p.problems(s.Problems)
	return p.Flush(w, "snapshot")
}

func name(pr snapshot.Process) string {
	return fmt.Sprintf("process %d (%s)", pr.PID, render.Or(pr.Name, "no name"))
}

func (p *usagePage) process(s snapshot.Snapshot, pr snapshot.Process) {
	if !pr.Known() {
		p.wrapped("", name(pr)+": memory unknown: "+pr.MemoryHow)
		return
	}
	where := "on " + render.Count(len(s.Machine.Nodes), "node")
	if len(s.Machine.Nodes) == 1 {
		where = "on the only node: all memory is local to every CPU"
	}
	p.wrapped("", fmt.Sprintf("%s: %s %s; %s", name(pr), pr.Total().String(), where, sharedNote))
	p.running(s, pr)
	p.Line("")
	var rows []kindRow
	for k, by := range pr.ByKind {
		row := kindRow{name: snapshot.MappingKind(k).String()}
		for _, b := range by {
			row.by = append(row.by, unit.Some(b))
		}
		rows = append(rows, row)
	}
	p.kinds(s.Machine.Nodes, rows)
}

// running is where the process runs, if its threads were looked at.
func (p *usagePage) running(s snapshot.Snapshot, pr snapshot.Process) {
	if len(pr.CPUByNode) == 0 {
		return
	}
	text := fmt.Sprintf("%s; %s by node: %s%s", render.Count(len(pr.Threads), "thread"), field.CPU.Name, cpusByNode(p, s.Machine.Nodes, pr.CPUByNode), estimated(pr.CPUByNode))
	if pr.Allowed.Len() > 0 {
		text += fmt.Sprintf("; may use CPUs %v, nodes %v", pr.Allowed, pr.Mems)
	}
	if pr.Workload != "" {
		text += "; in " + pr.Workload
	}
	p.wrapped("  ", text)
	if g := pr.Guest; g != nil {
		p.wrapped("  ", fmt.Sprintf("a virtual machine: %s, %s", render.Count(g.VCPUs, "virtual CPU"), show(g.Nodes, func(n int) string { return render.Count(n, "virtual node") })))
	}
}

func (p *usagePage) manyProcesses(s snapshot.Snapshot) {
	if len(s.Machine.Nodes) == 1 {
		p.wrapped("", "This host has no NUMA: with one node, all memory is local to every CPU.")
	}
	threads := len(s.Processes) > 0 && len(s.Processes[0].CPUByNode) > 0
	cols := []render.Column{{Head: "PID"}, {Head: "name", Left: true, Least: 8}}
	perNode := len(s.Machine.Nodes)*(8+2) <= p.Width-40
	if perNode {
		for _, n := range s.Machine.Nodes {
			cols = append(cols, render.Column{Head: fmt.Sprintf("node %d", n.ID)})
		}
	} else {
		cols = append(cols, render.Column{Head: "by node", Left: true})
	}
	cols = append(cols, render.Column{Head: "total"})
	if threads {
		cols = append(cols, render.Column{Head: field.CPU.Name, Left: true, Rank: 1})
	}
	p.table(cols, p.processRows(s, perNode, threads))
	p.wrapped("  ", sharedNote)
}

// sizedProcess is a process with the sum of its memory.
type sizedProcess struct {
	at    *snapshot.Process
	by    []unit.Bytes
	total unit.Bytes
}

// largestFirst keeps the order of the PIDs among equals.
func largestFirst(all []snapshot.Process) []sizedProcess {
	out := make([]sizedProcess, len(all))
	for i := range all {
		out[i] = sizedProcess{at: &all[i], by: all[i].Bytes()}
		for _, b := range out[i].by {
			out[i].total += b
		}
	}
	slices.SortStableFunc(out, func(a, b sizedProcess) int { return cmp.Compare(b.total, a.total) })
	return out
}

func (p *usagePage) processRows(s snapshot.Snapshot, perNode, threads bool) [][]string {
	sum := make([]unit.Bytes, len(s.Machine.Nodes))
	rows := make([][]string, 0, len(s.Processes)+1)
	for _, pr := range largestFirst(s.Processes) {
		row := append([]string{strconv.Itoa(pr.at.PID), pr.at.Name}, p.amounts(s.Machine.Nodes, pr.by, perNode, pr.at.Known())...)
		if threads {
			row = append(row, cpusByNode(p, s.Machine.Nodes, pr.at.CPUByNode))
		}
		rows = append(rows, row)
		for i, b := range pr.by {
			sum[i] += b
		}
	}
	last := append([]string{"", "total"}, p.amounts(s.Machine.Nodes, sum, perNode, true)...)
	if threads {
		last = append(last, "")
	}
	return append(rows, last)
}

// amounts are the cells of memory by node and the total.
func (p *usagePage) amounts(nodes []machine.Node, by []unit.Bytes, perNode, known bool) []string {
	var cells []string
	var sum unit.Bytes
	for i := range nodes {
		cell := unknown
		if known {
			cell = by[i].String()
			sum += by[i]
		}
		cells = append(cells, cell)
	}
	if !perNode {
		cells = []string{bytesByNode(p, nodes, by)}
	}
	if !known {
		return append(cells, unknown)
	}
	return append(cells, sum.String())
}

// biggest prints the mappings that have most memory.
func (p *usagePage) biggest(s snapshot.Snapshot, pr snapshot.Process, most int) {
	all := sorted(pr.Mappings, func(a, b snapshot.Mapping) int { return cmp.Compare(b.Bytes(), a.Bytes()) })
	if len(all) == 0 {
		return
	}
	top := all[:min(len(all), most)]
	p.heading(fmt.Sprintf("The biggest of %s with memory", render.Count(pr.Resident, "mapping")))
	cols := []render.Column{{Head: "address"}, {Head: "total"}, {Head: "by node", Left: true, Rank: 1}, {Head: "kind", Left: true}, {Head: "policy", Left: true, Rank: 2},
		{Head: "mapped by", Rank: 3}, {Head: "what", Left: true, Least: 24}}
	var rows [][]string
	for _, m := range top {
		rows = append(rows, []string{strconv.FormatUint(m.Start, 16), m.Bytes().String(),
			bytesByNode(p, s.Machine.Nodes, m.ByNode), m.Kind.String(), m.Policy, strconv.Itoa(max(1, m.Mappers)), render.Or(m.Path, "["+m.Kind.String()+"]")})
	}
	if len(s.Machine.Nodes) == 1 { // the only node is the total
		cols = slices.Delete(cols, 2, 3)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 2, 3)
		}
	}
	p.table(cols, rows)
}
