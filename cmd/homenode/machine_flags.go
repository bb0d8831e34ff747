// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/exit"
	"homenode/internal/source"
	"homenode/lab/shapes"
)

// addMachineFlags adds the flags that name a machine.
func addMachineFlags(cmd *cobra.Command, s *source.Machine) {
	cmd.Flags().StringVar(&s.Root, "root", "", "recorded tree: a folder that holds sys/, or a .tar.gz of 'homenode record'")
	cmd.Flags().StringVar(&s.FromHwloc, "from-hwloc", "", "file of hwloc's XML ('lstopo machine.xml')")
	cmd.Flags().StringVar(&s.Shape, "shape", "", "machine of the lab: "+strings.Join(shapes.Names(), ", ")+", or a file")
}

// checkMachine refuses two machines, and an empty name: a script left it empty, and it
// would mean this host.
func checkMachine(cmd *cobra.Command, s source.Machine) error {
	named := 0
	for name, value := range map[string]string{"root": s.Root, "from-hwloc": s.FromHwloc, "shape": s.Shape} {
		if !cmd.Flags().Changed(name) {
			continue
		}
		if named++; value == "" {
			return exit.BadInput(fmt.Errorf("--%s is empty: name a machine, or leave it out for this one", name))
		}
	}
	if named > 1 {
		return exit.BadInput(errors.New("--root, --from-hwloc and --shape each name a machine: give one of them"))
	}
	return nil
}
