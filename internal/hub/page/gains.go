// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"strings"

	"homenode/internal/hub/query"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/store"
)

var errNoModel = errors.New("this hub has no model of gains: 'rollouts.model' names one")

// mostRanked is how many services are ranked: those with most memory traffic, which have most to gain.
const mostRanked = 1000

// gains are what binding would bring, by the model.
func gains(s *site, r *request) (content, error) {
	c := content{Title: "Gains", Lead: "What binding would save of each service's mean latency, by a model: a reason to try, and no proof. A rollout is the proof.",
		Filter: "Services with this in their name"}
	if s.Model == nil {
		return c, errNoModel
	}
	m, err := s.Model()
	if err != nil {
		return c, err
	}
	q := store.Question{Topic: store.Features, Service: pattern(r.filter), From: r.question.From, Until: r.question.Until, Most: mostRanked}
	a, err := s.Store.Ask(r, q)
	if err != nil {
		return c, err
	}
	report := sensitivity.Rank(query.AnswerOf(q, a).Rows, m, sensitivity.Usual)
	c.Facts = modelFacts(m)
	c.Tables = []table{r.predictions(report), driftTable(report)}
	c.Notes = append(c.Notes, fmt.Sprintf("Of services that the model has not seen, %s are inside the interval. Worth it: the lower end is %s or more.", render.Percent(m.Interval.Confidence), render.Percent(report.Least)))
	if a.More {
		c.Notes = append(c.Notes, fmt.Sprintf("There are more services: these are the %s with most memory traffic. A filter finds others.", render.Integer(mostRanked)))
	}
	return c, nil
}

func modelFacts(m *gain.Model) []render.Fact {
	return []render.Fact{
		{Name: "trained on", Text: fmt.Sprintf("%s of %s (%s)", render.Count(m.Rows, "trial"), render.Count(m.Manifest.Services, "service"), render.Printable(m.Source))},
		{Name: "machines", Text: render.Clip(render.Printable(strings.Join(m.Machines, ", ")), 200)},
		{Name: "made by", Text: render.Clip(render.Printable(m.MadeBy), 100)},
	}
}

// predictions is one page of the services.
func (r *request) predictions(report sensitivity.Report) table {
	t := table{Caption: "Services", Class: "told", Empty: "No service has a window in this time.",
		Heads: []head{{Text: "service", Left: true}, {Text: "verdict", Left: true}, {Text: "gain"}, {Text: "interval"}, {Text: "why", Left: true}}}
	all := report.Services[min(r.question.Offset, len(report.Services)):]
	for _, one := range all[:min(len(all), rowsOfPage)] {
		t.Rows = append(t.Rows, []cell{
			{Text: render.Clip(render.Printable(one.Service), 256), Small: render.Count(one.Instances, "instance"), Head: true, Left: true, To: r.link("/service", "service", one.Service)},
			{Text: string(one.Verdict), Left: true},
			{Text: render.Percent(one.Gain), Small: one.How.String()},
			{Text: render.Percent(one.Low) + " to " + render.Percent(one.High)},
			{Text: one.Why(), Left: true, Class: "why"},
		})
	}
	return r.paged(t, len(all) > rowsOfPage)
}

// driftTable says whether the services are what the model was trained on.
func driftTable(report sensitivity.Report) table {
	t := table{Caption: "Drift", Empty: "The model has no features.",
		Heads: []head{{Text: "feature", Left: true}, {Text: "stability index", About: "population stability index of the services against the trials: below 0.1 alike, from 0.25 on far"}, {Text: "services"}, {Text: "", Left: true}}}
	for _, d := range report.Drift {
		index, word := render.Unknown, "too few services to say"
		if x, ok := d.Index.Get(); ok {
			index, word = fmt.Sprintf("%.2f", x), "as in the trials"
		}
		if d.Drifted {
			word = "not what the model was trained on: train it anew"
		}
		t.Rows = append(t.Rows, []cell{{Text: d.Feature, Head: true, Left: true}, {Text: index}, {Text: render.Integer(d.Services)}, {Text: word, Left: true}})
	}
	return t
}
