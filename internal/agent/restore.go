// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/hotness"
	"homenode/internal/owner/cgroup"
)

// recover puts back what an agent that was killed left behind, what was left frozen
// first.
func (a *Agent) recover(ctx context.Context) error {
	thawed, err := cgroup.ThawLeft(ctx, kernel.Live(), a.o.Config.StateDir)
	a.recovered(thawed)
	if err != nil { // the loop does not depend on it, and the next start tries again
		a.o.Log.Error("thaw what an earlier homenode left frozen", "error", err)
	}
	if n, err := hotness.CleanLeft(kernel.Live()); err != nil {
		a.o.Log.Error("switch off what a search for hot pages left on", "error", err)
	} else if n > 0 {
		a.o.Log.Info("switched off what a search for hot pages left on", "kdamonds", n)
	}
	restored, err := a.journal.Restore(ctx, a.owner)
	a.recovered(restored)
	if damage := a.journal.Damage(); damage != nil { // the loop goes on: what is left looks like another program's
		a.o.Log.Error("journal", "error", damage)
		a.status.Recovered = append(a.status.Recovered, damage.Error())
		a.tellSuspects(ctx)
	}
	if err != nil {
		return fmt.Errorf("put back what an earlier agent left: %w", err)
	}
	return nil
}

func (a *Agent) recovered(restored []journal.Restored) {
	for _, r := range restored {
		a.logRestored("left by an earlier homenode: ", r)
		a.status.Recovered = append(a.status.Recovered, r.String())
	}
}

// became is what became of a setting that was to be put back.
var became = map[journal.Result]string{
	journal.PutBack: "put back", journal.Already: "it was as before", journal.Equivalent: "put back to what means the same",
	journal.Left: "left as another program has set it since", journal.Vanished: "gone, with its workload",
	journal.Kept: "kept for now", journal.NotDone: "not put back",
}

// logRestored warns of what is still outstanding.
func (a *Agent) logRestored(whose string, r journal.Restored) {
	level := slog.LevelInfo
	if r.Result == journal.Kept || r.Result == journal.NotDone {
		level = slog.LevelWarn
	}
	a.o.Log.Log(context.Background(), level, whose+became[r.Result], "setting", r.Setting.String(), "result", string(r.Result), "detail", r.Detail)
}

// putBackLimit is how long an ending agent tries; a write to cpuset.mems waits
// for the pages it migrates.
const putBackLimit = 60 * time.Second

// putBack undoes everything this agent set. What fails stays in the journal for
// `homenode restore` or the next start.
func (a *Agent) putBack(r *running) error {
	close(r.back)
	a.pulse.end()
	err := a.putSettingsBack()
	a.saveHistory(a.status.Window.At, true)
	_ = os.Remove(filepath.Join(r.state, statusName))
	return err
}

func (a *Agent) putSettingsBack() error {
	if a.journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), putBackLimit)
	defer cancel()
	restored, err := a.journal.Restore(ctx, a.owner)
	for _, r := range restored {
		a.logRestored("", r)
	}
	return errors.Join(err, a.journal.Compact())
}

// Restore puts back what a killed agent left, without starting one, thaws what a
// killed homenode left frozen, which does not wait for the rest to be possible, and
// switches off what a killed search for hot pages left on. A
// running agent holds the lock: the error names it.
func Restore(ctx context.Context, stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	thawed, err := cgroup.ThawLeft(ctx, kernel.Live(), stateDir)
	_, err1 := hotness.CleanLeft(kernel.Live())
	restored, err2 := restoreSettings(ctx, stateDir, directOwners, runtimes)
	return append(thawed, restored...), errors.Join(err, err1, err2)
}

// Foresee says what Restore would do, and changes nothing. What a killed search for hot
// pages left on is not among it.
func Foresee(stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	thaw, err := cgroup.ForeseeThaw(kernel.Live(), stateDir)
	boot, err1 := kernel.BootID(kernel.Root{})
	owner, err2 := Owners(directOwners, runtimes)
	if bad := errors.Join(err1, err2); bad != nil {
		return thaw, errors.Join(err, bad)
	}
	settings, err1 := journal.Foresee(stateDir, boot, owner)
	return append(thaw, settings...), errors.Join(err, err1)
}

// restoreSettings puts threads back also where no cgroup can be.
func restoreSettings(ctx context.Context, stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	owner, err := Owners(directOwners, runtimes)
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(stateDir)
	if err != nil {
		return nil, err
	}
	restored, err := j.Restore(ctx, owner)
	return restored, errors.Join(err, j.Compact(), j.Damage(), j.Close())
}

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
