// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/event"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/source"
)

// opens is what this host's kernel answered when the event was opened.
type opens struct {
	Opens   *bool  `json:"opens"`             // null = not tried
	Refused string `json:"refused,omitempty"` // why not
}

func answer(err error) opens {
	ok := err == nil
	if ok {
		return opens{Opens: &ok}
	}
	return opens{Opens: &ok, Refused: err.Error()}
}

func (o opens) refused() bool { return o.Opens != nil && !*o.Opens }

// cell is what the table shows.
func (o opens) cell() string {
	switch {
	case o.Opens == nil:
		return "not tried"
	case *o.Opens:
		return "counts"
	}
	return "refused"
}

// trial opens the events of a list on this host.
type trial struct {
	calls    unix.Sampling
	root     unix.Root // where the CPUs' way of sampling is found
	cpu      int
	deadline time.Time
}

// mostTrial bounds the trial of all events. One takes microseconds, and a few milliseconds
// to be closed.
const mostTrial = 5 * time.Second

// liveTrial is a trial as the current user, on this host's first CPU that is online.
func liveTrial() trial {
	t := trial{calls: unix.LivePerf{}, deadline: time.Now().Add(mostTrial)}
	if m, _, err := source.Live(); err == nil && !m.OnlineCPUs().IsEmpty() {
		t.cpu = m.OnlineCPUs().IDs()[0]
	}
	return t
}

// run opens each way to count each field of the list, which is table's.
func (t trial) run(l *eventList, table *event.Table) {
	l.TriedOn = &t.cpu
	for i, r := range table.Readings {
		f := &l.Fields[i]
		if r.Field == event.LoadSamples || r.Field == event.StoreSamples {
			continue
		}
		for k, c := range r.Counts {
			if time.Now().After(t.deadline) {
				return
			}
			f.Counts[k].opens = answer(perf.Try(t.calls, c, t.cpu))
		}
	}
	t.samples(l)
}

// samples tries the fields that are sampled, as this CPU samples: some by a PMU that no
// table of events has (IBS).
func (t trial) samples(l *eventList) {
	table, err := sampling.Detect(t.root)
	loads, stores := err, err
	if err == nil {
		if loads, stores = sampling.Try(t.calls, table, t.cpu); loads != nil {
			loads = perf.Refusal(loads)
		}
		if stores != nil {
			stores = perf.Refusal(stores)
		}
	}
	for i := range l.Fields {
		f := &l.Fields[i]
		switch f.Field {
		case event.LoadSamples:
			f.sampled(loads)
		case event.StoreSamples:
			f.sampled(stores)
		}
	}
}

// sampled notes the answer of a field that is sampled, at its event if the table has one.
func (f *eventField) sampled(err error) {
	a := answer(err)
	if len(f.Counts) > 0 {
		f.Counts[0].opens = a
		return
	}
	f.Sampled = &a
}

// answers are the answers of a list, with what each is of.
func (l eventList) answers() (of []string, all []opens) {
	for _, f := range l.Fields {
		if f.Sampled != nil {
			of, all = append(of, f.Field.String()), append(all, *f.Sampled)
		}
		for _, c := range f.Counts {
			of, all = append(of, c.code()), append(all, c.opens)
		}
	}
	return of, all
}

// verdict is one line: "9 of 12 fields open on CPU 0 for this user".
func (l eventList) verdict() string {
	fields, counted := 0, 0
	for _, f := range l.Fields {
		if len(f.Counts) > 0 || f.Sampled != nil {
			fields++
		}
		if f.counted() {
			counted++
		}
	}
	where := fmt.Sprintf("on CPU %d for this user", *l.TriedOn)
	if counted == 0 {
		return "nothing opens " + where + ": what the agent says of memory accesses is an estimate"
	}
	return fmt.Sprintf("%d of %d fields open %s", counted, fields, where)
}

// counted says that one of the field's ways opens.
func (f eventField) counted() bool {
	ok := func(o opens) bool { return o.Opens != nil && *o.Opens }
	return f.Sampled != nil && ok(*f.Sampled) || slices.ContainsFunc(f.Counts, func(c eventCount) bool { return ok(c.opens) })
}

// printRefused prints each reason once, with the events that it is of.
func (l eventList) printRefused(p *render.Terminal) {
	of, all := l.answers()
	var reasons []string
	by := map[string][]string{}
	refused := 0
	for i, o := range all {
		if !o.refused() {
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
