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

// Result is what a restore did to one setting.
type Result string

// The possible results for a setting that is to be put back.
const (
	PutBack    Result = "put-back"
	Already    Result = "already"    // it already had its original value
	Equivalent Result = "equivalent" // the kernel refuses the original: a value that means the same
	Left       Result = "left"       // another process changed it after us: respected
	Vanished   Result = "vanished"   // its cgroup or controller is gone
	Kept       Result = "kept"       // others depend on it, or its owner does not answer; still outstanding
	NotDone    Result = "failed"     // still outstanding
)

// Restored is one setting and its result.
type Restored struct {
	Setting
	Workload string `json:"workload"`
	Result   Result `json:"outcome"`
	Detail   string `json:"detail,omitempty"`
}

// String is a sentence for people.
func (r Restored) String() string {
	return fmt.Sprintf("%s: %s: %s", r.Setting, r.Result, r.Detail)
}

// Restore puts back everything that is outstanding, newest first, and follows settings
// that were put back to an equivalent. It may be repeated and may be killed at any
// point. The error joins the failures; these settings stay outstanding.
func (j *Journal) Restore(ctx context.Context, owner Owner) ([]Restored, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	adopted := j.adopt(owner)
	silent := silence{}
	all, err := j.restoreWhere(ctx, owner, silent, func(Entry) bool { return true })
	return all, errors.Join(adopted, err, j.settle(owner, silent))
}

// RestoreWorkload puts back one workload's own settings. A controller that was
// switched on above it stays on until Restore: others may need it.
func (j *Journal) RestoreWorkload(ctx context.Context, owner Owner, workload string) ([]Restored, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.restoreWhere(ctx, owner, silence{}, func(e Entry) bool { return e.Workload == workload && !e.shared() })
}

func (j *Journal) restoreWhere(ctx context.Context, owner Owner, silent silence, which func(Entry) bool) ([]Restored, error) {
	var all []Restored
	var back []Entry
	var errs []error
	for _, e := range j.ledger.entries(which) {
		if err := ctx.Err(); err != nil {
			return all, errors.Join(append(errs, fmt.Errorf("restore: %w", err))...)
		}
		r, err := Restored{}, silent.of(e.Setting)
		if err == nil {
			r, err = j.putBack(owner, e)
			silent.hear(e.Setting, err)
		}
		if err != nil {
			r, err = notPutBack(e, err)
			errs = append(errs, err)
		} else if e.At != 0 && r.Result != Equivalent {
			back = append(back, e)
		}
		r.Setting, r.Workload = e.Setting, e.Workload
		all = append(all, r)
	}
	inherited, err := j.endInherited(owner, back)
	return append(all, inherited...), errors.Join(append(errs, err)...)
}

// notPutBack returns the result of a setting that could not be put back, and the error to
// report: none where its manager does not answer.
func notPutBack(e Entry, err error) (Restored, error) {
	if errors.Is(err, ErrNoAnswer) {
		return Restored{Result: Kept, Detail: err.Error()}, nil
	}
	return Restored{Result: NotDone, Detail: err.Error()}, fmt.Errorf("restore %s: %w", e.Setting, err)
}

// silence lists the managers that have not answered. Each is waited for once: otherwise a
// start would take as long as all of their settings together.
type silence map[string]error

func (q silence) of(s Setting) error { return q[s.manager()] }

func (q silence) hear(s Setting, err error) {
	if who := s.manager(); who != "" && errors.Is(err, ErrNoAnswer) {
		q[who] = err
	}
}

// putBack restores one setting, depending on its present value.
func (j *Journal) putBack(owner Owner, e Entry) (Restored, error) {
	r, cur, err := foresee(owner, e)
	if err != nil {
		return Restored{}, err
	}
	if r.Result != PutBack {
		return j.ended(owner, e, r.Result, r.Detail)
	}
	err = j.gate.pass(func() error { return owner.Write(Permit{j}, e.Setting, e.Original) })
	switch {
	case err == nil:
		return j.ended(owner, e, PutBack, fmt.Sprintf("%q again, was %q", e.Original, cur.Value))
	case errors.Is(err, ErrUntidy):
		return j.ended(owner, e, PutBack, fmt.Sprintf("%q again, was %q; %v", e.Original, cur.Value, err))
	case errors.Is(err, kernel.ErrGone) && !unsure(err):
		return j.ended(owner, e, Vanished, err.Error())
	case errors.Is(err, ErrNeedsValue):
		return j.putEquivalent(owner, e, cur)
	case errors.Is(err, ErrInUse):
		return Restored{Result: Kept, Detail: err.Error()}, nil
	}
	return Restored{}, err
}

// vanished reports whether an error of Read means that the setting no longer exists. An
// unsupported manager interface says nothing about what the manager has set: only a file
// is gone with its controller, or its file system.
func vanished(s Setting, err error) bool {
	if unsure(err) {
		return false
	}
	if errors.Is(err, kernel.ErrGone) {
		return true
	}
	kind := s.Kind()
	return errors.Is(err, kernel.ErrNotSupported) && (kind == OfCgroup || kind == OfResctrl)
}

// ended ends a record. A record whose value others inherited stays until a search for them,
// because they are recognised by its value.
func (j *Journal) ended(owner Owner, e Entry, r Result, why string) (Restored, error) {
	if e.At != 0 {
		return Restored{Result: r, Detail: why}, nil
	}
	return Restored{Result: r, Detail: why}, j.end(owner, e.Setting, string(r))
}

// putEquivalent writes the closest value. It is on record first, like any change: if we
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
	err = j.addRecord(record{Kind: kindEquivalent, Setting: e.Setting, New: value}, false)
	return Restored{Result: Equivalent, Detail: fmt.Sprintf("%q stands for %q", value, e.Original)}, err
}

// settle forgets equivalents whose controller was switched off again: those settings are
// exactly as they were. A clean journal is shortened.
func (j *Journal) settle(owner Owner, silent silence) error {
	var errs []error
	for _, e := range j.ledger.entries(func(e Entry) bool { return e.Equivalent }) {
		if silent.of(e.Setting) != nil {
			continue
		}
		_, err := owner.Read(e.Setting)
		if silent.hear(e.Setting, err); vanished(e.Setting, err) {
			errs = append(errs, j.end(owner, e.Setting, string(Vanished)))
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
