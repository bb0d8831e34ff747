// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/model"
	"homenode/internal/packing"
	"homenode/internal/report/simulation"
	"homenode/internal/schema"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/placements"
	"homenode/internal/source"
)

type simPackFlags struct {
	simPlacementsFlags
	models     string
	trials     int
	confidence float64
}

func simPackCommand() *cobra.Command {
	var f simPackFlags
	cmd := &cobra.Command{
		Use:   "pack",
		Short: "Try the policies of packing containers by goal, with generated workloads",
		Long: "homenode-lab sim pack draws queues of containers with goals (0.9, 1.0 or 1.1 of the baseline's speed),\n" +
			"packs each queue by every policy of 'homenode pack', and runs what was packed at once. It reports how often\n" +
			"a goal is missed by more than 5%, and how many containers meet theirs, relative to the exact optimum by true\n" +
			"speeds. Half of the queues are copies of one container, the other half are mixed.\n\n" +
			"Predictions of a workload come from a model that has not seen its kind: 'homenode-model folds' makes them,\n" +
			"a file KIND.json each. All figures are modelled.",
		Example: "  homenode-lab sim placements --machine opteron-6272 --vcpus 16 --dataset rows.parquet\n" +
			"  scripts/model.sh folds rows.parquet --models models\n" +
			"  homenode-lab sim pack --machine opteron-6272 --vcpus 16 --models models",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimPack(cmd, f) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.vcpus, "vcpus", 16, "number of vCPUs (threads that run at once) of a container")
	flags.StringVar(&f.models, "models", "", "folder of models, each without a kind of workload")
	flags.IntVar(&f.trials, "trials", 400, "number of queues")
	flags.Float64Var(&f.confidence, "confidence", packing.DefaultConfidence, "confidence of each bound of a prediction")
	flags.IntVar(&f.applications, "applications", 80, "number of applications to draw from")
	flags.Uint64Var(&f.seed, "seed", 2, "seed of applications, queues and noise; models were trained with others")
	f.addFlags(cmd)
	cli.Writes(cmd, placements.PackResult{})
	return cmd
}

func runSimPack(cmd *cobra.Command, f simPackFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "machine", "links", "models")); err != nil {
		return exit.BadInput(err)
	}
	c, err := f.packConfig()
	if err != nil {
		return exit.BadInput(err)
	}
	bar := newCountBar(cmd.ErrOrStderr(), "workloads and trials")
	r, err := placements.RunPack(cmd.Context(), c, bar.show)
	bar.end()
	if err != nil {
		return stoppedOr(err)
	}
	if f.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(r)
	}
	return simulation.Packing(cmd.OutOrStdout(), r, cli.Screen())
}

func (f simPackFlags) packConfig() (placements.PackConfig, error) {
	c := placements.PackConfig{Trials: f.trials, Confidence: f.confidence, Models: map[string]*model.Model{}}
	if f.models == "" {
		return c, errors.New("--models is missing: give the folder that 'homenode-model folds' wrote")
	}
	var err error
	if c.Config, err = f.config(); err != nil {
		return c, err
	}
	for _, kind := range catalog.SharerKinds() {
		m, err := source.Model(filepath.Join(f.models, kind+".json"))
		if err != nil {
			return c, err
		}
		if m.Generator == fmt.Sprint(catalog.SharersVersion) && m.Seed == fmt.Sprint(f.seed) {
			return c, fmt.Errorf("--seed %d: the models were trained with applications of that seed: give another one", f.seed)
		}
		c.Models[kind] = &m
	}
	return placements.NewPack(c)
}
