// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"homenode/internal/experiment"
	"homenode/internal/machine"
	"homenode/internal/placement"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A trial compares a running workload bound to nodes with itself unbound. Its job has two
// placements, the arms; every two repeats are ABBA or BAAB, so that a drift of the load falls on
// both alike.
const (
	Unbound = iota // where its owner has it, its memory spread as it was
	Bound
)

// Arms are the placements of a trial, on the CPUs that the workload's parent has (empty: all), without
// reserved ones. The unbound one has no CPUs: it is where the workload was.
func Arms(m machine.Machine, nodes set.NodeSet, parent, reserved set.CPUSet) (placement.List, error) {
	may := m.OnlineCPUs()
	if !parent.IsEmpty() {
		may = may.Intersect(parent)
	}
	may = may.Minus(reserved)
	var cpus set.CPUSet
	all := 0
	for _, n := range m.Nodes {
		if n.CPUs.IsEmpty() {
			continue
		}
		all++
		if nodes.Has(n.ID) {
			cpus = cpus.Union(n.CPUs.Intersect(may))
		}
	}
	switch {
	case all < 2:
		return placement.List{}, fmt.Errorf("this machine has %s with CPUs: binding changes nothing", render.Count(all, "node"))
	case nodes.IsEmpty() || cpus.IsEmpty():
		return placement.List{}, fmt.Errorf("nodes %s have no CPUs that the workload may have: it cannot run there", nodes)
	case cpus == may:
		return placement.List{}, fmt.Errorf("nodes %s are all of this machine: binding to them changes nothing", nodes)
	}
	return ArmsOn(nodes, cpus), nil
}

// ArmsOn are the placements of a trial that was begun.
func ArmsOn(nodes set.NodeSet, cpus set.CPUSet) placement.List {
	return placement.List{Links: "none", Placements: []placement.Placement{{}, {Nodes: nodes, CPUs: cpus}}}
}

// mostJump is how much faster or slower one and the same state may be between two measurements. A
// unit that changes, from seconds to milliseconds, is more.
const mostJump = 100

// ErrJumped: a metric changed by far more than any load does.
var ErrJumped = errors.New("the metric jumped")

// jumped says that a metric does not mean the same any more.
func (s State) jumped() error {
	last := s.Samples[len(s.Samples)-1]
	for _, x := range s.Samples {
		if x.Placement == last.Placement && (x.Speed > mostJump*last.Speed || last.Speed > mostJump*x.Speed) {
			return fmt.Errorf("%w: %s gave speeds of %v and %v for the same state: did its unit change?", ErrJumped, s.Job.Metric, x.Speed, last.Speed)
		}
	}
	return nil
}

// ErrHurt ends a trial early: the workload is too slow while it is bound.
var ErrHurt = errors.New("it is slower while it is bound")

// hurt compares the last measurement, if it was of the bound arm, with the mean of the unbound
// ones, and with the first look.
func (s State) hurt() error {
	last := s.Samples[len(s.Samples)-1]
	if last.Placement != Bound {
		return nil
	}
	var base []float64
	for _, x := range s.Samples {
		if x.Placement == Unbound {
			base = append(base, s.work(x.Speed, x.Features))
		}
	}
	if s.Before != nil {
		base = append(base, s.work(s.Before.Speed, s.Before.Features))
	}
	if len(base) == 0 {
		return nil
	}
	if mean, now := experiment.Mean(base), s.work(last.Speed, last.Features); now < (1-s.Job.MostLoss)*mean {
		return fmt.Errorf("%w: by %.0f%%, and --most-loss is %.0f%%", ErrHurt, 100*(1-now/mean), 100*s.Job.MostLoss)
	}
	return nil
}

// work is a speed as work per second: instructions per cycle times the CPUs that were used, for
// CPU time that is taken away does not show in the former.
func (s State) work(speed float64, f Features) float64 {
	if s.Job.Metric.Kind == IPC && f.CPU != nil {
		return speed * *f.CPU
	}
	return speed
}

// Shown is what a trial shows.
type Shown string

// What a trial may show.
const (
	ShownGain    Shown = "gain"
	ShownLoss    Shown = "loss"
	ShownNothing Shown = "no difference" // the interval has 0 in it
	ShownTooFew  Shown = "too few"       // measurements, for an interval of 95 %
	ShownUnknown Shown = "unknown"       // an arm was not measured
)

// Gain is 1 − bound / unbound: of the time of an operation, or of its CPU time.
type Gain struct {
	Value unit.Opt[float64]   `json:"value"`
	CI    experiment.Interval `json:"interval,omitzero"`
}

// leastPairs is from how many repeats on neighbours are compared: fewer pairs show nothing with 95 %,
// where all with all may.
const leastPairs = 6

// gainOf compares the costs of each repeat in the two arms: what is lower is better. A repeat of
// which one arm is unknown is left out.
func gainOf(costs [2]map[int]float64) (g Gain) {
	var bound, unbound []float64
	for _, repeat := range slices.Sorted(maps.Keys(costs[Bound])) {
		if x, ok := costs[Unbound][repeat]; ok {
			bound, unbound = append(bound, costs[Bound][repeat]), append(unbound, x)
		}
	}
	compare := experiment.PairedRatio
	if len(bound) < leastPairs {
		compare = experiment.RatioOf
	}
	r, ok := compare(bound, unbound)
	if !ok {
		return g
	}
	g.Value = unit.Some(1 - r.Value)
	if r.CI.Known() {
		g.CI = experiment.Interval{Low: 1 - r.CI.High, High: 1 - r.CI.Low, Coverage: r.CI.Coverage}
	}
	return g
}

