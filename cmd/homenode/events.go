// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"homenode/internal/source"
	"homenode/internal/views"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/event"
	"homenode/internal/render"
	"homenode/internal/schema"
)

func eventsCommand() *cobra.Command {
	var name, root, output string
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show which PMU events count which field on this CPU, and which of them this host opens",
		Long: "Shows the event table of this machine's CPUs: for each field the event that is counted, other\n" +
			"ways to count it, or why this CPU cannot count it. It opens each event on one CPU as the current\n" +
			"user, closes it at once, and says which the kernel refuses, and why. Events that open alone may\n" +
			"not all fit the PMU's counters together.\n\n" +
			"--cpu and --root show a table only, and open nothing. The tables:\n" + wrapped(event.Names()) + ".",
		Example: "  homenode events\n  homenode events --cpu amd-zen4\n  homenode events -o json",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			list, err := source.EventsOf(name, root)
			if err != nil {
				return err
			}
			if output == "json" {
				enc := schema.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(list)
			}
			return views.Events(cmd.OutOrStdout(), cli.Screen(), list)
		},
	}
	cmd.Flags().StringVar(&name, "cpu", "", "name of an event table, instead of this machine's")
	cmd.Flags().StringVar(&root, "root", "/", "recorded tree with proc/cpuinfo, instead of this machine")
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, source.Events{})
	return cmd
}

// wrapped joins names by commas, on lines that fit a terminal.
func wrapped(names []string) string {
	const width = 91
	return strings.Join(render.Wrap("", "", strings.Join(names, ", "), width), "\n")
}
