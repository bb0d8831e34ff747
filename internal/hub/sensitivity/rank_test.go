// SPDX-License-Identifier: Apache-2.0

package sensitivity

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"homenode/internal/model/gain"
)

func model(t *testing.T) *gain.Model {
	t.Helper()
	m, err := gain.Open("../../model/gain/testdata/gain.json", os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// row has the medians of the trials.
func row(m *gain.Model, name string, more map[string]any) map[string]any {
	r := map[string]any{"service": name, "instances": int64(12), "hosts": json.Number("4"), "bound_ratio": 0.0, "approved": false}
	for _, f := range m.Features {
		r[f.Name] = f.Median
	}
	for k, v := range more {
		r[k] = v
	}
	return r
}

func TestVerdicts(t *testing.T) {
	m := model(t)
	r := Rank([]map[string]any{
		row(m, "middle", nil),
		row(m, "bound", map[string]any{"bound_ratio": 0.4}),
		row(m, "strange", map[string]any{gain.MSR: 0.99}),
		row(m, "silent", map[string]any{gain.MSR: nil, gain.MBW: math.NaN(), gain.RMBR: "x"}),
		row(m, "", nil),
	}, m, 0.03)
	by := map[string]Service{}
	for _, s := range r.Services {
		by[s.Service] = s
	}
	if len(r.Services) != 4 {
		t.Fatalf("%d services: %+v", len(r.Services), r.Services)
	}
	if s := by["middle"]; s.Instances != 12 || s.Hosts != 4 || s.Low > s.Gain || s.Gain > s.High || s.Reason == "" || len(s.Unknown)+len(s.Outside) > 0 {
		t.Errorf("%+v", s)
	}
	if s := by["bound"]; s.Verdict != Bound {
		t.Errorf("%+v", s)
	}
	if s := by["strange"]; s.Verdict != Strange || len(s.Outside) != 1 {
		t.Errorf("%+v", s)
	}
	if s := by["silent"]; len(s.Unknown) != 3 || s.Verdict != Unknown {
		t.Errorf("%+v", s)
	}
	if len(r.Drift) != len(m.Features) || r.Drift[0].Index.Known() || r.Drift[0].Services != 2 {
		t.Errorf("drift of three services: %+v", r.Drift)
	}
}

// The least gain that is asked for decides, not the middle of the interval.
func TestLeast(t *testing.T) {
	m := model(t)
	for _, c := range []struct {
		low, high, bound, least float64
		outside                 []string
		want                    Verdict
	}{
		{0.05, 0.1, 0, 0.03, nil, Worth}, {0.02, 0.1, 0, 0.03, nil, Unclear}, {-0.1, -0.02, 0, 0.03, nil, Hurt}, {-0.1, 0.02, 0, 0.03, nil, Little},
		{0.05, 0.1, 0.02, 0.03, nil, Bound}, {0.05, 0.1, 0, 0.03, []string{gain.MSR}, Strange}, {0.05, 0.1, 0, 0.2, nil, Little},
	} {
		if got := verdict(gain.Prediction{Low: c.low, High: c.high, Outside: c.outside}, c.bound, c.least); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if r := Rank(nil, m, 0.03); r.Services == nil || len(r.Services) != 0 {
		t.Errorf("no services: %+v", r)
	}
}
