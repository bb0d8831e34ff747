// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"time"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Clock is what calls are timed and rates are held by: the machine's, or the model's
// in the lab.
type Clock interface {
	Now() time.Duration // since some beginning; never goes back
	Name() string
	How() unit.Source
}

// Hot says which pages were accessed recently.
type Hot interface {
	// Hot is asked with the address of a page's first byte.
	Hot(pid int, addr uint64) bool
}

// NoBudget moves all there is.
const NoBudget unit.Bytes = 1 << 62

// Request is what to move, and how.
type Request struct {
	PIDs []int
	// Again lists the processes anew, so that those that were forked meanwhile are
	// moved too; nil: PIDs are all there are.
	Again func() ([]int, error)
	From  set.NodeSet // empty: from every node that is not in To
	To    set.NodeSet
	// Budget ends the call when this much was moved; the next one goes on there.
	Budget unit.Bytes
	// Cache moves pages of files that the processes map or have open and that none of
	// them has mapped.
	Cache bool
	// LeaveForeign leaves files and shared memory that processes outside of PIDs map
	// or hold open too.
	LeaveForeign bool
	Rate         unit.Bytes    // bytes a second of the clock; 0: unlimited
	MaxStall     time.Duration // that one call should take at most; 0: unlimited
	Workers      int           // that move side by side; 0: one
	// CPUs that workers run on; empty: where the kernel puts them.
	CPUs set.CPUSet
	Hot  Hot // nil: all pages
	// Progress is told some times a second, from one goroutine at a time; nil: nobody.
	Progress func(Progress)
}

// Progress is how far a move is.
type Progress struct {
	Moved, Failed unit.Bytes
	Elapsed       time.Duration // by the clock
	Longest       time.Duration // call so far
	Kind          migration.Kind
}
