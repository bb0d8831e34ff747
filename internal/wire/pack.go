// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/proto"

	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/wire/wirepb"
)

// Packer makes batches into bytes. It keeps its buffers: an agent packs one batch each
// window, and what it allocates costs its collector more than packing costs. The zero value is
// ready. It is for one goroutine.
type Packer struct {
	message, packed []byte

	windows []*wirepb.Window // used again; what they point to is in:
	text    []byte
	floats  []float64
	counts  []uint64
	sizes   []int64
	nodes   []int32
}

// Pack returns a batch as it is kept and sent. The bytes are valid until the next call.
// Snappy makes them a seventh longer than gzip at its fastest would, and keeps nothing in memory,
// where gzip keeps 1.2 MB.
func (p *Packer) Pack(b store.Batch) (packed []byte, err error) {
	p.message, err = proto.MarshalOptions{}.MarshalAppend(p.message[:0], p.fill(b))
	if err != nil {
		return nil, fmt.Errorf("pack batch %d: %w", b.Number, err)
	}
	p.packed = snappy.Encode(p.packed[:cap(p.packed)], p.message)
	if n := len(p.packed); n > MostPacked || len(p.message) > MostMessage {
		return nil, fmt.Errorf("pack batch %d: it has %d bytes: want at most %d", b.Number, n, MostPacked)
	}
	return p.packed, nil
}

// Split cuts a batch so that each part has at most MostRows rows of a kind. Numbers count up
// from b's.
func Split(b store.Batch) (parts []store.Batch) {
	for {
		part := store.Batch{Host: b.Host, Run: b.Run, Number: b.Number + uint64(len(parts))}
		part.Nodes, b.Nodes = cut(b.Nodes)
		part.Windows, b.Windows = cut(b.Windows)
		part.Decisions, b.Decisions = cut(b.Decisions)
		part.Outcomes, b.Outcomes = cut(b.Outcomes)
		parts = append(parts, part)
		if len(b.Nodes)+len(b.Windows)+len(b.Decisions)+len(b.Outcomes) == 0 {
			return parts
		}
	}
}

func cut[T any](all []T) (head, tail []T) {
	n := min(len(all), MostRows)
	return all[:n], all[n:]
}

// fill makes the message, which is valid until the next call.
func (p *Packer) fill(b store.Batch) *wirepb.Batch {
	p.text, p.floats, p.counts, p.sizes, p.nodes = p.text[:0], p.floats[:0], p.counts[:0], p.sizes[:0], p.nodes[:0]
	m := &wirepb.Batch{Schema: Schema, Host: p.name(b.Host), Run: p.name(b.Run), Number: b.Number}
	for i := range b.Nodes {
		n := &b.Nodes[i]
		m.Nodes = append(m.Nodes, &wirepb.Node{AtNs: n.At.UnixNano(), LengthNs: int64(n.Length), Node: int32(n.Node), Cpus: int32(n.CPUs),
			Busy: opt(&p.floats, n.Busy), MemoryBytes: opt(&p.sizes, n.Memory), FreeBytes: opt(&p.sizes, n.Free), TrafficBytes: opt(&p.sizes, n.Traffic),
			BusyHow: uint32(n.BusyHow), MemoryHow: uint32(n.MemoryHow), TrafficHow: uint32(n.TrafficHow)})
	}
	for len(p.windows) < len(b.Windows) {
		p.windows = append(p.windows, &wirepb.Window{})
	}
	m.Windows = p.windows[:len(b.Windows)]
	for i := range b.Windows {
		p.window(m.Windows[i], &b.Windows[i])
	}
	for _, d := range b.Decisions {
		m.Decisions = append(m.Decisions, &wirepb.Decision{AtNs: d.At.UnixNano(), Kind: d.Kind, Workload: p.name(d.Workload), Service: p.name(d.Service),
			Nodes: list(&p.nodes, d.Nodes), DryRun: d.DryRun, Rule: d.Rule, Sentence: p.name(d.Sentence)})
	}
	for _, o := range b.Outcomes {
		m.Outcomes = append(m.Outcomes, &wirepb.Outcome{AtNs: o.At.UnixNano(), Workload: p.name(o.Workload), Service: p.name(o.Service),
			Action: p.name(o.Action), State: o.State, Sentence: p.name(o.Sentence)})
	}
	return m
}

// window sets every field: m had another window before.
func (p *Packer) window(m *wirepb.Window, w *store.Window) {
	m.AtNs, m.LengthNs = w.At.UnixNano(), int64(w.Length)
	m.Workload, m.Service, m.Owner, m.Name = p.name(w.Workload), p.name(w.Service), p.name(w.Owner), p.name(w.Name)
	m.Approved, m.Bound = w.Approved, list(&p.nodes, w.Bound)
	m.Cpu, m.WaitingRatio, m.CpuByNode = opt(&p.floats, w.CPU), opt(&p.floats, w.Waiting), w.CPUByNode
	m.AnonBytesByNode, m.FileBytesByNode = list(&p.sizes, w.AnonByNode), list(&p.sizes, w.FileByNode)
	m.Cycles, m.Instructions, m.StallCycles = opt(&p.counts, w.Cycles), opt(&p.counts, w.Instructions), opt(&p.counts, w.Stalls)
	m.LocalReads, m.RemoteReads = opt(&p.counts, w.LocalReads), opt(&p.counts, w.RemoteReads)
	m.TrafficBytes, m.LatencyS = opt(&p.sizes, w.Traffic), opt(&p.floats, w.Latency)
	m.LocalRatio, m.LocalHow, m.LocalFrom = opt(&p.floats, w.Local), uint32(w.LocalHow), p.name(w.LocalFrom)
	m.MbwBytesPerS, m.Msr, m.Npmr, m.Rmbr = opt(&p.floats, w.MBW), opt(&p.floats, w.MSR), opt(&p.floats, w.NPMR), opt(&p.floats, w.RMBR)
	m.CpuHow, m.CyclesHow, m.TrafficHow = uint32(w.CPUHow), uint32(w.CyclesHow), uint32(w.TrafficHow)
	m.LatencyHow, m.PagesHow = uint32(w.LatencyHow), uint32(w.PagesHow)
}

func (p *Packer) name(s string) []byte {
	from := len(p.text)
	p.text = append(p.text, s...)
	return p.text[from:len(p.text):len(p.text)]
}

// number is what figures are made of.
type number interface {
	~int | ~int32 | ~int64 | ~uint64 | ~float64
}

// opt is a figure as the wire has it: nil is unknown. It is kept in to, which may move: figures
// before it stay where they were.
func opt[To, T number](to *[]To, v unit.Opt[T]) *To {
	x, ok := v.Get()
	if !ok {
		return nil
	}
	*to = append(*to, To(x))
	return &(*to)[len(*to)-1]
}

// list is opt for several.
func list[To, T number](to *[]To, all []T) []To {
	from := len(*to)
	for _, x := range all {
		*to = append(*to, To(x))
	}
	return (*to)[from:len(*to):len(*to)]
}

func at(ns int64) time.Time { return time.Unix(0, ns).UTC() }
