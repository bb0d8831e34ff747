// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/profiling"
	"homenode/internal/schema"
)

// DeployOptions are what 'homenode deploy' is asked for.
type DeployOptions struct {
	// Options are those of each trial. Its workload, files and owners are chosen here.
	Options
	Config        agent.Config
	Service       string
	Least, Margin float64
	// Read reads the configuration anew, before each replica: hours may pass between two. nil: it
	// stays as it is.
	Read func() (agent.Config, error)
	// Tell tells people of a step of a deployment that is on record; nil: there is no webhook.
	Tell func(context.Context, profiling.Deployment, profiling.DeployEvent) error

	try  func(context.Context, Options, io.Writer) (profiling.TrialReport, error) // nil: Experiment
	list func(patterns []string) ([]string, error)                                // nil: of this host
}

// Deploy tries the replicas of a service one after the other, and keeps the service approved where
// its first replica gains and no other is hurt. Every step is on record before the next begins, so
// that the same call continues after an interrupt or a kill. A deployment without steps is none.
func Deploy(ctx context.Context, o DeployOptions, stderr io.Writer) (d profiling.Deployment, err error) {
	asked, err := o.begin()
	if err != nil {
		return d, exit.BadInput(err)
	}
	unlock, err := o.lockAll()
	if err != nil {
		return d, err
	}
	defer unlock()
	if d, err = o.continued(asked); err != nil {
		return profiling.Deployment{}, exit.BadInput(err)
	}
	notes, err := o.record(ctx, &d) // before anything is changed
	if cli.Tell(stderr, notes); err != nil {
		return d, err
	}
	for {
		name, more := d.Next()
		if !more {
			return d, nil
		}
		if err := o.heed(); err != nil {
			return d, exit.BadInput(fmt.Errorf("the deployment of %q stopped before %s, with nothing of it bound; the same command continues, 'homenode deploy rollback' ends it: %w", o.Service, name, err))
		}
		cli.Tell(stderr, []string{fmt.Sprintf("replica %d of %d of %s: %s", len(d.Trials)+1, len(d.Replicas), o.Service, name)})
		r, failed := o.trial(ctx, d, name, stderr)
		next, code := after(d, name, r, failed, now())
		switch {
		case code == "" && ctx.Err() != nil:
			return d, exit.With(exit.Partly, fmt.Errorf("interrupted: the same command continues: %w", failed))
		case code == "": // it was not measured
			return d, failed
		}
		notes, err := o.record(ctx, &next)
		cli.Tell(stderr, notes)
		if err := errors.Join(err, o.forgetTrials()); err != nil {
			return d, errors.Join(failed, err)
		}
		if d = next; failed != nil {
			return d, exit.With(exit.Partly, failed)
		}
	}
}

