// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// advance is number 3 of Step for one job.
func (r *round) advance(j *Job) {
	wl, ok := r.workload(j.Workload)
	if !ok {
		j.Absent++
		return
	}
	j.Absent = 0
	if j.onWay() {
		j.Way.Elapsed += r.w.Length
	}
	switch j.Stage {
	case StageRestoring:
		r.restore(j)
	case StageWiden:
		r.ask(j, action.Step{Kind: action.SetMems, Nodes: j.Held.Union(j.Nodes)})
	case StageAhead, StageCPUs:
		r.setCPUs(j, wl)
	case StagePages, StageMems, StageBound, StageCPUsOnly:
		if r.drifted(j, wl) {
			return
		}
		if r.worse(j, wl) {
			r.restore(j)
			return
		}
		r.follow(j, wl)
		r.arrives(j)
	case StageDrifted:
		if !wl.Binding.OursCPUs && !wl.Binding.OursMems {
			j.Stage = stageDone // no setting of ours is left to restore
		}
	}
}

// restore asks again until the restore is confirmed.
func (r *round) restore(j *Job) {
	if j.Wait > 0 {
		j.Wait--
		return
	}
	r.ask(j, action.Step{Kind: action.Restore})
}

// setCPUs is number 1 of the package comment, once memory need not go first. A move
// goes in the same window: the CPUs are set before it, and pages that move later stay
// remote for longer.
func (r *round) setCPUs(j *Job, wl *window.Workload) {
	p, known := r.pagesOf(wl, j.Nodes)
	moves := known && j.mayMove(wl)
	if moves {
		r.judge(j, wl, p)
	}
	if !r.departs(j, wl, p, known) {
		r.restoreStopped(j)
		return
	}
	r.ask(j, action.Step{Kind: action.SetCPUs, CPUs: j.CPUs, Nodes: j.Nodes})
	if moves && r.worth(j) && !j.Waiting && (j.Moving || r.patience(j, p) == 0) {
		r.move(j, p)
	}
}

// restoreStopped restores what a bind that ended just now may have set.
func (r *round) restoreStopped(j *Job) {
	if j.Stage == StageRestoring {
		r.restore(j)
	}
}

func (j *Job) mayMove(wl *window.Workload) bool { return !j.CPUsOnly && !wl.Binding.PinnedMems }

// move asks for a move; shareBudget sets its budget. The owner takes one step after the
// other, so each may use the whole rate.
func (r *round) move(j *Job, p pages) {
	if p.all > 0 {
		j.Moving = true
		r.ask(j, action.Step{
			Kind: action.MovePages, Nodes: j.Nodes, From: p.from, Budget: p.all,
			Rate: r.cfg.Rate, MaxStall: r.cfg.MaxStall, PageCache: r.cfg.PageCache, HotFirst: r.cfg.HotFirst,
		})
	}
}

// drifted is number 4: the effective CPUs or mems are not what was set. CPUs that went
// offline are no drift, and an unreadable value proves nothing.
func (r *round) drifted(j *Job, wl *window.Workload) bool {
	want := j.CPUs.Intersect(r.online(j.Nodes))
	have := wl.Binding.CPUs
	var why action.Reason
	switch {
	case !want.IsEmpty() && !have.IsEmpty() && have != want:
		why = because("actuate.cpus-changed", have.String())
	case !j.mems().IsEmpty() && !wl.Binding.Mems.IsEmpty() && wl.Binding.Mems != j.mems().Intersect(r.nodeIDs):
		why = action.Reason{Rule: "actuate.mems-changed", Nodes: wl.Binding.Mems, Detail: j.mems().String()}
	default:
		return false
	}
	r.report(*j, action.Drifted, why)
	j.enter(StageDrifted, why)
	return true
}

