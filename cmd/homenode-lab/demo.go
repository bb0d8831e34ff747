// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/experiment"
	"homenode/internal/lab"
	"homenode/internal/lab/demo"
	"homenode/internal/report"
	"homenode/internal/schema"
)

type demoFlags struct {
	lab                       labFlags
	mix, mixes, agent, outDir string
	arms                      []string
	repeats, guests           int
	warmup                    float64
	pilot                     bool
	budget                    time.Duration
	output                    string
}

func demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Compare homenode with Linux, NUMA balancing, numad and a placement by hand, in the lab",
		Args:  cli.Exactly(0, "no arguments"),
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDemo(cmd, f) },
	}
	cmd.Flags().StringVar(&f.lab.dir, "lab", "", labHelp)
	cmd.Flags().StringVar(&f.lab.shapes, "shapes", "", "folder of shape files, instead of the program's own")
	cmd.Flags().StringVar(&f.mixes, "mixes", "", "folder of the mixes (default: lab/mixes, or where they are installed)")
	cmd.Flags().StringVar(&f.mix, "mix", "first-light", "mix of workloads: its name, or a file")
	cmd.Flags().StringVar(&f.agent, "agent", "", "the agent's configuration file; default: the mix's, NAME-agent.yaml")
	cmd.Flags().StringVar(&f.outDir, "out", "build/demo", "folder for demo.json, demo.html and demo.md")
	cmd.Flags().StringSliceVar(&f.arms, "arms", demo.Arms, "arms to compare")
	cmd.Flags().IntVar(&f.repeats, "repeats", 0, "number of repeats; default: the mix's")
	cmd.Flags().IntVar(&f.guests, "guests", 2, "guests at a time, which do the runs in turn: one does not use two of the host's CPUs")
	cmd.Flags().Float64Var(&f.warmup, "warmup", 0, "warm-up of every run, model-seconds; default: the mix's")
	cmd.Flags().BoolVar(&f.pilot, "pilot", false, "compare nothing; report the warm-up and repeats that the mix should have")
	cmd.Flags().DurationVar(&f.budget, "budget", 12*time.Minute, "with --pilot: time that a comparison may take")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, experiment.Comparison{})
	f.lab.addBin(cmd)
	cli.Exits(cmd, "3", "interrupted: the complete runs are kept")
	f.lab.cgroup = "v2"
	return cmd
}

func runDemo(cmd *cobra.Command, f demoFlags) error {
	o, err := demoOptions(cmd, f)
	if err != nil {
		return err
	}
	c, runs, err := compareDemo(cmd, f, o)
	if err != nil {
		return err
	}
	if f.pilot {
		_, err := io.WriteString(cmd.OutOrStdout(), demo.NewPilot(o.Mix, o.Arms, runs, f.guests, f.budget).String())
		return err
	}
	if err := writeComparison(f.outDir, c); err != nil {
		return err
	}
	if f.output == "json" {
		return schema.NewEncoder(cmd.OutOrStdout()).Encode(c)
	}
	if err := report.Comparison(cmd.OutOrStdout(), c, cli.Screen()); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\nWritten: %s, demo.html and demo.md beside it\n", filepath.Join(f.outDir, "demo.json"))
	return nil
}

// compareDemo runs the comparison and keeps each run when it ends. demo.json is
// replaced only after all runs.
func compareDemo(cmd *cobra.Command, f demoFlags, o demo.Options) (c experiment.Comparison, runs []demo.RunResult, err error) {
	kept, err := newKeptRuns(f)
	if err != nil {
		return c, nil, err
	}
	defer kept.close()
	o.Keep = func(r demo.RunResult) {
		runs = append(runs, r)
		kept.addRun(r)
	}
	line := cli.NewStatusLine(cmd.ErrOrStderr())
	o.Progress = func(p demo.Progress) { showDemo(line, p) }
	c, err = demo.Compare(cmd.Context(), o)
	line.Clear()
	if err != nil && cmd.Context().Err() != nil {
		return c, runs, interruptedDemo(len(runs), o, kept.file.Name())
	}
	return c, runs, err
}

// keptRuns is a file of every run, for a closer look. An older one is kept until the
// first run is complete.
type keptRuns struct {
	file *os.File
	any  bool
}

