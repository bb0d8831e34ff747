// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"homenode/internal/hub"
	"homenode/internal/hub/deploy"
	"homenode/internal/machine"
	"homenode/internal/model/gain"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
)

// Config is one run.
type Config struct {
	Machine  machine.Machine
	System   memsys.System
	Linux    linux.Settings
	Seed     uint64   // of the fleet's catalogue, and of its loads
	Services []string // of the catalogue
	Hosts    int
	Fault    Fault
	Start    time.Time // of the simulated clock
	Model    *gain.Model
	Least    float64 // gain that makes a service worth it
	Dir      string  // for the store and the rollouts; empty or new
	Progress func(at time.Duration, what string)
}

const (
	// watchFor is how long services are watched before the model is asked. A rollout looks back two hours.
	watchFor = 3 * time.Hour
	// atMost ends a run whose rollouts do not.
	atMost = 4 * 24 * time.Hour
	// settled is how long all fleets run after the last rollout, to compare them.
	settled = 2 * time.Hour
	tick    = 10 * time.Minute
)

// catalogueOf lists the services that a run may have. size is how many of them a host has.
func catalogueOf(seed uint64, m machine.Machine, y memsys.System, size int) ([]fleet.Service, error) {
	p, err := fleet.Generate(seed, fleet.HostOf(m, y), fleet.Size{Servers: 1, Minutes: 60, Workloads: size})
	if err != nil {
		return nil, err
	}
	return p.Services, nil
}

// run is a run under way: the fleet of the loop, and two that it is compared with.
type run struct {
	c         Config
	store     *sqlite.Store
	folder    *deploy.Folder
	runner    deploy.Runner
	chooser   hub.Chooser
	fleets    [3][]*host // of the loop; never bound; all bound unconditionally
	now       time.Time
	latencies [3]map[string]*mean // of the last part, by service
	comparing bool
	report    Report
}

const (
	looped = iota
	control
	blind
)

// mean of a figure.
type mean struct{ sum, n float64 }

// Run goes through the loop once.
//
//  1. All services are watched, none is bound.
//  2. The model is asked which services are worth binding. Those are rolled out, all at once; others are left alone.
//  3. Every ten minutes rollouts take what was shown, and hosts get their orders.
//  4. When all have ended, the fleet is compared with one in which nothing was ever bound, and with
//     one in which everything was bound unconditionally.
func Run(ctx context.Context, c Config) (Report, error) {
	r, err := newRun(ctx, &c)
	if err != nil {
		return Report{}, err
	}
	defer r.store.Close()
	if err := r.pass(ctx, watchFor, "watching"); err != nil { // 1
		return Report{}, err
	}
	if err := r.ask(ctx); err != nil { // 2
		return Report{}, err
	}
	for begun := r.now; !r.over(); { // 3
		if r.now.Sub(begun) > atMost {
			return Report{}, fmt.Errorf("rollouts have not ended after %v of the simulated clock", atMost)
		}
		if err := r.pass(ctx, tick, "rolling out"); err != nil {
			return Report{}, err
		}
		if err := r.tick(ctx); err != nil {
			return Report{}, err
		}
	}
	if err := r.pass(ctx, settled/2, "settling"); err != nil {
		return Report{}, err
	}
	r.comparing = true
	if err := r.pass(ctx, settled/2, "comparing"); err != nil { // 4
		return Report{}, err
	}
	return r.finish(ctx)
}

