// SPDX-License-Identifier: Apache-2.0

// Command homenode-lab tests homenode without a NUMA machine: in the lab, a QEMU
// guest with a modelled memory system, and in a simulated world.
package main

import (
	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/lab"
	"homenode/internal/lab/demo"
)

func main() { cli.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := cli.Root("homenode-lab", "Tests homenode on a modelled NUMA machine in QEMU, and in a simulated world",
		"homenode-lab boots a NUMA machine in QEMU, compares homenode with its peers in it,\nand tries policies in a simulated world. Run it in the project's folder, after 'make lab'.")
	cli.Group(root, "Lab", labShapes(), labShell(), labRun(), demoCommand())
	cli.Group(root, "Simulator", simCommand())
	root.AddCommand(inGuest()...)
	cli.Parents(root)
	cli.CompleteFlags(root, flagValues)
	return root
}

// flagValues are the values of flags for a shell's completion.
var flagValues = map[string]cli.Values{
	"arms":       cli.Fixed(demo.Arms...),
	"cgroup":     cli.Fixed("v1", "v2"),
	"experiment": arenaNames,
	"guest":      cli.Fixed(lab.Busybox, lab.Debian),
}
