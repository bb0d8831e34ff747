// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/migrate"
	"homenode/internal/profiling"
	"homenode/internal/profiling/host"
	"homenode/internal/render"
	"homenode/internal/report"
	"homenode/internal/schema"
)

type profilingFlags struct {
	host.Options
	rate, output string
}

// metricLines are the metrics of profile and experiment.
const metricLines = "  command:LINE      a number that a shell command prints\n  file:PATH         a number in a file\n  http://…          a number that this host answers\n" +
	"  prometheus:QUERY  a number that --prometheus answers; $for in it is the time that is measured\n" +
	"  ipc               instructions per cycle of the workload; spinning counts as work, so --no-spinning\n                    says that its threads block when they wait"

func profileCommand() *cobra.Command {
	var f profilingFlags
	cmd := &cobra.Command{
		Use:   "profile --vcpus N [--metric METRIC] (--workload W | -- CMD [ARGUMENT]…)",
		Short: "Measure a command or a running workload in every important placement",
		Long: "Measures how fast CMD or a running workload is in every placement of 'homenode placements', --repeats\ntimes each, in random order. CMD is started in each; a workload's CPUs are set and its memory is moved\n" +
			"along. At the end the workload is put back where it was; its memory goes back to the nodes it was on,\nwithout the order of pages. After a kill, 'homenode restore' puts the CPUs back.\n\n" +
			"The same command continues after an interrupt, from what is saved after each measurement. The rows are\nfor python/homenode_model.\n\n" +
			"Metrics:\n  time              1 / the time that CMD takes\n  output            a number that CMD prints\n" + metricLines,
		Example: "  homenode profile --vcpus 16 --dry-run -- ./solver input.dat\n  homenode profile --vcpus 16 --rows solver.parquet -- ./solver input.dat\n" +
			"  homenode profile --vcpus 8 --workload db --metric http://127.0.0.1:9187/metrics --pattern 'commits_total (\\d+)' --counter --rows db.parquet",
		RunE: func(cmd *cobra.Command, args []string) error { return runProfile(cmd, f, args) },
	}
	cli.Exits(cmd, "0", "complete, or what a dry run would do", "3", "interrupted: the same command continues")
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().IntVar(&f.VCPUs, "vcpus", 0, "number of vCPUs (threads that run at once)")
	f.addFlags(cmd, "time")
	linksFlag(cmd, &f.Links)
	cmd.Flags().IntVar(&f.Repeats, "repeats", 2, "number of measurements in each placement")
	cmd.Flags().Uint64Var(&f.Seed, "seed", 1, "seed of the order")
	cmd.Flags().DurationVar(&f.Timeout, "timeout", 10*time.Minute, "time limit of CMD, if it is to end by itself; 0: no limit")
	cmd.Flags().StringVar(&f.Rows, "rows", "", "Parquet file for the rows of a model")
	cmd.Flags().StringVar(&f.Saved, "saved", "", "file with what was measured, until all is; default: that of --rows with .unfinished")
	cmd.Flags().StringVar(&f.Application, "application", "", "application's name in the rows; default: the workload's or the command's")
	cmd.Flags().StringVar(&f.Kind, "kind", "", "kind of the application in the rows; default: the application")
	cli.Writes(cmd, profiling.Report{})
	return cmd
}

// addFlags adds the flags that profile and place have in common.
func (f *profilingFlags) addFlags(cmd *cobra.Command, metric string) {
	f.addMeasuring(cmd, metric)
	flags := cmd.Flags()
	flags.StringVar(&f.Workload, "workload", "", "workload: its cgroup path, or the path's last part")
	flags.BoolVar(&f.DryRun, "dry-run", false, "report what would be measured and how long it takes; move nothing")
	flags.StringVar(&f.State, "state", agent.DefaultStateDir, "folder of the journal")
}

// addMeasuring adds the flags that say how a workload is measured.
func (f *profilingFlags) addMeasuring(cmd *cobra.Command, metric string) {
	flags := cmd.Flags()
	flags.StringVar(&f.MetricText, "metric", metric, "number that says how fast it is: "+profiling.MetricHelp)
	flags.StringVar(&f.Prometheus, "prometheus", "", "address of a Prometheus, for --metric prometheus:QUERY")
	flags.StringVar(&f.PrometheusToken, "prometheus-token", "", "file of a token that the Prometheus, or a proxy before it, asks for")
	flags.StringVar(&f.Metric.Pattern, "pattern", "", "regular expression whose first group is the number; default: the last number in the text")
	flags.BoolVar(&f.Metric.Counter, "counter", false, "the number counts up: its growth per second is the speed")
	flags.BoolVar(&f.Metric.LowerIsBetter, "lower-is-better", false, "the number is a time, such as a latency: the speed is 1 / the number")
	flags.BoolVar(&f.NoSpin, "no-spinning", false, "its threads block when they wait, so that --metric ipc means work")
	flags.DurationVar(&f.Warm, "warm-up", 5*time.Second, "time in a placement before it is measured; of a CMD that ends by itself, any: one run more")
	flags.DurationVar(&f.For, "for", 10*time.Second, "time to measure in a placement")
	flags.StringVar(&f.rate, "rate", "200MB/s", "bytes per second at which memory is moved, such as 1.5GiB/s; max: no limit")
	flags.StringVar(&f.Machine, "machine", "", "type of this machine, as models name it; default: CPU model, number of nodes and of CPUs")
	profileFlag(cmd, &f.Profile)
	flags.StringSliceVar(&f.DirectOwners, "direct-owner", nil, "owner, such as systemd, whose cgroups are written directly; repeatable")
	cli.OutputFlag(cmd, &f.output)
}

func linksFlag(cmd *cobra.Command, links *string) {
	cmd.Flags().StringVar(links, "links", "", "table of the bandwidths between nodes")
}

func (f *profilingFlags) check(cmd *cobra.Command) error {
	return exit.BadInput(errors.Join(f.checkMeasuring(cmd), cli.Empty(cmd, "workload", "state")))
}

// checkMeasuring checks the flags of addMeasuring.
func (f *profilingFlags) checkMeasuring(cmd *cobra.Command) (err error) {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "metric", "machine", "profile", "rate", "prometheus", "prometheus-token"), checkDirectOwners(f.DirectOwners)); err != nil {
		return exit.BadInput(err)
	}
	f.Rate, err = migrate.ParseRate(f.rate)
	return exit.BadInput(err)
}

func runProfile(cmd *cobra.Command, f profilingFlags, argv []string) error {
	if err := errors.Join(f.check(cmd), cli.Empty(cmd, "rows", "saved", "application", "kind", "links")); err != nil {
		return exit.BadInput(err)
	}
	f.Command, f.Version = argv, cli.Version
	f.CommandLine = strings.TrimSpace("homenode profile " + cli.ShellLine(argv))
	r, err := host.Profile(cmd.Context(), f.Options, cmd.ErrOrStderr())
	return shown(cmd, f.output, r, r.Outcome, report.Profiled, err)
}

// shown prints a result beside its error. One without an outcome has nothing to show.
func shown[T any](cmd *cobra.Command, output string, r T, outcome string, text func(io.Writer, T, render.TextOptions) error, err error) error {
	if outcome == "" {
		return err
	}
	return errors.Join(printed(cmd, output, r, text), err)
}

// printed writes a report as text or JSON.
func printed[T any](cmd *cobra.Command, output string, r T, text func(io.Writer, T, render.TextOptions) error) error {
	if output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	return text(cmd.OutOrStdout(), r, cli.Screen())
}
