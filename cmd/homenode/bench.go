// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/bench"
	"homenode/internal/bench/host"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/profile"
	reportprofile "homenode/internal/report/profile"
	"homenode/internal/source"
)

type benchFlags struct {
	out, html, pictures, output string
	resume                      bool
	only, skip                  []string
	nodes, cpus                 string
	repeats                     int
	budget                      time.Duration
	seed                        uint64
}

func benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this machine: latencies, bandwidths, caches, and the cost of moving and placing memory",
		Long: "homenode bench measures the machine and writes a profile, a file that other commands use. It saves the profile\n" +
			"about once a second: stop it at any time, and continue with --resume. While it runs, it uses all CPUs that it may.\n\n" +
			"A latency is the median of short batches, so interruptions do not count. A bandwidth is the mean of the whole\n" +
			"time. In the lab a bandwidth is a median too, because the lab's clock is a model's.\n\n" +
			"Parts: " + profile.Names(profile.Parts()) + ".",
		Example: "  homenode bench\n  homenode bench --only caches,latency,bandwidth --budget 1m\n  homenode bench --resume --html profile.html\n  homenode bench show profile.json",
		Args:    cli.Exactly(0, "no arguments"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runBench(cmd, f) },
	}
	cli.Exits(cmd, "3", "stopped, or the budget was too small: --resume continues")
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "file of the profile; it is replaced once there is something to save (default "+rootProfile+", for other users than root homenode/profile.json in $XDG_STATE_HOME or ~/.local/state)")
	flags.BoolVar(&f.resume, "resume", false, "continue with the existing profile")
	flags.StringSliceVar(&f.only, "only", nil, "parts to measure; default: all")
	flags.StringSliceVar(&f.skip, "skip", nil, "parts to leave out")
	flags.StringVar(&f.nodes, "nodes", "", "nodes to measure, such as 0-1 or !0; default: all that this process may use")
	flags.StringVar(&f.cpus, "cpus", "", "CPUs to use, such as 0-3; default: all that this process may use")
	flags.IntVar(&f.repeats, "repeats", 3, "number of repeats of every measurement")
	flags.DurationVar(&f.budget, "budget", 5*time.Minute, "time limit; repeats are cut first, then parts; 0: no limit")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the order of repeats")
	flags.StringVar(&f.html, "html", "", "file for an HTML page of the profile; -: standard output")
	flags.StringVar(&f.pictures, "pictures", "", "folder for pictures of the profile (SVG)")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, profile.Profile{})
	cmd.AddCommand(benchShowCommand())
	return cmd
}

// rootProfile is the path that the documentation's agent configuration names.
const rootProfile = "/var/lib/homenode/profile.json"

// defaultProfile does not depend on the working directory.
func defaultProfile(uid int, env func(string) string) string {
	if uid == 0 {
		return rootProfile
	}
	return filepath.Join(cmp.Or(env("XDG_STATE_HOME"), filepath.Join(env("HOME"), ".local/state")), "homenode/profile.json")
}

// Tests replace these.
var (
	openProber host.Opener = host.Live
	readLimits             = func() (launch.Limits, error) { return launch.ReadLimits(kernel.At("/")) }
)

func runBench(cmd *cobra.Command, f benchFlags) error {
	if err := cli.Empty(cmd, "only", "skip", "nodes", "cpus", "html", "pictures"); err != nil {
		return exit.BadInput(err)
	}
	if !cmd.Flags().Changed("out") {
		f.out = defaultProfile(os.Geteuid(), os.Getenv)
		if err := os.MkdirAll(filepath.Dir(f.out), 0o755); err != nil {
			return exit.BadInput(fmt.Errorf("make folder for the profile: %w: name a file with --out", err))
		}
	}
	o, prior, err := f.prepare()
	if err != nil {
		return err
	}
	cli.Tell(cmd.ErrOrStderr(), host.Shut(o, f.nodes, f.cpus))
	result, saved, err := host.Measure(cmd.Context(), openProber, o, prior, f.out, cmd.ErrOrStderr())
	if err != nil {
		return f.stopped(cmd.Context(), saved, err)
	}
	if err := f.print(cmd.OutOrStdout(), result); err != nil {
		return err
	}
	return f.whole(cmd.ErrOrStderr(), result)
}

