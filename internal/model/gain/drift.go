// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"math"
	"slices"

	"homenode/internal/unit"
)

// tenths is in how many parts the trials are divided, for Drift.
const tenths = 10

// Drift says how far the values of a feature are from those of the trials.
type Drift struct {
	Feature string
	// Index is the population stability index: Σ (share − tenth) · ln(share / tenth). By custom 0.1 is
	// nothing, and from 0.25 on the model is to be trained anew. Unknown: too few values.
	Index unit.Opt[float64]
	Rows  int
}

// Drifted is the index from which on a model should be trained anew.
const Drifted = 0.25

// leastForDrift values are needed: with fewer, chance alone makes the index large (about
// (tenths − 1) / values).
const leastForDrift = 100

// Drift compares many services with the trials.
func (m *Model) Drift(rows []map[string]float64) []Drift {
	var all []Drift
	for _, f := range m.Features {
		counts := make([]float64, tenths)
		n := 0
		for _, row := range rows {
			v, ok := row[f.Name]
			if !ok || math.IsNaN(v) {
				continue
			}
			at, _ := slices.BinarySearch(f.Edges, v)
			counts[at]++
			n++
		}
		d := Drift{Feature: f.Name, Rows: n}
		if n >= leastForDrift {
			index := 0.0
			for _, c := range counts {
				share := max(c, 0.5) / float64(n) // none is half a row: the index stays finite
				index += (share - 1.0/tenths) * math.Log(share*tenths)
			}
			d.Index = unit.Some(index)
		}
		all = append(all, d)
	}
	return all
}
