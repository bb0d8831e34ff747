// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/lab"
	"homenode/internal/lab/demo"
	"homenode/internal/report"
	"homenode/internal/trial"
)

type demoFlags struct {
	lab                labFlags
	mix, agent, outDir string
	arms               []string
	repeats            int
	output             string
}

func demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Compare homenode with Linux, NUMA balancing, numad and a placement by hand, in the lab",
		Args:  cli.Exactly(0, "no arguments"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, f) },
	}
	cmd.Flags().StringVar(&f.lab.dir, "lab", "build/lab", "folder of the lab's built files ('make lab')")
	cmd.Flags().StringVar(&f.lab.shapes, "shapes", "", "folder of shape files, instead of those that are part of the program")
	cmd.Flags().StringVar(&f.mix, "mix", "lab/mixes/first-light.yaml", "what runs side by side")
	cmd.Flags().StringVar(&f.agent, "agent", "", "the agent's configuration; default: the mix's, NAME-agent.yaml")
	cmd.Flags().StringVar(&f.outDir, "out", "build/demo", "where demo.json, demo.html and demo.md go")
	cmd.Flags().StringSliceVar(&f.arms, "arms", demo.Arms, "which arms")
	cmd.Flags().IntVar(&f.repeats, "repeats", 0, "repeats; default: the mix's")
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	f.lab.addBin(cmd)
	f.lab.cgroup = "v2"
	return cmd
}

func runDemo(cmd *cobra.Command, f demoFlags) error {
	o, err := demoOptions(cmd, f)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.outDir, 0o755); err != nil {
		return err
	}
	runs, err := os.Create(filepath.Join(f.outDir, "runs.jsonl"))
	if err != nil {
		return err
	}
	defer runs.Close()
	o.Keep = func(r demo.RunResult) {
		// The comparison stands without it: every run, for those who dig.
		_ = json.NewEncoder(runs).Encode(r)
	}
	o.Progress = cli.ProgressLine(cmd.ErrOrStderr())
	c, err := demo.Compare(cmd.Context(), o)
	if err != nil {
		return err
	}
	if err := writeComparison(f.outDir, c); err != nil {
		return err
	}
	if f.output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(c)
	}
	if err := report.Text(cmd.OutOrStdout(), c); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nWritten: %s, %s\n", filepath.Join(f.outDir, "demo.json"), filepath.Join(f.outDir, "demo.html"))
	return nil
}

func demoOptions(cmd *cobra.Command, f demoFlags) (demo.Options, error) {
	if f.output != "text" && f.output != "json" {
		return demo.Options{}, exit.BadInput(fmt.Errorf("-o is %q: want text or json", f.output))
	}
	mix, err := demo.ReadMix(f.mix)
	if err != nil {
		return demo.Options{}, exit.BadInput(err)
	}
	if f.repeats > 0 {
		mix.Repeats = f.repeats
	}
	for _, a := range f.arms {
		if !slices.Contains(demo.Arms, a) {
			return demo.Options{}, exit.BadInput(fmt.Errorf("unknown arm %q: want some of %s", a, strings.Join(demo.Arms, ", ")))
		}
	}
	if f.agent == "" {
		f.agent = strings.TrimSuffix(f.mix, ".yaml") + "-agent.yaml"
	}
	agent, err := os.ReadFile(f.agent)
	if err != nil {
		return demo.Options{}, exit.BadInput(fmt.Errorf("read agent configuration: %w", err))
	}
	boot, err := labOptions(&f.lab, mix.Shape)
	if err != nil {
		return demo.Options{}, err
	}
	for _, w := range mix.Workloads {
		if w.Node >= len(boot.Shape.Nodes) || boot.Shape.Nodes[w.Node].CPUs.IsEmpty() {
			return demo.Options{}, exit.BadInput(fmt.Errorf("mix %s: workload %s: shape %s has no CPUs on node %d", f.mix, w.Name, boot.Shape.Name, w.Node))
		}
	}
	return demo.Options{
		Mix: mix, Agent: agent, Arms: f.arms, Boot: boot, Commit: cli.Version,
		Command: strings.Join(append([]string{"homenode-lab"}, os.Args[1:]...), " "),
	}, nil
}

func writeComparison(dir string, c trial.Comparison) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "demo.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer, trial.Comparison) error{"demo.html": report.HTML, "demo.md": report.Markdown} {
		page, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if err := errors.Join(write(page, c), page.Close()); err != nil {
			return err
		}
	}
	return nil
}

// labArm is the guest's side of one run of the demonstration.
func labArm() *cobra.Command {
	return &cobra.Command{
		Use: "arm PLAN RESULT", Hidden: true, Args: cli.Exactly(2, "a plan and a result file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := lab.FindPort("/"); err != nil {
				return exit.BadInput(err)
			}
			return demo.GuestArm(cmd.Context(), args[0], args[1])
		},
	}
}
