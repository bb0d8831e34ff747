// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"homenode/internal/action"
	"homenode/internal/unit"
)

// decide gives workload i its reason, unless it has one.
func (r *round) decide(i int, why action.Reason) action.Reason {
	why.Workload = r.w.Workloads[i].ID
	why.Numbers = append(r.numbers(i), why.Numbers...)
	if r.reasons[i].Rule == "" {
		r.reasons[i] = why
	}
	return why
}

// moves is the number of VMs that a plan moves.
func moves(n int) action.Number { return action.Counted("moves", float64(n), "workloads") }

// numbers are the figures that rules use.
func (r *round) numbers(i int) []action.Number {
	f, vm := &r.facts[i], &r.vms[i]
	says := vm.Look.Says
	estimate := func(name string, v, limit unit.Opt[float64], of string) action.Number {
		x, ok := v.Get()
		if !ok {
			return action.Number{Name: name, Value: unit.UnknownValue[float64]("not counted"), Limit: limit, Unit: of}
		}
		return action.Number{Name: name, Value: unit.Estimated(x, "counters"), Limit: limit, Unit: of}
	}
	limit := unit.Some(HurtLimit)
	return []action.Number{
		{Name: "cpus", Value: unit.Estimated(float64(f.cpus), "tasks, quota"), Unit: "cpus"},
		{Name: "memory", Value: unit.Estimated(f.bytes, "sum by node"), Unit: "bytes"},
		estimate("hurt_by_sharing", says.Slowdowns.Hurt, limit, "ratio"),
		estimate("harm_by_sharing", says.Slowdowns.Harm, limit, "ratio"),
		estimate("slower_when_remote", says.Slowdowns.Remote, limit, "ratio"),
		estimate("certain", says.Certain, unit.None[float64](), "ratio"),
		estimate(string(r.cfg.Metric), vm.Pace.Now, unit.None[float64](), ""),
		estimate("expected_"+string(r.cfg.Metric), f.expected, unit.None[float64](), ""),
		estimate("deviation", f.deviates, unit.Some(r.cfg.Threshold), "ratio"),
	}
}

// kind is "sensitive rabbit (unknown)".
func (r *round) kind(i int) string {
	text := string(r.classOf(i))
	if r.sensitive(i) {
		text = "sensitive " + text
	}
	if r.vms[i].Look.Says.Class == Unknown {
		text += " (unknown)"
	}
	return text
}

// explain gives a reason to each workload that has none yet.
func (r *round) explain() []action.Reason {
	for i := range r.reasons {
		switch vm := &r.vms[i]; {
		case r.reasons[i].Rule != "":
		case vm.Settling:
			r.decide(i, action.Reason{Rule: "animal.keep.settling"})
		case r.facts[i].spins:
			r.decide(i, action.Reason{Rule: "animal.keep.spin"})
		default:
			r.decide(i, action.Reason{Rule: "animal.keep", Detail: r.kind(i), Nodes: vm.Nodes})
		}
	}
	return r.reasons
}