// PlanDeployment says what Deploy would do with each replica that is still to be tried, and how long it takes.
func PlanDeployment(ctx context.Context, o DeployOptions, stderr io.Writer) (d profiling.Deployment, all []profiling.TrialReport, err error) {
	if d, err = o.begin(); err == nil {
		d, err = o.continued(d)
	}
	if err != nil {
		return d, nil, exit.BadInput(err)
	}
	o.DryRun = true
	for i := len(d.Trials); i < len(d.Replicas); i++ {
		r, err := o.trial(ctx, d, d.Replicas[i], stderr)
		if err != nil {
			return d, all, err
		}
		all = append(all, r)
	}
	return d, all, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// begin is the deployment that is asked for, as one that was never tried.
func (o *DeployOptions) begin() (d profiling.Deployment, err error) {
	if err := o.allowed(); err != nil {
		return d, err
	}
	if o.try == nil {
		o.try = Experiment
	}
	if o.list == nil {
		o.list = func(patterns []string) ([]string, error) { return kernel.WorkloadsIn(kernel.At("/"), patterns) }
	}
	if o.MetricText == "" {
		return d, errors.New("--metric is missing: name a number that says how fast a replica is")
	}
	check := o.Options
	if err := check.prepare(); err != nil {
		return d, err
	}
	d = profiling.Deployment{Service: o.Service, Least: o.Least, Margin: o.Margin, Nodes: o.Nodes,
		Job: profiling.Job{Metric: check.Metric, Warm: o.Warm, For: o.For, Repeats: o.Repeats, Seed: o.Seed, MostLoss: o.MostLoss}}
	if d.Replicas, err = o.replicas(); err != nil {
		return d, err
	}
	if o.Repeats%4 != 0 {
		return d, fmt.Errorf("--repeats %d: want a multiple of 4: each trial's row has the gain of two halves alike", o.Repeats)
	}
	running := d.Job
	running.Workload = o.Service // its metric is of a workload that runs already
	if err := running.Check(); err != nil {
		return d, err
	}
	if len(d.Replicas) > 1 && check.Metric.Kind != profiling.IPC && !profiling.PerWorkload(o.MetricText) {
		return d, fmt.Errorf("--metric is the same number for all %d replicas, so what binding does to one is hardly in it: put {workload}, the last part of a replica's path, into it", len(d.Replicas))
	}
	return profiling.BeginDeployment(d, now(), nil)
}

// replicas are the names of the service's workloads on this host.
func (o *DeployOptions) replicas() (names []string, err error) {
	ids, err := o.list(o.Config.Cgroups)
	if err != nil {
		return nil, err
	}
	all, excluded := o.Config.Replicas(o.Service, ids)
	if len(excluded) > 0 {
		return nil, fmt.Errorf("the configuration excludes %s, a replica of %q: an agent binds all replicas of a service on a host or none: take it out of excluded, or give it a service of its own", schema.Name(excluded[0]), o.Service)
	}
	asked := agent.ExcludedNow(o.Config.StateDir, time.Now())
	for _, id := range all {
		if slices.Contains(asked, schema.Name(id)) {
			return nil, fmt.Errorf("the running agent was asked not to bind %s, a replica of %q: wait until that ends, or run 'homenode include'", schema.Name(id), o.Service)
		}
		if _, err := profiling.ForWorkload(o.MetricText, id); err != nil {
			return nil, err
		}
		names = append(names, schema.Name(id))
	}
	return names, nil
}

// heed looks again at what the configuration and the running agent say.
func (o *DeployOptions) heed() error {
	if o.Read != nil {
		c, err := o.Read()
		if err != nil {
			return err
		}
		if was := &o.Config; c.StateDir != was.StateDir || c.Deployments != was.Deployments {
			return errors.New("the configuration names other folders than when this began")
		}
		o.Config = c
	}
	if err := o.allowed(); err != nil {
		return err
	}
	_, err := o.replicas()
	return err
}

// allowed refuses services that others decide about.
func (o *DeployOptions) allowed() error {
	c, known := o.Config, false
	switch {
	case c.Deployments == "":
		return errors.New("the configuration says deployments: none: give it a folder")
	case c.Hub.On():
		return errors.New("this host has a hub: a service is rolled out for all hosts at once: run 'homenode-hub deploy' there")
	case c.Mode != agent.ModeAct:
		return fmt.Errorf("the configuration says mode: %s: an agent would never bind what is deployed", c.Mode)
	}
	for _, s := range c.Services { // several rules may be of one service
		if s.Name == o.Service && s.Approved && !s.Deployed {
			return fmt.Errorf("the configuration approves %q: an agent binds it without a trial: remove approved: true, or use 'homenode experiment'", o.Service)
		}
		known = known || s.Name == o.Service
	}
	if !known {
		return fmt.Errorf("the configuration has no service %q: add a rule with its name and match", o.Service)
	}
	return nil
}

// continued is the deployment on record, if the same was asked for. One that was rolled back is tried
// anew, and its steps stay.
func (o *DeployOptions) continued(d profiling.Deployment) (profiling.Deployment, error) {
	old, err := agent.ReadDeployment(agent.DeploymentFile(o.Config.Deployments, o.Service))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return d, err
	case old.Phase == profiling.RolledBack:
		return profiling.BeginDeployment(d, d.Began, old.Events)
	case old.SameJob(d):
		return old, nil
	case old.Phase == profiling.Kept:
		return d, fmt.Errorf("%q is deployed since %s, with other settings or replicas: 'homenode deploy rollback' undoes it", o.Service, old.Last().At.Format(time.DateTime))
	case len(old.Trials) > 0 || len(o.unfinished()) > 0:
		return d, fmt.Errorf("a deployment of %q is under way with other settings or replicas: give the same, or end it: homenode deploy rollback", o.Service)
	}
	return profiling.BeginDeployment(d, d.Began, old.Events) // its metric did not answer, say: nothing was changed
}

