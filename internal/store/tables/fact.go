// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"strconv"
	"strings"
	"time"

	"homenode/internal/set"
	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Unreleased is the newest schema version of a store that no release had: such a store is refused.
const Unreleased = 1

// noHow is the code of a figure that is not there: more than any unit.Source, so that the
// least code of a sum is that of its weakest part.
const noHow = 9

// WindowColumns are the sums of workloads' rows. A sum of what may be unknown has its weight
// beside it: seconds or CPU-seconds in which it was known.
var WindowColumns = []string{
	"windows", "length_s", "bound_s", "approved_s",
	"cpu_s", "cpu_known_s", "waiting_s", "waiting_known_s",
	"local_reads", "reads", "reads_how", // of windows whose reads were counted
	"guess_local_cpu_s", "guess_cpu_s", "guess_how", // local ratio × CPU time, of the others
	"cycles", "instructions", "stalls",
	"traffic_bytes", "traffic_known_s", "latency_x_s", "latency_known_s",
	"mbw_x_s", "mbw_known_s", "stalled_cpu_s", "stalled_known_cpu_s",
	"npmr_x_s", "npmr_known_s", "rmbr_x_s", "rmbr_known_s",
	"anon_byte_s", "file_byte_s", "memory_known_s",
	"of_node_x_s", "of_node_known_s", "server_busy_x_s", "idlest_busy_x_s", "server_known_s",
	"cpu_how", "cycles_how", "traffic_how", "latency_how", "pages_how", "server_how",
}

// NodeColumns are the sums of nodes' rows.
var NodeColumns = []string{
	"windows", "length_s", "cpus_s", "busy_s", "busy_cpus_s", "busy_known_s", "memory_byte_s", "memory_known_s",
	"free_byte_s", "free_known_s", "traffic_bytes", "traffic_known_s",
	"busy_how", "memory_how", "traffic_how",
}

// IsHow says whether a column is the code of how its sum is known: the least is kept, not the sum.
func IsHow(column string) bool { return strings.HasSuffix(column, "_how") }

// Fact is one row's sums, in the order of its columns.
type Fact []float64

// Add puts another row of the same columns into this one.
func (f Fact) Add(columns []string, g Fact) {
	for i, c := range columns {
		if IsHow(c) {
			f[i] = min(f[i], g[i])
		} else {
			f[i] += g[i]
		}
	}
}

// weighted is (value × weight, weight), or nothing of what is unknown.
func weighted(v unit.Opt[float64], weight float64) (float64, float64) {
	x, ok := v.Get()
	if !ok {
		return 0, 0
	}
	return x * weight, weight
}

func number[T ~float64 | ~int64 | ~uint64](v unit.Opt[T]) unit.Opt[float64] {
	x, ok := v.Get()
	return unit.OptOf(float64(x), ok)
}

// Server is what a window's host had while it was measured.
type Server struct {
	window.Use
	How unit.Source // of the weakest node's
}

// ServersOf are a batch's, by the end of the period, as Millis. A model of gains learns from what is
// busy beside a workload, and a join of windows and nodes would read both in every question.
func ServersOf(b store.Batch) map[int64]Server {
	nodes := map[int64][]store.Node{}
	for _, n := range b.Nodes {
		at := Millis(n.At)
		nodes[at] = append(nodes[at], n)
	}
	all := make(map[int64]Server, len(nodes))
	for at, of := range nodes {
		s := Server{How: unit.HowMeasured}
		s.Use = window.UseOf(func(yield func(int, unit.Opt[float64]) bool) {
			for _, n := range of {
				if n.CPUs > 0 {
					s.How = unit.Weakest(s.How, n.BusyHow)
				}
				if !yield(n.CPUs, n.Busy) {
					return
				}
			}
		})
		all[at] = s
	}
	return all
}

// OfWindow is a window's row; on is its host at the time.
func OfWindow(w store.Window, on Server) Fact {
	s := w.Length.Seconds()
	f := make(Fact, 0, len(WindowColumns))
	pair := func(v unit.Opt[float64], weight float64) {
		x, known := weighted(v, weight)
		f = append(f, x, known)
	}
	when := func(yes bool) float64 {
		if yes {
			return s
		}
		return 0
	}
	f = append(f, 1, s, when(len(w.Bound) > 0), when(w.Approved))
	pair(w.CPU, s)
	pair(number(w.Waiting), s)
	f = appendLocal(f, w, w.CPU.Or(0)*s)
	f = append(f, number(w.Cycles).Or(0), number(w.Instructions).Or(0), number(w.Stalls).Or(0))
	f = append(f, number(w.Traffic).Or(0), when(w.Traffic.Known()))
	pair(w.Latency, s)
	pair(w.MBW, s)
	pair(number(w.MSR), w.CPU.Or(0)*s)
	pair(number(w.NPMR), s)
	pair(number(w.RMBR), s)
	anon, file := total(w.AnonByNode), total(w.FileByNode)
	f = append(f, anon*s, file*s, when(len(w.AnonByNode) > 0))
	cpu, known := w.CPU.Get()
	pair(unit.OptOf(cpu/float64(on.Fewest), known && on.Fewest > 0), s)
	host, known := on.Host.Get()
	f = append(f, host*s, on.Idlest.Or(0)*s, when(known))
	serverHow := unit.HowUnknown
	if known {
		serverHow = on.How
	}
	return append(f, code(w.CPUHow), code(w.CyclesHow), code(w.TrafficHow), code(w.LatencyHow), code(w.PagesHow), code(serverHow))
}

