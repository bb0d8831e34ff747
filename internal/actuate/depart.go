// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// departs says that a bind's CPUs may be set now. If not, the bind moves memory first,
// waits until that pays, or ends. The choice is made again in each window until the
// CPUs are set, from what is known then:
//
//  1. CPUs go first if the ratio is unknown, if memory is not to be moved, or if the
//     configuration says so.
//  2. CPUs are set once that is the best order for what is left, or once they are as
//     well off at home as where they are.
//  3. The bind ends if no order pays.
func (r *round) departs(j *Job, wl *window.Workload, p pages, known bool) bool {
	if j.Stage == StageCPUs && j.Way.Order != "" || r.cfg.Way == AlwaysCPUsFirst { // it was decided
		return true
	}
	if !known || !j.mayMove(wl) { // 1
		return j.Stage == StageCPUs || r.lost(j, wl, known)
	}
	f, ok := r.forecast(j, wl, p)
	if !ok {
		r.setOut(j, wl, Way{Order: CPUsFirst})
		return r.commit(j)
	}
	switch order := r.choose(j, wl, p, f); {
	case order == CPUsFirst || f.ready() || r.allThatMoves(j, wl, f): // 2
		return r.commit(j)
	case order == NotAtAll: // 3
		r.refuseWay(j)
		return false
	}
	j.Stage = StageAhead
	if !r.worse(j, wl) {
		r.goAhead(j, p)
	}
	return false
}

// choose is the order for what is left. The expectation is reported when the way begins
// (until then in each window), and once more when the mover was measured.
func (r *round) choose(j *Job, wl *window.Workload, p pages, f forecast) Order {
	rate, orders := r.rateOf(j, p), f.orders()
	waits := j.Waiting || !r.worth(j) || !j.Moving && r.patience(j, p) > 0
	order := f.chosen(orders, rate.How == unit.HowMeasured, waits)
	if !j.begun() || !j.Way.measured() && rate.How == unit.HowMeasured {
		r.setOut(j, wl, Way{Order: order, End: unit.Ratio(f.cpus.to), Bytes: p.all, Rate: rate, Others: r.others(j), Orders: orders})
	}
	return order
}

// commit is number 2 of departs. A move in progress continues; a move that waits goes
// on waiting.
func (r *round) commit(j *Job) bool {
	moving := j.Moving
	j.enter(StageCPUs)
	j.Moving = moving
	return true
}

// lost is for a workload that moved its memory first, and whose pages are no longer
// known, or no longer to be moved.
func (r *round) lost(j *Job, wl *window.Workload, known bool) bool {
	if known { // as for a bind that began this way
		j.Way = Way{Order: CPUsFirst}
		return r.commit(j)
	}
	if j.Idle++; j.Idle >= r.cfg.NoProgressWindows {
		r.stop(j, action.Reason{Rule: "actuate.way.unknown"})
	}
	return false
}

// setOut stores a way, new or revised: the values from its start stay.
func (r *round) setOut(j *Job, wl *window.Workload, w Way) {
	if j.begun() {
		w.Before, w.Source, w.Work = j.Way.Before, j.Way.Source, j.Way.Work
		w.Elapsed, w.Moved, w.Below, w.Run, w.Worst = j.Way.Elapsed, j.Way.Moved, j.Way.Below, j.Way.Run, j.Way.Worst
		w.Bytes += w.Moved
		for i := range w.Orders { // they are a new slice
			w.Orders[i].Home += w.Elapsed
		}
	} else {
		w.Before, w.Source, w.Work = r.ratioOf(wl), window.LocalSourceOf(wl), workPerCycle(wl)
	}
	j.Way = w
}

// begun says that a bind has done something. Until then each window is the one before
// it.
func (j *Job) begun() bool { return j.Way.Order != "" && (!j.Waiting || j.Way.Moved > 0) }

