// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"slices"

	"homenode/internal/action"
)

// An isolation is no stage of a binding: a workload may have either, both or none.
//
//  1. A class is kept while an Isolate asks for it. Without one in a window it is given
//     back. Binding and unbinding do not affect it; but a Restore gives back all that a
//     workload had, so a class that is still wanted is set again after it.
//  2. Refused or drifted: the earlier class is given back, and this one is not asked
//     for again. The policy learns of it by the outcome.
//  3. Failed: it is tried again, less and less often; after RetryLimit as (2).
//  4. Gone: given back after ForgetAfter windows without the workload.
//  5. Giving back is tried until it succeeds, less and less often.

// isolate is number 2 of Step, for classes.
func (r *round) isolate(a action.Action) {
	var class action.Class
	if a.Class != nil {
		class = *a.Class
	}
	r.asked = append(r.asked, a.Workload)
	i, there := findIsolated(r.isolated, a.Workload)
	if !there {
		if class.None() {
			return
		}
		r.isolated = slices.Insert(r.isolated, i, Isolation{Workload: a.Workload, Class: class, Reason: a.Reason})
		return
	}
	it := &r.isolated[i]
	if it.Absent > r.cfg.ForgetAfter {
		return // it is being given back
	}
	if it.Class != class {
		it.Failures, it.Wait, it.Quiet = 0, 0, 0
	}
	if it.Class = class; !a.Renew {
		it.Reason = a.Reason
	}
}

func (it *Isolation) giveBack(why action.Reason) {
	*it = Isolation{Workload: it.Workload, Reason: why}
}

func findIsolated(all []Isolation, workload string) (int, bool) {
	return slices.BinarySearchFunc(all, workload, func(it Isolation, id string) int { return cmp.Compare(it.Workload, id) })
}

// classOutcome is number 1 of Step, for classes.
func (r *round) classOutcome(o *action.Outcome) {
	i, there := findIsolated(r.isolated, o.Step.Workload)
	if !there || o.Step.Kind != action.SetClass || o.Step.Class == nil {
		return
	}
	it := &r.isolated[i]
	if *o.Step.Class != it.Class { // of an earlier action
		return
	}
	giving := it.Class.None()
	switch o.Status {
	case action.Done, action.InProgress, action.DryRun:
		if it.Failures, it.Wait, it.Quiet = 0, 0, classEvery; giving {
			r.isolated = slices.Delete(r.isolated, i, i+1)
		}
	case action.Failed:
		it.Failures++
		it.Wait = 1<<min(it.Failures, longestWait) - 1
		if !giving && it.Failures > r.cfg.RetryLimit {
			it.giveBack(it.Reason)
		}
	case action.Refused, action.Drifted, action.Gone:
		if !giving {
			it.giveBack(it.Reason)
			return
		}
		if o.Status == action.Gone {
			r.isolated = slices.Delete(r.isolated, i, i+1)
			return
		}
		it.Failures++
		it.Wait = 1<<min(it.Failures, longestWait) - 1
	}
}

// classEvery: in one of this many windows a class that was set is asked for again, for
// the processes that joined the workload since, and to detect that another process
// changed it.
const classEvery = 6

// keepIsolated is number 3 of Step, for classes.
func (r *round) keepIsolated() {
	for i := range r.isolated {
		it := &r.isolated[i]
		if !it.Class.None() && !slices.Contains(r.asked, it.Workload) {
			it.giveBack(action.Reason{Rule: "actuate.class.over", Workload: it.Workload})
		}
		if slices.ContainsFunc(r.steps, func(s action.Step) bool { return s.Kind == action.Restore && s.Workload == it.Workload }) {
			it.Quiet = 0
		}
		if _, ok := r.workload(it.Workload); ok {
			it.Absent = 0
		} else if it.Absent++; it.Absent > r.cfg.ForgetAfter && !it.Class.None() {
			it.giveBack(it.Reason)
		} else if !it.Class.None() {
			continue
		}
		if it.Wait > 0 {
			it.Wait--
			continue
		}
		if it.Quiet > 0 {
			it.Quiet--
			continue
		}
		class := it.Class
		r.steps = append(r.steps, action.Step{Kind: action.SetClass, Workload: it.Workload, Class: &class, Reason: it.Reason})
	}
}
