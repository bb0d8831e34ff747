// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/agent/outbox"
	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/render/words"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Status prints the agent's last window, and what the agent did with each
// workload.
func Status(w io.Writer, s agent.Status, on render.TextOptions) error {
	p := on.Terminal()
	dry := ""
	switch {
	case s.DryRun:
		dry = ", dry run: it changes nothing"
	case s.Mode == agent.ModeObserve:
		dry = ", observes only"
	}
	p.Wrapped("", fmt.Sprintf("agent %d%s: %d rounds every %s, %s CPU; last window %s ago; events: %s", s.PID, dry, s.Rounds, period(s),
		render.Seconds(s.CPUSeconds), render.Span(max(0, time.Since(s.Window.At)).Round(time.Second)), render.Name(s.EventTable)))
	if c := s.Counting; c != nil && !c.Counts {
		p.Wrapped("", "estimates only: "+render.Printable(c.Why)+". What would change it: "+render.Printable(c.Remedy)+".")
	}
	p.Table(nodeTable(s.Window))
	p.Line("")
	if len(s.Workloads) == 0 {
		p.Wrapped("", "no workload is watched: no cgroup with processes matches 'cgroups' of the configuration ('homenode agent --check' says which patterns match)")
	} else {
		p.Table(workloadTable(s))
		p.Wrapped("", "KNOWN: how the local share is known. ±: "+window.ErrorBasis+"; ±?: unknown error. Others: "+render.MarkLegend)
	}
	for _, e := range s.Excluded {
		p.Wrapped("", "excluded: "+render.Name(e.Workload)+" is not bound until "+e.Until.Format(time.DateTime))
	}
	for _, line := range hubLines(s.Hub) {
		p.Wrapped("", line)
	}
	for _, text := range s.Window.Problems {
		p.Wrapped("", "could not read: "+render.Printable(text))
	}
	return p.Flush(w, "status")
}

// hubLines say what reached the hub, what did not, and why.
func hubLines(h *outbox.Status) (lines []string) {
	if h == nil {
		return nil
	}
	if h.Rests != "" {
		lines = append(lines, "hub: this dry run sends nothing: "+render.Printable(h.Rests))
	}
	line := "hub " + render.Printable(h.Address) + ": nothing sent yet"
	if !h.LastSent.IsZero() {
		line = fmt.Sprintf("hub %s: %d batches sent, the last %s ago", render.Printable(h.Address), h.Sent, render.Span(max(0, time.Since(h.LastSent)).Round(time.Second)))
	}
	if h.Waiting > 0 {
		line += fmt.Sprintf("; %d wait (%v)", h.Waiting, unit.Bytes(h.WaitingBytes))
	}
	if h.Error != "" {
		line += ": " + render.Printable(h.Error)
	}
	lines = append(lines, line)
	if h.Disk != "" {
		lines = append(lines, "hub: what waits is in memory only: "+render.Printable(h.Disk))
	}
	for _, why := range slices.Sorted(maps.Keys(h.Dropped)) {
		lines = append(lines, fmt.Sprintf("hub: %d batches dropped (%s)", h.Dropped[why], why))
	}
	if h.RefusedWhy != "" {
		lines = append(lines, "hub: it refused the last of them: "+render.Printable(h.RefusedWhy))
	}
	if h.Orders != "" {
		lines = append(lines, fmt.Sprintf("hub: orders %s until %s", render.Printable(h.Orders), h.OrdersUntil.Format(time.DateTime)))
	}
	return lines
}

// terminal is for tables that are never cut: a line may be wider than the terminal.
func terminal() render.Terminal { return render.TextOptions{UTF8: true}.Terminal() }

func nodeTable(w window.Window) render.Table {
	figures := []field.Field[field.Node]{field.NodeBusy, field.NodeMemory, field.NodeFree}
	t := render.LeftTable("NODE", "CPUS", figures[0].Head, figures[1].Head, figures[2].Head)
	for i := range w.Nodes {
		n := field.Node{Node: &w.Nodes[i], Window: &w}
		row := []string{strconv.Itoa(n.ID), n.CPUs.String()}
		for _, f := range figures {
			row = append(row, f.Marked(n))
		}
		t.Add(row...)
	}
	return t
}

func workloadTable(s agent.Status) render.Table {
	named := slices.ContainsFunc(s.Workloads, func(ws agent.WorkloadStatus) bool { return ws.Labels.Container != "" })
	heads := []string{"WORKLOAD", "SERVICE", "NAME", field.CPU.Head, field.LocalAccess.Head, "KNOWN", "PAGES BY NODE", "BOUND TO", "STAGE", "WHY"}
	keep := func(row []string) []string {
		if named {
			return row
		}
		return slices.Delete(row, 2, 3) // a unit's name is in its path already
	}
	t := render.LeftTable(keep(heads)...)
	for i := range s.Workloads {
		ws := &s.Workloads[i]
		wl := field.Workload{Workload: &s.Window.Workloads[i], Features: &ws.Features}
		t.Add(keep([]string{
			render.Name(ws.ID), render.Name(ws.Service), render.Name(ws.Labels.String()), field.CPU.Marked(wl), field.LocalAccess.Text(wl), knownHow(ws.Features),
			pages(*wl.Workload), render.Name(ws.Nodes.String()), render.Name(string(ws.Stage)), ws.Reason.Rule,
		})...)
	}
	return t
}

