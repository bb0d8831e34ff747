// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

func golden(t testing.TB) *Model {
	t.Helper()
	m, err := Open("testdata/gain.json", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The bits are those that XGBoost printed when the model was trained.
func TestGolden(t *testing.T) {
	m := golden(t)
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Features              []string
		Inputs                [][]*float64
		Prediction, Low, High []float64
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	unknown := 0
	for i, row := range g.Inputs {
		x := map[string]float64{}
		for k, v := range row {
			if v != nil {
				x[g.Features[k]] = *v
			} else {
				unknown++
			}
		}
		p := m.Predict(x)
		if p.Gain != g.Prediction[i] || p.Low != g.Low[i] || p.High != g.High[i] {
			t.Errorf("row %d: %v (%v to %v), XGBoost has %v (%v to %v)", i, p.Gain, p.Low, p.High, g.Prediction[i], g.Low[i], g.High[i])
		}
	}
	if len(g.Inputs) < 30 || unknown < 9 {
		t.Errorf("%d rows, %d unknown features", len(g.Inputs), unknown)
	}
}

// The parts add up to the way from the trees' own means to the prediction.
func TestPartsAddUp(t *testing.T) {
	m := golden(t)
	r := rand.New(rand.NewPCG(1, 2))
	mean := float64(m.booster.base)
	for i := range m.booster.trees {
		mean += float64(m.booster.trees[i].mean[0])
	}
	for range 50 {
		x := map[string]float64{}
		for _, f := range m.Features {
			x[f.Name] = f.Low + r.Float64()*(f.High-f.Low)
		}
		p := m.Predict(x)
		sum := mean
		for _, part := range p.Parts {
			sum += part.Gain
		}
		if math.Abs(sum-p.Gain) > 1e-5 || len(p.Outside) > 0 || !p.Enough() || p.Reason() == "" {
			t.Errorf("parts add up to %v, the prediction is %v: %s", sum, p.Gain, p.Reason())
		}
	}
}

func TestUnknownAndOutside(t *testing.T) {
	m := golden(t)
	x := map[string]float64{}
	for _, f := range m.Features {
		x[f.Name] = f.Median
	}
	x[MSR], x[Busy] = 0.99, math.NaN()
	p := m.Predict(x)
	if len(p.Outside) != 1 || p.Outside[0] != MSR || len(p.Unknown) != 1 || p.Unknown[0] != Busy {
		t.Errorf("%+v", p)
	}
	if !p.Enough() {
		t.Errorf("without what is of the host, enough is known: %+v", p)
	}
	if none := m.Predict(nil); len(none.Unknown) != len(m.Features) || math.IsNaN(none.Gain) || none.Enough() {
		t.Errorf("%+v", none)
	}
}

func TestDrift(t *testing.T) {
	m := golden(t)
	same, other := make([]map[string]float64, 1000), make([]map[string]float64, 1000)
	r := rand.New(rand.NewPCG(3, 4))
	for i := range same {
		same[i], other[i] = map[string]float64{}, map[string]float64{}
		for _, f := range m.Features {
			at := r.IntN(tenths)
			v := f.Edges[min(at, tenths-2)]
			if at == tenths-1 {
				v = f.High
			}
			same[i][f.Name], other[i][f.Name] = v, f.High
		}
	}
	for i, d := range m.Drift(same) {
		if v, ok := d.Index.Get(); !ok || v > 0.1 {
			t.Errorf("%s: %v of the same, %v", d.Feature, v, ok)
		}
		if v := m.Drift(other)[i].Index.Or(0); v < Drifted {
			t.Errorf("%s: %v of others", d.Feature, v)
		}
	}
	if d := m.Drift(same[:50]); d[0].Index.Known() || d[0].Rows != 50 {
		t.Errorf("of 50 rows: %+v", d[0])
	}
}

// Each damage of the files is refused, with what is wrong.
func TestBadFiles(t *testing.T) {
	good, err := os.ReadFile("testdata/gain.json")
	if err != nil {
		t.Fatal(err)
	}
	m := golden(t)
	for _, c := range []struct{ old, new, want string }{
		{`"schema": 1`, `"schema": 2`, "schema"},
		{`"schema": 1`, `"schema": 0`, "schema 0"},
		{`homenode-gain`, `homenode-placements`, "kind"},
		{`gain_latency_ratio`, `gain_cpu_ratio`, "trained on other events"},
		{`"msr_ratio"`, `"mbw_bytes_per_s"`, "different ones"},
		{`"msr_ratio"`, `"stalls"`, "different ones"},
		{fmt.Sprintf(`"services": %d`, m.Manifest.Services), `"services": 1`, "two services"},
		{`"file": "gain.ubj"`, `"file": "../gain.ubj"`, "beside the manifest"},
		{`"file": "gain.ubj"`, `"file": "gain.scale.ubj"`, "SHA-256"},
		{fmt.Sprintf(`"trees": %d`, m.Booster.Trees), `"trees": 9999`, "9999"},
		{`"confidence": 0.9`, `"confidence": 1.9`, "confidence"},
		{`"floor": 0.`, `"floor": -0.`, "floor"},
		{`{`, `[`, "model of gains"},
	} {
		text := strings.Replace(string(good), c.old, c.new, 1)
		if text == string(good) {
			t.Errorf("%s is not in the manifest", c.old)
		}
		_, err := Open("testdata/gain.json", func(path string) ([]byte, error) {
			if strings.HasSuffix(path, ".json") {
				return []byte(text), nil
			}
			return os.ReadFile(path)
		})
		if !errors.Is(err, ErrFile) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.new, err, c.want)
		}
	}
	if _, err := Open("testdata/none.json", os.ReadFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// Whatever the bytes are, they are a model or an error, in the time and memory of their length.
func FuzzBooster(f *testing.F) {
	data, err := os.ReadFile("testdata/gain.scale.ubj")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{L\x00\x00\x00\x00\x00\x00\x00\x07learner{}}"))
	f.Add([]byte("[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte(strings.Repeat("[", 100)))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBooster(data, len(names))
		if err != nil {
			return
		}
		x := make([]float32, len(names))
		if v := b.predict(x); v != v {
			t.Errorf("prediction %v", v)
		}
		b.parts(x)
	})
}
