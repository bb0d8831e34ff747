// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const schema = 1

// Summary is the result of a run.
type Summary struct {
	Schema  int           `json:"schema"`
	Period  time.Duration `json:"period_ns"`
	Ran     time.Duration `json:"ran_ns"`
	Windows uint64        `json:"windows"`
	Late    uint64        `json:"late_windows"` // windows that began more than a period late
	// Stretched counts windows that began late because windows took longer than
	// a period.
	Stretched bool `json:"stretched"`
	// Hung says that the run did not end when it was told to. The settings are restored;
	// nothing else is known.
	Hung    bool   `json:"hung,omitempty"`
	Hold    bool   `json:"hold"`
	DryRun  bool   `json:"dry_run"`
	Events  string `json:"event_table"`
	Moves   int    `json:"moves"` // in a dry run: moves that were asked for, one per thread and node until the node changes
	Refused int    `json:"refused"`
	Drifted int    `json:"drifted"` // affinities that another process has changed since
	Gone    int    `json:"gone"`
	PutBack int    `json:"put_back"` // affinities that were restored at the end
	// Inherited counts the threads that a moved thread had started, and whose own
	// affinity was restored during the run.
	Inherited int `json:"inherited"`
	// CPUSeconds is the CPU time of homenode itself. ReadCost is its part for
	// reading, per thread and window.
	CPUSeconds float64                   `json:"cpu_seconds"`
	ReadCost   unit.Value[time.Duration] `json:"read_cost_ns"`
	Processes  []Process                 `json:"processes"`
	Problems   []string                  `json:"problems"`
	// MoreProblems counts the problems beyond those that are kept.
	MoreProblems int `json:"more_problems,omitempty"`

	threadWindows uint64
}

// Process is one workload of a run.
type Process struct {
	ID        string         `json:"id"`
	Sensitive unit.Opt[bool] `json:"numa_sensitive"`
	Threads   int            `json:"thread_count"` // at the end
	Moves     int            `json:"moves"`
	// Pinned counts threads that another process has pinned, Uncounted threads without
	// counts of the penalty. Both are of the last window.
	Pinned    int `json:"pinned_by_others"`
	Uncounted int `json:"uncounted_threads"`
	// Reason is the policy's reason in the last window; Rules counts the
	// windows by rule.
	Reason action.Reason  `json:"reason"`
	Rules  map[string]int `json:"rules"`
	// Verdict says whether it matters where the workload runs, as the policy inferred it;
	// "" if it did not.
	Verdict string `json:"judged,omitempty"`
	First   Part   `json:"first_tenth"`
	Last    Part   `json:"last_tenth"`
}

// Part is a tenth of a run.
type Part struct {
	Length           time.Duration          `json:"length_ns"`
	CPUByNode        []unit.Value[float64]  `json:"cpu_by_node"` // CPUs; in the order of the nodes
	Penalty          unit.Value[float64]    `json:"uncore_penalty"`
	LocalAccessRatio unit.Value[unit.Ratio] `json:"local_access_ratio"`
}

func (r *run) of(id string) *series {
	s := r.series[id]
	if s == nil {
		s = &series{id: id}
		r.series[id] = s
	}
	return s
}

// standing is what is last known of a workload, and the reason.
type standing struct {
	pinned, uncounted int
	reason            action.Reason
	rules             map[string]int
}

// count counts the threads of a workload.
func (s *standing) count(wl *window.Workload) {
	s.pinned, s.uncounted = 0, 0
	for i := range wl.Threads {
		t := &wl.Threads[i]
		if t.Pinned {
			s.pinned++
		}
		if !t.UncoreRequests.Known() || !t.UncoreWaits.Known() {
			s.uncounted++
		}
	}
}

// explain adds a policy's reason.
func (s *standing) explain(why action.Reason) {
	if s.rules == nil {
		s.rules = map[string]int{}
	}
	s.reason = why
	s.rules[why.Rule]++
}

// remember adds a window to the sums, and reports where all threads are.
func (r *run) remember(w window.Window, reasons []action.Reason) {
	var parts []string
	tell := r.o.Now().Sub(r.said) >= lineEvery
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		s := r.of(wl.ID)
		s.addWindow(wl, w.Length)
		s.count(wl)
		if tell {
			parts = append(parts, where(w, wl, s.moves))
		}
	}
	for _, why := range reasons {
		if s := r.series[why.Workload]; s != nil {
			s.explain(why)
		}
	}
	if tell {
		r.tell(parts)
	}
}

// where is "pid:12: 2 threads on node 0, 1 on node 1, 3 moves".
func where(w window.Window, wl *window.Workload, moves int) string {
	on := make([]int, len(w.Nodes))
	for _, t := range wl.Threads {
		cpu, ok := t.CPU.Get()
		if i := slices.IndexFunc(w.Nodes, func(n window.Node) bool { return ok && n.CPUs.Has(cpu) }); i >= 0 {
			on[i]++
		}
	}
	var parts []string
	for i, n := range on {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d on node %d", n, w.Nodes[i].ID))
		}
	}
	return fmt.Sprintf("%s: threads %s; moves %d", wl.ID, strings.Join(parts, ", "), moves)
}

// finish makes the summary.
func (r *run) finish() Summary {
	s := r.sum
	cost := unit.UnknownValue[time.Duration]("no window was read")
	if s.threadWindows > 0 {
		cost = unit.Measured(r.o.Reader.CPUTime()/time.Duration(s.threadWindows), "CPU time of the reading thread")
	}
	s.ReadCost = cost
	for _, x := range r.series {
		if len(x.buckets) == 0 {
			continue
		}
		if x.rules == nil {
			x.rules = map[string]int{}
		}
		s.Processes = append(s.Processes, Process{
			ID: x.id, Sensitive: x.sensitive, Threads: x.threads, Moves: x.moves, Pinned: x.pinned, Uncounted: x.uncounted,
			Reason: x.reason, Rules: x.rules, First: x.tenth(false), Last: x.tenth(true),
		})
	}
	slices.SortFunc(s.Processes, func(a, b Process) int { return strings.Compare(a.ID, b.ID) })
	return s
}
