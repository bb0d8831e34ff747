// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"homenode/internal/cli"
	"homenode/internal/doctor"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/report"
	"homenode/internal/schema"
	"homenode/internal/snapshot"
	"homenode/internal/source"
)

// maxProcesses is how many processes are examined, the largest first. Reading a
// numa_maps costs the more, the more memory it covers.
const maxProcesses = 200

// readSnapshot observes this host for a while, with all that its PMUs can
// count.
var readSnapshot = func(ctx context.Context, d time.Duration, progress func(string)) (snapshot.Snapshot, error) {
	cfg := kernel.SnapshotConfig{
		Interval: d, Processes: kernel.Selection{All: true, Max: maxProcesses, Others: true},
		Threads: true, Mappings: true, IRQs: true, Progress: progress,
	}
	cfg.LiveProbes()
	s, err := kernel.NewSnapshotter(cfg)
	if err != nil {
		return snapshot.Snapshot{}, exit.BadInput(err)
	}
	defer s.Close()
	return s.Read(ctx)
}

const (
	lookMin = 100 * time.Millisecond
)

type doctorOptions struct {
	look                 time.Duration
	snapshot, save, face string
	profile              string
	failOn               string
}

func doctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with this host's placement, what it costs, and the commands to run",
		Long: "homenode doctor watches the host for a while and says whether NUMA is its bottleneck. Then it lists the\n" +
			"problems, most costly first, each with its evidence, cause, remedy and commands. It changes nothing.\n\n" +
			"Levels of findings for --fail-on: critical (something fails, or is about to), serious, moderate, minor,\n" +
			"unweighed (no figure gives its cost).",
		Example: "  homenode doctor\n  homenode doctor --for 30s --fail-on serious\n  homenode doctor -o markdown",
		Args:    cli.Exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkFailOn(); err != nil {
				return err
			}
			s, c, err := o.read(cmd.Context(), progressTo(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if err := o.store(s); err != nil {
				return err
			}
			r := doctor.Examine(s, c)
			if err := printReport(cmd.OutOrStdout(), r, o.face); err != nil {
				return err
			}
			if err := o.failed(r); err != nil {
				return err
			}
			return partSnapshoted(s)
		},
	}
	cli.Exits(cmd, "0", "it has looked, whatever it found", "1", "failed; with --fail-on: there is a finding of that level or a worse one",
		"3", "something could not be read, and there is no finding as of --fail-on")
	cmd.Flags().DurationVar(&o.look, "for", 5*time.Second, "time to watch the host")
	cmd.Flags().StringVar(&o.snapshot, "snapshot", "", "saved snapshot to judge instead of the host")
	cmd.Flags().StringVar(&o.save, "save", "", "file to save the snapshot to")
	cmd.Flags().StringVar(&o.failOn, "fail-on", "", "least severity of a finding that makes the exit code 1: critical, serious, moderate, minor or unweighed (default: none does)")
	profileFlag(cmd, &o.profile)
	cli.OutputFlag(cmd, &o.face, "markdown")
	cli.Writes(cmd, doctor.Report{})
	return cmd
}

func (o doctorOptions) checkFailOn() error {
	if o.failOn == "" || slices.Contains(doctor.Severities, doctor.Severity(o.failOn)) {
		return nil
	}
	return exit.BadInput(fmt.Errorf("--fail-on is %q: want critical, serious, moderate, minor or unweighed", o.failOn))
}

// failed is the error, and exit code 1, of findings at least as bad as --fail-on.
func (o doctorOptions) failed(r doctor.Report) error {
	limit := slices.Index(doctor.Severities, doctor.Severity(o.failOn))
	n := 0
	for _, f := range r.Findings {
		if slices.Index(doctor.Severities, f.Severity) <= limit {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%s of severity %s or worse", render.Count(n, "finding"), o.failOn)
}

// read returns the snapshot, and the thresholds with the figures of the
// profile.
func (o doctorOptions) read(ctx context.Context, progress func(string)) (snapshot.Snapshot, doctor.Config, error) {
	c := doctor.DefaultConfig()
	if err := cli.CheckOutput(o.face, "markdown"); err != nil {
		return snapshot.Snapshot{}, c, err
	}
	if o.snapshot != "" {
		s, err := source.Snapshot(o.snapshot)
		if err == nil {
			err = o.addProfile(&c, s.Machine, "")
		}
		return s, c, err
	}
	if o.look < lookMin {
		return snapshot.Snapshot{}, c, exit.BadInput(fmt.Errorf("--for is %v: want at least %v", o.look, lookMin))
	}
	if o.profile != "" { // before the snapshot, which takes seconds
		m, _, err := source.Live()
		if err == nil {
			err = o.addProfile(&c, m, source.LiveCPUModel())
		}
		if err != nil {
			return snapshot.Snapshot{}, c, err
		}
	}
	s, err := readSnapshot(ctx, o.look, progress)
	return s, c, err
}

func (o doctorOptions) addProfile(c *doctor.Config, m machine.Machine, cpuModel string) error {
	if o.profile == "" {
		return nil
	}
	p, err := source.Profile(o.profile, m, cpuModel)
	c.Profile = &p
	return err
}

// store writes the snapshot. Only its owner may read it, because it has the names
// of processes and files.
func (o doctorOptions) store(s snapshot.Snapshot) error {
	if o.save == "" {
		return nil
	}
	data, err := snapshot.Encode(s)
	if err != nil {
		return err
	}
	if err := cli.ReplaceFile(o.save, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

func printReport(w io.Writer, r doctor.Report, face string) error {
	switch face {
	case "json":
		e := schema.NewEncoder(w)
		e.SetEscapeHTML(false) // people paste the commands
		return e.Encode(r)
	case "markdown":
		return report.FindingsMarkdown(w, r)
	}
	return report.Findings(w, r, cli.Screen())
}

// progressTo shows the command's progress on a terminal. Elsewhere it is
// silent.
func progressTo(w io.Writer) func(string) {
	if !cli.IsTerminal(w) {
		return nil
	}
	return func(what string) { fmt.Fprintf(w, "homenode: %s …\n", what) }
}
