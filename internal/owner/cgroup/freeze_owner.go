// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"fmt"
	"strings"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/freeze"
	"homenode/internal/kernel/unix"
)

// freezeOwner is the journal.Owner of the freezers of cgroups without a manager, or with
// one that the configuration names.
type freezeOwner struct {
	*Applier
	live kernel.LiveToken
	// open is the freezer to act upon, as long as it is open. Where it is nil, or of
	// another cgroup, freezers are opened by their path.
	open *freeze.Freezer
	// guard is told before open is frozen: without a guard nothing is frozen.
	guard *freeze.Guard
	asked bool // we froze open, or tried to
	taken bool // another process had frozen it before we could
}

// newFreezeOwner needs no cpuset: thawing works without.
func newFreezeOwner(live kernel.LiveToken, directOwners []string) (*freezeOwner, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("freeze cgroups: only the running kernel can be acted upon (%w)", kernel.ErrNotSupported)
	}
	layout, err := cgroup.Find(live.Root())
	if err != nil {
		return nil, err
	}
	return &freezeOwner{Applier: &Applier{cfg: Config{DirectOwners: directOwners}, layout: layout}, live: live}, nil
}

// Plan lists the file that a Freeze changes.
func (o *freezeOwner) Plan(_ context.Context, step action.Step) ([]journal.Change, error) {
	if step.Kind != action.Freeze || o.open == nil || o.open.ID != step.Workload {
		return nil, fmt.Errorf("take step %s for %s: %w: its freezer is not open", step.Kind, step.Workload, journal.ErrRefused)
	}
	if err := o.mayAct(step.Workload); err != nil {
		return nil, err
	}
	return []journal.Change{{Setting: journal.Setting{Cgroup: o.open.ID, File: o.open.File}, New: o.open.Value(true)}}, nil
}

// with calls do with a setting's freezer.
func (o *freezeOwner) with(s journal.Setting, do func(*freeze.Freezer) error) error {
	if o.open != nil && o.open.ID == s.Cgroup && o.open.File == s.File {
		return do(o.open)
	}
	f, err := freeze.Open(o.live, o.layout, s.Cgroup, s.File)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}

// Read reads the state requested for the cgroup itself: "FROZEN" because of a cgroup
// above reads as "THAWED".
func (o *freezeOwner) Read(s journal.Setting) (cur journal.Current, err error) {
	h := o.layout.Unified
	if s.File == freeze.FileV1 {
		h = o.layout.Freezer
	}
	if cur.ID, err = unix.Inode(o.layout.Path(h, s.Cgroup, "")); err != nil {
		return journal.Current{}, unix.Explain("read", s.String(), "", err)
	}
	err = o.with(s, func(f *freeze.Freezer) error {
		state, err := f.State()
		cur.Value = f.Value(state.Own)
		return unix.Explain("read", s.String(), "", err)
	})
	if err != nil {
		return journal.Current{}, err
	}
	return cur, nil
}

// Same: on v1, FREEZING means that FROZEN was requested.
func (o *freezeOwner) Same(_ journal.Setting, current, recorded string) bool {
	return freeze.Asked(strings.TrimSpace(current)) == freeze.Asked(strings.TrimSpace(recorded))
}

// Write freezes, or thaws. Another process may have frozen a thawed cgroup while the
// record was written: then it is theirs.
func (o *freezeOwner) Write(p journal.Permit, s journal.Setting, value string) error {
	if !p.Valid() {
		return fmt.Errorf("set %s: %w: the journal gave no permit", s, journal.ErrRefused)
	}
	if freeze.Asked(value) {
		return o.freezeOpen(s)
	}
	return o.with(s, func(f *freeze.Freezer) error { return f.Set(false) })
}

func (o *freezeOwner) freezeOpen(s journal.Setting) error {
	if o.guard == nil || o.open == nil || o.open.ID != s.Cgroup || o.open.File != s.File {
		return fmt.Errorf("set %s: %w: it has no guard to thaw it", s, journal.ErrRefused)
	}
	state, err := o.open.State()
	if err != nil {
		return err
	}
	if o.taken = !state.Thawed(); o.taken {
		return fmt.Errorf("set %s: %w: another process has just frozen it", s, journal.ErrRefused)
	}
	o.asked = true
	return o.guard.Freeze()
}

// Equivalent is never asked for: the kernel takes both values.
func (o *freezeOwner) Equivalent(_ journal.Setting, original string) (string, error) {
	return original, nil
}
