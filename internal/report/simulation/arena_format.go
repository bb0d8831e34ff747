// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"homenode/internal/render"
	"homenode/internal/sim/arena"
)

// shown is a figure, or a mark that there is none.
func shown(e arena.Estimate, print func(float64) string) string {
	if e.N == 0 {
		return "none"
	}
	return print(e.Median)
}

// interval is "1.02–1.08", or a mark that there is none.
func interval(e arena.Estimate) string {
	if !e.CI.Known() {
		return unknown
	}
	return render.Range(render.Times(e.CI.Low), render.Times(e.CI.High))
}
