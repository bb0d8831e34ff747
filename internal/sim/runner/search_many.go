// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"math"
	"slices"

	"homenode/internal/sim/memsys"
)

// manyNodes is the number of nodes from which on a search over all placements is too
// expensive: with 20 workloads on 36 nodes each score is a steady state of 300 loads, as
// long as workloads that are not yet placed may be anywhere.
const manyNodes = 8

// bestPlaced is the best affordable placement: Search's on few nodes. On many nodes,
// workloads are placed one after the other, the heaviest first, each where it scores best
// beside only those before it; there is no improvement afterwards. It ends between two of
// them once stop says so; the rest is then placed nowhere, as the result is not used.
func bestPlaced(sys *memsys.System, here []Contender, stop func() bool) Placement {
	if len(sys.Nodes) <= manyNodes {
		return Search(NewOracle(sys, here))
	}
	order, weights := make([]int, len(here)), NewOracle(sys, here).Weights()
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	best, placed, at := make(Placement, len(here)), make([]Contender, 0, len(here)), make(Placement, 0, len(here))
	for _, i := range order {
		if stop != nil && stop() {
			break
		}
		placed = append(placed, here[i])
		o := NewOracle(sys, placed)
		last := len(at)
		choices := o.Choices()[last]
		at = append(at, choices[len(choices)-1])
		move(o, choices, at, last, math.Inf(-1))
		best[i] = at[last]
	}
	return best
}
