// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Undone is a workload whose bind was undone on its way. The next bind must wait, twice
// as long each time.
type Undone struct {
	Workload string `json:"workload"`
	Times    int    `json:"times"`
	Wait     int    `json:"wait,omitempty"`  // windows until it may be bound again
	Quiet    int    `json:"quiet,omitempty"` // windows since; after as many as it waited it is forgotten
}

const (
	// lagging is the factor by which a mover may be slower than measured before.
	lagging = 3
	// laggingFor is the least number of windows that show it: a mover that moved hardly
	// anything may have had other work.
	laggingFor = 2
	// leastSample moved shows the mover's rate, however short it took. Of less, most of
	// the time is that of looking for pages: it shows nothing unless time ended the move,
	// and then of this workload alone.
	leastSample = unit.MiB
	// undoneWait is the length of the first wait in windows.
	undoneWait = 4
)

func findUndone(all []Undone, workload string) (int, bool) {
	return slices.BinarySearchFunc(all, workload, func(u Undone, id string) int { return cmp.Compare(u.Workload, id) })
}

// recallUndone counts a window of those that wait, and forgets those that have been quiet.
func (r *round) recallUndone(all []Undone) {
	for _, u := range all {
		if u.Wait > 0 {
			u.Wait--
		} else {
			u.Quiet++
		}
		if u.Quiet < u.length() {
			r.undos = append(r.undos, u)
		}
	}
}

// length is the number of windows that it waits.
func (u Undone) length() int { return undoneWait << min(u.Times-1, longestWait) }

// waitsAfterUndo is the reason why a workload is not bound yet; false if it may be.
func (r *round) waitsAfterUndo(workload string) (why action.Reason, waits bool) {
	i, ok := findUndone(r.undos, workload)
	if !ok || r.undos[i].Wait == 0 {
		return why, false
	}
	return action.Reason{Rule: "actuate.waits-after-undo", Numbers: []action.Number{
		action.Counted("undone_in_a_row", float64(r.undos[i].Times), "times"), action.Counted("windows_to_wait", float64(r.undos[i].Wait), "windows"),
	}}, true
}

// moved takes the mover's rate from a move's outcome.
func (r *round) moved(j *Job, o *action.Outcome) {
	took := o.Took
	if took <= 0 { // not known: the turn at most
		took = r.turn()
	}
	v, known := r.pace.rate().Get()
	if took > 0 && (o.Took > 0 || o.Status == action.InProgress || !known || float64(o.Moved)/took.Seconds() > v) {
		enough := o.Moved >= leastSample
		if enough {
			r.pace = r.pace.with(o.Moved, took)
		}
		if enough || o.Moved > 0 && o.Status == action.InProgress && took >= r.turn()/10 {
			j.Pace = j.Pace.with(o.Moved, took)
		}
	}
	if j.onWay() {
		j.Way.Moved += o.Moved
		r.keepUp(j, o, took)
	}
}

// keepUp is for a mover that was measured when its workload began: it compares what
// should have been moved since with what was; each window counts twice as much as the
// one before. A mover that has no more to move is not slow, and one that moves nothing
// is stuck.
func (r *round) keepUp(j *Job, o *action.Outcome, took time.Duration) {
	w := &j.Way
	if o.Status != action.InProgress || o.Moved <= 0 || j.Stage != StageAhead && j.Stage != StagePages {
		return
	}
	if rate, ok := j.Pace.rate().Get(); !w.measured() && ok && j.Stage == StagePages { // otherwise departs revises it
		*w = w.revised(unit.Measured(rate, "its own moves"))
	}
	if !w.measured() {
		return
	}
	w.Due = float64(w.Due/2) + min(float64(o.Step.Budget), w.Rate.Or(0)*took.Seconds())
	w.Did = float64(w.Did/2) + float64(o.Moved)
	if w.Due <= lagging*w.Did {
		w.Late = 0
		return
	}
	if w.Late++; w.Late < laggingFor {
		return
	}
	lately := action.Number{Name: "rate_lately", Value: unit.Measured(float64(j.lately()), "its own moves"), Limit: unit.Some(w.Rate.Or(0) / lagging), Unit: "bytes/s"}
	r.undo(j, action.Reason{Rule: "actuate.undone.slow", Numbers: append(w.numbers(), w.movedSoFar(), lately)})
}

// revised is a way with the rate that was measured since it was estimated.
func (w Way) revised(rate unit.Value[float64]) Way {
	slower := w.Rate.Or(0) / rate.Or(1)
	w.Rate, w.Orders = rate, slices.Clone(w.Orders)
	for i := range w.Orders {
		e := &w.Orders[i]
		e.Home, e.Below = scaled(e.Home, slower), scaled(e.Below, slower)
	}
	return w
}

func scaled(d time.Duration, by float64) time.Duration {
	return time.Duration(min(float64(d)*by, float64(longest))).Round(time.Second)
}

