// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/agent/threadagent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/policy/brm"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/views"
)

// pinOptions are the flags of pin.
type pinOptions struct {
	pids, watch, config, state, output string
	cgroups                            []string
	period, length                     time.Duration
	hold, dry, infer, user             bool
}

func pinCommand() *cobra.Command { return pinFlags(&pinOptions{}) }

func pinFlags(o *pinOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pin",
		Short: "Move single threads to the node where the machine waits least for memory",
		Long: "Bias Random Migration (Rao et al., HPCA 2013). It counts each thread's uncore penalty: the cycles that the thread\n" +
			"stalls on requests beyond its core's caches. It moves threads at random, with a bias to nodes where threads stall less.\n" +
			"The named processes and cgroups are taken as sensitive to where they run. No other thread is moved.\n\n" +
			"A moved thread gets its affinity back at once, and stays until the kernel moves it. --hold keeps it there until the\n" +
			"end. After a kill, 'homenode restore' or the next start puts back what was held.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runPin(cmd, *o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.pids, "pid", "", "process ids: 12 or 12,34")
	f.StringSliceVar(&o.cgroups, "cgroup", nil, "cgroups whose path matches a pattern: /demo/*")
	f.StringVar(&o.watch, "watch", "", "process ids to count and never move")
	f.BoolVar(&o.infer, "infer", false, "find out which processes are sensitive, instead of taking all as sensitive")
	f.DurationVar(&o.period, "period", threadagent.DefaultPeriod, "time between two windows, 10ms to 1h")
	f.DurationVar(&o.length, "for", 0, "time to run; 0: until it is stopped")
	f.BoolVar(&o.hold, "hold", false, "keep a moved thread on its node while the node has a CPU for each such thread")
	f.BoolVar(&o.dry, "dry-run", false, "decide and report, but move no thread")
	f.BoolVar(&o.user, "user-only", false, "count user mode only")
	f.StringVar(&o.config, "config", "", "file with settings of the policy (YAML)")
	f.StringVar(&o.state, "state", agent.DefaultStateDir, "folder of the journal")
	cli.OutputFlag(cmd, &o.output)
	cli.Writes(cmd, threadagent.Summary{})
	return cmd
}

func runPin(cmd *cobra.Command, o pinOptions) (err error) {
	cfg, rc, err := o.check(cmd.Flags().Changed)
	if err != nil {
		return exit.BadInput(err)
	}
	say := func(line string) { cli.Tell(cmd.ErrOrStderr(), []string{line}) }
	var held *threadagent.Journalled // answers Ours once it is open
	rc.Ours = func(tid int, start uint64, cpus set.CPUSet) bool { return held != nil && held.Ours(tid, start, cpus) }
	reader, err := kernel.NewThreadReader(rc)
	if err != nil {
		return notReadable(err)
	}
	hung := false
	defer func() {
		if !hung { // if it hung, a thread still reads
			reader.Close()
		}
	}()
	if err := reader.Usable(); err != nil {
		return exit.BadInput(err)
	}
	var actor threadagent.Actor = threadagent.Dry{}
	if !o.dry {
		if held, err = takeThreads(cmd.Context(), o.state, say); err != nil {
			return exit.Precondition(err)
		}
		defer func() {
			if !hung { // if it hung, the journal was given up
				err = errors.Join(err, held.Close())
			}
		}()
		actor = held
	}
	p := threadagent.NewBRM(cfg)
	sum, err := threadagent.Run(cmd.Context(), threadagent.Options{
		Reader: reader, Policy: p.Step, Actor: actor, Period: cfg.Period, For: o.length, Hold: cfg.Hold, Stay: len(o.cgroups) > 0, Say: say,
	})
	hung = sum.Hung
	p.Judge(sum.Processes)
	if sum.Windows == 0 && !hung { // the policy has not acted yet
		err = exit.Precondition(err)
	}
	return errors.Join(views.BRM(cmd.OutOrStdout(), sum, reader.Machine(), o.output), err)
}

// notReadable separates bad input (a named process does not exist, or may not be read) from
// other failures to read.
func notReadable(err error) error {
	if errors.Is(err, kernel.ErrGone) {
		return exit.BadInput(err)
	}
	return exit.Precondition(err)
}

// takeThreads opens the journal, and restores what was left.
func takeThreads(ctx context.Context, state string, say func(string)) (*threadagent.Journalled, error) {
	owner, err := agent.Owners(nil, agent.Runtimes{DockerMemory: agent.DefaultDockerMemory})
	if err != nil {
		return nil, err
	}
	j, restored, err := threadagent.Open(ctx, state, owner)
	for _, r := range restored {
		say("left by an earlier homenode: " + r.String())
	}
	return j, err
}

// check returns the settings and what to read.
func (o pinOptions) check(given func(flag string) bool) (cfg brm.Config, rc kernel.ThreadConfig, err error) {
	rc = kernel.ThreadConfig{UserOnly: o.user, Cgroups: o.cgroups}
	if rc.PIDs, err = source.PIDs("--pid", o.pids); err == nil {
		rc.Watched, err = source.PIDs("--watch", o.watch)
	}
	if err == nil {
		err = o.checkFlags()
	}
	if err == nil {
		cfg, err = o.settings(given)
	}
	if err == nil {
		if err = threadagent.CheckPeriod(cfg.Period); err != nil {
			err = fmt.Errorf("%s: %w", o.periodFrom(given), err)
		}
	}
	rc.Infer, rc.Discover = cfg.Infer, min(max(10*cfg.Period, 100*time.Millisecond), time.Second)
	return cfg, rc, err
}

func (o pinOptions) checkFlags() (err error) {
	for _, g := range o.cgroups {
		if _, bad := path.Match(g, "/"); bad != nil || !strings.HasPrefix(g, "/") || path.Clean(g) == "/" {
			err = errors.Join(err, fmt.Errorf("--cgroup %q is not a pattern of a cgroup path: want e.g. /demo/*", g))
		}
	}
	switch {
	case err != nil:
		return err
	case len(o.pids)+len(o.cgroups) == 0:
		return errors.New("no threads named: give --pid or --cgroup")
	case o.length < 0:
		return fmt.Errorf("--for %v: it cannot be negative", o.length)
	}
	return cli.CheckOutput(o.output)
}

// periodFrom says where the period was set.
func (o pinOptions) periodFrom(given func(flag string) bool) string {
	if o.config == "" || given("period") {
		return "--period"
	}
	return o.config
}