func newRun(ctx context.Context, c *Config) (*run, error) {
	if c.Hosts < 8 || len(c.Services) < 1 {
		return nil, fmt.Errorf("%d hosts, %d services: want 8 hosts or more, and a service", c.Hosts, len(c.Services))
	}
	if c.Progress == nil {
		c.Progress = func(time.Duration, string) {}
	}
	all, err := catalogueOf(c.Seed, c.Machine, c.System, len(c.Services))
	if err != nil {
		return nil, err
	}
	var services []fleet.Service
	for _, name := range c.Services {
		i := slices.IndexFunc(all, func(s fleet.Service) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no service %q in the catalogue of seed %d", name, c.Seed)
		}
		services = append(services, all[i])
	}
	r := &run{c: *c, now: c.Start}
	for i := range r.fleets {
		if r.fleets[i], err = newHosts(c, services); err != nil {
			return nil, err
		}
		r.latencies[i] = map[string]*mean{}
	}
	if r.folder, err = deploy.OpenFolder(filepath.Join(c.Dir, "rollouts"), true); err != nil {
		return nil, err
	}
	if r.store, err = sqlite.Open(ctx, filepath.Join(c.Dir, "status.db")); err != nil {
		return nil, err
	}
	now, log, named := func() time.Time { return r.now }, slog.New(slog.DiscardHandler), func(string) (bool, error) { return false, nil }
	r.runner = deploy.Runner{Folder: r.folder, Store: r.store, Now: now, Log: log, Named: named}
	r.chooser = hub.Chooser{
		Folder: r.folder, Store: r.store, Model: func() (*gain.Model, error) { return c.Model, nil }, Now: now, Log: log, Named: named, Seed: c.Seed,
		Rules: hub.Start{Services: []string{"*"}, Least: c.Least, AtOnce: len(c.Services), Indicator: deploy.Latency},
	}
	return r, nil
}

// pass lets all fleets run.
func (r *run) pass(ctx context.Context, d time.Duration, what string) error {
	for end := r.now.Add(d); r.now.Before(end); {
		if err := ctx.Err(); err != nil {
			return err
		}
		var sent []store.Batch
		for f, hosts := range r.fleets {
			for _, h := range hosts {
				b, latency := h.minute()
				if f == looped {
					sent = append(sent, b)
				}
				r.compare(f, latency)
			}
		}
		r.now = r.now.Add(period)
		if err := add(ctx, r.store, sent); err != nil {
			return err
		}
	}
	r.c.Progress(r.now.Sub(r.c.Start), what)
	return nil
}

func (r *run) compare(f int, latency map[string]float64) {
	if !r.comparing {
		return
	}
	for service, x := range latency {
		if r.latencies[f][service] == nil {
			r.latencies[f][service] = &mean{}
		}
		r.latencies[f][service].sum += x
		r.latencies[f][service].n++
	}
}

// ask asks the model, and has the hub start a rollout of each service that is worth it and fits.
func (r *run) ask(ctx context.Context) error {
	var err error
	if r.report.Sensitivity, err = r.chooser.Ask(ctx); err != nil {
		return err
	}
	if err := r.chooser.Tick(ctx); err != nil {
		return err
	}
	for _, h := range r.fleets[blind] {
		for _, s := range r.c.Services {
			h.orders[s] = true
		}
	}
	return nil
}

// tick is what a hub does every ten minutes, and its hosts.
func (r *run) tick(ctx context.Context) error {
	if err := r.runner.Tick(ctx); err != nil {
		return err
	}
	for _, h := range r.fleets[looped] {
		clear(h.orders)
		for _, o := range r.folder.Orders(h.name) {
			h.orders[o.Service] = o.Approved
		}
	}
	return nil
}

func (r *run) over() bool {
	all, err := r.folder.All()
	return err == nil && !slices.ContainsFunc(all, func(x deploy.Rollout) bool { return !x.State.Ended() })
}

// finish makes the report.
func (r *run) finish(ctx context.Context) (Report, error) {
	all, err := r.folder.All()
	if err != nil {
		return Report{}, err
	}
	r.report.fill(r, all)
	rows, _, err := deploy.Rows(ctx, r.folder, r.store)
	for i := range rows {
		rows[i].Source, rows[i].Machine = gain.Simulator, r.c.Machine.Origin
	}
	r.report.Rows, r.report.RowCount = rows, len(rows)
	return r.report, err
}
