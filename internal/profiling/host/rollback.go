// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"homenode/internal/agent"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/profiling"
	"homenode/internal/webhook"
)

// RollBack ends a deployment, also after its end: the service is approved no more, and what a killed
// trial left is put back. It may be asked again until everything is; notes say what was not as it was.
func RollBack(ctx context.Context, o DeployOptions, why string) (d profiling.Deployment, notes []string, err error) {
	err = o.change(func(was profiling.Deployment) error {
		if d = was; was.Phase != profiling.RolledBack {
			d = was.Stop(profiling.DeployOperator, why, now())
		}
		untold, err := o.record(ctx, &d) // first, so that an agent does not bind what is put back
		if err != nil {
			return err
		}
		left := false
		notes, left, err = o.putBack(ctx)
		notes = append(untold, notes...)
		if err == nil && !left && was.Phase == profiling.RolledBack {
			err = exit.With(exit.Nothing, fmt.Errorf("%q is rolled back already, and nothing is left of its trials", o.Service))
		}
		return err
	})
	return d, notes, err
}

// putBack puts back what killed trials left: settings, and how the memory was spread. left: there was something.
func (o *DeployOptions) putBack(ctx context.Context) (notes []string, left bool, err error) {
	for _, file := range o.unfinished() {
		more, err := o.trialBack(ctx, file)
		if notes, left = append(notes, more...), true; err != nil {
			return notes, left, fmt.Errorf("put back what a trial left: %w: the same command tries again", err)
		}
	}
	t := o.ofTrial()
	if !journal.In(t.State) { // nothing was set since the machine started
		return notes, left, o.forgetTrials()
	}
	restored, err := agent.RestoreTrial(ctx, t.State, t.DirectOwners, t.Runtimes)
	for _, r := range restored {
		notes, left = append(notes, r.String()), true
		if r.Result == journal.Kept || r.Result == journal.NotDone {
			err = errors.Join(err, fmt.Errorf("%s: the same command tries again", r))
		}
	}
	if err == nil {
		err = o.forgetTrials()
	}
	return notes, left, err
}

// trialBack puts back the workload of a saved state, if it is still the one that was tried.
func (o *DeployOptions) trialBack(ctx context.Context, file string) (notes []string, err error) {
	data, err := unix.ReadAtMost(file, profiling.MaxState)
	if err != nil {
		return nil, err
	}
	s, err := profiling.DecodeState(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it, and its memory stays where it is", file, err)
	}
	t := o.ofTrial()
	t.Workload, t.Metric, t.resumes = s.Job.Workload, s.Job.Metric, true
	there, err := kernel.WorkloadsIn(kernel.At("/"), []string{kernel.Literal(t.Workload)})
	if err != nil || !slices.Contains(there, t.Workload) {
		return nil, err
	}
	if now, err := instance(t.Workload); err != nil || now != s.Instance {
		return nil, err
	}
	w, err := openWorkload(ctx, &t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	w.job, w.spread, w.home = s.Job, s.Spread, s.Home
	if err := w.begin(ctx, &t); err != nil {
		return nil, err
	}
	w.touched = true
	return w.Back()
}

// DeploymentOf is a service's deployment.
func DeploymentOf(c agent.Config, service string) (profiling.Deployment, error) {
	d, err := agent.ReadDeployment(agent.DeploymentFile(c.Deployments, service))
	if c.Deployments == "" || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no deployment of %q: 'homenode deploy status' lists those that there are", service)
	}
	return d, exit.BadInput(err)
}

// ForgetDeployment removes a deployment that has ended: the configuration alone says then whether the
// service is bound.
func ForgetDeployment(o DeployOptions) error {
	return o.change(func(d profiling.Deployment) error {
		if d.Phase == profiling.Trying || len(o.unfinished()) > 0 {
			return exit.BadInput(fmt.Errorf("the deployment of %q is under way: 'homenode deploy rollback' ends it", o.Service))
		}
		return unix.RemoveFile(agent.DeploymentFile(o.Config.Deployments, o.Service))
	})
}

// change reads a service's deployment under its lock.
func (o *DeployOptions) change(do func(profiling.Deployment) error) error {
	if _, err := DeploymentOf(o.Config, o.Service); err != nil {
		return err
	}
	unlock, err := o.lock(o.ownLock())
	if err != nil {
		return err
	}
	defer unlock()
	d, err := DeploymentOf(o.Config, o.Service)
	if err != nil {
		return err
	}
	return do(d)
}

// record puts a deployment on record, and then tells of the steps that were not told yet. What cannot
// be told waits for the next step, or the next command, and a note says so: it holds up nothing. A
// program that ends in between tells a step twice.
func (o *DeployOptions) record(ctx context.Context, d *profiling.Deployment) (notes []string, err error) {
	if err := o.save(*d); err != nil || o.Tell == nil {
		return nil, err
	}
	told := d.Told
	for _, e := range d.Events[told:] {
		if now().Sub(e.At) <= webhook.Stale {
			if err := o.Tell(context.WithoutCancel(ctx), *d, e); err != nil {
				notes = []string{"not told yet: " + err.Error()}
				break
			}
		}
		told++
	}
	if told == d.Told {
		return notes, nil
	}
	d.Told = told
	return notes, o.save(*d)
}

func (o *DeployOptions) save(d profiling.Deployment) error {
	data, err := d.Encode()
	if err == nil {
		err = unix.ReplaceFile(agent.DeploymentFile(o.Config.Deployments, d.Service), data)
	}
	if err != nil {
		return fmt.Errorf("write the deployment of %q: %w", d.Service, err)
	}
	return nil
}

// lockAll lets one service at a time be tried, as trials of two would be in each other's figures. What
// was deployed before can be rolled back meanwhile.
func (o *DeployOptions) lockAll() (unlock func(), err error) {
	if err := os.MkdirAll(o.folder(), 0o700); err != nil {
		return nil, exit.Precondition(err)
	}
	all, err := o.lock(filepath.Join(o.Config.Deployments, ".lock"))
	if err != nil {
		return nil, err
	}
	one, err := o.lock(o.ownLock())
	if err != nil {
		all()
		return nil, err
	}
	return func() { one(); all() }, nil
}

// ownLock is the file of the service's lock.
func (o *DeployOptions) ownLock() string { return filepath.Join(o.folder(), "deployment.lock") }

func (o *DeployOptions) lock(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, exit.Precondition(err)
	}
	ok, err := unix.TryLock(f)
	if err == nil && !ok {
		err = exit.BadInput(fmt.Errorf("another 'homenode deploy' is at work (%s): wait for it, or interrupt it", file))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}
