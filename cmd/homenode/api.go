// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/exit"
)

// mostAnswer bounds what is read of an agent's answer, bytes.
const mostAnswer = 1 << 20

func socketFlag(cmd *cobra.Command, socket *string) {
	cmd.Flags().StringVar(socket, "socket", "", "the agent's socket (default: that of the agent in "+agent.DefaultStateDir+", else of a dry run)")
}

// askAgent sends a request to the agent's API, and reads its answer into a value. what is
// asked for begins the errors; one that the agent answers with is bad input.
func askAgent(ctx context.Context, socket, what, method, path string, into any) error {
	if socket == "" {
		socket = agent.FindSocket(agent.DefaultStateDir)
	}
	var d net.Dialer
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", socket) }}}
	req, err := http.NewRequestWithContext(ctx, method, "http://homenode"+path, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(req)
	if err != nil {
		return exit.BadInput(unreachable(socket, err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return readAnswer(what, answer.StatusCode, body, into)
}

// unreachable says why an agent does not answer at its socket, and what to do.
func unreachable(socket string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no agent is at %s: start 'homenode agent', or name its socket with --socket", socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("you may not use %s: run as root, or as a member of the group that the configuration names as api: write_group", socket)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return fmt.Errorf("no agent answers at %s (%w): start 'homenode agent', or name its socket with --socket", socket, err)
}

func readAnswer(what string, code int, body []byte, into any) error {
	var failure struct {
		Error string `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(body, &failure), json.Unmarshal(body, into)); err != nil {
		return fmt.Errorf("%s: the agent's answer: %w", what, err)
	}
	switch {
	case code == http.StatusOK:
		return nil
	case code >= 400 && code < 500:
		return exit.BadInput(errors.New(what + ": " + failure.Error))
	}
	return fmt.Errorf("%s: %d: %s", what, code, failure.Error)
}
