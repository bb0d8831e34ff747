// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel/unix"
	"homenode/internal/report/simulation"
	"homenode/internal/sim/arena"
)

type simArenaFlags struct {
	experiment                string
	machines, mixes, policies []string
	seeds, workers            int
	out, html, output         string
}

// arenaChoices are the flags that choose what to run. A stored result leaves
// nothing to choose.
var arenaChoices = []string{"experiment", "machine", "mix", "policy", "seeds", "workers"}

func simArenaCommand() *cobra.Command {
	var f simArenaFlags
	cmd := &cobra.Command{
		Use:   "arena [RESULT]…",
		Short: "Compare all policies on the same machines with the same loads, and rank them",
		Long: "homenode-lab sim arena runs every policy on every machine under every mix with every seed, in worlds of\n" +
			"single threads. It ranks them by throughput, 99th percentile, variation, moves and bytes moved, with\n" +
			"confidence intervals. Every figure is modelled, and the same plan gives the same bytes.\n\n" +
			arenaExperimentsText() + "\n" +
			"Given results of --out, it runs nothing. It shows the first result, and adds the papers' statements of\n" +
			"the others. With fewer than 6 seeds there are no confidence intervals and no ranks.",
		Example: "  homenode-lab sim arena --html arena.html\n" +
			"  homenode-lab sim arena --experiment all --machine opteron-6272 --policy hand --policy brm\n" +
			"  homenode-lab sim arena --experiment rao --out rao.json\n" +
			"  homenode-lab sim arena all.json rao.json lakew.json --html arena.html",
		RunE: func(cmd *cobra.Command, args []string) error { return simArena(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.experiment, "experiment", "quick", "experiment to run: "+strings.Join(arenaNames(), ", "))
	flags.StringSliceVar(&f.machines, "machine", nil, "machine of the experiment to run; default: all; repeatable")
	flags.StringSliceVar(&f.mixes, "mix", nil, "mix of the experiment to run; default: all; repeatable")
	flags.StringSliceVar(&f.policies, "policy", nil, "policy of the experiment to run, besides the reference policy; default: all; repeatable")
	flags.IntVar(&f.seeds, "seeds", 0, "number of seeds, from 1 on; default: the experiment's")
	flags.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "number of worlds simulated in parallel; the result does not depend on it")
	flags.Lookup("workers").DefValue = "all CPUs" // in the help, which is the same everywhere
	flags.StringVar(&f.out, "out", "", "file for the result as JSON; -: standard output, without any other output")
	flags.StringVar(&f.html, "html", "", "file for one self-contained page; -: standard output")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, arena.Result{})
	return cmd
}

func simArena(cmd *cobra.Command, f simArenaFlags, args []string) error {
	if err := f.check(cmd); err != nil {
		return exit.BadInput(err)
	}
	r, err := f.result(cmd, args)
	if err != nil {
		return err
	}
	data, err := arena.Encode(r)
	if err != nil {
		return err
	}
	line := append(data, '\n')
	if err := cli.WriteTo(cmd.OutOrStdout(), f.html, func(w io.Writer) error { return simulation.ArenaHTML(w, r) }); err != nil {
		return err
	}
	if err := cli.WriteTo(cmd.OutOrStdout(), f.out, func(w io.Writer) error { _, err := w.Write(line); return err }); err != nil || f.out == "-" || f.html == "-" {
		return err
	}
	if f.output == "json" {
		_, err := cmd.OutOrStdout().Write(line)
		return err
	}
	return simulation.Arena(cmd.OutOrStdout(), r, cli.Screen())
}

// check reports what can be checked before minutes are spent.
func (f simArenaFlags) check(cmd *cobra.Command) error {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "experiment", "machine", "mix", "policy", "out", "html")); err != nil {
		return err
	}
	dashes := 0
	for _, to := range []string{f.out, f.html} {
		if to == "-" {
			dashes++
		}
	}
	switch {
	case dashes > 1 || dashes == 1 && cmd.Flags().Changed("output"):
		return errors.New("--out -, --html - and -o: standard output can take only one output")
	case f.out != "" && f.out == f.html:
		return fmt.Errorf("--out and --html are both %s: name two files", f.out)
	case cmd.Flags().Changed("seeds") && (f.seeds < 1 || f.seeds > mostArenaSeeds):
		return fmt.Errorf("--seeds is %d: want 1 to %d", f.seeds, mostArenaSeeds)
	case f.workers < 1:
		return fmt.Errorf("--workers is %d: want at least 1", f.workers)
	}
	return errors.Join(writableFile("--out", f.out), writableFile("--html", f.html))
}