// follow is numbers 2 to 4 of the package comment for one window.
func (r *round) follow(j *Job, wl *window.Workload) {
	p, known := r.pagesOf(wl, j.Nodes)
	switch {
	case (j.Stage == StagePages || j.Stage == StageMems) && !j.mayMove(wl):
		r.settle(j, because("actuate.not-movable", wl.Binding.PinnedWhy))
	case j.Stage == StagePages && !known:
		if j.Idle++; j.Idle >= r.cfg.NoProgressWindows {
			r.settle(j, because("actuate.pages-unknown", ""))
		}
	case j.Stage == StagePages:
		r.pursue(j, wl, p)
	case j.Stage == StageMems:
		r.askMemsAgain(j, wl, p, known)
	case known && j.mayMove(wl):
		r.watch(j, wl, p)
	}
}

// threshold is how much memory may be left for a short set-mems.
func (r *round) threshold(p pages) unit.Bytes {
	return max(unit.Bytes(float64(p.total)*float64(r.cfg.ResidualShare)), r.cfg.ResidualBytes)
}

// pursue is numbers 2 and 3 of the package comment: move more, or end the moving.
func (r *round) pursue(j *Job, wl *window.Workload, p pages) {
	j.progress(p)
	r.judge(j, wl, p)
	little := p.anon <= r.threshold(p)
	if little && (p.all <= r.threshold(p) || j.Drained || j.Idle >= r.cfg.NoProgressWindows) {
		r.finish(j, action.Reason{})
		return
	}
	if why, stays := r.staying(j, p); stays {
		j.Waiting = true
		if little { // the rest is page cache: no reason not to set the mems
			r.finish(j, why)
			return
		}
		r.settle(j, why)
		return
	}
	if j.Idle < r.cfg.NoProgressWindows {
		r.move(j, p)
		return
	}
	left := action.Reason{Rule: "actuate.stuck", Numbers: j.stuck(p)}
	if float64(p.anon) <= float64(p.total)*float64(r.cfg.ResidualBound) {
		r.finish(j, left)
		return
	}
	r.settle(j, left)
}

// stuck is the resident memory that stays elsewhere although moves were tried.
func (j *Job) stuck(p pages) []action.Number {
	left := action.Number{Name: "bytes_elsewhere", Value: unit.Measured(float64(p.anon), "pages by node"), Limit: unit.Some(float64(p.total)), Unit: "bytes"}
	return []action.Number{left, action.Counted("windows_without_progress", float64(j.Idle), "windows")}
}

// finish sets the mems, or ends if they are set already; why is the reason why pages
// stay.
func (r *round) finish(j *Job, why action.Reason) {
	if j.MemsSet {
		r.settle(j, why)
		return
	}
	j.enter(StageMems, why)
	r.ask(j, action.Step{Kind: action.SetMems, Nodes: j.Nodes})
}

// askMemsAgain: not confirmed yet. If many pages are elsewhere again meanwhile, the
// write would take long: move first.
func (r *round) askMemsAgain(j *Job, wl *window.Workload, p pages, known bool) {
	if known && p.anon > max(r.threshold(p), unit.Bytes(float64(p.total)*float64(r.cfg.ResidualBound))) {
		j.enter(StagePages)
		r.pursue(j, wl, p)
		return
	}
	r.ask(j, action.Step{Kind: action.SetMems, Nodes: j.Nodes})
}

// progress counts the windows without progress, though a move was tried. The first
// window after set-cpus only sets the base.
func (j *Job) progress(p pages) {
	if p.anon < j.BestAnon.Or(p.anon+1) || p.all < j.BestAll.Or(p.all+1) {
		j.Idle = 0
	} else if !j.Asked { // otherwise the moves of others took the whole turn
		j.Idle++
	}
	j.BestAnon = unit.Some(min(p.anon, j.BestAnon.Or(p.anon)))
	j.BestAll = unit.Some(min(p.all, j.BestAll.Or(p.all)))
}

