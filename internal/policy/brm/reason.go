// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"homenode/internal/action"
	"homenode/internal/unit"
)

// figures are the numbers of each reason.
const figures = 8

// explain makes one reason for each workload, and gives actions theirs. Sentences are
// fixed and the figures beside them: 2,000 workloads have theirs in a period.
func (r *round) explain() []action.Reason {
	reasons := make([]action.Reason, len(r.loads))
	all := make([]action.Number, 0, figures*len(r.loads))
	for i := range r.loads {
		reasons[i], all = r.reason(i, all)
	}
	for i := range r.actions {
		if k, ok := r.w.WorkloadIndex(r.actions[i].Workload); ok {
			r.actions[i].Reason = reasons[k]
		}
	}
	return reasons
}

// explainActions gives actions their reasons, and makes no others. A workload's actions
// follow each other mostly.
func (r *round) explainActions() {
	last, reason := -1, action.Reason{}
	for i := range r.actions {
		k, ok := r.w.WorkloadIndex(r.actions[i].Workload)
		if !ok {
			continue
		}
		if k != last {
			last = k
			reason, _ = r.reason(k, nil)
		}
		r.actions[i].Reason = reason
	}
}

// reason is of workload i; its numbers are appended to all.
func (r *round) reason(i int, all []action.Number) (action.Reason, []action.Number) {
	l, m := &r.loads[i], &r.next.Workloads[i]
	rule, summary := r.rule(l, m)
	reason := action.Reason{Rule: rule, Workload: m.Workload, Summary: summary}
	if l.count > 0 {
		from := len(all)
		all = r.numbers(all, l)
		reason.Numbers = all[from:len(all):len(all)]
	}
	return reason, all
}

func (r *round) rule(l *load, m *Memory) (rule, summary string) {
	switch {
	case l.count == 0:
		return "brm.no-threads", "nobody reads its threads one by one"
	case l.released > 0:
		return "brm.release", "its threads are given back what they had"
	case l.brought > 0:
		return "brm.home", "nothing came of the trial: its threads go back to where they were"
	case l.moved > 0:
		return "brm.bias", "threads go to the node where the penalty was least"
	case l.explored > 0 && l.trial:
		return "brm.trial", "it waits for memory: threads try other nodes, to see whether that matters"
	case l.explored > 0:
		return "brm.explore", "threads go to see nodes that they do not know"
	case l.swapped > 0:
		return "brm.swap", "threads change places with others that gain more by it than they lose"
	case l.full > 0:
		return "brm.full", "where its threads would go no CPU is as free as theirs, and nobody gains by changing places"
	case l.pinned == l.count && (l.candidate || !l.verdict.tagged):
		return "brm.pinned", "somebody else has tied its threads to CPUs: they are left alone"
	case l.candidate:
		return "brm.stay", r.stays(l)
	}
	return r.leftAlone(l, m)
}

func (r *round) stays(l *load) string {
	switch _, ok := l.mean.get(); {
	case !ok:
		return "its threads' penalties are unknown: they stay where they are"
	case l.knows == 0:
		return "its threads know no other node yet: they stay for now"
	}
	return "its threads are where the penalty is least, or their draw was to stay"
}

func (r *round) leftAlone(l *load, m *Memory) (rule, summary string) {
	stall, ok := l.verdict.stall.Get()
	switch {
	case l.verdict.tagged:
		return "brm.not-sensitive", "its operator says that it does not mind where it runs"
	case !r.cfg.Infer:
		return "brm.not-tagged", "nobody says that where it runs matters, and nobody is to infer it"
	case !ok:
		return "brm.unknown", "nobody says whether where it runs matters, and its threads' waits are not counted"
	case stall < float64(r.cfg.MinStall):
		return "brm.not-sensitive", "it hardly waits for memory"
	case l.trial:
		return "brm.trial", "it waits for memory: a trial is under way"
	case m.Verdict == Insensitive:
		return "brm.not-sensitive", "it waits for memory, but on one node as on another"
	}
	return "brm.unknown", "whether where it runs matters is not known yet"
}

// numbers are what the rules go by.
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

// known makes a figure of the usual pair.
func known(from string) func(v float64, ok bool) unit.Value[float64] {
	return func(v float64, ok bool) unit.Value[float64] {
		if !ok {
			return unit.UnknownValue[float64](from + ": not counted")
		}
		return unit.Estimated(v, from)
	}
}
