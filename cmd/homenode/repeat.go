// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/lab/model"
	"homenode/internal/machine"
	"homenode/internal/report"
	"homenode/internal/report/variation"
	"homenode/internal/source"
	"homenode/internal/trial"
	"homenode/internal/unit"
)

type repeatFlags struct {
	runs, warmups int
	arms          []string
	nodes, output string
	timeout       time.Duration
	seed          uint64
	verbose, any  bool
}

func repeatCommand() *cobra.Command {
	var f repeatFlags
	cmd := &cobra.Command{
		Use:   "repeat [-n RUNS] [--arms ARMS] -- CMD [ARGUMENT]…",
		Short: "Run a command again and again, as it is and placed: how its time varies, and how to time it",
		Long: "Runs CMD under several placements, the arms, -n times each, interleaved (ABBA), after\n" +
			"warm-ups that do not count. Prints median, spread and 95% confidence interval of its time by\n" +
			"arm, which arm is steadiest and fastest, what is within the noise, and the line to use for\n" +
			"repeatable timings: the fastest placement of those that vary by less than 1% or no more than\n" +
			"the steadiest, as far as the runs can tell.\n\n" +
			"  as-is       not placed; 'default' is the same\n" +
			"  nodes       an arm for each node that has CPUs and memory; node-1: that one alone\n" +
			"  local       on the CPUs of the first of --nodes, memory where it runs\n" +
			"  interleave  memory around --nodes, any CPU\n\n" +
			"Default: all of them. CMD gets no input, and its output is dropped unless --verbose is given;\n" +
			"when it fails, its last lines are shown, and nothing more is run.",
		Example: "  homenode repeat -- ./solver input.dat\n" +
			"  homenode repeat -n 20 --arms as-is,node-1 -- make -C bench run\n" +
			"  homenode repeat --nodes 0-1 --timeout 2m -o markdown -- ./solver",
		RunE: func(cmd *cobra.Command, args []string) error { return repeat(cmd, f, args) },
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().IntVarP(&f.runs, "runs", "n", 10, "runs of each arm that count")
	cmd.Flags().IntVar(&f.warmups, "warmup", 1, "runs of each arm before, that do not")
	cmd.Flags().StringSliceVar(&f.arms, "arms", []string{"as-is", "nodes", "local", "interleave"}, "which placements; the others are compared with the first")
	cmd.Flags().StringVar(&f.nodes, "nodes", "all", "which nodes to place it on")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "end a run that takes longer, and stop; 0: never")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "of the order of the runs")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "pass CMD's output on, to stderr")
	cmd.Flags().BoolVar(&f.any, "anyway", false, "also compare runs that are mostly start-up")
	cli.OutputFlag(cmd, &f.output, "markdown")
	return cmd
}

func (f repeatFlags) check(argv []string) error {
	const most = 1000 // runs of an arm: all pairs of two arms are compared
	switch {
	case len(argv) == 0:
		return errors.New("nothing to repeat: give a command after --")
	case f.runs < 2 || f.runs > most:
		return fmt.Errorf("-n %d: want 2 to %d: one run has no spread", f.runs, most)
	case f.warmups < 0 || f.warmups > most:
		return fmt.Errorf("--warmup %d: want 0 to %d", f.warmups, most)
	case f.timeout < 0:
		return fmt.Errorf("--timeout %v: it cannot be negative", f.timeout)
	case len(f.arms) == 0:
		return errors.New("--arms is empty: want some of as-is, nodes, node-N, local, interleave")
	}
	return cli.CheckOutput(f.output, "markdown")
}

func repeat(cmd *cobra.Command, f repeatFlags, argv []string) error {
	if err := f.check(argv); err != nil {
		return exit.BadInput(err)
	}
	m, _, err := source.Live()
	if err != nil {
		return err
	}
	limits, err := launch.ReadLimits(kernel.At("/"))
	if err != nil {
		return err
	}
	arms, notes, err := f.choose(m, limits)
	if err != nil {
		return exit.BadInput(err)
	}
	r := newRepeater(cmd.ErrOrStderr(), f, argv, arms)
	v := trial.Variation{Schema: 1, Command: argv, Machine: machineText(m), Date: time.Now().UTC().Truncate(time.Second),
		Warmups: f.warmups, Repeats: f.runs, Seed: f.seed, How: r.how, Clock: r.clock, Notes: append(notes, r.notes...)}
	if err := r.all(cmd.Context(), &v); err != nil {
		return err
	}
	v.Judge()
	if v.Verdict.BelowStartUp && !f.any {
		return r.tooShort(v.Arms[0].Name, v.Arms[0].Time.Median)
	}
	return showVariation(cmd.OutOrStdout(), f.output, v)
}

