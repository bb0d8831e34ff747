// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"strings"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Reason is a way as a reason: the expectation, the result, and the orders that were
// not taken.
func (w Way) Reason(workload string, nodes set.NodeSet) action.Reason {
	why := action.Reason{Rule: "actuate.way", Workload: workload, Detail: string(w.Order)}
	if len(w.Orders) == 0 {
		why.Rule = "actuate.way.unexpected"
		return why
	}
	if w.Over {
		why.Rule = "actuate.way.home"
	}
	why.Numbers, why.Alternatives = w.numbers(), w.alternatives(nodes)
	return why
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
	if w.Others > 0 {
		numbers = append(numbers, action.Number{Name: "others_first", Value: estimated(float64(w.Others)), Unit: "bytes"})
	}
	if w.Over {
		numbers = append(numbers,
			action.Number{Name: "took", Value: unit.Measured(w.Took.Seconds(), "windows"), Unit: "s"},
			action.Number{Name: "moved", Value: unit.Measured(float64(w.Moved), "moves"), Unit: "bytes"},
			action.Number{Name: "was_below", Value: unit.Measured(w.Worst.Seconds(), "windows"), Unit: "s"})
	}
	return numbers
}

// movedSoFar is the memory moved on a way that is not over.
func (w Way) movedSoFar() action.Number {
	return action.Number{Name: "moved_so_far", Value: unit.Measured(float64(w.Moved), "moves"), Limit: unit.Some(float64(w.Bytes)), Unit: "bytes"}
}

// alternatives are the orders, as the decision log has placements.
func (w Way) alternatives(nodes set.NodeSet) (all []action.Alternative) {
	for _, e := range w.Orders {
		a := action.Alternative{Name: string(e.Order), Nodes: nodes, Chosen: e.Order == w.Order, Figures: []action.Figure{
			{Name: "home_s", Value: e.Home.Seconds()}, {Name: "least_local", Value: float64(e.Least)}, {Name: "below_s", Value: e.Below.Seconds()},
		}}
		if e.Below > 0 {
			a.Code = "worse"
		}
		all = append(all, a)
	}
	return all
}

// same says that there is nothing new to report of a way.
func (w Way) same(now Way) bool {
	return w.Order == now.Order && w.Over == now.Over && w.measured() == now.measured()
}

// News are a Step's decisions on ways, for a log: a way that was chosen or revised, one
// that is over, and binds that were refused or undone because of it.
func News(before, after State, outcomes []action.Outcome) (news []action.Reason) {
	for i := range after.Jobs {
		j := &after.Jobs[i]
		was, _ := before.Job(j.Workload)
		if len(j.Way.Orders) == 0 || j.Stage == StageRestoring || was.Nodes == j.Nodes && was.Way.same(j.Way) {
			continue
		}
		news = append(news, j.Way.Reason(j.Workload, j.Nodes))
	}
	for _, o := range outcomes {
		if strings.HasPrefix(o.Step.Reason.Rule, "actuate.") {
			news = append(news, o.Step.Reason)
		}
	}
	return news
}
