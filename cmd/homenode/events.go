// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
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
		Short: "Show which PMU events count which field on this CPU, and which of them this host opens",
		Long: "Shows the event table of this machine's CPUs: for each field the event that is counted, other\n" +
			"ways to count it, or why this CPU cannot count it. It opens each event on one CPU as the current\n" +
			"user, closes it at once, and says which the kernel refuses, and why. Events that open alone may\n" +
			"not all fit the PMU's counters together.\n\n" +
			"--cpu and --root show a table only, and open nothing. The tables:\n" + wrapped(event.Names()) + ".",
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
	cli.Writes(cmd, eventList{})
	return cmd
}

// wrapped joins names by commas, on lines that fit a terminal.
func wrapped(names []string) string {
	const width = 91
	return strings.Join(render.Wrap("", "", strings.Join(names, ", "), width), "\n")
}

// eventList is what -o json prints.
type eventList struct {
	Schema    int            `json:"schema"` // 1
	Table     string         `json:"table"`
	Title     string         `json:"title"`
	Machine   string         `json:"machine,omitempty"` // the name that its CPUs report; "" for --cpu
	How       unit.Source    `json:"how"`               // how its counts are known
	Note      string         `json:"note,omitempty"`
	LineBytes int            `json:"line_bytes"`
	Counters  *int           `json:"counters"` // general-purpose counters of a CPU; null = unknown
	CPUs      []string       `json:"cpus"`
	TriedOn   *int           `json:"tried_on_cpu"` // where the events were opened; null = nothing was tried
	Sources   []event.Source `json:"sources"`
	Fields    []eventField   `json:"fields"`

	Controllers []eventControllers `json:"controllers,omitempty"` // the first whose PMU is there; none: what sysfs names
}

// eventControllers is how the PMUs of the memory controllers count, as 'perf stat -e'
// takes it, without their numbers.
type eventControllers struct {
	PMU    string   `json:"pmu"`
	Reads  []string `json:"reads,omitempty"`
	Writes []string `json:"writes,omitempty"`
	All    []string `json:"all,omitempty"` // reads and writes together
	Note   string   `json:"note,omitempty"`
}

type eventField struct {
	Field  event.Field  `json:"field"`
	Why    string       `json:"why,omitempty"` // why it cannot be counted
	Counts []eventCount `json:"counts"`        // the first is used

	Sampled *opens `json:"sampled,omitempty"` // the answer of a PMU that samples it instead
}

type eventCount struct {
	Events []eventEvent `json:"sum"`
	Leader *eventEvent  `json:"leader,omitempty"` // of the group that each event needs
	Near   event.Near   `json:"near,omitempty"`   // what local means where a package has several nodes
	Note   string       `json:"note,omitempty"`
	opens
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
	list := listEvents(event.For(cpu), render.Printable(cpu.Describe()))
	if filepath.Clean(root) == "/" {
		liveTrial().run(&list, event.For(cpu))
	}
	return list, nil
}

func listEvents(t *event.Table, machine string) eventList {
	list := eventList{Schema: 1, Table: t.Name, Title: t.Title, Machine: machine, How: t.How, Note: t.Note, LineBytes: t.LineBytes, CPUs: []string{}, Sources: t.Sources}
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
	for _, c := range t.Controllers {
		list.Controllers = append(list.Controllers, eventControllers{c.PMU, controllerTerms(c.Reads), controllerTerms(c.Writes), controllerTerms(c.All), c.Note})
	}
	return list
}

func controllerTerms(events []event.ControllerEvent) (terms []string) {
	for _, e := range events {
		terms = append(terms, cmp.Or(e.Terms, e.Name))
	}
	return terms
}

func listCount(c event.Count) eventCount {
	out := eventCount{Near: c.Near, Note: c.Note}
	for _, e := range c.Events {
		out.Events = append(out.Events, listEvent(e))
	}
	if c.Leader != nil {
		leader := listEvent(*c.Leader)
		out.Leader = &leader
	}
	return out
}

func listEvent(e event.Event) eventEvent {
	one := eventEvent{Name: e.Name(), Perf: e.Kernel, Type: e.Type, Config: fmt.Sprintf("%#x", e.Config)}
	if e.Kernel == "" {
		one.Perf, one.Code = event.PerfTerm(e.Config, e.Code.Config1), &e.Code
	}
	return one
}

func (l eventList) print(w io.Writer, output string) error {
	if output == "json" {
		enc := schema.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(l)
	}
	return l.text(w)
}

func (l eventList) text(w io.Writer) error {
	p := cli.Screen().Terminal()
	facts := []render.Fact{{Name: "table", Text: l.Table + ": " + l.Title}}
	if l.Machine != "" {
		facts = append(facts, render.Fact{Name: "machine", Text: l.Machine})
	}
	for _, c := range l.CPUs {
		facts = append(facts, render.Fact{Name: "for", Text: c})
	}
	for _, s := range l.Sources {
		facts = append(facts, render.Fact{Name: "source", Text: s.Title + ", " + s.Version})
	}
	counts := l.How.String() + strings.Repeat(", "+l.Note, min(1, len(l.Note)))
	facts = append(facts, render.Fact{Name: "counts", Text: counts})
	if l.TriedOn != nil {
		facts = append(facts, render.Fact{Name: "here", Text: l.verdict()})
	}
	p.Facts(facts, len("machine"))
	p.Line("")
	p.Table(l.table())
	for _, c := range l.Controllers {
		c.print(&p)
	}
	l.printRefused(&p)
	return p.Flush(w, "events")
}

// table has the ways to count each field, the best one first. HERE is there if the events
// were tried.
func (l eventList) table() render.Table {
	t := render.Table{Margin: 2, Columns: []render.Column{{Head: "FIELD", Left: true}, {Head: "HERE", Left: true}, {Head: "CODE", Left: true}, {Head: "EVENT", Left: true}}}
	add := t.Add
	if l.TriedOn == nil {
		t.Columns = slices.Delete(t.Columns, 1, 2)
		add = func(cells ...string) { t.Add(slices.Delete(cells, 1, 2)...) }
	}
	for _, f := range l.Fields {
		if f.Why != "" {
			add(f.Field.String(), f.here(), render.Unknown, f.Why)
		}
		for i, c := range f.Counts {
			name := f.Field.String()
			if i > 0 {
				name = "  or"
			}
			add(name, c.cell(), c.code(), c.names())
			if c.Note != "" {
				add("", "", "", "("+c.Note+")")
			}
		}
	}
	return t
}

// here is the cell of a field that the table cannot count.
func (f eventField) here() string {
	if f.Sampled == nil {
		return "no event"
	}
	return f.Sampled.cell()
}

func (c eventControllers) print(p *render.Terminal) {
	for i, terms := range [][]string{c.Reads, c.Writes, c.All} {
		if len(terms) > 0 {
			p.Hanging([]string{"  controller reads   ", "  controller writes  ", "  controller lines   "}[i], c.PMU+"/"+strings.Join(terms, "/ + "+c.PMU+"/")+"/")
		}
	}
	if c.Note != "" {
		p.Wrapped("  ", "("+c.Note+")")
	}
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
