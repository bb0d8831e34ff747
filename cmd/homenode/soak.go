// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/schema"
	"homenode/internal/source"
)

// soakCommand is the command behind `make bench-agent`.
func soakCommand() *cobra.Command {
	var file, state string
	var rounds uint64
	cmd := &cobra.Command{
		Use: "soak FILE", Hidden: true,
		Short: "Play a recording to the agent's own loop, as fast as possible, and report its memory",
		Args:  cli.Exactly(1, "a recording"),
		RunE: func(cmd *cobra.Command, args []string) error {
			agent.StaySmall(0)
			c, err := agentConfig(file, state)
			if err != nil {
				return err
			}
			if state == "" {
				return exit.BadInput(fmt.Errorf("soak wants --state: a folder of its own"))
			}
			rec, err := source.Recording(args[0])
			if err != nil {
				return exit.BadInput(err)
			}
			tape, err := agent.NewTape(rec)
			if err != nil {
				return exit.BadInput(err)
			}
			out, err := serve.Soak(cmd.Context(), c, tape, cli.Version, rounds)
			if err != nil {
				return err
			}
			return schema.NewEncoder(cmd.OutOrStdout()).Encode(out)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the agent's configuration file")
	cmd.Flags().StringVar(&state, "state", "", "folder of the agent's status")
	cmd.Flags().Uint64Var(&rounds, "rounds", 8640, "number of windows; 8640 are a day of 10 s")
	return cmd
}
