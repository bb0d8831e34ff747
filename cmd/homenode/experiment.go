// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/profiling"
	"homenode/internal/profiling/host"
	"homenode/internal/report"
)

func experimentCommand() *cobra.Command {
	var f profilingFlags
	cmd := &cobra.Command{
		Use:   "experiment --workload W --metric METRIC",
		Short: "Bind and unbind a running workload by turns, and report what binding brings",
		Long: "Measures the workload as it is, then by turns unbound and bound: unbound, bound, bound, unbound, and so\non. Bound, its CPUs are those of --nodes and its memory is moved there. Unbound, its settings are put\nback, and as much of its memory is on each node as before. After each change --warm-up passes first.\n\n" +
			"The gain has a 95% interval. The row is for 'homenode-model gain': the workload's figures as it was, and\nthe gain of each half of the measurements.\n\n" +
			"An experiment ends early, and puts everything back, where the workload is slower by --most-loss while it\nis bound. While an agent runs, exclude the workload there and name another --state.\n\n" +
			"Metrics:\n" + metricLines,
		Example: "  homenode experiment --workload db --metric ipc --no-spinning --dry-run\n" +
			"  homenode experiment --workload db --for 60s --lower-is-better --rows db.parquet --prometheus http://prometheus:9090 \\\n" +
			"      --metric 'prometheus:histogram_quantile(0.5, sum by (le) (rate(query_seconds_bucket{job=\"db\"}[$for])))'",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runExperiment(cmd, f) },
	}
	cli.Exits(cmd, "0", "complete, or what a dry run would do", "3", "interrupted: the same command continues; or stopped: slower by --most-loss")
	f.addFlags(cmd, "ipc")
	flags := cmd.Flags()
	flags.StringVar(&f.Nodes, "nodes", "", "nodes to bind to; default: those to which the agent would")
	flags.IntVar(&f.Repeats, "repeats", 8, "number of measurements unbound, and bound; an even number, with --rows a multiple of 4")
	flags.Uint64Var(&f.Seed, "seed", 1, "seed of the order")
	flags.Float64Var(&f.MostLoss, "most-loss", 0.5, "share by which the workload may be slower while it is bound; 0: any")
	flags.StringVar(&f.Rows, "rows", "", "Parquet file for the row of a model")
	flags.StringVar(&f.Saved, "saved", "", "file with what was measured, until all is; default: that of --rows with .unfinished")
	flags.StringVar(&f.Application, "application", "", "service's name in the row, as a hash; default: the workload's")
	flags.StringVar(&f.Kind, "kind", "", "kind of the service in the row, as it is; default: the hash of the service")
	cli.Writes(cmd, profiling.TrialReport{})
	return cmd
}

func runExperiment(cmd *cobra.Command, f profilingFlags) error {
	if err := errors.Join(f.check(cmd), cli.Empty(cmd, "rows", "saved", "application", "kind", "nodes")); err != nil {
		return exit.BadInput(err)
	}
	f.Version, f.CommandLine = cli.Version, "homenode experiment" // no names: the row can be handed on
	r, err := host.Experiment(cmd.Context(), f.Options, cmd.ErrOrStderr())
	return shown(cmd, f.output, r, r.Outcome, report.Trial, err)
}
