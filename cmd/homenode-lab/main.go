// SPDX-License-Identifier: Apache-2.0

// Command homenode-lab tries homenode where there is no NUMA machine: in the lab, a
// QEMU guest with a modelled memory system, and in a simulated world.
package main

import (
	"github.com/spf13/cobra"

	"homenode/internal/cli"
)

func main() { cli.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := cli.Root("homenode-lab", "A NUMA machine in QEMU with a modelled memory system, and a simulated world",
		"homenode-lab boots a NUMA machine in QEMU, compares homenode with its peers in there,\nand tries policies in a simulated world. It runs in the project's folder, after 'make lab'.")
	root.AddCommand(labCommands()...)
	root.AddCommand(demoCommand(), simCommand())
	return root
}