// code is how a figure is known, as columns have it.
func code(s unit.Source) float64 {
	if s == unit.HowUnknown {
		return noHow
	}
	return float64(s)
}

// howName is a code in words.
func howName(c float64) string {
	if c == noHow {
		return unit.HowUnknown.String()
	}
	return unit.Source(c).String()
}

// appendLocal adds the local access ratio: by reads where both kinds are counted, otherwise
// weighted by CPU time.
func appendLocal(f Fact, w store.Window, cpu float64) Fact {
	local, ok := w.LocalReads.Get()
	remote, both := w.RemoteReads.Get()
	if ok && both && local+remote > 0 { // a workload that reads nothing says nothing of where
		return append(f, float64(local), float64(local)+float64(remote), code(w.LocalHow), 0, 0, noHow)
	}
	x, weight := weighted(number(w.Local), cpu)
	if weight == 0 {
		return append(f, 0, 0, noHow, 0, 0, noHow)
	}
	return append(f, 0, 0, noHow, x, weight, code(w.LocalHow))
}

// OfNode is a node's row.
func OfNode(n store.Node) Fact {
	s := n.Length.Seconds()
	f := Fact{1, s, float64(n.CPUs) * s, 0, 0, 0}
	if busy, ok := n.Busy.Get(); ok {
		f[3], f[4], f[5] = busy*s, float64(n.CPUs)*s, s
	}
	for _, v := range []unit.Opt[unit.Bytes]{n.Memory, n.Free} {
		x, weight := weighted(number(v), s)
		f = append(f, x, weight)
	}
	x, weight := weighted(number(n.Traffic), 1)
	f = append(f, x, weight*s)
	return append(f, code(n.BusyHow), code(n.MemoryHow), code(n.TrafficHow))
}

func total(all []unit.Bytes) (sum float64) {
	for _, b := range all {
		sum += float64(b)
	}
	return sum
}

// LastColumns are a raw window's texts that have no sum: the newest is shown.
var LastColumns = []string{"bound", "cpu_by_node", "anon_by_node", "file_by_node", "local_from"}

// LastOf are their values.
func LastOf(w store.Window) []string {
	return []string{Nodes(w.Bound), listed(w.CPUByNode), listed(w.AnonByNode), listed(w.FileByNode), w.LocalFrom}
}

// Nodes prints a set of nodes as the kernel does: "0-1,4".
func Nodes(ids []int) string {
	valid := make([]int, 0, len(ids))
	for _, id := range ids {
		if id >= 0 && id <= set.MaxNode {
			valid = append(valid, id)
		}
	}
	return set.FromNodes(valid...).String()
}

// listed prints figures of nodes: "1.5 0 2".
func listed[T ~float64 | ~int64](all []T) string {
	var text []byte
	for i, v := range all {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendFloat(text, float64(v), 'f', -1, 64)
	}
	return string(text)
}

// Event is a decision or an outcome, as stores keep both.
type Event struct {
	At                      int64 // as Millis
	Type                    string
	Workload, Service, Kind string
	Nodes                   string
	DryRun                  bool
	State, Rule, Sentence   string
}

// EventsOf are a batch's decisions and outcomes.
func EventsOf(b store.Batch) []Event {
	var all []Event
	for _, d := range b.Decisions {
		all = append(all, Event{Millis(d.At), "decision", d.Workload, d.Service, d.Kind, Nodes(d.Nodes), d.DryRun, "", d.Rule, d.Sentence})
	}
	for _, o := range b.Outcomes {
		all = append(all, Event{Millis(o.At), "outcome", o.Workload, o.Service, o.Action, "", false, o.State, "", o.Sentence})
	}
	return all
}

// Millis is how stores write a time: milliseconds since 1970, UTC.
func Millis(t time.Time) int64 { return t.UnixMilli() }

// Bucket is the start of the minute or hour that a time is in.
func Bucket(ms int64, size time.Duration) int64 {
	step := size.Milliseconds()
	return ms - ((ms%step)+step)%step
}
