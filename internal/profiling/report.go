// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"slices"

	"homenode/internal/experiment"
	"homenode/internal/placement"
	"homenode/internal/unit"
)

// ReportSchema is the version of Report.
const ReportSchema = 1

// Report is what came of profiling, or of a dry run.
type Report struct {
	Schema  int         `json:"schema"`
	Outcome string      `json:"outcome"` // "planned", "complete", "unfinished"
	How     unit.Source `json:"how"`     // of every speed
	Job     Job         `json:"job"`
	// Order are the placements in the order of the measurements, from 1.
	Order []int `json:"measuring_order"`
	// Left is the time of the measurements that are still to be done.
	Left    unit.Value[float64] `json:"left_s"`
	Results []Standing          `json:"results"`
	// Retest is the mean difference of two measurements in the same placement, relative to
	// their mean.
	Retest unit.Opt[float64] `json:"retest_error"`
	Notes  []string          `json:"notes"`
}

// Standing is one placement beside the others.
type Standing struct {
	Number int               `json:"number"` // as 'homenode placements' numbers it
	Nodes  string            `json:"nodes"`
	CPUs   string            `json:"cpus_text"`
	Scores string            `json:"scores_text"`
	Speed  unit.Opt[float64] `json:"speed_per_s"`
	OfBest unit.Opt[float64] `json:"of_best"`
	Retest unit.Opt[float64] `json:"retest_error"`
}

// How is how a source's speeds are known.
func How(source string) unit.Source {
	if source == Measured {
		return unit.HowMeasured
	}
	return unit.HowModelled
}

// NewReport is of a state.
func NewReport(s State, l placement.List, outcome string) Report {
	r := Report{Schema: ReportSchema, Outcome: outcome, How: How(s.Job.Source), Job: s.Job, Notes: []string{}, Order: []int{}, Results: []Standing{}}
	r.Left = s.left()
	for _, run := range s.Job.Runs() {
		r.Order = append(r.Order, run.Arm+1)
	}
	best, sum, n := 0.0, 0.0, 0
	for i, p := range l.Placements {
		one := Standing{Number: i + 1, Nodes: p.Nodes.String(), CPUs: p.CPUs.String(), Scores: p.ScoreText()}
		if speeds := s.speeds(i); len(speeds) > 0 {
			mean := experiment.Mean(speeds)
			one.Speed, best = unit.Some(mean), max(best, mean)
			if len(speeds) > 1 {
				one.Retest = unit.Some((slices.Max(speeds) - slices.Min(speeds)) / mean)
				sum, n = sum+one.Retest.Or(0), n+1
			}
		}
		r.Results = append(r.Results, one)
	}
	for i := range r.Results {
		if v, ok := r.Results[i].Speed.Get(); ok {
			r.Results[i].OfBest = unit.Some(v / best)
		}
	}
	if n > 0 {
		r.Retest = unit.Some(sum / float64(n))
	}
	return r
}

func (s State) left() unit.Value[float64] {
	left, known := s.Left()
	switch {
	case !known:
		return unit.UnknownValue[float64]("the program ends by itself, and did not run yet")
	case len(s.Samples) == 0:
		return unit.Estimated(left.Seconds(), "what was asked for, without moving the workload")
	}
	return unit.Estimated(left.Seconds(), "the measurements so far")
}

func (s State) speeds(placement int) (all []float64) {
	for _, x := range s.Samples {
		if x.Placement == placement {
			all = append(all, x.Speed)
		}
	}
	return all
}