// prepare checks everything that can be checked before the machine is loaded.
func (f benchFlags) prepare() (o bench.Options, prior profile.Profile, err error) {
	if err = f.check(); err != nil {
		return o, prior, exit.BadInput(err)
	}
	m, _, err := source.Live()
	if err != nil {
		return o, prior, err
	}
	o = bench.Options{
		Machine: m, Budget: f.budget, Repeats: f.repeats, Seed: f.seed, Now: time.Now,
		Version: cli.Version, Command: strings.Join(append([]string{"homenode"}, os.Args[1:]...), " "),
	}
	if o.Parts, err = profile.Choose(f.only, f.skip); err != nil {
		return o, prior, exit.BadInput(err)
	}
	limits, err := readLimits()
	if err != nil {
		return o, prior, err
	}
	if err = host.Places(&o, limits, f.nodes, f.cpus); err != nil {
		return o, prior, exit.BadInput(err)
	}
	if err = host.Writable(f.out, f.html, f.pictures); err != nil {
		return o, prior, exit.BadInput(err)
	}
	if f.resume {
		prior, err = source.ProfileFile(f.out)
		if errors.Is(err, fs.ErrNotExist) { // nothing has been saved yet
			return o, profile.Profile{}, nil
		}
	}
	return o, prior, exit.BadInput(err)
}

func (f benchFlags) check() error {
	switch {
	case f.out == "":
		return errors.New("--out is empty: name a file")
	case f.repeats < 1:
		return fmt.Errorf("--repeats is %d: want at least 1", f.repeats)
	case f.budget < 0:
		return fmt.Errorf("--budget is %v: want a time, or 0 for no limit", f.budget)
	case f.html == "-" && f.output == "json":
		return errors.New("--html - and -o json both want standard output")
	}
	return cli.CheckOutput(f.output)
}

// stopped says how to continue.
func (f benchFlags) stopped(ctx context.Context, saved bool, err error) error {
	switch {
	case ctx.Err() != nil && saved:
		return exit.With(exit.Partly, fmt.Errorf("stopped: what was measured is in %s: run the same command with --resume to continue", f.out))
	case ctx.Err() != nil:
		return exit.With(exit.Partly, errors.New("stopped before anything was measured"))
	case errors.Is(err, bench.ErrOtherProfile):
		return exit.BadInput(fmt.Errorf("--resume %s: %w: name another --out, or leave out --resume to replace it", f.out, err))
	case errors.Is(err, bench.ErrNothing):
		return exit.BadInput(err)
	}
	return err
}

// print writes everything that can be written, because the figures took minutes
// to measure.
func (f benchFlags) print(w io.Writer, p profile.Profile) (err error) {
	if f.pictures != "" {
		err = host.WritePictures(f.pictures, p)
	}
	err = errors.Join(err, cli.WriteTo(w, f.html, func(w io.Writer) error { return reportprofile.HTML(w, p) }))
	if f.html == "-" {
		return err
	}
	return errors.Join(err, printProfile(w, p, f.output))
}

// whole returns exit code 3 if the budget was too small for everything.
func (f benchFlags) whole(stderr io.Writer, p profile.Profile) error {
	cli.Tell(stderr, []string{fmt.Sprintf("saved to %s: 'homenode bench show %s' shows it", f.out, f.out)})
	if late := bench.OutOfTime(p); len(late) > 0 {
		return exit.With(exit.Partly, fmt.Errorf("the budget of %v was too small for %s: continue with --resume, or allow more with --budget", f.budget, profile.Names(late)))
	}
	return nil
}
