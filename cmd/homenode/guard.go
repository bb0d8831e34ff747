// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"homenode/internal/kernel/freeze"
	"homenode/internal/owner/cgroup"
)

// guardCommand is the program that homenode starts before it freezes a cgroup.
func guardCommand() *cobra.Command {
	return &cobra.Command{
		Use: freeze.GuardCommand, Hidden: true, Short: "Thaw a cgroup when the homenode that froze it is gone", DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return cgroup.RunGuard(args) },
	}
}