func showVariation(w io.Writer, output string, v trial.Variation) error {
	switch output {
	case "json":
		return json.NewEncoder(w).Encode(v)
	case "markdown":
		return variation.Markdown(w, v)
	}
	return variation.Text(w, v, cli.ScreenOf(0).Width)
}

// machineText says what it ran on without a name: a report may go anywhere.
func machineText(m machine.Machine) string {
	online := 0
	for _, n := range m.Nodes {
		online += n.CPUs.Len()
	}
	return fmt.Sprintf("%s, %s", plural(len(m.Nodes), "node"), plural(online, "CPU"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// repeater runs the arms.
type repeater struct {
	f        repeatFlags
	argv     []string
	arms     []repeatArm
	stderr   io.Writer
	progress func(done, all int, text string)

	now   func() time.Duration // nil: the monotonic clock
	how   unit.Source
	clock string
	notes []string
	left  bool // runs left something behind: it is told once
}

// repeatClock times the runs; nil: the monotonic clock. Tests have another.
var repeatClock func() time.Duration

func newRepeater(stderr io.Writer, f repeatFlags, argv []string, arms []repeatArm) *repeater {
	r := &repeater{f: f, argv: argv, arms: arms, stderr: stderr, now: repeatClock, how: unit.HowMeasured, clock: "monotonic clock"}
	r.progress = cli.ProgressLine(stderr)
	if f.verbose && cli.IsTerminal(stderr) { // the line would be written over
		r.progress = func(done, all int, text string) { fmt.Fprintf(stderr, "[%d/%d] %s\n", done, all, text) }
	}
	r.useModel()
	return r
}

// useModel takes times from the lab's model where there is one: the guest's own
// clock goes by the host's time.
func (r *repeater) useModel() {
	lab, err := model.Open("/sys")
	if err != nil {
		return
	}
	first := lab.Clock()
	if s := model.State(first.State); s != model.Pace && s != model.Warm || first.MHz == 0 {
		r.notes = append(r.notes, "The lab's model is not paced: times are the guest's own and mean nothing ('homenode-load control pace' paces it).")
		return
	}
	r.how, r.clock = unit.HowModelled, fmt.Sprintf("model clock of the lab, %d cycles a µs", first.MHz)
	r.now = func() time.Duration {
		return time.Duration(float64(lab.Clock().ModelCycles-first.ModelCycles) * 1e3 / float64(first.MHz))
	}
}

// all runs the first arm once, to see what the command is like, and then the plan.
func (r *repeater) all(ctx context.Context, v *trial.Variation) error {
	start := time.Now()
	defer r.clear()
	looked := false
	if r.f.warmups > 0 {
		if err := r.look(ctx, v); err != nil {
			return err
		}
		looked = true
	}
	order := trial.Plan(len(r.arms), r.f.warmups, r.f.runs, r.f.seed)
	samples := make([][]trial.Sample, len(r.arms))
	for i, run := range order {
		if run.Warm && run.Arm == 0 && run.Repeat == 0 && looked {
			continue
		}
		s, err := r.one(ctx, i, len(order), run)
		if err != nil {
			return err
		}
		if !run.Warm {
			samples[run.Arm] = append(samples[run.Arm], s)
			v.Order = append(v.Order, r.arms[run.Arm].name)
		}
	}
	if r.left {
		v.Notes = append(v.Notes, "The command ended and left processes in the background: they were ended after each run, and what they did is in no figure.")
	}
	for i, a := range r.arms {
		p := trial.Placed{Name: a.name, About: a.about, Run: a.run}
		p.Fill(samples[i])
		v.Arms = append(v.Arms, p)
	}
	v.Seconds = time.Since(start).Seconds()
	return nil
}

// look is the first warm-up. A command that ends at once is refused before it is
// run again and again, and arms whose node has no room for it are left out.
func (r *repeater) look(ctx context.Context, v *trial.Variation) error {
	s, err := r.one(ctx, 0, len(r.arms)*(r.f.warmups+r.f.runs), trial.Run{Warm: true})
	if err != nil {
		return err
	}
	if s.Seconds < trial.StartUp.Seconds() && !r.f.any {
		return r.tooShort(r.arms[0].name, s.Seconds)
	}
	if math.IsNaN(s.MaxRSS) {
		return nil
	}
	kept := r.arms[:1]
	for _, a := range r.arms[1:] {
		rooms, err := launch.ReadRoom(kernel.At("/"), a.placement.Nodes)
		if err == nil && a.placement.Policy == launch.Bind {
			err = launch.Fits(a.placement, rooms, unit.Bytes(s.MaxRSS))
		}
		if err != nil {
			v.Notes = append(v.Notes, fmt.Sprintf("%s was left out: %v.", a.name, err))
			continue
		}
		kept = append(kept, a)
	}
	r.arms = kept
	return nil
}

func (r *repeater) tooShort(arm string, seconds float64) error {
	return exit.BadInput(fmt.Errorf("compare runs of %s: %s takes %v: that is mostly the start of the program, which says nothing about placement: give it more to do, or --anyway",
		shellLine(r.argv), arm, time.Duration(seconds*float64(time.Second)).Round(10*time.Microsecond)))
}

// one runs one arm once.
func (r *repeater) one(ctx context.Context, i, all int, run trial.Run) (trial.Sample, error) {
	a := r.arms[run.Arm]
	kind, of := "run", r.f.runs
	if run.Warm {
		kind, of = "warm-up", r.f.warmups
	}
	r.progress(i, all, fmt.Sprintf("%s, %s %d of %d", a.name, kind, run.Repeat+1, of))
	c := launch.Command{Argv: r.argv, Timeout: r.f.timeout, Now: r.now}
	if r.f.verbose {
		c.Echo = r.stderr
	}
	o, err := launch.Run(ctx, kernel.Live(), a.placement, c)
	switch {
	case errors.Is(err, context.Canceled):
		return trial.Sample{}, fmt.Errorf("repeat %s: it was interrupted after %d of %d runs", shellLine(r.argv), i, all)
	case err != nil:
		return trial.Sample{}, exit.BadInput(fmt.Errorf("arm %s: %w", a.name, err))
	}
	r.left = r.left || o.LeftBehind
	if why := o.Failed(r.f.timeout); why != "" {
		return trial.Sample{}, r.failed(a.name, why, o)
	}
	return r.sample(o), nil
}

// failed shows the last lines of a command that failed, and says so in a sentence.
func (r *repeater) failed(arm, why string, o launch.Outcome) error {
	r.clear()
	const most = 10
	if !r.f.verbose {
		for _, stream := range [][]string{o.Stdout, o.Stderr} {
			for _, line := range stream[max(0, len(stream)-most):] {
				fmt.Fprintln(r.stderr, "  "+report.Printable(line))
			}
		}
	}
	last := "it wrote nothing to stderr"
	if n := len(o.Stderr); n > 0 {
		last = fmt.Sprintf("its last line: %s", o.Stderr[n-1])
	}
	return exit.BadInput(fmt.Errorf("arm %s: %s %s: %s", arm, shellLine(r.argv), why, last))
}

// sample takes over what was measured. CPU times in the lab are the guest's own,
// which are no model's.
func (r *repeater) sample(o launch.Outcome) trial.Sample {
	s := trial.Sample{Seconds: o.Elapsed.Seconds(), User: o.User.Seconds(), System: o.System.Seconds(), MaxRSS: math.NaN(),
		Minor: float64(o.MinorFaults), Major: float64(o.MajorFaults), Voluntary: float64(o.Voluntary), Involuntary: float64(o.Involuntary)}
	if b, ok := o.MaxRSS.Get(); ok {
		s.MaxRSS = float64(b)
	}
	if r.how == unit.HowModelled {
		s.User, s.System = math.NaN(), math.NaN()
	}
	return s
}

// clear ends a terminal's progress line.
func (r *repeater) clear() {
	if cli.IsTerminal(r.stderr) && !r.f.verbose {
		fmt.Fprint(r.stderr, "\r\x1b[K")
	}
}
