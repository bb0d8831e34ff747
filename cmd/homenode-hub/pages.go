// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/hub"
	"homenode/internal/hub/deploy"
	"homenode/internal/hub/page"
	"homenode/internal/hub/query"
	"homenode/internal/kernel/unix"
	"homenode/internal/render"
	"homenode/internal/store"
)

// mostTokenFile bounds the file of tokens.
const mostTokenFile = 1 << 20

// addPages adds what people see to what the hub serves. Metrics and health are beside it, for
// the network of the operators.
func addPages(mux *http.ServeMux, h *hub.Server, s store.Store, rollouts *deploy.Folder, model *hub.ModelFile, c hub.Config) error {
	access := query.Access{Loopback: c.Tokens == "", Names: c.Names}
	if c.Tokens != "" {
		text, err := unix.ReadAtMost(c.Tokens, mostTokenFile)
		if err != nil {
			return exit.BadInput(fmt.Errorf("read tokens: %w", err))
		}
		if access.Tokens, err = query.ParseTokens(text, c.Tokens); err != nil {
			return exit.BadInput(err)
		}
	}
	options := page.Options{Store: s, Now: time.Now, Rollouts: rollouts, Health: func() page.Health { return healthOf(h, c) }}
	if model != nil {
		options.Model = model.Get
	}
	mux.Handle("/", access.Guard(page.Handler(options)))
	mux.Handle("/api/", access.Guard(query.Handler(query.Options{Store: s, Now: time.Now, Version: cli.Version})))
	return nil
}

// healthOf is what the hub tells about itself: its metrics without labels, and what it refused.
func healthOf(h *hub.Server, c hub.Config) page.Health {
	out := page.Health{Facts: []render.Fact{{Name: "version", Text: cli.Version}, {Name: "store", Text: storeName(c)}}}
	out.Facts = append(out.Facts, countersOf(h.Registry())...)
	for _, r := range h.Refusals() {
		out.Refusals = append(out.Refusals, page.Refusal{At: r.At, Host: r.Host, From: r.From, What: r.Reason, Why: r.Detail, Count: r.Count})
	}
	return out
}

// countersOf are counters and gauges with the texts of their help.
func countersOf(g prometheus.Gatherer) (all []render.Fact) {
	families, err := g.Gather()
	if err != nil {
		return []render.Fact{{Name: "metrics", Text: "cannot be read: " + err.Error()}}
	}
	for _, f := range families {
		if len(f.GetMetric()) != 1 || len(f.GetMetric()[0].GetLabel()) > 0 {
			continue
		}
		m := f.GetMetric()[0]
		if m.GetCounter() == nil && m.GetGauge() == nil {
			continue
		}
		v := m.GetCounter().GetValue() + m.GetGauge().GetValue() // one of them is not there
		all = append(all, render.Fact{Name: f.GetHelp(), Text: render.Whole(v)})
	}
	return all
}
