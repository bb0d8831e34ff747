// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"io"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// Frame is the content of one screen: a window of a machine.
type Frame struct {
	Machine machine.Machine
	Window  window.Window
}

// Source gives frames, oldest first. Next waits until there is one; io.EOF
// means that there will be no more.
type Source interface {
	Next(ctx context.Context) (Frame, error)
}

// Tape is a Source with all frames in memory.
type Tape interface {
	Source
	Frames() []Frame
}

// Actor executes the user's actions. A recording has none.
type Actor interface {
	// Plan returns what Apply would set, one line per setting. It changes
	// nothing.
	Plan(ctx context.Context, a action.Action) ([]string, error)
	// Apply takes the action. The outcomes of its steps come with later
	// windows.
	Apply(ctx context.Context, a action.Action) error
}

// Replay is a recording as a Tape.
type Replay struct {
	frames []Frame
	next   int
}

// NewReplay plays a recording from its start.
func NewReplay(r window.Recording) *Replay {
	all := make([]Frame, len(r.Windows))
	for i, w := range r.Windows {
		all[i] = Frame{Machine: r.Machine, Window: w}
	}
	return &Replay{frames: all}
}

// Frames are all frames of the recording.
func (r *Replay) Frames() []Frame { return r.frames }

// Next does not wait: the screen sets the pace.
func (r *Replay) Next(ctx context.Context) (Frame, error) {
	if err := ctx.Err(); err != nil {
		return Frame{}, err
	}
	if r.next == len(r.frames) {
		return Frame{}, io.EOF
	}
	r.next++
	return r.frames[r.next-1], nil
}
