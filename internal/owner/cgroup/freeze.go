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
	// FreezeDir is the freezes' journal, below the state directory: an agent that runs
	// holds the lock of that one.
	FreezeDir = "freeze"
	// FreezeLimit is how long a guard lets a cgroup stand still when nothing is said.
	FreezeLimit = 5 * time.Minute
	// frozenWithin bounds the wait until every process stands still: one in
	// uninterruptible sleep, of a disk or of NFS, keeps the others waiting.
	frozenWithin = 10 * time.Second
)

// FreezeConfig says how to freeze.
type FreezeConfig struct {
	StateDir     string
	DirectOwners []string      // as Config's
	Limit        time.Duration // after which the guard thaws, whatever goes on; 0: FreezeLimit
}

// Frozen is a cgroup that stands still until Thaw.
type Frozen struct {
	owner   *freezeOwner
	journal *journal.Journal
	guard   *freeze.Guard // nil: somebody else froze it, or nobody yet
	began   time.Time

	mu     sync.Mutex
	thawed bool
	took   time.Duration
	err    error
}

// Freeze makes every process of a cgroup stand still. The caller defers Thaw and
// watches Lost. Three things thaw it: who froze it, the guard when that is gone or
// late, and the record on disk when both are.
//
//  1. Find the freezer, and have its files open.
//  2. Open the journal, and thaw what an earlier homenode left. No freeze without.
//  3. What is frozen already is somebody else's: nothing is done to it.
//  4. Start the guard, and wait until it is ready. Until then, and until we have
//     written, somebody else may freeze it: again it is theirs.
//  5. Freeze, on record first, and wait until every process stands still. If that
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

// leave is for what is not ours, or failed: it does nothing to the cgroup that Thaw
// has not done.
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

// stop freezes, unless somebody else did before: then we have not asked for it. It
// thaws again unless it returns without an error: on a panic too.
func (f *Frozen) stop(ctx context.Context, id string) (err error) {
	done := false
	defer func() {
		if !done {
			err = errors.Join(err, f.Thaw())
		}
	}()
	f.began = time.Now()
	o := f.journal.Wrap(f.owner).Apply(ctx, action.Step{Kind: action.Freeze, Workload: id})
	if !f.owner.asked && (f.owner.taken || o.Status == action.Done) { // the journal: it already is so
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

// Thaw lets the processes go on, and ends guard and journal. It may be called again.
// An error says what was not done; the cgroup may be thawed all the same, and if not
// the guard goes on trying.
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

// thaw needs no descriptor and no disk to thaw: if the journal cannot write that it
// was done, it was. What we never froze is not ours to thaw. The guard is released
// only from what is known to be thawed, or gone.
func (f *Frozen) thaw() error {
	open := f.owner.open
	_, err := f.journal.RestoreWorkload(context.Background(), f.owner, open.ID)
	still := f.stillFrozen()
	if still != nil { // not by the journal's way; then by any
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

// stillFrozen says that we froze it and that it may be so still.
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

// inTurn is how long the journal's lock is waited for: the guard of a homenode that
// was killed clears the record, which takes some milliseconds. Tests wait longer.
var inTurn = 2 * time.Second

func openInTurn(ctx context.Context, dir string) (*journal.Journal, error) {
	for end := time.Now().Add(inTurn); ; time.Sleep(5 * time.Millisecond) {
		j, err := journal.Open(dir)
		if !errors.Is(err, journal.ErrLocked) || ctx.Err() != nil || time.Now().After(end) {
			return j, err
		}
	}
}

// Lost is closed when the guard is gone: it was killed, or the limit passed and it
// has thawed. The caller thaws at once then.
func (f *Frozen) Lost() <-chan struct{} {
	if f.guard == nil {
		return nil
	}
	return f.guard.Lost()
}

// For is how long it stood still, so far or in all; 0 when somebody else froze it.
func (f *Frozen) For() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.guard == nil || f.thawed {
		return f.took
	}
	return time.Since(f.began)
}

// Already says that somebody else had frozen it: its pages are moved as it stands
// still, and it stays frozen.
func (f *Frozen) Already() bool { return f.guard == nil }

// GuardPID is the guard's; 0 when there is none.
func (f *Frozen) GuardPID() int {
	if f.guard == nil {
		return 0
	}
	return f.guard.PID()
}

// ThawLeft thaws what homenodes that were killed left frozen. While one is at it,
// that one thaws: the result says that it is kept.
func ThawLeft(ctx context.Context, live kernel.LiveToken, stateDir string) ([]journal.Restored, error) {
	owner, err := newFreezeOwner(live, nil)
	if err != nil {
		return nil, err
	}
	return owner.thawLeft(ctx, filepath.Join(stateDir, FreezeDir))
}

// thawLeft makes nothing where nothing is.
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

// ForeseeThaw says what ThawLeft would do, and changes nothing.
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

// RunGuard is the guard that Freeze starts; args are those after
// freeze.GuardCommand. Left alone, it puts back what is on record: the same cgroup may
// be frozen by somebody else later, and that must not be taken for ours. If it
// cannot, a homenode that lives will, or the next.
func RunGuard(args []string) error {
	alone, more, err := freeze.RunGuard(args)
	if !alone || len(more) == 0 {
		return err
	}
	_, left := ThawLeft(context.Background(), kernel.Live(), more[0])
	return errors.Join(err, left)
}
