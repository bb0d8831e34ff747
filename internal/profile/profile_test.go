// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// sample has one of everything.
func sample() Profile {
	f := FigureOf([]float64{90.2, 91, 89.5})
	f.Cycles = unit.Some(243.5)
	return Profile{
		Schema: Schema, Machine: FingerprintOf(two(), "Xeon Gold 6140"), Origin: "live", Version: "v0", Command: "homenode bench",
		Date: time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC), Seconds: 170.5, How: unit.HowMeasured, Clock: "monotonic clock",
		Caveats: []Caveat{{"virtual-machine", "This is a virtual machine (kvm).", nil}, {"spread", "Figures differ.", []Part{Latency}}},
		Done:    []Part{Caches, Latency}, Skipped: []Skipped{{Rao, "", "budget of 5m0s used up"}},
		Latency:      []PairFigure{{0, 0, f}, {0, 8, UnknownFigure("not enough memory")}, {8, 0, f}},
		Bandwidth:    []PairFigure{{0, 0, f}},
		Peak:         []NodeFigure{{0, f}},
		Mixes:        []Mix{{1, 0, f}, {0, 1, f}},
		Loaded:       []Curve{{"node 0, local", 0, 0, []CurvePoint{{64, f, f}, {0, f, f}}}},
		Caches:       []CacheSize{{Level: 1, Size: unit.Some(32 * unit.KiB), Next: unit.Some(48 * unit.KiB), Latency: f}},
		WorkingSets:  []SizeFigure{{4 * unit.KiB, f}, {8 * unit.KiB, f}},
		CacheSharing: []SharingTest{{[2]int{0, 1}, SameLLC, unit.Some(10), f, f, unit.Some(true)}},
		CoreToCore:   []CoreFigure{{[2]int{0, 2}, Between, unit.Some(21), f}},
		Migration:    []Migration{{0, 8, 4 * unit.KiB, f, f}},
		Policies:     []PolicyRow{{"local", "read", 0, f, "bytes/s", unit.Some(1.0)}},
		Rao:          []RaoCell{{2, "intra", "local", unit.MiB, 0, 0, f, f, f, f, f, f, f}},
	}
}

// two has a sparse second node.
func two() machine.Machine {
	d := func(v ...int) (row []unit.Opt[int]) {
		for _, x := range v {
			row = append(row, unit.Some(x))
		}
		return row
	}
	m := machine.Machine{Origin: "fake:two", Distances: [][]unit.Opt[int]{d(10, 21), d(21, 10)}}
	for i, id := range []int{0, 8} {
		m.Nodes = append(m.Nodes, machine.Node{ID: id, CPUs: set.FromCPUs(2*i, 2*i+1), Memory: unit.Some(unit.GiB)})
		for c := range 2 {
			m.CPUs = append(m.CPUs, machine.CPU{ID: 2*i + c, Node: unit.Some(id), Online: true})
		}
	}
	return m
}

func TestDecodeRoundTrip(t *testing.T) {
	data, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(back)
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("%v\n%s\n%s", err, data, again)
	}
	if f, ok := back.LatencyBetween(8, 0); !ok || f.Median.Or(0) != 90.2 || f.N != 3 {
		t.Errorf("latency from 8 to 0: %+v, %v", f, ok)
	}
	for _, pair := range [][2]int{{0, 8}, {8, 8}, {3, 0}} {
		if _, ok := back.LatencyBetween(pair[0], pair[1]); ok {
			t.Errorf("latency %v is known", pair)
		}
	}
	if _, ok := back.BandwidthBetween(0, 0); !ok {
		t.Error("bandwidth of node 0 is not known")
	}
	if size, ok := back.LLC(); !ok || size != 32*unit.KiB {
		t.Errorf("LLC %v, %v", size, ok)
	}
}

