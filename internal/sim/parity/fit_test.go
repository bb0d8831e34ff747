// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"

	"homenode/internal/machine"
)

// FitOn computes the constants from the fitted scenarios alone.
//
//  1. The kernel's share is the mean, over the four, of the time outside user mode.
//  2. Then each kind's cycles are found by bisection: larger constants give more cycles
//     per operation. The chase comes before rao, whose steps are chases.
func FitOn(shapes map[string]machine.Shape, r *Record) (Fit, error) {
	var f Fit
	kinds := map[string]Scenario{}
	for _, s := range Scenarios() {
		if s.Fitted {
			kinds[s.Loads[0].Kind()] = s
		}
	}
	if len(kinds) != 4 {
		return Fit{}, fmt.Errorf("fit: %d kinds are fitted, want 4", len(kinds))
	}
	order := []struct {
		kind string
		of   *float64
	}{{"chase", &f.Chase}, {"stream", &f.Line}, {"rao", &f.Add}, {"server", &f.Unit}}
	for _, k := range order { // 1
		m, ok := r.Of(kinds[k.kind])
		if !ok {
			return Fit{}, fmt.Errorf("fit: %s was not measured", kinds[k.kind].Name)
		}
		user, _, _ := m.Loads[0].Median(func(r Run) float64 { return r.UserShare })
		f.Kernel += (1 - user) / 4
	}
	for _, k := range order { // 2
		s := kinds[k.kind]
		m, _ := r.Of(s)
		want, _, _ := m.Loads[0].Median(cyclesOf)
		if err := bisect(shapes[s.Shape], s, &f, k.of, want); err != nil {
			return Fit{}, err
		}
	}
	return f, nil
}

func cyclesOf(r Run) float64 { return r.Cycles }

// bisect sets, in f, the constant that of points to.
func bisect(shape machine.Shape, s Scenario, f *Fit, of *float64, want float64) error {
	low, high := 0.0, want
	for range 40 {
		*of = (low + high) / 2
		got, err := Simulate(shape, s, *f)
		if err != nil {
			return err
		}
		if got[0].Cycles > want {
			high = *of
		} else {
			low = *of
		}
	}
	return nil
}
