// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/sim/fleet"
	"homenode/internal/source"
)

type simFleetFlags struct {
	servers, workloads, workers int
	days                        float64
	mao                         string
	seed                        uint64
	machine, profile, shapes    string
	period                      time.Duration
	numaBalancing               bool
	dataset, noise, out, output string
}

func simFleetCommand() *cobra.Command {
	var f simFleetFlags
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Simulate many servers: the savings of MAO, and a data set of the gains of binding",
		Long: "homenode-lab sim fleet draws services and their replicas from a seed, and spreads them over servers like\n" +
			"a scheduler without knowledge of NUMA. It simulates every server: days of load, with MAO on all servers,\n" +
			"on some, or on none. All figures are modelled.\n\n" +
			"With --dataset every server that has MAO is simulated twice, with the same demand: with MAO, and with\n" +
			"no replica bound. Each replica is a row: its features while it was not bound, and the result of MAO. A\n" +
			"gain includes the effect of its neighbours' bindings; replicas that were never bound are controls. MAO\n" +
			"then leaves every replica alone for its first hour, so it binds fewer, and later, than without --dataset.\n\n" +
			"The run is cut to whole windows. Its first hour, or quarter if that is less, is the warm-up.",
		Example: "  homenode-lab sim fleet --servers 100 --days 1 --mao 0.5\n  homenode-lab sim fleet --servers 200 --days 1 --dataset rows.parquet",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSimFleet(cmd, f) },
	}
	cli.Exits(cmd, "4", "the run has no row: no data set was written")
	flags := cmd.Flags()
	flags.IntVar(&f.servers, "servers", 100, "number of servers")
	flags.Float64Var(&f.days, "days", 1, "time to simulate, days")
	flags.StringVar(&f.mao, "mao", "on", "servers with MAO: on (all), off (none), or a share of them, such as 0.5")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the fleet; it gives the same fleet on any machine")
	flags.StringVar(&f.machine, "machine", "dual-skylake", "machine of every server: dual-skylake, a shape of the lab (its name or its file), or a recorded tree")
	flags.StringVar(&f.shapes, "shapes", "", "folder of shape files, instead of the program's own")
	flags.StringVar(&f.profile, "profile", "", "profile of such a machine, as 'homenode bench' writes it")
	flags.IntVar(&f.workloads, "workloads", 20, "mean number of workloads on a server")
	flags.DurationVar(&f.period, "period", time.Minute, "length of a window")
	flags.BoolVar(&f.numaBalancing, "numa-balancing", true, "switch on the kernel's NUMA balancing")
	flags.StringVar(&f.dataset, "dataset", "", "Parquet file with a row for every replica; MAO then leaves replicas alone for their first hour")
	flags.StringVar(&f.noise, "noise", "", "file with the noise of measurements, for the data set's figures; default: the one of this homenode")
	flags.StringVar(&f.out, "out", "", "file for the result as JSON")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "number of servers simulated in parallel; the result does not depend on it")
	flags.Lookup("workers").DefValue = "all CPUs" // in the help, which is the same everywhere
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, fleet.Result{})
	return cmd
}

// fleetGC is how much the heap grows before it is collected, in percent. Live data is
// a few MB, so the default would collect all the time. It saves some 15 % of the CPU
// time.
const fleetGC = 400

func runSimFleet(cmd *cobra.Command, f simFleetFlags) error {
	if err := cli.Empty(cmd, "mao", "machine", "profile", "dataset", "noise", "out"); err != nil {
		return exit.BadInput(err)
	}
	c, err := f.config(cmd)
	if err != nil {
		return exit.BadInput(err)
	}
	if f.out != "" {
		if err := cli.CanReplace("--out", f.out); err != nil {
			return exit.BadInput(err)
		}
	}
	if err := f.twoFiles(); err != nil {
		return exit.BadInput(err)
	}
	set, err := f.open(c)
	if err != nil {
		return exit.BadInput(err)
	}
	defer set.drop()
	defer debug.SetGCPercent(debug.SetGCPercent(fleetGC))
	bar := newCountBar(cmd.ErrOrStderr(), "servers")
	result, err := fleet.Run(cmd.Context(), c, set.sink(), bar.show)
	bar.end()
	empty := err == nil && result.DataSet != nil && result.DataSet.Rows == 0
	if err == nil && !empty {
		err = set.keep()
	}
	if err == nil && f.out != "" {
		err = writeFleet(f.out, result)
	}
	if err != nil {
		return f.stopped(err)
	}
	if err := f.print(cmd.OutOrStdout(), result); err != nil || !empty {
		return err
	}
	return exit.With(exit.Nothing, fmt.Errorf("no rows: %s; %s was not written", skipped(result.DataSet.Skipped), f.dataset))
}

func (f simFleetFlags) stopped(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped: nothing was written")
	}
	return err
}

func writeFleet(path string, r fleet.Result) error {
	data, err := fleet.Encode(r)
	if err != nil {
		return err
	}
	return cli.ReplaceFile(path, append(data, '\n'), 0o644)
}

// config checks everything that can be checked before the long work.
func (f simFleetFlags) config(cmd *cobra.Command) (fleet.Config, error) {
	c := fleet.DefaultConfig()
	var err error
	if err = cli.CheckOutput(f.output); err != nil {
		return c, err
	}
	if c.Share, err = parseShare(f.mao); err != nil {
		return c, err
	}
	if !(f.days > 0 && f.days <= fleet.MostMinutes/(24*60)) {
		return c, fmt.Errorf("--days is %v: want more than 0, at most %d", f.days, fleet.MostMinutes/(24*60))
	}
	if f.servers < 1 {
		return c, fmt.Errorf("--servers is %d: want at least 1", f.servers)
	}
	if f.workers < 1 {
		return c, fmt.Errorf("--workers is %d: want at least 1", f.workers)
	}
	c.Size = fleet.Size{Servers: f.servers, Minutes: max(1, int(math.Round(f.days*24*60))), Workloads: f.workloads}
	c.Seed, c.Period, c.Workers, c.DataSet = f.seed, f.period, f.workers, f.dataset != ""
	c.Warmup = min(time.Hour, time.Duration(c.Size.Minutes)*time.Minute/4)
	c.Linux.NUMABalancing = f.numaBalancing
	if err = f.simMachine(&c, cmd.ErrOrStderr()); err != nil {
		return c, err
	}
	if f.noise != "" {
		if c.Noise, err = readNoise(f.noise); err != nil {
			return c, err
		}
	}
	return c, c.Validate()
}

func parseShare(text string) (float64, error) {
	switch text {
	case "on":
		return 1, nil
	case "off":
		return 0, nil
	}
	share, err := strconv.ParseFloat(text, 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("--mao is %q: want on, off, or a share between 0 and 1", text)
	}
	return share, nil
}

func readNoise(path string) (fleet.Noise, error) {
	data, err := unix.ReadAtMost(path, source.ProfileLimit)
	if err != nil {
		return fleet.Noise{}, fmt.Errorf("read noise: %w", err)
	}
	n, err := fleet.DecodeNoise(data)
	if err != nil {
		return fleet.Noise{}, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}
