// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"io"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/window"
)

// Frame is what one screen shows: a period of a machine.
type Frame struct {
	Machine machine.Machine
	Window  window.Window
}

// Source gives frames, oldest first. Next waits until there is one; io.EOF says
// that there will be none any more.
type Source interface {
	Next(ctx context.Context) (Frame, error)
}

// Tape is a Source whose frames are all there already.
type Tape interface {
	Source
	Frames() []Frame
}

// Actor does what was asked for at the screen. A recording has none.
type Actor interface {
	// Plan says what Apply would set, a setting each. It changes nothing.
	Plan(ctx context.Context, a action.Action) ([]string, error)
	// Apply takes the wish. What became of its steps comes with later windows.
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

// Frames are all of them.
func (r *Replay) Frames() []Frame { return r.frames }

// Next does not wait: pace is the screen's.
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
