// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/report/simulation"
	"homenode/internal/schema"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/memsys"
	"homenode/internal/sim/placements"
	"homenode/internal/source"
	"homenode/internal/unit"
)

type simPlacementsFlags struct {
	machine, shape, links, noise, dataset, output string
	vcpus, applications, workers                  int
	seed                                          uint64
}

func simPlacementsCommand() *cobra.Command {
	var f simPlacementsFlags
	cmd := &cobra.Command{
		Use:   "placements",
		Short: "Run generated workloads in every important placement of a machine: a data set to learn from",
		Long: "homenode-lab sim placements draws applications from a seed, " + strconv.Itoa(catalog.SharerInputs) + " inputs each, and runs each alone in every\n" +
			"important placement of a machine (see 'homenode placements'). A row of the data set is a workload in a\n" +
			"placement: its speed, measured twice with the noise of the lab, and the features of a window there.\n" +
			"python/homenode_model learns from it. All figures are modelled.\n\n" +
			"Kinds of applications: " + strings.Join(catalog.SharerKinds(), ", ") + ".",
		Example: "  homenode-lab sim placements --machine opteron-6272 --vcpus 16 --dataset opteron.parquet",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSimPlacements(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.shape, "shape", "", "machine of the lab instead, or a file; with 64 GiB a node, since the workloads are drawn for servers")
	flags.IntVar(&f.vcpus, "vcpus", 16, "number of vCPUs (threads that run at once) of a workload")
	flags.IntVar(&f.applications, "applications", 80, "number of applications")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the applications and of the noise")
	flags.StringVar(&f.noise, "noise", "", "file with the noise of measurements; default: the one of this homenode")
	flags.StringVar(&f.dataset, "dataset", "", "Parquet file for the rows")
	f.addFlags(cmd)
	cli.Writes(cmd, placements.Summary{})
	return cmd
}

// addFlags adds the flags that 'sim pack' has, too.
func (f *simPlacementsFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.machine, "machine", catalog.Opteron, "machine, of those that 'homenode-lab sim machines' lists")
	flags.StringVar(&f.links, "links", "", "table of the bandwidths between nodes; default: the number of direct links")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "number of worlds simulated in parallel; the result does not depend on it")
	flags.Lookup("workers").DefValue = "all CPUs" // in the help, which is the same everywhere
	cli.OutputFlag(cmd, &f.output)
}

func runSimPlacements(cmd *cobra.Command, f simPlacementsFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "machine", "shape", "links", "noise", "dataset")); err != nil {
		return exit.BadInput(err)
	}
	c, err := f.config()
	if err != nil {
		return exit.BadInput(err)
	}
	var set dataSet[placements.Row]
	if f.dataset != "" {
		set, err = openDataSet("--dataset", f.dataset, func(w io.Writer) (*fleet.Table[placements.Row], error) {
			return placements.NewTable(w, c, placements.About{Commit: cli.Version, Command: f.command()})
		})
		if err != nil {
			return exit.BadInput(err)
		}
	}
	defer set.drop()
	sum := placements.NewSummary(c)
	bar := newCountBar(cmd.ErrOrStderr(), "workloads")
	err = placements.Run(cmd.Context(), c, func(rows []placements.Row) error {
		sum.Add(rows)
		if set.rows == nil {
			return nil
		}
		return set.rows.Write(rows)
	}, bar.show)
	bar.end()
	if err == nil {
		err = set.keep()
	}
	if err != nil {
		return stoppedOr(err)
	}
	if f.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(sum)
	}
	return simulation.Placements(cmd.OutOrStdout(), *sum, cli.Screen())
}

func (f simPlacementsFlags) config() (placements.Config, error) {
	c := placements.Config{Name: f.machine, VCPUs: f.vcpus, Seed: f.seed, Applications: f.applications, Noise: fleet.PackagedNoise(), Workers: f.workers}
	if f.workers < 1 {
		return c, fmt.Errorf("--workers is %d: want at least 1", f.workers)
	}
	err := f.setMachine(&c)
	if err != nil {
		return c, err
	}
	if f.links != "" {
		if c.Links, err = source.Links(f.links); err != nil {
			return c, err
		}
	}
	if f.noise != "" {
		if c.Noise, err = readNoise(f.noise); err != nil {
			return c, err
		}
	}
	return placements.New(c)
}

// setMachine sets the machine: a modelled one, or one of the lab.
func (f simPlacementsFlags) setMachine(c *placements.Config) error {
	if f.shape != "" {
		shape, err := source.Shape("", f.shape)
		if err != nil {
			return err
		}
		c.Machine, c.System = shape.Machine(), memsys.FromShape(shape)
		c.Name = c.Machine.Origin
		for i := range c.Machine.Nodes { // a guest's memory is cut down, and the workloads are drawn for a server's
			c.Machine.Nodes[i].Memory = unit.Some(64 * unit.GiB)
		}
		return nil
	}
	b, ok := catalog.MachineNamed(f.machine)
	if !ok {
		return fmt.Errorf("--machine %q: no such machine: 'homenode-lab sim machines' lists them", f.machine)
	}
	c.Machine, c.System = b.Make()
	return nil
}

// command makes the same rows again in the same folder. It leaves out what changes no byte
// of them.
func (f simPlacementsFlags) command() string {
	which := []string{"--machine", f.machine}
	if f.shape != "" {
		which = []string{"--shape", f.shape}
	}
	words := append(append([]string{"homenode-lab", "sim", "placements"}, which...), "--vcpus", strconv.Itoa(f.vcpus),
		"--applications", strconv.Itoa(f.applications), "--seed", strconv.FormatUint(f.seed, 10))
	if f.links != "" {
		words = append(words, "--links", f.links)
	}
	if f.noise != "" {
		words = append(words, "--noise", f.noise)
	}
	return shellLine(append(words, "--dataset", "rows.parquet"))
}
