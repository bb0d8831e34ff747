// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"math"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/arm"
	"homenode/internal/trial"
)

// What BRM was to reach: set before there was an arena.
const (
	nearHand   = 0.95 // of the speed of placement by hand, on the median mix
	mostVaries = 0.02 // mean sigma / mean
	fasterBy   = 0.25 // than the default, somewhere
	mostLost   = 0.03 // on loads that do not care

	doNotCare = "insensitive" // the mix of them
)

// Targets are what was to be reached in the standard arena, and what came of it.
func Targets(r arena.Result) []arena.Row {
	rows := []arena.Row{
		target("In the arena, BRM is within 5 % of placement by hand on the median mix.", "≤ 5 %"),
		target("In the arena, BRM's variation is at most 2 %.", "≤ 2 %"),
		target("In the arena, BRM is at least 25 % faster than the default somewhere.", "≥ 25 %"),
		target("In the arena, BRM is never more than 3 % slower on loads that do not care.", "≤ 3 %"),
	}
	for i, judge := range []func(arena.Result, *arena.Row){besideHand, varies, fastest, slowestOfCalm} {
		judge(r, &rows[i])
	}
	return rows
}

func target(statement, theirs string) arena.Row {
	return arena.Row{Paper: arena.ToReach, Statement: statement, Theirs: theirs, Ours: "–", Verdict: arena.CannotTest, Sentence: "The result has no runs to tell from.", Target: true}
}

// known are lines of BRM that have a speed, under one mix or all ("").
func known(r arena.Result, against, mix string) (all []arena.Line) {
	for _, l := range arena.Compare(r, arm.BRM, against) {
		if l.Speed.N > 0 && (mix == "" || l.Mix == mix) {
			all = append(all, l)
		}
	}
	return all
}

// places says how many lines there are: each is a machine under a mix.
func places(n int) string {
	if n == 1 {
		return "1 machine and mix"
	}
	return fmt.Sprintf("%d machines and mixes", n)
}

func percent(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }

func besideHand(r arena.Result, w *arena.Row) {
	var speeds []float64
	for _, l := range known(r, arm.Hand, "") {
		speeds = append(speeds, l.Speed.Median)
	}
	s, ok := trial.Summarise(speeds)
	if !ok {
		return
	}
	w.Ours = percent(s.Median - 1)
	w.Judge(s.Median >= nearHand, fmt.Sprintf("Speed against placement by hand: %s on the median of %s, %s to %s. By hand is a search that knows the loads, and moves memory too.",
		percent(s.Median-1), places(s.N), percent(s.Min-1), percent(s.Max-1)))
}

func varies(r arena.Result, w *arena.Row) {
	sum, n, worst := 0.0, 0, arena.Line{}
	for _, l := range known(r, arm.BRM, "") {
		if v, ok := l.Variation.Get(); ok {
			if sum, n = sum+v, n+1; v >= worst.Variation.Or(0) {
				worst = l
			}
		}
	}
	if n == 0 {
		return
	}
	mean := sum / float64(n)
	w.Ours = fmt.Sprintf("%.2f %%", 100*mean)
	w.Judge(mean <= mostVaries, fmt.Sprintf("Sigma / mean of an application's speed over seeds: %.2f %% in the mean of %s, %.1f %% under %s on %s at worst.",
		100*mean, places(n), 100*worst.Variation.Or(0), worst.Mix, worst.Machine))
}

func fastest(r arena.Result, w *arena.Row) {
	best := arena.Line{Speed: arena.Estimate{Median: math.Inf(-1)}}
	all := known(r, r.Against, "")
	for _, l := range all {
		if l.Speed.Median > best.Speed.Median {
			best = l
		}
	}
	if len(all) == 0 {
		return
	}
	gain := best.Speed.Median - 1
	w.Ours = percent(gain)
	w.Judge(gain >= fasterBy, fmt.Sprintf("Speed against %s: %s under %s on %s, the best of %s.", r.Against, percent(gain), best.Mix, best.Machine, places(len(all))))
}

func slowestOfCalm(r arena.Result, w *arena.Row) {
	worst := arena.Line{Speed: arena.Estimate{Median: math.Inf(1)}}
	all := known(r, r.Against, doNotCare)
	for _, l := range all {
		if l.Speed.Median < worst.Speed.Median {
			worst = l
		}
	}
	if len(all) == 0 {
		return
	}
	lost := worst.Speed.Median - 1
	w.Ours = percent(lost)
	w.Judge(lost >= -mostLost, fmt.Sprintf("Speed against %s under %s: %s on %s, the worst of %s. What the policy itself costs to run is not simulated.", r.Against, doNotCare, percent(lost), worst.Machine, places(len(all))))
}
