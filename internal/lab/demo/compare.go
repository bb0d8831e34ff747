// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"homenode/internal/experiment"
	"homenode/internal/lab"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Options are the options of a comparison.
type Options struct {
	Mix     Mix
	Agent   []byte // the agent's configuration
	Arms    []string
	Boot    lab.Options
	Guests  int // at a time; below 1 = 1
	Command string
	Commit  string
	// Progress is called with the progress, never twice at once.
	Progress func(Progress)
	// Long is a stored comparison of peers with a longer warm-up; nil = there is none.
	Long *experiment.Comparison
	// Keep is called with every run's result when the run ends, never twice at once.
	Keep func(RunResult)

	boot func(context.Context) (guest, error) // for tests; nil boots the lab
}

// Progress is the progress of a comparison.
type Progress struct {
	Done, All int                     // runs
	Now       []Running               // by guest; one that boots, or has no run left, is not there
	Left      unit.Opt[time.Duration] // unknown until part of a run has been seen
}

// Running is a run that has begun.
type Running struct {
	Arm  string
	Step Step
}

// guest is the part of the lab that a comparison uses.
type guest interface {
	Put(ctx context.Context, path string, mode os.FileMode, data []byte) error
	RunLines(ctx context.Context, line func(string), argv ...string) (lab.Result, error)
	Fetch(ctx context.Context, path string) ([]byte, error)
	Close()
}

const (
	agentConfig = "/etc/homenode.yaml"
	planFile    = "/tmp/plan.json"
	resultFile  = "/tmp/result.json"
	// idleRate is for the guest's first minutes. While the load runs, no guest is idle.
	idleRate = 20
)

