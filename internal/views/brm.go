// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	stdmaps "maps"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/action"
	"homenode/internal/agent/threadagent"
	"homenode/internal/machine"
	"homenode/internal/policy/brm"
	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/render/words"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

// BRM prints the result of a run of brm: the penalties by process, and why each was
// moved.
func BRM(w io.Writer, s threadagent.Summary, m machine.Machine, output string) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(s)
	}
	done := "moves"
	if s.DryRun {
		done = "moves would have been made"
	}
	fmt.Fprintf(w, "%d windows of %s in %s (%d late), events: %s; %d %s, %d refused, %d left alone because another process has pinned them since; %d affinities put back\n",
		s.Windows, render.Span(s.Period), render.Span(s.Ran), s.Late, render.Name(s.Events), s.Moves, done, s.Refused, s.Drifted, s.PutBack)
	t := terminal()
	t.Table(tenths(s, m))
	if err := t.Flush(w, "penalties"); err != nil {
		return err
	}
	fmt.Fprintf(w, "PENALTY: cycles with an uncore request outstanding, per request. %s\n", render.MarkLegend)
	cost := render.Show(s.ReadCost.V, render.Span) + render.Mark(s.ReadCost.How)
	_, err := fmt.Fprintf(w, "Cost: %s of CPU, %s per thread and window to read.\n", render.Seconds(s.CPUSeconds), cost)
	for _, p := range s.Processes {
		fmt.Fprintln(w, render.Printable(whyBRM(p)))
	}
	for _, p := range s.Problems {
		fmt.Fprintln(w, "problem: "+render.Printable(p))
	}
	if s.MoreProblems > 0 {
		fmt.Fprintf(w, "problem: and %d more\n", s.MoreProblems)
	}
	return err
}

// tenths is the table of the first and the last tenth of the windows.
func tenths(s threadagent.Summary, m machine.Machine) render.Table {
	heads := []string{"PROCESS", "THREADS", "MOVES", "TENTH"}
	for _, n := range m.Nodes {
		heads = append(heads, fmt.Sprintf("CPU NODE %d", n.ID))
	}
	t := render.LeftTable(append(heads, "PENALTY", field.LocalAccess.Head)...)
	for _, p := range s.Processes {
		t.Add(tenth(p, "first", p.First)...)
		t.Add(tenth(p, "last", p.Last)...)
	}
	return t
}

func tenth(p threadagent.Process, which string, part threadagent.Part) []string {
	row := []string{render.Name(p.ID), strconv.Itoa(p.Threads), strconv.Itoa(p.Moves), which}
	for _, v := range part.CPUByNode {
		row = append(row, marked(v, field.CPUs))
	}
	local := unit.Value[float64]{How: part.LocalAccessRatio.How}
	if v, ok := part.LocalAccessRatio.Get(); ok {
		local.V = unit.Some(float64(v))
	}
	return append(row, marked(part.Penalty, field.Count), marked(local, field.LocalAccess.Unit))
}

// marked is a figure and how it is known.
func marked(v unit.Value[float64], of field.Unit) string {
	return render.Show(v.V, of.Print) + render.Mark(v.How)
}

// whyBRM says what is known of a process, why, and for how many of its threads.
func whyBRM(p threadagent.Process) string {
	text := fmt.Sprintf("%s: %s. At the end %s: %s%s.", p.ID, standing(p), p.Reason.Rule, words.Sentence(p.Reason), figuresOf(p.Reason.Numbers))
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
		text += fmt.Sprintf(" %d of %d threads are pinned by another process.", p.Pinned, p.Threads)
	}
	if p.Uncounted > 0 {
		text += fmt.Sprintf(" %d of %d threads are not counted.", p.Uncounted, p.Threads)
	}
	return text
}

// standing says whether the process is taken as sensitive, and on whose word.
func standing(p threadagent.Process) string {
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
	return "sensitivity not found out"
}

// figuresOf are the known numbers, with their limits.
func figuresOf(all []action.Number) string {
	var known []string
	for _, n := range all {
		if !n.Value.Known() {
			continue
		}
		text := n.Name + " " + render.Show(n.Value.V, render.Precise) + render.Mark(n.Value.How)
		if limit, ok := n.Limit.Get(); ok {
			text += " (limit " + render.Precise(limit) + ")"
		}
		known = append(known, text)
	}
	if len(known) == 0 {
		return ""
	}
	return "; " + strings.Join(known, ", ")
}
