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

// Apply takes one step. It is idempotent: a setting that already is what it
// should be is not written again.
func (a *Applier) Apply(ctx context.Context, step action.Step) action.Outcome {
	switch step.Kind {
	case action.MovePages:
		return a.owner.Move(ctx, Permit{a.j}, step)
	case action.Restore:
		return a.restore(ctx, step)
	}
	a.j.mu.Lock()
	defer a.j.mu.Unlock()
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

// errDrifted says that somebody else changed a setting after us.
var errDrifted = errors.New("somebody else changed it")

// outcomeOf turns an error into what became of the step.
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
		all = append(all, c.String()+" = "+c.New)
	}
	return strings.Join(all, ", ")
}

// change replaces one setting:
//
//  1. Read it. A cgroup that was made anew is not the one we knew.
//  2. If it is neither what we wrote nor what was there before: leave it.
//  3. If it already is what it should be: done.
//  4. Put the intent on disk, write, put down what became of it.
func (j *Journal) change(owner Owner, workload string, c Change) error {
	cur, err := owner.Read(c.Setting) // (1)
	if err != nil {
		return err
	}
	e := j.ledger[c.Setting]
	if e != nil && e.ID != cur.ID {
		if err := j.end(c.Setting, "its cgroup was made anew"); err != nil {
			return err
		}
		e = nil
	}
	if e != nil && !j.known(owner, *e, cur.Value) { // (2)
		return fmt.Errorf("set %s to %q: %w: it is %q, we left %q", c.Setting, c.New, errDrifted, cur.Value, e.Ours[len(e.Ours)-1])
	}
	if owner.Same(c.Setting, cur.Value, c.New) && (e == nil || !e.Equivalent) { // (3)
		return nil
	}
	return j.write(owner, workload, c, cur) // (4)
}

// known says that a value is ours, or what was there before us.
func (j *Journal) known(owner Owner, e Entry, value string) bool {
	return owner.Same(e.Setting, value, e.Original) || isOurs(owner, e, value)
}

func isOurs(owner Owner, e Entry, value string) bool {
	return slices.ContainsFunc(e.Ours, func(v string) bool { return owner.Same(e.Setting, value, v) })
}

// write is (4). What was there before our first change stays the original.
func (j *Journal) write(owner Owner, workload string, c Change, cur Current) error {
	r := record{Kind: kindIntent, Workload: workload, Setting: c.Setting, ID: cur.ID, Old: cur.Value, New: c.New}
	if e := j.ledger[c.Setting]; e != nil {
		r.Old = e.Original
	}
	if err := j.add(r, true); err != nil {
		return err
	}
	err := owner.Write(Permit{j}, c.Setting, c.New)
	switch {
	case errors.Is(err, kernel.ErrGone):
		return errors.Join(err, j.end(c.Setting, err.Error()))
	case err != nil:
		return errors.Join(err, j.add(record{Kind: kindFailed, Setting: c.Setting, New: c.New, Why: err.Error()}, false))
	}
	return j.add(record{Kind: kindDone, Setting: c.Setting, New: c.New}, false)
}

func (j *Journal) end(s Setting, why string) error {
	return j.add(record{Kind: kindEnd, Setting: s, Why: why}, false)
}

// DryRun plans steps and takes none. It needs no journal and no lock.
type DryRun struct{ Owner Owner }

// Apply says what would be done.
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
