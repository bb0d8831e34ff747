// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"
	"math"

	"homenode/internal/experiment"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
)

// BRM's targets, set before there was an arena.
const (
	nearHand   = 0.95 // of the speed of placement by hand, on the median mix
	mostVaries = 0.02 // mean sigma / mean
	fasterBy   = 0.25 // than the default, somewhere
	mostLost   = 0.03 // on insensitive loads

	doNotCare = "insensitive" // the mix of insensitive loads
)

// Targets returns the targets of the standard arena, and whether they were met.
func Targets(r arena.Result) []arena.Row {
	return arena.Judge([]arena.Statement[arena.Result]{
		{Paper: arena.ToReach, Text: "In the arena, BRM is within 5 % of placement by hand on the median mix.", Theirs: "≤ 5 %", Target: true, Judge: besideHand},
		{Paper: arena.ToReach, Text: "In the arena, BRM's variation is at most 2 %.", Theirs: "≤ 2 %", Target: true, Judge: varies},
		{Paper: arena.ToReach, Text: "In the arena, BRM is at least 25 % faster than the default somewhere.", Theirs: "≥ 25 %", Target: true, Judge: fastest},
		{Paper: arena.ToReach, Text: "In the arena, BRM is never more than 3 % slower on loads that do not care.", Theirs: "≤ 3 %", Target: true, Judge: slowestOfCalm},
	}, r)
}

// known returns BRM's lines that have a speed, under one mix or all ("").
func known(r arena.Result, against, mix string) (all []arena.Line) {
	for _, l := range arena.Compare(r, runner.BRM, against) {
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

func besideHand(r arena.Result) arena.Finding {
	var speeds []float64
	for _, l := range known(r, runner.Hand, "") {
		speeds = append(speeds, l.Speed.Median)
	}
	s, ok := experiment.Summarise(speeds)
	if !ok {
		return arena.NoRuns
	}
	return arena.Found(s.Median >= nearHand, percent(s.Median-1), fmt.Sprintf("Speed against placement by hand: %s on the median of %s, %s to %s. Placement by hand is a search that knows the loads, and moves memory too.",
		percent(s.Median-1), places(s.N), percent(s.Min-1), percent(s.Max-1)))
}

func varies(r arena.Result) arena.Finding {
	sum, n, worst := 0.0, 0, arena.Line{}
	for _, l := range known(r, runner.BRM, "") {
		if v, ok := l.Variation.Get(); ok {
			if sum, n = sum+v, n+1; v >= worst.Variation.Or(0) {
				worst = l
			}
		}
	}
	if n == 0 {
		return arena.NoRuns
	}
	mean := sum / float64(n)
	return arena.Found(mean <= mostVaries, fmt.Sprintf("%.2f %%", 100*mean), fmt.Sprintf("Sigma / mean of an application's speed over seeds: %.2f %% in the mean of %s, %.1f %% under %s on %s at worst.",
		100*mean, places(n), 100*worst.Variation.Or(0), worst.Mix, worst.Machine))
}

func fastest(r arena.Result) arena.Finding {
	best := arena.Line{Speed: arena.Estimate{Median: math.Inf(-1)}}
	all := known(r, r.Against, "")
	for _, l := range all {
		if l.Speed.Median > best.Speed.Median {
			best = l
		}
	}
	if len(all) == 0 {
		return arena.NoRuns
	}
	gain := best.Speed.Median - 1
	return arena.Found(gain >= fasterBy, percent(gain), fmt.Sprintf("Speed against %s: %s under %s on %s, the best of %s.", r.Against, percent(gain), best.Mix, best.Machine, places(len(all))))
}

func slowestOfCalm(r arena.Result) arena.Finding {
	worst := arena.Line{Speed: arena.Estimate{Median: math.Inf(1)}}
	all := known(r, r.Against, doNotCare)
	for _, l := range all {
		if l.Speed.Median < worst.Speed.Median {
			worst = l
		}
	}
	if len(all) == 0 {
		return arena.NoRuns
	}
	lost := worst.Speed.Median - 1
	return arena.Found(lost >= -mostLost, percent(lost), fmt.Sprintf("Speed against %s under %s: %s on %s, the worst of %s. What the policy itself costs to run is not simulated.", r.Against, doNotCare, percent(lost), worst.Machine, places(len(all))))
}
