// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
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
