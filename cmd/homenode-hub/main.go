// SPDX-License-Identifier: Apache-2.0

// Command homenode-hub keeps what the hosts of a fleet see, and answers questions about it.
package main

import (
	"github.com/spf13/cobra"

	"homenode/internal/cli"
)

func main() { cli.Main(rootCommand()) }

func rootCommand() *cobra.Command {
	root := cli.Root("homenode-hub", "Keeps what the hosts of a fleet see, and answers questions about it",
		"homenode-hub receives what the agents of many hosts see, decide and do, keeps it in a store,\nand shows it. Agents pull their orders from it. Start with 'homenode-hub dev'.")
	cli.Group(root, "Serve", serveCommand(), devCommand())
	cli.Group(root, "Hosts", enrolCommand(), revokeCommand(), ordersCommand())
	cli.Group(root, "Roll out", deployCommand())
	addQuestions(root)
	cli.Parents(root)
	cli.CompleteFlags(root, nil)
	return root
}
