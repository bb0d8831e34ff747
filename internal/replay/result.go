// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"maps"
	"slices"
	"time"

	"homenode/internal/unit"
)

// Schema is the version of a result's JSON.
const Schema = 2

// Tally counts what an arm did.
type Tally struct {
	Binds   uint64        `json:"binds"`
	Unbinds uint64        `json:"unbinds"`
	Rebinds uint64        `json:"rebinds"` // directly from nodes to other nodes
	Room    uint64        `json:"room"`    // actions that make room for bound workloads
	Others  uint64        `json:"others"`  // other actions: isolations, escalations
	Bound   time.Duration `json:"bound_ns"`
	Run     time.Duration `json:"run_ns"` // time of approved workloads, in which they could have been bound
}

// UnboundShare is the unbound time of approved workloads over their time: the paper's
// unbind ratio (MAO, Fig. 6). It is unknown if there is none.
func (t Tally) UnboundShare() unit.Opt[unit.Ratio] {
	return unit.RatioOf(float64(max(0, t.Run-t.Bound)), float64(t.Run))
}

// UnbindsPerBind is the share of bindings that did not last; unknown if there is
// none.
func (t Tally) UnbindsPerBind() unit.Opt[float64] {
	if t.Binds == 0 {
		return unit.None[float64]()
	}
	return unit.Some(float64(t.Unbinds) / float64(t.Binds))
}

// Side is one arm's result.
type Side struct {
	Name string `json:"name"`
	Tally
	UnboundShare   unit.Opt[unit.Ratio] `json:"unbound_share"`
	UnbindsPerBind unit.Opt[float64]    `json:"unbinds_per_bind"`
}

// Workload is the result of one workload in both arms.
type Workload struct {
	ID      string `json:"id"`
	Service string `json:"service,omitempty"` // its service in the second arm
	Then    Tally  `json:"then"`
	Now     Tally  `json:"now"`
}

// Difference is a window in which the arms decided differently on a workload. One side
// may be nil: it decided nothing.
type Difference struct {
	At       time.Time `json:"at"`
	Seq      uint64    `json:"seq"`
	Workload string    `json:"workload"`
	Then     *Decision `json:"then"`
	Now      *Decision `json:"now"`
}

// maxDifferences bounds a result. It is more than a person reads; the others are
// counted.
const maxDifferences = 1000

// Result is a whole replay.
type Result struct {
	Schema      int           `json:"schema"`
	Windows     uint64        `json:"windows"`
	From        time.Time     `json:"from_time"`
	To          time.Time     `json:"to_time"`
	Length      time.Duration `json:"length_ns"` // length of all windows
	Then        Side          `json:"then"`
	Now         Side          `json:"now"`
	Workloads   []Workload    `json:"workloads"` // by ID
	Differences []Difference  `json:"differences"`
	// MoreDifferences counts those beyond the list.
	MoreDifferences int `json:"more_differences,omitempty"`
	// AsRecorded is the share of approved workloads' windows in which the first arm binds
	// what the recorded agent had bound; unknown if no setting of homenode is recorded.
	AsRecorded unit.Opt[unit.Ratio] `json:"as_recorded"`
	// Undone counts recorded outcomes of steps that were refused, failed or drifted:
	// both arms assume that all their own steps were done.
	Undone uint64   `json:"undone_steps"`
	Notes  []string `json:"notes"`
}

// compare finds decisions of only one arm in this window.
func (r *Replay) compare(at time.Time, seq uint64) {
	for i := range r.then.last {
		a := &r.then.last[i]
		if b := decided(r.now.last, a.Workload); b == nil || !same(a, b) {
			r.differ(Difference{At: at, Seq: seq, Workload: a.Workload, Then: a, Now: b})
		}
	}
	for i := range r.now.last {
		if b := &r.now.last[i]; decided(r.then.last, b.Workload) == nil {
			r.differ(Difference{At: at, Seq: seq, Workload: b.Workload, Now: b})
		}
	}
}

// decided is an arm's decision on a workload; the last one, if there are
// several.
func decided(all []Decision, workload string) *Decision {
	for i := range slices.Backward(all) {
		if all[i].Workload == workload {
			return &all[i]
		}
	}
	return nil
}

func same(a, b *Decision) bool { return a.Kind == b.Kind && a.Nodes.Equal(b.Nodes) }

// differ keeps copies, because the arms reuse their slices.
func (r *Replay) differ(d Difference) {
	if len(r.diff) == maxDifferences {
		r.missed++
		return
	}
	if d.Then != nil {
		then := *d.Then
		d.Then = &then
	}
	if d.Now != nil {
		now := *d.Now
		d.Now = &now
	}
	r.diff = append(r.diff, d)
}

// Result is the result of the windows so far.
func (r *Replay) Result() Result {
	out := Result{
		Schema: Schema, Windows: r.windows, From: r.from, To: r.to, Length: r.length, Then: r.then.result(), Now: r.now.result(),
		Workloads: []Workload{}, Differences: append([]Difference{}, r.diff...), MoreDifferences: r.missed, Undone: r.fate.dropped,
	}
	if r.fate.ours && r.fate.windows > 0 {
		out.AsRecorded = unit.RatioOf(float64(r.fate.alike), float64(r.fate.windows))
	}
	for _, id := range slices.Sorted(maps.Keys(r.seen)) {
		out.Workloads = append(out.Workloads, Workload{ID: id, Service: r.seen[id], Then: *r.then.tally(id), Now: *r.now.tally(id)})
	}
	out.Notes = r.notes()
	return out
}

func (s *side) result() Side {
	return Side{Name: s.arm.Name, Tally: s.total, UnboundShare: s.total.UnboundShare(), UnbindsPerBind: s.total.UnbindsPerBind()}
}

// notes are what a reader of the figures must know.
func (r *Replay) notes() []string {
	all := []string{
		"a recording cannot react to a changed decision: local access, CPU time and pages are those of the real decisions",
		"bindings are estimates: both sides assume that each of their actions was done at once",
		"both sides begin without bindings and without the nodes' history",
	}
	if r.fate.dropped > 0 {
		all = append(all, "some recorded steps were refused, failed or undone by other programs: neither side knows of them")
	}
	return all
}
