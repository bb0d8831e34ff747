// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"time"

	"homenode/internal/render"
	"homenode/internal/replay"
)

// firstDifferences is how many differences are shown without --all.
const firstDifferences = 20

// Replay prints both sides of a recording, and the first decisions that differ, or all
// of them.
func Replay(w io.Writer, r replay.Result, all bool) error {
	fmt.Fprintf(w, "%d windows, %s to %s, %s in all\n\n", r.Windows, r.From.Format(time.DateTime), r.To.Format(time.DateTime), render.Span(r.Length))
	out := terminal()
	out.Table(sides(r))
	out.Line("")
	table, same := decided(r)
	out.Table(table)
	if err := out.Flush(w, "replay"); err != nil {
		return err
	}
	if same > 0 {
		fmt.Fprintf(w, "and %d workloads without a decision\n", same)
	}
	printDifferences(w, r, all)
	fmt.Fprintln(w)
	if v, ok := r.AsRecorded.Get(); ok {
		fmt.Fprintf(w, "as recorded: 'then' binds like the recorded agent in %v of the approved workloads' windows\n", v)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note: "+render.Printable(n))
	}
	return nil
}

// sides prints the sums of the recorded decisions and of the new ones.
func sides(r replay.Result) render.Table {
	t := render.LeftTable("", "BINDS", "UNBINDS", "UNBINDS/BIND", "REBINDS", "ROOM", "BOUND", "UNBOUND SHARE")
	for i, s := range []replay.Side{r.Then, r.Now} {
		t.Add([]string{"then", "now"}[i]+": "+render.Printable(s.Name), render.Integer(s.Binds), render.Integer(s.Unbinds), render.Show(s.UnbindsPerBind, render.Ratio),
			render.Integer(s.Rebinds), render.Integer(s.Room), render.Span(s.Bound), s.UnboundShare.String())
	}
	return t
}

// decided are the workloads with a decision; same counts the others.
func decided(r replay.Result) (t render.Table, same int) {
	t = render.LeftTable("WORKLOAD", "SERVICE", "BINDS", "UNBINDS", "BOUND", "→ BINDS", "UNBINDS", "BOUND")
	for _, wl := range r.Workloads {
		if wl.Then == wl.Now && wl.Then.Binds+wl.Then.Room == 0 {
			same++
			continue
		}
		t.Add(render.Name(wl.ID), render.Name(wl.Service), render.Integer(wl.Then.Binds), render.Integer(wl.Then.Unbinds), render.Span(wl.Then.Bound),
			"→ "+render.Integer(wl.Now.Binds), render.Integer(wl.Now.Unbinds), render.Span(wl.Now.Bound))
	}
	return t, same
}

func printDifferences(w io.Writer, r replay.Result, all bool) {
	total := len(r.Differences) + r.MoreDifferences
	if total == 0 {
		fmt.Fprintln(w, "\nboth decide the same in every window")
		return
	}
	fmt.Fprintf(w, "\n%d decisions differ:\n", total)
	for i, d := range r.Differences {
		if i == firstDifferences && !all {
			break
		}
		fmt.Fprintf(w, "  %s, window %d, %s: then %s; now %s\n", d.At.Format(time.DateTime), d.Seq, render.Name(d.Workload), decisionText(d.Then), decisionText(d.Now))
	}
	if shown := min(total, firstDifferences); !all && total > shown {
		fmt.Fprintf(w, "  … %d more: --all, or -o json\n", total-shown)
	} else if r.MoreDifferences > 0 {
		fmt.Fprintf(w, "  … %d more, which are only counted\n", r.MoreDifferences)
	}
}

func decisionText(d *replay.Decision) string {
	if d == nil {
		return "nothing"
	}
	text := string(d.Kind)
	if d.Room {
		text += " (room)"
	}
	if !d.Nodes.IsEmpty() {
		text += " to nodes " + d.Nodes.String()
	}
	return text + " by " + render.Printable(d.Reason.Rule)
}
