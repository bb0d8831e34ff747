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
)

func migrateCommand() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate (--workload W | --cgroup C | --pid P[,P…]) --to NODES [--from NODES]",
		Short: "Move a running workload's memory to other nodes, page cache included",
		Long: "Moves private memory, shared memory, huge pages, mapped files, and the page\n" +
			"cache of the files that the workload maps or has open. Says before how much of\n" +
			"each kind is where and what moving it takes, and afterwards what became of it:\n" +
			"nothing that stayed goes unmentioned.\n" +
			"\n" +
			"  --mode live    the workload runs on. The rate is held at --rate, and batches\n" +
			"                 are kept so small that a call takes --max-stall at most; the\n" +
			"                 longest, and any that took longer, are told\n" +
			"  --mode freeze  the workload stands still meanwhile (cgroup freezer), and\n" +
			"                 several workers move as fast as the memory allows. It is\n" +
			"                 thawed whatever happens to homenode, and after --freeze-limit:\n" +
			"                 a guard of its own process does it. What is frozen is a whole\n" +
			"                 cgroup\n" +
			"  --mode hot     as live, but only what is accessed within --hot-for; says what\n" +
			"                 told hot from cold\n" +
			"\n" +
			"Only where pages are changes, not where new ones go: 'homenode agent' binds\n" +
			"workloads. With --pid, children of the processes are not included; a workload or\n" +
			"a cgroup has all that is in it or below, those that are forked meanwhile too.\n" +
			"Ctrl-C stops between two calls: what was moved stays, the workload is thawed,\n" +
			"and the report is printed.\n" +
			"\n" +
			"Other users' processes take CAP_SYS_NICE and CAP_SYS_PTRACE. Without\n" +
			"CAP_SYS_NICE, pages that several processes map stay where they are.\n" +
			"\n" +
			"Exit codes: 0 complete, or what a dry run would do; 1 failed; 2 bad input, and\n" +
			"nothing was moved; 3 something stayed, was not seen, or it was stopped; 4\n" +
			"nothing is elsewhere.",
		Example: "  homenode migrate --workload db --to 1 --dry-run\n" +
			"  homenode migrate --workload db --to 1\n" +
			"  homenode migrate --cgroup /prod/db --to 0-1 --from 2-3 --rate 1GB/s --max-stall 5ms\n" +
			"  homenode migrate --cgroup /prod/batch --to 0 --mode freeze\n" +
			"  homenode migrate --pid 4711,4712 --to 1 --mode hot --hot-for 10s --rate max\n" +
			"  homenode migrate --workload db --to 1 --partial --profile profile.json -o json",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runMigrate(cmd, f) },
	}
	f.addFlags(cmd)
	return cmd
}

// openMigration is the running kernel; tests have another one.
var openMigration = migrate.Live

func runMigrate(cmd *cobra.Command, f migrateFlags) error {
	job, err := f.job(cmd)
	if err != nil {
		return exit.BadInput(err)
	}
	r, err := migrate.New(job, openMigration(), cmd.ErrOrStderr()).Run(cmd.Context())
	if r.Outcome == "" { // nothing was done, nor found out
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
