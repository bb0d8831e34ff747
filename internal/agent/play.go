// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// Tape plays a recording's windows over and over, as a reader: for the agent's own cost.
// Numbers and times go on.
type Tape struct {
	rec  window.Recording
	next uint64
	at   time.Time
}

// NewTape plays a recording that has windows.
func NewTape(rec window.Recording) (*Tape, error) {
	if len(rec.Windows) == 0 {
		return nil, errors.New("play recording: it has no window")
	}
	return &Tape{rec: rec, at: rec.Windows[0].At}, nil
}

// Read is the next window.
func (t *Tape) Read(context.Context) (window.Window, error) {
	w := t.rec.Windows[t.next%uint64(len(t.rec.Windows))]
	t.next++
	t.at = t.at.Add(w.Length)
	w.Seq, w.At = t.next, t.at
	w.Outcomes = nil                                             // those of the host that was recorded
	w.Workloads = append([]window.Workload(nil), w.Workloads...) // the loop names them
	return w, nil
}

// Machine is the recording's.
func (t *Tape) Machine() machine.Machine { return t.rec.Machine }

// EventTable says that nothing is counted.
func (t *Tape) EventTable() string { return "a recording" }

// Close does nothing.
func (t *Tape) Close() {}

// asIfDone does nothing, and says that it was done.
type asIfDone struct{}

func (asIfDone) Apply(_ context.Context, s action.Step) action.Outcome {
	return action.Outcome{Step: s, Status: action.Done, Moved: s.Budget}
}
