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
	"homenode/internal/kernel/resctrl"
	"homenode/internal/owner/cgroup"
)

// recover restores what a killed agent left. Frozen processes come first.
func (a *Agent) recover(ctx context.Context) error {
	thawed, err := cgroup.ThawLeft(ctx, kernel.Live(), a.o.Config.StateDir)
	a.recovered(thawed)
	if err != nil { // the loop does not need it, and the next start tries again
		a.o.Log.Error("thaw what an earlier homenode left frozen", "error", err)
	}
	if n, err := hotness.CleanLeft(kernel.Live()); err != nil {
		a.o.Log.Error("switch off what a search for hot pages left on", "error", err)
	} else if n > 0 {
		a.o.Log.Info("switched off what a search for hot pages left on", "kdamonds", n)
	}
	restored, err := a.journal.Restore(ctx, a.owner)
	a.recovered(restored)
	if damage := a.journal.Damage(); damage != nil { // the loop continues: settings whose records are lost look like another program's
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

// became describes what became of a setting that had to be restored.
func became(r journal.Result) string {
	return map[journal.Result]string{
		journal.PutBack: "put back", journal.Already: "it was as before already", journal.Equivalent: "put back to what means the same",
		journal.Left: "left alone: another program has changed it since", journal.Vanished: "gone, with its workload",
		journal.Kept: "kept for now", journal.NotDone: "not put back",
	}[r]
}

// logRestored warns of settings that are still outstanding.
func (a *Agent) logRestored(whose string, r journal.Restored) {
	level := slog.LevelInfo
	if r.Result == journal.Kept || r.Result == journal.NotDone {
		level = slog.LevelWarn
	}
	a.o.Log.Log(context.Background(), level, whose+became(r.Result), "setting", r.Setting.String(), "result", string(r.Result), "detail", r.Detail)
}

// putBackLimit is how long an ending agent tries to restore. A write to
// cpuset.mems waits for the pages that it migrates.
const putBackLimit = 60 * time.Second

// putBack undoes everything that this agent set. What fails stays in the
// journal for `homenode restore` or the next start.
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

// Restore does what a starting agent does to recover, without starting one: it
// restores what a killed agent left, thaws what a killed homenode left frozen, switches off
// what a killed search for hot pages left on, and removes a killed monitor's groups. Thawing does not wait
// until the rest is possible. If an agent is running, it holds the lock, and the
// error names it.
func Restore(ctx context.Context, stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	restored, err := cgroup.ThawLeft(ctx, kernel.Live(), stateDir)
	_, err1 := hotness.CleanLeft(kernel.Live())
	more, err2 := restoreSettings(ctx, stateDir, directOwners, runtimes, cleanMonitors)
	restored, err = append(restored, more...), errors.Join(err, err1, err2)
	for _, dir := range trialJournals(stateDir) {
		more, err1 := RestoreTrial(ctx, dir, directOwners, runtimes)
		if errors.Is(err1, journal.ErrLocked) {
			continue // its command is at work, and puts everything back
		}
		restored, err = append(restored, more...), errors.Join(err, err1)
	}
	return restored, err
}

// Foresee says what Restore would do, and changes nothing. It does not cover what a
// killed search for hot pages left on.
func Foresee(stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	thaw, err := cgroup.ForeseeThaw(kernel.Live(), stateDir)
	boot, err1 := kernel.BootID(kernel.Root{})
	owner, err2 := Owners(directOwners, runtimes)
	if bad := errors.Join(err1, err2); bad != nil {
		return thaw, errors.Join(err, bad)
	}
	settings, err1 := journal.Foresee(stateDir, boot, owner)
	all, err := append(thaw, settings...), errors.Join(err, err1)
	for _, dir := range trialJournals(stateDir) {
		if more, err1 := journal.Foresee(dir, boot, owner); !errors.Is(err1, journal.ErrLocked) {
			all, err = append(all, more...), errors.Join(err, err1)
		}
	}
	return all, err
}

// RestoreTrial restores what the journal of a folder has on record. Nothing else is looked for: an agent
// may run, with a folder of its own.
func RestoreTrial(ctx context.Context, dir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	return restoreSettings(ctx, dir, directOwners, runtimes, func() error { return nil })
}

// cleanMonitors removes a killed monitor's groups, for the process that holds the journal's lock.
func cleanMonitors() error { return resctrl.CleanLeft(kernel.Live()) }

// restoreSettings restores threads even where cgroups cannot be restored. clean is called while the
// journal's lock is held.
func restoreSettings(ctx context.Context, stateDir string, directOwners []string, runtimes Runtimes, clean func() error) ([]journal.Restored, error) {
	owner, err := Owners(directOwners, runtimes)
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(stateDir)
	if err != nil {
		return nil, err
	}
	restored, err := j.Restore(ctx, owner)
	return restored, errors.Join(err, clean(), j.Compact(), j.Damage(), j.Close())
}

// tellSuspects logs settings that may be left over from a damaged journal.
func (a *Agent) tellSuspects(ctx context.Context) {
	all, err := kernel.Suspects(ctx, kernel.Root{}, a.journal.Ours)
	if err != nil {
		a.o.Log.Error("look for what the damaged journal may have left", "error", err)
	}
	for _, s := range all {
		a.o.Log.Warn("this may be left over from the damaged journal", "cgroup", s.Workload, "what", s.What, "undo", s.Undo)
		a.status.Recovered = append(a.status.Recovered, s.String())
	}
}

// Suspects lists settings that damaged journals may have left, for a person to
// judge.
func Suspects(ctx context.Context, stateDir string) ([]kernel.Suspect, error) {
	b := Beside{Dir: stateDir}
	if err := b.Look(); err != nil {
		return nil, err
	}
	return kernel.Suspects(ctx, kernel.Root{}, b.Ours)
}

// ForgetDamage removes the kept damaged journals from a state folder, both of settings and
// of freezing. If an agent is running, it holds the lock, and the error names it.
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
