// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"homenode/internal/replay"
	"homenode/internal/report"
)

// firstDifferences are shown without --all.
const firstDifferences = 20

// Replay prints both sides of a recording, and the first decisions that differ, or all.
func Replay(w io.Writer, r replay.Result, all bool) error {
	fmt.Fprintf(w, "%d windows, %s to %s, %v in all\n\n", r.Windows, r.From.Format(time.DateTime), r.To.Format(time.DateTime), r.Length.Round(time.Second))
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "\tBINDS\tUNBINDS\tUNBINDS/BIND\tREBINDS\tROOM\tBOUND\tUNBOUND SHARE")
	for i, s := range []replay.Side{r.Then, r.Now} {
		perBind := "unknown"
		if v, ok := s.UnbindsPerBind.Get(); ok {
			perBind = fmt.Sprintf("%.2f", v)
		}
		fmt.Fprintf(t, "%s: %s\t%d\t%d\t%s\t%d\t%d\t%v\t%v\n", []string{"then", "now"}[i], report.Printable(s.Name), s.Binds, s.Unbinds, perBind, s.Rebinds, s.Room, s.Bound.Round(time.Second), s.UnboundShare)
	}
	fmt.Fprintln(t, "\nWORKLOAD\tSERVICE\tBINDS\tUNBINDS\tBOUND\t→ BINDS\tUNBINDS\tBOUND")
	same := 0
	for _, wl := range r.Workloads {
		if wl.Then == wl.Now && wl.Then.Binds+wl.Then.Room == 0 {
			same++
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%v\t→ %d\t%d\t%v\n", orNone(wl.ID), orNone(wl.Service), wl.Then.Binds, wl.Then.Unbinds, wl.Then.Bound.Round(time.Second),
			wl.Now.Binds, wl.Now.Unbinds, wl.Now.Bound.Round(time.Second))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if same > 0 {
		fmt.Fprintf(w, "and %d workloads on which neither decided anything\n", same)
	}
	printDifferences(w, r, all)
	fmt.Fprintln(w)
	if v, ok := r.AsRecorded.Get(); ok {
		fmt.Fprintf(w, "as recorded: then has bound what the recorded agent had in %v of approved workloads' windows\n", v)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "note: "+report.Printable(n))
	}
	return nil
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
		fmt.Fprintf(w, "  %s, window %d, %s: then %s; now %s\n", d.At.Format(time.DateTime), d.Seq, orNone(d.Workload), decisionText(d.Then), decisionText(d.Now))
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
	return text + " by " + report.Printable(d.Reason.Rule)
}
