// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"math"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Step is one period. It returns the next state, the actions, and one reason for each of
// the window's workloads, in their order. The numbers are those of the package comment.
func Step(m machine.Machine, cfg Config, st State, w window.Window) (State, []action.Action, []action.Reason) {
	return newRound(m, cfg, st, w).step()
}

func (r *round) step() (State, []action.Action, []action.Reason) {
	r.outcomes() // 1
	r.look()     // 2
	r.lay()      // 3
	r.goOn()
	r.arrivals() // 4
	r.running()  // 5
	reasons := r.explain()
	if len(r.vms) == 0 {
		r.vms = nil // as JSON decodes it
	}
	return State{VMs: r.vms, Price: r.price}, r.actions, reasons
}

// Learn does only the learning part of Step: it places no workload. VMs are in the order of
// the window's workloads.
func Learn(m machine.Machine, cfg Config, st State, w window.Window) State {
	r := newRound(m, cfg, st, w)
	r.look()
	if len(r.vms) == 0 {
		r.vms = nil
	}
	return State{VMs: r.vms, Price: st.Price}
}

// round holds the data of one Step. Slices by VM are parallel to the window's workloads.
type round struct {
	m       machine.Machine
	cfg     Config
	w       *window.Window
	vms     []Memory
	facts   []facts
	board   *board
	free    set.CPUSet // not given to any VM
	moving  bool       // some memory came closer
	price   unit.Opt[float64]
	actions []action.Action
	reasons []action.Reason
}

// facts are what a window says about a workload, and what follows from that.
type facts struct {
	cpus     int     // CPUs that it needs; 0: unknown
	bytes    float64 // anonymous memory; 0: unknown
	pinned   bool
	occupied set.CPUSet // CPUs that it has without a place from this policy
	spins    bool       // its threads wait for each other, as far as their counters show
	deviates unit.Opt[float64]
	expected unit.Opt[float64]
	at       []Share // shares of its memory, sum 1; Node is an index into board.nodes
	slot     slot    // its slot on the board; none: it is not on it
	acted    bool
}

func newRound(m machine.Machine, cfg Config, st State, w window.Window) *round {
	n := len(w.Workloads)
	r := &round{m: m, cfg: cfg, w: &w, price: priceOf(st.Price, w.Outcomes, cfg.Infer.Weight), vms: make([]Memory, n), facts: make([]facts, n), reasons: make([]action.Reason, n)}
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		r.vms[i] = st.of(wl.ID)
		anon, _ := window.SumBytes(wl.AnonByNode)
		r.facts[i] = facts{cpus: needs(wl), bytes: float64(anon), pinned: wl.Binding.PinnedCPUs || wl.Binding.PinnedMems}
	}
	return r
}

// priceOf is the price of moving memory, updated with this window's moves.
func priceOf(was unit.Opt[float64], outcomes []action.Outcome, weight float64) unit.Opt[float64] {
	gb, seconds := 0.0, 0.0
	for _, o := range outcomes {
		if o.Step.Kind == action.MovePages && o.Moved > 0 && o.CPUSeconds > 0 {
			gb += float64(o.Moved) / 1e9
			seconds += o.CPUSeconds
		}
	}
	if gb == 0 {
		return was
	}
	now := seconds / gb
	return unit.Some(was.Or(now) + float64(weight*(now-was.Or(now))))
}

// needs is the number of CPUs of a VM: its vCPUs, or fewer if it may use fewer.
func needs(wl *window.Workload) int {
	tasks, ok := wl.Tasks.Get()
	quota, limited := wl.Quota.Get()
	limited = limited && quota > 0
	whole := int(min(math.Ceil(quota), math.MaxInt32))
	switch {
	case ok && limited:
		return min(tasks, whole)
	case limited:
		return whole
	}
	return max(tasks, 0)
}

func ours(wl *window.Workload) bool { return wl.Binding.OursCPUs || wl.Binding.OursMems }

// outcomes is number 1: a VM that was refused, or whose binding another process changed,
// has no place and is left alone for a while. What homenode still holds of it is given
// back.
func (r *round) outcomes() {
	for k := range r.w.Outcomes {
		o := &r.w.Outcomes[k]
		i, ok := r.w.WorkloadIndex(o.Step.Workload)
		if !ok || o.Step.Kind != action.SetCPUs && o.Status != action.Drifted {
			continue
		}
		vm := &r.vms[i]
		if o.Status != action.Refused && o.Status != action.Drifted || !vm.placed() && !ours(&r.w.Workloads[i]) {
			continue
		}
		vm.leave()
		vm.Retry = r.w.At.Add(r.pause(vm.Refusals))
		vm.Refusals = min(vm.Refusals+1, mostDoublings)
		why := action.Reason{Rule: "animal.refused", Detail: o.Detail}
		if o.Status == action.Drifted {
			why.Rule = "animal.drifted"
		}
		if o.Why.Rule != "" {
			why = why.Because(o.Why)
		}
		if why = r.decide(i, why); ours(&r.w.Workloads[i]) {
			r.unbind(i, why)
		}
	}
}