// watch is number 4: pages that grow elsewhere again are moved again, if that pays. If
// they grow again and again, it waits longer each time.
func (r *round) watch(j *Job, wl *window.Workload, p pages) {
	r.judge(j, wl, p)
	j.Floor = min(j.Floor, p.anon)
	if j.Waiting {
		r.reconsider(j, wl, p)
		return
	}
	if p.anon <= j.Floor+r.threshold(p) {
		j.calm(r.cfg.NoProgressWindows)
		return
	}
	wait := max(r.cfg.NoProgressWindows, r.patience(j, p))
	j.Grown++
	r.weigh(j)
	switch {
	case j.Grown < r.cfg.NoProgressWindows:
	case j.Grown < wait:
		j.Why = r.waits(j, p, wait)
	case r.worth(j):
		r.resume(j, p)
	default:
		j.Waiting, j.Why = true, j.short()
	}
}

// calm: nothing grows, and the report of growth is over.
func (j *Job) calm(patience int) {
	if j.Grown >= patience {
		j.Why = action.Reason{}
	}
	j.Grown, j.Turn, j.Credit = 0, 0, 0
}

// shareBudget is number 4 of Step. Every move gets an equal part of the window's bytes,
// and what the small ones do not need goes to the larger ones. A move that would get
// nothing is left out. The moves in a window make it longer: if the next window's bytes
// grew with that, windows would never be short again.
func (r *round) shareBudget() {
	if r.cfg.Rate == 0 {
		return // Budget is all that there is to move
	}
	var moves []int
	for i := range r.steps {
		if r.steps[i].Kind == action.MovePages {
			moves = append(moves, i)
		}
	}
	if len(moves) == 0 {
		return
	}
	slices.SortStableFunc(moves, func(a, b int) int { return cmp.Compare(r.steps[a].Budget, r.steps[b].Budget) })
	turn := r.w.Length
	if r.cfg.Turn > 0 {
		turn = min(turn, r.cfg.Turn)
	}
	left := unit.Bytes(float64(r.cfg.Rate) * turn.Seconds())
	for k, i := range moves {
		part := left / unit.Bytes(len(moves)-k)
		r.steps[i].Budget = min(r.steps[i].Budget, part)
		left -= r.steps[i].Budget
	}
	r.steps = slices.DeleteFunc(r.steps, func(s action.Step) bool { return s.Kind == action.MovePages && s.Budget <= 0 })
}

// firstFor is the number of windows in which one move may come first while others wait.
// If the machine, not Rate, is the limit, the first takes the whole turn: the first
// workload is at home when half of all pages are; side by side all would be late. More
// windows let a huge workload block the others for longer.
const firstFor = 7

// order is number 5 of Step: the moves from the first one on, then those before it. The
// turn passes on when the first one has ended, or was first for firstFor windows.
// Workloads whose hot pages are not at home yet come before all others, because these
// pay most.
func (r *round) order(first string, windows int) (string, int) {
	var movers, hot []string // ascending, as jobs are
	for i := range r.jobs {
		j := &r.jobs[i]
		if j.Asked = r.moves(j.Workload); j.Asked {
			movers = append(movers, j.Workload)
		}
		if j.Asked && r.cfg.HotFirst && !j.HotHome {
			hot = append(hot, j.Workload)
		}
	}
	if len(movers) == 0 {
		return "", 0
	}
	moves := r.steps[len(r.steps)-len(movers):] // they are the last steps
	if len(hot) > 0 {
		movers = hot
	}
	i, on := slices.BinarySearch(movers, first)
	if on && windows >= firstFor {
		i, on = i+1, false
	}
	if i %= len(movers); !on {
		first, windows = movers[i], 0
	}
	late := func(s action.Step) int {
		if !slices.Contains(movers, s.Workload) {
			return 2
		}
		return after(s.Workload, first)
	}
	slices.SortStableFunc(moves, func(a, b action.Step) int { return cmp.Compare(late(a), late(b)) })
	return first, windows + 1
}

// moves says that a move of a workload is among the steps.
func (r *round) moves(workload string) bool {
	for i := range r.steps {
		if r.steps[i].Kind == action.MovePages && r.steps[i].Workload == workload {
			return true
		}
	}
	return false
}

// after is 1 for workloads that come before first: their turn is in the next round.
func after(workload, first string) int {
	if workload < first {
		return 1
	}
	return 0
}
