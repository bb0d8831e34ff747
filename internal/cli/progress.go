// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"homenode/internal/render"
)

// StatusLine is one line about what goes on. On a terminal it is rewritten;
// elsewhere there is one for each stage, and one a minute.
type StatusLine struct {
	w   io.Writer
	tty bool
	// Every is when a stage gets another line where there is no terminal; Clock is the time.
	Every time.Duration
	Clock func() time.Time

	mu     sync.Mutex // the lab's lines come from another goroutine
	closed bool
	stage  string
	shown  time.Time
}

// NewStatusLine is one on stderr, as a rule.
func NewStatusLine(w io.Writer) *StatusLine {
	return &StatusLine{w: w, tty: IsTerminal(w), Every: quietFor, Clock: time.Now, shown: time.Now()}
}

const (
	quietFor    = time.Minute
	eraseLine   = "\r\x1b[K"
	statusWidth = 110
)

// Show shows what goes on in a stage.
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

// ShowBar shows how far something is: on a terminal a bar, elsewhere text for each stage.
func (l *StatusLine) ShowBar(b Bar, stage, text string) {
	if l.tty {
		text = b.String()
	}
	l.Show(stage, text)
}

// Bar is a line that says how far something is: "latency ######........ 12/48, 1m3s".
type Bar struct {
	Head, Tail string
	Share      float64 // 0 to 1
}

// String fills what the words leave of a line with the bar.
func (b Bar) String() string {
	room := min(barWidth, barColumns-render.Width(b.Head)-render.Width(b.Tail))
	return b.Head + render.Progress(b.Share, room) + b.Tail
}

// Clear leaves the line to what comes next; nothing is shown after it.
func (l *StatusLine) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.tty {
		fmt.Fprint(l.w, eraseLine)
	}
}

// barWidth is the columns of a bar, where there is room; barColumns are those of a line
// with one: some terminals wrap at the 80th.
const (
	barWidth   = 30
	barColumns = 79
)

// ProgressLine shows how many of some like things are done.
func ProgressLine(w io.Writer) func(done, all int, text string) {
	start, line := time.Now(), NewStatusLine(w)
	return func(done, all int, text string) {
		elapsed, left := time.Since(start), ""
		if done > 0 {
			left = fmt.Sprintf(", about %s left", (elapsed / time.Duration(done) * time.Duration(all-done)).Round(10*time.Second))
		}
		head, _, _ := strings.Cut(text, ",")
		line.Show(fmt.Sprint(done, head), fmt.Sprintf("[%d/%d %s%s] %s", done, all, elapsed.Round(time.Second), left, text))
	}
}
