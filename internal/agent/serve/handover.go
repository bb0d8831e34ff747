// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
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

// askLimit is how long the new program may take to check a configuration: some 0.1 s on an idle
// host. The round that comes next waits for it.
const askLimit = 30 * time.Second

// maxAnswer bounds what is read from it. A host with 10,000 watched cgroups takes 1 MB.
const maxAnswer = 16 << 20

// Asker asks the program that Replacer would start to check a configuration: 'agent --check'.
// state is the folder of the command line, if it names one.
func Asker(file, state string) func(context.Context) (agent.Check, error) {
	path, err := os.Executable()
	args := []string{"agent", "--check", "--output", "json", "--config", file}
	if state != "" {
		args = append(args, "--state", state)
	}
	return func(ctx context.Context) (agent.Check, error) {
		if err != nil {
			return agent.Check{}, err
		}
		return askProgram(ctx, askLimit, path, args)
	}
}

// askProgram runs a program whose output is a check. Its exit code says no more than its errors do.
func askProgram(ctx context.Context, limit time.Duration, path string, args []string) (c agent.Check, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, errs bounded
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	// It is a process of its own: it neither reports to the service's manager nor takes over.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "NOTIFY_SOCKET=") })
	ran := cmd.Run()
	if ctx.Err() != nil {
		return c, fmt.Errorf("%s %s did not end within %v", path, strings.Join(args, " "), limit)
	}
	if out.over || errs.over {
		return c, fmt.Errorf("%s %s: its answer has more than %d bytes", path, strings.Join(args, " "), maxAnswer)
	}
	if err := json.Unmarshal(out.text, &c); err != nil {
		said, _, _ := strings.Cut(strings.TrimSpace(string(errs.text)), "\n")
		return agent.Check{}, fmt.Errorf("%s %s: %w: %q", path, strings.Join(args, " "), cmp.Or(ran, err), said)
	}
	return c, nil
}

// bounded keeps at most maxAnswer bytes. Who writes more is not read further.
type bounded struct {
	text []byte
	over bool
}

func (l *bounded) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > maxAnswer {
		l.over = true
		return 0, fmt.Errorf("more than %d bytes", maxAnswer)
	}
	l.text = append(l.text, p...)
	return len(p), nil
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
