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

// Tape is a reader that plays a recording's windows over and over, to measure the
// agent's own cost. Numbers and times keep rising.
type Tape struct {
	rec  window.Recording
	next uint64
	at   time.Time
}

// NewTape plays a recording. The recording must have windows.
func NewTape(rec window.Recording) (*Tape, error) {
	if len(rec.Windows) == 0 {
		return nil, errors.New("play recording: it has no windows")
	}
	return &Tape{rec: rec, at: rec.Windows[0].At}, nil
}

// Read returns the next window.
func (t *Tape) Read(context.Context) (window.Window, error) {
	w := t.rec.Windows[t.next%uint64(len(t.rec.Windows))]
	t.next++
	t.at = t.at.Add(w.Length)
	w.Seq, w.At = t.next, t.at
	w.Outcomes = nil                                             // they belong to the recorded host
	w.Workloads = append([]window.Workload(nil), w.Workloads...) // the loop names them
	return w, nil
}

// Machine returns the recording's machine.
func (t *Tape) Machine() machine.Machine { return t.rec.Machine }

// EventTable says that no events are counted.
func (t *Tape) EventTable() string { return "a recording" }

// Close does nothing.
func (t *Tape) Close() {}

// asIfDone does nothing, and reports each step as done.
type asIfDone struct{}

func (asIfDone) Apply(_ context.Context, s action.Step) action.Outcome {
	return action.Outcome{Step: s, Status: action.Done, Moved: s.Budget}
}
