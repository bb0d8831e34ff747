// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io"
	"time"

	"homenode/internal/bench"
	"homenode/internal/cli"
)

// bar shows the progress of a measurement: one line that is rewritten on a terminal,
// else a line for each part, and one a minute.
type bar struct{ *cli.StatusLine }

func newBar(w io.Writer) bar { return bar{cli.NewStatusLine(w)} }

func (b bar) show(p bench.Progress) {
	b.ShowBar(barLine(p), string(p.Part), fmt.Sprintf("homenode: measuring %s: %d runs, %s", p.Part, p.Total, timeLeft(p)))
}

// end leaves the terminal's line to the text that follows.
func (b bar) end() { b.Clear() }

// barLine is "latency         ######........  12/48  1m3s, about 2m10s left".
func barLine(p bench.Progress) cli.Bar {
	return cli.Bar{Head: fmt.Sprintf("%-14s ", p.Part), Share: float64(p.Done) / float64(max(1, p.Total)),
		Tail: fmt.Sprintf(" %4d/%d  %v, %s", p.Done, p.Total, p.Elapsed.Round(time.Second), timeLeft(p))}
}

func timeLeft(p bench.Progress) string {
	return fmt.Sprintf("about %v left", p.Remaining.Round(time.Second))
}
