// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Foresee reports what Restore would do with the journal in dir of this boot, and with
// what the owner remembers of an earlier one. It changes nothing: no setting, no record.
// Two things it cannot foresee: the write itself (PutBack), for which the kernel may want
// an equivalent, and what threads have inherited, which Restore finds. It fails while a
// homenode runs, since that holds the lock, as Restore does.
func Foresee(dir, boot string, owner Owner) ([]Restored, error) {
	if pid, err := Holder(dir); err != nil {
		return nil, err
	} else if pid != "" {
		return nil, locked(filepath.Join(dir, lockName))
	}
	entries, damage := Peek(dir, boot)
	if damage != nil && !errors.Is(damage, ErrDamaged) {
		return nil, damage
	}
	entries, err := remembered(owner, entries)
	errs := []error{damage, err}
	var all []Restored
	silent := silence{}
	for _, e := range entries {
		r, err := Restored{}, silent.of(e.Setting)
		if err == nil {
			r, _, err = foresee(owner, e)
			silent.hear(e.Setting, err)
		}
		if err != nil {
			r, err = notPutBack(e, err)
			errs = append(errs, err)
		}
		r.Setting, r.Workload = e.Setting, e.Workload
		all = append(all, r)
	}
	return all, errors.Join(errs...)
}

// remembered adds what an owner remembers of an earlier boot. It would go on record last,
// and what is on record last is put back first.
func remembered(owner Owner, entries []Entry) ([]Entry, error) {
	o, ok := owner.(Remembering)
	if !ok {
		return entries, nil
	}
	known := map[Setting]bool{}
	for _, e := range entries {
		known[e.Setting] = true
	}
	all, err := o.Remembered()
	all = slices.DeleteFunc(slices.Clone(all), func(e Entry) bool { return known[e.Setting] })
	slices.Reverse(all)
	return append(all, entries...), err
}

// foresee gives the future of one setting, by its present value: PutBack still needs a
// write, everything else needs none.
func foresee(owner Owner, e Entry) (Restored, Current, error) {
	cur, err := owner.Read(e.Setting)
	r := Restored{Result: PutBack}
	switch {
	case vanished(e.Setting, err):
		r.Result, r.Detail = Vanished, err.Error()
	case err != nil:
		return Restored{}, cur, err
	case cur.ID != e.ID:
		r.Result, r.Detail = Vanished, e.Setting.anew()
	case e.back(), owner.Same(e.Setting, cur.Value, e.Original) && !hidden(owner, e, cur.Value):
		r.Result, r.Detail = Already, fmt.Sprintf("it is %q", cur.Value)
	case !isOurs(owner, e, cur.Value):
		r.Result, r.Detail = Left, fmt.Sprintf("another process set it to %q after us; before us it was %q", cur.Value, e.Original)
	default:
		r.Detail = fmt.Sprintf("%q again, is %q", e.Original, cur.Value)
	}
	return r, cur, nil
}

// In says that a folder has a journal.
func In(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, logName))
	return err == nil
}
