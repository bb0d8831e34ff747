// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"homenode/internal/report"
)

// StatusLine is one line about what goes on. On a terminal it is rewritten;
// elsewhere there is one for each stage, and one a minute.
type StatusLine struct {
	w     io.Writer
	tty   bool
	clock func() time.Time

	mu     sync.Mutex // the lab's lines come from another goroutine
	closed bool
	stage  string
	shown  time.Time
}

// NewStatusLine is one on stderr, as a rule.
func NewStatusLine(w io.Writer) *StatusLine {
	return &StatusLine{w: w, tty: IsTerminal(w), clock: time.Now}
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
	now := l.clock()
	switch {
	case l.closed:
	case l.tty:
		fmt.Fprint(l.w, eraseLine+report.Clip(text, statusWidth))
	case stage != l.stage || now.Sub(l.shown) >= quietFor:
		fmt.Fprintln(l.w, text)
		l.stage, l.shown = stage, now
	}
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

// BarWidth is the columns of a bar that leaves room for figures beside it.
const BarWidth = 30

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
