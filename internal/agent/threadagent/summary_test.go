// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"fmt"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// The summary has the policy's reasons, and how many threads could not be counted.
func TestSummarySaysWhy(t *testing.T) {
	w := newWorld(1, 2, 3)
	w.pinned[2] = true
	n := 0
	s, err := Run(context.Background(), w.options(func(_ machine.Machine, now window.Window) ([]action.Action, []action.Reason) {
		rule := "brm.explore"
		if n++; n > 5 {
			rule = "brm.stay"
		}
		return nil, []action.Reason{{Rule: rule, Workload: "pid:1"}, {Rule: "x", Workload: "absent"}}
	}))
	if err != nil || len(s.Processes) != 1 {
		t.Fatalf("%+v, %v", s, err)
	}
	p := s.Processes[0]
	if p.Reason.Rule != "brm.stay" || p.Rules["brm.explore"] != 5 || p.Rules["brm.stay"] != int(s.Windows)-5 || p.Pinned != 1 || p.Uncounted != 3 {
		t.Errorf("%+v", p)
	}
}

// A hundred sentences are kept, and the others are counted.
func TestManyProblems(t *testing.T) {
	w := newWorld(1)
	r := &run{o: w.options(nil)}
	for i := range 250 {
		r.problem(fmt.Sprintf("thread %d", i))
		r.problem("thread 0")
	}
	if len(r.sum.Problems) != 100 || r.sum.MoreProblems != 150 || len(w.said) != 101 {
		t.Errorf("%d, and %d more; %d said", len(r.sum.Problems), r.sum.MoreProblems, len(w.said))
	}
}
