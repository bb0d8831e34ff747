// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// view is a snapshot and the thresholds that judge it. Its methods accept slices that
// are shorter than they should be: a missing entry is unknown.
type view struct {
	snapshot.Snapshot
	c Config
}

// at is by[i], or the zero value, which every caller takes for unknown.
func at[T any](by []T, i int) (v T) {
	if i >= 0 && i < len(by) {
		v = by[i]
	}
	return v
}

// mem is what is known of one node's memory.
func (l view) mem(i int) snapshot.Node { return at(l.Nodes, i) }

// windowNode is the node in the window, by position.
func (l view) windowNode(i int) window.Node { return at(l.Window.Nodes, i) }

func (l view) id(i int) int { return at(l.Machine.Nodes, i).ID }

// index is the position of a node in the slices by node.
func (l view) index(id int) (int, bool) {
	i := slices.IndexFunc(l.Machine.Nodes, func(n machine.Node) bool { return n.ID == id })
	return i, i >= 0
}

// total, free and file are a node's memory by the snapshot, or else by the window.
func (l view) total(i int) unit.Value[unit.Bytes] {
	return either(l.mem(i).Memory.Total, l.windowNode(i).Memory)
}
func (l view) free(i int) unit.Value[unit.Bytes] {
	return either(l.mem(i).Memory.Free, l.windowNode(i).Free)
}
func (l view) file(i int) unit.Value[unit.Bytes] {
	return either(l.mem(i).Memory.File, l.windowNode(i).File)
}

func either[T any](a, b unit.Value[T]) unit.Value[T] {
	if a.Known() {
		return a
	}
	return b
}

// busy is the CPU time of the host, without what doctor itself used; unknown if that of
// a node with CPUs is unknown.
func (l view) busy() unit.Value[float64] {
	sum, how, any := 0.0, unit.HowMeasured, false
	for i, n := range l.Machine.Nodes {
		b, ok := l.windowNode(i).CPUBusy.Get()
		if n.CPUs.IsEmpty() {
			continue
		}
		if !ok {
			return unit.UnknownValue[float64](fmt.Sprintf("no CPU time of node %d", n.ID))
		}
		sum, how, any = sum+b, min(how, l.windowNode(i).CPUBusy.How), true
	}
	if !any {
		return unit.UnknownValue[float64]("no node has CPUs")
	}
	sum = max(0, sum-l.Self.Or(0))
	if used := l.workloadCPUs(); used > sum {
		return unit.ValueOf(used, how, "CPU time of all workloads: the nodes' in /proc/stat, counted by ticks, is less")
	}
	return unit.ValueOf(sum, how, "CPU time of all nodes")
}

// workloadCPUs is what all workloads use, each once. The scheduler's clock counts
// it: where a host loses ticks, or a load sleeps in step with them, /proc/stat has
// less (kernel/sched/cputime.c, account_process_tick).
func (l view) workloadCPUs() (sum float64) {
	for i, w := range l.Window.Workloads {
		if !l.below(i) {
			sum += w.CPU.Or(0)
		}
	}
	return sum
}

// perSecond is a count of the period as a rate.
func (l view) perSecond(v unit.Value[uint64]) unit.Value[float64] {
	n, ok := v.Get()
	if !ok {
		return unit.UnknownValue[float64](v.From)
	}
	if l.Length <= 0 {
		return unit.UnknownValue[float64]("the period has no length")
	}
	return unit.ValueOf(float64(n)/l.Length.Seconds(), v.How, v.From)
}

func (l view) group(i int) snapshot.Group { return at(l.Groups, i) }

// workload is the position of a workload; -1 when it is not in the window.
func (l view) workload(id string) int {
	return slices.IndexFunc(l.Window.Workloads, func(w window.Workload) bool { return w.ID == id })
}

// process is the process with this PID, if it was looked at.
func (l view) process(pid int) (snapshot.Process, bool) {
	for _, p := range l.Processes {
		if p.PID == pid {
			return p, true
		}
	}
	return snapshot.Process{}, false
}

