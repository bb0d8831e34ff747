// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/action"
	"homenode/internal/kernel"
)

// Applier is the only way to act: an owner behind a journal.
type Applier struct {
	j     *Journal
	owner Owner
}

// Wrap puts the journal between the caller and an owner.
func (j *Journal) Wrap(owner Owner) *Applier { return &Applier{j, owner} }

// Apply takes one step. It is idempotent: a setting that already has the wanted value is
// not written again.
func (a *Applier) Apply(ctx context.Context, step action.Step) action.Outcome {
	switch step.Kind {
	case action.MovePages:
		return a.owner.Move(ctx, Permit{a.j}, step)
	case action.Restore:
		return a.restore(ctx, step)
	}
	a.j.mu.Lock()
	defer a.j.mu.Unlock()
	a.j.shorten()
	changes, err := a.owner.Plan(ctx, step)
	if err != nil {
		return outcomeOf(step, err)
	}
	for _, c := range changes {
		if err := errors.Join(ctx.Err(), a.j.change(a.owner, step.Workload, c)); err != nil {
			return outcomeOf(step, err)
		}
	}
	return action.Outcome{Step: step, Status: action.Done, Detail: describe(changes)}
}

// errDrifted means that another process changed a setting after us.
var errDrifted = errors.New("changed by another process")

// outcomeOf turns an error into the step's outcome.
func outcomeOf(step action.Step, err error) action.Outcome {
	o := action.Outcome{Step: step, Status: action.Failed, Detail: err.Error()}
	for _, c := range []struct {
		kind   error
		status action.Status
	}{{errDrifted, action.Drifted}, {kernel.ErrGone, action.Gone}, {ErrRefused, action.Refused}, {kernel.ErrNotPermitted, action.Refused}, {kernel.ErrNotSupported, action.Refused}} {
		if errors.Is(err, c.kind) {
			o.Status = c.status
			break
		}
	}
	return o
}

func describe(changes []Change) string {
	var all []string
	for _, c := range changes {
		switch {
		case c.Original:
			c.New = "what it was"
		case c.Release:
			c.New += ", then what it was"
		}
		said := c.String() + " = " + c.New
		if c.Note != "" {
			said += " (" + c.Note + ")"
		}
		all = append(all, said)
	}
	return strings.Join(all, ", ")
}

// change replaces one setting:
//
//  1. Read it. A cgroup that was made again is not the one we knew. A setting that was
//     put back belongs to its owner again, whatever its value is now.
//  2. If it is neither what we wrote nor what was there before: leave it.
//  3. If it already has the wanted value: done.
//  4. Put the intent on disk, write the setting, record the outcome.
func (j *Journal) change(owner Owner, workload string, c Change) error {
	cur, err := owner.Read(c.Setting) // (1)
	if err != nil {
		return err
	}
	if c.ID != 0 && c.ID != cur.ID {
		return fmt.Errorf("set %s to %q: %s (%w)", c.Setting, c.New, c.Setting.anew(), kernel.ErrGone)
	}
	e := j.ledger[c.Setting]
	if e != nil && e.ID != cur.ID {
		if err := j.anew(owner, *e); err != nil {
			return err
		}
		e = nil
	}
	if c.Original && (e == nil || e.back()) {
		return nil
	} else if c.Original {
		c.New = e.Original
	}
	if e != nil && !e.back() && !j.known(owner, *e, cur.Value) { // (2)
		return fmt.Errorf("set %s to %q: %w: it is %q, we left %q", c.Setting, c.New, errDrifted, cur.Value, e.Ours[len(e.Ours)-1])
	}
	if o, ok := owner.(Overruled); ok && e != nil && !e.back() && !owner.Same(c.Setting, cur.Value, e.Original) {
		if other := o.Overrules(c.Setting, cur.Value); other != "" { // (2)
			return fmt.Errorf("set %s to %q: %w: it is %q as we left it, but %s", c.Setting, c.New, errDrifted, cur.Value, other)
		}
	}
	if there(owner, e, c, cur.Value) { // (3)
		return nil
	}
	if c.Release {
		return j.pass(owner, workload, c, cur) // (4)
	}
	return j.write(owner, workload, c, cur) // (4)
}

// there reports whether nothing needs to be written. An inherited setting is a thread's
// affinity. With a narrow cpuset the kernel shows less than was set, so the value
// counts only if exactly this value is on record.
func there(owner Owner, e *Entry, c Change, value string) bool {
	switch {
	case e == nil:
		return value == c.New || !c.Brief && owner.Same(c.Setting, value, c.New)
	case e.At != 0 && c.Release && !e.back(): // the thread is held
		return false
	case e.At != 0:
		return value == c.New && (e.back() || len(e.Ours) == 1 && e.Ours[0] == c.New)
	}
	return owner.Same(c.Setting, value, c.New) && !e.Equivalent
}

