// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/packing"
	"homenode/internal/report/topology"
	"homenode/internal/source"
)

type packFlags struct {
	source.PackingOptions
	output, svg, png string
}

func packCommand() *cobra.Command {
	var f packFlags
	cmd := &cobra.Command{
		Use:   "pack FILE",
		Short: "Pack containers with goals onto one host, by several policies side by side",
		Long: "Puts containers onto the nodes of one machine, by the policies of Funston et al. (USENIX ATC 2018):\n\n" +
			"  ml                each on the fewest nodes where its speed meets its goal, alone on them; as many as fit\n" +
			"  conservative      the first one alone on the machine, unpinned\n" +
			"  aggressive        as many as the machine has CPUs for, unpinned\n" +
			"  smart-aggressive  as many as fit, each on few nodes with the best links between them\n" +
			"  exact             the most that can meet their goals, by trying everything; for small cases\n\n" +
			"FILE is YAML. A container's speed in each placement is predicted by a model from the speeds of its two or\n" +
			"three probes, or measured in all placements that 'homenode placements' lists. Nothing is placed.\n\n" +
			"  machine: {shape: opteron}       # or root, hwloc; with links or profile; without any: this host\n" +
			"  containers:\n" +
			"    - {name: web, vcpus: 4, goal: 0.9, count: 3, model: model.json, probes: [1210, 1302]}\n" +
			"    - {name: batch, vcpus: 4, goal: 1, baseline: 2, speeds: [9.8, 10.2, 11.3, 11.4, 12.0]}",
		Example: "  homenode pack containers.yaml\n  homenode pack containers.yaml --confidence 0.99 --svg packing.svg\n  homenode pack containers.yaml -o json",
		Args:    cli.Exactly(1, "one file of containers"),
		RunE:    func(cmd *cobra.Command, args []string) error { return pack(cmd, args[0], f) },
	}
	cli.Exits(cmd, "3", "a part of the machine could not be read, or is not plausible: a line on stderr says so")
	flags := cmd.Flags()
	flags.Float64Var(&f.Confidence, "confidence", packing.DefaultConfidence, "confidence of each bound of a prediction")
	flags.Float64Var(&f.Tolerance, "tolerance", packing.DefaultTolerance, "share by which a speed may be below its goal before the goal is missed")
	flags.BoolVar(&f.Simulated, "simulated-model", false, "also use a model that was trained in the simulator or in the lab, not on hardware")
	flags.StringVar(&f.svg, "svg", "", "file for a picture (SVG); -: standard output, without any other output")
	flags.StringVar(&f.png, "png", "", "file for the picture as PNG")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, topology.PackingForm)
	return cmd
}

func pack(cmd *cobra.Command, path string, f packFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), f.check(cmd)); err != nil {
		return exit.BadInput(err)
	}
	in, err := source.NewPacking(path, f.PackingOptions)
	if err != nil {
		return exit.BadInput(err)
	}
	m, problems, err := in.Machine().Read(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	p, err := in.Problem(m)
	if err != nil {
		return exit.BadInput(err)
	}
	if err := f.write(cmd.OutOrStdout(), topology.NewPacking(p, f.Confidence, in.From)); err != nil {
		return err
	}
	return cli.Partly(cmd.ErrOrStderr(), problems)
}

func (f packFlags) check(cmd *cobra.Command) error {
	switch {
	case f.svg == "-" && cmd.Flags().Changed("output"):
		return errors.New("standard output can take only one output: name a file instead of -")
	case !(f.Confidence > 0 && f.Confidence < 1):
		return fmt.Errorf("--confidence %v: want between 0 and 1, such as 0.95", f.Confidence)
	case !(f.Tolerance >= 0 && f.Tolerance < 1):
		return fmt.Errorf("--tolerance %v: want 0 or more, and less than 1, such as 0.05", f.Tolerance)
	}
	return nil
}

func (f packFlags) write(out io.Writer, k topology.Packing) error {
	err := cli.WritePicture(out, f.svg, f.png, "", k.SVG)
	switch {
	case err != nil || f.svg == "-":
		return err
	case f.output == "json":
		return k.JSON(out)
	}
	return k.Text(out, cli.Screen())
}
