// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"

	"homenode/internal/exit"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/profile"
)

// ProfileLimit is bytes: a profile of 64 nodes with every part is about 4 MiB.
const ProfileLimit = 1 << 26

// Profile reads a profile of this machine; one of another is refused. An empty
// CPU model is unknown.
func Profile(path string, m machine.Machine, cpuModel string) (profile.Profile, error) {
	p, err := ProfileFile(path)
	if err != nil {
		return profile.Profile{}, exit.BadInput(err)
	}
	if why := p.Machine.Differs(profile.FingerprintOf(m, cpuModel)); why != "" {
		return profile.Profile{}, exit.BadInput(fmt.Errorf("%s is of another machine: %s", path, why))
	}
	return p, nil
}

// ProfileFile reads a profile, whatever machine it is of.
func ProfileFile(path string) (profile.Profile, error) {
	data, err := unix.ReadAtMost(path, ProfileLimit)
	if err != nil {
		return profile.Profile{}, fmt.Errorf("read profile: %w", err)
	}
	p, err := profile.Decode(data)
	if err != nil {
		return profile.Profile{}, Explain(path, fmt.Errorf("%s: %w", path, err))
	}
	return p, nil
}

// LiveCPUModel is what this machine's CPUs call themselves; "" is unknown.
func LiveCPUModel() string {
	var buf unix.Buffer
	data, err := buf.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return procfs.ParseModelName(data)
}

// CPUModel is of the machine that the flags name; only this one's is known.
func (s Machine) CPUModel() string {
	if s.Root+s.FromHwloc+s.Shape != "" {
		return ""
	}
	return LiveCPUModel()
}
