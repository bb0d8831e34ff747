// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/kernel/unix"
	"homenode/internal/placement"
	"homenode/internal/profiling"
	"homenode/internal/set"
)

// command is a subject that is started in each placement. Its memory is bound to the nodes
// that it runs on: the one of a thread's node first.
type command struct {
	argv    []string
	meter   *meter
	job     profiling.Job
	timeout time.Duration // of a program that ends by itself
	now     func() time.Duration
	start   starter
	warmed  bool
}

type starter func(ctx context.Context, p launch.Placement, c launch.Command) (launch.Outcome, error)

func startLive(ctx context.Context, p launch.Placement, c launch.Command) (launch.Outcome, error) {
	return launch.Run(ctx, kernel.Live(), p, c)
}

func placementOf(p placement.Placement) launch.Placement {
	return launch.Placement{CPUs: p.CPUs, Policy: launch.Bind, Nodes: p.Nodes}
}

// Measure starts the program there.
func (c *command) Measure(ctx context.Context, p placement.Placement) (profiling.Figures, error) {
	if c.meter.Ends() {
		return c.whole(ctx, p)
	}
	return c.part(ctx, p)
}

// whole measures a program that ends by itself. The first run of all warms the page cache,
// and does not count.
func (c *command) whole(ctx context.Context, p placement.Placement) (f profiling.Figures, err error) {
	runs := 1
	if !c.warmed && c.job.Warm > 0 {
		runs = 2
	}
	var o launch.Outcome
	for range runs {
		if o, err = c.start(ctx, placementOf(p), launch.Command{Argv: c.argv, Timeout: c.timeout, Now: c.now}); err != nil {
			return f, err
		}
		if why := o.Failed(c.timeout); why != "" {
			return f, fmt.Errorf("%q %s: %s", c.argv[0], why, last(o.Stderr))
		}
	}
	c.warmed = true
	f.Speed, err = c.meter.SpeedOf(o.Elapsed.Seconds(), strings.Join(o.Stdout, "\n"))
	return f, err
}

// last is the last thing that a program wrote.
func last(lines []string) string {
	if len(lines) == 0 {
		return "it wrote nothing to stderr"
	}
	return lines[len(lines)-1]
}

// part measures a program that goes on, and ends it.
func (c *command) part(ctx context.Context, p placement.Placement) (f profiling.Figures, err error) {
	running, end := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	var o launch.Outcome
	var failed error
	go func() {
		defer close(ended)
		o, failed = c.start(running, placementOf(p), launch.Command{Argv: c.argv})
		if failed == nil { // by itself
			end(errEnded)
		} else {
			end(failed)
		}
	}()
	defer func() {
		end(errMeasured)
		<-ended
	}()
	if err = unix.Sleep(running, c.job.Warm); err == nil {
		f.Speed, err = c.meter.over(running, c.job.For)
	}
	if cause := context.Cause(running); errors.Is(cause, errEnded) {
		return f, fmt.Errorf("%q ended before it was measured for %v (%s): use --metric time or output for a program that ends by itself", c.argv[0], c.job.For, last(o.Stderr))
	} else if cause != nil {
		return f, cause
	}
	return f, err
}

var (
	errEnded    = errors.New("the program ended")
	errMeasured = errors.New("it is measured")
)

// allowed refuses placements outside what this process may use: the program inherits that.
func allowed(l placement.List, limits launch.Limits) error {
	var cpus set.CPUSet
	var nodes set.NodeSet
	for _, p := range l.Placements {
		cpus, nodes = cpus.Union(p.CPUs), nodes.Union(p.Nodes)
	}
	if shut := cpus.Minus(limits.CPUs); !limits.CPUs.IsEmpty() && !shut.IsEmpty() {
		return fmt.Errorf("homenode may run on CPUs %s only, and placements need CPUs %s, too: start it without that limit", limits.CPUs, shut)
	}
	if shut := nodes.Minus(limits.Mems); !limits.Mems.IsEmpty() && !shut.IsEmpty() {
		return fmt.Errorf("homenode may use memory of nodes %s only, and placements need nodes %s, too: start it without that limit", limits.Mems, shut)
	}
	return nil
}
