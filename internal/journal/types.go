// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"

	"homenode/internal/action"
)

// Setting is one thing that can be replaced: a file of a cgroup, or what a thread, a unit
// of systemd or a container has of its own.
type Setting struct {
	Cgroup string `json:"cgroup"` // path from the root of its hierarchy, or the name of another kind (Kind)
	File   string `json:"file"`   // "cpuset.cpus", "cgroup.subtree_control", "affinity", "AllowedCPUs", …
}

// String is "/demo/a cpuset.cpus".
func (s Setting) String() string { return s.Cgroup + " " + s.File }

// Change is a setting and what it shall become.
type Change struct {
	Setting
	New string
	// Original: not New, but what was there before our first change; nothing is done
	// where there was none.
	Original bool
	// Release: New, and right after it what was there before.
	Release bool
	// ID, where it is not 0, is the only one that is meant by the setting's name.
	ID uint64
	// Brief is of what changes often and ends with the machine at the latest. Only its
	// first record, which holds the original, is fsynced, and that not if it is released
	// at once: what a killed process wrote without it is in the file all the same, and a
	// machine that crashed has nothing left to put back.
	Brief bool
}

// Current is what a setting is now, and which cgroup that is: one that was
// removed and made again under the same name has another ID.
type Current struct {
	Value string
	ID    uint64
}

// Permit is the journal's word that a change is on record. Only the journal can
// make a valid one.
type Permit struct{ j *Journal }

// Valid is false for a Permit that did not come from a journal.
func (p Permit) Valid() bool { return p.j != nil }

// ErrLocked says that another homenode holds the journal.
var ErrLocked = errors.New("held by another homenode")

// Errors an Owner says by.
var (
	// ErrNeedsValue: the kernel will not have this original back as it was: an
	// empty set for a populated cgroup (ENOSPC), or CPUs that are gone (v1).
	ErrNeedsValue = errors.New("the kernel wants another value")
	// ErrInUse: it cannot be put back now, since others depend on it.
	ErrInUse = errors.New("others use it")
	// ErrUnsure: the write was asked for, and nobody can tell whether it will be done:
	// the setting may become what was asked for at any time.
	ErrUnsure = errors.New("whether it is done is not known")
	// ErrUntidy: it is done, and something was left that should not be; the text says what.
	ErrUntidy = errors.New("it is done, but not tidied up")
	// ErrRefused: the owner, or the kernel, will not have it; the text says why.
	ErrRefused = errors.New("refused")
	// ErrNoAnswer: the service through which the owner acts cannot be reached, or did not
	// answer in time. What it was asked for may be done all the same (as with ErrUnsure),
	// and what is to be put back stays outstanding.
	ErrNoAnswer = errors.New("no answer")
)

// Owner acts for the journal on cgroups of one kind of owner.
type Owner interface {
	// Plan says which settings a step changes, in order. It changes nothing.
	Plan(ctx context.Context, step action.Step) ([]Change, error)
	Read(s Setting) (Current, error)
	// Same says whether a setting that reads current is what was recorded.
	Same(s Setting, current, recorded string) bool
	Write(p Permit, s Setting, value string) error
	// Equivalent is what comes closest to an original that ErrNeedsValue refused.
	Equivalent(s Setting, original string) (string, error)
	// Move moves pages; nothing is replaced by that, so nothing is recorded.
	Move(ctx context.Context, p Permit, step action.Step) action.Outcome
}

// Overruled is an Owner whose settings can be overruled where they take effect: a unit's
// AllowedCPUs by a write to its cgroup. That is drift, too; but what is put back is the
// setting, whatever took effect of it.
type Overruled interface {
	// Overrules says what is in force instead of a setting's value; "" if that is, or if
	// nobody can tell.
	Overrules(s Setting, value string) string
}
