// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/report/simulation"
	"homenode/internal/rollout"
	"homenode/internal/schema"
	"homenode/internal/sim/rollouts"
)

type simRolloutsFlags struct {
	rollouts.Setting
	many    int
	seed    uint64
	effects []float64
	output  string
}

func simRolloutsCommand() *cobra.Command {
	f := simRolloutsFlags{Setting: rollouts.Usual()}
	cmd := &cobra.Command{
		Use:   "rollouts",
		Short: "Try the rollout of a binding on services that gain, lose, or show nothing",
		Long: "homenode-lab sim rollouts binds services replica by replica, as a rollout with the usual plan does, and\n" +
			"reports how often it undoes what harms, calls a gain what is none, and completes what helps. Replicas have\n" +
			"their own levels, the day's load moves all of them, and each has noise and a drift of its own. No machine\n" +
			"is simulated. All figures are modelled.\n\n" +
			"Three targets are judged: of a regression of 3% or more, 99% rolled back before half of the replicas;\n" +
			"without an effect, at most 5% called a gain; of a gain of a tenth or more, 95% completed.",
		Example: "  homenode-lab sim rollouts\n  homenode-lab sim rollouts --replicas 40 --effect 0.05 --effect -0.05",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runSimRollouts(cmd, f) },
	}
	cli.Exits(cmd, "1", "a target is not met")
	flags := cmd.Flags()
	flags.IntVar(&f.many, "rollouts", 200, "number of rollouts of each effect")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the first rollout")
	flags.Float64SliceVar(&f.effects, "effect", []float64{0.03, 0, -0.1}, "what binding does to the latency: -0.1 is a tenth less; repeatable")
	flags.IntVar(&f.Replicas, "replicas", f.Replicas, "number of replicas")
	flags.IntVar(&f.PerHost, "per-host", f.PerHost, "number of replicas on a host")
	flags.Float64Var(&f.Level, "level", f.Level, "standard deviation of the replicas' own levels")
	flags.Float64Var(&f.Noise, "noise", f.Noise, "standard deviation of a replica in a bin")
	flags.Float64Var(&f.Host, "host-noise", f.Host, "standard deviation of a host in a bin, which all of its replicas have")
	flags.Float64Var(&f.Drift, "drift", f.Drift, "standard deviation of a replica's drift from bin to bin")
	flags.Float64Var(&f.Response, "response", f.Response, "standard deviation of the effect between replicas, of the effect")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, rollouts.Trials{})
	return cmd
}

func runSimRollouts(cmd *cobra.Command, f simRolloutsFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), f.Check()); err != nil {
		return exit.BadInput(err)
	}
	if f.many < 1 || f.many > 100_000 || len(f.effects) == 0 || len(f.effects) > 100 {
		return exit.BadInput(fmt.Errorf("--rollouts %d of %d effects: want 1 to 100000 of 1 to 100", f.many, len(f.effects)))
	}
	for _, e := range f.effects {
		if !(e > -1 && e <= 10) {
			return exit.BadInput(fmt.Errorf("--effect %v: want more than -1, to 10", e))
		}
	}
	bar := newCountBar(cmd.ErrOrStderr(), "rollouts")
	r, err := rollouts.TryAll(cmd.Context(), f.Setting, rollout.Usual("service", nil), f.effects, f.many, f.seed, bar.show)
	bar.end()
	if err != nil {
		return stoppedOr(err)
	}
	if f.output == "json" {
		err = schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
	} else {
		err = simulation.Rollouts(cmd.OutOrStdout(), r, cli.Screen())
	}
	if err == nil && r.Missed() {
		return exit.With(exit.Failed, nil)
	}
	return err
}
