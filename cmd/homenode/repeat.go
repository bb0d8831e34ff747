// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/bench/host"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/experiment"
	"homenode/internal/report"
	"homenode/internal/schema"
)

type repeatFlags struct {
	host.RepeatOptions
	output string
}

func repeatCommand() *cobra.Command {
	var f repeatFlags
	cmd := &cobra.Command{
		Use:   "repeat [-n RUNS] [--arms ARMS] -- CMD [ARGUMENT]…",
		Short: "Run a command many times, unpinned and placed, and report how its time varies and how to time it",
		Long: "Runs CMD under several placements, the arms, -n times each, interleaved (ABBA), after\n" +
			"warm-ups that do not count. Prints median, spread and 95% confidence interval of its time by\n" +
			"arm, the steadiest and the fastest arm, which differences are within the noise, and the command\n" +
			"line for repeatable timings. That line has the fastest of the placements that vary by less than\n" +
			"1%, or no more than the steadiest, as far as the runs can tell.\n\n" +
			"  as-is       not placed; 'default' is the same\n" +
			"  nodes       an arm for each node that has CPUs and memory; node-1: only that of node 1\n" +
			"  local       on the CPUs of the first of --nodes, memory where it runs\n" +
			"  interleave  memory interleaved over --nodes, any CPU\n\n" +
			"Default: all of them. CMD gets no input, and its output is dropped unless --verbose is given.\n" +
			"If CMD fails, its last lines are shown and no further run is started.",
		Example: "  homenode repeat -- ./solver input.dat\n" +
			"  homenode repeat -n 20 --arms as-is,node-1 -- make -C bench run\n" +
			"  homenode repeat --nodes 0-1 --timeout 2m -o markdown -- ./solver",
		RunE: func(cmd *cobra.Command, args []string) error { return runRepeat(cmd, f, args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().IntVarP(&f.Runs, "runs", "n", 10, "number of counted runs of each arm")
	cmd.Flags().IntVar(&f.Warmups, "warmup", 1, "number of warm-up runs of each arm, which do not count")
	cmd.Flags().StringSliceVar(&f.Arms, "arms", []string{"as-is", "nodes", "local", "interleave"}, "placements to run; the others are compared with the first")
	cmd.Flags().StringVar(&f.Nodes, "nodes", "all", "nodes to place the command on, such as 0-1, !0 or netdev:eth0")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 10*time.Minute, "time limit of a run; a longer run is ended, and the command stops; 0: no limit")
	cmd.Flags().Uint64Var(&f.Seed, "seed", 1, "seed of the order of the runs")
	cmd.Flags().BoolVar(&f.Verbose, "verbose", false, "copy CMD's output to stderr")
	cmd.Flags().BoolVar(&f.Any, "anyway", false, "also compare runs that are mostly start-up")
	cli.OutputFlag(cmd, &f.output, "markdown")
	cli.Writes(cmd, experiment.Variation{})
	return cmd
}

func (f repeatFlags) check(argv []string) error {
	const most = 1000 // runs of an arm: all pairs of two arms are compared
	switch {
	case len(argv) == 0:
		return errors.New("nothing to repeat: give a command after --")
	case f.Runs < 2 || f.Runs > most:
		return fmt.Errorf("-n %d: want 2 to %d: one run has no spread", f.Runs, most)
	case f.Warmups < 0 || f.Warmups > most:
		return fmt.Errorf("--warmup %d: want 0 to %d", f.Warmups, most)
	case f.Timeout < 0:
		return fmt.Errorf("--timeout %v: it cannot be negative", f.Timeout)
	case len(f.Arms) == 0:
		return errors.New("--arms is empty: want some of as-is, nodes, node-N, local, interleave")
	}
	return cli.CheckOutput(f.output, "markdown")
}

// repeatClock times the runs; nil: the monotonic clock. Tests replace it.
var repeatClock func() time.Duration

func runRepeat(cmd *cobra.Command, f repeatFlags, argv []string) error {
	if err := f.check(argv); err != nil {
		return exit.BadInput(err)
	}
	f.Now = repeatClock
	v, err := host.Compare(cmd.Context(), f.RepeatOptions, argv, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return showVariation(cmd.OutOrStdout(), f.output, v)
}

func showVariation(w io.Writer, output string, v experiment.Variation) error {
	switch output {
	case "json":
		return schema.NewEncoder(w).Encode(v)
	case "markdown":
		return report.VariationMarkdown(w, v)
	}
	return report.Variation(w, v, cli.Screen())
}
