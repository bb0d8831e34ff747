// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"slices"
	"strings"
)

// Entry is a setting whose value differs from the one before homenode.
type Entry struct {
	Setting
	Workload string   `json:"workload"` // the workload it was changed for
	ID       uint64   `json:"id"`
	Original string   `json:"original"`
	Ours     []string `json:"ours"` // values it may have now because of us, newest last
	// Equivalent: it was restored to a value that means the same.
	Equivalent bool   `json:"equivalent,omitempty"`
	Since      uint64 `json:"since"` // seq of the first intent
	// At is the ID that a thread started at the first intent would have. Given is every
	// value set since, which threads started in the meantime may have. 0: this setting is
	// not inherited.
	At    uint64   `json:"at,omitempty"`
	Given []string `json:"given,omitempty"`

	searches int // searches that found nothing inherited since it was put back
}

// Has reports whether a value was set by homenode. An original that was put back was not.
func (e Entry) Has(value string) bool {
	return !e.Equivalent && value != e.Original && slices.Contains(e.Ours, value)
}

// back reports that its original was put back, and that it is on record for what inherited from it
// only.
func (e Entry) back() bool { return e.At != 0 && len(e.Ours) == 1 && e.Ours[0] == e.Original }

// shared reports whether the setting was changed for more than its own workload: a
// controller that was switched on above it. Only a restore of everything puts that back.
func (e Entry) shared() bool { return strings.HasPrefix(e.Cgroup, "/") && e.Cgroup != e.Workload }

// ledger is the state that all records together give.
type ledger map[Setting]*Entry

// replay folds one record in. It is the only place that defines the meaning of records.
func (l ledger) replay(r record) {
	e := l[r.Setting]
	switch r.Kind {
	case kindIntent:
		if e == nil || e.ID != r.ID {
			e = &Entry{Setting: r.Setting, Workload: r.Workload, ID: r.ID, Original: r.Old, Since: r.Seq, At: r.At}
			l[r.Setting] = e
		}
		if e.back() { // its owner may have changed it since
			e.Original, e.Ours = r.Old, []string{r.Old}
		}
		e.Ours = append(e.without(r.New), r.New)
		e.give(r.New)
	case kindDone, kindEquivalent:
		if e != nil {
			e.Ours, e.Equivalent, e.searches = []string{r.New}, r.Kind == kindEquivalent, 0
		}
	case kindFailed:
		if e == nil {
			return
		}
		if e.Ours = e.without(r.New); len(e.Ours) == 0 {
			delete(l, r.Setting)
		}
	case kindEnd:
		delete(l, r.Setting)
	}
}

func (e *Entry) give(value string) {
	if e.At != 0 && value != e.Original && !slices.Contains(e.Given, value) {
		e.Given = append(e.Given, value)
	}
}

func (e *Entry) without(value string) []string {
	return slices.DeleteFunc(slices.Clone(e.Ours), func(v string) bool { return v == value })
}

// entries lists the entries that keep accepts, newest first: settings are put back in the
// reverse of the order in which they were first replaced.
func (l ledger) entries(keep func(Entry) bool) []Entry {
	var all []Entry
	for _, e := range l {
		if keep(*e) {
			c := *e
			c.Ours, c.Given = slices.Clone(e.Ours), slices.Clone(e.Given)
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(b.Since, a.Since) })
	return all
}

// snapshot is the shortest list of records that replays to this ledger.
func (l ledger) snapshot(seq uint64) []record {
	var all []record
	es := l.entries(func(Entry) bool { return true })
	slices.Reverse(es)
	for _, e := range es {
		for _, r := range e.records() {
			seq++
			r.Seq = seq
			all = append(all, r)
		}
	}
	return all
}

// records are the fewest records for one setting: the values once set, then those it may
// have now.
func (e Entry) records() (all []record) {
	intent := record{Kind: kindIntent, Workload: e.Workload, Setting: e.Setting, ID: e.ID, At: e.At, Old: e.Original}
	add := func(kind kind, value string) {
		r := intent
		if r.New = value; kind != kindIntent {
			r = record{Kind: kind, Setting: e.Setting, New: value}
		}
		all = append(all, r)
	}
	now := e.Ours
	for _, v := range e.Given {
		add(kindIntent, v)
	}
	if len(all) > 0 && len(now) > 0 {
		add(kindDone, now[0])
		now = now[1:]
	}
	for _, v := range now {
		add(kindIntent, v)
	}
	if e.Equivalent {
		add(kindEquivalent, e.Ours[len(e.Ours)-1])
	}
	return all
}
