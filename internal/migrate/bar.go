// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"io"
	"strings"
	"time"

	"homenode/internal/cli"
	"homenode/internal/kernel/migrate"
	"homenode/internal/unit"
)

// bar shows how far a move is: one line that is rewritten on a terminal, else
// a line now and then.
type bar struct {
	w     io.Writer
	tty   bool
	total unit.Bytes
	now   func() time.Time
	last  time.Time // a line was printed
	tenth int       // that was reached by then
}

const (
	barColumns = 79 // the 80th is where some terminals wrap
	barLongest = 20
	barEvery   = 10 * time.Second // or a tenth of it all, whichever comes first
)

func newBar(w io.Writer, total unit.Bytes) *bar {
	return &bar{w: w, tty: cli.IsTerminal(w), total: total, now: time.Now, last: time.Now()}
}

func (b *bar) show(p migrate.Progress) {
	if b.tty {
		fmt.Fprintf(b.w, "\r\x1b[K%s", b.line(p))
		return
	}
	tenth := int(10 * b.share(p))
	if now := b.now(); tenth > b.tenth || now.Sub(b.last) >= barEvery {
		b.tenth, b.last = tenth, now
		fmt.Fprintf(b.w, "homenode: moved %v of %v, %s, %s, longest call %s\n", p.Moved, b.total, rateText(p), b.left(p), callText(p.Longest))
	}
}

// end leaves the terminal's line to what follows.
func (b *bar) end() {
	if b.tty {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// share is how much is through, moved or not: 0 to 1.
func (b *bar) share(p migrate.Progress) float64 {
	if b.total <= 0 {
		return 0
	}
	return min(1, max(0, float64(p.Moved+p.Failed)/float64(b.total)))
}

// line fills what the figures leave of the line with a bar:
// "anon    ######.............. 1.1GiB of 3.2GiB, 203 MB/s, 12s left, longest 3.2ms".
func (b *bar) line(p migrate.Progress) string {
	head := fmt.Sprintf("%-7.7s ", p.Kind)
	tail := fmt.Sprintf(" %v of %v, %s, %s, longest %s", p.Moved, b.total, rateText(p), b.left(p), callText(p.Longest))
	wide := min(barLongest, max(0, barColumns-len(head)-len(tail)))
	full := int(float64(wide) * b.share(p))
	return head + strings.Repeat("#", full) + strings.Repeat(".", wide-full) + tail
}

func rateText(p migrate.Progress) string {
	s := p.Elapsed.Seconds()
	if s <= 0 || p.Moved <= 0 {
		return "- MB/s"
	}
	if rate := float64(p.Moved) / s; rate < 9.995e9 {
		return fmt.Sprintf("%.0f MB/s", rate/1e6)
	}
	return fmt.Sprintf("%.0f GB/s", float64(p.Moved)/s/1e9)
}

// mostLeft is where an estimate of what is left stops being one.
const mostLeft = 100 * time.Hour

// left is by the pace so far, and by the clock that Elapsed is of.
func (b *bar) left(p migrate.Progress) string {
	share := b.share(p)
	if share == 0 || p.Elapsed <= 0 {
		return "? left"
	}
	left := p.Elapsed.Seconds() * (1 - share) / share
	if left > mostLeft.Seconds() {
		return "> 100h left"
	}
	return time.Duration(left*float64(time.Second)).Round(time.Second).String() + " left"
}

func callText(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}
