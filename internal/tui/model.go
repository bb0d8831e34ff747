// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"homenode/internal/action"
)

// Options are the options of a screen.
type Options struct {
	Source Source
	Title  string // where the frames come from, a few words
	// Actor may be nil; then NoActor says why nothing can be bound.
	Actor   Actor
	NoActor string
	// Why returns why a workload is where it is; nil: unknown.
	Why func(id string) string
	// Speed of a Tape: 1 for real time, +Inf for as fast as a person can follow.
	Speed  float64
	ASCII  bool // the terminal does not speak UTF-8
	Colour bool // write colours; the terminal's library drops what it cannot show
}

// screen is the overlay above the table.
type screen int

const (
	onTable screen = iota
	onDetail
	onWhy
	onHelp
	onInfo
	onPlan
)

// prompt is what the bottom line asks for.
type prompt int

const (
	noPrompt prompt = iota
	askFilter
	askNodes
)

// plan is an action that is shown before it is applied.
type plan struct {
	action  action.Action
	lines   []string
	refused string // why it cannot be done
	known   bool   // lines or refused is set
	applied bool   // y was pressed
}

// Model is everything that a screen shows. Its fields change only in Update;
// view.go draws screens from it.
type Model struct {
	o    Options
	ctx  context.Context
	w, h int

	still bool // printed once: no keys, no selection

	time    timeline
	playing bool // live: the newest frame is shown; a tape: it is playing
	ended   bool // the source has ended
	trouble string
	turn    int // ticks of an older turn are void

	order    order
	filter   string
	selected string // workload ID
	row      int    // its row, in case the workload is gone
	top      int    // first row of the table that is shown
	byCPU    bool   // the trend is of CPU, not of the local ratio

	on     screen
	back   screen // the overlay below
	scroll int
	ask    prompt
	input  string
	target string // the workload of askNodes
	plan   plan
	why    string
	said   string
}

// New makes a screen without frames.
func New(ctx context.Context, o Options) *Model {
	m := &Model{o: o, ctx: ctx, playing: true, w: 80, h: 24}
	if tape, ok := o.Source.(Tape); ok {
		m.time.frames, m.ended = tape.Frames(), true
	}
	if m.o.Speed <= 0 {
		m.o.Speed = 1
	}
	m.follow()
	return m
}

type (
	frameMsg struct {
		frame Frame
		err   error
	}
	tickMsg  struct{ turn int }
	againMsg struct{}
	planMsg  struct {
		action action.Action
		lines  []string
		err    error
	}
	appliedMsg struct {
		action action.Action
		err    error
	}
)

// Init asks for the first frame.
func (m *Model) Init() tea.Cmd {
	if m.ended {
		return m.tick()
	}
	return m.fetch
}

func (m *Model) fetch() tea.Msg {
	f, err := m.o.Source.Next(m.ctx)
	return frameMsg{f, err}
}

// tick ends when the next frame of a tape is due. A person can also follow a
// tape with many windows per second, or with one per hour.
func (m *Model) tick() tea.Cmd {
	m.turn++
	if !m.playing || m.time.atEnd() || !m.ended {
		return nil
	}
	const shortest, longest = 33 * time.Millisecond, 10 * time.Second
	wait := float64(m.time.frames[m.time.now+1].Window.Length) / m.o.Speed
	turn := m.turn
	return tea.Tick(time.Duration(min(max(wait, float64(shortest)), float64(longest))), func(time.Time) tea.Msg { return tickMsg{turn} })
}

// Update handles one message: a key, a frame, or an answer of an Actor.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String(), msg.Text)
	case frameMsg:
		return m, m.frame(msg)
	case againMsg:
		return m, m.fetch
	case tickMsg:
		if msg.turn == m.turn {
			m.time.seek(m.time.now + 1)
			m.follow()
			return m, m.tick()
		}
	case planMsg:
		m.planned(msg)
	case appliedMsg:
		m.applied(msg)
	}
	return m, nil
}

// frame stores a frame of the source, and asks for the next. After an error it
// waits, because the source might not.
func (m *Model) frame(msg frameMsg) tea.Cmd {
	switch {
	case errors.Is(msg.err, io.EOF):
		m.ended = true
		return nil
	case m.ctx.Err() != nil:
		return tea.Quit
	case msg.err != nil:
		m.trouble = clean(msg.err.Error())
		return tea.Tick(time.Second, func(time.Time) tea.Msg { return againMsg{} })
	}
	if m.trouble = ""; len(msg.frame.Window.Outcomes) > 0 && m.playing {
		m.said = "" // the outcome says more
	}
	m.time.addFrame(msg.frame, m.playing)
	m.follow()
	return m.fetch
}

func (m *Model) planned(msg planMsg) {
	if m.on != onPlan || m.plan.action.String() != msg.action.String() {
		return // the user has left the screen
	}
	m.plan.known = true
	for _, line := range msg.lines {
		m.plan.lines = append(m.plan.lines, clean(line))
	}
	if msg.err != nil {
		m.plan.refused = clean(msg.err.Error())
	} else if len(msg.lines) == 0 {
		m.plan.refused = "nothing would change"
	}
}

func (m *Model) applied(msg appliedMsg) {
	m.said = clean(msg.action.String()) + ": asked for; the next windows show its outcome"
	if msg.err != nil {
		m.said = "not done: " + clean(msg.err.Error())
	}
}

// View is the text of the terminal.
func (m *Model) View() tea.View {
	v := tea.NewView(m.Text())
	v.AltScreen = true
	return v
}
