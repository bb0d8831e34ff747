// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"fmt"
	"math"
	"slices"

	"homenode/internal/policy/vmmap"
	"homenode/internal/render"
)

// heldOut are expected hurts, each by constants from the other programs. choose returns the
// constants that are not fitted by fit.
func heldOut(all []program, choose func(others []program) vmmap.Solo) (hurt []float64) {
	for i, p := range all {
		others := slices.Delete(slices.Clone(all), i, i+1)
		is, _, _ := fit(choose(others), others).Expect(p.sample, dram)
		hurt = append(hurt, is.Expected)
	}
	return hurt
}

// shapes are values of Power and Lost.
func shapes() (all []vmmap.Solo) {
	for _, power := range []float64{0, 0.5, 1, 1.5, 2} {
		for _, lost := range []float64{0, 0.05, 0.1, 0.15, 0.2} {
			f := vmmap.DefaultSolo()
			f.Power, f.Lost = power, lost
			all = append(all, f)
		}
	}
	return all
}

// nearest is the shape with the least mean error on programs.
func nearest(on []program) (best vmmap.Solo) {
	least := math.Inf(1)
	for _, f := range shapes() {
		f, off := fit(f, on), 0.0
		for _, p := range on {
			is, _, _ := f.Expect(p.sample, dram)
			off += math.Abs(is.Expected - math.Max(0, p.hurt))
		}
		if off < least {
			best, least = f, off
		}
	}
	return best
}

// ranking says how much of the rank correlation hangs on constants that were chosen with
// all programs in view, and how well repeats of the measurement rank.
func (d Data) ranking(all []program, label []float64) []string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, f := range shapes() {
		r := spearman(heldOut(all, func([]program) vmmap.Solo { return f }), label)
		low, high = math.Min(low, r), math.Max(high, r)
	}
	out := []string{
		fmt.Sprintf("By Power 0 to 2 and Lost 0 to 0.2 (%d pairs): %s to %s. Both chosen on the other programs by the least mean error: %s.", len(shapes()), render.Ratio(low), render.Ratio(high), render.Ratio(spearman(heldOut(all, nearest), label))),
	}
	noTraffic := slices.Clone(all)
	for i := range noTraffic {
		noTraffic[i].sample.Traffic = vmmap.Sample{}.Traffic
	}
	out = append(out, fmt.Sprintf("With misses in place of traffic: %s.", render.Ratio(spearman(heldOut(noTraffic, func([]program) vmmap.Solo { return vmmap.DefaultSolo() }), label))))
	if again, ok := d.repeated(all); ok {
		out = append(out, fmt.Sprintf("Slowdowns of other runs of the same programs rank at %s against these.", render.Ratio(spearman(again, label))))
	}
	return out
}

// repeated are the slowdowns of other runs.
func (d Data) repeated(all []program) (hurt []float64, ok bool) {
	ipc := func(name, version, threads string) float64 {
		for _, r := range d.Solo {
			if r["program"] == name && r["machine"] == "M16" && r["version"] == version && r["threads"] == threads {
				v, _ := r.number("ipc")
				return v
			}
		}
		return 0
	}
	for _, p := range all {
		few, many := ipc(p.name, "73f40e4", "8"), ipc(p.name, "649a0a7", "16")
		if few <= 0 || many <= 0 {
			return nil, false
		}
		hurt = append(hurt, few/many-1)
	}
	return hurt, true
}