// ratioOf is a local access ratio that can be compared; unknown after too few reads.
func (r *round) ratioOf(wl *window.Workload) unit.Value[unit.Ratio] {
	if !readsEnough(wl) {
		all, _ := wl.Loads()
		return unit.UnknownValue[unit.Ratio](fmt.Sprintf("it read DRAM %.0f times, too rarely to judge by", all))
	}
	return window.LocalAccessRatio(wl)
}

// readsEnough is false if too few loads were counted to mean anything.
func readsEnough(wl *window.Workload) bool {
	all, ok := wl.Loads()
	return !ok || all == 0 || all >= fewLoads
}

// workPerCycle is instructions per cycle of a workload with one task: none of its
// threads spins while it waits for another. With more tasks, more instructions may mean
// less progress.
func workPerCycle(wl *window.Workload) unit.Opt[float64] {
	if wl.Tasks.Or(0) != 1 {
		return unit.None[float64]()
	}
	return window.IPC(wl.Instructions, wl.Cycles).V
}

// forecast is false if the present local ratio is unknown.
func (r *round) forecast(j *Job, wl *window.Workload, p pages) (forecast, bool) {
	now, known := r.ratioOf(wl).Get()
	before := now
	if j.begun() {
		b, ok := j.Way.Before.Get()
		if before = b; !ok {
			return forecast{}, false
		}
		if !known {
			now, known = b, true
		}
	}
	if !known || p.total == 0 {
		return forecast{}, false
	}
	f := forecast{before: float64(before), window: r.turn().Seconds(), horizon: r.cfg.Horizon.Seconds()}
	f.cpus, f.memory = r.ramps(j, wl, p)
	f.memory.from = float64(now)
	rate := r.rateOf(j, p).Or(priorRate)
	f.wait, f.own = float64(r.others(j))/rate, float64(p.all)/rate
	return f, f.window > 0
}

// ramps are the ratio with its CPUs at home, and with its CPUs where they are: Σ CPU
// share × page share by node, as if all pages were read equally. Pages that move spread
// as the CPUs do there.
func (r *round) ramps(j *Job, wl *window.Workload, p pages) (cpus, memory ramp) {
	ours, theirs := 0.0, 0.0
	for i := range r.w.Nodes {
		ours += r.weightAt(j, i)
		theirs += r.weightNow(wl, i)
	}
	for i := range r.w.Nodes {
		if !j.Nodes.Has(r.w.Nodes[i].ID) {
			continue
		}
		weight, here := r.weightAt(j, i)/max(ours, 1), float64(bytesOn(wl, i))
		there := (here + float64(weight*float64(p.all))) / float64(p.total)
		cpus.from += float64(weight * here / float64(p.total))
		cpus.to += float64(weight * there)
		if theirs > 0 {
			memory.to += float64(r.weightNow(wl, i) / theirs * there)
		}
	}
	return cpus, memory
}

// weightAt is the share of its CPU time that will be on the i-th node, by CPUs.
func (r *round) weightAt(j *Job, i int) float64 {
	return float64(r.w.Nodes[i].CPUs.Intersect(j.CPUs).Len())
}

// weightNow is the share of its CPU time there now; by the CPUs it may use if its time
// is unknown.
func (r *round) weightNow(wl *window.Workload, i int) float64 {
	if len(wl.CPUByNode) == len(r.w.Nodes) && wl.CPU.Or(0) > 0 {
		return wl.CPUByNode[i].Or(0)
	}
	if wl.Binding.CPUs.IsEmpty() {
		return float64(r.w.Nodes[i].CPUs.Len())
	}
	return float64(r.w.Nodes[i].CPUs.Intersect(wl.Binding.CPUs).Len())
}

