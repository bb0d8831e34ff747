// SPDX-License-Identifier: Apache-2.0

package sensitivity

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"homenode/internal/model/gain"
	"homenode/internal/unit"
)

// Schema is the version of Report.
const Schema = 1

// Verdict is what a prediction means for a service.
type Verdict string

// Verdicts.
const (
	Worth   Verdict = "worth it" // it gains the least that is asked for, with the model's confidence
	Unclear Verdict = "unclear"  // the interval has both that and less
	Hurt    Verdict = "hurt"     // it gets slower, with the model's confidence
	Little  Verdict = "little"   // it gains less than that, with the model's confidence
	Bound   Verdict = "bound"    // it is bound, so what it shows is no longer what binding starts from
	Strange Verdict = "strange"  // outside of what the model has seen: it cannot say
	Unknown Verdict = "unknown"  // too little is known of it: its hosts do not count what the model needs
)

// Report is what `homenode-hub sensitivity -o json` writes.
type Report struct {
	Schema     int       `json:"schema"`
	From       time.Time `json:"from"`
	Until      time.Time `json:"until"`
	Least      float64   `json:"least_gain_ratio"`
	Confidence float64   `json:"confidence_ratio"`
	Model      About     `json:"model_of_gains"`
	Services   []Service `json:"services"`
	Drift      []Drift   `json:"drift"`
	Truncated  bool      `json:"more_services"` // there are more than these
}

// About is where the predictions come from.
type About struct {
	MadeBy   string   `json:"made_by"`
	Source   string   `json:"source"`
	Machines []string `json:"machine_names"`
	Rows     int      `json:"row_count"`
	Services int      `json:"service_count"`
}

// Service is one service with its prediction.
type Service struct {
	Service   string               `json:"service"`
	Instances int                  `json:"instance_count"`
	Hosts     int                  `json:"host_count"`
	Gain      float64              `json:"gain_ratio"` // of its mean latency; below 0: it gets slower
	Low       float64              `json:"low_ratio"`
	High      float64              `json:"high_ratio"`
	How       unit.Source          `json:"gain_how"` // modelled where the trials were not on hardware
	Verdict   Verdict              `json:"judgement"`
	Reason    string               `json:"sentence"`
	Unknown   []string             `json:"unknown_features"`
	Outside   []string             `json:"outside_features"`
	Bound     unit.Opt[unit.Ratio] `json:"bound_ratio"`
	Approved  bool                 `json:"approved"`
	Features  map[string]float64   `json:"features"`
}

// Why says in words what the verdict comes from.
func (s Service) Why() string {
	switch s.Verdict {
	case Strange:
		return "outside of what the model has seen: " + strings.Join(s.Outside, ", ")
	case Unknown:
		return "too little is known of it: its hosts do not count " + strings.Join(s.Unknown, ", ")
	}
	return s.Reason
}

// Drift is whether services are what the model was trained on.
type Drift struct {
	Feature  string            `json:"feature"`
	Index    unit.Opt[float64] `json:"stability_index"`
	Services int               `json:"service_count"`
	Drifted  bool              `json:"is_far"`
}

// Usual is the gain that a rollout must bring to be worth it, where none is asked for: as much as the
// harm that it excludes before it is widened.
const Usual = 0.02

// boundFrom is the share of its time from which on a service counts as bound.
const boundFrom = 0.01

// Rank predicts each row of the topic 'features', the surest gain first.
func Rank(rows []map[string]any, m *gain.Model, least float64) Report {
	r := Report{
		Schema: Schema, Least: least, Confidence: m.Interval.Confidence, Services: []Service{}, Drift: []Drift{},
		Model: About{m.MadeBy, m.Source, m.Machines, m.Rows, m.Manifest.Services},
	}
	var all []map[string]float64
	for _, row := range rows {
		name, _ := row["service"].(string)
		if name == "" {
			continue // no rule names one: there is nothing to roll out
		}
		x := map[string]float64{}
		for _, f := range m.Features {
			if v, ok := number(row[f.Name]); ok {
				x[f.Name] = v
			}
		}
		s := predict(name, row, x, m, least)
		if s.Verdict != Bound {
			all = append(all, x)
		}
		r.Services = append(r.Services, s)
	}
	slices.SortStableFunc(r.Services, func(a, b Service) int {
		return cmp.Or(rank(a.Verdict)-rank(b.Verdict), cmp.Compare(b.Low, a.Low), cmp.Compare(a.Service, b.Service))
	})
	for _, d := range m.Drift(all) {
		r.Drift = append(r.Drift, Drift{d.Feature, d.Index, d.Rows, d.Index.Or(0) >= gain.Drifted})
	}
	return r
}

func rank(v Verdict) int {
	return slices.Index([]Verdict{Worth, Unclear, Strange, Unknown, Bound, Little, Hurt}, v)
}

func predict(name string, row map[string]any, x map[string]float64, m *gain.Model, least float64) Service {
	p := m.Predict(x)
	count := func(key string) int {
		n, _ := number(row[key])
		return int(n)
	}
	approved, _ := row["approved"].(bool)
	s := Service{
		Service: name, Instances: count("instances"), Hosts: count("hosts"), Gain: p.Gain, Low: p.Low, High: p.High, How: unit.HowModelled,
		Reason: p.Reason(), Unknown: orEmpty(p.Unknown), Outside: orEmpty(p.Outside), Approved: approved, Features: x,
	}
	if m.Source == gain.Measured {
		s.How = unit.HowEstimated
	}
	if v, ok := number(row["bound_ratio"]); ok {
		s.Bound = unit.Some(unit.Ratio(v))
	}
	s.Verdict = verdict(p, float64(s.Bound.Or(0)), least)
	return s
}

func verdict(p gain.Prediction, bound, least float64) Verdict {
	switch {
	case bound > boundFrom:
		return Bound
	case !p.Enough():
		return Unknown
	case len(p.Outside) > 0:
		return Strange
	case p.Low >= least:
		return Worth
	case p.High < 0:
		return Hurt
	case p.High < least:
		return Little
	}
	return Unclear
}

func orEmpty(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}

// number is a cell of an answer, which may have come as JSON.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, v == v
	case int64:
		return float64(v), true
	case json.Number:
		x, err := v.Float64()
		return x, err == nil
	}
	return 0, false
}