// mostArenaSeeds is more than a person would wait for.
const mostArenaSeeds = 1000

func (f simArenaFlags) result(cmd *cobra.Command, args []string) (arena.Result, error) {
	if len(args) > 0 {
		for _, name := range arenaChoices {
			if cmd.Flags().Changed(name) {
				return arena.Result{}, exit.BadInput(fmt.Errorf("--%s: %s is a result, which is not run again: leave out the flag or the file", name, args[0]))
			}
		}
		r, err := readArenas(args)
		return r, exit.BadInput(err)
	}
	e, err := arenaExperimentOf(f.experiment)
	if err != nil {
		return arena.Result{}, exit.BadInput(err)
	}
	plan, err := f.choose(e.Plan())
	if err != nil {
		return arena.Result{}, exit.BadInput(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(fleetGC))
	bar := newArenaBar(cmd.ErrOrStderr(), plan)
	r, err := arena.Run(cmd.Context(), plan, f.workers, bar.show)
	bar.end()
	if err != nil {
		return arena.Result{}, stoppedOr(err)
	}
	if e.Judge != nil {
		r.Rows = e.Judge(r)
	}
	return r, r.Validate()
}

// readArenas returns the first result, with the rows of all results.
func readArenas(paths []string) (first arena.Result, err error) {
	for i, path := range paths {
		data, err := unix.ReadAtMost(path, resultLimit)
		if err != nil {
			return arena.Result{}, err
		}
		r, err := arena.Decode(data)
		if err != nil {
			return arena.Result{}, fmt.Errorf("%s: %w", path, err)
		}
		if i == 0 {
			first = r
			continue
		}
		first.Rows = append(first.Rows, r.Rows...)
	}
	return first, nil
}

// choose reduces a plan to the chosen machines, mixes, policies and seeds.
func (f simArenaFlags) choose(p arena.Plan) (arena.Plan, error) {
	if err := errors.Join(
		known("machine", f.machines, p.Machines, func(m arena.Machine) string { return m.Name }, f.experiment),
		known("mix", f.mixes, p.Mixes, func(x arena.Mix) string { return x.Name }, f.experiment),
		known("policy", f.policies, p.Policies, func(n string) string { return n }, f.experiment),
	); err != nil {
		return arena.Plan{}, err
	}
	asked := func(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	p.Machines = keep(p.Machines, func(m arena.Machine) bool { return asked(f.machines, m.Name) })
	p.Mixes = keep(p.Mixes, func(x arena.Mix) bool { return asked(f.mixes, x.Name) })
	p.Policies = keep(p.Policies, func(n string) bool { return n == p.Against || asked(f.policies, n) })
	if f.seeds > 0 {
		p.Seeds = nil
		for i := range f.seeds {
			p.Seeds = append(p.Seeds, uint64(i+1))
		}
	}
	if !fitsSomewhere(p) {
		return arena.Plan{}, fmt.Errorf("--machine and --mix: no chosen mix fits a chosen machine")
	}
	return p, nil
}

func fitsSomewhere(p arena.Plan) bool {
	for i := range p.Machines {
		if slices.ContainsFunc(p.Mixes, func(x arena.Mix) bool { return x.Fits == nil || x.Fits(&p.Machines[i]) }) {
			return true
		}
	}
	return false
}

// keep returns a new slice: the plan's slice belongs to the experiment.
func keep[T any](all []T, wanted func(T) bool) (some []T) {
	for _, v := range all {
		if wanted(v) {
			some = append(some, v)
		}
	}
	return some
}

// known names the possible values if an unknown one was given.
func known[T any](what string, asked []string, all []T, name func(T) string, experiment string) error {
	var names []string
	for _, v := range all {
		names = append(names, name(v))
	}
	for _, a := range asked {
		if !slices.Contains(names, a) {
			return fmt.Errorf("--%s: experiment %s has no %s %q: want one of %s", what, experiment, what, a, strings.Join(names, ", "))
		}
	}
	return nil
}

// newArenaBar is a simBar that names the experiment.
func newArenaBar(w io.Writer, p arena.Plan) *simBar {
	b := startSimBar(w)
	if !cli.IsTerminal(b.w) {
		fmt.Fprintf(w, "homenode-lab: simulating %s: up to %d machines × %d mixes × %d policies × %d seeds\n", p.Name, len(p.Machines), len(p.Mixes), len(p.Policies), len(p.Seeds))
	}
	return b
}
