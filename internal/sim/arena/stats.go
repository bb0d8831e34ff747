// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"homenode/internal/experiment"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/runner"
	"homenode/internal/unit"
)

// Estimate is a figure over several seeds.
type Estimate struct {
	N        int // seeds that have it; 0: none has, and the rest means nothing
	Median   float64
	Min, Max float64
	// CI is for the median, and unknown with too few seeds for experiment.Nominal; the
	// fewest are six.
	CI experiment.Interval
}

// FewestSeeds is the number of seeds that an interval needs: see trial.medianInterval.
const FewestSeeds = 6

// EstimateOf leaves out NaN.
func EstimateOf(values []float64) Estimate {
	s, ok := experiment.Summarise(values)
	if !ok {
		return Estimate{}
	}
	e := Estimate{N: s.N, Median: s.Median, Min: s.Min, Max: s.Max}
	if s.CI.Coverage >= experiment.Nominal {
		e.CI = s.CI
	}
	return e
}

// Line is a policy on a machine under a mix, compared with another policy.
type Line struct {
	Machine, Mix, Policy, Against string
	Pairs                         int // seeds that both have
	// Speed is the ratio of speeds, seed by seed: see speedOf. More is better.
	Speed Estimate
	// P99 and CPUPerOp are ratios, geometric means over apps; less is better.
	P99, CPUPerOp Estimate
	// The rest are the policy's own figures.
	Local, Moves, MovedB, Fairness Estimate
	// Variation is sigma / mean of each app's speed over the seeds that have the same apps
	// (seeds may draw others), then the mean over apps; unknown with fewer than two such
	// seeds.
	Variation unit.Opt[float64]
	// Slowest is the app with the lowest median speed; "" if there is none.
	Slowest      string
	SlowestSpeed float64
}

// Noticeable is how far from 1 a speed must be to be called faster or slower. A smaller
// difference is too small to act on. A choice.
const Noticeable = 0.005

// Side reports whether it was faster (+1), slower (-1), or neither (0), by the whole
// interval; false: there is no interval.
func (l Line) Side() (side int, ok bool) {
	switch ci := l.Speed.CI; {
	case !ci.Known():
		return 0, false
	case ci.Low > 1+Noticeable:
		return 1, true
	case ci.High < 1-Noticeable:
		return -1, true
	}
	return 0, true
}

// Compare makes a line for each machine and mix of the result, in order, comparing one
// policy with another.
func Compare(r Result, policy, against string) []Line {
	var all []Line
	for _, m := range r.Machines {
		for _, x := range r.Mixes {
			ours, theirs := r.cells(m.Name, x.Name, policy), r.cells(m.Name, x.Name, against)
			if len(ours) > 0 && len(theirs) > 0 {
				all = append(all, line(ours, theirs, against))
			}
		}
	}
	return all
}

// cells are the cells of all seeds, in order.
func (r Result) cells(machine, mix, policy string) (all []*Cell) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Machine == machine && c.Mix == mix && c.Policy == policy {
			all = append(all, c)
		}
	}
	return all
}

// pairs are cells of the same seed, side by side.
func pairs(ours, theirs []*Cell) (all [][2]*Cell) {
	for _, c := range ours {
		if i := slices.IndexFunc(theirs, func(o *Cell) bool { return o.Seed == c.Seed }); i >= 0 {
			all = append(all, [2]*Cell{c, theirs[i]})
		}
	}
	return all
}

