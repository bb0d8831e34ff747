// SPDX-License-Identifier: Apache-2.0

package views

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/source"
)

// events is a list with the methods that print it.
type events struct{ source.Events }

// Events prints the events of a CPU, and what this host answered.
func Events(w io.Writer, screen render.TextOptions, list source.Events) error {
	l, p := events{list}, screen.Terminal()
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
		printControllers(&p, c)
	}
	l.printRefused(&p)
	return p.Flush(w, "events")
}

// table has the ways to count each field, the best one first. HERE is there if the events
// were tried.
func (l events) table() render.Table {
	t := render.Table{Margin: 2, Columns: []render.Column{{Head: "FIELD", Left: true}, {Head: "HERE", Left: true}, {Head: "CODE", Left: true}, {Head: "EVENT", Left: true}}}
	add := t.Add
	if l.TriedOn == nil {
		t.Columns = slices.Delete(t.Columns, 1, 2)
		add = func(cells ...string) { t.Add(slices.Delete(cells, 1, 2)...) }
	}
	for _, f := range l.Fields {
		if f.Why != "" {
			add(f.Field.String(), hereOf(f), render.Unknown, f.Why)
		}
		for i, c := range f.Counts {
			name := f.Field.String()
			if i > 0 {
				name = "  or"
			}
			add(name, answered(c.EventAnswer), codeOf(c), namesOf(c))
			if c.Note != "" {
				add("", "", "", "("+c.Note+")")
			}
		}
	}
	return t
}

// hereOf is the cell of a field that the table cannot count.
func hereOf(f source.EventField) string {
	if f.Sampled == nil {
		return "no event"
	}
	return answered(*f.Sampled)
}

func printControllers(p *render.Terminal, c source.EventControllers) {
	for i, terms := range [][]string{c.Reads, c.Writes, c.All} {
		if len(terms) > 0 {
			p.Hanging([]string{"  controller reads   ", "  controller writes  ", "  controller lines   "}[i], c.PMU+"/"+strings.Join(terms, "/ + "+c.PMU+"/")+"/")
		}
	}
	if c.Note != "" {
		p.Wrapped("  ", "("+c.Note+")")
	}
}

func codeOf(c source.EventCount) string {
	parts := make([]string, len(c.Events))
	for i, e := range c.Events {
		parts[i] = e.Perf
	}
	return strings.Join(parts, " + ")
}

func namesOf(c source.EventCount) string {
	parts := make([]string, len(c.Events))
	for i, e := range c.Events {
		parts[i] = e.Name
	}
	return strings.Join(parts, " + ")
}

// answers are the answers of a list, with what each is of.
func (l events) answers() (of []string, all []source.EventAnswer) {
	for _, f := range l.Fields {
		if f.Sampled != nil {
			of, all = append(of, f.Field.String()), append(all, *f.Sampled)
		}
		for _, c := range f.Counts {
			of, all = append(of, codeOf(c)), append(all, c.EventAnswer)
		}
	}
	return of, all
}

// verdict is one line: "9 of 12 fields open on CPU 0 for this user".
func (l events) verdict() string {
	fields, counted := 0, 0
	for _, f := range l.Fields {
		if len(f.Counts) > 0 || f.Sampled != nil {
			fields++
		}
		if opens(f) {
			counted++
		}
	}
	where := fmt.Sprintf("on CPU %d for this user", *l.TriedOn)
	if counted == 0 {
		return "nothing opens " + where + ": what the agent says of memory accesses is an estimate"
	}
	return fmt.Sprintf("%d of %d fields open %s", counted, fields, where)
}

// opens says that one of the field's ways opens.
func opens(f source.EventField) bool {
	ok := func(o source.EventAnswer) bool { return o.Opens != nil && *o.Opens }
	return f.Sampled != nil && ok(*f.Sampled) || slices.ContainsFunc(f.Counts, func(c source.EventCount) bool { return ok(c.EventAnswer) })
}

// printRefused prints each reason once, with the events that it is of.
func (l events) printRefused(p *render.Terminal) {
	of, all := l.answers()
	var reasons []string
	by := map[string][]string{}
	refused := 0
	for i, o := range all {
		if o.Opens == nil || *o.Opens {
			continue
		}
		if refused++; by[o.Refused] == nil {
			reasons = append(reasons, o.Refused)
		}
		by[o.Refused] = append(by[o.Refused], of[i])
	}
	if refused == 0 {
		return
	}
	p.Line("")
	for _, why := range reasons {
		which := strings.Join(by[why], ", ")
		if len(by[why]) == len(all) {
			which = "all"
		}
		p.Wrapped("  ", "refused: "+which+": "+render.Printable(why))
	}
}

// answered is what the table shows.
func answered(o source.EventAnswer) string {
	switch {
	case o.Opens == nil:
		return "not tried"
	case *o.Opens:
		return "counts"
	}
	return "refused"
}
