// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"errors"
	"fmt"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/owner/affinity"
	"homenode/internal/set"
)

// Actor moves threads and restores them.
type Actor interface {
	DryRun() bool
	Apply(ctx context.Context, s action.Step) action.Outcome
	// Know names the threads that inherited nothing, whatever their affinity.
	Know(known func(tid int, start uint64) bool)
	// Passing says that a restored thread may have started other threads before.
	Passing() bool
	// GiveBack restores the affinity of threads that inherited one of ours.
	GiveBack() ([]journal.Restored, error)
	Tidy() error
	PutBack(ctx context.Context) ([]journal.Restored, error)
	// PutBackWithout restores although the run hangs, maybe in one of these calls. It
	// returns false if the run ended before.
	PutBackWithout(ctx context.Context, ended func() bool) (restored []journal.Restored, hung bool, err error)
}

// Journalled acts on this host. Close releases the journal's lock.
type Journalled struct {
	dir   string
	j     *journal.Journal // once given up, it changes nothing any more
	owner journal.Owner
	apply *journal.Applier
}

// Open takes the journal's lock and restores what a killed homenode left.
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

// DryRun is false: this actor acts.
func (a *Journalled) DryRun() bool { return false }

// Apply takes a step.
func (a *Journalled) Apply(ctx context.Context, s action.Step) action.Outcome {
	return a.apply.Apply(ctx, s)
}

// Know names the threads that inherited nothing of ours.
func (a *Journalled) Know(known func(tid int, start uint64) bool) {
	a.j.Know(func(s journal.Setting, start uint64) bool {
		tid, ok := affinity.TIDOf(s)
		return ok && known(tid, start)
	})
}

// Passing says that a thread is on record only because of the threads that it
// started.
func (a *Journalled) Passing() bool { return a.j.Passing() }

// GiveBack looks for threads that inherited an affinity of ours, and restores
// theirs.
func (a *Journalled) GiveBack() ([]journal.Restored, error) { return a.j.GiveBack(a.owner) }

// Tidy shortens the journal: it ends the records of threads that have ended.
func (a *Journalled) Tidy() error {
	_, err := a.j.Forget(a.owner)
	return errors.Join(err, a.j.Compact())
}

// PutBack restores all that is outstanding.
func (a *Journalled) PutBack(ctx context.Context) ([]journal.Restored, error) {
	return a.j.Restore(ctx, a.owner)
}

// PutBackWithout gives up the journal and opens it again.
func (a *Journalled) PutBackWithout(ctx context.Context, ended func() bool) ([]journal.Restored, bool, error) {
	hung, err := a.j.TakeFrom(ctx, ended)
	if err != nil || !hung {
		return nil, hung || err != nil, err
	}
	restored, err := journal.RestoreAnew(ctx, a.dir, a.owner)
	return restored, true, err
}

// Ours says whether homenode set a thread's affinity and it is unchanged since.
func (a *Journalled) Ours(tid int, start uint64, cpus set.CPUSet) bool {
	return a.j.OursOf(affinity.Setting(tid), start, cpus.String())
}

// Close releases the lock.
func (a *Journalled) Close() error { return a.j.Close() }

// Dry is the actor of a dry run.
type Dry struct{}

// DryRun is true.
func (Dry) DryRun() bool { return true }

// Apply does nothing.
func (Dry) Apply(_ context.Context, s action.Step) action.Outcome {
	return action.Outcome{Step: s, Status: action.DryRun}
}

// Know does nothing.
func (Dry) Know(func(int, uint64) bool) {}

// Passing is false.
func (Dry) Passing() bool { return false }

// PutBackWithout has nothing to restore.
func (Dry) PutBackWithout(context.Context, func() bool) ([]journal.Restored, bool, error) {
	return nil, true, nil
}

// GiveBack finds no threads.
func (Dry) GiveBack() ([]journal.Restored, error) { return nil, nil }

// Tidy does nothing.
func (Dry) Tidy() error { return nil }

// PutBack has nothing to restore.
func (Dry) PutBack(context.Context) ([]journal.Restored, error) { return nil, nil }
