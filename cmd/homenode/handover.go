// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
	"homenode/internal/schema"
)

// handedOverJSON is what -o json prints.
type handedOverJSON struct {
	Schema    int  `json:"schema"` // 1
	PID       int  `json:"pid"`
	Continues bool `json:"continues"`
}

func handoverCommand() *cobra.Command {
	var f stateFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "handover",
		Short: "Make the running agent continue as the program that is installed now, with its bindings",
		Long: "For upgrades. The agent ends its round and becomes the program that now stands where it was started from, in the\n" +
			"same process: nothing is put back or bound again. If the new program cannot take over, everything is put back as\n" +
			"after a kill.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.read()
			if err != nil {
				return err
			}
			before, err := runningAgent(c.StateDir)
			if err != nil {
				return err
			}
			if err := serve.AskHandover(before.PID); err != nil {
				return exit.Precondition(err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			if err := awaitHandover(ctx, c.StateDir, before); err != nil {
				return err
			}
			if f.output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(handedOverJSON{1, before.PID, true})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the agent, pid %d, continues as the new program; its bindings stayed\n", before.PID)
			return nil
		},
	}
	cli.Exits(cmd, "1", "the agent continues as it was, or ended",
		"3", "it continues as it was, because calls about processes do not return: try again later", "4", "no agent runs")
	f.add(cmd, "journal and status")
	cli.Writes(cmd, handedOverJSON{})
	cmd.Flags().DurationVar(&wait, "wait", 2*time.Minute, "time that the agent may take: it ends its round first")
	return cmd
}

// replacer makes this process the program that now stands where this one was started from. A
// program that was replaced meanwhile has another path in /proc, so it is read at the start.
func replacer(hangup chan os.Signal) func([]byte) error {
	path, err := os.Executable()
	return func(data []byte) error {
		if err != nil {
			return err
		}
		defer serve.Hear(hangup)
		return unix.Reexec(path, data)
	}
}

// runningAgent is the status of the agent that holds the journal.
func runningAgent(dir string) (agent.Status, error) {
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

// awaitHandover waits until the same process reports another start: its first round as the new
// program is over then.
func awaitHandover(ctx context.Context, dir string, before agent.Status) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if !serve.Runs(before.PID) {
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
