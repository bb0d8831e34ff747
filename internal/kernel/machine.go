// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/unit"
)

// ReadMachine reads the topology below a root. As with machine.ParseSysfs, an error
// beside a machine that has CPUs names what is missing from it.
func ReadMachine(root Root) (machine.Machine, error) {
	live := root.Path("/") == "/"
	origin := "live"
	if !live {
		origin = "recorded:" + root.Path("/")
	}
	fsys, err := root.FS()
	if err != nil {
		return machine.Machine{}, err
	}
	m, err := machine.ParseSysfs(fsys, origin)
	if live && !m.PageSize.Known() {
		m.PageSize = unit.Some(unit.Bytes(unix.PageSize()))
	}
	if errors.Is(err, machine.ErrMalformed) {
		err = fmt.Errorf("read machine %s: %w (%w)", root, err, ErrMalformed)
	}
	return m, err
}
