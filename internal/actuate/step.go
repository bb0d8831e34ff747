// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Step is one window of every job:
//
//  1. the outcomes of the last steps (Window.Outcomes),
//  2. the actions, one after the other,
//  3. every job reads its workload's figures and asks for its next step,
//  4. the moving jobs share the window's budget,
//  5. and one of them comes first.
//
// A Pin belongs to no job: it is passed on in its window, whatever happens to its
// workload's binding (a thread's affinity lies within the cpuset), and the policy
// handles its outcome. Nor does an Isolate, which lasts: see isolate.go.
//
// It returns the next state, the steps in the order in which to take them (restores
// first: they make room), and outcomes of its own (a drift seen, a step given up, an
// action that cannot begin) that belong in the next window. These are reported for a
// set-cpus step, so that a policy need only handle one kind of end of a binding.
func Step(m machine.Machine, cfg Config, st State, actions []action.Action, w window.Window) (State, []action.Step, []action.Outcome) {
	r := &round{
		m: m, cfg: cfg, w: w, costs: migration.CostsOf(cfg.Profile, m), nodeIDs: m.NodeIDs(), withCPUs: m.NodesWithCPUs(),
		jobs: slices.Clone(st.Jobs), isolated: slices.Clone(st.Isolated), pace: st.Pace,
	}
	r.recall(st.Past)
	r.recallUndone(st.Undone)
	for i := range w.Outcomes { // 1
		r.book(&w.Outcomes[i])
		r.outcome(&w.Outcomes[i])
		r.classOutcome(&w.Outcomes[i])
	}
	r.journeysGoOn()
	for _, a := range actions { // 2
		r.act(a)
	}
	for i := range r.jobs { // 3
		r.advance(&r.jobs[i])
	}
	r.keepIsolated()
	r.shareBudget() // 4
	r.jobs = slices.DeleteFunc(r.jobs, func(j Job) bool { return j.Stage == stageDone || j.Absent > cfg.ForgetAfter })
	slices.SortStableFunc(r.steps, func(a, b action.Step) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	next := State{Jobs: r.jobs, Past: r.past, Isolated: r.isolated, Undone: r.undos, Pace: r.pace}
	next.First, next.FirstFor = r.order(st.First, st.FirstFor) // 5
	return next, r.steps, r.outcomes
}

// rank keeps SetCPUs before MovePages, and restores before all. Threads are placed
// after the cpuset is set, which limits them; and after mems, because a thread that has
// ended is no reason to drop those. Moves come last: at their rate they take most of
// the window, and another workload's mems, or a thread, need not wait. A class comes
// after the steps of a binding, because it may be refused.
func rank(k action.StepKind) int {
	return slices.Index([]action.StepKind{action.Restore, action.SetCPUs, action.SetMems, action.PinThread, action.SetClass, action.MovePages}, k)
}

// round is the work of one Step.
type round struct {
	m    machine.Machine
	cfg  Config
	w    window.Window
	jobs []Job
	past []Past

	undos   []Undone
	pending []unit.Bytes // parallel to jobs: what each has to move; see others
	pace    Pace

	isolated []Isolation
	asked    []string // whose isolation was asked for

	steps    []action.Step
	outcomes []action.Outcome // of our own

	costs             migration.Costs
	nodeIDs, withCPUs set.NodeSet // the machine's
}

// because is a code, and the message of the kernel, an owner or a reader.
func because(rule, detail string) action.Reason { return action.Reason{Rule: rule, Detail: detail} }

// failures is a code, and the number of failures in a row.
func failures(rule string, n int, detail string) action.Reason {
	return action.Reason{Rule: rule, Detail: detail, Numbers: []action.Number{action.Counted("failures", float64(n), "times")}}
}

// workload returns the window's workload with that id.
func (r *round) workload(id string) (*window.Workload, bool) {
	i, ok := r.w.WorkloadIndex(id)
	if !ok {
		return nil, false
	}
	return &r.w.Workloads[i], true
}

// stageDone marks a job that forget() drops.
const stageDone Stage = ""

// outcome is number 1 of Step.
func (r *round) outcome(o *action.Outcome) {
	i, ok := find(r.jobs, o.Step.Workload)
	if !ok || o.Step.Kind == action.PinThread || o.Step.Kind == action.SetClass { // gone: the thread, or the group, not its workload
		return
	}
	j := &r.jobs[i]
	if o.Status == action.Gone {
		j.Stage = stageDone
		r.forgive(j.Workload)
		return
	}
	switch o.Step.Kind {
	case action.SetCPUs:
		r.cpusOutcome(j, o)
	case action.MovePages:
		r.moveOutcome(j, o)
	case action.SetMems:
		r.memsOutcome(j, o)
	case action.Restore:
		r.restoreOutcome(j, o)
	}
}

// cpusOutcome: refused, or failed too often: restore what may have been done.
func (r *round) cpusOutcome(j *Job, o *action.Outcome) {
	if j.Stage != StageCPUs || o.Step.Nodes != j.Nodes || o.Step.CPUs != j.CPUs { // or for an action that was refused
		return
	}
	switch o.Status {
	case action.Done, action.InProgress:
		j.enter(StagePages)
	case action.Failed:
		r.failed(j, o.Detail)
	default:
		j.ends(o)
	}
}

// ends is for outcomes that end a binding in any stage.
func (j *Job) ends(o *action.Outcome) {
	switch o.Status {
	case action.DryRun:
		j.enter(StageDry, because("actuate.dry-run", ""))
	case action.Drifted:
		j.enter(StageDrifted, because("actuate.changed", o.Detail))
	case action.Refused:
		j.enter(StageRestoring, because("actuate.refused", o.Detail))
	}
}

// failed gives up after RetryLimit failures.
func (r *round) failed(j *Job, detail string) {
	if j.Failures++; j.Failures <= r.cfg.RetryLimit {
		return
	}
	why := failures("actuate.failed", j.Failures, detail)
	r.report(*j, action.Refused, why)
	j.enter(StageRestoring, why)
}

// moveOutcome: after a refused move the CPUs stay set; the pages will not follow.
func (r *round) moveOutcome(j *Job, o *action.Outcome) {
	j.Moved, j.Asked, j.HotHome = j.Moved+o.Moved, false, j.HotHome || o.HotHome
	if j.Stage == StageAhead {
		r.aheadOutcome(j, o)
	}
	if r.moved(j, o); j.Stage != StagePages {
		return
	}
	switch o.Status {
	case action.Done:
		j.Drained = true
	case action.InProgress:
		j.Drained = o.Moved == 0
	case action.Refused:
		r.settle(j, because("actuate.moves-refused", o.Detail))
	case action.Drifted:
		j.ends(o)
	}
}

func (r *round) memsOutcome(j *Job, o *action.Outcome) {
	if j.Stage == StageWiden {
		r.widenOutcome(j, o)
	}
	if j.Stage != StageMems || o.Step.Nodes != j.Nodes {
		return
	}
	switch o.Status {
	case action.Done, action.InProgress:
		j.MemsSet, j.Held = true, set.NodeSet{}
		r.settle(j, j.Why)
	case action.Drifted:
		j.ends(o)
	case action.Refused:
		j.Waiting = false // it would be in vain: the mems will not be set
		r.settle(j, because("actuate.mems-refused", o.Detail))
	case action.Failed:
		if j.Failures++; j.Failures > r.cfg.RetryLimit {
			j.Waiting = false
			r.settle(j, failures("actuate.mems-failed", j.Failures, o.Detail))
		}
	}
}

// restoreOutcome never gives up (nothing is lost), but tries less and less often.
func (r *round) restoreOutcome(j *Job, o *action.Outcome) {
	if j.Stage != StageRestoring {
		return
	}
	switch o.Status {
	case action.Done, action.DryRun, action.Drifted: // drifted: it is another process's now
		j.Stage = stageDone
	case action.Refused, action.Failed:
		j.Failures++
		j.Wait = 1<<min(j.Failures, longestWait) - 1
		j.Why = because("actuate.restore-failed", o.Detail)
	}
}

// longestWait bounds the pause between two tries of a restore to 2⁶ windows.
const longestWait = 6

// settle ends the moving: bound if the mems are set, else with the CPUs alone.
func (r *round) settle(j *Job, why action.Reason) {
	stage := StageCPUsOnly
	if j.MemsSet {
		stage = StageBound
	}
	j.enter(stage, why)
	if wl, ok := r.workload(j.Workload); ok {
		p, _ := r.pagesOf(wl, j.Nodes)
		j.Floor = p.anon
	}
}

// act is number 2 of Step.
func (r *round) act(a action.Action) {
	if a.Kind == action.Pin {
		r.steps = append(r.steps, action.Step{Kind: action.PinThread, Workload: a.Workload, Thread: a.Thread, CPUs: a.CPUs, Release: a.Release, Reason: a.Reason})
		return
	}
	if a.Kind == action.Isolate {
		r.isolate(a)
		return
	}
	i, busy := find(r.jobs, a.Workload)
	switch {
	case a.Kind == action.Unbind && !busy: // of an orphan
		r.jobs = slices.Insert(r.jobs, i, Job{Workload: a.Workload, Stage: StageRestoring, Reason: a.Reason})
	case a.Kind == action.Unbind:
		r.unbind(&r.jobs[i], a.Reason)
	case a.Kind != action.Bind:
		return
	case !busy:
		r.begin(i, a)
	case r.jobs[i].Stage == stageDone || r.jobs[i].Stage == StageDrifted:
		r.jobs = slices.Delete(r.jobs, i, i+1)
		r.begin(i, a)
	case r.jobs[i].Stage == StageRestoring:
		r.report(newJob(a), action.Refused, because("actuate.restoring", ""))
	case r.jobs[i].Nodes != a.Nodes:
		r.relocate(&r.jobs[i], a)
	case r.jobs[i].Wanted != a.CPUs:
		r.rebind(&r.jobs[i], a)
	}
}

// rebind is for other CPUs of the same nodes: they are set again, and what is known of
// its pages and mems stays. It is refused if none of them may be used: then the binding
// stays.
func (r *round) rebind(j *Job, a action.Action) {
	cpus := r.usable(a, j.May)
	if cpus.IsEmpty() {
		r.reportStays(a, noCPU(a))
		return
	}
	j.Wanted, j.Reason = a.CPUs, a.Reason
	if cpus == j.CPUs && j.Stage != StageDry {
		return // the same CPUs, as far as they are online
	}
	j.CPUs = cpus
	if j.Stage != StageWiden && j.Stage != StageAhead { // otherwise they come after the mems, or the memory
		j.enter(StageCPUs)
	}
}

// usable are the CPUs of a bind: of its nodes, of these those it names, online, not
// reserved, and those that the workload might use before (empty: unknown).
func (r *round) usable(a action.Action, may set.CPUSet) set.CPUSet {
	cpus := r.online(a.Nodes).Minus(r.cfg.ReservedCPUs)
	if !a.CPUs.IsEmpty() {
		cpus = cpus.Intersect(a.CPUs)
	}
	if !may.IsEmpty() {
		cpus = cpus.Intersect(may)
	}
	return cpus
}

// noCPU is why nothing can be set.
func noCPU(a action.Action) action.Reason {
	return action.Reason{Rule: "actuate.no-cpu", Nodes: a.Nodes, Detail: a.CPUs.String()}
}

func (r *round) unbind(j *Job, why action.Reason) {
	if j.Stage == StageRestoring || j.Stage == stageDone {
		return
	}
	j.Reason = why
	j.enter(StageRestoring)
}

func newJob(a action.Action) Job {
	return Job{Workload: a.Workload, Stage: StageCPUs, Nodes: a.Nodes, Wanted: a.CPUs, CPUsOnly: a.CPUsOnly, Reason: a.Reason}
}

// begin starts a bind, or refuses it if there is nothing to set.
func (r *round) begin(i int, a action.Action) {
	j := newJob(a)
	wl, ok := r.workload(a.Workload)
	if !ok {
		r.report(j, action.Gone, because("actuate.gone", ""))
		return
	}
	if why, waits := r.waitsAfterUndo(a.Workload); waits {
		r.report(j, action.Refused, why)
		return
	}
	j.May, j.MayMems = wl.Binding.CPUs, wl.Binding.Mems
	j.CPUs = r.usable(a, j.May)
	switch {
	case j.CPUs.IsEmpty():
		r.report(j, action.Refused, noCPU(a))
	case !j.mayHave(a.Nodes):
		r.report(j, action.Refused, j.onlyMems())
	default:
		r.jobs = slices.Insert(r.jobs, i, j)
	}
}

// online are these nodes' CPUs that are online by both the machine and the window.
func (r *round) online(nodes set.NodeSet) set.CPUSet {
	var now set.CPUSet
	for i := range r.w.Nodes {
		if n := &r.w.Nodes[i]; nodes.Has(n.ID) {
			now = now.Union(n.CPUs)
		}
	}
	return r.m.CPUsOf(nodes).Intersect(now)
}

// report adds an outcome of our own.
func (r *round) report(j Job, s action.Status, why action.Reason) {
	step := action.Step{Kind: action.SetCPUs, Workload: j.Workload, CPUs: j.CPUs, Nodes: j.Nodes, Reason: j.Reason}
	r.outcomes = append(r.outcomes, action.Outcome{Step: step, Status: s, Why: why})
}

// reportStays refuses other nodes or CPUs: the binding stays.
func (r *round) reportStays(a action.Action, why action.Reason) {
	r.report(newJob(a), action.Refused, why)
	r.outcomes[len(r.outcomes)-1].Stays = true
}

// ask adds a step of a job. The cause of a move's reason is the sum that led to it.
func (r *round) ask(j *Job, s action.Step) {
	s.Workload, s.Reason = j.Workload, j.Reason
	if v, ok := j.Pays.Get(); ok && s.Kind == action.MovePages {
		s.Reason = s.Reason.Because(v.Sum())
	}
	r.steps = append(r.steps, s)
}

// pages are a workload's resident bytes outside its binding.
type pages struct {
	anon, all unit.Bytes // elsewhere
	total     unit.Bytes // everywhere
	from      set.NodeSet
	by        []migration.NodeBytes // of from
}

// pagesOf is false if any of it is unknown.
func (r *round) pagesOf(wl *window.Workload, nodes set.NodeSet) (pages, bool) {
	if len(wl.AnonByNode) != len(r.w.Nodes) || !wl.KnowsPages() {
		return pages{}, false
	}
	var p pages
	for i := range r.w.Nodes {
		id, bytes := r.w.Nodes[i].ID, bytesOn(wl, i)
		p.total += bytes
		if nodes.Has(id) || bytes == 0 {
			continue
		}
		p.all += bytes
		p.anon += wl.AnonByNode[i].Or(0)
		p.from = p.from.With(id)
		p.by = append(p.by, migration.NodeBytes{Node: id, Bytes: bytes})
	}
	return p, true
}

// bytesOn is the memory on the i-th node of a workload whose pages are known.
func bytesOn(wl *window.Workload, i int) unit.Bytes {
	return wl.AnonByNode[i].Or(0) + wl.FileByNode[i].Or(0)
}
