// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// number is a figure of a reason, with its limit.
func number(name string, v unit.Value[float64], limit float64, of string) action.Number {
	return action.Number{Name: name, Value: v, Limit: unit.Some(limit), Unit: of}
}

// figure is a figure without a limit.
func figure(name string, v unit.Value[float64], of string) action.Number {
	return action.Number{Name: name, Value: v, Unit: of}
}

// derived is a figure that this package computed from others.
func derived(v float64, ok bool, from string) unit.Value[float64] {
	if !ok {
		return unit.UnknownValue[float64](from)
	}
	return unit.Estimated(v, from)
}

// ratio keeps the source of a ratio.
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

// demandValue is the smoothed CPU use.
func (l *load) demandValue() unit.Value[float64] {
	v, ok := l.Demand.Get()
	return derived(v, ok, "smoothed CPU use")
}

// evidence lists the figures by which a candidate is judged.
func (l *load) evidence() []action.Number {
	return []action.Number{l.localNumber(), figure("cpu_demand", l.demandValue(), "cpus"), figure("quota", l.Quota, "cpus")}
}

// until is the window before which a workload is left alone.
func (m *Memory) until() action.Number {
	return action.Counted("until", float64(m.NotBefore), "window")
}

// windows is a number of windows.
func windows(name string, n uint64) action.Number {
	return action.Counted(name, float64(n), "windows")
}
