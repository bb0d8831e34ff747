// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/window"
)

// windowOptions are how to record windows.
type windowOptions struct {
	file      string        // --windows
	length    time.Duration // --for; 0: until it is ended
	period    time.Duration
	workloads []string // globs of cgroup paths
	config    string   // names services
	hints     string   // when threads' hint faults are read
	penalty   bool     // count what the uncore penalty is of
	force     bool
	stderr    *os.File
	// open makes the reader; nil: of the running kernel.
	open func(kernel.Config) (windowReader, error)
}

// addWindowFlags adds what `record --windows` takes.
func addWindowFlags(f *pflag.FlagSet, o *windowOptions) {
	f.StringVar(&o.file, "windows", "", "record what machine and workloads do into this file, for 'homenode top --replay'")
	f.DurationVar(&o.length, "for", time.Minute, "with --windows: how long; 0: until it is ended")
	f.DurationVar(&o.period, "period", 2*time.Second, "with --windows: how often to read")
	f.StringArrayVar(&o.workloads, "workload", nil, "with --windows: only cgroups that match, e.g. '/demo/*'; may be repeated")
	f.StringVar(&o.config, "config", "", "with --windows: the agent's configuration file, which names services and targets")
	f.BoolVar(&o.penalty, "penalty", false, "with --windows: count uncore requests and waits and LLC misses of workloads as well, where the CPU has them and room for them")
	f.StringVar(&o.hints, "hint-faults", "auto", "with --windows: read NUMA hint faults where nothing counts DRAM reads (auto), always, or off")
}

// withoutWindows refuses what says how to record windows where none are.
func withoutWindows(f *pflag.FlagSet) error {
	for _, name := range []string{"for", "period", "workload", "config", "hint-faults", "penalty"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for --windows: a machine is saved at once, and whole", name)
		}
	}
	return nil
}

// recordWindows records until its time is over or the context ends, which is no
// error. Every window is one write: a kill leaves what was read before.
func recordWindows(ctx context.Context, o windowOptions) error {
	if err := o.check(); err != nil {
		return exit.BadInput(err)
	}
	c, err := agentConfig(o.config, "")
	if err != nil {
		return err
	}
	if len(o.workloads) > 0 {
		c.Cgroups = o.workloads
	}
	if o.open == nil {
		o.open = func(kc kernel.Config) (windowReader, error) { return kernel.NewReader(kc) }
	}
	entries, _ := peek(c.StateDir) // what an agent set; unreadable: nothing is known to be ours
	hints, err := kernel.ParseHintMode(o.hints)
	if err != nil {
		return exit.BadInput(err)
	}
	reader, err := o.open(kernel.Config{Roots: c.Cgroups, UserOnly: c.UserOnly, Penalty: o.penalty, Hints: hints, Ours: (&live{entries: entries}).ours})
	if err != nil {
		return exit.Precondition(err)
	}
	defer reader.Close()
	f, err := o.create()
	if err != nil {
		return err
	}
	r := recording{o: o, reader: reader, name: c.Name, out: &counter{w: f}}
	err = r.run(ctx)
	return errors.Join(err, f.Sync(), f.Close())
}

func (o windowOptions) check() error {
	switch {
	case o.file == "":
		return errors.New("--windows wants the file to write")
	case o.length < 0:
		return fmt.Errorf("--for is %v: want a time like 60s, or 0 for as long as it is not ended", o.length)
	case o.length > 0 && o.length < o.period:
		return fmt.Errorf("--for is %v: that is shorter than one --period, %v", o.length, o.period)
	}
	return errors.Join(checkPeriod(o.period), checkGlobs("--workload", o.workloads))
}

func (o windowOptions) create() (*os.File, error) {
	how := os.O_EXCL
	if o.force {
		how = os.O_TRUNC
	}
	f, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|how, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.BadInput(fmt.Errorf("record windows: %s is there already: choose another name, or --force", o.file))
	}
	if err != nil {
		return nil, exit.BadInput(fmt.Errorf("record windows: %w", err))
	}
	return f, nil
}

// recording is a run of recordWindows.
type recording struct {
	o      windowOptions
	reader windowReader
	name   func(*window.Window)
	out    *counter
	count  int
}

func (r *recording) run(ctx context.Context) error {
	rec, err := window.NewRecorder(r.out, r.reader.Machine(), r.o.period)
	if err != nil {
		return err
	}
	if _, err := r.reader.Read(ctx); err != nil { // it only primes: rates need two
		return r.ended(ctx, err)
	}
	began := time.Now()
	tick := time.NewTicker(r.o.period)
	defer tick.Stop()
	for r.o.length == 0 || time.Since(began) < r.o.length-r.o.period/2 {
		select {
		case <-ctx.Done():
			return r.ended(ctx, nil)
		case <-tick.C:
		}
		w, err := r.reader.Read(ctx)
		if err != nil {
			return r.ended(ctx, err)
		}
		r.name(&w)
		if err := rec.Add(w); err != nil {
			return r.ended(ctx, err)
		}
		r.count++
		r.progress("\r", w, "")
	}
	return r.ended(ctx, nil)
}

// progress is for people: nothing of it goes into a log.
func (r *recording) progress(before string, w window.Window, after string) {
	if f := r.stderr(); cli.IsTerminal(f) {
		fmt.Fprintf(f, "%swindow %d, %d workloads, %d kB %s", before, r.count, len(w.Workloads), r.out.n/1000, after)
	}
}

func (r *recording) stderr() *os.File {
	if r.o.stderr != nil {
		return r.o.stderr
	}
	return os.Stderr
}

// ended says how much was recorded. That it was told to end is no error.
func (r *recording) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = nil
	}
	before := ""
	if cli.IsTerminal(r.stderr()) {
		before = "\r"
	}
	fmt.Fprintf(r.stderr(), "%s%d windows in %s: 'homenode top --replay %s' shows them\n", before, r.count, r.o.file, r.o.file)
	return err
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
