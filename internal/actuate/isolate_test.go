// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// Whatever happens to the steps, an isolation is asked for, or given back until that
// was done, or over. After a refusal it is never asked for again by itself.
func TestIsolationEnds(t *testing.T) {
	class := action.Class{Cache: 0.5}
	for _, bad := range []action.Status{action.Failed, action.Refused, action.Drifted, action.Gone} {
		var st State
		var outcomes []action.Outcome
		asked, given := 0, 0
		actions := []action.Action{{Kind: action.Isolate, Workload: "/a", Class: &class}}
		for n := range 300 {
			w := window.Window{Workloads: []window.Workload{{ID: "/a"}}, Outcomes: outcomes}
			var steps []action.Step
			st, steps, _ = Step(machine.Machine{}, DefaultConfig(), st, actions, w)
			actions, outcomes = nil, nil
			for _, s := range steps {
				status := bad
				if s.Class.None() {
					given++
					if given > 3 {
						status = action.Done
					}
				} else {
					asked++
				}
				outcomes = append(outcomes, action.Outcome{Step: s, Status: status})
			}
			if n > 250 && len(steps)+len(st.Isolated) > 0 {
				t.Fatalf("%s: it does not end: %v", bad, st.Isolated)
			}
		}
		most := 1
		if bad == action.Failed {
			most = DefaultConfig().RetryLimit + 1
		}
		if asked > most || given == 0 {
			t.Errorf("%s: asked %d times, given back %d times", bad, asked, given)
		}
	}
}
