// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/kernel"
)

// Inheritable is an Owner of settings that a later start inherits: a thread has the
// affinity of the thread that started it. For such a setting a later start has a
// greater ID.
type Inheritable interface {
	// Clock is the ID that a thread started now would have; 0: this setting is not
	// inherited.
	Clock(s Setting) uint64
	// Original returns the value to record for one that was there before us, so that
	// Write restores exactly that.
	Original(s Setting, value string) string
	// Inherited returns the members of a family that have one of its values now. It returns
	// those it found with an error, too.
	Inherited(f Family) ([]Inherited, error)
}

// Family describes the threads that may have inherited from a workload's settings.
type Family struct {
	Workload string
	Values   []string                        // that homenode set
	Since    uint64                          // the lowest ID that an inheriting setting can have
	Known    func(s Setting, id uint64) bool // true: its value is its own, not inherited
	Last     bool                            // this is the last search, so it waits for threads that are being started
}

// Inherited is a setting that inherited a value which we gave to another one.
type Inherited struct {
	Setting
	ID    uint64
	Value string // as homenode set it
}

// Know sets the test for settings that inherited nothing, whatever their value: they were seen
// without our values, or had them before us.
func (j *Journal) Know(known func(s Setting, id uint64) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ownValue = known
}

// searchesForInherited is the number of searches for which a setting that was put back is
// kept. A thread that was being started just before may appear just after the first search:
// copy_process in kernel/fork.c copies the affinity long before the new thread is visible.
const searchesForInherited = 2

// Passing reports whether a setting that was put back is kept for what inherited from it.
func (j *Journal) Passing() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.ledger {
		if e.back() {
			return true
		}
	}
	return false
}

// GiveBack restores, on everything that inherited a value of ours, what we found there. A
// setting that is itself on record keeps its value. GiveBack ends the records of settings
// that were put back and that nothing inherited from any more.
func (j *Journal) GiveBack(owner Owner) ([]Restored, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all, err := j.restoreInherited(owner, j.inherited(), false)
	if err != nil || len(all) > 0 { // what inherited may have passed it on
		return all, err
	}
	for _, e := range j.ledger.entries(func(e Entry) bool { return e.back() }) {
		now := j.ledger[e.Setting]
		if now.searches++; now.searches >= searchesForInherited {
			err = errors.Join(err, j.end(owner, e.Setting, string(Already)))
		}
	}
	return all, err
}

// Forget ends the records of inherited settings whose owner is gone, after what inherited from them.
func (j *Journal) Forget(owner Owner) ([]Restored, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	entries := j.inherited()
	all, err := j.restoreInherited(owner, entries, false)
	if err != nil {
		return all, err
	}
	for _, e := range entries {
		cur, gone := owner.Read(e.Setting)
		if errors.Is(gone, kernel.ErrGone) || gone == nil && cur.ID != e.ID {
			err = errors.Join(err, j.end(owner, e.Setting, string(Vanished)))
		}
	}
	return all, err
}

// endInherited ends the records of settings that were put back, once nothing that inherited is left.
func (j *Journal) endInherited(owner Owner, back []Entry) (all []Restored, err error) {
	const generations = 4
	for range generations {
		found, err := j.restoreInherited(owner, back, true)
		all = append(all, found...)
		if err != nil {
			return all, err
		}
		if len(found) == 0 {
			break
		}
	}
	for _, e := range back {
		err = errors.Join(err, j.end(owner, e.Setting, string(PutBack)))
	}
	return all, err
}

// gone records that nothing of ours is on a setting, since it no longer exists. What
// inherited from it may exist all the same.
func (j *Journal) gone(owner Owner, s Setting, given int, why error) error {
	e := j.ledger[s]
	if e == nil || e.At == 0 || len(e.Given) <= given {
		return errors.Join(why, j.end(owner, s, why.Error()))
	}
	return errors.Join(why, j.addRecord(record{Kind: kindDone, Setting: s, New: e.Original, Why: why.Error()}, false))
}

// anew ends the record of a setting whose name now belongs to another thread or group.
func (j *Journal) anew(owner Owner, e Entry) error {
	var err error
	if e.At != 0 {
		_, err = j.restoreInherited(owner, []Entry{e}, true)
	}
	return errors.Join(err, j.end(owner, e.Setting, e.Setting.anew()))
}

func (j *Journal) inherited() []Entry {
	return j.ledger.entries(func(e Entry) bool { return e.At != 0 })
}

// restoreInherited finds what inherited from these settings, and restores on it what was
// there before us.
func (j *Journal) restoreInherited(owner Owner, of []Entry, last bool) (all []Restored, err error) {
	in, ok := owner.(Inheritable)
	if !ok || len(of) == 0 {
		return nil, nil
	}
	for i, f := range families(of) {
		f.Known, f.Last = j.isKnown, last && i == 0
		found, bad := in.Inherited(f)
		if bad != nil && !errors.Is(bad, kernel.ErrGone) {
			err = errors.Join(err, fmt.Errorf("look for what threads of %s started: %w", f.Workload, bad))
		}
		for _, h := range found {
			i := slices.IndexFunc(of, func(e Entry) bool {
				return e.Workload == f.Workload && e.At <= h.ID && slices.Contains(e.Given, h.Value)
			})
			if own := j.ledger[h.Setting]; i < 0 || own != nil && own.ID == h.ID {
				continue
			}
			r, bad := j.disinherit(owner, of[i], h)
			all, err = append(all, r), errors.Join(err, bad)
		}
	}
	return all, err
}

func (j *Journal) isKnown(s Setting, id uint64) bool { return j.ownValue != nil && j.ownValue(s, id) }

// families groups the entries by workload, in their order.
func families(of []Entry) (all []Family) {
	for _, e := range of {
		i := slices.IndexFunc(all, func(f Family) bool { return f.Workload == e.Workload })
		if i < 0 {
			i = len(all)
			all = append(all, Family{Workload: e.Workload, Since: e.At})
		}
		f := &all[i]
		f.Since = min(f.Since, e.At)
		for _, v := range e.Given {
			if !slices.Contains(f.Values, v) {
				f.Values = append(f.Values, v)
			}
		}
	}
	return all
}

// disinherit is a change like any other: on record first.
func (j *Journal) disinherit(owner Owner, from Entry, h Inherited) (Restored, error) {
	r := Restored{Setting: h.Setting, Workload: from.Workload, Result: NotDone}
	intent := record{Kind: kindIntent, Workload: from.Workload, Setting: h.Setting, ID: h.ID, At: from.At, Old: from.Original, New: h.Value}
	err := j.addRecord(intent, false)
	if err == nil {
		err = j.gate.pass(func() error { return owner.Write(Permit{j}, h.Setting, from.Original) })
	}
	switch {
	case err == nil:
		r.Result, r.Detail = PutBack, fmt.Sprintf("%q again, had inherited %q", from.Original, h.Value)
	case errors.Is(err, kernel.ErrGone):
		r.Result, r.Detail = Vanished, err.Error()
	default:
		r.Detail = err.Error()
		return r, fmt.Errorf("give back what %s inherited: %w", h.Setting, err)
	}
	return r, j.end(owner, h.Setting, string(r.Result))
}