// pause doubles each time.
func (r *round) pause(before int) time.Duration {
	return r.cfg.CoolDown << min(max(before, 0), r.cfg.Doublings)
}

// look is number 2.
func (r *round) look() {
	r.moving = slices.ContainsFunc(r.w.Outcomes, func(o action.Outcome) bool { return o.Step.Kind == action.MovePages && o.Moved > 0 })
	sites := make([]Site, len(r.w.Workloads))
	for i := range sites {
		sites[i] = SiteOf(r.m, r.w, &r.w.Workloads[i])
	}
	brought := r.fillsOf(sites)
	for i := range r.w.Workloads {
		wl, vm := &r.w.Workloads[i], &r.vms[i]
		vm.Look.bound(sites[i], i, brought)
		sample := SampleOf(wl, sites[i]).bounded(vm.Look.here(sites[i]))
		spins, intensity := waiting(wl, r.cfg.Threshold)
		if intensity.Known() {
			sample.Intensity = intensity
		}
		if vm.Look.see(r.cfg.Infer, sample) {
			vm.Pace = Pace{}
		}
		r.facts[i].spins = spins
		vm.Pace.see(r.paceOf(i), r.cfg.Metric, r.cfg.Sustained)
		r.follow(vm, wl)
		if vm.Moves > 0 && r.w.At.Sub(vm.Moved) >= max(r.cfg.Horizon, 2*r.cool(vm)) {
			vm.Moves = 0
		}
	}
	for i := range r.vms {
		r.facts[i].expected = r.expects(i)
		r.facts[i].deviates = deviation(r.cfg.Metric, r.facts[i].expected, r.vms[i].Pace.Now)
	}
}

// paceOf is its performance by the metric. Where threads spin it is unknown, as
// instructions say nothing.
func (r *round) paceOf(i int) unit.Opt[float64] {
	wl := &r.w.Workloads[i]
	switch {
	case r.facts[i].spins:
		return unit.None[float64]()
	case r.cfg.Metric == MPI:
		return window.MPI(wl).V
	}
	return window.IPC(wl.Instructions, wl.Cycles).V
}

// cool is how long it stays after a move.
func (r *round) cool(vm *Memory) time.Duration { return r.pause(vm.Moves - 1) }

// follow waits until enough of a VM's memory has arrived, or no more arrives. While other
// VMs' memory is moved, its turn may not have come; but no VM waits for more than a
// horizon.
func (r *round) follow(vm *Memory, wl *window.Workload) {
	if !vm.Settling || vm.Pending {
		return
	}
	var away, all unit.Bytes
	for k := range wl.AnonByNode {
		if k < len(r.w.Nodes) {
			all += wl.AnonByNode[k].Or(0)
			if !vm.Nodes.Has(r.w.Nodes[k].ID) {
				away += wl.AnonByNode[k].Or(0)
			}
		}
	}
	switch {
	case vm.Still == 0 || away < vm.Away:
		vm.Still, vm.Away = 1, away
	case !r.moving:
		vm.Still++
	}
	late := r.w.At.Sub(vm.Since) > r.cfg.Horizon
	if float64(away) <= float64(float64(all)*(1-r.cfg.LocalShare)) || vm.Still > r.cfg.Affected || late {
		vm.Settling, vm.Still, vm.Away = false, 0, 0
		vm.Pace.Run = nil
		vm.Pace.calm()
	}
}

// expects is the best pace of a VM, or of a replica that behaves alike if that was better.
func (r *round) expects(i int) unit.Opt[float64] {
	best := r.vms[i].Pace.Best
	service := r.w.Workloads[i].Service
	mine, ok := r.vms[i].Look.Mean.Intensity.Get()
	if service == "" || !ok {
		return best
	}
	for k := range r.vms {
		its, ok := r.vms[k].Look.Mean.Intensity.Get()
		alike := ok && its <= mine*(1+r.cfg.Infer.Change) && mine <= its*(1+r.cfg.Infer.Change)
		if k != i && alike && r.w.Workloads[k].Service == service {
			best = better(r.cfg.Metric, best, r.vms[k].Pace.Best)
		}
	}
	return best
}

// lay is number 3: the board, with all VMs that have CPUs. A VM loses its place if any of
// its CPUs has gone.
func (r *round) lay() {
	var taken set.CPUSet // by VMs that have no place of ours
	for i := range r.vms {
		f, b := &r.facts[i], r.w.Workloads[i].Binding
		if b.PinnedCPUs || !r.vms[i].placed() && b.OursCPUs {
			f.occupied = b.CPUs
			taken = taken.Union(b.CPUs)
		}
		if f.pinned {
			r.vms[i].leave()
		}
	}
	others := r.others()
	give := func(node int) set.CPUSet { return r.online(node).Minus(taken).Minus(r.cfg.ReservedCPUs) }
	r.board = newBoard(r.m, &r.cfg, give, func(node int) float64 {
		k, ok := r.w.NodeIndex(node)
		if !ok {
			return 0
		}
		return roomOf(r.w.Nodes[k].Memory.V, others[k], r.cfg.Reserve)
	})
	for _, u := range r.board.units {
		r.free = r.free.With(u.cpus...)
	}
	onBoard := r.onBoard()
	for i := range r.vms {
		r.facts[i].at = r.memoryAt(i, onBoard)
		r.layOne(i)
	}
}

