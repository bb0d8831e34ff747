// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"time"

	"homenode/internal/schema"
)

// Reloaded describes what a new configuration changes.
type Reloaded struct {
	At      time.Time `json:"at"`
	Changed []string  `json:"changed_settings"` // takes effect with the next round
	// Waits are settings that differ in the file and need a restart.
	Waits []string `json:"waits_for_restart,omitempty"`
	Error string   `json:"error,omitempty"` // why nothing was changed
}

// ErrNoReload is returned by an agent that was not started from a file.
var ErrNoReload = errors.New("this agent has no configuration file to read again")

// ErrConfig is wrapped when a new configuration cannot be used; the old one stays.
var ErrConfig = errors.New("the configuration is unchanged")

// settings are the parts of a configuration by their names in the file. Those that name
// what is opened at the start (a lock, counters, sockets) need a restart.
var settings = []struct {
	name    string
	restart bool
	of      func(c *Config) any
}{
	{"period", false, func(c *Config) any { return c.Period }},
	{"calm_period", false, func(c *Config) any { return c.CalmPeriod }},
	{"services", false, func(c *Config) any { return c.Services }},
	{"excluded", false, func(c *Config) any { return c.Excluded }},
	{"mao", false, func(c *Config) any { return c.MAO }},
	{"actuate", false, func(c *Config) any { p := c.Actuate; p.Profile = nil; return p }},
	{"profile", false, func(c *Config) any { return []any{c.Profile, c.Actuate.Profile} }},
	{"log", false, func(c *Config) any { return c.Log }},
	{"decisions", false, func(c *Config) any { return c.Decisions }},
	{"record", false, func(c *Config) any { return c.Record }},
	{"history", false, func(c *Config) any { return c.History }},
	{"deployments", false, func(c *Config) any { return c.Deployments }},
	{"metrics: max_workloads", false, func(c *Config) any { return c.Metrics.MaxWorkloads }},
	{"mode", true, func(c *Config) any { return c.Mode }},
	{"state_dir", true, func(c *Config) any { return c.StateDir }},
	{"cgroups", true, func(c *Config) any { return c.Cgroups }},
	{"direct_owners", true, func(c *Config) any { return c.DirectOwners }},
	{"count_user_only", true, func(c *Config) any { return c.UserOnly }},
	{"events", true, func(c *Config) any { return c.Events }},
	{"count_ticks", true, func(c *Config) any { return c.Ticks }},
	{"docker_socket", true, func(c *Config) any { return c.Runtimes.DockerSocket }},
	{"docker_memory", true, func(c *Config) any { return c.Runtimes.DockerMemory }},
	{"containerd_socket", true, func(c *Config) any { return c.Runtimes.ContainerdSocket }},
	{"hint_faults", true, func(c *Config) any { return c.Hints }},
	{"api", true, func(c *Config) any { return c.API }},
	{"metrics: listen", true, func(c *Config) any { return c.Metrics.Listen }},
	{"hub", true, func(c *Config) any { return c.Hub }},
}

// adopt returns next, with old's values of the settings that need a restart.
func adopt(old, next Config) (Config, Reloaded) {
	r := Reloaded{Changed: []string{}}
	for _, s := range settings {
		if reflect.DeepEqual(s.of(&old), s.of(&next)) {
			continue
		}
		if s.restart {
			r.Waits = append(r.Waits, s.name)
		} else {
			r.Changed = append(r.Changed, s.name)
		}
	}
	next.Mode, next.StateDirAsked = old.Mode, old.StateDirAsked
	next.StateDir, next.Cgroups, next.DirectOwners, next.UserOnly = old.StateDir, old.Cgroups, old.DirectOwners, old.UserOnly
	next.Events, next.Ticks, next.Runtimes, next.Hints = old.Events, old.Ticks, old.Runtimes, old.Hints
	next.API, next.Metrics.Listen, next.Hub = old.API, old.Metrics.Listen, old.Hub
	return next, r
}

// Reload reads the configuration again. The next round, at most one period away, takes a
// good one. After a bad one nothing changes, and the error says why. It is safe to call
// at any time, from any goroutine.
func (a *Agent) Reload() (Reloaded, error) {
	if a.o.Load == nil {
		return Reloaded{}, ErrNoReload
	}
	next, err := a.o.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		r := Reloaded{At: time.Now().Round(0), Error: err.Error()}
		a.reloads.failed++
		a.reloads.last = &r
		a.o.Log.Error("reload: "+ErrConfig.Error(), "error", err)
		return r, errors.Join(ErrConfig, err)
	}
	if a.o.DryRun { // a dry run's files are in their own folder
		next.StateDir = a.started.StateDir
		next = dryConfig(next, next.StateDir)
	}
	config, r := adopt(a.started, next)
	r.At = time.Now().Round(0)
	a.pending, a.started = &config, config
	a.reloads.done++
	a.reloads.last = &r
	a.o.Log.Info("reload", "changed", r.Changed, "waits_for_restart", r.Waits)
	a.awake()
	return r, nil
}

// swap takes a pending configuration, between two rounds.
func (a *Agent) swap() {
	a.mu.Lock()
	next := a.pending
	a.pending = nil
	a.mu.Unlock()
	if next == nil {
		return
	}
	old := a.o.Config
	a.o.Config = *next
	a.quiet = 0 // the new configuration may lead to an action
	a.status.Period = next.Period
	a.tellUnread()
	if a.o.Relog != nil && old.Log != next.Log {
		a.o.Relog(next.Log)
	}
	a.openDecisions()
	if old.Record != next.Record || old.Text != next.Text {
		a.openRecord()
	}
	a.resolveNear()
}

// Exclude keeps a workload from being bound until a time: to the policy its service is
// not approved. A bound workload is unbound in the next round. The exclusion ends with
// the agent at the latest. False means that too many workloads are excluded already.
func (a *Agent) Exclude(workload string, until time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.excluded == nil {
		a.excluded = map[string]time.Time{}
	}
	if len(a.excluded) >= maxExcluded && a.excluded[workload].IsZero() {
		return false
	}
	a.excluded[workload] = until
	a.o.Log.Info("excluded", "workload", workload, "until", until)
	a.awake()
	return true
}

// awake tells the loop that a configuration or exclusion is pending.
func (a *Agent) awake() {
	select {
	case a.wake <- struct{}{}:
	default: // the loop knows already
	}
}

// maxExcluded bounds how many exclusions the API may make the agent remember.
const maxExcluded = 10_000

// Include ends an exclusion, of a workload's path or its name (package schema): the workload
// may be gone. False means that there was none.
func (a *Agent) Include(workload string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.excluded {
		if schema.Name(id) == workload {
			workload = id
		}
	}
	_, was := a.excluded[workload]
	delete(a.excluded, workload)
	a.awake()
	return was
}

// excludedNow drops the exclusions that have ended.
func (a *Agent) excludedNow(now time.Time) []Excluded {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []Excluded
	for id, until := range a.excluded {
		if now.After(until) {
			delete(a.excluded, id)
			continue
		}
		all = append(all, Excluded{Workload: id, Until: until})
	}
	slices.SortFunc(all, func(x, y Excluded) int { return cmp.Compare(x.Workload, y.Workload) })
	return all
}
