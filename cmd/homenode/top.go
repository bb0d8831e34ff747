// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/source"
	"homenode/internal/tui"
	"homenode/internal/views"
)

type topOptions struct {
	period        time.Duration
	config, state string
	replay, speed string
	once, ascii   bool
	stdout        *os.File
	cgroups       []string
}

func topCommand() *cobra.Command {
	o := topOptions{stdout: os.Stdout}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch the machine and its workloads on a live screen, or a recording of them",
		Long: "Shows every node on top (CPUs, memory by kind, local share of reads) and every workload below, with the\n" +
			"history of its local ratio. ? lists the keys. b binds a workload to nodes and u unbinds it: a dry run is\n" +
			"shown first. The previous settings go to the journal. What is bound here stays bound when top ends, until\n" +
			"'homenode restore' or the next start of 'homenode agent' puts it back.\n\n" +
			"--replay plays a recording of 'homenode record --windows', gzipped or not, on the same screen. It can bind nothing.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.replay != "" && (cmd.Flags().Changed("period") || cmd.Flags().Changed("config") || cmd.Flags().Changed("cgroup")) {
				return exit.BadInput(errors.New("--replay shows a recording: leave out --period, --config and --cgroup"))
			}
			if o.replay == "" && cmd.Flags().Changed("speed") {
				return exit.BadInput(errors.New("--speed is for --replay: a live screen has no speed"))
			}
			return runTop(cmd.Context(), o)
		},
	}
	cli.Exits(cmd, "3", "the recording of --replay was cut off")
	f := cmd.Flags()
	f.DurationVar(&o.period, "period", 2*time.Second, "time between two readings")
	f.StringVar(&o.config, "config", "", "the agent's configuration file, with cgroups, services and targets")
	f.StringArrayVar(&o.cgroups, "cgroup", nil, "pattern of the cgroups to watch, e.g. '/demo/*'; repeatable")
	f.StringVar(&o.state, "state", "", "folder of journal and status (default: the configuration's, "+agent.DefaultStateDir+")")
	f.StringVar(&o.replay, "replay", "", "recording to play")
	f.StringVar(&o.speed, "speed", "1", "speed of the replay: 0.1 to 1024, or max")
	f.BoolVar(&o.once, "once", false, "print one screen as text and end; needs no terminal")
	f.BoolVar(&o.ascii, "ascii", false, "draw with ASCII only (default: if the locale is not UTF-8)")
	return cmd
}

// runTop opens the source, shows it, and reports what stays bound.
func runTop(ctx context.Context, o topOptions) error {
	speed, err := parseSpeed(o.speed)
	if err == nil && !o.once {
		err = needTerminal(o.stdout)
	}
	if err == nil {
		err = cli.CheckPeriod(o.period)
	}
	if err != nil {
		return exit.BadInput(err)
	}
	so := tui.Options{Speed: speed, ASCII: o.ascii || !cli.SpeaksUTF8(os.Getenv)}
	if o.replay != "" {
		rec, err := source.Recording(o.replay)
		if err != nil {
			return exit.BadInput(err)
		}
		so.Source, so.NoActor = tui.NewReplay(rec), "a recording cannot be bound: 'homenode top' without --replay shows this host"
		if so.Title = filepath.Base(o.replay); rec.CutOff != "" {
			cli.Tell(os.Stderr, []string{o.replay + ": " + rec.CutOff})
			so.Title += " (cut off)"
		}
		err = showTop(ctx, o, so)
		if err == nil && rec.CutOff != "" {
			return exit.With(exit.Partly, nil)
		}
		return err
	}
	c, err := agentConfig(o.config, o.state)
	if err == nil {
		err = useProfile(&c)
	}
	if err != nil {
		return err
	}
	if len(o.cgroups) > 0 {
		c.Cgroups = o.cgroups
	}
	if err := cli.CheckGlobs("--cgroup", o.cgroups); err != nil {
		return exit.BadInput(err)
	}
	l, err := host.Open(c, o.period)
	if err != nil {
		return exit.Precondition(err)
	}
	so.Source, so.Actor, so.Title = l, l, "live"
	so.Why = func(id string) string { return whyOf(c.StateDir, id) }
	err = showTop(ctx, o, so)
	cli.Tell(os.Stderr, l.Close())
	return exit.Precondition(err)
}

func showTop(ctx context.Context, o topOptions, so tui.Options) error {
	if !o.once {
		return tui.Run(ctx, so)
	}
	text, err := tui.Once(ctx, so, envSize("COLUMNS", 120), envSize("LINES", 40))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.stdout, text)
	return err
}

// needTerminal names the alternatives if there is no terminal to draw on.
func needTerminal(f *os.File) error {
	switch {
	case !cli.IsTerminal(f):
		return errors.New("top needs a terminal to draw on: 'homenode top --once' prints one screen, 'homenode stat' the figures")
	case os.Getenv("TERM") == "dumb":
		return errors.New("this terminal (TERM=dumb) cannot move its cursor: 'homenode top --once' prints one screen")
	}
	return nil
}

func parseSpeed(text string) (float64, error) {
	if text == "max" {
		return math.Inf(1), nil
	}
	v, err := strconv.ParseFloat(strings.TrimPrefix(text, "x"), 64)
	if err != nil || !(v > 0) || v > 1024 {
		return 0, fmt.Errorf("--speed is %q: want a number from 0.1 to 1024, or max", text)
	}
	return v, nil
}

func envSize(name string, other int) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil || n < 20 || n > 500 {
		return other
	}
	return n
}

// whyOf is the text of `homenode why`, or the reason why there is none.
func whyOf(state, id string) string {
	s, err := agent.FindStatus(state)
	if err != nil {
		return err.Error()
	}
	ws, err := s.Find(id)
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	views.Why(&out, ws)
	return out.String()
}