func TestDecodeRefuses(t *testing.T) {
	bad := FigureOf([]float64{1})
	bad.Min = 2
	for want, spoil := range map[string]func(*Profile){
		"schema 0":                 func(p *Profile) { p.Schema = 0 },
		"seconds -1":               func(p *Profile) { p.Seconds = -1 },
		"want some":                func(p *Profile) { p.Machine.Nodes = nil },
		"memory of 1":              func(p *Profile) { p.Machine.Memory = p.Machine.Memory[:1] },
		"ascending":                func(p *Profile) { p.Machine.Nodes = []int{8, 0} },
		"1 distances":              func(p *Profile) { p.Machine.Distances[1] = p.Machine.Distances[1][:1] },
		`unknown part "speed"`:     func(p *Profile) { p.Skipped[0].Part = "speed" },
		"done: caches":             func(p *Profile) { p.Done = []Part{Caches, Caches} },
		"no node 1":                func(p *Profile) { p.Latency[0].To = 1 },
		"outside 2 to 1":           func(p *Profile) { p.Peak[0].Figure = bad },
		"0 repeats":                func(p *Profile) { p.Mixes[0].N = 0 },
		"unknown and has":          func(p *Profile) { p.Mixes[0].Median = unit.None[float64]() },
		"[0 0] is there twice":     func(p *Profile) { p.Latency[1] = p.Latency[0] },
		"0 reads for 0":            func(p *Profile) { p.Mixes[0] = Mix{0, 0, bad} },
		"pause -1":                 func(p *Profile) { p.Loaded[0].Points[0].Pause = -1 },
		"level 1 at position 1":    func(p *Profile) { p.Caches = append(p.Caches, p.Caches[0]) },
		"4 KiB after 8 KiB":        func(p *Profile) { p.WorkingSets[0], p.WorkingSets[1] = p.WorkingSets[1], p.WorkingSets[0] },
		"no CPU 9999":              func(p *Profile) { p.CoreToCore[0].CPUs[1] = 9999 },
		`unknown level "near"`:     func(p *Profile) { p.CacheSharing[0].Level = "near" },
		"migration: size 0":        func(p *Profile) { p.Migration[0].PageSize = 0 },
		"no CPU -2":                func(p *Profile) { p.Policies[0].CPU = -2 },
		"no threads":               func(p *Profile) { p.Rao[0].Threads = 0 },
		"rao: sharing size -1":     func(p *Profile) { p.Rao[0].Sharing = -1 },
		"latency: -3 ns":           func(p *Profile) { p.Latency[0].Figure = FigureOf([]float64{-3, 90}) },
		"working_sets: 0 ns":       func(p *Profile) { p.WorkingSets[0].Figure = FigureOf([]float64{0}) },
		"bandwidth: 0 bytes/s":     func(p *Profile) { p.Bandwidth[0].Figure = FigureOf([]float64{0, 1}) },
		"mixes: 1.7e+308 bytes/s":  func(p *Profile) { p.Mixes[0].Figure = FigureOf([]float64{1.7e308}) },
		"loaded-latency: 2e+12 ns": func(p *Profile) { p.Loaded[0].Points[0].Latency = FigureOf([]float64{2e12}) },
		"migration: -1 bytes/s":    func(p *Profile) { p.Migration[0].Rate = FigureOf([]float64{-1}) },
		"rao: -1 ":                 func(p *Profile) { p.Rao[0].Penalty = FigureOf([]float64{-1}) },
		"-2 cycles cannot be":      func(p *Profile) { p.CoreToCore[0].Cycles = unit.Some(-2.0) },
		"1e+300 of local":          func(p *Profile) { p.Policies[0].Against = unit.Some(1e300) },
		"node 0: its memory is ne": func(p *Profile) { p.Machine.Memory[0] = -1 },
	} {
		p := sample()
		spoil(&p)
		if _, err := Encode(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Encode: %v, want %q", err, want)
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Decode(raw); err == nil || !reflect.DeepEqual(got, Profile{}) {
			t.Errorf("%s: decoded to %+v, %v", want, got, err)
		}
	}
	if _, err := Decode([]byte(`{"schema":99,"new":1}`)); !errors.Is(err, schema.ErrNewer) {
		t.Error(err)
	}
}

// A miss rate may be 0; so may a policy's figure in ns.
func TestZeroCounts(t *testing.T) {
	p := sample()
	p.Rao[0].MissRate = FigureOf([]float64{0, 0})
	p.Policies[0].Unit = "ns"
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFigureOf(t *testing.T) {
	if f := FigureOf([]float64{math.NaN()}); f.Known() || f.Why == "" || f.Spread() != 0 {
		t.Errorf("%+v", f)
	}
	if f := FigureOf([]float64{3, math.Inf(1), 1, 2, 10}); f.N != 4 || f.Median.Or(0) != 2.5 || f.Min != 1 || f.Max != 10 || f.Spread() != 3.6 {
		t.Errorf("%+v, spread %g", f, f.Spread())
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for range 2000 {
		v := make([]float64, 1+rng.IntN(9))
		for i := range v {
			v[i] = rng.NormFloat64() * math.Pow(10, float64(rng.IntN(600)-300))
		}
		f := FigureOf(v)
		if err := f.check(); err != nil {
			t.Fatalf("%v: %v", v, err)
		}
	}
}

func TestFingerprint(t *testing.T) {
	base := func() Fingerprint { return FingerprintOf(two(), "A") }
	for want, change := range map[string]func(*Fingerprint){
		"":                                                    func(f *Fingerprint) { f.Memory[0] -= unit.GiB / 150 },
		"it has 1 node, this machine has 2":                   func(f *Fingerprint) { f.Nodes = f.Nodes[:1] },
		"its nodes are 0-1, this machine's 0,8":               func(f *Fingerprint) { f.Nodes = []int{0, 1} },
		`its CPUs are "B", this machine's "A"`:                func(f *Fingerprint) { f.CPUModel = "B" },
		"it has 5 CPUs online, this machine has 4":            func(f *Fingerprint) { f.CPUs = 5 },
		"its node 8 has CPUs none, this machine's 2-3":        func(f *Fingerprint) { f.NodeCPUs[1] = set.CPUSet{} },
		"its node 0 has 1.5 GiB of memory, this machine's":    func(f *Fingerprint) { f.Memory[0] += unit.GiB / 2 },
		"its distance from node 0 to node 8 is 31, this mach": func(f *Fingerprint) { f.Distances[0][1] = unit.Some(31) },
	} {
		f := base()
		change(&f)
		if got := f.Differs(base()); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	unknown := base()
	unknown.CPUModel, unknown.Distances[0][1] = "", unit.None[int]()
	if got := unknown.Differs(base()); got != "" {
		t.Errorf("an unknown value differs: %s", got)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := Encode(sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"schema":1,"machine":{"cpus":1,"nodes":[0],"node_cpus":["0"],"memory_bytes":[1],"distances":[[10]]},"how":"measured"}`))
	f.Add([]byte(`{"schema":2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			if !reflect.DeepEqual(p, Profile{}) {
				t.Fatalf("error and value: %+v", p)
			}
			return
		}
		line, err := Encode(p)
		if err != nil {
			t.Fatalf("decoded but cannot be written: %v", err)
		}
		again, err := Decode(line)
		if err != nil {
			t.Fatalf("written but cannot be read: %v", err)
		}
		if line2, _ := Encode(again); !bytes.Equal(line, line2) {
			t.Fatalf("not stable:\n%s\n%s", line, line2)
		}
		_ = p.Machine.Differs(again.Machine)
	})
}
