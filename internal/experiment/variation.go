// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/unit"
)

// Variation is how one command's run time varies, unpinned and under placements.
type Variation struct {
	Schema  int         `json:"schema"` // 1
	Command []string    `json:"argv"`
	Machine string      `json:"machine_name"` // in words
	How     unit.Source `json:"how"`          // measured, or modelled (in the lab)
	Clock   string      `json:"clock"`        // clock of the times, in words
	Date    time.Time   `json:"date"`
	Seconds float64     `json:"seconds"` // wall-clock duration of the comparison
	Warmups int         `json:"warmups"` // number of warm-ups of each arm
	Repeats int         `json:"repeats"`
	Seed    uint64      `json:"seed"`
	Order   []string    `json:"run_order"` // order of the counted runs, by arm
	Arms    []Placed    `json:"arms"`
	Notes   []string    `json:"notes"` // what was left out, and why
	Verdict Verdict     `json:"verdict"`
}

// Placed is one arm: one placement of the command. Except for Time, figures are
// medians of the runs.
type Placed struct {
	Name string `json:"name"` // "as-is", "node-1", …
	// About describes it in words: "CPUs and memory of node 1".
	About string `json:"about"`
	// Run is the flags of 'homenode run'; empty: the command is not placed.
	Run []string `json:"argv"`

	Time        Summary           `json:"time_s"`
	User        unit.Opt[float64] `json:"user_s"`
	System      unit.Opt[float64] `json:"system_s"`
	MaxRSS      unit.Opt[float64] `json:"max_rss_bytes"`
	MinorFaults unit.Opt[float64] `json:"minor_faults"`
	MajorFaults unit.Opt[float64] `json:"major_faults"`
	Waits       unit.Opt[float64] `json:"voluntary_switches"`
	Preempted   unit.Opt[float64] `json:"involuntary_switches"`

	// Compared with the first arm; unknown for that arm itself.
	Against unit.Opt[Ratio]  `json:"against_first"`
	Spread  unit.Opt[Spread] `json:"spread_against_first"`
}

// Sample is one run of one arm. Unknown figures are NaN.
type Sample struct {
	Seconds                              float64
	User, System, MaxRSS                 float64
	Minor, Major, Voluntary, Involuntary float64
}

// Verdict is the conclusion from the runs. Arms are named; a list of ties holds
// the arms that cannot be distinguished from the named one, in the arms' order.
type Verdict struct {
	// Fastest has the lowest median, Steadiest the lowest coefficient of variation,
	// which is "" if each arm has a single run.
	Fastest        string   `json:"fastest"`
	FastestTies    []string `json:"fastest_ties"`
	Steadiest      string   `json:"steadiest"`
	SteadiestTies  []string `json:"steadiest_ties"`
	FewForSpread   bool     `json:"too_few_for_spread"` // too few runs: steadiness was not compared
	BelowStartUp   bool     `json:"mostly_start_up"`    // the runs are too short to mean anything
	ForRepeatable  string   `json:"for_repeatable"`     // the arm for repeatable timings
	RepeatableLine []string `json:"repeatable_line"`    // its command line
}

// StartUp is the run time below which a run is mostly loading and linking of the
// program, which placement hardly changes. It is a judgement, not a measurement:
// --anyway overrides it.
const StartUp = 10 * time.Millisecond

// SteadyEnough is the variation below which a placement need not be steadier for timings:
// two runs each of two builds show a difference of 2% (1.96 σ √(2/2)). A slower placement
// that varies less would time what is never used. It is a judgement, not a measurement.
const SteadyEnough = 0.01