func line(ours, theirs []*Cell, against string) Line {
	l := Line{Machine: ours[0].Machine, Mix: ours[0].Mix, Policy: ours[0].Policy, Against: against, Variation: variation(ours)}
	both := pairs(ours, theirs)
	l.Pairs = len(both)
	column := func(of func(a, b App) (float64, bool)) Estimate {
		values := make([]float64, len(both))
		for i, p := range both {
			values[i] = ratioOf(p[0], p[1], of)
		}
		return EstimateOf(values)
	}
	l.Speed = column(speedOf)
	l.P99 = column(func(a, b App) (float64, bool) { return a.P99S / b.P99S, a.P99S > 0 && b.P99S > 0 })
	l.CPUPerOp = column(func(a, b App) (float64, bool) { return a.CPUPerOp / b.CPUPerOp, a.CPUPerOp > 0 && b.CPUPerOp > 0 })
	own := func(of func(c *Cell) float64) Estimate {
		values := make([]float64, len(ours))
		for i, c := range ours {
			values[i] = of(c)
		}
		return EstimateOf(values)
	}
	l.Local = own(func(c *Cell) float64 { return c.LocalRatio })
	l.Moves = own(func(c *Cell) float64 { return float64(c.Moves) })
	l.MovedB = own(func(c *Cell) float64 { return c.MovedB })
	l.Fairness = own(leastFair)
	l.Slowest, l.SlowestSpeed = slowest(both)
	return l
}

// speedOf is the ratio of an app's speeds: operations over operations. Where requests come
// at a rate, no policy can do more than was requested; there it is that ratio, times the
// ratio of CPU time per operation (as arm.Oracle computes it). False: it did nothing in
// both, or was missing.
func speedOf(a, b App) (float64, bool) {
	if !(b.Ops > 0) {
		return 0, false
	}
	speed := a.Ops / b.Ops
	if a.Rated && b.Rated && a.CPUPerOp > 0 && b.CPUPerOp > 0 {
		speed *= b.CPUPerOp / a.CPUPerOp
	}
	return speed, true
}

// ratioOf is the geometric mean over apps of two cells; NaN if no app has a ratio.
func ratioOf(ours, theirs *Cell, of func(a, b App) (float64, bool)) float64 {
	var mean geometric
	for _, a := range ours.Apps {
		b, ok := theirs.app(a.ID)
		if !ok {
			continue
		}
		v, ok := of(a, b)
		switch {
		case !ok:
		case !(v > 0):
			return 0 // an app starved: the geometric mean is 0
		default:
			mean.add(v)
		}
	}
	return mean.value()
}

// geometric is a geometric mean of values above 0.
type geometric struct{ logs, n float64 }

func (g *geometric) add(v float64) {
	g.logs += detmath.Log(v)
	g.n++
}

// value is NaN without values.
func (g geometric) value() float64 {
	if g.n == 0 {
		return math.NaN()
	}
	return detmath.Exp(g.logs / g.n)
}

func (c *Cell) app(id string) (App, bool) {
	i, ok := slices.BinarySearchFunc(c.Apps, id, func(a App, id string) int { return cmp.Compare(a.ID, id) })
	if !ok {
		return App{}, false
	}
	return c.Apps[i], true
}

func leastFair(c *Cell) float64 {
	least := math.NaN()
	for _, a := range c.Apps {
		if math.IsNaN(least) || a.Fairness < least {
			least = a.Fairness
		}
	}
	return least
}

// variation is Line's Variation.
func variation(cells []*Cell) unit.Opt[float64] {
	sum, n := 0.0, 0.0
	for _, alike := range sameLoads(cells) {
		for _, a := range alike[0].Apps {
			values := make([]float64, len(alike))
			for i, c := range alike {
				b, _ := c.app(a.ID)
				values[i] = b.pace()
			}
			if s, ok := experiment.Summarise(values); ok {
				if cv, ok := s.Variation(); ok {
					sum += cv
					n++
				}
			}
		}
	}
	return unit.OptOf(sum/max(n, 1), n > 0)
}

