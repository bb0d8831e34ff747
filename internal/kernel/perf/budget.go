// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"cmp"
	"slices"
)

// Budget is the limit for events at a time. Descriptors belong to the process, and with
// every cgroup that has events the kernel does more at context switches.
type Budget struct {
	Files   int // descriptors of events
	Cgroups int // with events at a time; 0: as many as Files allow
}

// DefaultBudget gives events three quarters of the allowed open files, since the process
// needs others. A lower share leaves more workloads without counts in a window.
func DefaultBudget(fileLimit uint64) Budget {
	n := int(min(fileLimit, 1<<30)) - spareFiles
	return Budget{Files: max(0, n/4*3)}
}

// Candidate is one cgroup that wants events.
type Candidate struct {
	ID    string
	Files int  // descriptors its events take; 0: it cannot be counted
	Ours  bool // a decision depends on its counts: approved, bound, watched
}

// Turns decides which cgroups are counted, window after window. It is not safe for
// concurrent use. The zero Turns is ready.
type Turns struct {
	now   uint64            // windows
	since map[string]uint64 // cgroups with events: the first window
	until map[string]uint64 // cgroups that had events: the last window
}

// minStay is the number of windows for which a cgroup keeps its events when others wait:
// the first sample is only a base, so two windows give one count. A higher value wastes
// fewer bases, and makes others wait longer.
const minStay = 2

// oursShare of the budget is the most that ours have while others wait. A higher value
// leaves less for finding other candidates.
const oursShare = 0.75

// Choose returns the cgroups that have events in this window, ascending by ID.
//
//  1. A cgroup that has had events for less than minStay windows keeps them. Then come
//     ours, which leave the others their share; then the others; the rest is ours again.
//  2. Among equals: first those that never had events; then those without for longest;
//     then those that have had them for longest.
//  3. A waiting cgroup that does not fit now, though it would alone, is not overtaken by
//     others that wait: room grows within minStay windows.
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

// staying are those that have had events for less than minStay windows.
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

// room is the rest of a budget while it is given out.
type room struct {
	left    Budget
	chosen  map[string]bool
	counted bool // cgroups are limited, too
}

// take gives a part of the room to the first candidates. It reports whether a candidate
// waits for room to come: one that would fit alone into what these are sure of.
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

// note remembers which cgroups have events from now on, and which no longer have.
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
