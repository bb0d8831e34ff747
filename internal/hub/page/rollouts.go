// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"

	"homenode/internal/hub/deploy"
	"homenode/internal/render"
)

const rolloutNote = "Bound replicas are compared with themselves before, and with those that are not bound, host by host. The bounds hold however often one looks."

var errNoRollouts = errors.New("this hub has no folder of rollouts")

// rollouts are all of them.
func rollouts(s *site, r *request) (content, error) {
	c := content{Title: "Rollouts", Timeless: true, Lead: "Services that are bound host by host, as long as it does them good."}
	if s.Rollouts == nil {
		return c, errNoRollouts
	}
	all, err := s.Rollouts.All()
	if err != nil {
		c.Notes = append(c.Notes, "Not all can be read: "+render.Clip(render.Printable(err.Error()), 600))
	}
	t := table{Empty: "There are none. 'homenode-hub deploy plan SERVICE' shows how one would go.", Heads: heads("service", "state", "bound", "indicator", "shown now", "last step")}
	for _, one := range all {
		shown, last := cell{Text: render.Unknown, Left: true}, cell{Text: "none yet", Left: true}
		if e, ok := one.State.Evidence(); ok {
			shown.Text, shown.Small = deploy.Worse(e.Effect), "between "+deploy.Worse(e.AtLeast)+" and "+deploy.Worse(e.AtMost)
		}
		if n := len(one.State.Events); n > 0 {
			last.Text = one.Sentence(one.State.Events[n-1])
			last.Class = "why"
		}
		t.Rows = append(t.Rows, []cell{
			{Text: render.Printable(one.Service()), Head: true, Left: true, To: r.link("/rollout", "service", one.Service())},
			{Text: one.Words(), Left: true},
			{Text: fmt.Sprintf("%d of %d", one.State.BoundCount(), len(one.State.Plan.Replicas)), Left: true},
			{Text: string(one.Indicator), Small: one.How.String(), Left: true}, shown, last,
		})
	}
	c.Tables, c.Notes = []table{t}, append(c.Notes, rolloutNote)
	return c, nil
}

// rolloutOf is one, with every step.
func rolloutOf(s *site, r *request) (content, error) {
	c := content{Title: "Rollout of " + render.Printable(r.question.Service), Timeless: true}
	if s.Rollouts == nil {
		return c, errNoRollouts
	}
	one, err := s.Rollouts.Get(r.question.Service)
	if err != nil {
		return c, err
	}
	c.Lead = one.Words() + "."
	add := func(name, text string) { c.Facts = append(c.Facts, render.Fact{Name: name, Text: text}) }
	add("compared by", fmt.Sprintf("%s (%s)", one.Indicator, one.How))
	add("to be bound", fmt.Sprintf("%d of %s", one.State.BoundCount(), render.Count(len(one.State.Plan.Replicas), "replica")))
	if n, ok := one.Observed.Get(); ok {
		add("bound in the last bin", render.Integer(n))
	}
	if e, ok := one.State.Evidence(); ok {
		add("shown now", one.Shown(e))
	}
	add("began", render.Date(one.Began))
	if one.Told.Problem != "" {
		add("webhook", render.Clip(render.Printable(one.Told.Problem), 300))
	}
	steps := table{Caption: "Steps", Class: "told", Empty: "Nothing happened yet: its replicas are watched before the first one is bound.", Heads: heads("when", "what", "why", "bound")}
	for i := len(one.State.Events) - 1; i >= 0; i-- {
		e := one.State.Events[i]
		steps.Rows = append(steps.Rows, []cell{{Text: render.Date(one.Times[i]), Head: true, Class: "when"}, {Text: string(e.Code), Left: true}, {Text: one.Sentence(e), Left: true, Class: "why"}, {Text: render.Integer(e.Bound)}})
	}
	asked := table{Caption: "Asked for", Class: "told", Heads: heads("when", "what", "why", "by")}
	for i := len(one.Asked) - 1; i >= 0; i-- {
		a := one.Asked[i]
		asked.Rows = append(asked.Rows, []cell{{Text: render.Date(a.At), Head: true, Class: "when"}, {Text: a.What, Left: true}, {Text: render.Clip(render.Printable(a.Why), 400), Left: true, Class: "why"}, {Text: render.Clip(render.Printable(a.By), 64), Left: true}})
	}
	c.Tables, c.Notes = []table{steps, asked}, []string{rolloutNote}
	return c, nil
}

func heads(names ...string) (all []head) {
	for _, n := range names {
		all = append(all, head{Text: n, Left: true})
	}
	return all
}