// Fill adds an arm's runs.
func (p *Placed) Fill(runs []Sample) {
	column := func(of func(Sample) float64) []float64 {
		out := make([]float64, len(runs))
		for i, r := range runs {
			out[i] = of(r)
		}
		return out
	}
	median := func(of func(Sample) float64) unit.Opt[float64] {
		s, ok := Summarise(column(of))
		return unit.OptOf(s.Median, ok)
	}
	p.Time, _ = Summarise(column(func(s Sample) float64 { return s.Seconds }))
	p.User = median(func(s Sample) float64 { return s.User })
	p.System = median(func(s Sample) float64 { return s.System })
	p.MaxRSS = median(func(s Sample) float64 { return s.MaxRSS })
	p.MinorFaults = median(func(s Sample) float64 { return s.Minor })
	p.MajorFaults = median(func(s Sample) float64 { return s.Major })
	p.Waits = median(func(s Sample) float64 { return s.Voluntary })
	p.Preempted = median(func(s Sample) float64 { return s.Involuntary })
}

// Judge compares every arm with the first and fills in the verdict. Each
// comparison is separate, at Nominal: of many arms that do not differ, one of 20
// comparisons calls a difference.
func (v *Variation) Judge() {
	for i := range v.Arms {
		if a := &v.Arms[i]; i > 0 {
			a.Against = unit.OptOf(RatioOf(a.Time.Values, v.Arms[0].Time.Values))
			a.Spread = unit.OptOf(CompareSpread(a.Time, v.Arms[0].Time, v.Seed))
		}
	}
	v.Verdict = v.judge()
}

func (v *Variation) judge() Verdict {
	var d Verdict
	if len(v.Arms) == 0 || v.Arms[0].Time.N < 2 {
		return d
	}
	d.BelowStartUp = v.Arms[0].Time.Median < StartUp.Seconds()
	d.FewForSpread = v.Arms[0].Time.N < leastForSpread
	fast := best(v.Arms, func(p Placed) float64 { return p.Time.Median })
	d.Fastest = fast.Name
	d.FastestTies = v.ties(fast, func(p Placed) bool {
		r, ok := RatioOf(p.Time.Values, fast.Time.Values)
		return ok && r.Differs()
	})
	steady := best(v.Arms, variation)
	d.Steadiest = steady.Name
	d.SteadiestTies = v.ties(steady, func(p Placed) bool {
		s, ok := CompareSpread(p.Time, steady.Time, v.Seed)
		return ok && s.Differs()
	})
	if line, ok := v.repeatable(d); ok {
		d.ForRepeatable = line.Name
		d.RepeatableLine = slices.Concat([]string{"homenode", "run"}, line.Run, []string{"--"}, v.Command)
	}
	return d
}

func variation(p Placed) float64 {
	cv, _ := p.Time.Variation()
	return cv
}

func best(arms []Placed, of func(Placed) float64) Placed {
	return slices.MinFunc(arms, func(a, b Placed) int { return cmp.Compare(of(a), of(b)) })
}

func (v *Variation) ties(with Placed, differs func(Placed) bool) []string {
	ties := []string{}
	for _, a := range v.Arms {
		if a.Name != with.Name && !differs(a) {
			ties = append(ties, a.Name)
		}
	}
	return ties
}

// repeatable is the arm for timings. It is a placed one, because an unplaced run
// leaves its placement to chance, however steady these few runs were. Of the
// arms that are SteadyEnough or cannot be distinguished from the steadiest it is
// the fastest; of these the steadiest.
func (v *Variation) repeatable(d Verdict) (Placed, bool) {
	var placed []Placed
	for _, a := range v.Arms {
		if len(a.Run) > 0 {
			placed = append(placed, a)
		}
	}
	if len(placed) == 0 {
		return Placed{}, false
	}
	steady := best(placed, variation)
	close := slices.DeleteFunc(slices.Clone(placed), func(p Placed) bool {
		s, ok := CompareSpread(p.Time, steady.Time, v.Seed)
		return variation(p) > SteadyEnough && ok && s.Differs()
	})
	fast := best(close, func(p Placed) float64 { return p.Time.Median })
	even := slices.DeleteFunc(close, func(p Placed) bool {
		r, ok := RatioOf(p.Time.Values, fast.Time.Values)
		return ok && r.Differs()
	})
	return best(even, variation), true
}
