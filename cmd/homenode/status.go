// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/schema"
	"homenode/internal/views"
)

func statusCommand() *cobra.Command {
	var state, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what the agent saw in its last window, and what it did",
		Args:  cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := statusOf(cmd, state, output)
			if err != nil {
				return err
			}
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(s)
			}
			return views.Status(cmd.OutOrStdout(), s, cli.Screen())
		},
	}
	cmd.Flags().StringVar(&state, "state", agent.DefaultStateDir, "the agent's state folder")
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, agent.Status{})
	return cmd
}

// mostWait is how long status and why wait for the first round of an agent that has just
// started, as it has after its installation. The default period is 10 s.
const mostWait = time.Minute

func statusOf(cmd *cobra.Command, state, output string) (agent.Status, error) {
	if err := cli.CheckOutput(output); err != nil {
		return agent.Status{}, err
	}
	s, err := agent.FindStatus(state)
	if errors.Is(err, agent.ErrStarting) {
		cli.Tell(cmd.ErrOrStderr(), []string{"the agent has just started: waiting for the end of its first round"})
	}
	for end := time.Now().Add(mostWait); errors.Is(err, agent.ErrStarting) && time.Now().Before(end) && cmd.Context().Err() == nil; {
		time.Sleep(100 * time.Millisecond)
		s, err = agent.FindStatus(state)
	}
	if errors.Is(err, agent.ErrNoStatus) {
		err = exit.BadInput(err)
	}
	return s, exit.Precondition(err)
}

func whyCommand() *cobra.Command {
	var state, output, log string
	cmd := &cobra.Command{
		Use:   "why WORKLOAD",
		Short: "Show why a workload was bound, unbound or left alone",
		Long: "Shows the reason of the last window and the decisions before it. They come from the agent's status, and older\n" +
			"ones from its decision log. If no agent runs, all come from the log.",
		Args: cli.Exactly(1, "a workload: its cgroup path, the path's last part, or its service"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := statusOf(cmd, state, output)
			if errors.Is(err, agent.ErrNoStatus) {
				return whyFromLog(cmd.OutOrStdout(), logOf(state, log, s), args[0], output, err)
			}
			if err != nil {
				return err
			}
			ws, err := s.Find(args[0])
			if err != nil {
				return exit.BadInput(err)
			}
			earlier := earlierOf(cmd.ErrOrStderr(), logOf(state, log, s), ws)
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(whyJSON{s.Schema, ws, earlier})
			}
			ws.Past = append(earlier, ws.Past...)
			views.Why(cli.Text(cmd.OutOrStdout()), ws)
			return nil
		},
	}
	cmd.Flags().StringVar(&state, "state", agent.DefaultStateDir, "the agent's state folder")
	cmd.Flags().StringVar(&log, "decisions", "", "decision log (default: the agent's)")
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, whyJSON{}, whyLogJSON{})
	return cli.CompleteArgument(cmd, watched)
}
