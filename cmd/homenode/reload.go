// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
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
			if socket == "" {
				socket = agent.FindSocket(agent.DefaultStateDir)
			}
			r, err := askReload(cmd.Context(), socket)
			if err != nil {
				return err
			}
			return sayReloaded(cmd.OutOrStdout(), output, r)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the agent's socket (default: that of the agent in "+agent.DefaultStateDir+", else of a dry run)")
	cli.OutputFlag(cmd, &output)
	return cmd
}

// askReload is POST /v1/reload.
func askReload(ctx context.Context, socket string) (agent.Reloaded, error) {
	var d net.Dialer
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://homenode/v1/reload", nil)
	if err != nil {
		return agent.Reloaded{}, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return agent.Reloaded{}, exit.BadInput(fmt.Errorf("ask the agent at %s: %w: check that it is running, and that you may use its socket", socket, errors.Unwrap(err)))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return agent.Reloaded{}, fmt.Errorf("reload: %w", err)
	}
	return readReloaded(answer.StatusCode, body)
}

func readReloaded(code int, body []byte) (agent.Reloaded, error) {
	var r struct {
		agent.Reloaded
		Error string `json:"error"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return agent.Reloaded{}, fmt.Errorf("reload: the agent's answer: %w", err)
	}
	switch code {
	case http.StatusOK:
		return r.Reloaded, nil
	case http.StatusUnprocessableEntity, http.StatusConflict, http.StatusForbidden:
		return agent.Reloaded{}, exit.BadInput(errors.New("reload: " + r.Error))
	}
	return agent.Reloaded{}, fmt.Errorf("reload: %d: %s", code, r.Error)
}

func sayReloaded(w io.Writer, output string, r agent.Reloaded) error {
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
