// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/wire/wirepb"
)

// Unpack reads a batch of a host, whose name is that of its certificate. An error is a
// *Refusal.
func Unpack(packed []byte, host string, now time.Time) (store.Batch, error) {
	data, err := inflate(packed)
	if err != nil {
		return store.Batch{}, err
	}
	if err := countRows(data); err != nil {
		return store.Batch{}, err
	}
	var m wirepb.Batch
	if err := proto.Unmarshal(data, &m); err != nil {
		return store.Batch{}, refuse(Malformed, "it is no batch, or cut off: %v", err)
	}
	r := reader{now: now}
	b := r.batch(&m, host)
	if r.err != nil {
		return store.Batch{}, r.err
	}
	return b, nil
}

func inflate(packed []byte) ([]byte, error) {
	if len(packed) > MostPacked {
		return nil, refuse(TooLarge, "%d packed bytes: want at most %d", len(packed), MostPacked)
	}
	n, err := snappy.DecodedLen(packed)
	if err != nil {
		return nil, refuse(Malformed, "it is not snappy: %v", err)
	}
	if n > MostMessage {
		return nil, refuse(TooLarge, "%d bytes after decompression: want at most %d", n, MostMessage)
	}
	data, err := snappy.Decode(nil, packed)
	if err != nil {
		return nil, refuse(Malformed, "it is cut off or damaged: %v", err)
	}
	return data, nil
}

// countRows looks at the outermost fields before anything is made of them: an empty row is
// two bytes on the wire and hundreds in memory.
func countRows(data []byte) error {
	var rows [16]int
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return refuse(Malformed, "it is no batch: %v", protowire.ParseError(n))
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return refuse(Malformed, "it is no batch, or cut off: %v", protowire.ParseError(n))
		}
		data = data[n:]
		if number < protowire.Number(len(rows)) {
			if rows[number]++; rows[number] > MostRows {
				return refuse(TooLarge, "more than %d rows of a kind", MostRows)
			}
		}
	}
	return nil
}

// reader keeps the first error, so that a row reads as a list of its fields.
type reader struct {
	now time.Time
	err error
}

func (r *reader) refuse(why Reason, format string, args ...any) {
	if r.err == nil {
		r.err = refuse(why, format, args...)
	}
}

func (r *reader) batch(m *wirepb.Batch, host string) store.Batch {
	if m.Schema > Schema {
		r.refuse(Newer, "schema %d: this hub reads up to %d: update the hub", m.Schema, Schema)
	}
	if m.Schema == 0 || len(m.Run) == 0 || m.Number == 0 || m.Number > math.MaxInt64 {
		r.refuse(Malformed, "it has no schema, run or number")
	}
	if len(m.Host) > 0 && string(m.Host) != host {
		r.refuse(WrongHost, "it says %q: its certificate is of %q", clip(m.Host), host)
	}
	b := store.Batch{Host: host, Run: r.name("run", m.Run, 64), Number: m.Number}
	for _, n := range m.Nodes {
		if r.err == nil {
			b.Nodes = append(b.Nodes, r.node(n))
		}
	}
	for _, w := range m.Windows {
		if r.err == nil {
			b.Windows = append(b.Windows, r.window(w))
		}
	}
	for _, d := range m.Decisions {
		if r.err == nil {
			b.Decisions = append(b.Decisions, store.Decision{At: r.time(d.AtNs), Kind: r.name("kind", []byte(d.Kind), 64), Workload: r.path(d.Workload),
				Service: r.label("service", d.Service), Nodes: r.nodes(d.Nodes), DryRun: d.DryRun,
				Rule: r.name("rule", []byte(d.Rule), MostLabel), Sentence: r.text("sentence", d.Sentence, MostText)})
		}
	}
	for _, o := range m.Outcomes {
		if r.err == nil {
			b.Outcomes = append(b.Outcomes, store.Outcome{At: r.time(o.AtNs), Workload: r.path(o.Workload), Service: r.label("service", o.Service),
				Action: r.text("action", o.Action, MostText), State: r.name("state", []byte(o.State), 64), Sentence: r.text("sentence", o.Sentence, MostText)})
		}
	}
	return b
}

func (r *reader) node(n *wirepb.Node) store.Node {
	if n.Node < 0 || n.Node > MostNodeID || n.Cpus < 0 {
		r.refuse(BadFigure, "node %d with %d CPUs", n.Node, n.Cpus)
	}
	return store.Node{At: r.time(n.AtNs), Length: r.length(n.LengthNs), Node: int(n.Node), CPUs: int(n.Cpus), Busy: r.float("busy", n.Busy),
		Memory: r.bytes("memory", n.MemoryBytes), Free: r.bytes("free", n.FreeBytes), Traffic: r.bytes("traffic", n.TrafficBytes),
		BusyHow:    r.how("busy", n.BusyHow, n.Busy != nil),
		MemoryHow:  r.how("memory", n.MemoryHow, n.MemoryBytes != nil || n.FreeBytes != nil),
		TrafficHow: r.how("traffic", n.TrafficHow, n.TrafficBytes != nil)}
}

