// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"homenode/internal/action"
	"homenode/internal/unit"
)

// figures is the number of figures in each reason.
const figures = 8

// explain makes one reason for each workload, and gives actions their reasons.
func (r *round) explain() []action.Reason {
	reasons := make([]action.Reason, len(r.loads))
	all := make([]action.Number, 0, figures*len(r.loads)) // of 2,000 workloads in a period
	for i := range r.loads {
		l, m := &r.loads[i], &r.next.Workloads[i]
		reasons[i] = action.Reason{Rule: r.rule(l, m), Workload: m.Workload}
		if l.count > 0 {
			from := len(all)
			all = r.numbers(all, l)
			reasons[i].Numbers = all[from:len(all):len(all)]
		}
	}
	for i := range r.actions {
		if k, ok := r.w.WorkloadIndex(r.actions[i].Workload); ok {
			r.actions[i].Reason = reasons[k]
		}
	}
	return reasons
}

func (r *round) rule(l *load, m *Memory) string {
	switch {
	case l.count == 0:
		return "brm.no-threads"
	case l.released > 0:
		return "brm.release"
	case l.brought > 0:
		return "brm.home"
	case l.moved > 0:
		return "brm.bias"
	case l.explored > 0 && l.trial:
		return "brm.trial"
	case l.explored > 0:
		return "brm.explore"
	case l.swapped > 0:
		return "brm.swap"
	case l.full > 0:
		return "brm.full"
	case l.pinned == l.count && (l.candidate || !l.verdict.tagged):
		return "brm.pinned"
	case l.candidate:
		return "brm.stay"
	}
	return r.leftAlone(l, m)
}

func (r *round) leftAlone(l *load, m *Memory) string {
	stall, ok := l.verdict.stall.Get()
	switch {
	case l.verdict.tagged:
		return "brm.tagged"
	case !r.cfg.Infer:
		return "brm.not-tagged"
	case ok && stall < float64(r.cfg.MinStall):
		return "brm.not-sensitive"
	case ok && l.trial:
		return "brm.trial"
	case ok && m.Verdict == Insensitive:
		return "brm.not-sensitive"
	}
	return "brm.unknown"
}

// numbers are the figures that the rules use.
func (r *round) numbers(to []action.Number, l *load) []action.Number {
	return append(to,
		action.Number{Name: "system_penalty", Value: known("Σ W/A of threads / their number")(r.system.get()), Unit: "cycles"},
		action.Number{Name: "workload_penalty", Value: known("Σ W/A of its threads / their number")(l.mean.get()), Unit: "cycles"},
		action.Number{Name: "stall_share", Value: known("W / cycles")(l.verdict.stall.Get()), Limit: unit.Some(float64(r.cfg.MinStall)), Unit: "ratio"},
		action.Number{Name: "node_response", Value: known("penalty by node, most / least - 1")(l.verdict.response.Get()), Unit: "ratio"},
		action.Number{Name: "gain", Value: known("stall share × response")(l.verdict.gain.Get()), Limit: unit.Some(float64(r.cfg.MinGain)), Unit: "ratio"},
		action.Number{Name: "threads", Value: unit.Measured(float64(l.count), "window"), Unit: "threads"},
		action.Number{Name: "pinned", Value: unit.Measured(float64(l.pinned), "window"), Unit: "threads"},
		action.Number{Name: "moved", Value: unit.Measured(float64(l.moved+l.explored+l.brought+l.swapped), "this step"), Unit: "threads"},
	)
}

// known makes a figure from a value and whether it is known.
func known(from string) func(v float64, ok bool) unit.Value[float64] {
	return func(v float64, ok bool) unit.Value[float64] {
		if !ok {
			return unit.UnknownValue[float64](from + ": not counted")
		}
		return unit.Estimated(v, from)
	}
}
