// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/machine"
	"homenode/internal/placement"
	"homenode/internal/render"
	"homenode/internal/report/topology"
	"homenode/internal/source"
)

type placementFlags struct {
	source.Machine
	placement.Options
	output, svg, png, profile, links, devices string
}

func placementsCommand() *cobra.Command {
	var f placementFlags
	cmd := &cobra.Command{
		Use:   "placements",
		Short: "List the placements of a workload that matter on a machine",
		Long: "Of all ways to put N vCPUs on a machine, lists the few that differ in what the workload\nshares: cores, caches, nodes, interconnect (Funston et al., USENIX ATC 2018).\n\n" +
			"The interconnect's score is the bandwidth between the nodes in use, of --profile or --links.\nWithout either it is the number of direct links by the firmware's distances.\n\n" +
			"A table of links is YAML: row i, column j is what node nodes[i] reads from nodes[j], in MB/s:\n\n  nodes: [0, 1]\n  mb_s:\n    - [null, 5400]\n    - [5400, null]",
		Example: "  homenode placements --vcpus 16\n  homenode placements --vcpus 16 --shape opteron --svg placements.svg\n  homenode placements --vcpus 24 --profile profile.json -o json",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return showPlacements(cmd, f) },
	}
	cli.Exits(cmd, "3", "a part could not be read, or is not plausible: a line on stderr says so")
	addMachineFlags(cmd, &f.Machine)
	cmd.Flags().IntVar(&f.VCPUs, "vcpus", 0, "number of vCPUs (threads that run at once) of the workload")
	cmd.Flags().StringVar(&f.links, "links", "", "table of the bandwidths between nodes")
	cmd.Flags().StringVar(&f.devices, "devices", "", "score the nodes with a device of this kind, too: "+strings.Join(deviceClasses(), ", "))
	cmd.Flags().BoolVar(&f.Strict, "cover-all", false, "only packings that leave no node empty, as the paper has it")
	cmd.Flags().StringVar(&f.svg, "svg", "", "file for a picture (SVG); -: standard output, without any other output")
	cmd.Flags().StringVar(&f.png, "png", "", "file for the picture as PNG")
	profileFlag(cmd, &f.profile)
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, topology.PlacementsForm)
	return cmd
}

func deviceClasses() []string {
	return render.Each(machine.DeviceClasses(), func(c machine.DeviceClass) string { return string(c) })
}

func showPlacements(cmd *cobra.Command, f placementFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), checkMachine(cmd, f.Machine), f.check(cmd)); err != nil {
		return err
	}
	m, problems, err := f.Read(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.Links, err = source.Bandwidths(f.links, f.profile, m, f.CPUModel()); err != nil {
		return exit.BadInput(err)
	}
	l, err := placement.Important(m, f.Options)
	if err != nil {
		return exit.BadInput(err)
	}
	if err := f.write(cmd.OutOrStdout(), m, l); err != nil {
		return err
	}
	return cli.Partly(cmd.ErrOrStderr(), problems)
}

func (f *placementFlags) check(cmd *cobra.Command) error {
	switch {
	case !cmd.Flags().Changed("vcpus"):
		return exit.BadInput(errors.New("--vcpus is missing: give the number of vCPUs of the workload"))
	case f.links != "" && f.profile != "":
		return exit.BadInput(errors.New("--links and --profile both have bandwidths between nodes: give one of them"))
	case f.svg == "-" && cmd.Flags().Changed("output"):
		return exit.BadInput(errors.New("standard output can take only one output: name a file instead of -"))
	}
	if f.devices != "" && !slices.Contains(deviceClasses(), f.devices) {
		return exit.BadInput(fmt.Errorf("--devices %q: want one of %s", f.devices, strings.Join(deviceClasses(), ", ")))
	}
	f.Devices = machine.DeviceClass(f.devices)
	return nil
}

func (f placementFlags) write(out io.Writer, m machine.Machine, l placement.List) error {
	err := cli.WritePicture(out, f.svg, f.png, "", func(w io.Writer) error { return topology.PlacementsSVG(w, m, l) })
	switch {
	case err != nil || f.svg == "-":
		return err
	case f.output == "json":
		return topology.PlacementsJSON(out, m.Origin, l)
	}
	return topology.PlacementsText(out, cli.Screen(), m.Origin, l)
}
