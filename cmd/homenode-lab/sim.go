// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/report/simulation"
	"homenode/internal/schema"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
	"homenode/internal/sim/scenario"
)

func simCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Try policies in a simulated world (every figure is modelled)",
		Long: "Runs scenarios in a simulated world: a machine, its Linux, workloads whose load varies over\n" +
			"time, and several policies. A scenario is a file, or the name of one that comes with the program.\n\n" +
			"Every figure in the result is modelled. The same scenario and seed give the same bytes.",
		Example: "  homenode-lab sim compare two-services\n" +
			"  homenode-lab sim run two-services --arm mao-b --seed 7 -o json\n" +
			"  homenode-lab sim report two-services --out page.html",
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { dieAtSecond(cmd.Context()) },
	}
	cmd.AddCommand(simRunCommand(), simCompareCommand(), simFleetCommand(), simPlacementsCommand(), simPackCommand(), simRolloutsCommand(), simTrialsCommand(), simArenaCommand(), simPapersCommand(), simReportCommand(), simPoliciesCommand(), simMachinesCommand())
	return cmd
}

// dieAtSecond makes a second Ctrl-C or SIGTERM kill the process. The first one only
// asks it to end. A simulation leaves nothing behind that must be restored.
func dieAtSecond(ctx context.Context) {
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
}

// simFlags are the flags of commands that run a scenario.
type simFlags struct {
	arm, out, output string
	seeds            []uint
}

func (f *simFlags) addSeeds(cmd *cobra.Command) {
	cmd.Flags().UintSliceVar(&f.seeds, "seed", nil, "seed to run, instead of the scenario's seeds; repeatable")
}

func simRunCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO [--arm NAME] [--seed N]… [--out result.json]",
		Short: "Run a scenario with all or some of its arms and seeds",
		Long:  "Runs a scenario and prints the result. --out saves it, for 'sim compare' and\n'sim report'. Progress goes to stderr. Every figure is modelled.",
		Args:  cli.Exactly(1, "a scenario's file"),
		RunE:  func(cmd *cobra.Command, args []string) error { return simRun(cmd, f, scenarioFile(above(), args[0])) },
	}
	cmd.Flags().StringVar(&f.arm, "arm", "", "arm of the scenario to run; default: all")
	f.addSeeds(cmd)
	cmd.Flags().StringVar(&f.out, "out", "", "file for the result as JSON; -: standard output, without any other output")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, scenario.Result{})
	return cmd
}

func simRun(cmd *cobra.Command, f simFlags, path string) error {
	if err := errors.Join(cli.CheckOutput(f.output), cli.Empty(cmd, "arm", "out")); err != nil {
		return exit.BadInput(err)
	}
	if f.out == "-" && cmd.Flags().Changed("output") {
		return exit.BadInput(errors.New("--out - and -o: standard output can take only one output"))
	}
	if err := writableFile("--out", f.out); err != nil {
		return exit.BadInput(err)
	}
	text, what, err := readSim(path)
	if err != nil {
		return exit.BadInput(err)
	}
	if what == aResult {
		return exit.BadInput(fmt.Errorf("%s is the result of a scenario, not a scenario: 'homenode-lab sim compare' and 'homenode-lab sim report' read it", path))
	}
	r, err := runScenario(cmd, text, path, f.arm, f.seeds)
	if err != nil {
		return err
	}
	data, err := scenario.Encode(r)
	if err != nil {
		return err
	}
	line := append(data, '\n')
	if err := cli.WriteTo(cmd.OutOrStdout(), f.out, func(w io.Writer) error { _, err := w.Write(line); return err }); err != nil || f.out == "-" {
		return err
	}
	if f.output == "json" {
		_, err := cmd.OutOrStdout().Write(line)
		return err
	}
	return simText(cmd.OutOrStdout(), r)
}

func simText(w io.Writer, r scenario.Result) error {
	return simulation.Scenario(w, r, cli.Screen())
}

func simCompareCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "compare SCENARIO|RESULT",
		Short: "Compare a scenario's policies, with their spread over seeds",
		Long:  "Runs all arms of a scenario, or reads the result of 'sim run --out', and compares them, seed by\nseed: all arms of a seed see the same demand. Every figure is modelled.",
		Args:  cli.Exactly(1, "a scenario's file, or a result's"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return simCompare(cmd, f, scenarioFile(above(), args[0]))
		},
	}
	f.addSeeds(cmd)
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, comparedJSON{})
	return cmd
}

// comparedJSON is the output of 'sim compare -o json'.
type comparedJSON struct {
	Schema   int                   `json:"schema"`
	How      string                `json:"how"`
	Scenario string                `json:"scenario"`
	Digest   string                `json:"digest"`
	Seeds    []uint64              `json:"seeds"`
	Compared []scenario.Comparison `json:"compared"`
	Paper    []scenario.Judged     `json:"paper_claims,omitempty"`
}

