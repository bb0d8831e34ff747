// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"homenode/internal/event"
	"homenode/internal/exit"
	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Events is what 'homenode events -o json' prints.
type Events struct {
	Schema    int            `json:"schema"` // 1
	Table     string         `json:"table"`
	Title     string         `json:"title"`
	Machine   string         `json:"machine_name,omitempty"` // the name that its CPUs report; "" for --cpu
	How       unit.Source    `json:"how"`                    // how its counts are known
	Note      string         `json:"note,omitempty"`
	LineBytes int            `json:"line_bytes"`
	Counters  *int           `json:"counters"` // general-purpose counters of a CPU; null = unknown
	CPUs      []string       `json:"cpu_models"`
	TriedOn   *int           `json:"tried_on_cpu"` // where the events were opened; null = nothing was tried
	Sources   []event.Source `json:"sources"`
	Fields    []EventField   `json:"fields"`

	Controllers []EventControllers `json:"controllers,omitempty"` // the first whose PMU is there; none: what sysfs names
}

// EventControllers is how the PMUs of the memory controllers count, as 'perf stat -e'
// takes it, without their numbers.
type EventControllers struct {
	PMU    string   `json:"pmu"`
	Reads  []string `json:"read_events,omitempty"`
	Writes []string `json:"write_events,omitempty"`
	All    []string `json:"all_events,omitempty"` // reads and writes together
	Note   string   `json:"note,omitempty"`
}

// EventField is a field, and the ways to count it.
type EventField struct {
	Field  event.Field  `json:"field"`
	Why    string       `json:"why,omitempty"` // why it cannot be counted
	Counts []EventCount `json:"ways"`          // the first is used

	Sampled *EventAnswer `json:"sampled,omitempty"` // the answer of a PMU that samples it instead
}

// EventCount is one way to count a field.
type EventCount struct {
	Events []eventEvent `json:"sum"`
	Leader *eventEvent  `json:"leader,omitempty"` // of the group that each event needs
	Near   event.Near   `json:"near,omitempty"`   // what local means where a package has several nodes
	Note   string       `json:"note,omitempty"`
	EventAnswer
}

type eventEvent struct {
	Name   string      `json:"name"`
	Perf   string      `json:"perf"`      // as 'perf stat -e' takes it
	Type   uint32      `json:"perf_type"` // perf_event_attr.type
	Config string      `json:"config"`
	Code   *event.Code `json:"event_code,omitempty"` // the vendor's parts
}

// EventsOf is the list of an event table, or of the CPUs of a recorded tree. It tries those of
// this host.
func EventsOf(name, root string) (Events, error) {
	if name != "" {
		t, ok := event.ByName(name)
		if !ok {
			return Events{}, exit.BadInput(fmt.Errorf("--cpu is %q: want one of %s", name, strings.Join(event.Names(), ", ")))
		}
		return ListEvents(t, ""), nil
	}
	cpu := perf.DetectCPU(unix.At(root))
	list := ListEvents(event.For(cpu), render.Printable(cpu.Describe()))
	if filepath.Clean(root) == "/" {
		liveTrial().Run(&list, event.For(cpu))
	}
	return list, nil
}

// ListEvents is the list of a table, for a machine whose CPUs have a name, or "".
func ListEvents(t *event.Table, machine string) Events {
	list := Events{Schema: 1, Table: t.Name, Title: t.Title, Machine: machine, How: t.How, Note: t.Note, LineBytes: t.LineBytes, CPUs: []string{}, Sources: t.Sources}
	if t.Counters > 0 {
		list.Counters = &t.Counters
	}
	for _, m := range t.CPUs {
		list.CPUs = append(list.CPUs, m.String())
	}
	for _, r := range t.Readings {
		f := EventField{Field: r.Field, Why: r.Why, Counts: []EventCount{}}
		for _, c := range r.Counts {
			f.Counts = append(f.Counts, listCount(c))
		}
		list.Fields = append(list.Fields, f)
	}
	for _, c := range t.Controllers {
		list.Controllers = append(list.Controllers, EventControllers{c.PMU, controllerTerms(c.Reads), controllerTerms(c.Writes), controllerTerms(c.All), c.Note})
	}
	return list
}

func controllerTerms(events []event.ControllerEvent) (terms []string) {
	for _, e := range events {
		terms = append(terms, cmp.Or(e.Terms, e.Name))
	}
	return terms
}

func listCount(c event.Count) EventCount {
	out := EventCount{Near: c.Near, Note: c.Note}
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

// EventAnswer is what this host's kernel answered when the event was opened.
type EventAnswer struct {
	Opens   *bool  `json:"opens"`             // null = not tried
	Refused string `json:"refusal,omitempty"` // why not
}

func answer(err error) EventAnswer {
	ok := err == nil
	if ok {
		return EventAnswer{Opens: &ok}
	}
	return EventAnswer{Opens: &ok, Refused: err.Error()}
}

// EventTrial opens the events of a list on this host.
type EventTrial struct {
	Calls    unix.Sampling
	Root     unix.Root // where the CPUs' way of sampling is found
	CPU      int
	Deadline time.Time
}

// mostTrial bounds the trial of all events. One takes microseconds, and a few milliseconds
// to be closed.
const mostTrial = 5 * time.Second

// liveTrial is a trial as the current user, on this host's first CPU that is online.
func liveTrial() EventTrial {
	t := EventTrial{Calls: unix.LivePerf{}, Deadline: time.Now().Add(mostTrial)}
	if m, _, err := Live(); err == nil && !m.OnlineCPUs().IsEmpty() {
		t.CPU = m.OnlineCPUs().IDs()[0]
	}
	return t
}

// Run opens each way to count each field of the list, which is table's.
func (t EventTrial) Run(l *Events, table *event.Table) {
	l.TriedOn = &t.CPU
	for i, r := range table.Readings {
		f := &l.Fields[i]
		if r.Field == event.LoadSamples || r.Field == event.StoreSamples {
			continue
		}
		for k, c := range r.Counts {
			if time.Now().After(t.Deadline) {
				return
			}
			f.Counts[k].EventAnswer = answer(perf.Try(t.Calls, c, t.CPU))
		}
	}
	t.samples(l)
}

// samples tries the fields that are sampled, as this CPU samples: some by a PMU that no
// table of events has (IBS).
func (t EventTrial) samples(l *Events) {
	table, err := sampling.Detect(t.Root)
	loads, stores := err, err
	if err == nil {
		if loads, stores = sampling.Try(t.Calls, table, t.CPU); loads != nil {
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
func (f *EventField) sampled(err error) {
	a := answer(err)
	if len(f.Counts) > 0 {
		f.Counts[0].EventAnswer = a
		return
	}
	f.Sampled = &a
}