// sameLoads groups cells that have the same apps.
func sameLoads(cells []*Cell) (groups [][]*Cell) {
	same := func(a, b App) bool { return a.ID == b.ID && a.Service == b.Service && a.Threads == b.Threads }
	for _, c := range cells {
		i := slices.IndexFunc(groups, func(g []*Cell) bool { return slices.EqualFunc(g[0].Apps, c.Apps, same) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// pace is the figure whose variation is measured: operations per second, or per CPU second
// where requests come at a rate.
func (a App) pace() float64 {
	if a.Rated {
		return runner.Over(1, a.CPUPerOp)
	}
	return a.Ops
}

// slowest is the app that lost most, by its median over the pairs.
func slowest(both [][2]*Cell) (id string, speed float64) {
	if len(both) == 0 {
		return "", 0
	}
	for _, a := range both[0][0].Apps {
		var values []float64
		for _, p := range both {
			x, ok := p[0].app(a.ID)
			y, also := p[1].app(a.ID)
			if v, known := speedOf(x, y); ok && also && known {
				values = append(values, v)
			}
		}
		if e := EstimateOf(values); e.N > 0 && (id == "" || e.Median < speed) {
			id, speed = a.ID, e.Median
		}
	}
	return id, speed
}

// Place is a policy's place in a ranking. Ratios are to the policy that all are compared
// with.
type Place struct {
	Policy string
	// Rank is 1 for the best. Policies share a rank if their intervals overlap that of the
	// first of them. 0: there are too few seeds to tell.
	Rank int
	// Speed, P99 and CPUPerOp are geometric means over machines and mixes, seed by seed.
	Speed, P99, CPUPerOp Estimate
	Local                Estimate // mean over machines and mixes
	Variation            unit.Opt[float64]
	// Moves and MovedB are per run: the mean over machines and mixes.
	Moves, MovedB Estimate
	Fairness      float64 // the lowest
	// Wins, Losses and Ties are numbers of lines (Line.Side); Unknown counts those without
	// an interval.
	Wins, Losses, Ties, Unknown int
	// Worst and Best are the lines with the lowest and the highest median speed.
	Worst, Best Line
}

// Ranking is all policies on one machine; Machine "": on all together.
type Ranking struct {
	Machine string
	Places  []Place
}

// Summary is what a result shows.
type Summary struct {
	Lines    []Line    // of each policy, machine and mix, in the order policy, machine, mix
	Overall  Ranking   // on all machines together
	Rankings []Ranking // one per machine, in order; without machines on which no mix fits
}

// Summarise compares all policies with the result's Against.
func Summarise(r Result) Summary {
	var s Summary
	for _, p := range r.Policies {
		s.Lines = append(s.Lines, Compare(r, p.Name, r.Against)...)
	}
	s.Overall = r.ranking("", s.Lines)
	for _, m := range r.Machines {
		if ranking := r.ranking(m.Name, s.Lines); len(ranking.Places) > 0 {
			s.Rankings = append(s.Rankings, ranking)
		}
	}
	return s
}

// ranking is the ranking on one machine; "": on all.
func (r Result) ranking(machine string, lines []Line) Ranking {
	out := Ranking{Machine: machine}
	for _, p := range r.Policies {
		var own []Line
		for _, l := range lines {
			if l.Policy == p.Name && (machine == "" || l.Machine == machine) {
				own = append(own, l)
			}
		}
		if len(own) > 0 {
			out.Places = append(out.Places, r.PlaceOf(p.Name, own))
		}
	}
	out.rank()
	return out
}

// PlaceOf combines a policy's lines.
func (r Result) PlaceOf(policy string, lines []Line) Place {
	p := Place{Policy: policy, Worst: lines[0], Best: lines[0], Fairness: 1}
	sum, n := 0.0, 0.0
	for _, l := range lines {
		switch side, ok := l.Side(); {
		case !ok:
			p.Unknown++
		case side > 0:
			p.Wins++
		case side < 0:
			p.Losses++
		default:
			p.Ties++
		}
		if l.Speed.Median < p.Worst.Speed.Median {
			p.Worst = l
		}
		if l.Speed.Median > p.Best.Speed.Median {
			p.Best = l
		}
		if v, ok := l.Variation.Get(); ok {
			sum += v
			n++
		}
		if l.Fairness.N > 0 {
			p.Fairness = min(p.Fairness, l.Fairness.Min)
		}
	}
	p.Variation = unit.OptOf(sum/max(n, 1), n > 0)
	r.overSeeds(&p, lines)
	return p
}

// overSeeds first combines figures over machines and mixes, then estimates over seeds: only
// the seeds are independent.
func (r Result) overSeeds(p *Place, lines []Line) {
	var speed, p99, cpu, local, moves, moved []float64
	for _, seed := range r.Seeds {
		var ours, theirs []*Cell
		for _, l := range lines {
			a, b := r.cell(l.Machine, l.Mix, l.Policy, seed), r.cell(l.Machine, l.Mix, l.Against, seed)
			if a != nil && b != nil {
				ours, theirs = append(ours, a), append(theirs, b)
			}
		}
		speed = append(speed, together(ours, theirs, speedOf))
		p99 = append(p99, together(ours, theirs, func(a, b App) (float64, bool) { return a.P99S / b.P99S, a.P99S > 0 && b.P99S > 0 }))
		cpu = append(cpu, together(ours, theirs, func(a, b App) (float64, bool) { return a.CPUPerOp / b.CPUPerOp, a.CPUPerOp > 0 && b.CPUPerOp > 0 }))
		local = append(local, Mean(ours, func(c *Cell) float64 { return c.LocalRatio }))
		moves = append(moves, Mean(ours, func(c *Cell) float64 { return float64(c.Moves) }))
		moved = append(moved, Mean(ours, func(c *Cell) float64 { return c.MovedB }))
	}
	p.Speed, p.P99, p.CPUPerOp = EstimateOf(speed), EstimateOf(p99), EstimateOf(cpu)
	p.Local, p.Moves, p.MovedB = EstimateOf(local), EstimateOf(moves), EstimateOf(moved)
}

func (r Result) cell(machine, mix, policy string, seed uint64) *Cell {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Machine == machine && c.Mix == mix && c.Policy == policy && c.Seed == seed {
			return c
		}
	}
	return nil
}

// together is the geometric mean over pairs of cells of ratioOf; NaN without pairs.
func together(ours, theirs []*Cell, of func(a, b App) (float64, bool)) float64 {
	var mean geometric
	for i := range ours {
		switch v := ratioOf(ours[i], theirs[i], of); {
		case math.IsNaN(v):
		case v == 0:
			return 0
		default:
			mean.add(v)
		}
	}
	return mean.value()
}

// Mean is the mean over cells; NaN without cells.
func Mean(cells []*Cell, of func(*Cell) float64) float64 {
	sum := 0.0
	for _, c := range cells {
		sum += of(c)
	}
	if len(cells) == 0 {
		return math.NaN()
	}
	return sum / float64(len(cells))
}

// rank sorts, the fastest first, and gives ranks.
//
//  1. By median speed; equal ones stay in the order of the result.
//  2. The first has rank 1. Each further policy shares the rank of the policy that opened
//     it while their intervals overlap. Otherwise it opens a new rank: its place in the
//     order.
//  3. If any of them has no interval, none has a rank.
func (k *Ranking) rank() {
	slices.SortStableFunc(k.Places, func(a, b Place) int { return cmp.Compare(b.Speed.Median, a.Speed.Median) }) // 1
	if slices.ContainsFunc(k.Places, func(p Place) bool { return !p.Speed.CI.Known() }) {                        // 3
		return
	}
	first := 0
	for i := range k.Places { // 2
		if k.Places[i].Speed.CI.High < k.Places[first].Speed.CI.Low {
			first = i
		}
		k.Places[i].Rank = first + 1
	}
}

// Place is a policy's place in a ranking.
func (k Ranking) Place(policy string) (Place, bool) {
	for _, p := range k.Places {
		if p.Policy == policy {
			return p, true
		}
	}
	return Place{}, false
}

// SeedsText says what so few seeds allow; "" if there are enough.
func (r Result) SeedsText() string {
	if len(r.Seeds) >= FewestSeeds {
		return ""
	}
	return fmt.Sprintf("confidence intervals are unknown: %d seeds are too few for %g %%, %d are the fewest", len(r.Seeds), experiment.Nominal*100, FewestSeeds)
}
