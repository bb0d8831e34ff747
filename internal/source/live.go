// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/machine"
)

// Usable passes a machine on with what could not be read, unless there is none:
// then all there is to say is a sentence. What the firmware contradicts itself in
// was read well, and is a warning that comes with the machine (AllDoubts).
func Usable(m machine.Machine, err error, from string) (machine.Machine, []string, error) {
	problems := cli.Sentences(err)
	if len(m.CPUs) > 0 && len(m.Nodes) > 0 {
		return m, slices.DeleteFunc(problems, func(p string) bool {
			return slices.ContainsFunc(m.AllDoubts(), func(d string) bool { return strings.HasSuffix(p, d) })
		}), nil
	}
	switch {
	case errors.Is(err, machine.ErrNoCPU) && len(problems) > 1: // why none was found
		err = errors.New(problems[1])
	case errors.Is(err, machine.ErrNoCPU):
		err = machine.ErrNoCPU
	case len(problems) > 0:
		err = errors.New(problems[0])
	default:
		err = errors.New("it describes no CPU and no node")
	}
	return machine.Machine{}, nil, exit.BadInput(fmt.Errorf("read machine from %s: %w", from, err))
}

// Live reads the machine this runs on.
func Live() (machine.Machine, []string, error) {
	m, err := kernel.ReadMachine(kernel.At("/"))
	return Usable(m, err, "/")
}
