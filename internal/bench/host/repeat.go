// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/experiment"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/lab/model"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// RepeatOptions say how often a command is run, and how it is placed.
type RepeatOptions struct {
	Runs, Warmups int // of each arm
	Arms          []string
	Nodes         string // nodes to place it on, or all
	Timeout       time.Duration
	Seed          uint64 // seed of the order
	Verbose, Any  bool   // copy its output; also compare runs that are mostly start-up
	Now           func() time.Duration
}

// Compare runs a command many times, and compares the arms.
func Compare(ctx context.Context, o RepeatOptions, argv []string, stderr io.Writer) (v experiment.Variation, err error) {
	m, _, err := source.Live()
	if err != nil {
		return v, err
	}
	limits, err := launch.ReadLimits(kernel.At("/"))
	if err != nil {
		return v, err
	}
	arms, notes, err := o.choose(m, limits)
	if err != nil {
		return v, exit.BadInput(err)
	}
	r := newRunner(stderr, o, argv, arms)
	v = experiment.Variation{Schema: 1, Command: argv, Machine: machineText(m), Date: time.Now().UTC().Truncate(time.Second),
		Warmups: o.Warmups, Repeats: o.Runs, Seed: o.Seed, How: r.how, Clock: r.clock, Notes: append(notes, r.notes...)}
	if err := r.all(ctx, &v); err != nil {
		return v, err
	}
	v.Judge()
	if v.Verdict.BelowStartUp && !o.Any {
		return v, r.tooShort(v.Arms[0].Name, v.Arms[0].Time.Median)
	}
	return v, nil
}

// machineText describes the machine without its name: a report may be
// published.
func machineText(m machine.Machine) string {
	online := 0
	for _, n := range m.Nodes {
		online += n.CPUs.Len()
	}
	return fmt.Sprintf("%s, %s", render.Count(len(m.Nodes), "node"), render.Count(online, "CPU"))
}

// runner runs the arms.
type runner struct {
	f        RepeatOptions
	argv     []string
	arms     []arm
	stderr   io.Writer
	progress func(done, all int, text string)

	now   func() time.Duration // nil means the monotonic clock
	how   unit.Source
	clock string
	notes []string
	left  bool // runs left processes behind: that is reported once
}

func newRunner(stderr io.Writer, f RepeatOptions, argv []string, arms []arm) *runner {
	r := &runner{f: f, argv: argv, arms: arms, stderr: stderr, now: f.Now, how: unit.HowMeasured, clock: "monotonic clock"}
	r.progress = cli.ProgressLine(stderr)
	if f.Verbose && cli.IsTerminal(stderr) { // the output would overwrite the line
		r.progress = func(done, all int, text string) { fmt.Fprintf(stderr, "[%d/%d] %s\n", done, all, text) }
	}
	r.useModel()
	return r
}

// useModel takes times from the lab's model if there is one, and notes that.
func (r *runner) useModel() {
	lab, err := model.Open("/sys")
	if err != nil {
		return
	}
	first := lab.Clock()
	if model.State(first.State) != model.On || first.MHz == 0 {
		r.notes = append(r.notes, "The lab's model is off: memory costs nothing, and times mean little ('homenode-load control on' switches it on).")
		return
	}
	r.how, r.clock = unit.HowModelled, fmt.Sprintf("model clock of the lab, %d cycles a µs", first.MHz)
	r.now = func() time.Duration {
		return time.Duration(float64(lab.Clock().ModelCycles-first.ModelCycles) * 1e3 / float64(first.MHz))
	}
}

