// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/event"
	"homenode/internal/exit"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/unit"
)

func eventsCommand() *cobra.Command {
	var name, root, output string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show which PMU events this CPU counts for which field, and what it cannot count",
		Long: "Shows the event table of this machine's CPUs: for each field the event that is counted, other\n" +
			"ways to count it, or why this CPU cannot count it. --cpu shows another table:\n" + wrapped(event.Names()) + ".",
		Example: "  homenode events\n  homenode events --cpu amd-zen4\n  homenode events -o json",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			list, err := eventsOf(name, root)
			if err != nil {
				return err
			}
			return list.print(cmd.OutOrStdout(), output)
		},
	}
	cmd.Flags().StringVar(&name, "cpu", "", "name of an event table, instead of this machine's")
	cmd.Flags().StringVar(&root, "root", "/", "recorded tree with proc/cpuinfo, instead of this machine")
	cli.OutputFlag(cmd, &output)
	return cmd
}

// wrapped joins names by commas, on lines that fit a terminal.
func wrapped(names []string) string {
	var b strings.Builder
	line := 0
	for i, n := range names {
		if line+len(n) > 90 {
			b.WriteString("\n")
			line = 0
		}
		b.WriteString(n)
		if i < len(names)-1 {
			b.WriteString(", ")
		}
		line += len(n) + 2
	}
	return b.String()
}

// eventList is what -o json prints.
type eventList struct {
	Table     string         `json:"table"`
	Title     string         `json:"title"`
	Machine   string         `json:"machine,omitempty"` // the name that its CPUs report; "" for --cpu
	How       unit.Source    `json:"how"`               // how its counts are known
	Note      string         `json:"note,omitempty"`
	LineBytes int            `json:"line_bytes"`
	Counters  *int           `json:"counters"` // general-purpose counters of a CPU; null = unknown
	CPUs      []string       `json:"cpus"`
	Sources   []event.Source `json:"sources"`
	Fields    []eventField   `json:"fields"`
}

type eventField struct {
	Field  event.Field  `json:"field"`
	Why    string       `json:"why,omitempty"` // why it cannot be counted
	Counts []eventCount `json:"counts"`        // the first is used
}

type eventCount struct {
	Events []eventEvent `json:"sum"`
	Note   string       `json:"note,omitempty"`
}

type eventEvent struct {
	Name   string      `json:"name"`
	Perf   string      `json:"perf"` // as 'perf stat -e' takes it
	Type   uint32      `json:"type"` // perf_event_attr.type
	Config string      `json:"config"`
	Code   *event.Code `json:"code,omitempty"` // the vendor's parts
}

func eventsOf(name, root string) (eventList, error) {
	if name != "" {
		t, ok := event.ByName(name)
		if !ok {
			return eventList{}, exit.BadInput(fmt.Errorf("--cpu is %q: want one of %s", name, strings.Join(event.Names(), ", ")))
		}
		return listEvents(t, ""), nil
	}
	cpu := perf.DetectCPU(unix.At(root))
	return listEvents(event.For(cpu), render.Printable(cpu.Describe())), nil
}

func listEvents(t *event.Table, machine string) eventList {
	list := eventList{Table: t.Name, Title: t.Title, Machine: machine, How: t.How, Note: t.Note, LineBytes: t.LineBytes, CPUs: []string{}, Sources: t.Sources}
	if t.Counters > 0 {
		list.Counters = &t.Counters
	}
	for _, m := range t.CPUs {
		list.CPUs = append(list.CPUs, m.String())
	}
	for _, r := range t.Readings {
		f := eventField{Field: r.Field, Why: r.Why, Counts: []eventCount{}}
		for _, c := range r.Counts {
			f.Counts = append(f.Counts, listCount(c))
		}
		list.Fields = append(list.Fields, f)
	}
	return list
}

func listCount(c event.Count) eventCount {
	out := eventCount{Note: c.Note}
	for _, e := range c.Events {
		one := eventEvent{Name: e.Name(), Perf: e.Kernel, Type: e.Type, Config: fmt.Sprintf("%#x", e.Config)}
		if e.Kernel == "" {
			one.Perf, one.Code = fmt.Sprintf("r%04x", e.Config), &e.Code
		}
		out.Events = append(out.Events, one)
	}
	return out
}

func (l eventList) print(w io.Writer, output string) error {
	if output == "json" {
		enc := schema.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(l)
	}
	_, err := io.WriteString(w, l.text())
	return err
}

func (l eventList) text() string {
	var b strings.Builder
	head := func(what, text string) { fmt.Fprintf(&b, "%-9s %s\n", what, text) }
	head("table", l.Table+": "+l.Title)
	if l.Machine != "" {
		head("machine", l.Machine)
	}
	for _, c := range l.CPUs {
		head("for", c)
	}
	for _, s := range l.Sources {
		head("source", s.Title+", "+s.Version)
	}
	head("counts", l.How.String()+strings.Repeat(", "+l.Note, min(1, len(l.Note))))
	fmt.Fprintf(&b, "\n%-18s  %-28s  %s\n", "FIELD", "CODE", "EVENT")
	for _, f := range l.Fields {
		if f.Why != "" {
			fmt.Fprintf(&b, "%-18s  %-28s  %s\n", f.Field, "unknown", f.Why)
		}
		for i, c := range f.Counts {
			name := f.Field.String()
			if i > 0 {
				name = "  or"
			}
			fmt.Fprintf(&b, "%-18s  %-28s  %s\n", name, c.code(), c.names())
			if c.Note != "" {
				fmt.Fprintf(&b, "%-18s  %-28s  (%s)\n", "", "", c.Note)
			}
		}
	}
	return b.String()
}

func (c eventCount) code() string {
	parts := make([]string, len(c.Events))
	for i, e := range c.Events {
		parts[i] = e.Perf
	}
	return strings.Join(parts, " + ")
}

func (c eventCount) names() string {
	parts := make([]string, len(c.Events))
	for i, e := range c.Events {
		parts[i] = e.Name
	}
	return strings.Join(parts, " + ")
}
