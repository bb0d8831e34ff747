// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Arms that a report treats differently.
const (
	ours      = "homenode"       // the arm that is judged
	ceiling   = "by-hand"        // labelled, and never the best of a column
	balancing = "numa-balancing" // its mover's time is the tasks' own
)

const (
	notApplicable = "not applicable"
	notCountable  = "not countable" // the notes say why
)

// grid is a table: columns, and rows in groups.
type grid struct {
	Caption string
	Heads   []head
	Groups  []group
}

// head is a column's name on two lines, and in full if there is room.
type head struct{ Top, Bottom, Full string }

func (h head) Long() string {
	if h.Full != "" {
		return h.Full
	}
	return strings.TrimSpace(h.Top + " " + h.Bottom)
}

type group struct {
	Title string // of the service; "" where there is one group
	Kind  string
	Rows  []armRow
	Span  int // columns, with the arm's
}

type armRow struct {
	Title         string
	Ours, Ceiling bool
	NotApplicable bool // has no cells
	Span          int  // of the cells
	Cells         []render.Cell
}

// armColumn is how one figure is taken from an arm.
type armColumn struct {
	head
	text   func(experiment.Arm) string
	value  func(experiment.Arm) unit.Opt[float64] // nil: has no best
	better int                                    // +1 more, −1 less
}

func heads(columns []armColumn) []head {
	out := make([]head, len(columns))
	for i, c := range columns {
		out[i] = c.head
	}
	return out
}

// armRows fills the columns for every arm.
func armRows(arms []experiment.Arm, columns []armColumn) []armRow {
	out := make([]armRow, len(arms))
	for i, a := range arms {
		out[i] = armRow{Title: a.Title, Ours: a.Name == ours, Ceiling: a.Name == ceiling, NotApplicable: !a.Applicable, Span: len(columns)}
		for _, c := range columns {
			if a.Applicable {
				out[i].Cells = append(out[i].Cells, render.Cell{Text: c.text(a)})
			}
		}
	}
	for i, c := range columns {
		markBest(out, arms, c, i)
	}
	return out
}

// markBest marks the best arm of a column, and arms with the same printed figure. A
// column in which fewer than two arms have a figure has no best.
func markBest(out []armRow, arms []experiment.Arm, c armColumn, i int) {
	if c.value == nil {
		return
	}
	best, text, candidates := 0.0, "", []int{}
	for k, a := range arms {
		v, ok := c.value(a).Get()
		if !ok || !a.Applicable || a.Name == ceiling {
			continue
		}
		if len(candidates) == 0 || (v-best)*float64(c.better) > 0 {
			best, text = v, out[k].Cells[i].Text
		}
		candidates = append(candidates, k)
	}
	for _, k := range candidates {
		out[k].Cells[i].Best = len(candidates) > 1 && out[k].Cells[i].Text == text
	}
}

// armGrid is locality, and the cost of moving.
func armGrid(c experiment.Comparison) grid {
	columns := armColumns()
	return grid{
		Caption: "Local access ratio of the sensitive services, and what moving cost",
		Heads:   heads(columns),
		Groups:  []group{{Rows: armRows(c.Arms, columns)}},
	}
}

func armColumns() []armColumn {
	local := func(a experiment.Arm) unit.Opt[float64] { return a.LocalAccessRatio }
	return []armColumn{
		{head: head{"local access", "ratio", ""}, value: local, better: +1,
			text: func(a experiment.Arm) string { return render.Show(local(a), render.Ratio) }},
		{head: head{"of the repeats", "min–max", "min–max of the repeats"},
			text: func(a experiment.Arm) string { return minToMax(a.LocalSpread, render.Ratio) }},
		{head: head{"pages", "moved", ""}, value: costOf(func(a experiment.Arm) unit.Opt[float64] { return a.PagesMoved }), better: -1,
			text: func(a experiment.Arm) string { return render.Show(a.PagesMoved, render.Commas) }},
		{head: head{"mover CPU", "while measuring", ""}, value: costOf(func(a experiment.Arm) unit.Opt[float64] { return a.MoverCPUShare }), better: -1,
			text: func(a experiment.Arm) string { return countable(a, a.MoverCPUShare, shareOfCPU) }},
		{head: head{"mover CPU", "in all", ""}, value: costOf(func(a experiment.Arm) unit.Opt[float64] { return a.MoverCPUSeconds }), better: -1,
			text: func(a experiment.Arm) string { return countable(a, a.MoverCPUSeconds, render.Seconds) }},
	}
}

// costOf leaves out arms that moved nothing: an arm that does nothing is not the best at
// it.
func costOf(of func(experiment.Arm) unit.Opt[float64]) func(experiment.Arm) unit.Opt[float64] {
	return func(a experiment.Arm) unit.Opt[float64] {
		if a.PagesMoved.Or(1) == 0 {
			return unit.None[float64]()
		}
		return of(a)
	}
}

