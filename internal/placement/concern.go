// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"homenode/internal/machine"
	"homenode/internal/set"
)

// Concern is one resource that a placement may share or spread over (Funston et al. §3):
// its score, and what a score means. Exactly one of Units and Weigh is set.
//
// To add one: a file with a function that returns it, and a line in Concerns.
type Concern struct {
	Name string `json:"name"` // "node"
	Help string `json:"help"` // what the score counts, for a person
	Unit string `json:"unit"` // "nodes", "bytes/s"
	// Cost: a lower score leaves more of the machine to others.
	Cost bool `json:"affects_cost"`
	// LowerHelps: some workloads are faster with a lower score, so none dominates.
	LowerHelps bool `json:"lower_can_help"`

	// Units are the instances of a counted resource; the score is how many are in use,
	// by as many vCPUs each.
	Units func(machine.Machine) []set.CPUSet `json:"-"`
	// Weigh makes the score of a joint resource: of a set of nodes it is the sum of their
	// own weights and those of their pairs. False: the machine does not tell.
	Weigh func(m machine.Machine, nodes []int, links *Links) (Weights, bool) `json:"-"`
}

// Weights are aligned with the nodes that were asked for; Pair is symmetric.
type Weights struct {
	Node []int64
	Pair [][]int64
}

// Of is the score of a set of nodes, given by index.
func (w Weights) Of(nodes []int) (score int64) {
	for n, i := range nodes {
		score += w.Node[i]
		for _, j := range nodes[:n] {
			score += w.Pair[i][j]
		}
	}
	return score
}

func newWeights(n int) Weights {
	w := Weights{Node: make([]int64, n), Pair: make([][]int64, n)}
	for i := range w.Pair {
		w.Pair[i] = make([]int64, n)
	}
	return w
}

// Concerns are those of the papers' machines, from the smallest resource to the largest,
// and then the joint ones. devices adds the locality of this kind of device.
func Concerns(devices machine.DeviceClass) []Concern {
	all := []Concern{cores(), l2s(), llcs(), nodes(), interconnect()}
	if devices != "" {
		all = append(all, deviceLocality(devices))
	}
	return all
}
