// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/kernel/cgroup"
)

// directOwnerFlag adds --direct-owner to commands that freeze.
func directOwnerFlag(cmd *cobra.Command, names *[]string) {
	cmd.Flags().StringSliceVar(names, "direct-owner", nil, "freeze: owner, such as systemd, whose cgroups are frozen directly; repeatable")
}

func checkDirectOwners(names []string) error {
	for _, name := range names {
		if !slices.Contains(owners(), name) {
			return fmt.Errorf("--direct-owner %q: want %s", name, strings.Join(owners(), ", "))
		}
	}
	return nil
}

// owners are the programs that may manage a cgroup.
func owners() []string {
	return []string{cgroup.Systemd, cgroup.Kubelet, cgroup.Docker, cgroup.Containerd, cgroup.Podman, cgroup.Libvirt}
}
