// SPDX-License-Identifier: Apache-2.0

package model

import (
	_ "embed" // golden files
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"homenode/internal/placement"
	"homenode/internal/schema"
	"homenode/internal/set"
)

// 'scripts/model.sh golden' writes both; python/tests holds that the trainer still does.
var (
	//go:embed testdata/model.json
	trained []byte
	//go:embed testdata/golden.json
	goldenRows []byte
)

func decode(t testing.TB) Model {
	t.Helper()
	m, err := Decode(trained)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Parity: predictions are scikit-learn's, bit by bit.
func TestGoldenRows(t *testing.T) {
	var golden struct {
		Forests []struct{ Inputs, Outputs [][]float64 }
	}
	if err := json.Unmarshal(goldenRows, &golden); err != nil {
		t.Fatal(err)
	}
	m, compared := decode(t), 0
	if len(golden.Forests) != len(m.Forests) {
		t.Fatalf("%d forests, golden %d", len(m.Forests), len(golden.Forests))
	}
	for k := range m.Forests {
		for i, inputs := range golden.Forests[k].Inputs {
			for p, got := range m.Forests[k].relative(inputs) {
				if want := golden.Forests[k].Outputs[i][p]; math.Float64bits(got) != math.Float64bits(want) {
					t.Errorf("forest %d, row %d, placement %d: %v, scikit-learn %v", k, i, p, got, want)
				}
				compared++
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d values compared", compared)
	}
}

// Only ratios of speeds matter, and the baseline is 1 where all workloads learned that.
func TestPredict(t *testing.T) {
	f := decode(t).Forests[0]
	one, err := f.Predict([]float64{100, 110})
	if err != nil {
		t.Fatal(err)
	}
	other, _ := f.Predict([]float64{1e9, 1.1e9})
	for i := range one {
		if one[i] != other[i] {
			t.Errorf("placement %d: %v and %v", i, one[i], other[i])
		}
		if p := one[i]; p.Known && !(p.Low <= p.Speed && p.Speed <= p.High) {
			t.Errorf("placement %d: %+v", i, p)
		}
	}
	if base := one[f.Probes[0]].Speed; base != 1 {
		t.Errorf("the baseline is %v of itself", base)
	}
	for _, bad := range [][]float64{nil, {1}, {1, 2, 3}, {0, 1}, {1, -1}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		if _, err := f.Predict(bad); err == nil {
			t.Errorf("%v is no error", bad)
		}
	}
}

// Bounds of another confidence are quantiles of what was measured, each side by itself.
func TestAt(t *testing.T) {
	f := Forest{Ratios: [][]float64{{0.8, 0.9, 0.95, 1, 1, 1, 1, 1.1, 1.2}}} // 9: one in ten is below 0.8
	one := []Prediction{{Speed: 2}}
	for confidence, want := range map[float64]Prediction{
		0.9:  {2, 1.6, 2.4, true},
		0.8:  {2, 1.8, 2.2, true},
		0.75: {2, 1.8, 2.2, true},
		0.91: {Speed: 2},
	} {
		got, err := f.At(one, confidence)
		if err != nil || got[0] != want {
			t.Errorf("%v: %+v, %v, want %+v", confidence, got, err, want)
		}
	}
	if most := f.MostConfidence(); most != 0.9 {
		t.Errorf("at most %v", most)
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		if _, err := f.At(one, bad); err == nil {
			t.Errorf("confidence %v is no error", bad)
		}
	}
	if _, err := (&Forest{}).At(one, 0.9); err == nil {
		t.Error("a model without ratios has bounds")
	}
	m := decode(t)
	out, _ := m.Forests[0].Predict([]float64{100, 110})
	if at, err := m.Forests[0].At(out, 0.9); err != nil || !at[0].Known || !(at[0].Low <= at[0].Speed) {
		t.Errorf("the trainer's ratios give %+v, %v", at, err)
	}
}

// A model is used for its own machine, vCPUs and placements, and a simulated one only where
// that is asked for.
func TestFits(t *testing.T) {
	m := decode(t)
	l := placement.List{VCPUs: m.VCPUs}
	for _, p := range m.Placements {
		nodes, _ := set.ParseNodes(p.Nodes)
		cpus, _ := set.ParseCPUs(p.CPUs)
		one := placement.Placement{Nodes: nodes, CPUs: cpus}
		for _, word := range strings.Fields(p.Scores) {
			name, value, _ := strings.Cut(word, "=")
			var n int64
			if err := json.Unmarshal([]byte(value), &n); err != nil {
				t.Fatal(err)
			}
			one.Scores = append(one.Scores, placement.Score{Concern: name, Value: n})
		}
		l.Placements = append(l.Placements, one)
	}
	use := Use{Machine: m.Machine, List: l, Simulated: true}
	if err := m.Fits(use); err != nil {
		t.Error(err)
	}
	use.Simulated = false
	if err := m.Fits(use); !errors.Is(err, ErrSimulated) {
		t.Errorf("simulated: %v", err)
	}
	for _, change := range []func(*Use){
		func(u *Use) { u.Machine = "other" },
		func(u *Use) { u.List.VCPUs++ },
		func(u *Use) { u.List.Placements = u.List.Placements[1:] },
	} {
		use := Use{Machine: m.Machine, List: l, Simulated: true}
		change(&use)
		if err := m.Fits(use); !errors.Is(err, ErrOtherMachine) {
			t.Errorf("%+v: %v", use.Machine, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*Model){
		"kind":                           func(m *Model) { m.Kind = "homenode-profile" },
		"want at least 1":                func(m *Model) { m.Schema = 0 },
		"want both":                      func(m *Model) { m.Source = "" },
		"0 forests":                      func(m *Model) { m.Forests = nil },
		"1 placements":                   func(m *Model) { m.Placements = m.Placements[:1] },
		"in this order":                  func(m *Model) { m.Forests[1].Features[0] = m.Forests[1].Features[1] },
		"probe 99":                       func(m *Model) { m.Forests[0].Probes[0] = 99 },
		"different placements":           func(m *Model) { m.Forests[0].Probes[0] = m.Forests[0].Probes[1] },
		"more than the one before":       func(m *Model) { m.Forests[1] = m.Forests[0] },
		"confidence":                     func(m *Model) { m.Forests[0].Confidence = 1 },
		"one for each":                   func(m *Model) { m.Forests[0].Interval = nil },
		"0 trees":                        func(m *Model) { m.Forests[0].Trees = nil },
		"want later nodes":               func(m *Model) { m.Forests[0].Trees[0].Left[0] = 0 },
		"feature 7 of 1":                 func(m *Model) { m.Forests[0].Trees[0].Feature[0] = 7 },
		"want as many of each":           func(m *Model) { m.Forests[0].Trees[0].Threshold = nil },
		"is no relative speed":           func(m *Model) { m.Forests[0].Trees[0].Values[0][0] = -1 },
		"values[0]: 0 values":            func(m *Model) { m.Forests[0].Trees[0].Values[0] = nil },
		"of 0":                           func(m *Model) { m.Forests[0].Trees[0].Values = nil },
		"this homenode reads up to 1":    func(m *Model) { m.Schema = 2 },
		"error -1: want 0 or more":       func(m *Model) { e := -1.0; m.Error = &e },
		"interval -1: want 0 or more":    func(m *Model) { e := -1.0; m.Forests[0].Interval[0] = &e },
		"1 lists of ratios":              func(m *Model) { m.Forests[0].Ratios = m.Forests[0].Ratios[:1] },
		"ratios[1]: 0 values":            func(m *Model) { m.Forests[0].Ratios[1] = nil },
		"numbers above 0, ascending":     func(m *Model) { m.Forests[0].Ratios[2][0] = 9e5 },
		"0 vCPUs, 48 workloads: want 1 ": func(m *Model) { m.VCPUs = 0 },
	} {
		m := decode(t)
		change(&m)
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Decode(data); err == nil || !strings.Contains(err.Error(), want) || back.Kind != "" {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if _, err := Decode([]byte(`{"schema":2,"new":1}`)); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("newer: %v", err)
	}
	if _, err := Decode([]byte(`{"schema":1,"new":1}`)); err == nil {
		t.Error("an unknown field is no error")
	}
}

// Whatever is accepted can be evaluated.
func FuzzDecode(f *testing.F) {
	f.Add(trained, 1.0, 2.0)
	f.Add([]byte(`{"schema":1,"kind":"homenode-placements","source":"simulator","machine":"m","vcpus":1,"workloads":1,"placements":[{},{}],"forests":[{"probes":[0,1],"features":["speed[1]/speed[0]"],"confidence":0.9,"interval":[null,0.1],"trees":[{"feature":[0,-1,-1],"threshold":[1,0,0],"left":[1,0,1],"right":[2,0,0],"values":[[1,2],[1,0.5]]}]}]}`), 3.0, 1e-300)
	f.Fuzz(func(t *testing.T, data []byte, a, b float64) {
		m, err := Decode(data)
		if err != nil {
			if m.Kind != "" || m.Forests != nil {
				t.Fatalf("an error and a value: %+v", m)
			}
			return
		}
		for i := range m.Forests {
			speeds := []float64{a, b}
			for len(speeds) < len(m.Forests[i].Probes) {
				speeds = append(speeds, a)
			}
			out, err := m.Forests[i].Predict(speeds)
			if err == nil && len(out) != len(m.Placements) {
				t.Fatalf("%d predictions of %d placements", len(out), len(m.Placements))
			}
		}
	})
}

func BenchmarkPredict(b *testing.B) {
	f := decode(b).Forests[0]
	for len(f.Trees) < 100 { // as many as a model has
		f.Trees = append(f.Trees, f.Trees...)
	}
	for b.Loop() {
		if _, err := f.Predict([]float64{100, 110}); err != nil {
			b.Fatal(err)
		}
	}
}
