// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/schema"
)

func handoverCommand() *cobra.Command {
	var file, state, output string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "handover",
		Short: "Make the running agent continue as the program that is installed now, with its bindings",
		Long: "For upgrades. The agent ends its round and becomes the program that now stands where it was started from, in the\n" +
			"same process: nothing is put back or bound again. If the new program cannot take over, everything is put back as\n" +
			"after a kill.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			c, err := agentConfig(file, state)
			if err != nil {
				return err
			}
			before, err := serve.Running(c.StateDir)
			if err != nil {
				return err
			}
			if err := serve.AskHandover(before.PID); err != nil {
				return exit.Precondition(err)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			if err := serve.AwaitHandover(ctx, c.StateDir, before); err != nil {
				return err
			}
			if output == "json" {
				return schema.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"schema": 1, "pid": before.PID, "continues": true})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the agent, pid %d, continues as the new program; its bindings stayed\n", before.PID)
			return nil
		},
	}
	cli.Exits(cmd, "1", "the agent continues as it was, or ended",
		"3", "it continues as it was, because calls about processes do not return: try again later", "4", "no agent runs")
	cmd.Flags().StringVar(&file, "config", "", "the agent's configuration file")
	cmd.Flags().StringVar(&state, "state", "", "folder of journal and status (default: the configuration's, "+agent.DefaultStateDir+")")
	cmd.Flags().DurationVar(&wait, "wait", 2*time.Minute, "time that the agent may take: it ends its round first")
	cli.OutputFlag(cmd, &output)
	return cmd
}
