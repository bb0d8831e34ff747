// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/freeze"
	"homenode/internal/kernel/unix"
)

const (
	// FreezeDir is the journal of freezes, below the state directory. A running agent
	// holds the lock of the state directory's own journal.
	FreezeDir = "freeze"
	// FreezeLimit is the default limit after which a guard thaws a cgroup.
	FreezeLimit = 5 * time.Minute
	// frozenWithin bounds the wait until every process stands still. A process in
	// uninterruptible sleep, for a disk or for NFS, delays the others.
	frozenWithin = 10 * time.Second
)

// FreezeConfig is how to freeze.
type FreezeConfig struct {
	StateDir     string
	DirectOwners []string      // as in Config
	Limit        time.Duration // after which the guard thaws, whatever goes on; 0: FreezeLimit
}

// Frozen is a cgroup that stands still until Thaw.
type Frozen struct {
	owner   *freezeOwner
	journal *journal.Journal
	guard   *freeze.Guard // nil: another process froze it, or it is not frozen yet
	began   time.Time

	mu     sync.Mutex
	thawed bool
	took   time.Duration
	err    error
}

// Freeze makes every process of a cgroup stand still. The caller defers Thaw and watches
// Lost. Three things can thaw the cgroup: the process that froze it, the guard when that
// process is gone or late, and the record on disk when both are gone.
//
//  1. Find the freezer, and open its files.
//  2. Open the journal, and thaw what an earlier homenode left. Without a journal there
//     is no freeze.
//  3. A cgroup that is frozen already belongs to another process: leave it alone.
//  4. Start the guard, and wait until it is ready. Until we have written, another process
//     may freeze the cgroup: then it is theirs.
//  5. Freeze, on record first, and wait until every process stands still. If that takes
//     too long, or the context ends, thaw.
//     takes too long, or the context ends, thaw.
func Freeze(ctx context.Context, live kernel.LiveToken, cfg FreezeConfig, id string) (*Frozen, error) {
	owner, err := newFreezeOwner(live, cfg.DirectOwners)
	if err == nil {
		err = owner.layout.NeedCpuset()
	}
	if err != nil {
		return nil, err
	}
	return owner.freeze(ctx, cfg, id)
}

func (o *freezeOwner) freeze(ctx context.Context, cfg FreezeConfig, id string) (*Frozen, error) {
	if err := o.mayAct(id); err != nil {
		return nil, err
	}
	var err error
	if o.open, err = freeze.Find(o.live, o.layout, id); err != nil { // (1)
		return nil, err
	}
	f := &Frozen{owner: o}
	if f.journal, err = openInTurn(ctx, filepath.Join(cfg.StateDir, FreezeDir)); err != nil { // (2)
		return nil, errors.Join(fmt.Errorf("freeze %s: there would be no record of it: %w", id, err), f.close())
	}
	if _, err := f.journal.Restore(ctx, o); errors.Join(err, f.journal.Damage()) != nil {
		err = errors.Join(err, f.journal.Damage())
		return nil, errors.Join(fmt.Errorf("thaw what an earlier homenode left: %w", err), f.close())
	}
	state, err := o.open.State()
	if err == nil && state.Thawed() { // (3)
		if err = f.watch(cfg); err == nil { // (4)
			state, err = o.open.State()
		}
	}
	if err != nil || !state.Thawed() {
		return f.leave(err)
	}
	if err := f.stop(ctx, id); err != nil || !o.asked { // (5)
		return f.leave(err)
	}
	return f, nil
}

// watch starts the guard.
func (f *Frozen) watch(cfg FreezeConfig) error {
	limit := cfg.Limit
	if limit == 0 {
		limit = FreezeLimit
	}
	dir, err := filepath.Abs(cfg.StateDir)
	if err == nil {
		f.guard, err = freeze.StartGuard(f.owner.open, limit, dir)
	}
	f.owner.guard = f.guard
	return err
}

// leave releases a cgroup that is not ours, or that failed. It does nothing to the cgroup
// that Thaw has not done.
func (f *Frozen) leave(err error) (*Frozen, error) {
	if !f.thawed {
		f.thawed = true
		if f.guard != nil {
			err = errors.Join(err, f.guard.Release())
		}
		err = errors.Join(err, f.close())
	}
	if err != nil {
		return nil, err
	}
	f.guard = nil
	return f, nil
}

// stop freezes the cgroup, unless another process did so before: then we have not asked
// for it. It thaws again unless it returns without an error, also on a panic.
func (f *Frozen) stop(ctx context.Context, id string) (err error) {
	done := false
	defer func() {
		if !done {
			err = errors.Join(err, f.Thaw())
		}
	}()
	f.began = time.Now()
	o := f.journal.Wrap(f.owner).Apply(ctx, action.Step{Kind: action.Freeze, Workload: id})
	if !f.owner.asked && (f.owner.taken || o.Status == action.Done) { // the journal: the cgroup already is frozen
		done = true
		return nil
	}
	if o.Status != action.Done {
		return fmt.Errorf("freeze %s: %s", id, o.Detail)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, frozenWithin, fmt.Errorf("it was waited for %v; one may wait for a disk or for NFS", frozenWithin))
	defer cancel()
	err = f.owner.open.Wait(ctx)
	done = err == nil
	return err
}

// Thaw lets the processes continue, and ends guard and journal. It may be called again.
// An error says what was not done. The cgroup may be thawed all the same; if not, the
// guard keeps trying.
func (f *Frozen) Thaw() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.thawed {
		return f.err
	}
	f.thawed = true
	f.err = f.thaw()
	return f.err
}

