// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"homenode/internal/lab/demo"
	"homenode/internal/report"
)

// statusLine is one line about what goes on. On a terminal it is rewritten;
// elsewhere there is one for each stage, and one a minute.
type statusLine struct {
	w     io.Writer
	tty   bool
	clock func() time.Time

	mu     sync.Mutex // the lab's lines come from another goroutine
	closed bool
	stage  string
	shown  time.Time
}

func newStatusLine(w io.Writer) *statusLine {
	return &statusLine{w: w, tty: isTerminal(w), clock: time.Now}
}

const (
	quietFor    = time.Minute
	eraseLine   = "\r\x1b[K"
	statusWidth = 110
)

func (l *statusLine) show(stage, text string) {
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

// clear leaves the line to what comes next; nothing is shown after it.
func (l *statusLine) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.tty {
		fmt.Fprint(l.w, eraseLine)
	}
}

// progressLine shows how many of some like things are done.
func progressLine(w io.Writer) func(done, all int, text string) {
	start, line := time.Now(), newStatusLine(w)
	return func(done, all int, text string) {
		elapsed, left := time.Since(start), ""
		if done > 0 {
			left = fmt.Sprintf(", about %s left", (elapsed / time.Duration(done) * time.Duration(all-done)).Round(10*time.Second))
		}
		head, _, _ := strings.Cut(text, ",")
		line.show(fmt.Sprint(done, head), fmt.Sprintf("[%d/%d %s%s] %s", done, all, elapsed.Round(time.Second), left, text))
	}
}

// showDemo is where a comparison is.
func (l *statusLine) showDemo(p demo.Progress) {
	l.show(fmt.Sprint(p.Done, p.Step.Stage), demoText(p))
}

// demoText: 3 of 10 runs · numad warming up 6 of 18 model-s, local 0.52 · about 4 min left.
func demoText(p demo.Progress) string {
	text := fmt.Sprintf("%d of %d runs · ", p.Done, p.All)
	if p.Arm != "" {
		text += p.Arm + " "
	}
	text += p.Step.String()
	if left, ok := p.Left.Get(); ok {
		text += " · " + leftText(left)
	}
	return text
}

func leftText(left time.Duration) string {
	if left < time.Minute {
		return "less than a minute left"
	}
	return fmt.Sprintf("about %d min left", int(left.Round(time.Minute)/time.Minute))
}
