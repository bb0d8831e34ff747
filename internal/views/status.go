// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/render/words"
	"homenode/internal/report"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Status prints the agent's last window and what it did with each workload.
func Status(w io.Writer, s agent.Status) error {
	dry := ""
	if s.DryRun {
		dry = ", dry run"
	}
	fmt.Fprintf(w, "agent %d%s: %d rounds every %s, %.1f s CPU; last window %v ago; events: %s\n", s.PID, dry, s.Rounds, period(s),
		s.CPUSeconds, max(0, time.Since(s.Window.At)).Round(time.Second), orNone(s.EventTable))
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tCPUS\tBUSY\tMEMORY\tFREE")
	for _, n := range s.Window.Nodes {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", n.ID, n.CPUs, number(n.CPUBusy, "%.2f")+markOf(n.CPUBusy.How), text(n.Memory)+markOf(n.Memory.How), text(n.Free)+markOf(n.Free.How))
	}
	fmt.Fprintln(t, "\nWORKLOAD\tSERVICE\tCPU\tLOCAL\tKNOWN\tPAGES BY NODE\tBOUND TO\tSTAGE\tWHY")
	for i, ws := range s.Workloads {
		wl := s.Window.Workloads[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orNone(ws.ID), orNone(ws.Service), number(wl.CPU, "%.2f")+markOf(wl.CPU.How),
			text(ws.Features.LocalAccessRatio), knownHow(ws.Features), pages(wl), orNone(ws.Nodes.String()),
			orNone(string(ws.Stage)), ws.Reason.Rule)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "KNOWN: how the local share is. ±: "+window.ErrorBasis+"; ±?: not known. Others: "+markLegend)
	for _, p := range s.Window.Problems {
		fmt.Fprintln(w, "could not read: "+report.Printable(p))
	}
	return nil
}

// latePart is by how much a window may be longer than the period before that is said: moves
// make it longer for as long as they take.
const latePart = 1.2

// period is what is asked for, and what is held if that is another.
func period(s agent.Status) string {
	text := s.Period.String()
	if held := s.Window.Length; s.Period > 0 && float64(held) > latePart*float64(s.Period) {
		text += fmt.Sprintf(" asked for, every %v held", held.Round(10*time.Millisecond))
	}
	return text
}

// knownHow is how the local access ratio is known, and how far an estimate may be off.
func knownHow(f window.Features) string {
	return f.LocalAccessRatio.How.String() + f.Within(" ±")
}

// orNone is a name from outside, fit for a terminal.
func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return report.Printable(s)
}

// text prints a value, or that it is unknown.
func text[T any](v unit.Value[T]) string { return v.V.String() }

func number(v unit.Value[float64], format string) string {
	f, ok := v.Get()
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf(format, f)
}

func pages(wl window.Workload) string {
	by, ok := wl.PagesByNode()
	if !ok {
		return "unknown"
	}
	parts := make([]string, len(by))
	for i, b := range by {
		parts[i] = fmt.Sprintf("%d", int64(b)>>20)
	}
	how := unit.HowMeasured
	for i := range wl.AnonByNode {
		how = unit.Weakest(how, wl.AnonByNode[i].How, wl.FileByNode[i].How)
	}
	return strings.Join(parts, "/") + " MiB" + markOf(how)
}

// Why prints the reason for a workload, with its numbers and earlier decisions.
func Why(w io.Writer, ws agent.WorkloadStatus) {
	fmt.Fprintf(w, "%s: %s\n", orNone(ws.ID), report.Printable(words.Sentence(ws.Reason)))
	for _, n := range ws.Reason.Numbers {
		fmt.Fprintln(w, "    "+words.Number(n)+decides(n))
	}
	printLocal(w, ws.Features)
	if ws.Stage != "" {
		fmt.Fprintf(w, "  binding to nodes %s: stage %s", ws.Nodes, ws.Stage)
		if ws.Note.Rule != "" {
			fmt.Fprintf(w, " (%s)", report.Printable(words.Sentence(ws.Note)))
		}
		fmt.Fprintln(w)
	}
	printPays(w, ws)
	printWay(w, ws)
	for _, d := range ws.Past {
		Decision(w, d)
	}
}

// Decision prints one, with its numbers and what else was considered.
func Decision(w io.Writer, d agent.Decision) {
	fmt.Fprintf(w, "\n%s, window %d: %s\n  %s\n", d.At.Format(time.DateTime), d.Seq, report.Printable(fmt.Sprint(d.Action)), report.Printable(words.Sentence(d.Reason)))
	for _, n := range d.Reason.Numbers {
		fmt.Fprintln(w, "    "+words.Number(n))
	}
	if len(d.Reason.Alternatives) > 0 {
		fmt.Fprintln(w, "  considered (* chosen):")
	}
	for _, a := range d.Reason.Alternatives {
		fmt.Fprintln(w, "    "+report.Printable(words.Alternative(a)))
	}
}

// printLocal is the local access ratio with its source, where that is an estimate:
// what is decided by it rests on that.
func printLocal(w io.Writer, f window.Features) {
	if off := f.LocalAccessError.Or(0); off > 0 {
		fmt.Fprintf(w, "  local access ratio: %s; ± %v: %s\n", report.Printable(f.LocalAccessRatio.String()), off, window.ErrorBasis)
	}
}

// printWay is what was expected of a binding while its memory follows, what it took, and
// the orders that were not taken.
func printWay(w io.Writer, ws agent.WorkloadStatus) {
	if ws.Way.Order == "" {
		return
	}
	why := ws.Way.Reason(ws.ID, ws.Nodes)
	fmt.Fprintf(w, "  way there: %s\n", report.Printable(words.Sentence(why)))
	for _, a := range why.Alternatives {
		if !a.Chosen {
			fmt.Fprintf(w, "    not %s: %s\n", report.Printable(a.Name), report.Printable(words.Figures(a)))
		}
	}
}

// printPays is the sum by which what is elsewhere is moved, or not, and where each
// of its figures comes from.
func printPays(w io.Writer, ws agent.WorkloadStatus) {
	v, ok := ws.Pays.Get()
	if !ok {
		return
	}
	doing := "moving"
	if !ws.Moving {
		why := ws.Note
		if why.Rule == "" {
			why = v.Short()
		}
		doing = "not moving: " + words.Sentence(why)
	}
	fmt.Fprintf(w, "  %s: %s\n", report.Printable(words.Sentence(v.Sum())), report.Printable(doing))
	for _, n := range v.Numbers {
		from := ""
		if n.Value.Known() { // of an unknown one it says so already
			from = " from " + n.Value.From
		}
		fmt.Fprintln(w, "    "+report.Printable(words.Number(n)+from)+decides(n))
	}
}

// decides marks the condition by which nothing was done: of several that must all hold,
// the one that does not.
func decides(n action.Number) string {
	if n.Decides {
		return "  <- decides"
	}
	return ""
}
