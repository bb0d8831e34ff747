// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/migrate"
	"homenode/internal/migration"
	"homenode/internal/report"
	"homenode/internal/source"
)

func migrateCommand() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate (--workload W | --cgroup C | --pid P[,P…]) --to NODES [--from NODES]",
		Short: "Move a running workload's memory to other nodes, page cache included",
		Long: "Moves private memory, shared memory, huge pages, mapped files, and the page\n" +
			"cache of the files that the workload maps or has open. It reports before the\n" +
			"move how much of each kind is where and what moving it takes. Afterwards it\n" +
			"reports what was moved, and everything that stayed.\n" +
			"\n" +
			"  --mode live    the workload keeps running. The rate is at most --rate, and\n" +
			"                 batches are so small that a call takes --max-stall at most.\n" +
			"                 The longest call is reported, and each that took longer\n" +
			"  --mode freeze  the workload is frozen during the move (cgroup freezer), and\n" +
			"                 several workers move as fast as the memory allows. A guard\n" +
			"                 process thaws it whatever happens to homenode, and after\n" +
			"                 --freeze-limit at the latest. A whole cgroup is frozen\n" +
			"  --mode hot     as live, but only what is accessed within --hot-for; the\n" +
			"                 report says how hot pages were found\n" +
			"\n" +
			source.NodeHelp + "\n\n" +
			"This moves existing pages and does not change where new ones go: 'homenode\n" +
			"agent' binds workloads. --pid does not include children of the processes. A\n" +
			"workload or a cgroup includes all processes in it or below, also new ones.\n" +
			"Ctrl-C stops between two calls: what was moved stays, the workload is thawed,\n" +
			"and the report is printed.\n" +
			"\n" +
			"Other users' processes need CAP_SYS_NICE and CAP_SYS_PTRACE. Without\n" +
			"CAP_SYS_NICE, pages that several processes map stay where they are.",
		Example: "  homenode migrate --workload db --to 1 --dry-run\n" +
			"  homenode migrate --workload db --to 1\n" +
			"  homenode migrate --cgroup /prod/db --to 0-1 --from 2-3 --rate 1GB/s --max-stall 5ms\n" +
			"  homenode migrate --cgroup /prod/batch --to 0 --mode freeze\n" +
			"  homenode migrate --pid 4711,4712 --to 1 --mode hot --hot-for 10s --rate max\n" +
			"  homenode migrate --workload db --to 1 --partial --profile profile.json -o json",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runMigrate(cmd, f) },
	}
	cli.Exits(cmd, "0", "complete, or what a dry run would do", "3", "something stayed or was not seen, or the move was stopped", "4", "no memory is elsewhere")
	f.addFlags(cmd)
	return cmd
}

// openMigration opens the running kernel; tests replace it.
var openMigration = migrate.Live

func runMigrate(cmd *cobra.Command, f migrateFlags) error {
	job, err := f.job(cmd)
	if err != nil {
		return exit.BadInput(err)
	}
	r, err := migrate.New(job, openMigration(), cmd.ErrOrStderr()).Run(cmd.Context())
	if r.Outcome == "" { // nothing was done or found out
		return err
	}
	return errors.Join(printMigration(cmd.OutOrStdout(), r, f.output), err)
}

func printMigration(w io.Writer, r migration.Report, output string) error {
	if output == "json" {
		data, err := r.Encode()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", data)
		return err
	}
	return report.Migration(w, r, cli.Screen())
}
