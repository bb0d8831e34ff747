// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/agent/serve"
	"homenode/internal/cli"
	"homenode/internal/render"
	"homenode/internal/schema"
)

func reloadCommand() *cobra.Command {
	var socket, output string
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Make the running agent read its configuration again",
		Long: "Asks the agent over its socket. A configuration with a mistake changes nothing: the mistake is shown, and the\n" +
			"exit code is 2. Settings that need a restart are listed. SIGHUP does the same, and reports in the agent's log.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			var r serve.Reloaded
			if err := askAgent(cmd.Context(), socket, "reload", http.MethodPost, "/v1/reload", &r); err != nil {
				return err
			}
			return sayReloaded(cmd.OutOrStdout(), output, r)
		},
	}
	socketFlag(cmd, &socket)
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, serve.Reloaded{})
	return cmd
}

func sayReloaded(w io.Writer, output string, r serve.Reloaded) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(r)
	}
	say := func(what string, names []string) {
		if len(names) > 0 {
			fmt.Fprintln(w, what+render.Printable(strings.Join(names, ", ")))
		}
	}
	if len(r.Changed)+len(r.Waits) == 0 {
		fmt.Fprintln(w, "no setting changed; files were opened again")
	}
	say("with the next window: ", r.Changed)
	say("after a restart: ", r.Waits)
	return nil
}