// trial binds and unbinds one replica. What an earlier instance of it left unfinished is gone with it.
func (o *DeployOptions) trial(ctx context.Context, d profiling.Deployment, name string, stderr io.Writer) (profiling.TrialReport, error) {
	t := o.ofTrial()
	t.Workload, t.Application = schema.Path(name), o.Service
	t.Near = o.Config.NearOf(t.Workload)
	t.CommandLine = "homenode deploy start" // no names: the row can be handed on
	var err error
	if t.MetricText, err = profiling.ForWorkload(o.MetricText, t.Workload); err != nil {
		return profiling.TrialReport{}, exit.BadInput(err)
	}
	if t.DryRun {
		return o.try(ctx, t, stderr)
	}
	t.Rows = filepath.Join(o.folder(), fmt.Sprintf("%s-%d.parquet", d.Began.Format("20060102T150405"), len(d.Trials)+1))
	t.Saved, t.keeps = t.Rows+unfinished, true
	if err := os.MkdirAll(t.State, 0o700); err != nil {
		return profiling.TrialReport{}, err
	}
	r, err := o.try(ctx, t, stderr)
	if errors.Is(err, errEarlier) {
		if err := os.Remove(t.Saved); err != nil {
			return r, err
		}
		r, err = o.try(ctx, t, stderr)
	}
	return r, err
}

// ofTrial are the options of a trial, with what the agent's configuration says.
func (o *DeployOptions) ofTrial() Options {
	t, c := o.Options, &o.Config
	t.State = agent.TrialJournal(c.StateDir, o.Service)
	t.DirectOwners = append(slices.Clone(c.DirectOwners), t.DirectOwners...)
	t.Runtimes, t.MAO, t.Reserved = c.Runtimes, &c.MAO, c.MAO.ReservedCPUs
	if t.Profile == "" {
		t.Profile = c.Profile
	}
	return t
}

// after is the deployment after a trial, and the code of its last step; "": nothing was found out.
func after(d profiling.Deployment, name string, r profiling.TrialReport, failed error, at time.Time) (profiling.Deployment, profiling.DeployCode) {
	if errors.Is(failed, errNotBack) { // it is not over: 'deploy rollback', or the same command
		return d, ""
	}
	why := ""
	if failed != nil {
		why = failed.Error()
	}
	for _, end := range []struct {
		is   bool
		code profiling.DeployCode
	}{
		{r.Outcome == "stopped", profiling.DeployHarm},
		{errors.Is(failed, profiling.ErrConstant), profiling.DeployConstant},
		{errors.Is(failed, profiling.ErrJumped), profiling.DeployNewUnit},
		{errors.Is(failed, kernel.ErrGone), profiling.DeployGone},
	} {
		if end.is {
			if why == "" && len(r.Notes) > 0 {
				why = r.Notes[0]
			}
			return d.Stop(end.code, why, at), end.code
		}
	}
	if failed != nil || r.Outcome != "complete" {
		return d, ""
	}
	d = d.Take(profiling.TrialOf(name, r, at))
	return d, d.Last().Code
}

// folder has what trials of the service left: rows, and what is unfinished.
func (o *DeployOptions) folder() string {
	file := agent.DeploymentFile(o.Config.Deployments, o.Service)
	return strings.TrimSuffix(file, filepath.Ext(file))
}

// unfinished are the saved states of trials that are not over.
func (o *DeployOptions) unfinished() (files []string) {
	all, _ := os.ReadDir(o.folder()) // none: nothing was tried
	for _, f := range all {
		if strings.HasSuffix(f.Name(), unfinished) {
			files = append(files, filepath.Join(o.folder(), f.Name()))
		}
	}
	return files
}

// forgetTrials removes them.
func (o *DeployOptions) forgetTrials() error {
	for _, f := range o.unfinished() {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
