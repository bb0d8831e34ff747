// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/url"

	"homenode/internal/render"
	"homenode/internal/store"
)

// unnamed is what workloads are called that no rule gives to a service.
const unnamed = "(no service)"

const gainNote = "Gain is an estimate: what local reads would save of the service's CPU time at most. The small word below a figure says how it is known: measured, modelled, estimated, or unknown; a sum is known as its weakest part is."

func services(s *site, r *request) (content, error) {
	var sorted string
	a, err := s.ask(r, store.Services, func(q *store.Question) {
		sorted = r.order(q, "local_ratio")
		q.Service = pattern(r.filter)
	})
	if err != nil {
		return content{}, err
	}
	t := r.paged(r.tabled(a, []spec{
		{name: "service", head: "service", left: true, show: func(row []any) string { return render.Or(render.Printable(a.Text(row, "service")), unnamed) }, link: r.toService(a)},
		{name: "local_ratio", head: "local access ratio", how: "local_how", bar: true},
		{name: "traffic_bytes", head: "traffic", how: "traffic_how"},
		{name: "saved_cpu_s", head: "gain", how: "saved_how"},
		{name: "saved_ratio", head: "gain, share", how: "saved_how"},
		{name: "cpu_s", head: "CPU time", how: "cpu_how"},
		{name: "unbound_ratio", head: "unbound"},
		{name: "instances", head: "instances"},
		{name: "hosts", head: "hosts"},
		{name: "last", head: "last window", fixed: true},
	}, sorted), a.More)
	t.Empty = "No service has a window in this time."
	if r.filter != "" {
		t.Empty = "No service has this in its name."
	}
	return content{Title: "Services", Lead: "Where memory is read from other nodes: the worst local access ratio first.",
		Filter: "Services with this in their name", Fields: r.kept("sort"), Tables: []table{t}, Notes: []string{gainNote}}, nil
}

func (r *request) toService(a store.Table) func(row []any) string {
	return func(row []any) string {
		name := a.Text(row, "service")
		if name == "" {
			return ""
		}
		return r.link("/service", "service", name)
	}
}

func (r *request) toHost(a store.Table) func(row []any) string {
	return func(row []any) string { return r.link("/host", "host", a.Text(row, "host")) }
}

func (r *request) toWorkload(a store.Table, host string) func(row []any) string {
	return func(row []any) string {
		return r.link("/workload", "host", render.Or(a.Text(row, "host"), host), "workload", a.Text(row, "workload"))
	}
}

// kept are the parts of the URL that a form sends again. A browser changes control characters
// in a field, so what has any is sent as an address is.
func (r *request) kept(names ...string) (all []hidden) {
	v, fit := url.Values{}, true
	for _, name := range append(names, "until") {
		if text := r.values.Get(name); text != "" {
			v.Set(name, text)
			all = append(all, hidden{name, text})
			fit = fit && render.Printable(text) == text
		}
	}
	if !fit {
		return []hidden{{packed, v.Encode()}}
	}
	return all
}

// packed is the name of a field that has others in it.
const packed = "of"

func service(s *site, r *request) (content, error) {
	name := r.question.Service
	c := content{Title: render.Or(render.Printable(name), unnamed), Lead: "One service: by time, and its instances, worst first.", Fields: r.kept("service", "sort")}
	if name == "" {
		return c, fmt.Errorf("the address names no service: %w", store.ErrQuestion)
	}
	var sorted string
	a, err := s.ask(r, store.Instances, func(q *store.Question) {
		sorted = r.order(q, "local_ratio")
		q.Service = name
	})
	if err != nil {
		return c, err
	}
	past, err := s.ask(r, store.History, func(q *store.Question) { q.Service, q.Most = name, mostPoints })
	if err != nil {
		return c, err
	}
	gain, err := s.ask(r, store.Gain, func(q *store.Question) { q.Service = name })
	if err != nil {
		return c, err
	}
	c.Facts = gainFacts(gain)
	c.Pictures = r.past(past, true)
	t := r.paged(r.tabled(a, r.instanceSpecs(a), sorted), a.More)
	t.Caption, t.Empty = "Instances", "This service has no window in this time."
	recent, err := s.recent(r, func(q *store.Question) { q.Service = name })
	c.Tables = []table{t, recent}
	return c, err
}

func (r *request) instanceSpecs(a store.Table) []spec {
	return []spec{
		{name: "workload", head: "workload", left: true, link: r.toWorkload(a, ""), small: func(row []any) string { return render.Printable(a.Text(row, "name")) }},
		{name: "host", head: "host", left: true, link: r.toHost(a)},
		{name: "local_ratio", head: "local access ratio", how: "local_how", bar: true},
		{name: "cpus", head: "CPUs", how: "cpu_how"},
		{name: "traffic_bytes_per_s", head: "traffic", how: "traffic_how"},
		{name: "bound_ratio", head: "bound, of the time"},
		{name: "last", head: "last window", fixed: true},
	}
}

// gainFacts say what binding would save.
func gainFacts(a store.Table) []render.Fact {
	if len(a.Rows) == 0 {
		return nil
	}
	row := a.Rows[0]
	facts := []render.Fact{}
	add := func(name, column, how string) {
		text := spec{name: column}.cell(a, row).Text
		if h := a.Text(row, how); h != "" && text != render.Unknown {
			text += " (" + h + ")"
		}
		facts = append(facts, render.Fact{Name: name, Text: text})
	}
	add("local access ratio", "local_ratio", "local_how")
	add("CPU time", "cpu_s", "cpu_how")
	add("gain at most", "saved_cpu_s", "saved_how")
	add("gain, share", "saved_ratio", "saved_how")
	add("instances", "instances", "")
	return facts
}
