// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"time"

	"homenode/internal/render"
	"homenode/internal/store"
)

func events(s *site, r *request) (content, error) {
	c := content{Title: "Events", Lead: "What agents decided and did, newest first, with the reason in a sentence.", Fields: r.kept("service", "workload", "kind"), Filter: "Events of this host (its whole name)"}
	topic, unbound := store.Events, r.values.Get("kind") == "unbound"
	if unbound {
		topic, c.Title = store.Unbound, "Unbound workloads"
	}
	c.Views = []menuItem{{"all events", r.with("kind", "", "offset", ""), !unbound}, {"unbound alone", r.with("kind", "unbound", "offset", ""), unbound}}
	a, err := s.ask(r, topic, func(q *store.Question) {
		q.Service, q.Workload = r.question.Service, r.question.Workload
		q.Host = render.Or(r.filter, r.question.Host)
		q.Most, q.Offset = rowsOfPage, r.question.Offset
	})
	if err != nil {
		return c, err
	}
	t := r.paged(r.tabled(a, r.eventSpecs(a), ""), a.More)
	t.Class, t.Empty = "told", "Nothing happened in this time."
	c.Tables = []table{t}
	return c, nil
}

// mostRecent is how many events a page about something else shows.
const mostRecent = 10

// recent are the last events of what a page is about.
func (s *site) recent(r *request, of func(*store.Question)) (table, error) {
	a, err := s.ask(r, store.Events, func(q *store.Question) { of(q); q.Most = mostRecent })
	if err != nil {
		return table{}, err
	}
	t := r.tabled(a, r.eventSpecs(a), "")
	t.Caption, t.Class, t.Empty = "Events", "told", "Nothing happened in this time."
	if a.More {
		var q store.Question
		of(&q)
		t.Later = r.link("/events", "host", q.Host, "service", q.Service, "workload", q.Workload)
	}
	return t, nil
}

func (r *request) eventSpecs(a store.Table) []spec {
	return []spec{
		{name: "at", head: "when", left: true, class: func([]any) string { return "when" }, show: func(row []any) string {
			at, _ := a.Cell(row, "at").(time.Time)
			return render.Date(at)
		}},
		{name: "kind", head: "what", left: true, show: func(row []any) string { return whatOf(a, row) }},
		{name: "sentence", head: "why", left: true, class: func([]any) string { return "why" }},
		{name: "host", head: "host", left: true, link: r.toHost(a)},
		{name: "workload", head: "workload", left: true, link: r.toWorkload(a, "")},
		{name: "service", head: "service", left: true, link: r.toService(a)},
	}
}

// whatOf is "bind to nodes 1, dry run", or "set-cpus: done". A step names its workload, which has
// a column of its own.
func whatOf(a store.Table, row []any) string {
	kind := a.Text(row, "kind")
	if name := a.Text(row, "workload"); name != "" {
		kind = strings.Replace(kind, " "+name, "", 1)
	}
	text := render.Or(render.Printable(kind), "unbind")
	if nodes := a.Text(row, "nodes"); nodes != "" {
		text += " to nodes " + render.Printable(nodes)
	}
	if state := a.Text(row, "state"); state != "" {
		text += ": " + render.Printable(state)
	}
	if dry, _ := a.Cell(row, "dry_run").(bool); dry {
		text += ", dry run"
	}
	return text
}
