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

// Summary is what came of a run.
type Summary struct {
	Schema  int           `json:"schema"`
	Period  time.Duration `json:"period_ns"`
	Ran     time.Duration `json:"ran_ns"`
	Windows uint64        `json:"windows"`
	Late    uint64        `json:"late_windows"` // that began more than a period late
	// Stretched: windows took longer than a period, and began later than that.
	Stretched bool `json:"stretched"`
	// Hung: the run did not end when it was told to. What was set is put back; nothing else
	// is known.
	Hung    bool   `json:"hung,omitempty"`
	Hold    bool   `json:"hold"`
	DryRun  bool   `json:"dry_run"`
	Events  string `json:"event_table"`
	Moves   int    `json:"moves"` // in a dry run wishes: of a thread for a node, each once until it is another
	Refused int    `json:"refused"`
	Drifted int    `json:"drifted"` // somebody else changed the affinity since
	Gone    int    `json:"gone"`
	PutBack int    `json:"put_back"` // affinities that were put back in the end
	// Inherited is of threads that one of those we moved had started, and that were given
	// back what they had inherited, while we ran.
	Inherited int `json:"inherited"`
	// CPUSeconds is what homenode itself used; ReadCost of it for reading, by thread
	// and window.
	CPUSeconds float64                   `json:"cpu_seconds"`
	ReadCost   unit.Value[time.Duration] `json:"read_cost_ns"`
	Processes  []Process                 `json:"processes"`
	Problems   []string                  `json:"problems"`
	// MoreProblems are those beyond the first that are kept.
	MoreProblems int `json:"more_problems,omitempty"`

	threadWindows uint64
}

// Process is one workload of a run.
type Process struct {
	ID        string         `json:"id"`
	Sensitive unit.Opt[bool] `json:"numa_sensitive"`
	Threads   int            `json:"threads"` // in the end
	Moves     int            `json:"moves"`
	// Pinned are threads that another process has pinned, Uncounted those whose penalty is
	// not counted: both of its last window.
	Pinned    int `json:"pinned_by_others"`
	Uncounted int `json:"uncounted_threads"`
	// Reason is the policy's in its last window, Rules the windows by rule.
	Reason action.Reason  `json:"reason"`
	Rules  map[string]int `json:"rules"`
	// Verdict is whether where it runs matters, as the policy inferred it; "": it did not.
	Verdict string `json:"verdict,omitempty"`
	First   Part   `json:"first_tenth"`
	Last    Part   `json:"last_tenth"`
}

// Part is a tenth of a run.
type Part struct {
	Length           time.Duration          `json:"length_ns"`
	CPUByNode        []unit.Value[float64]  `json:"cpu_by_node"` // CPUs' worth; in the order of the nodes
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

// standing is what is last known of a workload, and why.
type standing struct {
	pinned, uncounted int
	reason            action.Reason
	rules             map[string]int
}

// count counts a workload's threads.
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

// explain takes a policy's reason in.
func (s *standing) explain(why action.Reason) {
	if s.rules == nil {
		s.rules = map[string]int{}
	}
	s.reason = why
	s.rules[why.Rule]++
}

// remember takes a window into the sums, and says where all threads are.
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
