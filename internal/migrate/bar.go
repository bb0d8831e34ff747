// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"homenode/internal/cli"
	"homenode/internal/kernel/migrate"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// bar shows the progress of a move: one line that is rewritten on a terminal, else a
// line for every tenth of the move, and every ten seconds.
type bar struct {
	*cli.StatusLine
	total unit.Bytes
}

func newBar(w io.Writer, total unit.Bytes) *bar {
	line := cli.NewStatusLine(w)
	line.Every = 10 * time.Second
	return &bar{line, total}
}

func (b *bar) show(p migrate.Progress) {
	stage := ""
	if tenth := int(10 * b.share(p)); tenth > 0 {
		stage = strconv.Itoa(tenth)
	}
	b.ShowBar(b.line(p), stage, fmt.Sprintf("homenode: moved %v of %v, %s, %s, longest call %s", p.Moved, b.total, rateText(p), b.left(p), render.Span(p.Longest)))
}

// end leaves the terminal's line to the text that follows.
func (b *bar) end() { b.Clear() }

// share is the part that was gone through, moved or not: 0 to 1.
func (b *bar) share(p migrate.Progress) float64 {
	if b.total <= 0 {
		return 0
	}
	return min(1, max(0, float64(p.Moved+p.Failed)/float64(b.total)))
}

// line is "anon    ######.............. 1.1 GiB of 3.2 GiB, 203 MB/s, 12 s left, longest 3.2 ms".
func (b *bar) line(p migrate.Progress) cli.Bar {
	return cli.Bar{Head: fmt.Sprintf("%-7.7s ", p.Kind), Share: b.share(p),
		Tail: fmt.Sprintf(" %v of %v, %s, %s, longest %s", p.Moved, b.total, rateText(p), b.left(p), render.Span(p.Longest))}
}

func rateText(p migrate.Progress) string {
	s := p.Elapsed.Seconds()
	if s <= 0 || p.Moved <= 0 {
		return "- MB/s"
	}
	return render.Rate(float64(p.Moved) / s)
}

// mostLeft is the longest remaining time that is printed as an estimate.
const mostLeft = 100 * time.Hour

// left is the remaining time by the pace so far, on the clock of Elapsed.
func (b *bar) left(p migrate.Progress) string {
	share := b.share(p)
	if share == 0 || p.Elapsed <= 0 {
		return "? left"
	}
	left := p.Elapsed.Seconds() * (1 - share) / share
	if left > mostLeft.Seconds() {
		return "> 100h left"
	}
	return render.Seconds(math.Round(left)) + " left"
}
