// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/model"
	"homenode/internal/packing"
	"homenode/internal/placement"
	"homenode/internal/report/topology"
	"homenode/internal/source"
)

type packFlags struct {
	output, svg, png      string
	confidence, tolerance float64
	simulated             bool
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
	flags.Float64Var(&f.confidence, "confidence", packing.DefaultConfidence, "confidence of each bound of a prediction")
	flags.Float64Var(&f.tolerance, "tolerance", packing.DefaultTolerance, "share by which a speed may be below its goal before the goal is missed")
	flags.BoolVar(&f.simulated, "simulated", false, "take models that were trained in the simulator, too")
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
	text, err := unix.ReadAtMost(path, packing.MaxFile)
	if err != nil {
		return exit.BadInput(fmt.Errorf("read file of containers: %w", err))
	}
	file, err := packing.ParseFile(text, path)
	if err != nil {
		return exit.BadInput(err)
	}
	in := packInput{File: file, folder: filepath.Dir(path), flags: f, models: map[string]*model.Model{}, from: map[string]string{}}
	m, problems, err := in.machine().Read(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	p, err := in.problem(m)
	if err != nil {
		return exit.BadInput(err)
	}
	if err := f.write(cmd.OutOrStdout(), topology.NewPacking(p, f.confidence, in.from)); err != nil {
		return err
	}
	return cli.Partly(cmd.ErrOrStderr(), problems)
}

func (f packFlags) check(cmd *cobra.Command) error {
	switch {
	case f.svg == "-" && cmd.Flags().Changed("output"):
		return errors.New("standard output can take only one output: name a file instead of -")
	case !(f.confidence > 0 && f.confidence < 1):
		return fmt.Errorf("--confidence %v: want between 0 and 1, such as 0.95", f.confidence)
	case !(f.tolerance >= 0 && f.tolerance < 1):
		return fmt.Errorf("--tolerance %v: want 0 or more, and less than 1, such as 0.05", f.tolerance)
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

// packInput is a file of containers, and what it names.
type packInput struct {
	packing.File
	folder string
	flags  packFlags
	models map[string]*model.Model
	from   map[string]string // where a container's speeds come from, by its name
}

// path is relative to the file of containers.
func (in *packInput) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(in.folder, name)
}

func (in *packInput) machine() *source.Machine {
	shape := in.Machine.Shape
	if strings.ContainsAny(shape, "/.") {
		shape = in.path(shape)
	}
	return &source.Machine{Shape: shape, Root: in.path(in.Machine.Root), FromHwloc: in.path(in.Machine.Hwloc)}
}

func (in *packInput) problem(m machine.Machine) (*packing.Problem, error) {
	links, err := placementFlags{Machine: *in.machine(), links: in.path(in.Machine.Links), profile: in.path(in.Machine.Profile)}.readLinks(m)
	if err != nil {
		return nil, err
	}
	var all []packing.Container
	for _, c := range in.Containers {
		all = append(all, packing.Container{Name: c.Name, VCPUs: c.VCPUs, Goal: c.Goal, Count: c.Count})
	}
	p, err := packing.New(m, links, all)
	if err != nil {
		return nil, err
	}
	for i, c := range in.Containers {
		if all[i].Speeds, err = in.speeds(c, p.List(c.VCPUs)); err != nil {
			return nil, fmt.Errorf("container %.80s: %w", c.Name, err)
		}
	}
	if p, err = p.With(all); err == nil {
		p.Tolerance = in.flags.tolerance
	}
	return p, err
}

func (in *packInput) speeds(c packing.FileContainer, l placement.List) ([]packing.Speed, error) {
	switch {
	case len(c.Speeds) > 0:
		in.from[c.Name] = "measured in each placement"
		return packing.Measured(c.Speeds, c.Baseline-1)
	case len(c.Probes) == 0:
		return nil, nil
	}
	path := in.path(c.Model)
	if in.models[path] == nil {
		m, err := source.Model(path)
		if err != nil {
			return nil, err
		}
		in.models[path] = &m
	}
	m := in.models[path]
	machineType := in.Machine.Type
	if machineType == "" {
		machineType = in.Machine.Shape
	}
	if machineType == "" {
		return nil, fmt.Errorf("model %s is of the machine type %.80q: if this machine is one, say so ('machine: {type: …}')", c.Model, m.Machine)
	}
	err := m.Fits(model.Use{Machine: machineType, List: l, Simulated: in.flags.simulated})
	switch {
	case errors.Is(err, model.ErrSimulated):
		return nil, fmt.Errorf("model %s: %w (--simulated)", c.Model, err)
	case err != nil:
		return nil, fmt.Errorf("model %s: %w", c.Model, err)
	}
	in.from[c.Name] = "predicted by " + c.Model
	if m.Source == model.Simulator {
		in.from[c.Name] += ", which was trained in the simulator"
	}
	return packing.Predicted(m, c.Probes, in.flags.confidence)
}
