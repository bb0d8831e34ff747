// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/owner/cgroup"
	"homenode/internal/render"
)

// freezeCommand is for tests of thawing.
func freezeCommand() *cobra.Command {
	var name string
	var length time.Duration
	c := cgroup.FreezeConfig{}
	cmd := &cobra.Command{
		Use: "freeze", Hidden: true, Short: "Make the processes of a cgroup stand still for a while", Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkDirectOwners(c.DirectOwners); err != nil {
				return exit.BadInput(err)
			}
			id, err := kernel.FindCgroup(kernel.Live().Root(), name)
			if err != nil {
				return exit.BadInput(err)
			}
			f, err := cgroup.Freeze(cmd.Context(), kernel.Live(), c, id)
			if err != nil {
				return exit.Precondition(err)
			}
			return standStill(cmd, f, length)
		},
	}
	cmd.Flags().StringVar(&name, "cgroup", "", "cgroup to freeze")
	cmd.Flags().DurationVar(&length, "for", 2*time.Second, "time to stay frozen")
	cmd.Flags().DurationVar(&c.Limit, "limit", 0, "time after which the guard thaws the cgroup")
	cmd.Flags().StringVar(&c.StateDir, "state", agent.DefaultStateDir, "folder of the agent's state")
	directOwnerFlag(cmd, &c.DirectOwners)
	return cmd
}

func standStill(cmd *cobra.Command, f *cgroup.Frozen, length time.Duration) (err error) {
	defer func() {
		err = errors.Join(err, f.Thaw())
		if !f.Already() {
			fmt.Fprintf(cmd.OutOrStdout(), "thawed after %s\n", render.Span(f.For()))
		}
	}()
	if f.Already() {
		fmt.Fprintln(cmd.OutOrStdout(), "already frozen by another process: it stays frozen")
		return nil
	}
	fmt.Fprintf(cmd.OutOrStdout(), "frozen; guard %d\n", f.GuardPID())
	select {
	case <-time.After(length):
		return nil
	case <-cmd.Context().Done():
		return errors.New("interrupted")
	case <-f.Lost():
		return errors.New("the guard is gone: it was killed, or the limit passed")
	}
}
