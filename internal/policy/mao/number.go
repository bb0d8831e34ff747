// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// number is a figure of a reason, with the limit it was held against.
func number(name string, v unit.Value[float64], limit float64, of string) action.Number {
	return action.Number{Name: name, Value: v, Limit: unit.Some(limit), Unit: of}
}

// figure is a figure without a limit.
func figure(name string, v unit.Value[float64], of string) action.Number {
	return action.Number{Name: name, Value: v, Unit: of}
}

// derived is a figure this package made from others.
func derived(v float64, ok bool, from string) unit.Value[float64] {
	if !ok {
		return unit.UnknownValue[float64](from)
	}
	return unit.Estimated(v, from)
}

// ratio keeps how a ratio is known.
func ratio(v unit.Value[unit.Ratio]) unit.Value[float64] {
	x, ok := v.Get()
	if !ok {
		return unit.UnknownValue[float64](v.From)
	}
	return unit.ValueOf(float64(x), v.How, v.From)
}

// localNumber is the local access ratio against its target.
func (l *load) localNumber() action.Number {
	return number("local_access_ratio", ratio(window.LocalAccessRatio(l.Workload)), float64(l.target), "ratio")
}

// localNumber is that of a load, many times a round: where it comes from is the same words
// again and again.
func (r *round) localNumber(l *load) action.Number {
	local, ok := l.local.Get()
	if all, counted := l.reads.Get(); !ok || !counted || !(all > 0) {
		return l.localNumber()
	}
	if r.said == "" || r.saidLocal != l.LocalLoads.From || r.saidRemote != l.RemoteLoads.From {
		r.saidLocal, r.saidRemote = l.LocalLoads.From, l.RemoteLoads.From
		r.said = r.saidLocal + ", " + r.saidRemote
	}
	v := unit.ValueOf(float64(local), unit.Weakest(l.LocalLoads.How, l.RemoteLoads.How), r.said)
	return number("local_access_ratio", v, float64(l.target), "ratio")
}

// slab gives numbers their place in one slice for many reasons.
func (r *round) slab(n int) []action.Number { return cut(&r.numbers, n, numbersAtOnce) }

// numbersAtOnce is those of some dozen reasons: more keep others in memory for longer.
const numbersAtOnce = 64

// demandValue is the smoothed CPU use.
func (l *load) demandValue() unit.Value[float64] {
	v, ok := l.Demand.Get()
	return derived(v, ok, "smoothed CPU use")
}