// countable prints the cost of a mover, or why it is not known.
func countable(a experiment.Arm, o unit.Opt[float64], print func(float64) string) string {
	if !o.Known() && a.Name == balancing {
		return notCountable
	}
	return render.Show(o, print)
}

// shareOfCPU is often small, but not nothing.
func shareOfCPU(v float64) string {
	text := render.Fixed(v*100, 2)
	if v > 0 && text == "0.00" {
		text = "< 0.01"
	}
	return text + "% of a CPU"
}

// serviceGrid has a group for every service.
func serviceGrid(c experiment.Comparison) grid {
	g := grid{Caption: "Services"}
	for _, s := range services(c) {
		columns := serviceColumns(c, s.Name)
		g.Heads = heads(columns)
		g.Groups = append(g.Groups, group{Title: s.Name, Kind: s.Kind, Rows: armRows(c.Arms, columns), Span: len(columns) + 1})
	}
	return g
}

// longer is the comparison of homenode as in the table with peers that had a longer
// warm-up; ok is false if none is stored.
func longer(c experiment.Comparison) (l experiment.Comparison, ok bool) {
	us, found := c.Arm(ours)
	if c.Long == nil || !found {
		return experiment.Comparison{}, false
	}
	return experiment.Comparison{Arms: append([]experiment.Arm{us}, c.Long.Arms...), WarmupSeconds: c.Long.WarmupSeconds}, true
}

// longGrid is their locality and throughput.
func longGrid(l experiment.Comparison) grid {
	columns := armColumns()[:1]
	for _, s := range services(l) {
		columns = append(columns, armColumn{
			head: head{s.Name, "ops", ""}, better: +1,
			value: func(a experiment.Arm) unit.Opt[float64] { return opsOf(a, s.Name) },
			text:  func(a experiment.Arm) string { return render.Show(opsOf(a, s.Name), figure) },
		})
	}
	return grid{
		Caption: "Peers after " + render.Positive(l.WarmupSeconds, modelSeconds) + " of warm-up, homenode as above (ops per model-s)",
		Heads:   heads(columns),
		Groups:  []group{{Rows: armRows(l.Arms, columns)}},
	}
}

func opsOf(a experiment.Arm, service string) unit.Opt[float64] {
	v, ok := ops(a, service)
	return unit.OptOf(v, ok)
}

// services are those of all arms, in the order of their first appearance.
func services(c experiment.Comparison) []experiment.Service {
	var out []experiment.Service
	for _, a := range c.Arms {
		for _, s := range a.Services {
			if !slices.ContainsFunc(out, func(o experiment.Service) bool { return o.Name == s.Name }) {
				out = append(out, s)
			}
		}
	}
	return out
}

func serviceColumns(c experiment.Comparison, name string) []armColumn {
	of := func(a experiment.Arm) experiment.Service { s, _ := a.Service(name); return s }
	plain := func(top, bottom string, better int, get func(experiment.Service) unit.Opt[float64], print func(float64) string) armColumn {
		value := func(a experiment.Arm) unit.Opt[float64] { return get(of(a)) }
		return armColumn{head: head{top, bottom, ""}, better: better, value: value,
			text: func(a experiment.Arm) string { return render.Show(value(a), print) }}
	}
	cpus := plain("CPUs", "used", 0, func(s experiment.Service) unit.Opt[float64] { return s.CPUs }, times)
	cpus.value = nil
	p50 := plain("latency", "p50 ms", -1, func(s experiment.Service) unit.Opt[float64] { return s.LatencyP50us }, millis)
	p99 := plain("(inform.)", "p99 ms", -1, func(s experiment.Service) unit.Opt[float64] { return s.LatencyP99us }, millis)
	p50.Full, p99.Full = "latency p50 ms (informative)", "latency p99 ms (informative)"
	return []armColumn{
		plain("ops per", "model-s", +1, func(s experiment.Service) unit.Opt[float64] { return s.OpsPerModelS }, figure),
		{head: head{"", "spread", "spread"}, text: func(a experiment.Arm) string { return plusMinus(of(a).Spread) }},
		{head: head{"×", "first", "× first arm"}, text: func(a experiment.Arm) string { return render.Show(relative(c, a, name), times) }},
		plain("cycles", "per op", -1, func(s experiment.Service) unit.Opt[float64] { return s.CyclesPerOp }, figure),
		plain("local", "ratio", +1, func(s experiment.Service) unit.Opt[float64] { return s.LocalAccessRatio }, render.Ratio),
		cpus,
		p50, p99,
	}
}

// ops is a service's throughput in an applicable arm.
func ops(a experiment.Arm, service string) (float64, bool) {
	s, ok := a.Service(service)
	v, known := s.OpsPerModelS.Get()
	return v, ok && known && a.Applicable
}

// relative is a service's throughput relative to the first arm's.
func relative(c experiment.Comparison, a experiment.Arm, service string) unit.Opt[float64] {
	base, ok := ops(c.Arms[0], service)
	v, known := ops(a, service)
	return unit.OptOf(v/base, ok && known && base > 0)
}
