// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	"homenode/internal/render"
)

// Health is what the hub tells about itself.
type Health struct {
	Facts    []render.Fact // such as the store's kind, and how far it is behind
	Refusals []Refusal     // the newest first
}

// Refusal is something that the hub did not take, or put off.
type Refusal struct {
	At    time.Time
	Host  string // by its certificate; "": unknown
	From  string // the client's address
	What  string // "batch", "certificate", …
	Why   string
	Count int // how often since the hub's start
}

// mostRefusals is how many are shown.
const mostRefusals = 200

func health(s *site, r *request) (content, error) {
	c := content{Title: "Health", Timeless: true, Lead: "What this replica of the hub refused or put off since its start, and how it is."}
	if s.Health == nil {
		c.Notes = []string{"This hub tells nothing about itself."}
		return c, nil
	}
	h := s.Health()
	c.Facts = h.Facts
	t := table{Caption: "Refused", Class: "told", Empty: "Nothing was refused.", Heads: append(heads("when", "what", "why", "host", "from"), head{Text: "times"})}
	for _, f := range h.Refusals[:min(len(h.Refusals), mostRefusals)] {
		to := ""
		if f.Host != "" {
			to = r.link("/host", "host", f.Host)
		}
		t.Rows = append(t.Rows, []cell{
			{Text: render.Date(f.At), Head: true, Class: "when"},
			{Text: render.Printable(f.What), Left: true},
			{Text: render.Clip(render.Printable(f.Why), 400), Left: true, Class: "why"},
			{Text: render.OrUnknown(render.Clip(render.Printable(f.Host), 256)), To: to, Left: true},
			{Text: render.OrUnknown(render.Clip(render.Printable(f.From), 64)), Left: true},
			{Text: render.Integer(f.Count)},
		})
	}
	c.Tables = []table{t}
	return c, nil
}
