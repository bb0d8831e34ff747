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
	"strings"
	"time"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/profiling"
	"homenode/internal/schema"
)

// DeployOptions are what 'homenode deploy' is asked for.
type DeployOptions struct {
	// Options are those of each trial. Its workload and files are chosen here.
	Options
	Config        agent.Config
	Service       string
	Least, Margin float64

	try  func(context.Context, Options, io.Writer) (profiling.TrialReport, error) // nil: Experiment
	list func(patterns []string) ([]string, error)                                // nil: of this host
}

// Deploy tries the replicas of a service one after the other, and keeps the service approved where
// its first replica gains and no other is hurt. Every step is on record before the next begins, so
// that the same call continues after an interrupt or a kill.
func Deploy(ctx context.Context, o DeployOptions, stderr io.Writer) (d profiling.Deployment, err error) {
	if d, err = o.begin(); err != nil {
		return d, exit.BadInput(err)
	}
	unlock, err := lockDeployments(o.Config.Deployments)
	if err != nil {
		return d, err
	}
	defer unlock()
	if d, err = o.continued(d); err != nil {
		return d, exit.BadInput(err)
	}
	if err := o.save(d); err != nil { // before anything is changed
		return d, err
	}
	for {
		name, more := d.Next()
		if !more {
			return d, nil
		}
		cli.Tell(stderr, []string{fmt.Sprintf("replica %d of %d of %s: %s", len(d.Trials)+1, len(d.Replicas), o.Service, name)})
		r, failed := o.trial(ctx, name, len(d.Trials), stderr)
		next, code := after(d, name, r, failed, time.Now())
		if code == "" { // it was not measured: the same command continues
			return d, failed
		}
		if err := o.save(next); err != nil {
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
		r, err := o.trial(ctx, d.Replicas[i], i, stderr)
		if err != nil {
			return d, all, err
		}
		all = append(all, r)
	}
	return d, all, nil
}

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
	if o.MetricText == "" && o.latencyFile() != "" {
		o.MetricText, o.Metric.LowerIsBetter = "file:"+o.latencyFile(), true
	}
	if o.MetricText == "" {
		return d, fmt.Errorf("--metric is missing: %q has no latency_file in the configuration either: name a number that says how fast it is", o.Service)
	}
	o.Metric.Server = o.Prometheus
	metric, err := withFlags(o.MetricText, o.Metric)
	if err != nil {
		return d, err
	}
	ids, err := o.list(o.Config.Cgroups)
	if err != nil {
		return d, err
	}
	d = profiling.Deployment{Service: o.Service, Least: o.Least, Margin: o.Margin,
		Job: profiling.Job{Metric: metric, Warm: o.Warm, For: o.For, Repeats: o.Repeats, Seed: o.Seed, MostLoss: o.MostLoss}}
	for _, id := range o.Config.Replicas(o.Service, ids) {
		if _, err := profiling.ForWorkload(o.MetricText, id); err != nil {
			return d, err
		}
		d.Replicas = append(d.Replicas, schema.Name(id))
	}
	if o.Repeats%4 != 0 {
		return d, fmt.Errorf("--repeats %d: want a multiple of 4: each trial's row has the gain of two halves alike", o.Repeats)
	}
	// The metric is of a workload that runs already, so this checks as a trial does.
	check := d.Job
	check.Workload = o.Service
	if err := check.Check(); err != nil {
		return d, err
	}
	return profiling.BeginDeployment(d, time.Now().UTC().Truncate(time.Second), nil)
}

// allowed refuses services that others decide about.
func (o *DeployOptions) allowed() error {
	c := o.Config
	switch {
	case c.Deployments == "":
		return errors.New("the configuration says deployments: none: give it a folder")
	case c.Hub.On():
		return errors.New("this host has a hub: a service is rolled out for all hosts at once: run 'homenode-hub deploy' there")
	case c.Mode != agent.ModeAct:
		return fmt.Errorf("the configuration says mode: %s: an agent would never bind what is deployed", c.Mode)
	}
	for _, s := range c.Services {
		switch {
		case s.Name != o.Service:
			continue
		case s.Approved && !s.Deployed:
			return fmt.Errorf("the configuration approves %q: an agent binds it without a trial: remove approved: true, or use 'homenode experiment'", o.Service)
		}
		return nil
	}
	return fmt.Errorf("the configuration has no service %q: add a rule with its name and match", o.Service)
}

// latencyFile is where the service reports its latency; "": nowhere.
func (o *DeployOptions) latencyFile() string {
	for _, s := range o.Config.Services {
		if s.Name == o.Service {
			return s.LatencyFile
		}
	}
	return ""
}

// continued is the deployment on record, if it is under way and the same was asked for. One that was
// rolled back is tried anew, and its steps stay.
func (o *DeployOptions) continued(d profiling.Deployment) (profiling.Deployment, error) {
	old, err := agent.ReadDeployment(agent.DeploymentFile(o.Config.Deployments, o.Service))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return d, nil
	case err != nil:
		return d, err
	case old.Phase == profiling.Kept:
		return d, fmt.Errorf("%q is deployed since %s: 'homenode deploy rollback' undoes it", o.Service, old.Last().At.Format(time.DateTime))
	case old.Phase == profiling.RolledBack:
		return profiling.BeginDeployment(d, d.Began, old.Events)
	case !old.SameJob(d):
		return d, fmt.Errorf("a deployment of %q is under way with other settings or replicas: give the same, or end it: homenode deploy rollback", o.Service)
	}
	return old, nil
}

