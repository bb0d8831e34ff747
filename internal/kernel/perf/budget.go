// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"cmp"
	"slices"
)

// Budget is what events may cost at a time. Descriptors are the process's, and every
// cgroup with events is more for the kernel to look through at context switches.
type Budget struct {
	Files   int // descriptors of events
	Cgroups int // with events at a time; 0: as many as Files allow
}

// DefaultBudget gives events three quarters of the open files that are allowed, for the
// process has others. Lower leaves more workloads without counts in a window.
func DefaultBudget(fileLimit uint64) Budget {
	n := int(min(fileLimit, 1<<30)) - spareFiles
	return Budget{Files: max(0, n/4*3)}
}

// Candidate is one cgroup that wants events.
type Candidate struct {
	ID    string
	Files int  // descriptors its events take; 0: it cannot be counted
	Ours  bool // somebody decides by its counts: approved, bound, watched
}

// Turns says whose turn it is to be counted, window after window. It is not safe for
// concurrent use. The zero Turns is ready.
type Turns struct {
	now   uint64            // windows
	since map[string]uint64 // who has events: since which window
	until map[string]uint64 // who had some: until which window
}

// minStay is how many windows a cgroup keeps its events when others wait: the first
// sample is only a base, so two windows give one count. More wastes fewer bases, and
// lets others wait longer.
const minStay = 2

// oursShare of the budget is the most that ours have while others wait. Higher leaves
// less for finding out who else ought to be looked at.
const oursShare = 0.75

// Choose says who is to have events in this window, ascending by ID.
//
//  1. Who has events for less than minStay windows keeps them. Then ours, who leave the
//     others their share; then the others; what these leave is ours again.
//  2. Among equals: who never had any; who has been without for longest; who has had
//     them for longest.
//  3. Who waits and does not fit, though it would alone, is not overtaken by others who
//     wait: room grows within minStay windows.
//
// So with room for c of n alike, each has its turn in minStay × ⌈n/c⌉ + 1 windows.
func (t *Turns) Choose(all []Candidate, b Budget) []string {
	t.now++
	var ours, others []Candidate
	for _, c := range all {
		switch {
		case c.Files <= 0:
		case c.Ours:
			ours = append(ours, c)
		default:
			others = append(others, c)
		}
	}
	t.sort(ours)
	t.sort(others)
	part := b
	if len(others) > 0 && !fit(append(slices.Clone(ours), others...), b) {
		part = t.oursPart(b)
	}
	rest := Budget{Files: b.Files - part.Files, Cgroups: b.Cgroups - part.Cgroups}
	if part == b || len(ours) == 0 {
		rest = b
	}
	r := room{left: b, chosen: map[string]bool{}, counted: b.Cgroups > 0}
	stay := t.staying(ours)
	r.take(t, stay, b, b) // these and the next had room in the window before
	r.take(t, t.staying(others), b, b)
	waits := r.take(t, ours, part.less(stay), part)
	most := r.left
	if waits {
		most = rest.less(t.staying(others)) // more would keep ours waiting
	}
	if waits := r.take(t, others, most, rest); !waits {
		r.take(t, ours, r.left, part)
	}
	return t.note(r.chosen)
}

func (t *Turns) oursPart(b Budget) Budget {
	part := Budget{Files: int(float64(b.Files) * oursShare), Cgroups: int(float64(b.Cgroups)*oursShare + 0.5)}
	if b.Cgroups == 1 {
		part.Cgroups = int(t.now / (2 * minStay) % 2) // one place: by turns
	}
	return part
}

func (b Budget) less(some []Candidate) Budget {
	for _, c := range some {
		b.Files, b.Cgroups = b.Files-c.Files, b.Cgroups-1
	}
	return b
}

// staying are those who have events for less than minStay windows.
func (t *Turns) staying(all []Candidate) (some []Candidate) {
	for _, c := range all {
		if rank, _ := t.rank(c); rank == 0 {
			some = append(some, c)
		}
	}
	return some
}

func fit(all []Candidate, b Budget) bool {
	files := 0
	for _, c := range all {
		files += c.Files
	}
	return files <= b.Files && (b.Cgroups == 0 || len(all) <= b.Cgroups)
}

// rank is step 2.
func (t *Turns) rank(c Candidate) (int, uint64) {
	since, has := t.since[c.ID]
	until, had := t.until[c.ID]
	switch {
	case has && t.now-since < minStay:
		return 0, since
	case has:
		return 3, since
	case !had:
		return 1, 0
	}
	return 2, until
}

func (t *Turns) sort(all []Candidate) {
	slices.SortFunc(all, func(x, y Candidate) int {
		rx, ax := t.rank(x)
		ry, ay := t.rank(y)
		return cmp.Or(cmp.Compare(rx, ry), cmp.Compare(ax, ay), cmp.Compare(x.ID, y.ID))
	})
}

// room is what is left of a budget while it is given out.
type room struct {
	left    Budget
	chosen  map[string]bool
	counted bool // cgroups are limited, too
}

// take gives to those who come first, of a part of the room. It says whether somebody
// waits for room to come: who would fit alone into what these are sure of.
func (r *room) take(t *Turns, all []Candidate, part, sure Budget) (waits bool) {
	part.Files, part.Cgroups = min(part.Files, r.left.Files), min(part.Cgroups, r.left.Cgroups)
	for _, c := range all {
		rank, _ := t.rank(c)
		if r.chosen[c.ID] || waits && (rank == 1 || rank == 2) {
			continue
		}
		if c.Files > part.Files || r.counted && part.Cgroups <= 0 {
			waits = waits || c.Files <= sure.Files // (3)
			continue
		}
		r.chosen[c.ID] = true
		part.Files, part.Cgroups = part.Files-c.Files, part.Cgroups-1
		r.left.Files, r.left.Cgroups = r.left.Files-c.Files, r.left.Cgroups-1
	}
	return waits
}

// note remembers who has events from now on, and who no longer has.
func (t *Turns) note(chosen map[string]bool) []string {
	since, ids := map[string]uint64{}, make([]string, 0, len(chosen))
	for id := range chosen {
		ids = append(ids, id)
		since[id] = t.now
		if at, has := t.since[id]; has {
			since[id] = at
		}
	}
	if t.until == nil {
		t.until = map[string]uint64{}
	}
	for id := range t.since {
		if !chosen[id] {
			t.until[id] = t.now
		}
	}
	t.since = since
	slices.Sort(ids)
	return ids
}

// Forget drops a cgroup that is gone.
func (t *Turns) Forget(id string) {
	delete(t.since, id)
	delete(t.until, id)
}
