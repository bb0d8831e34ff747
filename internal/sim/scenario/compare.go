// SPDX-License-Identifier: Apache-2.0

package scenario

import "slices"

// Spread is a figure over several seeds.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"` // seeds; 0: nothing could be compared
}

// SpreadOf an empty list is zero. Of an even number of values the median is the mean of the
// middle two.
func SpreadOf(all []float64) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	return Spread{Median: (all[(n-1)/2] + all[n/2]) / 2, Min: all[0], Max: all[n-1], N: n}
}

// Change turns ratios into changes: 0.9 is −0.1.
func (s Spread) Change() Spread {
	if s.N > 0 {
		s.Median, s.Min, s.Max = s.Median-1, s.Min-1, s.Max-1
	}
	return s
}

// EachPair calls f with the runs of two arms that have the same seed. They had the same
// demand, so the arms cause the difference.
func EachPair(a, base Outcome, f func(run, base Run)) {
	for _, run := range a.Runs {
		i := slices.IndexFunc(base.Runs, func(b Run) bool { return b.Seed == run.Seed })
		if i >= 0 {
			f(run, base.Runs[i])
		}
	}
}

// Comparison is one arm compared with the reference arm.
type Comparison struct {
	Service string `json:"service"` // "": all services
	Metric  string `json:"metric"`
	Arm     string `json:"arm"`
	Against string `json:"against"`
	Value   Spread `json:"value_spread"` // the arm's, over its seeds; for all services weighted by its own operations
	Base    Spread `json:"base"`         // the reference arm's
	// Ratio is the arm's figure / the reference arm's, seed by seed (see Metric.Against);
	// for all services both are weighted by the reference's operations.
	Ratio Spread `json:"ratio_spread"`
}

// Compare puts arms side by side, by service ("" first) and metric, in the order of
// Metrics. A metric without a figure in any arm is left out.
func Compare(r Result) []Comparison {
	var all []Comparison
	base, ok := r.outcome(r.Against)
	if !ok {
		return nil
	}
	for _, service := range append([]string{""}, r.services()...) {
		for _, m := range Metrics() {
			for _, a := range r.Arms {
				if c := compare(m, service, a, base); a.Name != base.Name && c.Value.N > 0 {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

func compare(m Metric, service string, a, base Outcome) Comparison {
	return Comparison{
		Service: service, Metric: m.Name, Arm: a.Name, Against: base.Name,
		Value: m.Over(a, service), Base: m.Over(base, service), Ratio: m.Against(a, base, service),
	}
}

func (r Result) outcome(name string) (Outcome, bool) {
	for _, a := range r.Arms {
		if a.Name == name {
			return a, true
		}
	}
	return Outcome{}, false
}

// services are the names of all services, ascending.
func (r Result) services() []string {
	var all []string
	for _, a := range r.Arms {
		for _, run := range a.Runs {
			for _, s := range run.Services {
				all = append(all, s.Name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
