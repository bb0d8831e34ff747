// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/model/gain"
	"homenode/internal/report/simulation"
	"homenode/internal/schema"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/memsys"
	"homenode/internal/source"
)

type simTrialsFlags struct {
	fleets, servers, workers        int
	seed                            uint64
	machine, noise, dataset, output string
	lab                             bool
}

func simTrialsCommand() *cobra.Command {
	var f simTrialsFlags
	cmd := &cobra.Command{
		Use:   "trials",
		Short: "Bind and unbind the replicas of many simulated servers: what a model of gains learns from",
		Long: "homenode-lab sim trials draws fleets from seeds, and tries on each server what it brings to bind a replica:\n" +
			"each alone, and all of the server. A row of the data set is a replica: its features while no replica was\n" +
			"bound, and its gain, from two trials. Servers have " + workloadsText() + " replicas, by turns. All figures are modelled.\n" +
			"python/homenode_model learns from it ('scripts/model.sh gain').",
		Example: "  homenode-lab sim trials --dataset trials.parquet",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSimTrials(cmd, f) },
	}
	cli.Exits(cmd, "4", "no replica could be bound: no data set was written")
	flags := cmd.Flags()
	flags.IntVar(&f.fleets, "fleets", 48, "number of fleets; each has 20 services of its own")
	flags.IntVar(&f.servers, "servers", 10, "servers of a fleet")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the first fleet; the next ones follow")
	flags.StringVar(&f.machine, "machine", dualSkylake, "machine of every server: dual-skylake, a shape of the lab (its name or its file), or a recorded tree")
	flags.BoolVar(&f.lab, "lab-mixes", false, "instead of a fleet's services, the mixes that are tried in the lab itself, drawn from the seeds from --seed on; --machine must be a shape")
	flags.StringVar(&f.noise, "noise", "", "file with the noise of measurements; default: the one of this homenode")
	flags.StringVar(&f.dataset, "dataset", "", "Parquet file for the rows")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "number of servers simulated in parallel; the result does not depend on it")
	flags.Lookup("workers").DefValue = "all CPUs" // in the help, which is the same everywhere
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, fleet.TrialSummary{})
	return cmd
}

// trialWorkloads are replicas of a server, on average: few large ones, as of whole machines for one
// service, to many small ones.
var trialWorkloads = []int{4, 6, 8, 12}

func workloadsText() string {
	var all []string
	for _, n := range trialWorkloads {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

func runSimTrials(cmd *cobra.Command, f simTrialsFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "machine", "noise", "dataset")); err != nil {
		return exit.BadInput(err)
	}
	c, err := f.config(cmd)
	if err != nil {
		return exit.BadInput(err)
	}
	var set dataSet[gain.Row]
	if f.dataset != "" {
		set, err = openDataSet("--dataset", f.dataset, func(w io.Writer) (*fleet.Table[gain.Row], error) {
			return fleet.NewTrialTable(w, c, f.command())
		})
		if err != nil {
			return exit.BadInput(err)
		}
	}
	defer set.drop()
	sum := fleet.TrialSummary{Schema: gain.RowSchema, Machine: c.Machine.Origin, Seed: f.seed, Fleets: f.fleets, Servers: f.servers}
	if err := f.run(cmd, c, set, &sum); err != nil {
		return stoppedOr(err)
	}
	if sum.Rows == 0 {
		return exit.With(exit.Nothing, fmt.Errorf("no replica of %d servers could be bound: more servers, or a machine of several nodes", f.fleets*f.servers))
	}
	if err := set.keep(); err != nil {
		return err
	}
	sum.Settle()
	if f.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(sum)
	}
	return simulation.Trials(cmd.OutOrStdout(), sum, cli.Screen())
}

// run does the fleets one after the other, each on all workers.
func (f simTrialsFlags) run(cmd *cobra.Command, c fleet.Config, set dataSet[gain.Row], sum *fleet.TrialSummary) error {
	bar := newCountBar(cmd.ErrOrStderr(), "servers")
	defer bar.end()
	for i := range f.fleets {
		c.Seed, c.Size.Workloads = f.seed+uint64(i), trialWorkloads[i%len(trialWorkloads)]
		if f.lab {
			c.Seed = f.seed + uint64(i*f.servers)
		}
		err := fleet.RunTrials(cmd.Context(), c, func(rows []gain.Row) error {
			sum.Add(rows)
			if set.rows == nil || len(rows) == 0 {
				return nil
			}
			return set.rows.Write(rows)
		}, func(done, _ int) { bar.show(i*f.servers+done, f.fleets*f.servers) })
		if err != nil {
			if errors.Is(err, context.Canceled) {
				return err
			}
			return fmt.Errorf("fleet of seed %d: %w", c.Seed, err)
		}
	}
	return nil
}

func (f simTrialsFlags) config(cmd *cobra.Command) (fleet.Config, error) {
	c := fleet.DefaultConfig()
	for _, n := range []struct {
		flag        string
		value, most int
	}{{"--fleets", f.fleets, 10_000}, {"--servers", f.servers, 10_000}, {"--workers", f.workers, 1024}} {
		if n.value < 1 || n.value > n.most {
			return c, fmt.Errorf("%s is %d: want 1 to %d", n.flag, n.value, n.most)
		}
	}
	if err := f.setMachine(&c, cmd.ErrOrStderr()); err != nil {
		return c, err
	}
	if f.noise != "" {
		var err error
		if c.Noise, err = readNoise(f.noise); err != nil {
			return c, err
		}
	}
	c.Size, c.Seed, c.Workers = fleet.Size{Servers: f.servers, Workloads: trialWorkloads[0]}, f.seed, f.workers
	c = c.ForTrials()
	return c, c.Validate()
}

// setMachine sets the machine of every server. The lab's trials leave out the CPU for daemons, and
// switch NUMA balancing off.
func (f simTrialsFlags) setMachine(c *fleet.Config, stderr io.Writer) error {
	if !f.lab {
		return simFleetFlags{machine: f.machine}.simMachine(c, stderr)
	}
	shape, err := source.Shape("", f.machine)
	if err != nil {
		return fmt.Errorf("--machine: --lab-mixes wants a shape of the lab: %w", err)
	}
	shape = shape.ForWorkloads()
	c.Lab, c.Machine, c.System, c.Linux.NUMABalancing = &shape, shape.Machine(), memsys.FromShape(shape), false
	return nil
}

// command makes the same rows again in the same folder.
func (f simTrialsFlags) command() string {
	words := []string{
		"homenode-lab", "sim", "trials", "--fleets", strconv.Itoa(f.fleets), "--servers", strconv.Itoa(f.servers),
		"--seed", strconv.FormatUint(f.seed, 10), "--machine", f.machine,
	}
	if f.lab {
		words = append(words, "--lab-mixes")
	}
	if f.noise != "" {
		words = append(words, "--noise", f.noise)
	}
	return shellLine(append(words, "--dataset", "trials.parquet"))
}
