// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// maxSummary is how many workloads a dry run remembers for its summary. Those that it would
// have bound later are counted.
const maxSummary = 1000

// Would is what a dry run would have done with one workload.
type Would struct {
	Workload string      `json:"workload"`
	Service  string      `json:"service"`
	At       time.Time   `json:"at"`
	Nodes    set.NodeSet `json:"nodes"`
	// Local is the local access ratio before, and Expected what was expected there: an
	// estimate from shares of CPU time and pages.
	Local    unit.Value[float64] `json:"local_access_ratio"`
	Expected unit.Value[float64] `json:"expected_local_ratio"`
	// CPUs is what it used then.
	CPUs unit.Value[float64] `json:"cpus"`
}

// Summary is what a dry run would have done, and what it would have gained.
type Summary struct {
	Windows uint64            `json:"windows"`
	Actions map[string]uint64 `json:"actions"` // by kind, such as bind
	Binds   []Would           `json:"binds"`   // the first decision on each workload
	More    int               `json:"more"`    // workloads that are not in Binds
}

// summing keeps a dry run's summary.
type summing struct {
	actions map[string]uint64
	binds   map[string]Would
	more    map[string]bool // ids beyond maxSummary; bounded as well
}

// add notes the decisions of a window.
func (s *summing) add(w window.Window, actions []action.Action) {
	if s.actions == nil {
		s.actions, s.binds, s.more = map[string]uint64{}, map[string]Would{}, map[string]bool{}
	}
	for _, x := range action.Decided(actions) {
		s.actions[string(x.Kind)]++
		if x.Kind != action.Bind {
			continue
		}
		if _, ok := s.binds[x.Workload]; ok {
			continue
		}
		if len(s.binds) >= maxSummary {
			if len(s.more) < maxSummary {
				s.more[x.Workload] = true
			}
			continue
		}
		s.binds[x.Workload] = wouldOf(w, x)
	}
}

func wouldOf(w window.Window, x action.Action) Would {
	b := Would{Workload: x.Workload, At: w.At, Nodes: x.Nodes}
	if i, ok := w.WorkloadIndex(x.Workload); ok {
		b.Service, b.CPUs = w.Workloads[i].Service, w.Workloads[i].CPU
	}
	for _, n := range x.Reason.Numbers {
		switch n.Name {
		case "local_access_ratio":
			b.Local = n.Value
		case "expected_local_ratio":
			b.Expected = n.Value
			b.Expected.How = unit.Weakest(b.Expected.How, unit.HowEstimated)
		}
	}
	return b
}

// Summary is complete once Run has returned.
func (a *Agent) Summary() Summary {
	s := Summary{Windows: a.totals.Rounds - a.totals.FailedRounds, Actions: map[string]uint64{}, Binds: []Would{}, More: len(a.sum.more)}
	for kind, n := range a.sum.actions {
		s.Actions[kind] = n
	}
	for _, b := range a.sum.binds {
		s.Binds = append(s.Binds, b)
	}
	slices.SortFunc(s.Binds, func(x, y Would) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Workload, y.Workload)) })
	return s
}

// Gain is the mean rise of the local access ratio over what would have been bound; false:
// unknown. It is an estimate.
func (s Summary) Gain() (unit.Value[float64], bool) {
	sum, n := 0.0, 0
	for _, b := range s.Binds {
		local, ok1 := b.Local.Get()
		there, ok2 := b.Expected.Get()
		if ok1 && ok2 {
			sum, n = sum+there-local, n+1
		}
	}
	if n == 0 {
		return unit.UnknownValue[float64]("no local access ratio is known"), false
	}
	return unit.Estimated(sum/float64(n), fmt.Sprintf("mean of %d workloads, from shares of CPU time and pages", n)), true
}