func (r *reader) window(w *wirepb.Window) store.Window {
	out := store.Window{
		At: r.time(w.AtNs), Length: r.length(w.LengthNs), Workload: r.path(w.Workload), Service: r.label("service", w.Service),
		Owner: r.label("owner", w.Owner), Name: r.label("name", w.Name), Approved: w.Approved, Bound: r.nodes(w.Bound),
		CPU: r.float("cpu", w.Cpu), Waiting: r.ratio("waiting", w.WaitingRatio), AnonByNode: r.manyBytes(w.AnonBytesByNode), FileByNode: r.manyBytes(w.FileBytesByNode),
		Cycles: r.count("cycles", w.Cycles), Instructions: r.count("instructions", w.Instructions), Stalls: r.count("stalls", w.StallCycles),
		LocalReads: r.count("local_reads", w.LocalReads), RemoteReads: r.count("remote_reads", w.RemoteReads),
		Traffic: r.bytes("traffic", w.TrafficBytes), Latency: r.float("latency", w.LatencyS),
		Local: r.ratio("local", w.LocalRatio), LocalFrom: r.label("local_from", w.LocalFrom),
		MBW: r.float("mbw", w.MbwBytesPerS), MSR: r.ratio("msr", w.Msr), NPMR: r.ratio("npmr", w.Npmr), RMBR: r.ratio("rmbr", w.Rmbr),

		LocalHow:   r.how("local access ratio", w.LocalHow, w.LocalRatio != nil),
		CPUHow:     r.how("cpu", w.CpuHow, w.Cpu != nil || w.WaitingRatio != nil || len(w.CpuByNode) > 0),
		CyclesHow:  r.how("cycles", w.CyclesHow, w.Cycles != nil || w.Instructions != nil || w.StallCycles != nil || w.Msr != nil),
		TrafficHow: r.how("traffic", w.TrafficHow, w.TrafficBytes != nil || w.MbwBytesPerS != nil),
		LatencyHow: r.how("latency", w.LatencyHow, w.LatencyS != nil),
		PagesHow:   r.how("pages", w.PagesHow, len(w.AnonBytesByNode) > 0 || len(w.FileBytesByNode) > 0 || w.Npmr != nil),
	}
	for i := range w.CpuByNode {
		out.CPUByNode = append(out.CPUByNode, r.float("cpu_by_node", &w.CpuByNode[i]).Or(0))
	}
	r.most("cpu_by_node", len(out.CPUByNode))
	return out
}

// how is how a figure is known, if it is.
func (r *reader) how(what string, code uint32, known bool) unit.Source {
	if code > uint32(unit.HowMeasured) || (unit.Source(code) == unit.HowUnknown) == known {
		r.refuse(BadFigure, "%s: it does not say how it is known (%d)", what, code)
		return unit.HowUnknown
	}
	return unit.Source(code)
}

func (r *reader) time(ns int64) time.Time {
	t := at(ns)
	if t.Before(earliest) {
		r.refuse(BadTime, "%s: the host's clock is not set", t.Format(time.RFC3339))
	}
	if ahead := t.Sub(r.now); ahead > future {
		r.refuse(BadTime, "%s is %s ahead: set the host's clock", t.Format(time.RFC3339), ahead.Round(time.Second))
	}
	return t
}

func (r *reader) length(ns int64) time.Duration {
	d := time.Duration(ns)
	if d <= 0 || d > 7*24*time.Hour {
		r.refuse(BadFigure, "a period of %v", d)
	}
	return d
}

func (r *reader) path(b []byte) string { return r.name("workload", b, MostName) }

// label is a name that may be empty.
func (r *reader) label(what string, b []byte) string { return r.text(what, b, MostLabel) }

func (r *reader) name(what string, b []byte, most int) string {
	if len(b) == 0 {
		r.refuse(BadName, "%s is empty", what)
	}
	return r.text(what, b, most)
}

func (r *reader) text(what string, b []byte, most int) string {
	if len(b) > most {
		r.refuse(BadName, "%s has %d bytes: want at most %d", what, len(b), most)
		return ""
	}
	return string(b)
}

func (r *reader) most(what string, n int) {
	if n > MostNodes {
		r.refuse(TooLarge, "%s has %d entries: want at most %d", what, n, MostNodes)
	}
}

func (r *reader) nodes(all []int32) (out []int) {
	r.most("nodes", len(all))
	for _, n := range all {
		if n < 0 || n > MostNodeID {
			r.refuse(BadFigure, "node %d", n)
			return nil
		}
		out = append(out, int(n))
	}
	return out
}

func (r *reader) float(what string, v *float64) unit.Opt[float64] {
	if v == nil {
		return unit.None[float64]()
	}
	if math.IsNaN(*v) || math.IsInf(*v, 0) || *v < 0 {
		r.refuse(BadFigure, "%s is %v", what, *v)
	}
	return unit.Some(*v)
}

func (r *reader) ratio(what string, v *float64) unit.Opt[unit.Ratio] {
	x, ok := r.float(what, v).Get()
	if ok && x > 1 {
		r.refuse(BadFigure, "%s is %v: it is a ratio", what, x)
	}
	return unit.OptOf(unit.Ratio(x), ok)
}

func (r *reader) bytes(what string, v *int64) unit.Opt[unit.Bytes] {
	if v == nil {
		return unit.None[unit.Bytes]()
	}
	if *v < 0 {
		r.refuse(BadFigure, "%s is %d bytes", what, *v)
	}
	return unit.Some(unit.Bytes(*v))
}

func (r *reader) manyBytes(all []int64) (out []unit.Bytes) {
	r.most("bytes by node", len(all))
	for i := range all {
		out = append(out, r.bytes("bytes by node", &all[i]).Or(0))
	}
	return out
}

// count is bounded by what stores keep: int64.
func (r *reader) count(what string, v *uint64) unit.Opt[uint64] {
	if v == nil {
		return unit.None[uint64]()
	}
	if *v > math.MaxInt64 {
		r.refuse(BadFigure, "%s is %d", what, *v)
	}
	return unit.Some(*v)
}

func clip(b []byte) string { return string(b[:min(len(b), 64)]) }