// allThatMoves: what is left cannot be moved, and is page cache except for a little. It
// counts as not read, as for the mems; the next windows will show.
func (r *round) allThatMoves(j *Job, wl *window.Workload, f forecast) bool {
	if !j.Drained && j.Idle < r.cfg.NoProgressWindows {
		return false
	}
	home, all := 0.0, 0.0
	for i := range r.w.Nodes {
		anon := float64(wl.AnonByNode[i].Or(0))
		if all += anon; j.Nodes.Has(r.w.Nodes[i].ID) {
			home += anon
		}
	}
	return all == 0 || home/all*f.cpus.to >= f.floor()
}

// others are bytes of other workloads that are moving, or about to: the mover may serve
// them first.
func (r *round) others(j *Job) (sum unit.Bytes) {
	if r.pending == nil {
		r.pending = make([]unit.Bytes, len(r.jobs))
		for i := range r.jobs {
			r.pending[i] = r.toMove(&r.jobs[i])
		}
	}
	for i := range r.jobs {
		if r.jobs[i].Workload != j.Workload {
			sum += r.pending[i]
		}
	}
	return sum
}

// toMove is what a job has to move, if it has begun to or will now.
func (r *round) toMove(j *Job) unit.Bytes {
	wl, ok := r.workload(j.Workload)
	if !ok || !j.Moving && (j.Stage != StageCPUs || j.Way.Order != "") || !j.mayMove(wl) {
		return 0
	}
	p, _ := r.pagesOf(wl, j.Nodes)
	return p.all
}

// rateOf is the mover's rate for one workload, bytes/s: its own on this way, or else
// that of any workload, or else priorRate or the known cost of a page; never more than
// Rate.
func (r *round) rateOf(j *Job, p pages) unit.Value[float64] {
	limit := func(v float64) float64 {
		if r.cfg.Rate > 0 {
			return min(v, float64(r.cfg.Rate))
		}
		return v
	}
	if v, ok := j.Pace.rate().Get(); ok {
		return unit.Measured(limit(v), "its own moves")
	}
	if v, ok := r.pace.rate().Get(); ok {
		return unit.Measured(limit(v), "moves of other workloads")
	}
	prior := priorRate
	if price, ok := r.costs.Price(p.by, j.Nodes, false).Get(); ok && price > 0 {
		prior = min(prior, 1/price)
	}
	return unit.Estimated(limit(prior), "no move was measured yet")
}

// turn is how long the moves of a window may take.
func (r *round) turn() time.Duration {
	if r.cfg.Turn > 0 {
		return min(r.w.Length, r.cfg.Turn)
	}
	return r.w.Length
}

// goAhead moves memory while the CPUs stay where they are: nothing is set yet, so
// waiting until it pays costs nothing.
func (r *round) goAhead(j *Job, p pages) {
	if j.Waiting {
		r.weigh(j)
		switch wait := max(r.cfg.NoProgressWindows, r.patience(j, p)); {
		case !r.worth(j):
			j.Why = j.short()
			return
		case j.Turn < wait:
			j.Why = r.waits(j, p, wait)
			return
		}
		j.enter(StageAhead)
		j.Waiting = false
	} else if why, stays := r.staying(j, p); stays {
		j.enter(StageAhead, why)
		j.Waiting, j.Moving = true, false
		return
	}
	if r.late(j) {
		return
	}
	if j.progress(p); j.Idle >= r.cfg.NoProgressWindows {
		r.stop(j, action.Reason{Rule: "actuate.way.stuck", Numbers: j.stuck(p)})
		return
	}
	r.move(j, p)
}

// aheadOutcome is for a move while nothing is set: a refused move ends the bind.
func (r *round) aheadOutcome(j *Job, o *action.Outcome) {
	switch o.Status {
	case action.Done:
		j.Drained = true
	case action.InProgress:
		j.Drained = o.Moved == 0
	case action.DryRun, action.Drifted:
		j.ends(o)
	case action.Refused:
		r.stop(j, because("actuate.way.refused", o.Detail))
	case action.Failed:
		if j.Failures++; j.Failures > r.cfg.RetryLimit {
			r.stop(j, failures("actuate.way.failed", j.Failures, o.Detail))
		}
	}
}