// online returns the CPUs of a node that are online in both the machine and the window.
func (r *round) online(node int) set.CPUSet {
	k, ok := r.w.NodeIndex(node)
	if !ok {
		return set.CPUSet{}
	}
	return r.m.CPUsOf(set.FromNodes(node)).Intersect(r.w.Nodes[k].CPUs)
}

// others is, for each node, the memory that belongs to no VM that can be placed. Page cache
// does not count, as it makes way.
func (r *round) others() []float64 {
	used := make([]float64, len(r.w.Nodes))
	for k := range used {
		n := &r.w.Nodes[k]
		if free, ok := n.Free.Get(); ok {
			used[k] = float64(n.Memory.Or(0) - free - n.File.Or(0))
		}
		for i := range r.w.Workloads {
			if by := r.w.Workloads[i].AnonByNode; k < len(by) && !r.facts[i].pinned {
				used[k] -= float64(by[k].Or(0))
			}
		}
		used[k] = max(0, used[k])
	}
	return used
}

func (r *round) layOne(i int) {
	f, vm := &r.facts[i], &r.vms[i]
	if f.occupied.IsEmpty() && !vm.placed() {
		return
	}
	if vm.placed() && !vm.CPUs.SubsetOf(r.free) {
		vm.leave()
		r.decide(i, action.Reason{Rule: "animal.lost"})
		return
	}
	if !vm.placed() {
		r.board.settle(r.m, r.classOf(i), f.occupied)
		return
	}
	v := r.want(i)
	f.slot = r.board.slotAt(v, vm.CPUs, vm.Nodes, vm.Share)
	r.board.put(v, f.slot)
	r.free = r.free.Minus(vm.CPUs)
}

// want is VM i as the board knows it. A VM that has a place needs as many CPUs as its place
// has.
func (r *round) want(i int) want {
	v := want{id: i, class: r.classOf(i), sensitive: r.sensitive(i), cpus: r.facts[i].cpus, bytes: r.facts[i].bytes, at: r.facts[i].at}
	if r.vms[i].placed() {
		v.cpus = r.vms[i].CPUs.Len()
	}
	return v
}

// memoryAt is where a VM's memory is.
func (r *round) memoryAt(i int, onBoard []int) (all []Share) {
	bytes := r.facts[i].bytes
	for k, by := range r.w.Workloads[i].AnonByNode {
		if k < len(onBoard) && onBoard[k] >= 0 && bytes > 0 && by.Or(0) > 0 {
			all = append(all, Share{onBoard[k], float64(by.Or(0)) / bytes})
		}
	}
	return all
}

// onBoard maps the window's nodes to nodes of the board; -1: not on it.
func (r *round) onBoard() []int {
	at := make([]int, len(r.w.Nodes))
	for k := range r.w.Nodes {
		id := r.w.Nodes[k].ID
		at[k] = slices.IndexFunc(r.board.nodes, func(p place) bool { return p.id == id })
	}
	return at
}

func (r *round) classOf(i int) Class {
	if c := r.vms[i].Look.Says.Class; c != Unknown {
		return c
	}
	return r.cfg.Unknown
}

// sensitive is its operator's tag, else what was inferred.
func (r *round) sensitive(i int) bool {
	inferred := r.vms[i].Look.Says.Sensitive.Or(r.cfg.UnknownSensitive)
	return r.w.Workloads[i].Sensitive.Or(inferred)
}

// goOn binds the VMs whose old binding was given back.
func (r *round) goOn() {
	for i := range r.vms {
		vm, wl := &r.vms[i], &r.w.Workloads[i]
		switch {
		case !vm.Pending:
		case ours(wl):
			r.unbind(i, r.decide(i, action.Reason{Rule: "animal.moving.back"}))
		default:
			vm.Pending = false
			r.bind(i, r.decide(i, action.Reason{Rule: "animal.moving"}))
		}
	}
}

func (r *round) bind(i int, why action.Reason) {
	r.act(i, action.Action{Kind: action.Bind, Nodes: r.vms[i].Nodes, CPUs: r.vms[i].CPUs, Reason: why})
}

func (r *round) unbind(i int, why action.Reason) {
	r.act(i, action.Action{Kind: action.Unbind, Reason: why})
}

// act adds an action, at most one per workload.
func (r *round) act(i int, a action.Action) {
	if r.facts[i].acted {
		return
	}
	a.Workload, r.facts[i].acted = r.w.Workloads[i].ID, true
	at, _ := slices.BinarySearchFunc(r.actions, a.Workload, func(a action.Action, id string) int { return cmp.Compare(a.Workload, id) })
	r.actions = slices.Insert(r.actions, at, a)
}
