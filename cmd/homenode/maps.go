// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/report"
	"homenode/internal/schema"
	"homenode/internal/snapshot"
	"homenode/internal/source"
)

func mapsCommand() *cobra.Command {
	var root, output string
	var top int
	cmd := &cobra.Command{
		Use:   "maps PID",
		Short: "Show a process's memory by kind and node, and its biggest mappings",
		Long: "Sums up /proc/PID/numa_maps as heap, stack, anon, shared, file and huge, with a bar per node.\n" +
			"A private mapping of a file counts as file, even if the process wrote to it. Pages that several\n" +
			"processes map are counted in each of them.",
		Args: cli.Exactly(1, "a process id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return exit.BadInput(err)
			}
			processes, err := source.Processes(args[0])
			if err != nil || len(processes.PIDs) != 1 {
				return exit.BadInput(fmt.Errorf("process id %q: want a number", args[0]))
			}
			if top < 1 {
				return exit.BadInput(fmt.Errorf("--top %d: want at least 1", top))
			}
			if err := checkFolder(root); err != nil {
				return exit.BadInput(err)
			}
			cfg := kernel.SnapshotConfig{Reader: kernel.Config{Root: kernel.At(root)}, OnlyProcesses: true, Processes: processes, Biggest: top}
			return maps(cmd.Context(), cmd.OutOrStdout(), cfg, output)
		},
	}
	cmd.Flags().IntVar(&top, "top", 10, "number of the biggest mappings to show")
	cmd.Flags().StringVar(&root, "root", "/", "recorded tree instead of the running kernel")
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, snapshot.Snapshot{})
	return cmd
}

func maps(ctx context.Context, w io.Writer, cfg kernel.SnapshotConfig, output string) error {
	oneShot(1)
	s, err := kernel.NewSnapshotter(cfg)
	if err != nil {
		return exit.BadInput(err)
	}
	defer s.Close()
	out, err := s.Read(ctx)
	if err != nil {
		return err
	}
	if out.NoneKnown() {
		return exit.BadInput(errors.New(strings.Join(out.Problems, "; ")))
	}
	if output == "json" {
		return schema.NewEncoder(w).Encode(out)
	}
	return report.Maps(w, out, cfg.Biggest, cli.Screen())
}
