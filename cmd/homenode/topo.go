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
	output, svg, png, pdf, hwloc, profile string
}

// files are what -o does not name, each in a file of its own or on standard output.
func (f topoFlags) files() []string { return []string{f.svg, f.png, f.pdf, f.hwloc} }

// toStdout is the number of files that are to go to standard output.
func (f topoFlags) toStdout() (n int) {
	for _, file := range f.files() {
		if file == "-" {
			n++
		}
	}
	return n
}

func topoCommand() *cobra.Command {
	var f topoFlags
	cmd := &cobra.Command{
		Use:   "topo",
		Short: "Show a machine: nodes, CPUs, caches, memory, distances, devices",
		Long: "Shows this machine, or the one that --root, --from-hwloc or --shape names.\n\n" +
			"What the kernel and the firmware do not report is unknown: null in JSON.",
		Example: "  homenode topo\n  homenode topo --svg machine.svg\n  homenode topo --png machine.png --pdf machine.pdf\n  homenode topo --root machine.tar.gz -o json\n  homenode topo --profile profile.json\n  homenode topo --hwloc - | lstopo -i - --if xml",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return showTopology(cmd, f) },
	}
	cli.Exits(cmd, "3", "a part could not be read, or is not plausible: a line on stderr says so")
	addMachineFlags(cmd, &f.Machine)
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, topology.Form)
	cmd.Flags().StringVar(&f.svg, "svg", "", "file for a picture (SVG); -: standard output, without any other output")
	cmd.Flags().StringVar(&f.png, "png", "", "file for the picture as PNG; -: as above")
	cmd.Flags().StringVar(&f.pdf, "pdf", "", "file for the picture as PDF; -: as above")
	profileFlag(cmd, &f.profile)
	cmd.Flags().StringVar(&f.hwloc, "hwloc", "", "file for hwloc's XML, for lstopo; -: standard output, without any other output")
	return cmd
}

func showTopology(cmd *cobra.Command, f topoFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), checkMachine(cmd, f.Machine)); err != nil {
		return err
	}
	if n := f.toStdout(); n > 1 || n == 1 && cmd.Flags().Changed("output") {
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
	left, err := writeFiles(cmd, f, m, options)
	if err != nil {
		return err
	}
	problems = append(problems, left...)
	if err := writeTopology(cmd, f, m, problems, options); err != nil {
		return err
	}
	return cli.Partly(cmd.ErrOrStderr(), problems)
}

// writeFiles writes the picture and hwloc's XML. left says what hwloc's form cannot hold;
// the rest of it is written.
func writeFiles(cmd *cobra.Command, f topoFlags, m machine.Machine, options []topology.Option) (left []string, err error) {
	out := cmd.OutOrStdout()
	if err := cli.WritePicture(out, f.svg, f.png, f.pdf, func(w io.Writer) error { return topology.SVG(w, m, options...) }); err != nil {
		return nil, err
	}
	err = cli.WriteTo(out, f.hwloc, func(w io.Writer) error {
		err := machine.WriteHwloc(w, m)
		if errors.Is(err, machine.ErrNotNested) {
			left, err = cli.Sentences(err), nil
		}
		return err
	})
	return left, err
}

func writeTopology(cmd *cobra.Command, f topoFlags, m machine.Machine, problems []string, options []topology.Option) error {
	out := cmd.OutOrStdout()
	switch {
	case f.toStdout() > 0:
		return nil
	case f.output == "json":
		return topology.JSON(out, m, problems, options...)
	}
	return topology.Text(cli.Text(out), m, options...)
}
