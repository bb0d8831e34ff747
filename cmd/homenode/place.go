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

func placeCommand() *cobra.Command {
	var f profilingFlags
	cmd := &cobra.Command{
		Use:   "place --workload W --goal SHARE --model FILE --metric METRIC",
		Short: "Put a running workload on the fewest nodes that are fast enough, by a model and two probes",
		Long: "Measures the workload in two placements, predicts its speed in all others by a model of\npython/homenode_model, and chooses the fewest nodes that reach the goal with the model's confidence. Where\n" +
			"fewer nodes may do, a third placement is measured. The workload is moved there, memory included, and\nmeasured again: if it is slower than the goal, it goes back where it was.\n\n" +
			"The goal is a share of the workload's speed in its fastest placement, or in the one that --goal-of\nnames. What probes cost is printed before anything is moved. 'homenode restore' undoes the placing.",
		Example: "  homenode place --workload db --goal 0.9 --model model.json --metric ipc --no-spinning --dry-run\n" +
			"  homenode place --workload db --goal 0.9 --model model.json --metric file:/run/db/ops --counter",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPlace(cmd, f) },
	}
	cli.Exits(cmd, "0", "placed, or what a dry run would do", "3", "put back: it was slower than the goal; or interrupted", "4", "no placement meets the goal: the workload is where it was")
	f.addFlags(cmd, "ipc")
	linksFlag(cmd, &f.Links)
	cmd.Flags().StringVar(&f.Model, "model", "", "model of this type of machine and number of vCPUs, as 'homenode-model train' writes it")
	cmd.Flags().BoolVar(&f.Simulated, "simulated-model", false, "also use a model that was trained in the simulator or in the lab, not on hardware")
	cmd.Flags().Float64Var(&f.Goal, "goal", 0.9, "share of the speed that is to be reached")
	cmd.Flags().IntVar(&f.GoalOf, "goal-of", 0, "number of the placement whose speed the goal is a share of; 0: the fastest")
	cli.Writes(cmd, profiling.Placed{})
	return cmd
}

func runPlace(cmd *cobra.Command, f profilingFlags) error {
	if err := errors.Join(f.check(cmd), cli.Empty(cmd, "model", "links")); err != nil {
		return exit.BadInput(err)
	}
	if f.Model == "" || f.Workload == "" {
		return exit.BadInput(errors.New("--model and --workload are both needed: name the model's file and the workload"))
	}
	r, err := host.Place(cmd.Context(), f.Options, cmd.ErrOrStderr())
	return shown(cmd, f.output, r, r.Outcome, report.PlacedText, err)
}
