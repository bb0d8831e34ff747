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
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/fleet"
	"homenode/internal/sim/placements"
	"homenode/internal/source"
)

type simPlacementsFlags struct {
	machine, links, noise, dataset, output string
	vcpus, applications, workers           int
	seed                                   uint64
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
	flags.StringVar(&f.machine, "machine", catalog.Opteron, "machine, of those that 'homenode-lab sim machines' lists")
	flags.IntVar(&f.vcpus, "vcpus", 16, "number of vCPUs (threads that run at once) of a workload")
	flags.IntVar(&f.applications, "applications", 80, "number of applications")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the applications and of the noise")
	flags.StringVar(&f.links, "links", "", "table of the bandwidths between nodes; default: the number of direct links")
	flags.StringVar(&f.noise, "noise", "", "file with the noise of measurements; default: the one of this homenode")
	flags.StringVar(&f.dataset, "dataset", "", "Parquet file for the rows")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "number of workloads simulated in parallel; the result does not depend on it")
	flags.Lookup("workers").DefValue = "all CPUs" // in the help, which is the same everywhere
	cli.OutputFlag(cmd, &f.output)
	return cmd
}

func runSimPlacements(cmd *cobra.Command, f simPlacementsFlags) error {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "machine", "links", "noise", "dataset")); err != nil {
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
	sum := newPlacementsSum(c)
	bar := newCountBar(cmd.ErrOrStderr(), "workloads")
	err = placements.Run(cmd.Context(), c, func(rows []placements.Row) error {
		sum.add(rows)
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
	return sum.print(cmd.OutOrStdout(), f.output)
}

func (f simPlacementsFlags) config() (placements.Config, error) {
	c := placements.Config{Name: f.machine, VCPUs: f.vcpus, Seed: f.seed, Applications: f.applications, Noise: fleet.PackagedNoise(), Workers: f.workers}
	b, ok := catalog.MachineNamed(f.machine)
	if !ok {
		return c, fmt.Errorf("--machine %q: no such machine: 'homenode-lab sim machines' lists them", f.machine)
	}
	if f.workers < 1 {
		return c, fmt.Errorf("--workers is %d: want at least 1", f.workers)
	}
	c.Machine, c.System = b.Make()
	var err error
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

// command makes the same rows again in the same folder. It leaves out what changes no byte
// of them.
func (f simPlacementsFlags) command() string {
	words := []string{
		"homenode-lab", "sim", "placements", "--machine", f.machine, "--vcpus", strconv.Itoa(f.vcpus),
		"--applications", strconv.Itoa(f.applications), "--seed", strconv.FormatUint(f.seed, 10),
	}
	if f.links != "" {
		words = append(words, "--links", f.links)
	}
	if f.noise != "" {
		words = append(words, "--noise", f.noise)
	}
	words = append(words, "--dataset", "rows.parquet")
	for i := range words {
		words[i] = quoted(words[i])
	}
	return strings.Join(words, " ")
}

// placementsSum counts which placements are the fastest, and how far they are apart.
type placementsSum struct {
	Schema     int             `json:"schema"` // 1
	How        string          `json:"how"`
	Machine    string          `json:"machine"`
	VCPUs      int             `json:"vcpus"`
	Seed       uint64          `json:"seed"`
	Generator  int             `json:"generator_version"`
	Workloads  int             `json:"workloads"`
	Placements []placementsOne `json:"placements"`
}

type placementsOne struct {
	Nodes   string `json:"nodes"`
	Scores  string `json:"scores"`
	Fastest int    `json:"fastest"` // workloads
	// Mean of speed / the workload's best, by speeds without noise.
	Mean  float64 `json:"mean_of_best"`
	Least float64 `json:"least_of_best"`
}

func newPlacementsSum(c placements.Config) *placementsSum {
	return &placementsSum{
		Schema: 1, How: "modelled", Machine: c.Name, VCPUs: c.VCPUs, Seed: c.Seed, Generator: catalog.SharersVersion,
		Placements: make([]placementsOne, len(c.List().Placements)),
	}
}

// add counts the rows of one workload.
func (s *placementsSum) add(rows []placements.Row) {
	best := 0
	for i, r := range rows {
		if r.SpeedTrue > rows[best].SpeedTrue {
			best = i
		}
	}
	s.Workloads++
	s.Placements[best].Fastest++
	for i, r := range rows {
		p, part := &s.Placements[i], r.SpeedTrue/rows[best].SpeedTrue
		if p.Nodes, p.Scores = r.Nodes, r.Scores; s.Workloads == 1 {
			p.Least = part
		}
		p.Mean += (part - p.Mean) / float64(s.Workloads)
		p.Least = min(p.Least, part)
	}
}

func (s *placementsSum) print(w io.Writer, output string) error {
	if output == "json" {
		return schema.NewEncoder(w).Encode(s)
	}
	fmt.Fprintf(w, "%s of %d vCPUs in %s of %s; seed %d, generator %d. Every figure is modelled.\n\n",
		render.Count(s.Workloads, "workload"), s.VCPUs, render.Count(len(s.Placements), "placement"), render.Printable(s.Machine), s.Seed, s.Generator)
	t := render.Table{Columns: []render.Column{
		{Head: "nodes", Left: true}, {Head: "fastest for"}, {Head: "mean of\nthe best"}, {Head: "least of\nthe best"}, {Head: "scores", Left: true},
	}}
	for _, p := range s.Placements {
		t.Add(p.Nodes, strconv.Itoa(p.Fastest), render.Percent(p.Mean), render.Percent(p.Least), p.Scores)
	}
	p := cli.Screen().Terminal()
	p.Table(t)
	_, err := io.WriteString(w, p.String())
	return err
}
