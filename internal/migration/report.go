// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"time"

	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Schema is the version of Report's wire form. Readers refuse a newer one.
const Schema = 1

// Mode is the way of moving.
type Mode string

// The ways.
const (
	Live   Mode = "live"   // the target runs: a bounded rate, bounded calls
	Freeze Mode = "freeze" // the target stands still: as fast as the memory allows
	Hot    Mode = "hot"    // live, and only what was accessed recently
)

// Outcome is how the move ended; each outcome has an exit code.
type Outcome string

// The outcomes.
const (
	Complete Outcome = "complete"
	Partial  Outcome = "partial" // something stayed, or it was stopped
	Nothing  Outcome = "nothing" // nothing is elsewhere
	Planned  Outcome = "dry-run"
)

// Report is one move, before and after.
type Report struct {
	Schema int         `json:"schema"`
	Target string      `json:"target_name"` // "cgroup /demo/a", "processes 12, 13"
	Mode   Mode        `json:"mode"`
	From   set.NodeSet `json:"from_nodes"` // empty: from all others
	To     set.NodeSet `json:"to_nodes"`
	// The request; 0 = no limit.
	Rate     unit.Bytes    `json:"rate_bytes_per_s"`
	MaxStall time.Duration `json:"max_stall_ns"`
	// LeaveShared leaves what is Foreign.
	LeaveShared bool `json:"leave_shared,omitempty"`
	// Clock is the clock that times were taken with; How says whether it is a model's.
	Clock string      `json:"clock"`
	How   unit.Source `json:"how"`

	Before   Census            `json:"before"`
	Estimate Estimate          `json:"estimate"`
	Result   unit.Opt[Result]  `json:"result"` // none of a dry run
	After    unit.Opt[Census]  `json:"after"`  // none of a dry run
	Heat     unit.Opt[Heat]    `json:"heat"`   // hot mode: how it was found
	Frozen   unit.Opt[float64] `json:"frozen_s"`
	Outcome  Outcome           `json:"outcome"`
	Notes    []string          `json:"notes,omitempty"` // a sentence each
}

// Heat is how hot mode found the accessed pages.
type Heat struct {
	Source string        `json:"source"` // "PMU samples", "DAMON", "idle page tracking", "referenced bits (clear_refs)"
	How    unit.Source   `json:"how"`
	Unit   string        `json:"unit"` // the smallest unit it can distinguish: "page", "region", "mapping"
	For    time.Duration `json:"for_ns"`
	Bytes  unit.Bytes    `json:"bytes"`                    // accessed
	Others []string      `json:"better_sources,omitempty"` // better ones, and why the kernel does not have them
}

// Task is the memory to be moved: Before, without what was to be left.
func (r Report) Task() Census {
	if r.LeaveShared {
		return r.Before.Own()
	}
	return r.Before
}

// Estimate is the expected cost of a move.
type Estimate struct {
	Bytes unit.Bytes `json:"bytes"` // to be moved
	// Seconds that it takes, at the given rate or as fast as possible.
	Seconds unit.Value[float64] `json:"seconds"`
	// CPUSeconds is the CPU time of moving; a live move spreads it over Seconds.
	CPUSeconds unit.Value[float64] `json:"cpu_seconds"`
	// BandwidthShare is the share of the tightest node's bandwidth that the move uses
	// meanwhile: read on one node, written on the other.
	BandwidthShare unit.Value[unit.Ratio] `json:"bandwidth_share"`
}

// DecodeReport reads the JSON form, strictly.
func DecodeReport(data []byte) (Report, error) {
	return schema.Decode[Report](data, "report of a move", Schema)
}

// Validate refuses impossible values.
func (r Report) Validate() error {
	var errs []error
	if r.Schema < 1 {
		errs = append(errs, fmt.Errorf("schema is %d: want 1 to %d", r.Schema, Schema))
	}
	if r.Rate < 0 || r.MaxStall < 0 {
		errs = append(errs, fmt.Errorf("rate is %d and max stall %d: they must not be negative", int64(r.Rate), int64(r.MaxStall)))
	}
	if r.To.IsEmpty() {
		errs = append(errs, errors.New("it moves to no node"))
	}
	return errors.Join(errs...)
}