// known reports whether a value is ours, or what was there before us.
func (j *Journal) known(owner Owner, e Entry, value string) bool {
	return owner.Same(e.Setting, value, e.Original) || isOurs(owner, e, value)
}

func isOurs(owner Owner, e Entry, value string) bool {
	return slices.ContainsFunc(e.Ours, func(v string) bool { return owner.Same(e.Setting, value, v) })
}

// hidden reports whether a value may be ours although it equals the original. Of an
// inherited setting the kernel shows only what other limits leave of it.
func hidden(owner Owner, e Entry, value string) bool {
	return e.At != 0 && value != e.Original && isOurs(owner, e, value)
}

// write is (4). What was there before our first change stays the original.
func (j *Journal) write(owner Owner, workload string, c Change, cur Current) error {
	e := j.ledger[c.Setting]
	if err := j.addRecord(j.intent(owner, workload, c, cur), e == nil || e.back() || !c.Brief); err != nil {
		return err
	}
	err := j.gate.pass(func() error { return owner.Write(Permit{j}, c.Setting, c.New) })
	if err != nil && !errors.Is(err, ErrUntidy) {
		return j.failed(owner, c, err)
	}
	return j.addRecord(record{Kind: kindDone, Setting: c.Setting, New: c.New}, false)
}

// pass writes twice, with nothing in between. A thread that is born there inherits the
// value, and is found by what is on record (GiveBack).
func (j *Journal) pass(owner Owner, workload string, c Change, cur Current) error {
	r := j.intent(owner, workload, c, cur)
	if err := j.addRecord(r, false); err != nil {
		return err
	}
	var back error
	err := j.gate.pass(func() error {
		err := owner.Write(Permit{j}, c.Setting, c.New)
		if err == nil || errors.Is(err, ErrUntidy) {
			back = owner.Write(Permit{j}, c.Setting, r.Old)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrUntidy) {
		return j.failed(owner, c, err)
	}
	if err = back; errors.Is(err, kernel.ErrGone) {
		return j.gone(owner, c.Setting, 0, err)
	} else if err != nil {
		return err // it stays on record as ours
	}
	return j.addRecord(record{Kind: kindDone, Setting: c.Setting, New: r.Old}, false)
}

// intent records the write that follows. The value from before was ours.
func (j *Journal) intent(owner Owner, workload string, c Change, cur Current) record {
	r := record{Kind: kindIntent, Workload: workload, Setting: c.Setting, ID: cur.ID, Old: cur.Value, New: c.New}
	e := j.ledger[c.Setting]
	if e != nil && !e.back() {
		r.Old, r.At = e.Original, e.At
		return r
	}
	if in, ok := owner.(Inheritable); ok {
		if r.At = in.Clock(c.Setting); r.At != 0 {
			r.Old = in.Original(c.Setting, cur.Value)
		}
	}
	return r
}

// failed records that a write had no effect.
func (j *Journal) failed(owner Owner, c Change, err error) error {
	if errors.Is(err, kernel.ErrGone) && !unsure(err) {
		return j.gone(owner, c.Setting, 1, err)
	}
	if unsure(err) {
		return err // the intent stands: whatever the value is then is ours
	}
	if e := j.ledger[c.Setting]; e != nil && len(e.without(c.New)) == 0 { // that ends the record
		if bad := tell(owner, c.Setting); bad != nil {
			return errors.Join(err, bad)
		}
	}
	return errors.Join(err, j.addRecord(record{Kind: kindFailed, Setting: c.Setting, New: c.New, Why: err.Error()}, false))
}

// unsure reports whether the present or future value of a setting is unknown.
func unsure(err error) bool { return errors.Is(err, ErrUnsure) || errors.Is(err, ErrNoAnswer) }

// end ends a record. Its owner, which may keep its own record, learns of it first: if
// we are killed in between, there is a record that ends once more.
func (j *Journal) end(owner Owner, s Setting, why string) error {
	if err := tell(owner, s); err != nil {
		return err
	}
	return j.addRecord(record{Kind: kindEnd, Setting: s, Why: why}, false)
}

// tell reports the end of a record to its owner.
func tell(owner Owner, s Setting) error {
	o, ok := owner.(Ending)
	if !ok {
		return nil
	}
	if err := o.Ended(s); err != nil {
		return fmt.Errorf("end the record of %s: %w", s, err)
	}
	return nil
}

// DryRun plans steps and takes none. It needs no journal and no lock.
type DryRun struct{ Owner Owner }

// Apply reports what would be done.
func (d DryRun) Apply(ctx context.Context, step action.Step) action.Outcome {
	if step.Kind == action.MovePages || step.Kind == action.Restore {
		return action.Outcome{Step: step, Status: action.DryRun}
	}
	changes, err := d.Owner.Plan(ctx, step)
	if err != nil {
		return outcomeOf(step, err)
	}
	return action.Outcome{Step: step, Status: action.DryRun, Detail: describe(changes)}
}
