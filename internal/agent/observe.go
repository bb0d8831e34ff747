// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// observing says that the agent decides nothing: mode observe. A dry run decides, so that
// it can report what it would do.
func (a *Agent) observing() bool { return a.o.Config.Mode == ModeObserve && !a.o.DryRun }

// noSteps is the applier of an agent that observes. Without approved services no step is
// asked for.
type noSteps struct{}

func (noSteps) Apply(_ context.Context, s action.Step) action.Outcome {
	return action.Outcome{Step: s, Status: action.Refused, Detail: "mode is observe"}
}

// openObserver is for mode observe. As root it is this host's agent: it takes the journal's
// lock, and puts back what an agent that was killed has left, or has handed over. Another
// user has no journal.
func (a *Agent) openObserver(ctx context.Context, rc *kernel.Config, _ *handover) error {
	c := a.o.Config
	if os.Geteuid() == 0 {
		if err := a.openOwner(); err == nil {
			err = a.openJournal(ctx, rc, nil)
			a.apply = noSteps{}
			if errors.Is(err, journal.ErrLocked) {
				err = fmt.Errorf("%w: watch that one with 'homenode status', or name another folder with --state", err)
			}
			return err
		}
	}
	if err := os.MkdirAll(c.StateDir, 0o755); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	a.beside = &Beside{Dir: DefaultStateDir}
	if err := a.beside.Look(); err != nil {
		a.o.Log.Warn("what a running agent has set looks like another program's limits", "error", err)
		a.beside = nil
	} else {
		rc.Ours = a.beside.Ours
	}
	a.apply = noSteps{}
	return nil
}

// tellLimits says what a user without root does not see. It is logged once.
func (a *Agent) tellLimits() {
	if os.Geteuid() == 0 || a.o.Play != nil {
		return
	}
	a.o.Log.Warn("without root: memory by node is known for your own processes and where cgroups have memory.numa_stat; "+
		"events are counted only with CAP_PERFMON; nothing can be bound", "state_dir", a.o.Config.StateDir)
}
