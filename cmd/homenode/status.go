// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/report"
	"homenode/internal/schema"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func statusCommand() *cobra.Command {
	var state, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "What the agent saw in its last window, and what it did",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := statusOf(state, output)
			if err != nil {
				return err
			}
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(s)
			}
			return printStatus(cmd.OutOrStdout(), s)
		},
	}
	cmd.Flags().StringVar(&state, "state", agent.DefaultStateDir, "the agent's state folder")
	outputFlag(cmd, &output)
	return cmd
}

func statusOf(state, output string) (agent.Status, error) {
	if err := checkOutput(output); err != nil {
		return agent.Status{}, err
	}
	s, err := agent.ReadStatus(state)
	if errors.Is(err, agent.ErrNoStatus) {
		err = badInput(err)
	}
	return s, precondition(err)
}

func printStatus(w io.Writer, s agent.Status) error {
	dry := ""
	if s.DryRun {
		dry = ", dry run"
	}
	fmt.Fprintf(w, "agent %d%s: %d rounds every %v, %.1f s CPU; last window %v ago; events: %s\n", s.PID, dry, s.Rounds, s.Period,
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

func whyCommand() *cobra.Command {
	var state, output, log string
	cmd := &cobra.Command{
		Use:   "why WORKLOAD",
		Short: "Why a workload was bound, unbound or left alone",
		Long: "Shows the reason of the last window and the decisions before it: from the agent's status, and older ones\n" +
			"from its decision log. Where no agent runs, from the log alone.",
		Args: exactly(1, "a workload: its cgroup path, the path's last part, or its service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := statusOf(state, output)
			if errors.Is(err, agent.ErrNoStatus) {
				return whyFromLog(cmd.OutOrStdout(), logOf(state, log, s), args[0], output, err)
			}
			if err != nil {
				return err
			}
			ws, err := s.Find(args[0])
			if err != nil {
				return badInput(err)
			}
			earlier := earlierOf(cmd.ErrOrStderr(), logOf(state, log, s), ws)
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(whyJSON{ws, earlier})
			}
			ws.Past = append(earlier, ws.Past...)
			printWhy(cmd.OutOrStdout(), ws)
			return nil
		},
	}
	cmd.Flags().StringVar(&state, "state", agent.DefaultStateDir, "the agent's state folder")
	cmd.Flags().StringVar(&log, "decisions", "", "the decision log (default: the agent's)")
	outputFlag(cmd, &output)
	return cmd
}

func printWhy(w io.Writer, ws agent.WorkloadStatus) {
	fmt.Fprintf(w, "%s: %s\n", orNone(ws.ID), report.Printable(ws.Reason.Summary))
	for _, n := range ws.Reason.Numbers {
		fmt.Fprintln(w, "    "+n.String())
	}
	printLocal(w, ws.Features)
	if ws.Stage != "" {
		fmt.Fprintf(w, "  binding to nodes %s: stage %s", ws.Nodes, ws.Stage)
		if ws.Note != "" {
			fmt.Fprintf(w, " (%s)", report.Printable(ws.Note))
		}
		fmt.Fprintln(w)
	}
	printPays(w, ws)
	for _, d := range ws.Past {
		printDecision(w, d)
	}
}

func printDecision(w io.Writer, d agent.Decision) {
	fmt.Fprintf(w, "\n%s, window %d: %s\n  %s\n", d.At.Format(time.DateTime), d.Seq, report.Printable(fmt.Sprint(d.Action)), report.Printable(d.Reason.Summary))
	for _, n := range d.Reason.Numbers {
		fmt.Fprintln(w, "    "+n.String())
	}
	if len(d.Reason.Alternatives) > 0 {
		fmt.Fprintln(w, "  considered (* chosen):")
	}
	for _, a := range d.Reason.Alternatives {
		fmt.Fprintln(w, "    "+report.Printable(a.String()))
	}
}

// printLocal is the local access ratio with its source, where that is an estimate:
// what is decided by it rests on that.
func printLocal(w io.Writer, f window.Features) {
	if off := f.LocalAccessError.Or(0); off > 0 {
		fmt.Fprintf(w, "  local access ratio: %s; ± %v: %s\n", report.Printable(f.LocalAccessRatio.String()), off, window.ErrorBasis)
	}
}

// printPays is the sum by which what is elsewhere is moved, or not, and where each
// of its figures comes from.
func printPays(w io.Writer, ws agent.WorkloadStatus) {
	v, ok := ws.Pays.Get()
	if !ok {
		return
	}
	doing := "not moving"
	if ws.Moving {
		doing = "moving"
	}
	fmt.Fprintf(w, "  %s: %s\n", report.Printable(v.Sum), doing)
	for _, n := range v.Numbers {
		from := ""
		if n.Value.Known() { // of an unknown one it says so already
			from = " from " + n.Value.From
		}
		fmt.Fprintln(w, "    "+report.Printable(n.String()+from))
	}
}