// late is for memory that was moved first and is not where it should be after three
// times as long as expected, though the mover is no slower: it grows elsewhere as fast
// as it is moved, or is moved back.
func (r *round) late(j *Job) bool {
	w, elapsed := &j.Way, j.Way.Elapsed
	if !w.measured() || elapsed <= lagging*w.estimate().Home || elapsed < laggingFor*r.turn() {
		return false
	}
	took := action.Number{Name: "elapsed", Value: unit.Measured(elapsed.Seconds(), "windows"), Limit: unit.Some(lagging * w.estimate().Home.Seconds()), Unit: "s"}
	r.undo(j, action.Reason{Rule: "actuate.undone.late", Numbers: append(w.numbers(), w.movedSoFar(), took)})
	return true
}

// lately is the mover's rate in the windows that keepUp judges.
func (j *Job) lately() unit.Bytes { return unit.Bytes(j.Way.Rate.Or(0) * j.Way.Did / j.Way.Due) }

// onWay says that a bind has an expected result.
func (j *Job) onWay() bool { return j.Way.Order != "" && !j.Way.Over }

// worse compares a window with the one before the bind, and undoes a bind that was
// worse for longer than expected. A single window is no reason.
func (r *round) worse(j *Job, wl *window.Workload) bool {
	w := &j.Way
	if !j.onWay() || !w.Before.Known() {
		return false
	}
	low, known := r.fell(w, wl)
	switch {
	case known && low.Name == "":
		w.Below, w.Run = 0, 0
	case known:
		w.Below, w.Run = w.Below+r.w.Length, w.Run+1
		w.Worst = max(w.Worst, w.Below)
	}
	if w.Run < 2 || w.Below <= w.allowed() || !known || low.Name == "" {
		return false
	}
	below := action.Number{Name: "below", Value: unit.Measured(w.Below.Seconds(), "windows"), Limit: unit.Some(w.allowed().Seconds()), Unit: "s"}
	r.undo(j, action.Reason{Rule: "actuate.undone.worse", Numbers: append(w.numbers(), low, below)})
	return true
}

// fell is the figure of a window that is worse than before, with its limit; a Number
// without a name: none. False: unknown.
func (r *round) fell(w *Way, wl *window.Workload) (action.Number, bool) {
	judged := false
	if v, ok := window.LocalAccess(wl).Get(); ok && window.LocalSourceOf(wl) == w.Source && readsEnough(wl) {
		judged = true
		if least := w.floor(); float64(v) < least {
			ratio := window.LocalAccessRatio(wl)
			return action.Number{Name: "local_access_ratio", Value: unit.ValueOf(float64(v), ratio.How, ratio.From), Limit: unit.Some(least), Unit: "ratio"}, true
		}
	}
	before, was := w.Work.Get()
	if v, ok := workPerCycle(wl).Get(); ok && was {
		judged = true
		if least := before * (1 - tolerated); v < least {
			return action.Number{Name: "work_per_cycle", Value: unit.Measured(v, "instructions / cycles"), Limit: unit.Some(least)}, true
		}
	}
	return action.Number{}, judged
}

// floor is the least ratio that a window may have.
func (w *Way) floor() float64 {
	return leastOf(float64(w.Before.Or(0)), float64(w.End), tolerated)
}

// arrives ends the way of a settled job, in a window that is not worse.
func (r *round) arrives(j *Job) {
	if j.onWay() && (j.Stage == StageBound || j.Stage == StageCPUsOnly) && j.Way.Run == 0 {
		j.Way.Over, j.Way.Took = true, j.Way.Elapsed
		r.forgive(j.Workload)
	}
}

// forgive forgets earlier undos: a bind has come home.
func (r *round) forgive(workload string) {
	if i, ok := findUndone(r.undos, workload); ok {
		r.undos = slices.Delete(r.undos, i, i+1)
	}
}

// undo ends a bind on its way: the earlier settings are restored, and the next bind
// waits.
func (r *round) undo(j *Job, why action.Reason) {
	r.stop(j, why)
	r.outcomes[len(r.outcomes)-1].Undone = true
	i, ok := findUndone(r.undos, j.Workload)
	if !ok {
		r.undos = slices.Insert(r.undos, i, Undone{Workload: j.Workload})
	}
	u := &r.undos[i]
	u.Times, u.Quiet = u.Times+1, 0
	u.Wait = u.length()
}

// stop ends a bind, and its policy learns of it. What may have been set is restored.
func (r *round) stop(j *Job, why action.Reason) {
	why.Workload = j.Workload
	j.Reason = why
	r.report(*j, action.Refused, why)
	j.enter(StageRestoring, why)
}

// refuseWay is number 3 of departs. The figures are those of the order that gains most.
func (r *round) refuseWay(j *Job) {
	best := j.Way.Orders[0]
	for _, e := range j.Way.Orders[1:] {
		if e.Gain > best.Gain {
			best = e
		}
	}
	w := j.Way
	w.Order = best.Order
	j.Way.Order = NotAtAll
	horizon := action.Number{Name: "horizon", Value: unit.Measured(r.cfg.Horizon.Seconds(), "configuration"), Unit: "s"}
	r.stop(j, action.Reason{
		Rule: "actuate.way.none", Detail: string(best.Order), Numbers: append(w.numbers(), horizon), Alternatives: j.Way.alternatives(j.Nodes),
	})
}
