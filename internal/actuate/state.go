// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"slices"
	"sort"

	"homenode/internal/action"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// State is all jobs: a plain value, printable as JSON. Step never changes one, it
// returns another. The zero State is empty.
type State struct {
	Jobs []Job  `json:"jobs,omitempty"` // ascending by workload
	Past []Past `json:"past,omitempty"` // ascending by workload
	// Isolated are the workloads that are, or are to be, kept to a class, ascending.
	Isolated []Isolation `json:"isolated,omitempty"`
	// Undone are the workloads whose last bind was undone on its way, ascending.
	Undone []Undone `json:"undone,omitempty"`
	// Pace is the measured rate of moves of any workload, since this state began.
	Pace Pace `json:"pace,omitzero"`
	// First is the workload whose move comes first, and FirstFor the number of windows
	// since it came first; see order.
	First    string `json:"first,omitempty"`
	FirstFor int    `json:"first_for,omitempty"`
}

// Stage is the progress of a job; see the package comment.
type Stage string

// The stages.
const (
	StageWiden     Stage = "widen"     // mems that also have the new nodes are asked for, not confirmed
	StageAhead     Stage = "ahead"     // moving, and nothing is set yet; or Waiting for that to pay
	StageCPUs      Stage = "cpus"      // set-cpus is asked for, not confirmed
	StagePages     Stage = "pages"     // moving
	StageMems      Stage = "mems"      // set-mems is asked for, not confirmed
	StageBound     Stage = "bound"     // CPUs and mems are set
	StageCPUsOnly  Stage = "cpus-only" // CPUs are set, mems will not be; Why says why
	StageDry       Stage = "dry"       // a dry run: nothing was done
	StageDrifted   Stage = "drifted"   // another process changed it
	StageRestoring Stage = "restoring" // restore is asked for, not confirmed
)

// Job is one workload's way to its binding, or back.
type Job struct {
	Workload string        `json:"workload"`
	Stage    Stage         `json:"stage"`
	Nodes    set.NodeSet   `json:"nodes"`
	CPUs     set.CPUSet    `json:"cpus"`
	Wanted   set.CPUSet    `json:"wanted_cpus,omitzero"` // those of Nodes that were named; empty: all
	May      set.CPUSet    `json:"may_cpus,omitzero"`    // what it might use before; empty: unknown
	MayMems  set.NodeSet   `json:"may_mems,omitzero"`    // likewise
	CPUsOnly bool          `json:"cpus_only,omitempty"`
	MemsSet  bool          `json:"mems_set,omitempty"` // to Nodes
	Held     set.NodeSet   `json:"held,omitzero"`      // its mems on the way to other nodes; empty: not set by us, or to Nodes
	Why      action.Reason `json:"why,omitzero"`       // of the stage
	Failures int           `json:"failures,omitempty"` // of the stage's step, in a row
	Wait     int           `json:"wait,omitempty"`     // restoring: windows until the next try
	Absent   int           `json:"absent,omitempty"`   // windows in a row without the workload
	Idle     int           `json:"idle,omitempty"`     // pages: windows without progress
	Grown    int           `json:"grown,omitempty"`    // steady: windows above Floor + threshold
	Drained  bool          `json:"drained,omitempty"`  // pages: the mover had nothing more to move
	Moved    unit.Bytes    `json:"moved_bytes,omitempty"`
	HotHome  bool          `json:"hot_home,omitempty"` // the pages that it accesses are at home
	Moving   bool          `json:"moving,omitempty"`   // cpus, pages: a move was asked for
	Waiting  bool          `json:"waiting,omitempty"`  // settled: remote memory is moved once it pays
	Asked    bool          `json:"asked,omitempty"`    // a move was asked for and its outcome is not known yet
	// Turn is, while moving, windows in a row in which that does not pay; for a settled
	// job, windows since moving has paid on average. Credit is the excess: seconds ×
	// times the cost; see weigh.
	Turn   int           `json:"turn,omitempty"`
	Credit float64       `json:"credit_s,omitempty"`
	Reason action.Reason `json:"reason"`
	// BestAnon and BestAll are the least remote bytes seen while moving; Floor is what
	// was left when it settled.
	BestAnon unit.Opt[unit.Bytes] `json:"best_anon_bytes,omitzero"`
	BestAll  unit.Opt[unit.Bytes] `json:"best_all_bytes,omitzero"`
	Floor    unit.Bytes           `json:"floor_bytes,omitempty"`
	// Pays is the last verdict on moving remote memory; none without any.
	Pays unit.Opt[migration.Verdict] `json:"pays,omitzero"`
	Way  Way                         `json:"way,omitzero"`
	Pace Pace                        `json:"pace,omitzero"` // of its own moves
}

// Isolation is a class that a workload is kept to. It is asked for in each window,
// because processes that the workload starts outside of it must be brought in.
type Isolation struct {
	Workload string        `json:"workload"`
	Class    action.Class  `json:"class"` // none: the earlier class is being given back
	Absent   int           `json:"absent,omitempty"`
	Failures int           `json:"failures,omitempty"` // in a row
	Wait     int           `json:"wait,omitempty"`     // windows until the next try
	Quiet    int           `json:"quiet,omitempty"`    // windows until a class that was set is asked for again
	Reason   action.Reason `json:"reason"`
}

// Job returns a workload's job.
func (s State) Job(workload string) (Job, bool) {
	i, ok := find(s.Jobs, workload)
	if !ok {
		return Job{}, false
	}
	return s.Jobs[i], true
}

// Undecided says that some job counts windows until it moves pages: such windows should
// not be longer than necessary.
func (s State) Undecided() bool {
	return slices.ContainsFunc(s.Jobs, func(j Job) bool { return j.Waiting && j.Turn > 0 || !j.Waiting && j.Grown > 0 })
}

func find(jobs []Job, workload string) (int, bool) {
	i := sort.Search(len(jobs), func(i int) bool { return jobs[i].Workload >= workload })
	return i, i < len(jobs) && jobs[i].Workload == workload
}

// enter begins a stage, with the reason, if there is one; the counters of the last
// stage end.
func (j *Job) enter(s Stage, why ...action.Reason) {
	j.Stage, j.Why = s, action.Reason{}
	if len(why) > 0 {
		j.Why = why[0]
	}
	j.Failures, j.Wait, j.Idle, j.Grown, j.Drained = 0, 0, 0, 0, false
	j.Turn, j.Credit = 0, 0
	j.Moving = j.Moving && (s == StagePages || s == StageAhead)
	if s == StageRestoring || s == StageDrifted { // its pages are not ours to move
		j.Waiting, j.Pays = false, unit.None[migration.Verdict]()
	}
	j.BestAnon, j.BestAll = unit.None[unit.Bytes](), unit.None[unit.Bytes]()
}
