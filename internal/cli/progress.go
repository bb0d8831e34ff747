// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"homenode/internal/render"
)

// StatusLine is one line about the progress. On a terminal it is rewritten;
// elsewhere each stage has a line, and another one every minute.
type StatusLine struct {
	w   io.Writer
	tty bool
	// Every is the time until a stage gets another line if there is no terminal; Clock is
	// the time.
	Every time.Duration
	Clock func() time.Time

	mu     sync.Mutex // another goroutine shows the lab's lines
	closed bool
	stage  string
	shown  time.Time
}

// NewStatusLine returns a status line on w, usually stderr.
func NewStatusLine(w io.Writer) *StatusLine {
	return &StatusLine{w: w, tty: IsTerminal(w), Every: quietFor, Clock: time.Now, shown: time.Now()}
}

// NewTerminalLine returns a status line that is for people at a terminal only: it does not
// go into a log.
func NewTerminalLine(w io.Writer) *StatusLine {
	l := NewStatusLine(w)
	l.Every = math.MaxInt64
	return l
}

const (
	quietFor    = time.Minute
	eraseLine   = "\r\x1b[K"
	statusWidth = 110
)

// Show shows the progress of a stage.
func (l *StatusLine) Show(stage, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.Clock()
	switch {
	case l.closed:
	case l.tty:
		fmt.Fprint(l.w, eraseLine+render.Clip(text, statusWidth))
	case stage != l.stage || now.Sub(l.shown) >= l.Every:
		fmt.Fprintln(l.w, text)
		l.stage, l.shown = stage, now
	}
}

// ShowBar shows the progress: a bar on a terminal, elsewhere text for each stage.
func (l *StatusLine) ShowBar(b Bar, stage, text string) {
	if l.tty {
		text = b.String()
	}
	l.Show(stage, text)
}

// Bar is a line with a progress bar: "latency ######........ 12/48, 1m3s".
type Bar struct {
	Head, Tail string
	Share      float64 // 0 to 1
}

// String fills the part of a line that the text leaves with the bar.
func (b Bar) String() string {
	room := min(barWidth, barColumns-render.Width(b.Head)-render.Width(b.Tail))
	return b.Head + render.Progress(b.Share, room) + b.Tail
}

// Clear frees the line for other output. Nothing is shown after it.
func (l *StatusLine) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.tty {
		fmt.Fprint(l.w, eraseLine)
	}
}

// barWidth is the number of columns of a bar, if there is room. barColumns is the
// length of its line: some terminals wrap at column 80.
const (
	barWidth   = 30
	barColumns = 79
)

// ProgressLine shows how many of several similar tasks are done.
func ProgressLine(w io.Writer) func(done, all int, text string) {
	start, line := time.Now(), NewStatusLine(w)
	return func(done, all int, text string) {
		elapsed, left := time.Since(start), ""
		if done > 0 {
			left = fmt.Sprintf(", about %s left", render.Span((elapsed / time.Duration(done) * time.Duration(all-done)).Round(10*time.Second)))
		}
		head, _, _ := strings.Cut(text, ",")
		line.Show(fmt.Sprint(done, head), fmt.Sprintf("[%d/%d %s%s] %s", done, all, render.Span(elapsed.Round(time.Second)), left, text))
	}
}
