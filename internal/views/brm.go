// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	stdmaps "maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/pinner"
	"homenode/internal/machine"
	"homenode/internal/policy/brm"
	"homenode/internal/render/words"
	"homenode/internal/report"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

// BRM prints what a run of brm came to: penalties by process, and why each was moved.
func BRM(w io.Writer, s pinner.Summary, m machine.Machine, output string) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(s)
	}
	done := "moves"
	if s.DryRun {
		done = "moves would have been made"
	}
	fmt.Fprintf(w, "%d windows of %v in %v (%d late), events: %s; %d %s, %d refused, %d left to who pinned them since; %d affinities put back\n",
		s.Windows, s.Period, s.Ran.Round(time.Millisecond), s.Late, orNone(s.Events), s.Moves, done, s.Refused, s.Drifted, s.PutBack)
	if err := tenths(w, s, m); err != nil {
		return err
	}
	fmt.Fprintf(w, "PENALTY: cycles with an uncore request outstanding, per request. %s\n", markLegend)
	cost := "unknown"
	if c, ok := s.ReadCost.Get(); ok {
		cost = fmt.Sprintf("%.1f%s us", float64(c)/1e3, markOf(s.ReadCost.How))
	}
	_, err := fmt.Fprintf(w, "Cost: %.2f s of CPU, %s a thread and window to read.\n", s.CPUSeconds, cost)
	for _, p := range s.Processes {
		fmt.Fprintln(w, report.Printable(whyBRM(p)))
	}
	for _, p := range s.Problems {
		fmt.Fprintln(w, "problem: "+report.Printable(p))
	}
	if s.MoreProblems > 0 {
		fmt.Fprintf(w, "problem: and %d more\n", s.MoreProblems)
	}
	return err
}

// tenths is the table of the first and the last tenth of the windows.
func tenths(w io.Writer, s pinner.Summary, m machine.Machine) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprint(t, "PROCESS\tTHREADS\tMOVES\tTENTH")
	for _, n := range m.Nodes {
		fmt.Fprintf(t, "\tCPU NODE %d", n.ID)
	}
	fmt.Fprintln(t, "\tPENALTY\tLOCAL")
	for _, p := range s.Processes {
		printTenth(t, p, "first", p.First)
		printTenth(t, p, "last", p.Last)
	}
	return t.Flush()
}

func printTenth(w io.Writer, p pinner.Process, which string, part pinner.Part) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%s", orNone(p.ID), p.Threads, p.Moves, which)
	for _, v := range part.CPUByNode {
		fmt.Fprintf(w, "\t%s", marked(v, "%.2f"))
	}
	local := unit.Value[float64]{How: part.LocalAccessRatio.How}
	if v, ok := part.LocalAccessRatio.Get(); ok {
		local.V = unit.Some(float64(v))
	}
	fmt.Fprintf(w, "\t%s\t%s\n", marked(part.Penalty, "%.1f"), marked(local, "%.3f"))
}

// marked is a figure and how it is known.
func marked(v unit.Value[float64], format string) string {
	if !v.Known() {
		return number(v, format)
	}
	return number(v, format) + markOf(v.How)
}

const markLegend = "~ is estimated, ^ modelled; the others are measured."

func markOf(how unit.Source) string {
	switch how {
	case unit.HowEstimated:
		return "~"
	case unit.HowModelled:
		return "^"
	}
	return ""
}

// whyBRM says what is held of a process, why, and of how many threads that is.
func whyBRM(p pinner.Process) string {
	text := fmt.Sprintf("%s: %s. In the end %s: %s%s.", p.ID, standing(p), p.Reason.Rule, words.Sentence(p.Reason), figuresOf(p.Reason.Numbers))
	if p.Reason.Rule == "" {
		text = fmt.Sprintf("%s: %s.", p.ID, standing(p))
	}
	var rules []string
	for _, rule := range slices.Sorted(stdmaps.Keys(p.Rules)) {
		rules = append(rules, fmt.Sprintf("%s %d", rule, p.Rules[rule]))
	}
	if len(rules) > 1 {
		text += " Windows by rule: " + strings.Join(rules, ", ") + "."
	}
	if p.Pinned > 0 {
		text += fmt.Sprintf(" %d of %d threads are pinned by somebody else.", p.Pinned, p.Threads)
	}
	if p.Uncounted > 0 {
		text += fmt.Sprintf(" %d of %d threads are not counted.", p.Uncounted, p.Threads)
	}
	return text
}

// standing is whether it is held to be sensitive, and who says so.
func standing(p pinner.Process) string {
	tag, tagged := p.Sensitive.Get()
	switch {
	case tagged && tag:
		return "tagged as sensitive"
	case tagged:
		return "watched, and not moved"
	case p.Verdict == string(brm.Sensitive):
		return "found to be sensitive"
	case p.Verdict == string(brm.Insensitive):
		return "found not to be sensitive"
	}
	return "whether it is sensitive was not found out"
}

// figuresOf are the numbers that are known, with their limits.
func figuresOf(all []action.Number) string {
	var known []string
	for _, n := range all {
		if !n.Value.Known() {
			continue
		}
		text := n.Name + " " + marked(n.Value, "%.3g")
		if limit, ok := n.Limit.Get(); ok {
			text += fmt.Sprintf(" (limit %.3g)", limit)
		}
		known = append(known, text)
	}
	if len(known) == 0 {
		return ""
	}
	return "; " + strings.Join(known, ", ")
}