// shown is what a gain shows. Below the nominal coverage an interval shows nothing.
func (g Gain) shown() Shown {
	switch {
	case !g.Value.Known():
		return ShownUnknown
	case g.CI.Coverage < experiment.Nominal:
		return ShownTooFew
	case g.CI.Low > 0:
		return ShownGain
	case g.CI.High < 0:
		return ShownLoss
	}
	return ShownNothing
}

// times are the times of an operation by arm and repeat: 1 / speed. keep says which repeats count.
func (s State) times(keep func(repeat int) bool) [2]map[int]float64 {
	return s.costs(keep, func(x Sample) float64 { return 1 / x.Speed })
}

// cpuTimes are CPU times of an operation. They are unknown where the speed is not operations per
// second, or CPU time was not read.
func (s State) cpuTimes(keep func(repeat int) bool) (all [2]map[int]float64) {
	unread := slices.ContainsFunc(s.Samples, func(x Sample) bool { return keep(x.Repeat) && x.Features.CPU == nil })
	if s.Job.Metric.LowerIsBetter || s.Job.Metric.Kind == IPC || unread {
		return all
	}
	return s.costs(keep, func(x Sample) float64 { return *x.Features.CPU / x.Speed })
}

func (s State) costs(keep func(repeat int) bool, of func(Sample) float64) [2]map[int]float64 {
	all := [2]map[int]float64{{}, {}}
	for _, x := range s.Samples {
		if keep(x.Repeat) {
			all[x.Placement][x.Repeat] = of(x)
		}
	}
	return all
}

func every(int) bool { return true }

// half is the first or the second half of the repeats: a trial and one more, for how far two are
// apart. Whole pairs of repeats stay together.
func (s State) half(second bool) func(repeat int) bool {
	at := (s.Job.Repeats/2 + 1) / 2 * 2 // half, of a multiple of 4
	return func(repeat int) bool { return (repeat >= at) == second }
}

// TrialReportSchema is the version of TrialReport.
const TrialReportSchema = 1

// TrialReport is what came of a trial, or of a dry run.
type TrialReport struct {
	Schema  int                 `json:"schema"`
	Outcome string              `json:"outcome"` // "planned", "complete", "stopped", "unfinished"
	How     unit.Source         `json:"how"`     // of every speed
	Job     Job                 `json:"job"`
	Nodes   string              `json:"nodes"`
	Why     string              `json:"nodes_from"` // who chose them
	Left    unit.Value[float64] `json:"left_s"`
	// Speeds are per arm: unbound, bound.
	Speeds  [2]*experiment.Summary `json:"speeds_by_arm"`
	Time    Gain                   `json:"time_gain"`
	CPUTime Gain                   `json:"cpu_time_gain"`
	// Halves are the gain of the first half of the repeats, and of the second.
	Halves   [2]Gain  `json:"time_gain_by_half"`
	Shown    Shown    `json:"gain_shown"`
	Features Features `json:"features_before"`
	Notes    []string `json:"notes"`
}

// NewTrialReport is of a state.
func NewTrialReport(s State, outcome, why string) TrialReport {
	r := TrialReport{Schema: TrialReportSchema, Outcome: outcome, How: How(s.Job.Source), Job: s.Job, Nodes: s.Job.Placements[Bound].Nodes, Why: why, Left: s.left(), Notes: []string{}}
	for arm := range r.Speeds {
		if sum, ok := experiment.Summarise(s.speeds(arm)); ok {
			r.Speeds[arm] = &sum
		}
	}
	r.Time = gainOf(s.times(every))
	r.CPUTime = gainOf(s.cpuTimes(every))
	for i := range r.Halves {
		keep := s.half(i == 1)
		r.Halves[i] = gainOf(s.times(keep))
	}
	r.Shown = r.Time.shown()
	if s.Before != nil {
		r.Features = s.Before.Features
	}
	if why := s.starved(); why != "" {
		r.Notes = append(r.Notes, why)
		r.Shown, r.Time, r.Halves = ShownUnknown, Gain{}, [2]Gain{}
	}
	return r
}

// leastCPU is the share of its CPU time that a workload must still get while it is bound, for work
// per cycle to say how fast it is.
const leastCPU = 0.95

// starved says that instructions per cycle do not show how fast the workload is bound, "" if they may.
func (s State) starved() string {
	if s.Job.Metric.Kind != IPC {
		return ""
	}
	var used [2][]float64
	for _, x := range s.Samples {
		if x.Features.CPU != nil {
			used[x.Placement] = append(used[x.Placement], *x.Features.CPU)
		}
	}
	if len(used[Unbound]) == 0 || len(used[Bound]) == 0 {
		return ""
	}
	if free, bound := experiment.Mean(used[Unbound]), experiment.Mean(used[Bound]); bound < leastCPU*free {
		return fmt.Sprintf("bound it used %.2f CPUs, unbound %.2f: instructions per cycle do not show what that costs, so no gain is reported: name another --metric", bound, free)
	}
	return ""
}

// LookAt makes a look of the window of the whole host in which figures were measured.
func LookAt(m machine.Machine, w *window.Window, f Figures) Look {
	l := Look{Speed: f.Speed, Features: f.Features, Neighbours: max(0, len(w.Workloads)-1)}
	use := w.Use()
	if node := m.FewestCPUs(); f.Features.CPU != nil && node > 0 {
		l.CPUOfNode = pointer(*f.Features.CPU/node, true)
	}
	l.Busy, l.Idlest = pointer(use.Host.Get()), pointer(use.Idlest.Get())
	return l
}
