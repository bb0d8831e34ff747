// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/migrate"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
	"homenode/internal/source"
)

// migrateFlags are the flags as given.
type migrateFlags struct {
	workload, cgroup, pids string
	to, from, mode, rate   string
	maxStall, hotFor       time.Duration
	freezeLimit            time.Duration
	workers                int
	noCache, leaveShared   bool
	partial, dryRun        bool
	profile, state, output string
	directOwners           []string
}

func (f *migrateFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.workload, "workload", "", "workload: its cgroup path, or the path's last part")
	flags.StringVar(&f.cgroup, "cgroup", "", "cgroup by its path, /demo/a or its directory")
	flags.StringVar(&f.pids, "pid", "", "process ids: 12 or 12,34; without their children")
	flags.StringVar(&f.to, "to", "", "nodes to move to: 1, 0-1, !0 or a device such as netdev:eth0; each page goes to the one with the most room")
	flags.StringVar(&f.from, "from", "", "nodes to move from; default: all that are not in --to")
	flags.StringVar(&f.mode, "mode", string(migration.Live), "mode of the move: live, freeze or hot")
	flags.StringVar(&f.rate, "rate", "200MB/s", "live, hot: bytes per second, such as 1.5GiB/s; max: no limit")
	flags.DurationVar(&f.maxStall, "max-stall", 20*time.Millisecond, "live, hot: longest time of a single call; 0: no limit")
	flags.DurationVar(&f.hotFor, "hot-for", 2*time.Second, "hot: time to watch which pages are accessed")
	flags.DurationVar(&f.freezeLimit, "freeze-limit", owner.FreezeLimit, "freeze: time after which the guard thaws the workload in any case")
	flags.IntVar(&f.workers, "workers", 0, "number of workers that move in parallel; default: 1; with freeze: the CPUs of both sides, at most 8")
	flags.BoolVar(&f.noCache, "no-cache", false, "leave page cache that no process of the workload has mapped")
	flags.BoolVar(&f.leaveShared, "leave-shared", false, "leave files and shared memory that processes outside the workload use too")
	flags.BoolVar(&f.partial, "partial", false, "move what has room even if not everything has")
	flags.BoolVar(&f.dryRun, "dry-run", false, "report what would be moved and what that takes; move nothing")
	profileFlag(cmd, &f.profile)
	directOwnerFlag(cmd, &f.directOwners)
	flags.StringVar(&f.state, "state", agent.DefaultStateDir, "freeze: folder of the record of what is frozen")
	cli.OutputFlag(cmd, &f.output)
	cli.Writes(cmd, migration.Report{})
}

// job checks everything that can be checked without looking at the machine.
func (f migrateFlags) job(cmd *cobra.Command) (j migrate.Job, err error) {
	if err := cli.CheckOutput(f.output); err != nil {
		return j, err
	}
	if err := cli.Empty(cmd, "workload", "cgroup", "pid", "to", "from", "mode", "rate", "profile", "state", "direct-owner"); err != nil {
		return j, err
	}
	j = migrate.Job{
		Workload: f.workload, Cgroup: f.cgroup, Mode: migration.Mode(f.mode), MaxStall: f.maxStall, HotFor: f.hotFor, FreezeLimit: f.freezeLimit, Workers: f.workers, Cache: !f.noCache,
		LeaveShared: f.leaveShared, Partial: f.partial, DryRun: f.dryRun, Profile: f.profile, State: f.state, DirectOwners: f.directOwners,
	}
	if err := f.oneTarget(&j); err != nil {
		return j, err
	}
	if err := f.nodes(&j); err != nil {
		return j, err
	}
	if err := f.ofTheMode(cmd); err != nil {
		return j, err
	}
	if j.Rate, err = migrate.ParseRate(f.rate); err != nil {
		return j, err
	}
	if j.Mode == migration.Freeze {
		j.Rate, j.MaxStall = 0, 0
	}
	if err := checkDirectOwners(f.directOwners); err != nil {
		return j, err
	}
	return j, f.amounts(cmd)
}

func (f migrateFlags) oneTarget(j *migrate.Job) error {
	given := slices.DeleteFunc([]string{f.workload, f.cgroup, f.pids}, func(s string) bool { return s == "" })
	switch {
	case len(given) == 0:
		return errors.New("nothing to move: give --workload, --cgroup or --pid")
	case len(given) > 1:
		return errors.New("--workload, --cgroup and --pid: give one of them")
	case f.pids == "":
		return nil
	case f.pids == "all":
		return errors.New("--pid all: the memory of all processes is not moved at once: name them, or a cgroup")
	}
	s, err := selection(f.pids)
	slices.Sort(s.PIDs)
	j.PIDs = slices.Compact(s.PIDs)
	return err
}

func (f migrateFlags) nodes(j *migrate.Job) (err error) {
	if f.to == "" {
		return errors.New("nowhere to move to: give --to, such as --to 1")
	}
	if j.To, err = source.Nodes("to", f.to); err != nil {
		return err
	}
	if j.From, err = source.Nodes("from", f.from); err != nil {
		return err
	}
	if j.To.IsEmpty() {
		return fmt.Errorf("--to %q: it names no node", f.to)
	}
	if f.from != "" && j.From.IsEmpty() {
		return fmt.Errorf("--from %q: it names no node", f.from)
	}
	if both := j.From.Intersect(j.To); !both.IsEmpty() {
		return fmt.Errorf("--from %s, --to %s: %s is in both", j.From, j.To, migrate.NodesText(both))
	}
	return nil
}

// ofTheMode refuses flags that the mode does not use: the user expects an effect
// of them.
func (f migrateFlags) ofTheMode(cmd *cobra.Command) error {
	live := []string{"rate", "max-stall"}
	frozen := []string{"freeze-limit", "direct-owner", "state"}
	var wrong []string
	why := ""
	switch migration.Mode(f.mode) {
	case migration.Live:
		wrong, why = append(frozen, "hot-for"), "that is for another --mode than live"
	case migration.Freeze:
		wrong, why = append(live, "hot-for"), "a frozen workload is moved as fast as the memory allows: leave it out, or use --mode live"
	case migration.Hot:
		wrong, why = frozen, "that is for --mode freeze"
	default:
		return fmt.Errorf("--mode %q: want live, freeze or hot", f.mode)
	}
	for _, name := range wrong {
		if cmd.Flags().Changed(name) {
			if name == "hot-for" {
				why = "that is for --mode hot"
			}
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	return nil
}

func (f migrateFlags) amounts(cmd *cobra.Command) error {
	switch {
	case f.maxStall < 0:
		return fmt.Errorf("--max-stall %v: it cannot be negative; 0 is no limit", f.maxStall)
	case f.hotFor <= 0:
		return fmt.Errorf("--hot-for %v: it must be longer than 0", f.hotFor)
	case f.freezeLimit <= 0:
		return fmt.Errorf("--freeze-limit %v: it must be longer than 0", f.freezeLimit)
	case cmd.Flags().Changed("workers") && f.workers < 1:
		return fmt.Errorf("--workers %d: want at least 1", f.workers)
	case f.workers > migrate.MostWorkers:
		return fmt.Errorf("--workers %d: want at most %d", f.workers, migrate.MostWorkers)
	}
	return nil
}
