// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io"
	"strings"
	"time"

	"homenode/internal/bench"
	"homenode/internal/cli"
	"homenode/internal/profile"
)

// bar shows how far a measurement is: one line that is rewritten on a
// terminal, else a line a part.
type bar struct {
	w    io.Writer
	tty  bool
	last profile.Part
}

func newBar(w io.Writer) *bar { return &bar{w: w, tty: cli.IsTerminal(w)} }

func (b *bar) show(p bench.Progress) {
	if b.tty {
		fmt.Fprintf(b.w, "\r\x1b[K%s", barLine(p))
		return
	}
	if p.Part != b.last {
		b.last = p.Part
		fmt.Fprintf(b.w, "homenode: measuring %s: %d runs, %s\n", p.Part, p.Total, timeLeft(p))
	}
}

// end leaves the terminal's line to what follows.
func (b *bar) end() {
	if b.tty {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}

// barLine is at most 80 columns: "latency         ######........  12/48  1m3s, about 2m10s left".
func barLine(p bench.Progress) string {
	full := 0
	if p.Total > 0 {
		full = cli.BarWidth * p.Done / p.Total
	}
	return fmt.Sprintf("%-14s %s%s %4d/%d  %v, %s", p.Part, strings.Repeat("#", full), strings.Repeat(".", cli.BarWidth-full),
		p.Done, p.Total, p.Elapsed.Round(time.Second), timeLeft(p))
}

func timeLeft(p bench.Progress) string {
	return fmt.Sprintf("about %v left", p.Remaining.Round(time.Second))
}
