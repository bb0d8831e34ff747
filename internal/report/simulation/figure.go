// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// figure is a metric in words. sim/scenario decides what it covers, and how arms compare by
// it.
type figure struct {
	scenario.Metric
	title string
	print func(float64) string
}

// judged reports whether the best is marked. IPC's is not: threads that spin retire
// instructions too.
func (f figure) judged() bool { return f.Name != "ipc" }

// wholeRun is added to figures that are counted from the start, and not only after the
// warm-up.
const wholeRun = ", whole run"

// figureOf gives a metric its words; an unknown metric is shown by its name.
func figureOf(m scenario.Metric, seconds float64) figure {
	switch m.Name {
	case scenario.Latency:
		return figure{m, "latency", render.Seconds}
	case "p99":
		return figure{m, "p99 latency", render.Seconds}
	case scenario.CPUPerOp:
		return figure{m, "CPU per operation", render.Seconds}
	case scenario.LocalRatio:
		return figure{m, "local ratio", render.Ratio}
	case "ipc":
		return figure{m, "IPC", render.Number}
	case scenario.Throughput:
		return figure{m, "throughput", func(v float64) string { return perSecond(v, seconds) }}
	case "unbind_ratio":
		return figure{m, "unbind ratio", render.Ratio}
	case "moved_bytes":
		return figure{m, "moved" + wholeRun, render.Bytes}
	case "cpu_seconds":
		return figure{m, "CPU time", render.Seconds}
	case "binds", "unbinds", "refused":
		return figure{m, m.Name + wholeRun, render.Whole}
	}
	return figure{m, m.Name, render.Number}
}

// figureNamed finds a figure by its metric's name; an unknown name has no figure.
func (v scenarioView) figureNamed(name string) figure {
	m, ok := scenario.MetricOf(name)
	if !ok {
		m.Name = name
	}
	return figureOf(m, v.Seconds)
}

// serviceFigures are the columns of a service's table.
func (v scenarioView) serviceFigures() (all []figure) {
	for _, m := range scenario.Metrics() {
		if m.OfServices() {
			all = append(all, figureOf(m, v.Seconds))
		}
	}
	return all
}

// armFigures are the columns of the arms' table: local ratio, and figures that services do
// not have.
func (v scenarioView) armFigures() []figure {
	all := []figure{v.figureNamed(scenario.LocalRatio)}
	for _, m := range scenario.Metrics() {
		if !m.OfServices() {
			all = append(all, figureOf(m, v.Seconds))
		}
	}
	return all
}

// droppedShare is the dropped share of a service's requests; arms are not compared by it.
func droppedShare(a scenario.Outcome, service string) scenario.Spread {
	var shares []float64
	for _, r := range a.Runs {
		for _, s := range r.Services {
			if s.Name == service && s.Asked > 0 {
				shares = append(shares, s.Dropped/s.Asked)
			}
		}
	}
	return scenario.SpreadOf(shares)
}

// above is for figures in which 0 means that there is none.
func above(v float64) (float64, bool) { return v, v > 0 }

// alike is a relative difference that the printed figures do not show.
const alike = 0.0005

// best marks the best of the medians and those that are alike; none if all are alike.
func best(medians []scenario.Spread, less bool) []bool {
	marks, top, known, marked := make([]bool, len(medians)), math.NaN(), 0, 0
	for _, s := range medians {
		if s.N > 0 && (math.IsNaN(top) || less && s.Median < top || !less && s.Median > top) {
			top = s.Median
		}
	}
	for i, s := range medians {
		if s.N == 0 {
			continue
		}
		known++
		if math.Abs(s.Median-top) <= alike*math.Abs(top) {
			marks[i] = true
			marked++
		}
	}
	if marked == known {
		return make([]bool, len(medians))
	}
	return marks
}