// thaw needs no descriptor and no disk: it thaws even if the journal cannot record it. It
// does not thaw what we never froze. The guard is released only when the cgroup is known
// to be thawed, or gone.
func (f *Frozen) thaw() error {
	open := f.owner.open
	_, err := f.journal.RestoreWorkload(context.Background(), f.owner, open.ID)
	still := f.stillFrozen()
	if still != nil { // not through the journal, so in any other way
		err = errors.Join(err, open.Set(false))
		still = f.stillFrozen()
	}
	f.took = time.Since(f.began)
	if still != nil {
		return errors.Join(err, still, f.guard.Abandon(), f.close())
	}
	if err != nil && f.owner.asked {
		err = fmt.Errorf("%w; it is thawed, but what is on record must be cleared: run 'homenode restore'", err)
	}
	return errors.Join(err, f.guard.Release(), f.close())
}

// stillFrozen reports that we froze the cgroup and that it may still be frozen.
func (f *Frozen) stillFrozen() error {
	state, err := f.owner.open.State()
	switch {
	case !f.owner.asked, unix.Classify(err) == unix.ErrGone, err == nil && !state.Own:
		return nil
	case err != nil:
		err = fmt.Errorf("thaw %s: whether it is thawed is unknown: %w", f.owner.open.ID, err)
	default:
		err = fmt.Errorf("thaw %s: it is still frozen", f.owner.open.ID)
	}
	select {
	case <-f.guard.Lost():
		return fmt.Errorf("%w; its guard is gone: run 'homenode restore'", err)
	default:
		return fmt.Errorf("%w; the guard, pid %d, goes on trying", err, f.guard.PID())
	}
}

func (f *Frozen) close() error {
	var err error
	if f.journal != nil {
		err = f.journal.Close()
	}
	return errors.Join(err, f.owner.open.Close())
}

// inTurn bounds the wait for the journal's lock. The guard of a homenode that was killed
// clears the record, which takes some milliseconds. Tests wait longer.
var inTurn = 2 * time.Second

func openInTurn(ctx context.Context, dir string) (*journal.Journal, error) {
	for end := time.Now().Add(inTurn); ; time.Sleep(5 * time.Millisecond) {
		j, err := journal.Open(dir)
		if !errors.Is(err, journal.ErrLocked) || ctx.Err() != nil || time.Now().After(end) {
			return j, err
		}
	}
}

// Lost is closed when the guard is gone: it was killed, or the limit passed and it has
// thawed the cgroup. The caller then thaws at once.
func (f *Frozen) Lost() <-chan struct{} {
	if f.guard == nil {
		return nil
	}
	return f.guard.Lost()
}

// For is how long the cgroup stood still, so far or in all; 0 when another process froze
// it.
func (f *Frozen) For() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.guard == nil || f.thawed {
		return f.took
	}
	return time.Since(f.began)
}

// Already reports that another process had frozen the cgroup. Its pages are moved while
// it stands still, and it stays frozen.
func (f *Frozen) Already() bool { return f.guard == nil }

// GuardPID is the guard's pid; 0 without a guard.
func (f *Frozen) GuardPID() int {
	if f.guard == nil {
		return 0
	}
	return f.guard.PID()
}

// ThawLeft thaws what killed homenodes left frozen. If another homenode is thawing, the
// result says that the record is kept.
func ThawLeft(ctx context.Context, live kernel.LiveToken, stateDir string) ([]journal.Restored, error) {
	owner, err := newFreezeOwner(live, nil)
	if err != nil {
		return nil, err
	}
	return owner.thawLeft(ctx, filepath.Join(stateDir, FreezeDir))
}

// thawLeft creates no journal where there is none.
func (o *freezeOwner) thawLeft(ctx context.Context, dir string) ([]journal.Restored, error) {
	boot, err := kernel.BootID(o.live.Root())
	if err != nil {
		return nil, err
	}
	left, err := journal.Peek(dir, boot)
	if !errors.Is(err, journal.ErrDamaged) && (err != nil || len(left) == 0) {
		return nil, err
	}
	j, err := openInTurn(ctx, dir)
	if errors.Is(err, journal.ErrLocked) {
		return kept(left, err), nil
	}
	if err != nil {
		return nil, err
	}
	restored, err := j.Restore(ctx, o)
	return restored, errors.Join(err, j.Damage(), j.Close())
}

// ForeseeThaw reports what ThawLeft would do, and changes nothing.
func ForeseeThaw(live kernel.LiveToken, stateDir string) ([]journal.Restored, error) {
	owner, err := newFreezeOwner(live, nil)
	if err != nil {
		return nil, err
	}
	return owner.foreseeThaw(filepath.Join(stateDir, FreezeDir))
}

func (o *freezeOwner) foreseeThaw(dir string) ([]journal.Restored, error) {
	boot, err := kernel.BootID(o.live.Root())
	if err != nil {
		return nil, err
	}
	all, err := journal.Foresee(dir, boot, o)
	if !errors.Is(err, journal.ErrLocked) {
		return all, err
	}
	left, bad := journal.Peek(dir, boot)
	return kept(left, err), bad
}

func kept(left []journal.Entry, why error) []journal.Restored {
	var all []journal.Restored
	for _, e := range left {
		all = append(all, journal.Restored{Setting: e.Setting, Workload: e.Workload, Result: journal.Kept,
			Detail: "frozen by a homenode that runs, which will thaw it: " + why.Error()})
	}
	return all
}

// RunGuard is the guard that Freeze starts. args are those after freeze.GuardCommand.
// When its parent is gone, it clears the record: another process may freeze the same
// cgroup later, and that must not be taken for our freeze. If the guard cannot, a running
// homenode does, or the next one.
func RunGuard(args []string) error {
	alone, more, err := freeze.RunGuard(args)
	if !alone || len(more) == 0 {
		return err
	}
	_, left := ThawLeft(context.Background(), kernel.Live(), more[0])
	return errors.Join(err, left)
}
