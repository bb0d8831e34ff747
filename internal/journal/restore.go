// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"homenode/internal/action"
	"homenode/internal/kernel"
)

// Result says what a restore did to one setting.
type Result string

// What can become of a setting that is to be put back.
const (
	PutBack    Result = "put-back"
	Already    Result = "already"    // it was what it had been
	Equivalent Result = "equivalent" // the kernel will not have the original: a value that means the same
	Left       Result = "left"       // somebody else changed it after us: respected
	Vanished   Result = "vanished"   // its cgroup or controller is gone
	Kept       Result = "kept"       // others depend on it; still outstanding
	NotDone    Result = "failed"     // still outstanding
)

// Restored is one setting and what became of it.
type Restored struct {
	Setting
	Workload string `json:"workload"`
	Result   Result `json:"result"`
	Detail   string `json:"detail,omitempty"`
}

// String is a sentence for people.
func (r Restored) String() string {
	return fmt.Sprintf("%s: %s: %s", r.Setting, r.Result, r.Detail)
}

// Restore puts back everything that is outstanding, newest first, and follows
// what was put back to an equivalent. It may be repeated and may be killed at
// any point. The error joins what failed; that stays outstanding.
func (j *Journal) Restore(ctx context.Context, owner Owner) ([]Restored, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	all, err := j.restoreWhere(ctx, owner, func(Entry) bool { return true })
	return all, errors.Join(err, j.settle(owner))
}

// RestoreWorkload puts back one workload's own settings. A controller that was
// switched on above it stays on until Restore: others may need it.
func (j *Journal) RestoreWorkload(ctx context.Context, owner Owner, workload string) ([]Restored, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.restoreWhere(ctx, owner, func(e Entry) bool { return e.Workload == workload && !e.shared() })
}

func (j *Journal) restoreWhere(ctx context.Context, owner Owner, which func(Entry) bool) ([]Restored, error) {
	var all []Restored
	var back []Entry
	var errs []error
	for _, e := range j.ledger.entries(which) {
		if err := ctx.Err(); err != nil {
			return all, errors.Join(append(errs, fmt.Errorf("restore: %w", err))...)
		}
		r, err := j.putBack(owner, e)
		if err != nil {
			r = Restored{Result: NotDone, Detail: err.Error()}
			errs = append(errs, fmt.Errorf("restore %s: %w", e.Setting, err))
		} else if e.At != 0 && r.Result != Equivalent {
			back = append(back, e)
		}
		r.Setting, r.Workload = e.Setting, e.Workload
		all = append(all, r)
	}
	heirs, err := j.endInherited(owner, back)
	return append(all, heirs...), errors.Join(append(errs, err)...)
}

// putBack restores one setting, by what it is now.
func (j *Journal) putBack(owner Owner, e Entry) (Restored, error) {
	cur, err := owner.Read(e.Setting)
	switch {
	case errors.Is(err, kernel.ErrGone), errors.Is(err, kernel.ErrNotSupported):
		return j.ended(e, Vanished, err.Error())
	case err != nil:
		return Restored{}, err
	case cur.ID != e.ID:
		return j.ended(e, Vanished, e.Setting.anew())
	case e.back(), owner.Same(e.Setting, cur.Value, e.Original) && !hidden(owner, e, cur.Value):
		return j.ended(e, Already, fmt.Sprintf("it is %q", cur.Value))
	case !isOurs(owner, e, cur.Value):
		return j.ended(e, Left, fmt.Sprintf("somebody else made it %q after us; before us it was %q", cur.Value, e.Original))
	}
	err = owner.Write(Permit{j}, e.Setting, e.Original)
	switch {
	case err == nil:
		return j.ended(e, PutBack, fmt.Sprintf("%q again, was %q", e.Original, cur.Value))
	case errors.Is(err, kernel.ErrGone):
		return j.ended(e, Vanished, err.Error())
	case errors.Is(err, ErrNeedsValue):
		return j.putEquivalent(owner, e, cur)
	case errors.Is(err, ErrInUse):
		return Restored{Result: Kept, Detail: err.Error()}, nil
	}
	return Restored{}, err
}

// ended ends a record. One with heirs stays until these were looked for: its value is
// what they are known by.
func (j *Journal) ended(e Entry, r Result, why string) (Restored, error) {
	if e.At != 0 {
		return Restored{Result: r, Detail: why}, nil
	}
	return Restored{Result: r, Detail: why}, j.end(e.Setting, string(r))
}

// putEquivalent writes what comes closest, on record first as any change: if we
// are killed in between, the next restore knows it as ours.
func (j *Journal) putEquivalent(owner Owner, e Entry, cur Current) (Restored, error) {
	value, err := owner.Equivalent(e.Setting, e.Original)
	if err != nil {
		return Restored{}, err
	}
	if !owner.Same(e.Setting, cur.Value, value) {
		if err := j.write(owner, e.Workload, Change{Setting: e.Setting, New: value}, cur); err != nil {
			return Restored{}, err
		}
	}
	done := j.ledger[e.Setting]
	if done != nil && done.Equivalent && len(done.Ours) == 1 && done.Ours[0] == value {
		return Restored{Result: Equivalent, Detail: fmt.Sprintf("%q stands for %q", value, e.Original)}, nil
	}
	err = j.add(record{Kind: kindEquivalent, Setting: e.Setting, New: value}, false)
	return Restored{Result: Equivalent, Detail: fmt.Sprintf("%q stands for %q", value, e.Original)}, err
}

// settle forgets equivalents whose controller was switched off again: they are
// exactly as they were. A clean journal is shortened.
func (j *Journal) settle(owner Owner) error {
	var errs []error
	for _, e := range j.ledger.entries(func(e Entry) bool { return e.Equivalent }) {
		if _, err := owner.Read(e.Setting); errors.Is(err, kernel.ErrNotSupported) || errors.Is(err, kernel.ErrGone) {
			errs = append(errs, j.end(e.Setting, string(Vanished)))
		}
	}
	if len(j.ledger.entries(func(e Entry) bool { return !e.Equivalent })) == 0 {
		errs = append(errs, j.compact())
	}
	return errors.Join(errs...)
}

// restore is Apply for a Restore step.
func (a *Applier) restore(ctx context.Context, step action.Step) action.Outcome {
	all, err := a.j.RestoreWorkload(ctx, a.owner, step.Workload)
	if err != nil {
		return outcomeOf(step, err)
	}
	var said []string
	o := action.Outcome{Step: step, Status: action.Done}
	for _, r := range all {
		said = append(said, r.String())
		if r.Result == Left {
			o.Status = action.Drifted
		}
	}
	o.Detail = strings.Join(said, "; ")
	return o
}
