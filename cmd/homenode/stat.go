// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/cgroup"
	"homenode/internal/report"
	"homenode/internal/schema"
	"homenode/internal/snapshot"
	"homenode/internal/source"
)

// statOptions are the flags of stat.
type statOptions struct {
	workload, cgroup, pids, root, output string
	interval                             time.Duration
	paced                                bool // --interval was given
	count                                int
}

func statCommand() *cobra.Command {
	var o statOptions
	cmd := &cobra.Command{
		Use:   "stat",
		Short: "Show which memory is used where: by node and kind, workload or process",
		Long: "Without a selector it shows the nodes' memory by kind, where memory was allocated, and every workload.\n" +
			"--workload and --cgroup show one of them. --pid shows processes, from their numa_maps.\n\n" +
			"Counts and rates cover the time between two readings, --interval apart. --pid reads once and has no\n" +
			"CPU time, unless --interval is given.",
		Args: cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.paced = cmd.Flags().Changed("interval")
			return stat(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	cli.Exits(cmd, "3", "something could not be read: a line on stderr says so")
	cmd.Flags().StringVar(&o.workload, "workload", "", "workload to show: its cgroup path, or the path's last part")
	cmd.Flags().StringVar(&o.cgroup, "cgroup", "", "cgroup to show, by its path, /demo/a or its directory")
	cmd.Flags().StringVar(&o.pids, "pid", "", "processes to show: ids like 12 or 12,34, a part of their command line, or all")
	cmd.Flags().DurationVar(&o.interval, "interval", time.Second, "time between two readings; 0: one reading, no rates")
	cmd.Flags().IntVar(&o.count, "count", 1, "number of reports; 0: until it is stopped")
	cmd.Flags().StringVar(&o.root, "root", "/", "recorded tree instead of the running kernel")
	cli.OutputFlag(cmd, &o.output)
	cli.Writes(cmd, snapshot.Snapshot{})
	return cmd
}

func stat(ctx context.Context, w io.Writer, o statOptions) error {
	oneShot(o.count)
	if err := o.check(); err != nil {
		return exit.BadInput(err)
	}
	cfg, id, err := o.snapshot()
	if err != nil {
		return exit.BadInput(err)
	}
	s, err := kernel.NewSnapshotter(cfg)
	if err != nil {
		return exit.BadInput(err)
	}
	defer s.Close()
	labels := cgroup.Labeller{Root: kernel.At(o.root)}
	var partly error
	for i := 0; i < o.count || o.count == 0; i++ {
		if i > 0 && cfg.Interval == 0 {
			break // two readings of a recorded tree are the same
		}
		out, err := s.Read(ctx)
		if errors.Is(err, context.Canceled) {
			break
		}
		if err == nil {
			labels.Name(&out.Window)
			err = o.print(w, out, id, i)
		}
		if err != nil {
			return err
		}
		if err := partSnapshoted(out); err != nil {
			partly = err
		}
	}
	return partly
}

// oneShot switches garbage collection off if the command ends soon: a large host
// needs only a few MiB.
func oneShot(count int) {
	const enough = 256 << 20
	if count == 1 {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(enough)
	}
}

func (o statOptions) check() error {
	selectors := 0
	for _, s := range []string{o.workload, o.cgroup, o.pids} {
		if s != "" {
			selectors++
		}
	}
	switch {
	case selectors > 1:
		return errors.New("--workload, --cgroup and --pid: give one of them")
	case o.interval < 0:
		return fmt.Errorf("--interval %v: it cannot be negative", o.interval)
	case o.interval > 0 && o.interval < 10*time.Millisecond:
		return fmt.Errorf("--interval %v: want 0, or at least 10ms", o.interval)
	case o.count < 0:
		return fmt.Errorf("--count %d: it cannot be negative", o.count)
	case o.count != 1 && o.interval == 0:
		return errors.New("--count needs an --interval")
	}
	if err := checkFolder(o.root); err != nil {
		return err
	}
	return cli.CheckOutput(o.output)
}

// checkFolder refuses a file, which only 'homenode topo' can read.
func checkFolder(root string) error {
	if info, err := os.Stat(root); err == nil && !info.IsDir() {
		return fmt.Errorf("open tree %s: it is a file: give a folder that holds proc/ and sys/", root)
	}
	return nil
}

// snapshot returns what to look at, and which workload that is.
func (o statOptions) snapshot() (cfg kernel.SnapshotConfig, id string, err error) {
	root := kernel.At(o.root)
	cfg = kernel.SnapshotConfig{Reader: kernel.Config{Root: root}, Interval: o.interval}
	switch {
	case o.pids != "":
		cfg.OnlyProcesses = true
		cfg.Processes, err = o.processes(root)
		if cfg.Interval = 0; o.paced || o.count != 1 {
			cfg.Interval, cfg.Threads = o.interval, o.interval > 0
		}
	case o.workload != "":
		id, err = kernel.FindWorkload(root, o.workload)
	case o.cgroup != "":
		id, err = kernel.FindCgroup(root, o.cgroup)
	}
	if id != "" {
		cfg.Reader.Roots = []string{kernel.Literal(id)}
	}
	return cfg, id, err
}

// processes are ids, all, or, as numastat takes it, those whose command line has a text.
func (o statOptions) processes(root kernel.Root) (kernel.Selection, error) {
	s, err := source.Processes(o.pids)
	if err == nil || strings.ContainsAny(o.pids[:1], "-0123456789") {
		return s, err
	}
	pids, err := kernel.ProcessesNamed(root, o.pids)
	if err != nil {
		return kernel.Selection{}, fmt.Errorf("--pid %q: %w: want process ids like 12 or 12,34, a part of a command line, or all", o.pids, err)
	}
	return kernel.Selection{PIDs: pids}, nil
}

// print shows one snapshot; the second and later after an empty line.
func (o statOptions) print(w io.Writer, s snapshot.Snapshot, id string, i int) error {
	if o.pids != "" && o.pids != "all" && s.NoneKnown() {
		return exit.BadInput(errors.New(strings.Join(s.Problems, "; ")))
	}
	if id != "" {
		if _, ok := s.Window.Workload(id); !ok {
			return exit.BadInput(fmt.Errorf("read workload %s: the workload is gone", id))
		}
	}
	if o.output == "json" {
		return schema.NewEncoder(w).Encode(s)
	}
	if i > 0 {
		fmt.Fprintln(w)
	}
	screen := cli.Screen()
	switch {
	case o.pids != "":
		return report.Processes(w, s, screen)
	case id != "":
		return report.Workload(w, s, id, screen)
	}
	return report.Host(w, s, screen)
}

// partSnapshoted returns the exit code if something could not be read. The
// problems have been printed.
func partSnapshoted(s snapshot.Snapshot) error {
	if len(s.Problems) > 0 {
		return exit.With(exit.Partly, nil)
	}
	return nil
}
