// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
)

// arrivals is number 4: it places VMs without a place, the largest first, since small ones
// fit into what is left.
func (r *round) arrivals() {
	var all []int
	for i := range r.vms {
		if r.wants(i) {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(x, y int) int {
		return cmp.Or(cmp.Compare(r.facts[y].cpus, r.facts[x].cpus), cmp.Compare(r.facts[y].bytes, r.facts[x].bytes))
	})
	for _, i := range all {
		r.arrive(i)
	}
}

// wants reports that a VM is to get a place now, or gives the reason why not.
func (r *round) wants(i int) bool {
	vm, f, wl := &r.vms[i], &r.facts[i], &r.w.Workloads[i]
	switch {
	case f.pinned:
		r.decide(i, action.Reason{Rule: "animal.skip.pinned", Detail: wl.Binding.PinnedWhy})
	case f.cpus <= 0:
		r.decide(i, action.Reason{Rule: "animal.skip.size"})
	case vm.placed() || f.acted:
	case ours(wl): // from an earlier run, or lost
		r.unbind(i, r.decide(i, action.Reason{Rule: "animal.orphan"}))
	case r.w.At.Before(vm.Retry):
		r.decide(i, action.Reason{Rule: "animal.backoff"})
	default:
		return true
	}
	return false
}

func (r *round) arrive(i int) {
	v := r.want(i)
	plan, suits := r.board.find(v, r.residents(-1), r.cfg.MaxMoves)
	if len(plan) == 0 {
		vm := &r.vms[i]
		vm.Retry = r.w.At.Add(r.pause(vm.Refusals))
		vm.Refusals = min(vm.Refusals+1, mostDoublings)
		r.decide(i, action.Reason{Rule: "animal.wait"})
		return
	}
	why := action.Reason{Rule: "animal.arrive"}
	switch {
	case !suits:
		why.Rule = "animal.arrive.least-bad"
	case len(plan) > 1:
		why.Rule, why.Numbers = "animal.arrive.after-moves", []action.Number{moves(len(plan) - 1)}
	}
	r.carryOut(plan, func(m move) action.Reason {
		if m.id == i {
			return why
		}
		return action.Reason{Rule: "animal.reshuffle", Other: r.w.Workloads[i].ID}
	})
}

// residents returns the VMs on the board, except one.
func (r *round) residents(but int) []resident {
	all := make([]resident, 0, len(r.vms))
	for i := range r.vms {
		if f := &r.facts[i]; i != but && !f.slot.none() {
			all = append(all, resident{r.want(i), f.slot, r.movable(i)})
		}
	}
	return all
}

// movable: nothing is under way, and it was not moved recently.
func (r *round) movable(i int) bool {
	vm := &r.vms[i]
	return vm.placed() && !vm.Pending && !r.facts[i].acted && r.cooled(vm)
}

func (r *round) cooled(vm *Memory) bool {
	return vm.Moves == 0 || r.w.At.Sub(vm.Moved) >= r.cool(vm)
}

// carryOut puts a whole plan on the board and requests it: first all VMs leave, then each
// gets its CPUs.
func (r *round) carryOut(plan []move, reason func(move) action.Reason) {
	for _, m := range plan {
		vm, f := &r.vms[m.id], &r.facts[m.id]
		if !f.slot.none() {
			r.board.take(m.want, f.slot)
			r.free = r.free.Union(vm.CPUs)
		}
	}
	for _, m := range plan {
		r.assign(m, reason(m))
	}
}

// assign gives a VM its place. Other CPUs of the same nodes are set at once. To go to other
// nodes it is unbound first, as actuate requires.
func (r *round) assign(m move, why action.Reason) {
	i := m.id
	vm, wl := &r.vms[i], &r.w.Workloads[i]
	was, had := vm.Nodes, vm.placed()
	vm.Nodes, vm.CPUs, vm.Share = r.board.materialise(m.slot, r.free)
	r.free = r.free.Minus(vm.CPUs)
	r.board.put(m.want, m.slot)
	r.facts[i].slot = m.slot
	if had {
		vm.Moved, vm.Moves = r.w.At, vm.Moves+1
	}
	vm.Settling, vm.Still, vm.Since = true, 0, r.w.At
	vm.Pace.calm()
	vm.Retry, vm.Refusals = time.Time{}, 0
	why.Nodes, why.Detail = vm.Nodes, r.kind(i)
	why = r.decide(i, why)
	if ours(wl) && (!had || was != vm.Nodes) {
		vm.Pending = true
		r.unbind(i, why)
		return
	}
	r.bind(i, why)
}
