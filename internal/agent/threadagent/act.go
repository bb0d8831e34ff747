// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/owner/affinity"
	"homenode/internal/set"
)

// Actor moves threads, and puts back.
type Actor interface {
	DryRun() bool
	Apply(ctx context.Context, s action.Step) action.Outcome
	// Know names the threads that inherited nothing, whatever their affinity is.
	Know(known func(tid int, start uint64) bool)
	// Passing says that a thread that was given back may have started others before.
	Passing() bool
	// GiveBack gives threads that inherited an affinity of ours what they would have.
	GiveBack() ([]journal.Restored, error)
	Tidy() error
	PutBack(ctx context.Context) ([]journal.Restored, error)
	// PutBackWithout puts back although the run hangs, maybe in one of these calls; false:
	// it has ended before that began.
	PutBackWithout(ctx context.Context, ended func() bool) (restored []journal.Restored, hung bool, err error)
}

// Journalled acts on this host. Close gives up the journal's lock.
type Journalled struct {
	dir   string
	j     *journal.Journal // given up: nothing is changed with it any more
	owner journal.Owner
	apply *journal.Applier
}

// Open takes the journal's lock and puts back what a killed homenode left.
func Open(ctx context.Context, dir string, owner journal.Owner) (*Journalled, []journal.Restored, error) {
	j, err := journal.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	restored, err := j.Restore(ctx, owner)
	if err = errors.Join(err, j.Damage()); err != nil {
		err = fmt.Errorf("put back what an earlier homenode left: %w", err)
		return nil, restored, joinClose(err, j)
	}
	return &Journalled{dir, j, owner, j.Wrap(owner)}, restored, nil
}

func joinClose(err error, j *journal.Journal) error {
	if e := j.Close(); e != nil {
		return fmt.Errorf("%w; %w", err, e)
	}
	return err
}

// DryRun is false: it acts.
func (a *Journalled) DryRun() bool { return false }

// Apply takes a step.
func (a *Journalled) Apply(ctx context.Context, s action.Step) action.Outcome {
	return a.apply.Apply(ctx, s)
}

// Know names the threads that inherited nothing.
func (a *Journalled) Know(known func(tid int, start uint64) bool) {
	a.j.Know(func(s journal.Setting, start uint64) bool {
		tid, ok := affinity.TIDOf(s)
		return ok && known(tid, start)
	})
}

// Passing says that a thread is on record only for those that it started.
func (a *Journalled) Passing() bool { return a.j.Passing() }

// GiveBack looks for threads that inherited an affinity of ours.
func (a *Journalled) GiveBack() ([]journal.Restored, error) { return a.j.GiveBack(a.owner) }

// Tidy shortens the journal: it ends the records of threads that have ended.
func (a *Journalled) Tidy() error {
	_, err := a.j.Forget(a.owner)
	return errors.Join(err, a.j.Compact())
}

// PutBack puts back all that is outstanding.
func (a *Journalled) PutBack(ctx context.Context) ([]journal.Restored, error) {
	return a.j.Restore(ctx, a.owner)
}

// PutBackWithout gives up the journal and opens it anew.
func (a *Journalled) PutBackWithout(ctx context.Context, ended func() bool) ([]journal.Restored, bool, error) {
	hung, err := a.j.TakeFrom(ctx, ended)
	if err != nil || !hung {
		return nil, hung || err != nil, err
	}
	restored, err := journal.RestoreAnew(ctx, a.dir, a.owner)
	return restored, true, err
}

// Ours says whether a thread's affinity was set by homenode and still is so.
func (a *Journalled) Ours(tid int, start uint64, cpus set.CPUSet) bool {
	return a.j.OursOf(affinity.Setting(tid), start, cpus.String())
}

// Close gives up the lock.
func (a *Journalled) Close() error { return a.j.Close() }

// Dry is a dry run.
type Dry struct{}

// DryRun is true.
func (Dry) DryRun() bool { return true }

// Apply does nothing.
func (Dry) Apply(_ context.Context, s action.Step) action.Outcome {
	return action.Outcome{Step: s, Status: action.DryRun}
}

// Know is not needed.
func (Dry) Know(func(int, uint64) bool) {}

// Passing is false.
func (Dry) Passing() bool { return false }

// PutBackWithout has nothing to put back.
func (Dry) PutBackWithout(context.Context, func() bool) ([]journal.Restored, bool, error) {
	return nil, true, nil
}

// GiveBack has nobody to look for.
func (Dry) GiveBack() ([]journal.Restored, error) { return nil, nil }

// Tidy does nothing.
func (Dry) Tidy() error { return nil }

// PutBack has nothing to put back.
func (Dry) PutBack(context.Context) ([]journal.Restored, error) { return nil, nil }

// ownCPU is what homenode itself has used.
func ownCPU() time.Duration { return kernel.ProcessCPU() }