// latePart is how much longer than the period a window may be before it is reported: moves
// make a window longer while they take place.
const latePart = 1.2

// period is the configured period, and the real one if it differs.
func period(s agent.Status) string {
	text := render.Span(s.Period)
	if held := s.Window.Length; s.Period > 0 && float64(held) > latePart*float64(s.Period) {
		text += fmt.Sprintf(" asked for, every %s held", render.Span(held))
	}
	return text
}

// knownHow says how the local access ratio is known, and how far off an estimate may
// be.
func knownHow(f window.Features) string {
	return f.LocalAccessRatio.How.String() + f.Within(" ±")
}

func pages(wl window.Workload) string {
	by, ok := wl.PagesByNode()
	if !ok {
		return render.Unknown
	}
	how := unit.HowMeasured
	for i := range wl.AnonByNode {
		how = unit.Weakest(how, wl.AnonByNode[i].How, wl.FileByNode[i].How)
	}
	return strings.Join(render.Each(by, unit.Bytes.String), "/") + render.Mark(how)
}

// Why prints the reason for a workload, with its numbers and earlier decisions.
func Why(w io.Writer, ws agent.WorkloadStatus) {
	fmt.Fprintf(w, "%s: %s\n", render.Name(ws.ID), render.Printable(words.Sentence(ws.Reason)))
	for _, n := range ws.Reason.Numbers {
		fmt.Fprintln(w, "    "+words.Number(n)+decides(n))
	}
	printLabels(w, ws.Labels)
	printLocal(w, ws.Features)
	if ws.Stage != "" {
		fmt.Fprintf(w, "  binding to nodes %s: stage %s", ws.Nodes, ws.Stage)
		if ws.Note.Rule != "" {
			fmt.Fprintf(w, " (%s)", render.Printable(words.Sentence(ws.Note)))
		}
		fmt.Fprintln(w)
	}
	printPays(w, ws)
	printWay(w, ws)
	for _, d := range ws.Past {
		Decision(w, d)
	}
}

// printLabels prints what the manager of its cgroup calls a workload.
func printLabels(w io.Writer, l window.Labels) {
	for _, x := range l.All() {
		fmt.Fprintf(w, "  %s %s\n", x.Name, render.Name(x.Value))
	}
}

// Decision prints one decision, with its numbers and alternatives.
func Decision(w io.Writer, d agent.Decision) {
	fmt.Fprintf(w, "\n%s, window %d: %s\n  %s\n", d.At.Format(time.DateTime), d.Seq, render.Printable(fmt.Sprint(d.Action)), render.Printable(words.Sentence(d.Reason)))
	for _, n := range d.Reason.Numbers {
		fmt.Fprintln(w, "    "+words.Number(n))
	}
	if len(d.Reason.Alternatives) > 0 {
		fmt.Fprintln(w, "  considered (* chosen):")
	}
	for _, a := range d.Reason.Alternatives {
		fmt.Fprintln(w, "    "+render.Printable(words.Alternative(a)))
	}
}

// printLocal prints the local access ratio with its source if it is an estimate:
// the decision rests on it.
func printLocal(w io.Writer, f window.Features) {
	if off := f.LocalAccessError.Or(0); off > 0 {
		fmt.Fprintf(w, "  local access ratio: %s; ± %v: %s\n", render.Printable(f.LocalAccessRatio.String()), off, window.ErrorBasis)
	}
}

// printWay prints what was expected of a binding while its memory follows, what it took,
// and the rejected orders.
func printWay(w io.Writer, ws agent.WorkloadStatus) {
	if ws.Way.Order == "" {
		return
	}
	why := ws.Way.Reason(ws.ID, ws.Nodes)
	fmt.Fprintf(w, "  way there: %s\n", render.Printable(words.Sentence(why)))
	for _, a := range why.Alternatives {
		if !a.Chosen {
			fmt.Fprintf(w, "    not %s: %s\n", render.Printable(a.Name), render.Printable(words.Figures(a)))
		}
	}
}

// printPays prints the sum that decides whether remote memory is moved, and the
// source of each figure in it.
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
	fmt.Fprintf(w, "  %s: %s\n", render.Printable(words.Sentence(v.Sum())), render.Printable(doing))
	for _, n := range v.Numbers {
		from := ""
		if n.Value.Known() { // an unknown one has its reason already
			from = " from " + n.Value.From
		}
		fmt.Fprintln(w, "    "+render.Printable(words.Number(n)+from)+decides(n))
	}
}

// decides marks the condition for which nothing was done: of several that must all
// hold, the one that does not.
func decides(n action.Number) string {
	if n.Decides {
		return "  <- decides"
	}
	return ""
}
