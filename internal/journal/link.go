// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"

	"homenode/internal/action"
)

// Ending is an Owner that keeps its own record of what is in the journal (Remembering).
// It learns when a record ends, so that the two stay the same.
type Ending interface {
	// Ended tells the owner that a setting no longer concerns us. The record ends only if
	// Ended did not fail.
	Ended(s Setting) error
}

// Link is an Owner in a chain of owners. It passes on what is not its own. The
// interface includes every optional method of an owner, so that no link can hide from
// the journal what an owner behind it knows. A link embeds Next.
type Link interface {
	Owner
	Overruled
	Remembering
	Ending
	Inheritable
}

// Next passes calls on to the owner behind a link, so that a link defines only its own
// methods.
type Next struct {
	Behind Owner  // nil: no owner acts, and nothing is known
	Why    string // no owner is behind; not an error, as a sentinel in it would end records
}

var _ Link = Next{}

// noOwner is the error for a chain without an owner that can act.
func (n Next) noOwner(what string) error {
	return fmt.Errorf("act on %s: %s", what, n.Why)
}

// Plan is Owner's.
func (n Next) Plan(ctx context.Context, step action.Step) ([]Change, error) {
	if n.Behind == nil {
		return nil, n.noOwner(stepName(step))
	}
	return n.Behind.Plan(ctx, step)
}

func stepName(step action.Step) string { return fmt.Sprintf("%s of %s", step.Kind, step.Workload) }

// Read is Owner's.
func (n Next) Read(s Setting) (Current, error) {
	if n.Behind == nil {
		return Current{}, n.noOwner(s.String())
	}
	return n.Behind.Read(s)
}

// Same is Owner's.
func (n Next) Same(s Setting, current, recorded string) bool {
	return n.Behind != nil && n.Behind.Same(s, current, recorded)
}

// Write is Owner's.
func (n Next) Write(p Permit, s Setting, value string) error {
	if n.Behind == nil {
		return n.noOwner(s.String())
	}
	return n.Behind.Write(p, s, value)
}

// Equivalent is Owner's.
func (n Next) Equivalent(s Setting, original string) (string, error) {
	if n.Behind == nil {
		return "", n.noOwner(s.String())
	}
	return n.Behind.Equivalent(s, original)
}

// Move is Owner's.
func (n Next) Move(ctx context.Context, p Permit, step action.Step) action.Outcome {
	if n.Behind == nil {
		return action.Outcome{Step: step, Status: action.Refused, Detail: n.noOwner(stepName(step)).Error()}
	}
	return n.Behind.Move(ctx, p, step)
}

// Overrules is Overruled's.
func (n Next) Overrules(s Setting, value string) string {
	if o, ok := n.Behind.(Overruled); ok {
		return o.Overrules(s, value)
	}
	return ""
}

// Remembered is Remembering's.
func (n Next) Remembered() ([]Entry, error) {
	if o, ok := n.Behind.(Remembering); ok {
		return o.Remembered()
	}
	return nil, nil
}

// Ended is Ending's.
func (n Next) Ended(s Setting) error {
	if o, ok := n.Behind.(Ending); ok {
		return o.Ended(s)
	}
	return nil
}

// Clock is Inheritable's.
func (n Next) Clock(s Setting) uint64 {
	if o, ok := n.Behind.(Inheritable); ok {
		return o.Clock(s)
	}
	return 0
}

// Original is Inheritable's.
func (n Next) Original(s Setting, value string) string {
	if o, ok := n.Behind.(Inheritable); ok {
		return o.Original(s, value)
	}
	return value
}

// Inherited is Inheritable's.
func (n Next) Inherited(f Family) ([]Inherited, error) {
	if o, ok := n.Behind.(Inheritable); ok {
		return o.Inherited(f)
	}
	return nil, nil
}
