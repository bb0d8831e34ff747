// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/query"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/store"
)

func sensitivityCommand() *cobra.Command {
	var f from
	var model, since string
	var least float64
	cmd := &cobra.Command{
		Use:   "sensitivity [SERVICE]",
		Short: "Rank services by what binding would bring them, before anything is bound",
		Long: "Asks a model of gains about each service, by what its workloads showed: how much of its mean latency\n" +
			"binding would save, within an interval, and why. SERVICE may have stars. 'scripts/model.sh gain' trains a\n" +
			"model. A prediction is a reason to try ('homenode-hub deploy plan'), and no proof: a rollout is the proof.",
		Example: "  homenode-hub sensitivity --model gain.json\n  homenode-hub sensitivity 'shop-*' --model gain.json --since 7d --store sqlite:status.db",
		Args:    cli.AtMostOne("a service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(f.output); err != nil {
				return err
			}
			if model == "" {
				return exit.BadInput(fmt.Errorf("--model is not given: name a model's manifest, such as gain.json; 'scripts/model.sh gain' trains one"))
			}
			if !(least >= 0 && least < 1) {
				return exit.BadInput(fmt.Errorf("--least is %v: want 0 or more, below 1, such as 0.02", least))
			}
			m, err := openModel(model)
			if err != nil {
				return exit.BadInput(err)
			}
			a, err := f.features(cmd, strings.Join(args, ""), since)
			if err != nil {
				return exit.BadInput(err)
			}
			r := sensitivity.Rank(a.Rows, m, least)
			r.From, r.Until, r.Truncated = *a.From, *a.Until, a.More
			if f.output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
			}
			t := cli.Screen().Terminal()
			showSensitivity(&t, r)
			return t.Flush(cmd.OutOrStdout(), "sensitivity")
		},
	}
	cmd.Flags().StringVar(&model, "model", "", "manifest of a model of gains; its other files are beside it")
	cmd.Flags().StringVar(&since, "since", "24h", "time of which the features are means: before now, such as 7d, or a moment")
	cmd.Flags().Float64Var(&least, "least", sensitivity.Usual, "gain that a rollout must bring to be worth it, a share of the latency")
	f.where(cmd)
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, sensitivity.Report{})
	return cli.Exits(cmd, "2", "no model, or a hub or store that cannot be asked")
}

// openModel opens a model by its manifest.
func openModel(manifest string) (*gain.Model, error) {
	m, err := (&hub.ModelFile{Manifest: manifest}).Get()
	if err != nil {
		return nil, fmt.Errorf("--model: %w", err)
	}
	return m, nil
}

// features asks for what services show.
func (f *from) features(cmd *cobra.Command, service, since string) (query.Answer, error) {
	q, err := query.Parse(string(store.Features), url.Values{"service": {service}, "since": {since}, "most": {strconv.Itoa(store.MostRows)}}, time.Now())
	if err != nil {
		return query.Answer{}, err
	}
	ctx, stop := context.WithTimeout(cmd.Context(), f.within)
	defer stop()
	return f.ask(ctx, cmd, func(ctx context.Context, c *query.Client) (query.Answer, error) { return c.Ask(ctx, q) },
		func(ctx context.Context, s store.Store) (query.Answer, error) {
			t, err := s.Ask(ctx, q)
			return query.AnswerOf(q, t), err
		})
}

func showSensitivity(t *render.Terminal, r sensitivity.Report) {
	t.Wrapped("", fmt.Sprintf("%s by a model of %s (%s, %s). A gain is the share of the mean latency that binding saves; %s of services that the model has not seen are inside the interval.",
		render.Count(len(r.Services), "service"), render.Count(r.Model.Rows, "trial"), r.Model.Source, render.Printable(strings.Join(r.Model.Machines, ", ")), render.Percent(r.Confidence)))
	if r.Model.Source == gain.Simulator {
		t.Wrapped("", "Its trials were simulated, not measured on hardware: a prediction is a reason to try, and no proof.")
	}
	t.Line("")
	table := render.Table{Columns: []render.Column{
		{Head: "service", Left: true, Least: 20}, {Head: "instances", Rank: 2}, {Head: "gain"}, {Head: "interval"}, {Head: "local", Rank: 1}, {Head: "verdict", Left: true},
	}}
	for _, s := range r.Services {
		local := render.Unknown
		if x, ok := s.Features[gain.RMBR]; ok {
			local = render.Percent(1 - x)
		}
		table.Add(render.Name(s.Service), strconv.Itoa(s.Instances), render.Percent(s.Gain), render.Percent(s.Low)+" to "+render.Percent(s.High), local, string(s.Verdict))
	}
	t.Table(table)
	t.Line("")
	for i, s := range r.Services {
		if i == explained {
			t.Wrapped("", fmt.Sprintf("… and %d more: '-o json' has the reasons of all.", len(r.Services)-i))
			break
		}
		t.Wrapped("  ", render.Name(s.Service)+": "+s.Why()+".")
	}
	showDrift(t, r)
}

// explained is how many services have their reasons on the screen.
const explained = 12

func showDrift(t *render.Terminal, r sensitivity.Report) {
	var drifted, unknown []string
	for _, d := range r.Drift {
		switch {
		case d.Drifted:
			drifted = append(drifted, d.Feature)
		case d.Services == 0:
			unknown = append(unknown, d.Feature)
		}
	}
	t.Line("")
	if len(unknown) > 0 {
		t.Wrapped("", "Unknown of all services: "+strings.Join(unknown, ", ")+".")
	}
	if len(drifted) > 0 {
		t.Wrapped("", "These services are not what the model was trained on: "+strings.Join(drifted, ", ")+". Train it anew before you trust it.")
	}
	if r.Truncated {
		t.Wrapped("", "There are more services than these: name some.")
	}
}
