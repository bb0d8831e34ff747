// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/record"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/source"
)

type recordFlags struct {
	root, out string
	force     bool
}

func recordCommand() *cobra.Command {
	var f recordFlags
	var w host.RecordOptions
	var config string
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Save this machine as a file for a bug report, or record what it does for a replay",
		Long: "Saves the files of /sys and /proc that describe CPUs, caches, memory, nodes and PCI devices.\n" +
			"Serial numbers, host names, hardware addresses and command lines are not among them.\n'homenode topo --root FILE' shows the same machine elsewhere.\n\n" +
			"With --windows, it records what machine and workloads do, one window per line, for 'homenode top --replay'.\n" +
			"Such a file does not name the host, but it has the paths of its cgroups.",
		Example: "  homenode record --out machine.tar.gz\n  homenode record --root DIR --out smaller/\n  homenode record --windows day.jsonl --for 10m",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("windows") {
				if err := withoutWindows(cmd.Flags()); err != nil {
					return exit.BadInput(err)
				}
				return recordMachine(cmd, f)
			}
			if cmd.Flags().Changed("root") || cmd.Flags().Changed("out") {
				return exit.BadInput(errors.New("--windows records this host while it runs: leave out --root and --out"))
			}
			w.Force = f.force
			w, err := checkedWindows(w, config)
			if err != nil {
				return err
			}
			return host.Record(cmd.Context(), w)
		},
	}
	cli.Exits(cmd, "3", "saved, but a part could not be read, or is not plausible")
	cmd.Flags().StringVar(&f.out, "out", "", "target: a .tar.gz, or a folder that is created")
	cmd.Flags().StringVar(&f.root, "root", "", "recorded tree instead of this machine")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the file if it exists")
	addWindowFlags(cmd.Flags(), &w, &config)
	return cmd
}

func recordMachine(cmd *cobra.Command, f recordFlags) error {
	if !cmd.Flags().Changed("out") {
		return exit.BadInput(errors.New("no target to save this machine to: give --out, such as --out machine.tar.gz"))
	}
	if f.out == "" {
		return exit.BadInput(errors.New("--out is empty: name a .tar.gz or a folder"))
	}
	if cmd.Flags().Changed("root") && f.root == "" {
		return exit.BadInput(errors.New("--root is empty: name a tree, or leave it out for this machine"))
	}
	tree, m, problems, err := sourceOf(f.root, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	saved, err := record.Gather(tree, m.PageSize)
	if err := saved.Save(f.out, f.force); errors.Is(err, record.ErrExists) {
		return exit.BadInput(fmt.Errorf("%w: name another --out, or replace it with --force", err))
	} else if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "saved %s and %s to %s: %s, %v before packing\n", render.Count(len(m.CPUs), "CPU"), render.Count(len(m.Nodes), "node"), f.out,
		render.Count(len(saved.Files), "entry"), saved.Bytes())
	fmt.Fprintln(cmd.OutOrStdout(), "no serial numbers, host names, hardware addresses or command lines are in it")
	fmt.Fprintf(cmd.OutOrStdout(), "'homenode topo --root %s' shows it\n", f.out)
	return cli.Partly(cmd.ErrOrStderr(), append(problems, cli.Sentences(err)...))
}

// sourceOf opens what is recorded, and reads the machine: a tree that describes
// no machine is not worth saving.
func sourceOf(root string, stderr io.Writer) (fs.FS, machine.Machine, []string, error) {
	if root == "" {
		m, problems, err := source.Live()
		if err != nil {
			return nil, m, nil, err
		}
		tree, err := kernel.At("/").FS()
		return tree, m, problems, err
	}
	tree, where, err := source.OpenTree(root, stderr)
	if err != nil {
		return nil, machine.Machine{}, nil, exit.BadInput(err)
	}
	m, err := machine.ParseSysfs(tree, "recorded:"+where)
	m, problems, err := source.Usable(m, err, where)
	return tree, m, problems, err
}
