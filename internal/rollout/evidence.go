// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"homenode/internal/unit"
)

// Error rates of a whole rollout, each one-sided and however often it is looked at: of calling a
// harmless binding harmful, of widening one that costs more than the margin, and of calling a gain
// what is none. A rollout has few stages, and each draws on the rates of the whole.
const (
	harmRate = 0.01
	wideRate = 0.01
	gainRate = 0.04
)

// Evidence is what the bound replicas show against the others. Effect is a share of the
// indicator, above 0 is worse.
type Evidence struct {
	Look     int     `json:"look"` // number of the look at this rollout, from 1
	Bound    int     `json:"bound_hosts_count"`
	Others   int     `json:"other_hosts_count"`
	Effect   float64 `json:"effect_ratio"`
	Error    float64 `json:"standard_error_ratio"`
	AtLeast  float64 `json:"at_least_ratio"`  // the effect is above, but for harmRate
	AtMost   float64 `json:"at_most_ratio"`   // the effect is below, but for wideRate
	GainOver float64 `json:"gain_over_ratio"` // the gain is above, but for gainRate
	// Halves are the effect on every second of the bound hosts, and on the others of them: how far
	// they are apart is what no prediction of the effect can be better than.
	Halves [2]unit.Opt[float64] `json:"effect_by_half"`
}

// judge compares the effects of two groups of hosts (logarithms).
//
//  1. A host is one observation, whatever its replicas and its bins: they depend on each other.
//  2. Student's comparison of two means, with the variance of both groups. Where the bound ones
//     differ more among each other than that, because binding helps some more than others, theirs.
//  3. Look n may err with rate × 6/(π²n²), which add up to the rate over all looks: so the rates hold
//     whenever a look ends the rollout, and whatever looks have to do with each other (Bonferroni).
func judge(bound, others []float64, look int) (Evidence, bool) {
	e := Evidence{Look: look, Bound: len(bound), Others: len(others)}
	if len(bound) < 2 || len(others) < 2 {
		return e, false
	}
	m1, v1 := stat.MeanVariance(bound, nil)
	m2, v2 := stat.MeanVariance(others, nil)
	n1, n2 := float64(len(bound)), float64(len(others))
	both := ((n1-1)*v1 + (n2-1)*v2) / (n1 + n2 - 2)
	se := math.Sqrt(max(v1, both)/n1 + max(v2, both)/n2) // 2
	if !(se > 0) {
		return e, false
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n1 + n2 - 2}
	bound1 := func(rate float64) float64 { return t.Quantile(1-rate*share(look)) * se } // 3
	effect := m1 - m2
	e.Effect, e.Error = share1(effect), se
	for half := range e.Halves {
		var some []float64
		for i := half; i < len(bound); i += 2 {
			some = append(some, bound[i])
		}
		e.Halves[half] = unit.Some(share1(stat.Mean(some, nil) - m2))
	}
	e.AtLeast = share1(effect - bound1(harmRate))
	e.AtMost = share1(effect + bound1(wideRate))
	e.GainOver = -share1(effect + bound1(gainRate))
	return e, true
}

// share is what one look may have of a rate: the shares of all looks add up to 1.
func share(look int) float64 { return 6 / (math.Pi * math.Pi * float64(look) * float64(look)) }

// share1 is a logarithm as a share, and a number that can be written, whatever it is.
func share1(x float64) float64 { return math.Expm1(min(x, 100)) }
