// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"strings"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Sum is a way in a sentence: what was expected, and what it took.
func (w Way) Sum() string {
	if w.Order == "" {
		return ""
	}
	if len(w.Orders) == 0 {
		return "cpus-first: how local it was before is unknown, so nothing can be expected"
	}
	e := w.estimate()
	text := fmt.Sprintf("%s: %v to move at %v/s (%v: %s), %v expected, windows at least %v local",
		w.Order, w.Bytes, unit.Bytes(w.Rate.Or(0)), w.Rate.How, w.Rate.From, e.Home, e.Least)
	if e.Below > 0 {
		text += fmt.Sprintf(", worse than before for up to %v", e.Below)
	}
	if w.Others > 0 {
		text += fmt.Sprintf("; %v of others may move first", w.Others)
	}
	if w.Over {
		text += fmt.Sprintf("; it took %v and moved %v", w.Took, w.Moved)
		if w.Worst > 0 {
			text += fmt.Sprintf(", worse for %v", w.Worst)
		}
	}
	return text
}

// NotTaken are the orders that were not taken, and why not.
func (w Way) NotTaken() (lines []string) {
	for _, e := range w.Orders {
		if e.Order != w.Order {
			lines = append(lines, string(e.Order)+": "+e.String())
		}
	}
	return lines
}

// String is "home in 20s, windows at least 31.0% local, worse than before for 10s".
func (e Estimate) String() string {
	text := fmt.Sprintf("home in %v, windows at least %v local", e.Home, e.Least)
	if e.Below == 0 {
		return text + ", no window worse than before"
	}
	return text + fmt.Sprintf(", worse than before for %v", e.Below)
}

// numbers are the figures of a way.
func (w Way) numbers() []action.Number {
	e := w.estimate()
	before := unit.ValueOf(float64(w.Before.Or(0)), w.Before.How, w.Before.From)
	if !w.Before.Known() {
		before = unit.UnknownValue[float64](w.Before.From)
	}
	estimated := func(v float64) unit.Value[float64] {
		return unit.Estimated(v, "CPU × page share by node and the mover's rate")
	}
	numbers := []action.Number{
		{Name: "local_before", Value: before, Unit: "ratio"},
		{Name: "bytes_to_move", Value: unit.Measured(float64(w.Bytes), "pages by node"), Unit: "bytes"},
		{Name: "mover_rate", Value: w.Rate, Unit: "bytes/s"},
		{Name: "expected_home", Value: estimated(e.Home.Seconds()), Unit: "s"},
		{Name: "expected_least_local", Value: estimated(float64(e.Least)), Unit: "ratio"},
		{Name: "expected_below", Value: estimated(e.Below.Seconds()), Unit: "s"},
	}
	if w.Over {
		numbers = append(numbers,
			action.Number{Name: "took", Value: unit.Measured(w.Took.Seconds(), "windows"), Unit: "s"},
			action.Number{Name: "moved", Value: unit.Measured(float64(w.Moved), "moves"), Unit: "bytes"},
			action.Number{Name: "was_below", Value: unit.Measured(w.Worst.Seconds(), "windows"), Unit: "s"})
	}
	return numbers
}

// alternatives are the orders, as a decision log has placements.
func (w Way) alternatives(nodes set.NodeSet) (all []action.Alternative) {
	for _, e := range w.Orders {
		a := action.Alternative{Nodes: nodes, Detail: string(e.Order) + ": " + e.String(), Chosen: e.Order == w.Order}
		if e.Below > 0 {
			a.Code = "worse"
		}
		all = append(all, a)
	}
	return all
}

// same says that there is nothing new to tell of a way.
func (w Way) same(now Way) bool {
	return w.Order == now.Order && w.Over == now.Over && w.measured() == now.measured()
}

// News are the decisions of a Step on ways, for a log: one that was chosen or revised, one
// that is over, and binds that were refused or undone for it.
func News(before, after State, told []action.Outcome) (news []action.Reason) {
	for i := range after.Jobs {
		j := &after.Jobs[i]
		was, _ := before.Job(j.Workload)
		if len(j.Way.Orders) == 0 || j.Stage == StageRestoring || was.Nodes == j.Nodes && was.Way.same(j.Way) {
			continue
		}
		rule := "actuate.way"
		if j.Way.Over {
			rule = "actuate.way.home"
		}
		news = append(news, action.Reason{Rule: rule, Workload: j.Workload, Summary: j.Way.Sum(), Numbers: j.Way.numbers(), Alternatives: j.Way.alternatives(j.Nodes)})
	}
	for _, o := range told {
		if strings.HasPrefix(o.Step.Reason.Rule, "actuate.") {
			news = append(news, o.Step.Reason)
		}
	}
	return news
}
