// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"slices"
)

// Entry is a setting that is not what it was before homenode came.
type Entry struct {
	Setting
	Workload string   `json:"workload"` // the one it was changed for
	ID       uint64   `json:"id"`
	Original string   `json:"original"`
	Ours     []string `json:"ours"` // what it may be now because of us, newest last
	// Equivalent: it was restored, to a value that means the same.
	Equivalent bool   `json:"equivalent,omitempty"`
	Since      uint64 `json:"since"` // seq of the first intent
}

// shared says that it was changed for more than its own workload: a controller
// switched on above. Only a restore of everything puts that back.
func (e Entry) shared() bool { return e.Cgroup != e.Workload }

// ledger is what all records together say.
type ledger map[Setting]*Entry

// replay folds one record in. It is the only place where the meaning of records
// is written down.
func (l ledger) replay(r record) {
	e := l[r.Setting]
	switch r.Kind {
	case kindIntent:
		if e == nil || e.ID != r.ID {
			e = &Entry{Setting: r.Setting, Workload: r.Workload, ID: r.ID, Original: r.Old, Since: r.Seq}
			l[r.Setting] = e
		}
		e.Ours = append(e.without(r.New), r.New)
	case kindDone, kindEquivalent:
		if e != nil {
			e.Ours, e.Equivalent = []string{r.New}, r.Kind == kindEquivalent
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

func (e *Entry) without(value string) []string {
	return slices.DeleteFunc(slices.Clone(e.Ours), func(v string) bool { return v == value })
}

// entries lists what keep accepts, newest first: settings are put back in the
// reverse of the order in which they were first replaced.
func (l ledger) entries(keep func(Entry) bool) []Entry {
	var all []Entry
	for _, e := range l {
		if keep(*e) {
			c := *e
			c.Ours = slices.Clone(e.Ours)
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
		r := record{Kind: kindIntent, Workload: e.Workload, Setting: e.Setting, ID: e.ID, Old: e.Original}
		for _, v := range e.Ours {
			seq++
			r.Seq, r.New = seq, v
			all = append(all, r)
		}
		if e.Equivalent {
			seq++
			all = append(all, record{Seq: seq, Kind: kindEquivalent, Setting: e.Setting, New: e.Ours[len(e.Ours)-1]})
		}
	}
	return all
}
