// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine/shapetest"
	"homenode/internal/placement"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func arms(t *testing.T, nodes ...int) placement.List {
	t.Helper()
	l, err := Arms(shapetest.Shape(t, "four").Machine(), set.FromNodes(nodes...), set.CPUSet{}, set.CPUSet{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func trialState(l placement.List, repeats int) State {
	return State{Schema: StateSchema, Samples: []Sample{}, Before: &Look{Speed: 100, Neighbours: 3}, Spread: map[int]unit.Bytes{0: 1}, Job: Job{
		Machine: "four", Source: Measured, Workload: "/a", VCPUs: 1, Links: l.Links, Metric: Metric{Kind: File, Arg: "/x"}, For: time.Second, Repeats: repeats, Seed: 1,
		MostLoss: 0.5, Placements: CandidatesOf(l),
	}}
}

// drifting is a workload whose load rises with every measurement; bound it is as many times as fast.
type drifting struct {
	bound float64
	noise float64
	rng   *rand.Rand
	turn  float64
	order []int
}

func (d *drifting) Measure(_ context.Context, p placement.Placement) (f Figures, err error) {
	d.turn++
	f.Speed = (100 + 5*d.turn) * (1 + d.noise*d.rng.NormFloat64())
	cpus := 2.0
	f.Features.CPU = &cpus
	if d.order = append(d.order, Unbound); !p.Nodes.IsEmpty() {
		f.Speed *= d.bound
		d.order[len(d.order)-1] = Bound
	}
	return f, nil
}

func tools() Tools {
	return Tools{Save: func(State) error { return nil }, Now: func() time.Duration { return 0 }, Tell: func(Progress) {}}
}

// A drift of the load falls on both arms alike; the gain is what binding brings.
func TestTrialOrder(t *testing.T) {
	l := arms(t, 1)
	d := &drifting{bound: 1.25, rng: rand.New(rand.NewPCG(1, 1))}
	s, err := Run(context.Background(), trialState(l, 6), l, d, tools())
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(d.order); i += 4 { // ABBA or BAAB
		if o := d.order[i : i+4]; o[0] != o[3] || o[1] != o[2] || o[0] == o[1] {
			t.Errorf("measurements %d to %d are of arms %v", i, i+3, o)
		}
	}
	r := NewTrialReport(s, "complete", "")
	if v := r.Time.Value.Or(0); math.Abs(v-0.2) > 0.02 {
		t.Errorf("a gain of %.3f, want 0.2", v)
	}
	if v := r.CPUTime.Value.Or(0); math.Abs(v-0.2) > 0.02 {
		t.Errorf("a gain in CPU time of %.3f, want 0.2", v)
	}
	row, ok := TrialRow(s, TrialNames{Host: "h", Workload: "/a", Application: "a", Kind: "k"})
	if !ok || row.GainLatency == nil || row.GainLatencyAgain == nil || *row.GainLatency == *row.GainLatencyAgain || row.Source != Measured || row.Neighbours != 3 {
		t.Errorf("row %v: %+v", ok, row)
	}
	if row.Server == row.Service || strings.Contains(row.Replica, "/a") {
		t.Errorf("names are told: %+v", row)
	}
}

// What a trial shows has an error of 5 % where binding changes nothing, and is found where it does.
func TestTrialShows(t *testing.T) {
	l := arms(t, 1)
	count := func(bound float64) map[Shown]int {
		shown := map[Shown]int{}
		for seed := range uint64(400) {
			start := trialState(l, 6)
			start.Job.Seed, start.Job.MostLoss = seed, 0
			d := &drifting{bound: bound, noise: 0.02, rng: rand.New(rand.NewPCG(seed, 2))}
			s, err := Run(context.Background(), start, l, d, tools())
			if err != nil {
				t.Fatal(err)
			}
			shown[NewTrialReport(s, "complete", "").Shown]++
		}
		return shown
	}
	n := count(1)
	if t.Logf("without an effect: %v", n); n[ShownGain]+n[ShownLoss] > 20 {
		t.Error("more than one in twenty shows what is not there")
	}
	// The load rises by 60 % over a trial.
	for _, c := range []struct {
		bound float64
		shown Shown
		least int
	}{{1.5, ShownGain, 390}, {1.2, ShownGain, 390}, {1.1, ShownGain, 350}, {0.9, ShownLoss, 350}, {0.6, ShownLoss, 390}} {
		n := count(c.bound)
		if t.Logf("%v times as fast: %v", c.bound, n); n[c.shown] < c.least || n[ShownGain]+n[ShownLoss] > n[c.shown] {
			t.Errorf("want %q in %d, and never the other", c.shown, c.least)
		}
	}
}

// A workload that is much slower bound is not measured to the end.
func TestTrialStops(t *testing.T) {
	l := arms(t, 1)
	for bound, want := range map[float64]error{0.4: ErrHurt, 0.6: nil, 3: nil} {
		d := &drifting{bound: bound, rng: rand.New(rand.NewPCG(1, 1))}
		s, err := Run(context.Background(), trialState(l, 4), l, d, tools())
		if !errors.Is(err, want) || want != nil && len(s.Samples) > 2 {
			t.Errorf("%v times as fast: %v after %d measurements, want %v", bound, err, len(s.Samples), want)
		}
	}
}

// changes is a metric whose unit changes at a measurement.
type changes struct{ at, turn int }

func (c *changes) Measure(context.Context, placement.Placement) (f Figures, err error) {
	if c.turn++; c.turn >= c.at {
		return Figures{Speed: 5000 + float64(c.turn)}, nil
	}
	return Figures{Speed: 5 + float64(c.turn)/10}, nil
}

func TestTrialUnitChanges(t *testing.T) {
	l := arms(t, 0)
	start := trialState(l, 6)
	start.Before, start.Job.MostLoss = nil, 0
	if s, err := Run(context.Background(), start, l, &changes{at: 4}, tools()); !errors.Is(err, ErrJumped) || len(s.Samples) != 3 {
		t.Errorf("%v after %d measurements", err, len(s.Samples))
	}
}

// Few measurements show nothing, and no row comes of one half.
func TestTrialTooFew(t *testing.T) {
	l := arms(t, 1)
	s, err := Run(context.Background(), trialState(l, 2), l, &drifting{bound: 2, rng: rand.New(rand.NewPCG(1, 1))}, tools())
	if err != nil {
		t.Fatal(err)
	}
	if r := NewTrialReport(s, "complete", ""); r.Shown != ShownTooFew {
		t.Errorf("%v", r.Shown)
	}
	if _, ok := TrialRow(s, TrialNames{}); ok {
		t.Error("a row without a second half")
	}
	if r := NewTrialReport(trialState(l, 2), "planned", ""); r.Shown != ShownUnknown || r.Time.Value.Known() {
		t.Errorf("nothing measured: %+v", r)
	}
}

func TestArmsRefuse(t *testing.T) {
	m := shapetest.Shape(t, "four").Machine()
	for want, nodes := range map[string]set.NodeSet{
		"have no CPUs": set.FromNodes(9), "nodes  have no CPUs": {}, "all of this machine": set.FromNodes(0, 1, 2, 3),
	} {
		if _, err := Arms(m, nodes, set.CPUSet{}, set.CPUSet{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", nodes, err, want)
		}
	}
	some := set.FromCPUs(0, 2, 3) // of nodes 0 and 1
	if l, err := Arms(m, set.FromNodes(0), some, set.CPUSet{}); err != nil || l.Placements[Bound].CPUs != set.FromCPUs(0) {
		t.Errorf("on some CPUs: %+v, %v", l, err)
	}
	for want, nodes := range map[string]set.NodeSet{"have no CPUs": set.FromNodes(2), "all of this machine": set.FromNodes(0, 1)} {
		if _, err := Arms(m, nodes, some, set.CPUSet{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v on some CPUs: %v, want %q", nodes, err, want)
		}
	}
	if l, err := Arms(m, set.FromNodes(1), set.CPUSet{}, set.FromCPUs(3)); err != nil || l.Placements[Bound].CPUs != set.FromCPUs(2) {
		t.Errorf("with a reserved CPU: %+v, %v", l, err)
	}
	m.Nodes = m.Nodes[:1]
	if _, err := Arms(m, set.FromNodes(0), set.CPUSet{}, set.CPUSet{}); err == nil || !strings.Contains(err.Error(), "1 node") {
		t.Errorf("one node: %v", err)
	}
}

// A look has how busy the host is, and says so where that is unknown.
func TestLookAt(t *testing.T) {
	m := shapetest.Shape(t, "two").Machine()
	cpu := 1.0
	w := window.Window{Nodes: []window.Node{{CPUs: set.FromCPUs(0, 1), CPUBusy: unit.Measured(1.0, "")}, {CPUs: set.FromCPUs(2, 3), CPUBusy: unit.Measured(2.0, "")}}}
	l := LookAt(m, &w, Figures{Speed: 3, Features: Features{CPU: &cpu}})
	if l.Busy == nil || *l.Busy != 0.75 || l.Idlest == nil || *l.Idlest != 0.5 || l.CPUOfNode == nil || *l.CPUOfNode != 1/m.FewestCPUs() {
		t.Errorf("%+v", l)
	}
	w.Nodes = append(w.Nodes, window.Node{CPUBusy: unit.UnknownValue[float64]("it has no CPUs")})
	w.Nodes[1].CPUBusy = unit.UnknownValue[float64]("no")
	if l = LookAt(m, &w, Figures{Speed: 3}); l.Busy != nil || l.Idlest != nil || l.CPUOfNode != nil {
		t.Errorf("%+v", l)
	}
}

// Work per cycle says nothing where binding takes CPU time away.
func TestTrialStarved(t *testing.T) {
	l := arms(t, 1)
	start := trialState(l, 4)
	start.Job.Metric = Metric{Kind: IPC}
	for cpus, starved := range map[float64]bool{2: false, 1.5: true} {
		s := start
		for _, r := range s.Job.Runs() {
			used := 2.0
			if r.Arm == Bound {
				used = cpus
			}
			s.Samples = append(s.Samples, Sample{Placement: r.Arm, Repeat: r.Repeat, Speed: 1 + float64(r.Repeat)/10, Features: Features{CPU: &used}})
		}
		_, ok := TrialRow(s, TrialNames{})
		if r := NewTrialReport(s, "complete", ""); ok == starved || (len(r.Notes) > 0) != starved || (r.Shown == ShownUnknown) != starved || r.Time.Value.Known() == starved {
			t.Errorf("%v CPUs: row %v, %+v", cpus, ok, r)
		}
	}
	// Half of the CPU time is gone, and what is left is as fast a cycle as before.
	s, half, whole := start, 0.9, 2.0
	s.Before.Features.CPU = &whole
	s.Samples = []Sample{{Placement: Bound, Speed: s.Before.Speed, Features: Features{CPU: &half}}}
	if err := s.hurt(); !errors.Is(err, ErrHurt) {
		t.Errorf("starved: %v", err)
	}
}
