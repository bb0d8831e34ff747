// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

// running is number 5: the VMs that have run worse than expected for long enough, the worst
// first. It makes one new configuration per window, and none while one is under way: its
// effect must be seen first.
func (r *round) running() {
	busy := slices.ContainsFunc(r.vms, func(vm Memory) bool { return vm.Pending })
	for _, i := range r.affected() {
		switch {
		case busy:
			r.decide(i, action.Reason{Rule: "animal.keep.turn"})
		case r.board.tired():
			r.decide(i, action.Reason{Rule: "animal.keep.tired"})
		default:
			busy = r.relieve(i)
		}
	}
}

// affected counts the affected windows, and returns affected VMs by deviation, then by
// size.
func (r *round) affected() (all []int) {
	for i := range r.vms {
		vm, f := &r.vms[i], &r.facts[i]
		if !vm.placed() || vm.Settling || vm.Pending || f.acted {
			continue
		}
		f.deviates = r.suffers(i)
		if d, ok := f.deviates.Get(); ok && d >= r.cfg.Threshold {
			vm.Pace.Affected++
		} else if ok {
			vm.Pace.calm()
		}
		if vm.Pace.Affected >= r.cfg.Affected {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(x, y int) int {
		return cmp.Or(cmp.Compare(r.facts[y].deviates.Or(0), r.facts[x].deviates.Or(0)), cmp.Compare(r.vms[y].CPUs.Len(), r.vms[x].CPUs.Len()))
	})
	return all
}

// suffers is the deviation from the best pace seen. A VM in a bad place may never have run
// well; then it is the loss that its counters show there.
func (r *round) suffers(i int) unit.Opt[float64] {
	f := &r.facts[i]
	_, suits := r.board.nearest(r.want(i))
	if f.slot.level <= suits && r.cost(i) == 0 {
		return f.deviates
	}
	lost, ok := r.cfg.Infer.Lost(r.vms[i].Look.Mean).Get()
	if !ok {
		return f.deviates
	}
	return unit.Some(max(lost, f.deviates.Or(0)))
}

// cost is the cost of a VM's neighbours.
func (r *round) cost(i int) float64 {
	return r.board.besides(resident{want: r.want(i), slot: r.facts[i].slot})
}

// relieve makes a change for an affected VM, if there is one that pays.
func (r *round) relieve(i int) (done bool) {
	vm, f, v := &r.vms[i], &r.facts[i], r.want(i)
	_, suits := r.board.nearest(v)
	before := fate{f.slot.level, r.cost(i)}
	if before.level <= suits && before.cost == 0 {
		r.resign(i)
		return false
	}
	if !r.cooled(vm) {
		r.decide(i, action.Reason{Rule: "animal.keep.cool"})
		return false
	}
	if vm.Pace.Affected < vm.Pace.Again {
		r.resign(i)
		return false
	}
	plan, after := r.remedy(v, before, suits)
	if len(plan) == 0 {
		vm.Pace.Again = vm.Pace.Affected + r.cfg.Affected<<min(vm.Pace.Vain, r.cfg.Doublings)
		vm.Pace.Vain++
		r.resign(i)
		return false
	}
	gain, price := r.pays(i, before, after, plan)
	figures := []action.Number{
		moves(len(plan)),
		{Name: "gain", Value: unit.Estimated(gain, "what it loses × what moving wins back"), Limit: unit.Some(r.cfg.PayRatio * price), Unit: "cpus"},
		{Name: "price", Value: unit.Estimated(price, "memory to move × what that took lately"), Unit: "cpus"},
		{Name: "worse_than_expected", Value: unit.Estimated(f.deviates.Or(0), "counters"), Limit: unit.Some(r.cfg.Threshold), Unit: "ratio"},
	}
	if !(gain >= r.cfg.PayRatio*price) {
		r.decide(i, action.Reason{Rule: "animal.keep.price", Numbers: figures})
		return false
	}
	r.carryOut(plan, func(m move) action.Reason {
		if m.id != i {
			return action.Reason{Rule: "animal.interference.leaves", Other: r.w.Workloads[i].ID, Numbers: figures}
		}
		return action.Reason{Rule: "animal.interference", Numbers: figures}
	})
	vm.Pace.calm()
	r.decide(i, action.Reason{Rule: "animal.interference.stays", Numbers: figures})
	return true
}

// fate is how good a VM's place is; less is better.
type fate struct {
	level machine.Level
	cost  float64
}

// resign: no better place is known. After a while less is expected.
func (r *round) resign(i int) {
	pace := &r.vms[i].Pace
	r.decide(i, action.Reason{Rule: "animal.keep.best"})
	if pace.Affected >= r.cfg.GiveUp {
		pace.Best, pace.Run = unit.None[float64](), nil
		pace.calm()
	}
}

// remedy is the configuration with the fewest moves: the bad neighbours leave, or the VM
// goes, alone or with others that make room. With equal moves, the one with less memory
// wins. Where none is fully suitable, the VM goes where it is better off than here.
func (r *round) remedy(v want, before fate, suits machine.Level) ([]move, fate) {
	i, b := v.id, r.board
	others := r.residents(i)
	var plan []move
	if before.level <= suits {
		plan = b.relieve(resident{want: v, slot: r.facts[i].slot}, others, r.cfg.MaxMoves)
	}
	after := fate{before.level, 0}
	b.take(v, r.facts[i].slot)
	defer b.put(v, r.facts[i].slot)
	if own := r.away(v, others, len(plan), suits); own != nil && (plan == nil || len(own) < len(plan) || len(own) == len(plan) && sumOf(own) < sumOf(plan)) {
		return own, fate{own[0].slot.level, 0}
	}
	if plan != nil {
		return plan, after
	}
	b.tries = 0
	s := b.best(v, false, before.level)
	if to := (fate{s.level, s.cost}); !s.none() && (to.level < before.level || to.level == before.level && to.cost < before.cost) {
		return []move{{v, s}}, to
	}
	return nil, before
}

// away moves the VM itself, as the first move, with no more moves than another way needs.
func (r *round) away(v want, others []resident, most int, suits machine.Level) []move {
	r.board.tries = 0
	if s := r.board.best(v, true, suits); !s.none() {
		return []move{{v, s}}
	}
	if most == 0 {
		most = r.cfg.MaxMoves
	}
	return r.board.rearrange(v, others, most-1)
}

func sumOf(plan []move) (sum float64) {
	for _, m := range plan {
		sum += m.bytes
	}
	return sum
}

// pays returns the gain and the price of a plan, in CPUs' worth over the horizon. The gain
// is the share of the VM's loss that the benefit matrix gives for the improved level. The
// price is the CPU time to move the memory of all, at the larger of the expected and the
// recent price, as links may be busy.
func (r *round) pays(i int, before, after fate, plan []move) (gain, price float64) {
	benefit := r.cfg.Benefit.of(r.classOf(i))
	of := benefit.Socket
	switch {
	case after.level >= before.level:
	case before.level == machine.Beyond:
		of = benefit.Server
	default:
		of = benefit.Node
	}
	gain = r.facts[i].deviates.Or(0) * of / 10 * float64(r.vms[i].CPUs.Len())
	each := max(r.cfg.SecondsPerGB, r.price.Or(0))
	return gain, sumOf(plan) / 1e9 * each / r.cfg.Horizon.Seconds()
}
