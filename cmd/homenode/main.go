// SPDX-License-Identifier: Apache-2.0

// Command homenode keeps every workload next to its memory.
package main

import (
	"github.com/spf13/cobra"

	"homenode/internal/cli"
)

func main() { cli.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := cli.Root("homenode", "Keeps every workload next to its memory",
		"homenode watches where each workload runs and where its memory is, decides where it\nshould live, binds it, moves its memory home, and puts everything back when it ends.")
	cli.Group(root, "Inspect", topoCommand(), placementsCommand(), packCommand(), statCommand(), mapsCommand(), topCommand(), doctorCommand(), eventsCommand())
	cli.Group(root, "Act", runCommand(), migrateCommand(), placeCommand(), pinCommand(), restoreCommand())
	cli.Group(root, "Agent", agentCommand(), statusCommand(), whyCommand(), excludeCommand(), includeCommand(), reloadCommand(), handoverCommand(), replayCommand(), enrolCommand(), deployCommand())
	cli.Group(root, "Measure", benchCommand(), repeatCommand(), profileCommand(), experimentCommand(), recordCommand(), dumpCommand(), classesCommand())
	root.AddCommand(freezeCommand(), guardCommand(), soakCommand())
	cli.Parents(root)
	cli.CompleteFlags(root, flagValues)
	return root
}
