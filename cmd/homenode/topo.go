// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/machine"
	"homenode/internal/report/topology"
	"homenode/internal/source"
)

// topoFlags say what to show and in which format.
type topoFlags struct {
	source.Machine
	output, svg, hwloc, profile string
}

func topoCommand() *cobra.Command {
	var f topoFlags
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show a machine: nodes, CPUs, caches, memory, distances, devices",
		Long: "Shows this machine, or the one that --root, --from-hwloc or --shape names.\n\n" +
			"What the kernel and the firmware do not report is unknown: null in JSON. If a part could not\nbe read or is not plausible, a line on stderr says so, and the exit code is 3.",
		Example: "  homenode topo\n  homenode topo --svg machine.svg\n  homenode topo --root machine.tar.gz -o json\n  homenode topo --profile profile.json\n  homenode topo --hwloc - | lstopo -i - --if xml",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return showTopology(cmd, f) },
	}
	addMachineFlags(cmd, &f.Machine)
	cli.OutputFlag(cmd, &f.output)
	cmd.Flags().StringVar(&f.svg, "svg", "", "file for a picture (SVG); -: standard output, without any other output")
	profileFlag(cmd, &f.profile)
	cmd.Flags().StringVar(&f.hwloc, "hwloc", "", "file for hwloc's XML, for lstopo; -: standard output, without any other output")
	return cmd
}

func showTopology(cmd *cobra.Command, f topoFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), checkMachine(cmd, f.Machine)); err != nil {
		return err
	}
	if f.svg == "-" && f.hwloc == "-" || (f.svg == "-" || f.hwloc == "-") && cmd.Flags().Changed("output") {
		return exit.BadInput(errors.New("standard output can take only one output: name a file instead of one -"))
	}
	m, problems, err := f.Read(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	var options []topology.Option
	if f.profile != "" {
		p, err := source.Profile(f.profile, m, f.CPUModel())
		if err != nil {
			return err
		}
		options = append(options, topology.WithProfile(p))
	}
	if err := writeTopology(cmd, f, m, problems, options); err != nil {
		return err
	}
	return cli.Partly(cmd.ErrOrStderr(), problems)
}

func writeTopology(cmd *cobra.Command, f topoFlags, m machine.Machine, problems []string, options []topology.Option) error {
	out := cmd.OutOrStdout()
	if err := cli.WriteTo(out, f.svg, func(w io.Writer) error { return topology.SVG(w, m, options...) }); err != nil {
		return err
	}
	if err := cli.WriteTo(out, f.hwloc, func(w io.Writer) error { return machine.WriteHwloc(w, m) }); err != nil {
		return err
	}
	switch {
	case f.svg == "-" || f.hwloc == "-":
		return nil
	case f.output == "json":
		return topology.JSON(out, m, problems, options...)
	}
	return topology.Text(out, m, options...)
}