func simCompare(cmd *cobra.Command, f simFlags, path string) error {
	if err := cli.CheckOutput(f.output); err != nil {
		return err
	}
	r, err := resultOf(cmd, path, f.seeds)
	if err != nil {
		return err
	}
	if len(r.Arms) < 2 {
		return exit.BadInput(fmt.Errorf("compare %s: it has one arm, %q: want two", path, r.Against))
	}
	if f.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(comparedJSON{
			Schema: scenario.ResultSchema, How: r.How, Scenario: r.Scenario, Digest: r.Digest, Seeds: r.Seeds,
			Compared: scenario.Compare(r), Paper: scenario.Judge(r),
		})
	}
	return simText(cmd.OutOrStdout(), r)
}

func simReportCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "report RESULT|SCENARIO [--out page.html]",
		Short: "Write one self-contained page of a result, or of a scenario after running it",
		Args:  cli.Exactly(1, "a result's file, or a scenario's"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(cli.Empty(cmd, "out"), writableFile("--out", f.out)); err != nil {
				return exit.BadInput(err)
			}
			r, err := resultOf(cmd, scenarioFile(above(), args[0]), f.seeds)
			if err != nil {
				return err
			}
			return cli.WriteTo(cmd.OutOrStdout(), f.out, func(w io.Writer) error { return simulation.ScenarioHTML(w, r) })
		},
	}
	f.addSeeds(cmd)
	cmd.Flags().StringVar(&f.out, "out", "-", "file for the page; -: standard output")
	return cmd
}

// writableFile tests the output path before minutes are spent on the result.
func writableFile(flag, path string) error {
	if path == "" || path == "-" {
		return nil
	}
	return cli.CanReplace(flag, path)
}

// resultOf reads a result, or runs a scenario.
func resultOf(cmd *cobra.Command, path string, seeds []uint) (scenario.Result, error) {
	data, what, err := readSim(path)
	if err != nil {
		return scenario.Result{}, exit.BadInput(err)
	}
	if what == aScenario {
		return runScenario(cmd, data, path, "", seeds)
	}
	if len(seeds) > 0 {
		return scenario.Result{}, exit.BadInput(fmt.Errorf("--seed: %s is a result, and has its seeds", path))
	}
	r, err := scenario.Decode(data)
	if err != nil {
		return scenario.Result{}, exit.BadInput(fmt.Errorf("%s: %w", path, err))
	}
	return r, nil
}

// runScenario loads a scenario and runs it, on all CPUs.
func runScenario(cmd *cobra.Command, data []byte, path, armName string, seeds []uint) (scenario.Result, error) {
	set, err := scenario.Load(cmd.Context(), data, path, besideFile{folderOf(path), cmd.ErrOrStderr()})
	if err != nil {
		return scenario.Result{}, stoppedOr(exit.BadInput(err))
	}
	var own []uint64
	for _, s := range seeds {
		own = append(own, uint64(s))
	}
	if set.Scenario, err = set.Keep(armName, own); err != nil {
		return scenario.Result{}, exit.BadInput(fmt.Errorf("%s: %w", path, err))
	}
	bar := newSimBar(cmd.ErrOrStderr(), set)
	r, err := set.RunAll(cmd.Context(), runtime.GOMAXPROCS(0), bar.show)
	bar.end()
	if err != nil {
		return scenario.Result{}, stoppedOr(err)
	}
	return r, nil
}

// stoppedOr returns err, or the message for an interrupted run.
func stoppedOr(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted: nothing was written")
	}
	return err
}

func simPoliciesCommand() *cobra.Command {
	return simListCommand("policies", "List the policies that a scenario's arms may name", "Policies of the simulated world; all their results are modelled.", func() (rows [][2]string) {
		for _, k := range runner.Policies() {
			rows = append(rows, [2]string{k.Name, k.About})
		}
		return rows
	})
}

func simMachinesCommand() *cobra.Command {
	head := "Modelled machines, for 'machine: {builtin: NAME}'. A scenario may name any other machine: a lab's shape file (shape),\nor a recorded tree (tree), each with a profile of 'homenode bench' (profile)."
	return simListCommand("machines", "List the machines that come with homenode", head, func() (rows [][2]string) {
		for _, b := range catalog.Machines() {
			rows = append(rows, [2]string{b.Name, b.About})
		}
		return rows
	})
}

// simListCommand lists names and what they mean.
func simListCommand(use, short, head string, rows func() [][2]string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := cli.CheckOutput(output); err != nil {
				return err
			}
			return simList(cmd.OutOrStdout(), output, head, rows())
		},
	}
	cli.OutputFlag(cmd, &output)
	cli.Writes(cmd, listed{})
	return cmd
}

func simList(w io.Writer, output, head string, rows [][2]string) error {
	if output == "json" {
		return listJSON(w, rows)
	}
	_, err := fmt.Fprintf(w, "%s\n\n", head)
	for _, r := range rows {
		if err == nil {
			_, err = fmt.Fprintf(w, "%-15s %s\n", r[0], r[1])
		}
	}
	return err
}

// listed is what commands that list names print as JSON.
type listed struct {
	Schema  int     `json:"schema"` // 1
	Entries []named `json:"entries"`
}

type named struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

// listJSON writes names and what they mean.
func listJSON(w io.Writer, rows [][2]string) error {
	list := listed{1, []named{}}
	for _, r := range rows {
		list.Entries = append(list.Entries, named{r[0], r[1]})
	}
	return schema.NewEncoder(w).Encode(list)
}
