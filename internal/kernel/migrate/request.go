// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"time"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Clock times calls and holds rates: the machine's clock, or the model's in the lab.
type Clock interface {
	Now() time.Duration // since an arbitrary start; never goes back
	Name() string
	How() unit.Source
}

// Hot says which pages were accessed recently.
type Hot interface {
	// Hot is called with the address of a page's first byte.
	Hot(pid int, addr uint64) bool
}

// NoBudget moves everything there is.
const NoBudget unit.Bytes = 1 << 62

// Request is what to move, and how.
type Request struct {
	PIDs []int
	// Again lists the processes once more, so that processes forked meanwhile are moved too;
	// nil: PIDs are all there are.
	Again func() ([]int, error)
	From  set.NodeSet // empty: from every node that is not in To
	To    set.NodeSet
	// Budget ends the call when this much was moved; the next call continues there.
	Budget unit.Bytes
	// Cache moves pages of files that the processes map or have open and that none of
	// them has mapped.
	Cache bool
	// LeaveForeign leaves files and shared memory that processes outside PIDs map or hold
	// open too.
	LeaveForeign bool
	Rate         unit.Bytes    // bytes a second of the clock; 0: unlimited
	MaxStall     time.Duration // limit for one call; 0: unlimited
	Workers      int           // in parallel; 0: one
	// CPUs that workers run on; empty: the kernel chooses.
	CPUs set.CPUSet
	Hot  Hot // nil: all pages
	// Progress is called some times a second, by one goroutine at a time; nil: no
	// reports.
	Progress func(Progress)
}

// Progress is the progress of a move.
type Progress struct {
	Moved, Failed unit.Bytes
	Elapsed       time.Duration // by the clock
	Longest       time.Duration // longest call so far
	Kind          migration.Kind
}
