// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/migrate"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
)

type migrateFlags struct {
	migrate.Options
	output string
}

func (f *migrateFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.Workload, "workload", "", "workload: its cgroup path, or the path's last part")
	flags.StringVar(&f.Cgroup, "cgroup", "", "cgroup by its path, /demo/a or its directory")
	flags.StringVar(&f.PIDs, "pid", "", "process ids: 12 or 12,34; without their children")
	flags.StringVar(&f.To, "to", "", "nodes to move to: 1, 0-1, !0 or a device such as netdev:eth0; each page goes to the one with the most room")
	flags.StringVar(&f.From, "from", "", "nodes to move from; default: all that are not in --to")
	flags.StringVar(&f.Mode, "mode", string(migration.Live), "mode of the move: live, freeze or hot")
	flags.StringVar(&f.Rate, "rate", "200MB/s", "live, hot: bytes per second, such as 1.5GiB/s; max: no limit")
	flags.DurationVar(&f.MaxStall, "max-stall", 20*time.Millisecond, "live, hot: longest time of a single call; 0: no limit")
	flags.DurationVar(&f.HotFor, "hot-for", 2*time.Second, "hot: time to watch which pages are accessed")
	flags.DurationVar(&f.FreezeLimit, "freeze-limit", owner.FreezeLimit, "freeze: time after which the guard thaws the workload in any case")
	flags.IntVar(&f.Workers, "workers", 0, "number of workers that move in parallel; default: 1; with freeze: the CPUs of both sides, at most 8")
	flags.BoolVar(&f.NoCache, "no-cache", false, "leave page cache that no process of the workload has mapped")
	flags.BoolVar(&f.LeaveShared, "leave-shared", false, "leave files and shared memory that processes outside the workload use too")
	flags.BoolVar(&f.Partial, "partial", false, "move what has room even if not everything has")
	flags.BoolVar(&f.DryRun, "dry-run", false, "report what would be moved and what that takes; move nothing")
	profileFlag(cmd, &f.Profile)
	directOwnerFlag(cmd, &f.DirectOwners)
	flags.StringVar(&f.State, "state", agent.DefaultStateDir, "freeze: folder of the record of what is frozen")
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
	if err := checkDirectOwners(f.DirectOwners); err != nil {
		return j, err
	}
	return f.Job(cmd.Flags().Changed)
}
