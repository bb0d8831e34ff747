// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/proto"

	"homenode/internal/store"
	"homenode/internal/unit"
	"homenode/internal/wire/wirepb"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func example() store.Batch {
	return store.Batch{
		Host: "db-7", Run: "r", Number: 3,
		Nodes: []store.Node{{At: now, Length: 10 * time.Second, Node: 1, CPUs: 4, Busy: unit.Some(0.0), Memory: unit.Some(unit.Bytes(0)), BusyHow: unit.HowMeasured, MemoryHow: unit.HowModelled}},
		Windows: []store.Window{
			{At: now, Length: time.Second, Workload: "/a\xff", Local: unit.Some(unit.Ratio(0)), LocalHow: unit.HowModelled, LocalFrom: "lab", Cycles: unit.Some(uint64(0)), CyclesHow: unit.HowModelled},
			{At: now, Length: time.Second, Workload: "/b", Service: "s", Owner: "none", Name: "n", Approved: true, Bound: []int{0, 3},
				CPU: unit.Some(1.5), CPUByNode: []float64{1, .5}, AnonByNode: []unit.Bytes{1, 2}, FileByNode: []unit.Bytes{0, 0}, MSR: unit.Some(unit.Ratio(.5)),
				CPUHow: unit.HowMeasured, CyclesHow: unit.HowModelled, PagesHow: unit.HowMeasured},
		},
		Decisions: []store.Decision{{At: now, Kind: "bind", Workload: "/b", Nodes: []int{0}, DryRun: true, Rule: "r", Sentence: "why"}},
		Outcomes:  []store.Outcome{{At: now, Workload: "/b", Action: "bind", State: "done", Sentence: "did"}},
	}
}

func pack(t testing.TB, b store.Batch) []byte {
	t.Helper()
	var p Packer
	out, err := p.Pack(b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func message(b store.Batch) *wirepb.Batch { return new(Packer).fill(b) }

func zipped(m *wirepb.Batch) []byte {
	data, _ := proto.Marshal(m)
	return squeeze(data)
}

func squeeze(data []byte) []byte { return snappy.Encode(nil, data) }

// What is known stays known, 0 included; what is unknown stays unknown; names stay bytes.
func TestRoundTrip(t *testing.T) {
	// a Packer that had other batches before, longer and shorter ones
	long, empty := example(), store.Batch{Host: "db-7", Run: "r", Number: 1}
	long.Windows = append(slices.Clone(long.Windows[1:]), long.Windows...)
	var p Packer
	for _, want := range []store.Batch{long, example(), empty, example(), long} {
		packed, err := p.Pack(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Unpack(packed, "db-7", now)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
}

func TestRefuses(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	window := func(change func(w *wirepb.Window)) []byte {
		m := message(example())
		change(m.Windows[0])
		return zipped(m)
	}
	whole := pack(t, example())
	for name, c := range map[string]struct {
		packed []byte
		want   Reason
	}{
		"NaN":             {window(func(w *wirepb.Window) { w.Cpu = proto.Float64(math.NaN()); w.CpuHow = 3 }), BadFigure},
		"infinite":        {window(func(w *wirepb.Window) { w.MbwBytesPerS = proto.Float64(math.Inf(1)); w.TrafficHow = 3 }), BadFigure},
		"negative":        {window(func(w *wirepb.Window) { w.AnonBytesByNode = []int64{-1}; w.PagesHow = 3 }), BadFigure},
		"ratio above 1":   {window(func(w *wirepb.Window) { w.LocalRatio = proto.Float64(1.01) }), BadFigure},
		"unknown and how": {window(func(w *wirepb.Window) { w.LocalRatio = nil }), BadFigure},
		"CPU without":     {window(func(w *wirepb.Window) { w.Cpu, w.CpuHow = proto.Float64(1), 0 }), BadFigure},
		"pages without":   {window(func(w *wirepb.Window) { w.FileBytesByNode = []int64{1} }), BadFigure},
		"latency, no how": {window(func(w *wirepb.Window) { w.LatencyS = proto.Float64(1) }), BadFigure},
		"how of nothing":  {window(func(w *wirepb.Window) { w.TrafficHow = 3 }), BadFigure},
		"how is 4":        {window(func(w *wirepb.Window) { w.CyclesHow = 4 }), BadFigure},
		"too large":       {window(func(w *wirepb.Window) { w.Cycles = proto.Uint64(math.MaxUint64) }), BadFigure},
		"no period":       {window(func(w *wirepb.Window) { w.LengthNs = 0 }), BadFigure},
		"node -1":         {window(func(w *wirepb.Window) { w.Bound = []int32{-1} }), BadFigure},
		"future":          {window(func(w *wirepb.Window) { w.AtNs = now.Add(time.Hour).UnixNano() }), BadTime},
		"1970":            {window(func(w *wirepb.Window) { w.AtNs = 0 }), BadTime},
		"label of 1 MB":   {window(func(w *wirepb.Window) { w.Service = []byte(long) }), BadName},
		"no workload":     {window(func(w *wirepb.Window) { w.Workload = nil }), BadName},
		"long array":      {window(func(w *wirepb.Window) { w.CpuByNode = make([]float64, MostNodes+1); w.CpuHow = 3 }), TooLarge},
		"rows":            {zipped(&wirepb.Batch{Schema: 1, Run: []byte("r"), Number: 1, Windows: make([]*wirepb.Window, MostRows+1)}), TooLarge},
		"bomb":            {squeeze(make([]byte, 64<<20)), TooLarge},
		"newer":           {zipped(&wirepb.Batch{Schema: Schema + 1, Run: []byte("r"), Number: 1}), Newer},
		"no key":          {zipped(&wirepb.Batch{Schema: 1}), Malformed},
		"cut off":         {whole[:len(whole)-5], Malformed},
		"cut off inside":  {squeeze([]byte{0x0a}), Malformed},
		"no snappy":       {[]byte("hello"), Malformed},
		"says 4 GB":       {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, TooLarge},
		"empty":           {nil, Malformed},
	} {
		got, err := Unpack(c.packed, "db-7", now)
		var r *Refusal
		if !errors.As(err, &r) || r.Reason != c.want || !reflect.DeepEqual(got, store.Batch{}) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	var r *Refusal
	if _, err := Unpack(whole, "db-8", now); !errors.As(err, &r) || r.Reason != WrongHost {
		t.Errorf("another host's: %v", err)
	}
}

func TestSplit(t *testing.T) {
	b := store.Batch{Run: "r", Number: 5, Windows: make([]store.Window, MostRows*2+1), Nodes: make([]store.Node, 3)}
	parts := Split(b)
	n := 0
	for i, p := range parts {
		n += len(p.Windows)
		if p.Number != uint64(5+i) || len(p.Windows) > MostRows {
			t.Errorf("part %d: number %d with %d windows", i, p.Number, len(p.Windows))
		}
	}
	if len(parts) != 3 || n != len(b.Windows) || len(parts[0].Nodes) != 3 || len(Split(store.Batch{})) != 1 {
		t.Errorf("%d parts with %d windows", len(parts), n)
	}
}

// No panic; an error means no batch; what is read packs into the same batch.
func FuzzUnpack(f *testing.F) {
	data, _ := proto.Marshal(message(example()))
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := Unpack(squeeze(data), "db-7", now)
		if err != nil {
			if !reflect.DeepEqual(b, store.Batch{}) {
				t.Errorf("an error and a batch: %v", err)
			}
			return
		}
		again, err := Unpack(pack(t, b), "db-7", now)
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Errorf("%+v became %+v, %v", b, again, err)
		}
	})
}
