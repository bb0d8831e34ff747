// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"path/filepath"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/owner/cgroup"
)

// tellSuspects logs what may be left of a journal that was damaged.
func (a *Agent) tellSuspects(ctx context.Context) {
	all, err := kernel.Suspects(ctx, kernel.Root{}, a.journal.Ours)
	if err != nil {
		a.o.Log.Error("look for what the damaged journal may have left", "error", err)
	}
	for _, s := range all {
		a.o.Log.Warn("this may be left of the damaged journal", "cgroup", s.Workload, "what", s.What, "undo", s.Undo)
		a.status.Recovered = append(a.status.Recovered, s.String())
	}
}

// Suspects lists what journals that were damaged may have left, for people to tell.
func Suspects(ctx context.Context, stateDir string) ([]kernel.Suspect, error) {
	b := Beside{Dir: stateDir}
	if err := b.Look(); err != nil {
		return nil, err
	}
	return kernel.Suspects(ctx, kernel.Root{}, b.Ours)
}

// ForgetDamage removes what is kept of damaged journals in a state folder, of settings and
// of what was frozen. A running agent holds the lock: the error names it.
func ForgetDamage(stateDir string) error {
	return errors.Join(forget(stateDir), forget(filepath.Join(stateDir, cgroup.FreezeDir)))
}

func forget(dir string) error {
	boot, err := kernel.BootID(kernel.Root{})
	if err != nil {
		return err
	}
	if _, err := journal.Peek(dir, boot); !errors.Is(err, journal.ErrDamaged) {
		return err
	}
	j, err := journal.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(j.ForgetDamage(), j.Close())
}