// all runs the first arm once, to learn about the command, and then the plan.
func (r *runner) all(ctx context.Context, v *experiment.Variation) error {
	start := time.Now()
	defer r.clear()
	looked := false
	if r.f.Warmups > 0 {
		if err := r.look(ctx, v); err != nil {
			return err
		}
		looked = true
	}
	order := experiment.Plan(len(r.arms), r.f.Warmups, r.f.Runs, r.f.Seed)
	samples := make([][]experiment.Sample, len(r.arms))
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
		v.Notes = append(v.Notes, "The command ended and left processes in the background: they were ended after each run, and no figure includes them.")
	}
	for i, a := range r.arms {
		p := experiment.Placed{Name: a.name, About: a.about, Run: a.run}
		p.Fill(samples[i])
		v.Arms = append(v.Arms, p)
	}
	v.Seconds = time.Since(start).Seconds()
	return nil
}

// look is the first warm-up. A command that ends at once is refused before it is
// run many times, and arms whose node has no room for it are left out.
func (r *runner) look(ctx context.Context, v *experiment.Variation) error {
	s, err := r.one(ctx, 0, len(r.arms)*(r.f.Warmups+r.f.Runs), experiment.Run{Warm: true})
	if err != nil {
		return err
	}
	if s.Seconds < experiment.StartUp.Seconds() && !r.f.Any {
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

func (r *runner) tooShort(arm string, seconds float64) error {
	return exit.BadInput(fmt.Errorf("compare runs of %s: %s takes %v: that is mostly the start of the program, which says nothing about placement: give it more to do, or --anyway",
		cli.ShellLine(r.argv), arm, time.Duration(seconds*float64(time.Second)).Round(10*time.Microsecond)))
}

// one runs one arm once.
func (r *runner) one(ctx context.Context, i, all int, run experiment.Run) (experiment.Sample, error) {
	a := r.arms[run.Arm]
	kind, of := "run", r.f.Runs
	if run.Warm {
		kind, of = "warm-up", r.f.Warmups
	}
	r.progress(i, all, fmt.Sprintf("%s, %s %d of %d", a.name, kind, run.Repeat+1, of))
	c := launch.Command{Argv: r.argv, Timeout: r.f.Timeout, Now: r.now}
	if r.f.Verbose {
		c.Echo = r.stderr
	}
	o, err := launch.Run(ctx, kernel.Live(), a.placement, c)
	switch {
	case errors.Is(err, context.Canceled):
		return experiment.Sample{}, fmt.Errorf("repeat %s: interrupted after %d of %d runs", cli.ShellLine(r.argv), i, all)
	case err != nil:
		return experiment.Sample{}, exit.BadInput(fmt.Errorf("arm %s: %w", a.name, err))
	}
	r.left = r.left || o.LeftBehind
	if why := o.Failed(r.f.Timeout); why != "" {
		return experiment.Sample{}, r.failed(a.name, why, o)
	}
	return r.sample(o), nil
}

// failed shows the last lines of a command that failed, and returns an error.
func (r *runner) failed(arm, why string, o launch.Outcome) error {
	r.clear()
	const most = 10
	if !r.f.Verbose {
		for _, stream := range [][]string{o.Stdout, o.Stderr} {
			for _, line := range stream[max(0, len(stream)-most):] {
				fmt.Fprintln(r.stderr, "  "+render.Printable(line))
			}
		}
	}
	last := "it wrote nothing to stderr"
	if n := len(o.Stderr); n > 0 {
		last = fmt.Sprintf("its last line: %s", o.Stderr[n-1])
	}
	return exit.BadInput(fmt.Errorf("arm %s: %s %s: %s", arm, cli.ShellLine(r.argv), why, last))
}

// sample converts the measurements. CPU times in the lab are the guest's own,
// and are not modelled.
func (r *runner) sample(o launch.Outcome) experiment.Sample {
	s := experiment.Sample{Seconds: o.Elapsed.Seconds(), User: o.User.Seconds(), System: o.System.Seconds(), MaxRSS: math.NaN(),
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
func (r *runner) clear() {
	if cli.IsTerminal(r.stderr) && !r.f.Verbose {
		fmt.Fprint(r.stderr, "\r\x1b[K")
	}
}
