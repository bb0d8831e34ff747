// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/render"
	"homenode/internal/window"
)

// RecordOptions say how windows are recorded.
type RecordOptions struct {
	File      string        // --windows
	Length    time.Duration // --for; 0: until the context ends
	Period    time.Duration
	Workloads []string     // globs of cgroup paths
	Agent     agent.Config // names services
	Hints     string       // when the hint faults of threads are read
	Penalty   bool         // count the events of the uncore penalty
	Force     bool
	Stderr    *os.File
	// open makes the reader; nil: a reader of the running kernel.
	Open func(kernel.Config) (Reader, error)
}

// Record records until its time is over or the context ends, which is not an
// error. Every window is one write: after a kill, the windows before it are
// there.
func Record(ctx context.Context, o RecordOptions) error {
	c := o.Agent
	if len(o.Workloads) > 0 {
		c.Cgroups = o.Workloads
	}
	if o.Open == nil {
		o.Open = func(kc kernel.Config) (Reader, error) { return kernel.NewReader(kc) }
	}
	beside := agent.Beside{Dir: c.StateDir} // an agent may run on this host
	hints, err := kernel.ParseHintMode(o.Hints)
	if err != nil {
		return exit.BadInput(err)
	}
	reader, err := o.Open(kernel.Config{Roots: c.Cgroups, UserOnly: c.UserOnly, Penalty: o.Penalty, Hints: hints, Ours: beside.Ours})
	if err != nil {
		return exit.Precondition(err)
	}
	defer reader.Close()
	f, err := o.create()
	if err != nil {
		return err
	}
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	r := recording{o: o, beside: &beside, reader: reader, name: c.Name, out: &counter{w: f}, line: cli.NewTerminalLine(o.Stderr)}
	err = r.run(ctx)
	return errors.Join(err, f.Sync(), f.Close())
}

func (o RecordOptions) Check() error {
	switch {
	case o.File == "":
		return errors.New("--windows wants the file to write")
	case o.Length < 0:
		return fmt.Errorf("--for is %v: want a time like 60s, or 0 to record until it is stopped", o.Length)
	case o.Length > 0 && o.Length < o.Period:
		return fmt.Errorf("--for is %v: want at least one --period, %v", o.Length, o.Period)
	}
	return errors.Join(cli.CheckPeriod(o.Period), cli.CheckGlobs("--workload", o.Workloads))
}

func (o RecordOptions) create() (*os.File, error) {
	how := os.O_EXCL
	if o.Force {
		how = os.O_TRUNC
	}
	f, err := os.OpenFile(o.File, os.O_WRONLY|os.O_CREATE|how, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, exit.BadInput(fmt.Errorf("record windows: %s exists already: choose another name, or --force", o.File))
	}
	if err != nil {
		return nil, exit.BadInput(fmt.Errorf("record windows: %w", err))
	}
	return f, nil
}

// recording is a run of Windows.
type recording struct {
	o      RecordOptions
	beside *agent.Beside
	reader Reader
	name   func(*window.Window)
	out    *counter
	line   *cli.StatusLine
	count  int
}

func (r *recording) run(ctx context.Context) error {
	rec, err := window.NewRecorder(r.out, r.reader.Machine(), r.o.Period)
	if err != nil {
		return err
	}
	if _, err := r.read(ctx); err != nil { // the first read is a baseline: rates need two
		return r.ended(ctx, err)
	}
	began := time.Now()
	tick := time.NewTicker(r.o.Period)
	defer tick.Stop()
	for r.o.Length == 0 || time.Since(began) < r.o.Length-r.o.Period/2 {
		select {
		case <-ctx.Done():
			return r.ended(ctx, nil)
		case <-tick.C:
		}
		w, err := r.read(ctx)
		if err != nil {
			return r.ended(ctx, err)
		}
		r.name(&w)
		if err := rec.Add(w); err != nil {
			return r.ended(ctx, err)
		}
		r.count++
		r.line.Show("", fmt.Sprintf("window %s, %s, %s", render.Integer(r.count), render.Count(len(w.Workloads), "workload"), render.Bytes(float64(r.out.n))))
	}
	return r.ended(ctx, nil)
}

// read reads a window. If the journal of an agent cannot be read, no setting is known to be
// homenode's.
func (r *recording) read(ctx context.Context) (window.Window, error) {
	_ = r.beside.Look()
	return r.reader.Read(ctx)
}

// ended prints how much was recorded. The end of the context is not an error.
func (r *recording) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = nil
	}
	r.line.Clear()
	fmt.Fprintf(r.o.Stderr, "%s in %s: 'homenode top --replay %s' shows them\n", render.Count(r.count, "window"), r.o.File, r.o.File)
	return err
}

// counter counts the written bytes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