func newKeptRuns(f demoFlags) (*keptRuns, error) {
	name := "runs.jsonl"
	if f.pilot {
		name = "pilot.jsonl"
	}
	if err := os.MkdirAll(f.outDir, 0o755); err != nil {
		return nil, fmt.Errorf("make %s: %w", f.outDir, err)
	}
	file, err := os.OpenFile(filepath.Join(f.outDir, name), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &keptRuns{file: file}, nil
}

// addRun has no error: the comparison does not need the file.
func (k *keptRuns) addRun(r demo.RunResult) {
	if !k.any {
		_ = k.file.Truncate(0)
	}
	k.any = true
	_ = schema.NewEncoder(k.file).Encode(r)
}

func (k *keptRuns) close() {
	if st, err := k.file.Stat(); err == nil && st.Size() == 0 {
		_ = os.Remove(k.file.Name())
	}
	_ = k.file.Close()
}

// interruptedDemo is the result of a stopped comparison: nothing runs any more, and
// it names what is left.
func interruptedDemo(ran int, o demo.Options, kept string) error {
	if ran == 0 {
		return errors.New("interrupted before a run was complete: nothing was kept")
	}
	return exit.With(exit.Partly, fmt.Errorf("interrupted: %d of %d runs were complete and are in %s; the last comparison was not replaced",
		ran, len(o.Arms)*o.Mix.Repeats, kept))
}

func demoOptions(cmd *cobra.Command, f demoFlags) (demo.Options, error) {
	if err := f.check(); err != nil {
		return demo.Options{}, exit.BadInput(err)
	}
	path, err := f.mixFile()
	if err != nil {
		return demo.Options{}, exit.BadInput(err)
	}
	mix, err := demo.ReadMix(path)
	if err != nil {
		return demo.Options{}, exit.BadInput(err)
	}
	mix = f.adjust(mix)
	if f.agent == "" {
		f.agent = beside(path, agentSuffix)
	}
	agent, err := os.ReadFile(f.agent)
	if err != nil {
		return demo.Options{}, exit.BadInput(fmt.Errorf("read agent configuration: %w", err))
	}
	boot, err := labOptions(&f.lab, mix.Shape)
	if err != nil {
		return demo.Options{}, err
	}
	if err := mix.CheckOn(boot.Shape); err != nil {
		return demo.Options{}, exit.BadInput(fmt.Errorf("mix %s: %w", path, err))
	}
	var long *experiment.Comparison
	if slices.Contains(f.arms, demo.ArmHomenode) { // otherwise there is nothing to compare with
		if long, err = storedPeers(beside(path, peersSuffix), demo.LoadSum(mix, boot.Shape), cmd.ErrOrStderr()); err != nil {
			return demo.Options{}, exit.BadInput(err)
		}
	}
	return demo.Options{
		Mix: mix, Agent: agent, Arms: f.arms, Boot: boot, Guests: f.guests, Commit: cli.Version, Long: long,
		Command: strings.Join(append([]string{"homenode-lab"}, os.Args[1:]...), " "),
	}, nil
}

// mostGuests bounds the memory: a guest may take 3.25 GiB.
const mostGuests = 16

func (f demoFlags) check() error {
	if err := cli.CheckOutput(f.output); err != nil {
		return err
	}
	if f.pilot && f.output != "text" {
		return errors.New("--pilot writes text: leave out -o")
	}
	if f.repeats < 0 || !(f.warmup >= 0) || f.budget <= 0 || f.guests < 1 || f.guests > mostGuests {
		return fmt.Errorf("want --repeats and --warmup of 0 or more, a --budget above 0, and 1 to %d --guests", mostGuests)
	}
	for _, a := range f.arms {
		if !slices.Contains(demo.Arms, a) {
			return fmt.Errorf("unknown arm %q: want some of %s", a, strings.Join(demo.Arms, ", "))
		}
	}
	return nil
}

// adjust overrides the mix with the flags. It is the same for all arms.
func (f demoFlags) adjust(m demo.Mix) demo.Mix {
	if f.pilot {
		m.Warmup, m.Repeats = demo.PilotWarmup, demo.PilotRepeats
	}
	if f.repeats > 0 {
		m.Repeats = f.repeats
	}
	if f.warmup > 0 {
		m.Warmup = f.warmup
	}
	return m
}

// Files next to NAME.yaml.
const (
	agentSuffix = "-agent.yaml"
	peersSuffix = "-peers.json"
)

func beside(mix, suffix string) string { return strings.TrimSuffix(mix, ".yaml") + suffix }

// mixFile finds the mix that the flags name.
func (f demoFlags) mixFile() (string, error) {
	if isMixFile(f.mix) {
		return f.mix, nil
	}
	folder, err := mixesFolder(above(), f.mixes)
	if err != nil {
		return "", err
	}
	return mixFile(folder, f.mix)
}

func isMixFile(mix string) bool { return strings.Contains(mix, "/") || strings.HasSuffix(mix, ".yaml") }

// mixFile finds a mix by its name. A name that looks like a file is a file.
func mixFile(dir, mix string) (string, error) {
	if isMixFile(mix) {
		return mix, nil
	}
	path := filepath.Join(dir, mix+".yaml")
	if _, err := os.Stat(path); err == nil && !strings.HasSuffix(path, agentSuffix) {
		return path, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return "", err
	}
	var names []string
	for _, f := range files {
		if !strings.HasSuffix(f, agentSuffix) {
			names = append(names, strings.TrimSuffix(filepath.Base(f), ".yaml"))
		}
	}
	if len(names) == 0 {
		return "", fmt.Errorf("find mix %q: %s holds none: name a file, or the folder with --mixes", mix, dir)
	}
	return "", fmt.Errorf("unknown mix %q: want %s, or a file", mix, strings.Join(names, ", "))
}

// storedPeers reads the results of peers with a longer warm-up ('make
// bench-peers'). Results of another load are not comparable, and are not shown.
func storedPeers(path, load string, stderr io.Writer) (*experiment.Comparison, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read stored peers: %w", err)
	}
	var c experiment.Comparison
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("read stored peers %s: %w", path, err)
	}
	if c.Load != load {
		fmt.Fprintf(stderr, "homenode-lab: %s is of another load (%s, not %s) and is not shown: 'make bench-peers' measures this one\n", path, c.Load, load)
		return nil, nil
	}
	return &c, nil
}

func writeComparison(dir string, c experiment.Comparison) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if err := cli.ReplaceFile(filepath.Join(dir, "demo.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer, experiment.Comparison) error{"demo.html": report.ComparisonHTML, "demo.md": report.ComparisonMarkdown} {
		var page bytes.Buffer
		if err := write(&page, c); err != nil {
			return err
		}
		if err := cli.ReplaceFile(filepath.Join(dir, name), page.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// labArm is the part of a demonstration's run inside the guest.
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