// trial binds and unbinds one replica.
func (o *DeployOptions) trial(ctx context.Context, name string, number int, stderr io.Writer) (profiling.TrialReport, error) {
	t := o.Options
	t.Workload, t.Application = schema.Path(name), o.Service
	t.State = journalOf(o.Config)
	if !t.DryRun {
		t.Rows, t.Saved = o.rows(number), o.rows(number)+unfinished
	}
	t.CommandLine = "homenode deploy start" // no names: the row can be handed on
	var err error
	if t.MetricText, err = profiling.ForWorkload(o.MetricText, t.Workload); err != nil {
		return profiling.TrialReport{}, exit.BadInput(err)
	}
	if !t.DryRun {
		if err := os.MkdirAll(t.State, 0o700); err != nil {
			return profiling.TrialReport{}, err
		}
	}
	return o.try(ctx, t, stderr)
}

const unfinished = ".unfinished"

// rows is the file of a trial's row for a model.
func (o *DeployOptions) rows(number int) string {
	return fmt.Sprintf("%s.trial-%d.parquet", strings.TrimSuffix(agent.DeploymentFile(o.Config.Deployments, o.Service), filepath.Ext(agent.DeploymentFile("", ""))), number+1)
}

// journalOf is the folder of the trials' journal: an agent has its own. It is of this boot, as the
// settings are that it has.
func journalOf(c agent.Config) string { return filepath.Join(c.StateDir, "deploy") }

func (o *DeployOptions) save(d profiling.Deployment) error { return saveDeployment(o.Config, d) }

func saveDeployment(c agent.Config, d profiling.Deployment) error {
	data, err := d.Encode()
	if err == nil {
		err = unix.ReplaceFile(agent.DeploymentFile(c.Deployments, d.Service), data)
	}
	if err != nil {
		return fmt.Errorf("write the deployment of %q: %w", d.Service, err)
	}
	return nil
}

// after is the deployment after a trial, and the code of its last step; "": nothing was found out.
func after(d profiling.Deployment, name string, r profiling.TrialReport, failed error, now time.Time) (profiling.Deployment, profiling.DeployCode) {
	now = now.UTC().Truncate(time.Second)
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
			return d.Stop(end.code, why, now), end.code
		}
	}
	if failed != nil || r.Outcome != "complete" {
		return d, ""
	}
	d = d.Take(profiling.TrialOf(name, r, now))
	return d, d.Last().Code
}

// lockDeployments lets one program at a time change what is on record.
func lockDeployments(folder string) (unlock func(), err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, exit.Precondition(err)
	}
	f, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, exit.Precondition(err)
	}
	ok, err := unix.TryLock(f)
	if err == nil && !ok {
		err = exit.BadInput(fmt.Errorf("another 'homenode deploy' is at work in %s: wait for it, or interrupt it", folder))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// DeploymentOf is a service's deployment.
func DeploymentOf(c agent.Config, service string) (profiling.Deployment, error) {
	d, err := agent.ReadDeployment(agent.DeploymentFile(c.Deployments, service))
	if c.Deployments == "" || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no deployment of %q: 'homenode deploy status' lists those that there are", service)
	}
	return d, exit.BadInput(err)
}

// change reads a service's deployment under the lock.
func change(c agent.Config, service string, do func(profiling.Deployment) error) error {
	if _, err := DeploymentOf(c, service); err != nil {
		return err
	}
	unlock, err := lockDeployments(c.Deployments)
	if err != nil {
		return err
	}
	defer unlock()
	d, err := DeploymentOf(c, service)
	if err != nil {
		return err
	}
	return do(d)
}

// RollBack ends a deployment, also after its end: the service is approved no more, and what a killed
// trial left set is put back.
func RollBack(ctx context.Context, o DeployOptions, why string) (d profiling.Deployment, restored []journal.Restored, err error) {
	err = change(o.Config, o.Service, func(was profiling.Deployment) error {
		if d = was; was.Phase == profiling.RolledBack {
			return exit.With(exit.Nothing, fmt.Errorf("%q is rolled back already", o.Service))
		}
		d = was.Stop(profiling.DeployOperator, why, time.Now().UTC().Truncate(time.Second))
		if err := o.save(d); err != nil { // the agent is told first: it may not bind what is put back
			return err
		}
		if _, err := os.Stat(journalOf(o.Config)); err == nil {
			if restored, err = agent.Restore(ctx, journalOf(o.Config), o.Config.DirectOwners, o.Config.Runtimes); err != nil {
				return err
			}
		}
		return o.forgetTrials(len(d.Replicas))
	})
	return d, restored, err
}

// forgetTrials removes what unfinished trials measured.
func (o *DeployOptions) forgetTrials(n int) error {
	for i := range n {
		if err := os.Remove(o.rows(i) + unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ForgetDeployment removes a deployment that has ended: the configuration alone says then whether the
// service is bound.
func ForgetDeployment(o DeployOptions) error {
	return change(o.Config, o.Service, func(d profiling.Deployment) error {
		if d.Phase == profiling.Trying {
			return exit.BadInput(fmt.Errorf("the deployment of %q is under way: 'homenode deploy rollback' ends it", o.Service))
		}
		return os.Remove(agent.DeploymentFile(o.Config.Deployments, o.Service))
	})
}
