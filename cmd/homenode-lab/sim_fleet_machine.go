// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/memsys"
	"homenode/internal/source"
)

// dualSkylake is the built-in machine's name.
const dualSkylake = "dual-skylake"

// simMachine is the machine of every server. Its figures come from its profile, if
// there is one, else they are the built-in's or the shape's own, else estimates
// from its topology.
func (f simFleetFlags) simMachine(c *fleet.Config, stderr io.Writer) error {
	var shape *machine.Shape
	var err error
	switch info, failed := os.Stat(f.machine); {
	case f.machine == dualSkylake:
		c.Machine, c.System = memsys.DualSkylake()
	case failed == nil && (info.IsDir() || !strings.HasSuffix(f.machine, ".yaml")):
		c.Machine, _, err = source.ReadRoot(f.machine, stderr)
	default:
		var s machine.Shape
		if s, err = source.Shape(f.shapes, f.machine); err != nil {
			break
		}
		shape, c.Machine = &s, s.Machine()
	}
	if err != nil {
		return fmt.Errorf("--machine: %w", err)
	}
	var p *profile.Profile
	if f.profile != "" {
		measured, err := source.Profile(f.profile, c.Machine, "")
		if err != nil {
			return err
		}
		p, c.Actuate.Profile = &measured, &measured
	}
	switch {
	case p == nil && f.machine == dualSkylake:
		return nil
	case p == nil && shape != nil:
		c.System = memsys.FromShape(*shape)
		return nil
	}
	c.System, err = memsys.FromMachine(c.Machine, p)
	return err
}