// Compare boots the lab Guests times and runs every arm in it, interleaved. However it
// ends, the guests and their files are gone when it returns. Keep has the runs until
// then.
func Compare(ctx context.Context, o Options) (experiment.Comparison, error) {
	c := newComparer(o, time.Now())
	c.say(nil, Step{})
	if c.o.boot == nil {
		o.Boot.IdleRate = idleRate
		c.o.boot = func(ctx context.Context) (guest, error) { return lab.Boot(ctx, o.Boot) }
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, l := range c.lanes {
		all.Go(func() error { return l.all(ctx) })
	}
	if err := all.Wait(); err != nil {
		return experiment.Comparison{}, err
	}
	r := gather(o, c.results)
	r.Command, r.Commit, r.Date = o.Command, o.Commit, c.start.UTC().Truncate(time.Second)
	r.Order, r.Seconds = c.order(), time.Since(c.start).Seconds()
	return r, nil
}

// comparer has the runs of a comparison in the order of their plan.
type comparer struct {
	o     Options
	plan  Plan
	start time.Time
	runs  []experiment.Run
	lanes []*lane

	mu      sync.Mutex // the rest, and the lanes' now and eta
	results []RunResult
	done    int
}

// newComparer deals the runs to the guests in turn, so that which guest does a run does
// not depend on the host.
func newComparer(o Options, start time.Time) *comparer {
	// Every run has its own warm-up: the plan has no warm-up runs.
	c := &comparer{o: o, plan: planFor(o), start: start, runs: experiment.Plan(len(o.Arms), 0, o.Mix.Repeats, o.Mix.Seed)}
	c.results = make([]RunResult, len(c.runs))
	for range min(max(1, o.Guests), len(c.runs)) {
		c.lanes = append(c.lanes, &lane{c: c})
	}
	for i := range c.runs {
		l := c.lanes[i%len(c.lanes)]
		l.runs = append(l.runs, i)
	}
	for _, l := range c.lanes {
		l.eta = newEstimator(len(l.runs), o.Mix.Warmup+o.Mix.Measure)
	}
	return c
}

// order is the arm of each run.
func (c *comparer) order() []string {
	var order []string
	for _, run := range c.runs {
		order = append(order, c.o.Arms[run.Arm])
	}
	return order
}

// say reports a step of a guest (nil: none is there yet), and the time that is left.
func (c *comparer) say(l *lane, s Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l != nil {
		l.now = &Running{Arm: c.o.Arms[c.runs[l.runs[l.at]].Arm], Step: s}
	}
	p := Progress{Done: c.done, All: len(c.runs)}
	for _, l := range c.lanes {
		if l.now != nil {
			p.Now = append(p.Now, *l.now)
		}
	}
	longest, all := time.Duration(0), true
	for _, l := range c.lanes {
		left, ok := l.eta.left(time.Since(c.start))
		longest, all = max(longest, left), all && ok
	}
	p.Left = unit.OptOf(longest, all)
	c.o.Progress(p)
}

// keep adds the result of a guest's run.
func (c *comparer) keep(l *lane, r RunResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.results[l.runs[l.at]] = r
	c.done++
	l.now = nil
	if c.o.Keep != nil {
		c.o.Keep(r)
	}
}

func planFor(o Options) Plan {
	s := o.Boot.Shape
	p := Plan{Mix: o.Mix, Agent: agentConfig, Housekeeping: s.Housekeeping.String()}
	var all set.CPUSet
	for _, n := range s.Nodes {
		free := n.CPUs.Minus(s.Housekeeping)
		all = all.Union(free)
		p.NodeCPUs = append(p.NodeCPUs, free.String())
	}
	p.CPUs = all.String()
	if p.Housekeeping == "" {
		p.Housekeeping = p.CPUs
	}
	return p
}

// LoadSum identifies a load: the shape and everything of the mix except its
// warm-up, repeats and the time that is measured, of which figures are rates.
func LoadSum(m Mix, s machine.Shape) string {
	m.Warmup, m.Measure, m.Repeats = 0, 0, 0
	data, err := json.Marshal(struct {
		Mix   Mix
		Shape machine.Shape
	}{m, s})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return fmt.Sprintf("%.8x", sha256.Sum256(data))
}

// GuestArm is the guest's side of one run: it reads the plan and writes the
// result, as files.
func GuestArm(ctx context.Context, plan, result string) error {
	data, err := os.ReadFile(plan)
	if err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	r, err := RunArm(ctx, p, func(s Step) { fmt.Fprintln(os.Stderr, s.line()) })
	if err != nil {
		return err
	}
	if data, err = json.Marshal(r); err != nil {
		return err
	}
	return os.WriteFile(result, data, 0o644)
}

// gather combines the runs into medians by arm, and judges the targets.
func gather(o Options, results []RunResult) experiment.Comparison {
	c := experiment.Comparison{
		Schema: 1, Name: o.Mix.Name, Machine: o.Boot.Shape.Name, How: "modelled (lab)",
		Repeats: o.Mix.Repeats, Seed: o.Mix.Seed, WarmupSeconds: o.Mix.Warmup,
		Load: LoadSum(o.Mix, o.Boot.Shape), Long: o.Long,
	}
	for _, name := range o.Arms {
		var runs []RunResult
		for _, r := range results {
			if r.Arm == name {
				runs = append(runs, r)
			}
		}
		c.Arms = append(c.Arms, armOf(name, o.Mix, runs))
	}
	c.Targets = judge(o.Mix, c)
	return c
}

func armOf(name string, m Mix, runs []RunResult) experiment.Arm {
	a := experiment.Arm{Name: name, Title: Title(name), Applicable: len(runs) > 0}
	if !a.Applicable {
		a.Why = "it did not run"
		return a
	}
	a.LocalSpread, a.LocalAccessRatio = median(runs, sensitiveRatioOf)
	_, a.PagesMoved = median(runs, func(r RunResult) unit.Opt[float64] { return r.PagesMoved })
	_, a.MoverCPUSeconds = median(runs, func(r RunResult) unit.Opt[float64] { return r.MoverCPUSeconds })
	_, a.MoverCPUShare = median(runs, func(r RunResult) unit.Opt[float64] { return r.MoverCPUShare })
	acted := false
	for _, r := range runs {
		acted = acted || r.Acted
		if !r.Steady {
			a.Unsteady++
		}
		if r.Detail != "" {
			a.Detail = append(a.Detail, r.Detail)
		}
	}
	if !acted {
		a.Applicable, a.Why = false, "not applicable: it never acted"
	}
	for i, w := range m.Workloads {
		a.Services = append(a.Services, serviceOf(w, runs, i))
	}
	return a
}

func serviceOf(w Workload, runs []RunResult, i int) experiment.Service {
	s := experiment.Service{Name: w.Name, Kind: w.Kind}
	s.Spread, s.OpsPerModelS = median(runs, func(r RunResult) unit.Opt[float64] { return unit.Some(r.Services[i].WorkPerModelS) })
	_, s.CyclesPerOp = median(runs, func(r RunResult) unit.Opt[float64] { return r.Services[i].CyclesPerOp })
	_, s.LocalAccessRatio = median(runs, func(r RunResult) unit.Opt[float64] { return r.Services[i].LocalAccessRatio })
	_, s.CPUs = median(runs, func(r RunResult) unit.Opt[float64] { return r.Services[i].CPU })
	_, s.LatencyP50us = median(runs, func(r RunResult) unit.Opt[float64] { return r.Services[i].LatencyP50us })
	_, s.LatencyP99us = median(runs, func(r RunResult) unit.Opt[float64] { return r.Services[i].LatencyP99us })
	return s
}

func sensitiveRatioOf(r RunResult) unit.Opt[float64] {
	var all use
	var local, remote float64
	for _, s := range r.Services {
		if s.Kind == Sensitive {
			local += s.LocalLoads.Or(0)
			remote += s.RemoteLoads.Or(0)
		}
	}
	all.local, all.remote = unit.Some(local), unit.Some(remote)
	return ratio(all)
}

// median summarises one figure of the runs; unknown values are left out.
func median(runs []RunResult, of func(RunResult) unit.Opt[float64]) (experiment.Summary, unit.Opt[float64]) {
	var values []float64
	for _, r := range runs {
		if v, ok := of(r).Get(); ok {
			values = append(values, v)
		}
	}
	s, ok := experiment.Summarise(values)
	return s, unit.OptOf(s.Median, ok)
}
