// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"

	"homenode/internal/experiment"
	"homenode/internal/unit"
)

// effects are, of each bound host and of each other, how much its replicas' indicator changed:
// after against before, each bin relative to the mean of those that are not bound (logarithms; above 0
// is worse). A host is bound as a whole, and what happens to it happens to all of its replicas.
//
//  1. The same replicas are the measure in all bins: those that are not bound now, each relative to its
//     own mean, so that one that shows nothing in a bin does not move the measure by its level.
//  2. A bound replica's bins before are those until it was bound, after those when its washout is over.
//     The others' change is taken over the first binding.
//  3. A replica with less than two bins before, or none after, is left out, and so is one that is to be
//     bound and never was (Observe).
func (s State) effects() (bound, others []float64) {
	var measure []int
	first := len(s.Seen)
	for i, at := range s.BoundAt {
		if at < 0 {
			measure = append(measure, i)
		} else {
			first = min(first, at)
		}
	}
	means := s.means(measure) // 1
	type host struct {
		sum   float64
		n     int
		bound bool
	}
	hosts, names := map[string]*host{}, []string{}
	sign := -1.0
	if s.Plan.LowerIsBetter {
		sign = 1
	}
	for i, at := range s.BoundAt {
		split := at
		if at < 0 {
			split = first
		}
		change, ok := s.change(i, split, means) // 2
		if !ok || s.apart(i) {                  // 3
			continue
		}
		name := s.Plan.Replicas[i].Host
		h := hosts[name]
		if h == nil {
			h = &host{bound: at >= 0}
			hosts[name], names = h, append(names, name)
		}
		h.sum += sign * change
		h.n++
	}
	for _, name := range names {
		h := hosts[name]
		if mean := h.sum / float64(h.n); h.bound {
			bound = append(bound, mean)
		} else {
			others = append(others, mean)
		}
	}
	return bound, others
}

// means are, of each bin, the mean of these replicas' figures, each less its own mean over all bins.
func (s State) means(of []int) []unit.Opt[float64] {
	own := make([]float64, len(s.BoundAt))
	for _, i := range of {
		n := 0
		for _, bin := range s.Seen {
			if x, ok := bin[i].Get(); ok {
				own[i] += x
				n++
			}
		}
		own[i] /= float64(max(n, 1))
	}
	means := make([]unit.Opt[float64], len(s.Seen))
	for k, bin := range s.Seen {
		sum, n := 0.0, 0
		for _, i := range of {
			if x, ok := bin[i].Get(); ok {
				sum += x - own[i]
				n++
			}
		}
		means[k] = unit.OptOf(sum/float64(max(n, 1)), n > 0)
	}
	return means
}

func (s State) change(replica, split int, means []unit.Opt[float64]) (float64, bool) {
	var sum [2]float64
	var n [2]int
	for k, bin := range s.Seen {
		x, ok := bin[replica].Get()
		mean, both := means[k].Get()
		if !ok || !both || k >= split && k < split+s.Plan.Washout {
			continue
		}
		after := 0
		if k >= split {
			after = 1
		}
		sum[after] += x - mean
		n[after]++
	}
	if n[0] < 2 || n[1] < 1 {
		return 0, false
	}
	return sum[1]/float64(n[1]) - sum[0]/float64(n[0]), true
}

// newUnit is a factor between two bins by which no load changes an indicator of all replicas at
// once: seconds that became milliseconds are 1,000.
const newUnit = 100

// broken says why nothing can be judged any more; "" if it can.
func (s State) broken() Code {
	switch {
	case s.constant():
		return Constant
	case s.jumped():
		return NewUnit
	case s.silent(func(at int) bool { return at >= 0 }):
		return Silence
	case !s.last() && s.silent(func(at int) bool { return at < 0 }):
		return TooFew
	}
	return ""
}

// silent says that most of these replicas showed nothing in the last bins.
func (s State) silent(of func(at int) bool) bool {
	if len(s.Seen) < s.Plan.Silent || s.Phase == Before && len(s.Seen) < s.Plan.Before {
		return false
	}
	all, quiet := 0, 0
	for i, at := range s.BoundAt {
		if !of(at) || at > len(s.Seen)-s.Plan.Silent {
			continue
		}
		all++
		if !slices.ContainsFunc(s.Seen[len(s.Seen)-s.Plan.Silent:], func(bin []unit.Opt[float64]) bool { return bin[i].Known() }) {
			quiet++
		}
	}
	return all > 0 && 2*quiet > all
}

// fewLost is the chance below which a stage is not widened: that as many of the lost hosts are bound.
const fewLost = 0.05

// lost is the chance that as many bound hosts have lost a replica as there are, or more, if binding had
// nothing to do with it (Fisher's exact test, one-sided). A host has lost one that showed something
// before and nothing in the last bins. 1: no bound host has.
func (s State) lost() float64 {
	if len(s.Seen) < s.Plan.Silent {
		return 1
	}
	type host struct{ bound, lost bool }
	hosts := map[string]host{}
	before, last := s.Seen[:len(s.Seen)-s.Plan.Silent], s.Seen[len(s.Seen)-s.Plan.Silent:]
	shows := func(bins [][]unit.Opt[float64], i int) bool {
		return slices.ContainsFunc(bins, func(bin []unit.Opt[float64]) bool { return bin[i].Known() })
	}
	for i, r := range s.Plan.Replicas {
		h := hosts[r.Host]
		h.bound = h.bound || s.BoundAt[i] >= 0
		h.lost = h.lost || shows(before, i) && !shows(last, i)
		hosts[r.Host] = h
	}
	var bound, lost, both int
	for _, h := range hosts {
		if h.bound {
			bound++
		}
		if h.lost {
			lost++
		}
		if h.bound && h.lost {
			both++
		}
	}
	if both == 0 {
		return 1
	}
	chance := 0.0
	for k := both; k <= min(bound, lost); k++ {
		if lost-k <= len(hosts)-bound {
			chance += math.Exp(combin.LogGeneralizedBinomial(float64(bound), float64(k)) + combin.LogGeneralizedBinomial(float64(len(hosts)-bound), float64(lost-k)) - combin.LogGeneralizedBinomial(float64(len(hosts)), float64(lost)))
		}
	}
	return min(chance, 1)
}

// constant says that no replica ever showed another figure than all.
func (s State) constant() bool {
	if len(s.Seen) < s.Plan.Before {
		return false
	}
	first, any := unit.Opt[float64]{}, false
	for _, bin := range s.Seen {
		for _, v := range bin {
			if !v.Known() {
				continue
			}
			if any && v != first {
				return false
			}
			first, any = v, true
		}
	}
	return any
}

// jumped says that the median of the replicas changed by a factor from the last bin to this one.
func (s State) jumped() bool {
	if len(s.Seen) < 2 {
		return false
	}
	now, ok := median(s.Seen[len(s.Seen)-1])
	was, both := median(s.Seen[len(s.Seen)-2])
	return ok && both && math.Abs(now-was) > math.Log(newUnit)
}

func median(bin []unit.Opt[float64]) (float64, bool) {
	var all []float64
	for _, v := range bin {
		if x, ok := v.Get(); ok {
			all = append(all, x)
		}
	}
	return experiment.Median(all)
}
