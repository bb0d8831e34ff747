// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"homenode/internal/kernel/procfs"
	"homenode/internal/machine"
	"homenode/internal/profile"
)

// profileLimit is bytes: a profile of 64 nodes with every part is about 4 MiB.
const profileLimit = 1 << 26

func profileFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "profile", "", "what 'homenode bench' measured of this machine")
}

// readProfile reads a profile of this machine; one of another is refused. An empty
// CPU model is unknown.
func readProfile(path string, m machine.Machine, cpuModel string) (profile.Profile, error) {
	p, err := readProfileFile(path)
	if err != nil {
		return profile.Profile{}, badInput(err)
	}
	if why := p.Machine.Differs(profile.FingerprintOf(m, cpuModel)); why != "" {
		return profile.Profile{}, badInput(fmt.Errorf("%s is of another machine: %s", path, why))
	}
	return p, nil
}

// readProfileFile reads a profile, whatever machine it is of.
func readProfileFile(path string) (profile.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return profile.Profile{}, fmt.Errorf("read profile: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, profileLimit+1))
	if err != nil {
		return profile.Profile{}, fmt.Errorf("read profile: %w", err)
	}
	if len(data) > profileLimit {
		return profile.Profile{}, fmt.Errorf("read profile %s: more than %d bytes", path, profileLimit)
	}
	p, err := profile.Decode(data)
	if err != nil {
		return profile.Profile{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// liveCPUModel is what this machine's CPUs call themselves; "" is unknown.
func liveCPUModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return procfs.ParseModelName(data)
}

// cpuModel is of the machine that the flags name; only this one's is known.
func (s machineSource) cpuModel() string {
	if s.root+s.fromHwloc+s.shape != "" {
		return ""
	}
	return liveCPUModel()
}