// shares are the parts of a whole; nil if any is unknown or all are zero.
func shares(by []unit.Value[float64], n int) []float64 {
	out, sum := make([]float64, n), 0.0
	for i := range out {
		v, ok := at(by, i).Get()
		if !ok || v < 0 {
			return nil
		}
		out[i], sum = v, sum+v
	}
	if sum <= 0 {
		return nil
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func byteShares[B ~int64](by []B, n int) []float64 {
	values := make([]unit.Value[float64], n)
	for i := range values {
		values[i] = unit.Measured(float64(at(by, i)), "")
	}
	return shares(values, n)
}

// cpuShares are a workload's parts of CPU time by node; nil when unknown or idle.
func (l view) cpuShares(w window.Workload) []float64 {
	return shares(w.CPUByNode, len(l.Machine.Nodes))
}

// home is the node a workload runs on, with its share.
func (l view) home(w window.Workload) (int, float64, bool) {
	for i, s := range l.cpuShares(w) {
		if s >= l.c.HomeShare {
			return i, s, true
		}
	}
	return 0, 0, false
}

// anonShares are a workload's parts of private memory by node; nil when unknown
// or less than MinMemory.
func (l view) anonShares(w window.Workload) ([]float64, unit.Bytes) {
	sum, ok := window.SumBytes(w.AnonByNode)
	if !ok || sum < l.c.MinMemory {
		return nil, sum
	}
	by := make([]unit.Bytes, len(w.AnonByNode))
	for i, v := range w.AnonByNode {
		by[i] = v.Or(0)
	}
	return byteShares(by, len(l.Machine.Nodes)), sum
}

// nodesOf are the nodes of CPUs.
func (l view) nodesOf(cpus set.CPUSet) set.NodeSet {
	var nodes set.NodeSet
	for _, n := range l.Machine.Nodes {
		if n.CPUs.Overlaps(cpus) && validNode(n.ID) {
			nodes = nodes.With(n.ID)
		}
	}
	return nodes
}

func validNode(id int) bool { return id >= 0 && id <= set.MaxNode }

func (l view) nodeSet(ids ...int) set.NodeSet {
	return set.FromNodes(slices.DeleteFunc(slices.Clone(ids), func(id int) bool { return !validNode(id) })...)
}

// nearest are the other nodes that ok accepts, nearest to this one first.
func (l view) nearest(from int, ok func(i int) bool) []int {
	var out []int
	for _, id := range l.Machine.Nearest(from) {
		if i, known := l.index(id); known && id != from && ok(i) {
			out = append(out, id)
		}
	}
	return out
}

// roomy says that a node has free memory; false also when that is unknown.
func (l view) roomy(i int) bool {
	free, ok1 := l.free(i).Get()
	total, ok2 := l.total(i).Get()
	return ok1 && ok2 && total > 0 && float64(free) >= l.c.FreeShare*float64(total)
}

// full says that a node's free memory is near its low watermarks.
func (l view) full(i int) (full, known bool) {
	free, ok1 := l.free(i).Get()
	low, ok2 := l.mem(i).LowFree.Get()
	return float64(free) <= l.c.NearLow*float64(low), ok1 && ok2
}

// A name for the text of a finding.
func nodeName(id int) string { return "node " + strconv.Itoa(id) }

func nodeNames(nodes set.NodeSet) string {
	if nodes.Len() == 1 {
		return "node " + nodes.String()
	}
	return "nodes " + nodes.String()
}

func processName(p snapshot.Process) string { return fmt.Sprintf("%s (%d)", p.Name, p.PID) }

func onNode(id int) Subject        { return Subject{Kind: SubjectNode, ID: strconv.Itoa(id)} }
func ofWorkload(id string) Subject { return Subject{Kind: SubjectWorkload, ID: id, Workload: id} }
func ofProcess(p snapshot.Process) Subject {
	return Subject{Kind: SubjectProcess, ID: strconv.Itoa(p.PID), Name: p.Name, Workload: p.Workload}
}

// skip is a rule that could not judge; Examine names the rule.
func skip(why string, subjects ...string) Skipped { return Skipped{Why: why, Subjects: subjects} }

// because is the reason why a value is unknown.
func because[T any](v unit.Value[T]) string {
	if v.From == "" {
		return "not in this snapshot"
	}
	return v.From
}

// Evidence.

func fact(name, value string, how unit.Source, from string) Evidence {
	return Evidence{Name: name, Value: value, How: how, From: from}
}

// shown is a value that prints itself (Bytes, Ratio, int).
func shown[T any](name string, v unit.Value[T]) Evidence {
	return fact(name, v.V.String(), v.How, v.From)
}

func figured(name string, v unit.Value[float64], what string) Evidence {
	f, ok := v.Get()
	if !ok {
		return fact(name, "unknown", v.How, v.From)
	}
	return fact(name, strings.TrimSpace(render.Amount(f)+" "+what), v.How, v.From)
}

// byNode prints figures by node: "node 0 512MiB, node 1 12MiB".
func (l view) byNode(print func(i int) string) string {
	var parts []string
	for i, n := range l.Machine.Nodes {
		if text := print(i); text != "" {
			parts = append(parts, nodeName(n.ID)+" "+text)
		}
	}
	return strings.Join(parts, ", ")
}

// spread is evidence of shares by node.
func (l view) spread(name string, part []float64, how unit.Source, from string) Evidence {
	return fact(name, l.byNode(func(i int) string { return render.Percent(at(part, i)) }), how, from)
}

// place is the evidence of where a process's remote reads come from: mapping and
// function, of the samples that keep accepts.
func (l view) place(keep func(snapshot.Place) bool) []Evidence {
	var best snapshot.Place
	most := uint64(0)
	for _, p := range l.Samples.Places {
		if n := total(p.Remote); keep(p) && n > most {
			best, most = p, n
		}
	}
	if most < l.c.MinSamples {
		return nil
	}
	text := fmt.Sprintf("%s of %s (%d): %d of %d sampled loads were remote", best.Mapping, best.Name, best.PID, most, total(best.Loads))
	if len(best.Functions) > 0 {
		text += ", most in " + best.Functions[0].Name
	}
	return []Evidence{fact("where", text, l.Samples.How, l.Samples.From)}
}

func total(by []uint64) uint64 {
	sum := uint64(0)
	for _, n := range by {
		sum += n
	}
	return sum
}

// sortBy sorts by a key, ascending; equals keep their order.
func sortBy[T any](list []T, key func(T) float64) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
