// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Nodes is a set of indexes of nodes: the simulator's machines have at most 64.
type Nodes uint64

func (n Nodes) has(i int) bool { return n>>i&1 != 0 }
func (n Nodes) count() int     { return bits.OnesCount64(uint64(n)) }

// Placement is the nodes of each workload.
type Placement []Nodes

// Scorer returns a placement's worth; -Inf: it is invalid.
type Scorer interface {
	Choices() [][]Nodes // for each workload, none empty
	Weights() []float64 // larger ones are placed first
	Score(p Placement) float64
}

const (
	// mostTried is the number of placements up to which all are tried: nine workloads on
	// two nodes have 19,683. Each takes two fixed points of the memory system, some 40 µs:
	// less than a second in total.
	mostTried = 20_000
	// better is how much better a score must be. A smaller difference is rounding, and
	// would make the answer depend on the order in which placements are tried.
	better = 1e-9
)

// Search is the best placement: of all, where there are few; else it is found like this.
//
//  1. One workload after the other, the heaviest first, goes where it scores best with
//     those before it, while those after it may be anywhere (their last choice).
//  2. Then any single move and any swap of two that scores better is made, until there is
//     none.
func Search(s Scorer) Placement {
	choices := s.Choices()
	if count := product(choices); count <= mostTried {
		return exhaust(s, choices)
	}
	p := greedy(s, choices)
	each := 0 // placements that a round of number 2 tries
	for _, c := range choices {
		each += len(c)
	}
	each += len(choices) * (len(choices) - 1) / 2
	for round := 0; round < mostRounds && round*each*len(choices) < mostImproved && improve(s, choices, p); round++ {
	}
	return p
}

// mostImproved bounds number 2 of Search where rounds are long, as placements × workloads:
// 16 workloads on 8 nodes take a dozen rounds, 20 on 36 nodes three, 112 on two nodes one.
const mostImproved = 200_000

// mostRounds bounds number 2 of Search; it ends sooner as scores ascend.
const mostRounds = 20

func product(choices [][]Nodes) float64 {
	n := 1.0
	for _, c := range choices {
		n *= float64(len(c))
	}
	return n
}

// exhaust tries all placements.
func exhaust(s Scorer, choices [][]Nodes) Placement {
	digits := make([]int, len(choices))
	p := make(Placement, len(choices))
	var best Placement
	most := math.Inf(-1)
	for more := true; more; more = count(digits, choices) {
		for i, d := range digits {
			p[i] = choices[i][d]
		}
		if score := s.Score(p); best == nil || score > most+better {
			best, most = slices.Clone(p), score
		}
	}
	return best
}

// count adds one to a number of mixed base.
func count(digits []int, choices [][]Nodes) bool {
	for i := range digits {
		if digits[i]++; digits[i] < len(choices[i]) {
			return true
		}
		digits[i] = 0
	}
	return false
}

// greedy is number 1 of Search.
func greedy(s Scorer, choices [][]Nodes) Placement {
	p := make(Placement, len(choices))
	order := make([]int, len(choices))
	for i, c := range choices {
		p[i], order[i] = c[len(c)-1], i
	}
	weights := s.Weights()
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	for _, i := range order {
		move(s, choices[i], p, i, math.Inf(-1))
	}
	return p
}

// move puts workload i where it scores best, if that is above most, and returns that score.
func move(s Scorer, choices []Nodes, p Placement, i int, most float64) float64 {
	best := p[i]
	for _, c := range choices {
		p[i] = c
		if score := s.Score(p); score > most+better {
			best, most = c, score
		}
	}
	p[i] = best
	return most
}

// improve is number 2 of Search. It reports whether anything got better.
func improve(s Scorer, choices [][]Nodes, p Placement) bool {
	start := s.Score(p)
	most := start
	for i := range p {
		most = move(s, choices[i], p, i, most)
	}
	for i := range p {
		for j := range i {
			if p[i] == p[j] || !slices.Contains(choices[i], p[j]) || !slices.Contains(choices[j], p[i]) {
				continue
			}
			p[i], p[j] = p[j], p[i]
			if score := s.Score(p); score > most+better {
				most = score
			} else {
				p[i], p[j] = p[j], p[i]
			}
		}
	}
	return most > start+better
}
