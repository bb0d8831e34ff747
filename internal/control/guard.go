// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"

	"homenode/internal/action"
	"homenode/internal/window"
)

// guard returns the steps that may be taken, and reports the outcomes of the others. A
// thread that another process has pinned stays where it is, whatever a policy asks for. A
// step names the start time of the thread that the policy saw: another thread may have its
// number when the step is taken.
func guard(w *window.Window, steps []action.Step, tell func(action.Outcome)) []action.Step {
	pins := func(s action.Step) bool { return s.Kind == action.PinThread }
	if !slices.ContainsFunc(steps, pins) {
		return steps
	}
	may := make([]action.Step, 0, len(steps))
	for _, s := range steps {
		if o := admit(w, &s); o.Status != "" {
			tell(o)
			continue
		}
		may = append(may, s)
	}
	return may
}

// admit returns no status for a step that may be taken.
func admit(w *window.Window, s *action.Step) action.Outcome {
	if s.Kind != action.PinThread {
		return action.Outcome{}
	}
	th, found := threadOf(w, *s)
	s.Start = th.Start
	switch {
	case !found:
		return action.Outcome{Step: *s, Status: action.Gone, Detail: fmt.Sprintf("thread %d of %s is not in this window", s.Thread, s.Workload)}
	case th.Pinned:
		return action.Outcome{Step: *s, Status: action.Refused, Detail: fmt.Sprintf("thread %d of %s: another process has pinned it to CPUs %s", s.Thread, s.Workload, th.Allowed)}
	}
	return action.Outcome{}
}

func threadOf(w *window.Window, s action.Step) (window.Thread, bool) {
	i, ok := w.WorkloadIndex(s.Workload)
	if !ok {
		return window.Thread{}, false
	}
	threads := w.Workloads[i].Threads
	k, ok := slices.BinarySearchFunc(threads, s.Thread, func(t window.Thread, id int) int { return t.ID - id })
	if !ok {
		return window.Thread{}, false
	}
	return threads[k], true
}
