// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"homenode/internal/hub/deploy"
	"homenode/internal/hub/query"
	"homenode/internal/hub/sensitivity"
	"homenode/internal/kernel/unix"
	"homenode/internal/model/gain"
	"homenode/internal/render"
	"homenode/internal/store"
)

// Start says what a hub rolls out by itself.
type Start struct {
	// Services that it may roll out, by names or patterns such as "shop-*". Empty: none.
	Services []string `yaml:"services"`
	// Gain that the model must find at least, with its confidence; a share of the latency, 0 to 1.
	Least float64 `yaml:"least"`
	// Number of rollouts that may be under way, whoever started them, 1 to 100.
	AtOnce int `yaml:"at_once"`
	// What replicas are compared by: latency, ipc or cpus.
	Indicator deploy.Indicator `yaml:"indicator"`
	// Only log what it would start.
	DryRun bool `yaml:"dry_run"`
}

func (s Start) check(model string) (at, why string) {
	switch {
	case len(s.Services) > 0 && model == "":
		return "rollouts.model", "it is empty, and rollouts.start names services: name the manifest of a model of gains"
	case !(s.Least >= 0 && s.Least < 1):
		return "rollouts.start.least", fmt.Sprintf("it is %v: want 0 or more, below 1, such as 0.02", s.Least)
	case s.AtOnce < 1 || s.AtOnce > 100:
		return "rollouts.start.at_once", fmt.Sprintf("it is %d: want 1 to 100", s.AtOnce)
	case !slices.Contains(deploy.Indicators, s.Indicator):
		return "rollouts.start.indicator", fmt.Sprintf("it is %q: want latency, ipc or cpus", s.Indicator)
	}
	for i, p := range s.Services {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Sprintf("rollouts.start.services[%d]", i), fmt.Sprintf("%q is no name and no pattern: want e.g. shop-*", p)
		}
	}
	return "", ""
}

// names says whether a service is on the list.
func (s Start) names(service string) bool {
	return slices.ContainsFunc(s.Services, func(p string) bool {
		ok, err := path.Match(p, service)
		return ok && err == nil || p == service
	})
}

// ModelFile is a model of gains that is read again when its manifest changes. It is safe for
// concurrent use.
type ModelFile struct {
	Manifest string

	mu    sync.Mutex
	model *gain.Model
	size  int64
	time  time.Time
}

// Get is the model as it is now.
func (f *ModelFile) Get() (*gain.Model, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.Manifest)
	if err != nil {
		return nil, fmt.Errorf("read the model of gains: %w", err)
	}
	if f.model != nil && st.Size() == f.size && st.ModTime().Equal(f.time) {
		return f.model, nil
	}
	m, err := gain.Open(f.Manifest, func(path string) ([]byte, error) { return unix.ReadAtMost(path, gain.MaxBytes) })
	if err != nil {
		return nil, fmt.Errorf("read the model of gains: %w", err)
	}
	f.model, f.size, f.time = m, st.Size(), st.ModTime()
	return m, nil
}

const (
	// chooseEvery is how often services are looked at: what they show is of a day.
	chooseEvery = 10 * time.Minute
	chooseLimit = 5 * time.Minute
)

// Chooser starts rollouts of services that are on a list, that a model of gains finds worth
// binding, and whose replicas fit. A service that was rolled out once is a person's to try again.
type Chooser struct {
	Folder *deploy.Folder
	Store  deploy.Asker
	Model  func() (*gain.Model, error)
	Rules  Start
	Seed   uint64                             // chooses which hosts come first; 0: the usual
	Named  func(service string) (bool, error) // as Runner has it
	Now    func() time.Time
	Log    *slog.Logger

	said map[string]string // why a service was not started, so that it is logged once
}

// Run goes on until the context ends.
func (c *Chooser) Run(ctx context.Context) {
	deploy.Every(ctx, chooseEvery, c.Log, "rollouts are not started", func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, chooseLimit)
		defer stop()
		return c.Tick(ctx)
	})
}

// Tick looks at all services once.
func (c *Chooser) Tick(ctx context.Context) error {
	all, err := c.Folder.All()
	if err != nil {
		return err // a file that cannot be read may be of any service
	}
	had, under := map[string]bool{}, deploy.UnderWay(all)
	for _, one := range all {
		had[one.Service()] = true
	}
	if under >= c.Rules.AtOnce {
		return nil
	}
	r, err := c.Ask(ctx)
	if err != nil {
		return err
	}
	for _, s := range r.Services {
		if s.Verdict != sensitivity.Worth || !c.Rules.names(s.Service) || had[s.Service] {
			continue
		}
		named, err := c.Named(s.Service)
		if err != nil || under >= c.Rules.AtOnce {
			return err
		}
		why := "the file of orders names it"
		if !named {
			why, err = c.start(ctx, s)
		}
		if err != nil {
			return err
		}
		if why != "" {
			c.say(s.Service, why)
		} else {
			under++
		}
	}
	return nil
}

// Ask ranks all services by what the model expects, the surest first.
func (c *Chooser) Ask(ctx context.Context) (sensitivity.Report, error) {
	m, err := c.Model()
	if err != nil {
		return sensitivity.Report{}, err
	}
	q := store.Question{Topic: store.Features, From: c.Now().Add(-24 * time.Hour), Until: c.Now(), Most: store.MostRows}
	t, err := c.Store.Ask(ctx, q)
	if err != nil {
		return sensitivity.Report{}, fmt.Errorf("ask for the features of services: %w", err)
	}
	r := sensitivity.Rank(query.AnswerOf(q, t).Rows, m, c.Rules.Least)
	r.From, r.Until, r.Truncated = q.From, q.Until, t.More
	return r, nil
}

// start starts one, or says why not.
func (c *Chooser) start(ctx context.Context, s sensitivity.Service) (why string, err error) {
	p, err := deploy.Propose(ctx, c.Store, s.Service, deploy.Options{Indicator: c.Rules.Indicator, Seed: c.Seed}, c.Now())
	if errors.Is(err, deploy.ErrPlan) {
		return err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	if !p.Fit.Enough() {
		return fmt.Sprintf("%s, and %s must", p.Fit.Words(), render.Percent(deploy.LeastFit)), nil
	}
	because := fmt.Sprintf("the model expects a gain of %s to %s (%s); %s", render.Percent(s.Low), render.Percent(s.High), s.How, p.Fit.Words())
	if c.Rules.DryRun {
		return "dry run, it would be started: " + because, nil
	}
	asked := deploy.Asked{At: c.Now().UTC().Truncate(time.Second), By: "the hub", What: "start", Why: because}
	if err := c.Folder.Start(ctx, p.Rollout, asked, c.Rules.AtOnce); err != nil {
		return err.Error(), nil // another hub was first, or its owner said no
	}
	delete(c.said, s.Service)
	c.Log.Info("rollout started", "service", s.Service, "why", because)
	return "", nil
}

// say logs what is new about a service.
func (c *Chooser) say(service, why string) {
	if c.said == nil {
		c.said = map[string]string{}
	}
	if c.said[service] == why {
		return
	}
	c.said[service] = why
	c.Log.Info("rollout not started", "service", service, "why", why)
}
