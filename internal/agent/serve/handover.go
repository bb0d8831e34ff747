// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"homenode/internal/agent"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
)

// hear makes signals that were ignored meanwhile (unix.Reexec) heard again.
func hear(hangup chan os.Signal) { signal.Notify(hangup, syscall.SIGHUP, syscall.SIGUSR2) }

// AskHandover asks another process, an agent, for what Hangups hears.
func AskHandover(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
		return fmt.Errorf("signal the agent, pid %d: %w", pid, err)
	}
	return nil
}

// runs reports whether there is a process of that number.
func runs(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// Replacer makes this process the program that now stands where this one was started from. A
// program that was replaced meanwhile has another path in /proc, so it is read at the start.
func Replacer(hangup chan os.Signal) func([]byte) error {
	path, err := os.Executable()
	return func(data []byte) error {
		if err != nil {
			return err
		}
		defer hear(hangup)
		return unix.Reexec(path, data)
	}
}

// Running is the status of the agent that holds the journal.
func Running(dir string) (agent.Status, error) {
	holder, err := journal.Holder(dir)
	if err != nil {
		return agent.Status{}, exit.Precondition(err)
	}
	if holder == "" {
		return agent.Status{}, exit.With(exit.Nothing, fmt.Errorf("no agent runs: no process holds the journal in %s", dir))
	}
	s, err := agent.ReadStatus(dir)
	if err == nil && strconv.Itoa(s.PID) != holder {
		err = fmt.Errorf("pid %s holds the journal in %s, and it is not an agent that has a status: end it, or try again later", holder, dir)
	}
	return s, exit.Precondition(err)
}

// AwaitHandover waits until the same process reports another start: its first round as the new
// program is over then.
func AwaitHandover(ctx context.Context, dir string, before agent.Status) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if !runs(before.PID) {
			return fmt.Errorf("the agent, pid %d, has ended: its log says why; what it set is put back by its service, its next start or 'homenode restore'", before.PID)
		}
		if now, err := agent.ReadStatus(dir); err == nil && now.PID == before.PID {
			if now.Started.After(before.Started) {
				return nil
			}
			if err := refusedSince(before, now); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the agent, pid %d, continues as the old program: its log says why", before.PID)
		case <-tick.C:
		}
	}
}

// refusedSince says why the agent refused, if it has since another status.
func refusedSince(before, now agent.Status) error {
	h := now.Handover
	if h == nil || before.Handover != nil && !h.At.After(before.Handover.At) {
		return nil
	}
	err := fmt.Errorf("the agent, pid %d, continues as the old program: %s", now.PID, h.Error)
	if h.Later {
		return exit.With(exit.Partly, err)
	}
	return err
}
