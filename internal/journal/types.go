// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"

	"homenode/internal/action"
)

// Setting is one thing that can be replaced: a file of a cgroup, or a property of a
// thread, a systemd unit or a container.
type Setting struct {
	Cgroup string `json:"cgroup"` // path from the root of its hierarchy, or the name of another kind (Kind)
	File   string `json:"file"`   // "cpuset.cpus", "cgroup.subtree_control", "affinity", "AllowedCPUs", …
}

// String is "/demo/a cpuset.cpus".
func (s Setting) String() string { return s.Cgroup + " " + s.File }

// Change is a setting and its new value.
type Change struct {
	Setting
	New string
	// Original: write what was there before our first change instead of New. Nothing is
	// done where there is none on record.
	Original bool
	// Release: write New, and right after it what was there before.
	Release bool
	// ID, where it is not 0, is the only object that the setting's name may refer to.
	ID uint64
	// Brief marks settings that change often and end with the machine at the latest.
	// Only the first record, which holds the original, is fsynced, and not even that if
	// the setting is released at once. The file still has what a killed process wrote
	// without fsync, and a machine that crashed has nothing left to put back.
	Brief bool
	// Note is said in the outcome: what of the step this change leaves out, and why.
	Note string
}

// Current is the present value of a setting and the ID of its cgroup: a cgroup that was
// removed and made again under the same name has another ID.
type Current struct {
	Value string
	ID    uint64
}

// Permit is the journal's confirmation that a change is on record. Only the journal can
// make a valid one.
type Permit struct{ j *Journal }

// Valid is false for a Permit that did not come from a journal.
func (p Permit) Valid() bool { return p.j != nil }

// ErrLocked means that another homenode holds the journal.
var ErrLocked = errors.New("held by another homenode")

// Errors that an Owner returns.
var (
	// ErrNeedsValue: the kernel refuses this original: an empty set for a populated
	// cgroup (ENOSPC), or CPUs that are gone (v1).
	ErrNeedsValue = errors.New("the kernel wants another value")
	// ErrInUse: it cannot be put back now, since others depend on it.
	ErrInUse = errors.New("others use it")
	// ErrUnsure: the write was requested, and it is unknown whether it will be done. The
	// setting may get the requested value at any time.
	ErrUnsure = errors.New("whether it is done is not known")
	// ErrUntidy: it is done, and something was left that should not be; the text says
	// what.
	ErrUntidy = errors.New("it is done, but not tidied up")
	// ErrRefused: the owner, or the kernel, refuses the value; the text says why.
	ErrRefused = errors.New("refused")
	// ErrNoAnswer: the service through which the owner acts cannot be reached, or did not
	// answer in time. The request may still be done (as with ErrUnsure), and what
	// is to be put back stays outstanding.
	ErrNoAnswer = errors.New("no answer")
)

// Owner acts for the journal on cgroups of one kind of owner.
type Owner interface {
	// Plan lists the settings that a step changes, in order. It changes nothing.
	Plan(ctx context.Context, step action.Step) ([]Change, error)
	Read(s Setting) (Current, error)
	// Same reports whether a setting that reads current has the recorded value.
	Same(s Setting, current, recorded string) bool
	Write(p Permit, s Setting, value string) error
	// Equivalent is the closest value to an original that ErrNeedsValue refused.
	Equivalent(s Setting, original string) (string, error)
	// Move moves pages; that replaces no setting, so nothing is recorded.
	Move(ctx context.Context, p Permit, step action.Step) action.Outcome
}

// Overruled is an Owner whose settings can be overruled where they take effect: a
// unit's AllowedCPUs by a write to its cgroup. That is drift, too. The setting is still
// put back, whatever was in effect.
type Overruled interface {
	// Overrules returns the value in force instead of a setting's value. It is "" if the
	// setting is in force, or if that is unknown.
	Overrules(s Setting, value string) string
}
