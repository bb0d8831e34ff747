// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

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
	Command string
	Commit  string
	// Progress is called with the progress.
	Progress func(Progress)
	// Long is a stored comparison of peers with a longer warm-up; nil = there is none.
	Long *experiment.Comparison
	// Keep is called with every run's result when the run ends.
	Keep func(RunResult)

	boot func(context.Context) (guest, error) // for tests; nil boots the lab
}

// Progress is the progress of a comparison.
type Progress struct {
	Done, All int    // runs
	Arm       string // of the current run; "" = there is none
	Step      Step
	Left      unit.Opt[time.Duration] // unknown until part of a run has been seen
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
)

// stageBoot comes before all runs.
const stageBoot = "booting the lab"

// Compare boots the lab once and runs every arm in it, interleaved. However it
// ends, the guest and its files are gone when it returns. Keep has the runs until
// then.
func Compare(ctx context.Context, o Options) (experiment.Comparison, error) {
	start := time.Now()
	c := newComparer(o, start)
	c.say(Step{Stage: stageBoot})
	if o.boot == nil {
		o.boot = func(ctx context.Context) (guest, error) { return lab.Boot(ctx, o.Boot) }
	}
	g, err := o.boot(ctx)
	if err != nil {
		return experiment.Comparison{}, err
	}
	defer g.Close()
	c.guest = g
	if err := g.Put(ctx, agentConfig, 0o644, o.Agent); err != nil {
		return experiment.Comparison{}, err
	}
	for c.at = range c.runs {
		if err := c.run(ctx); err != nil {
			return experiment.Comparison{}, err
		}
	}
	r := gather(o, c.results)
	r.Command, r.Commit, r.Date = o.Command, o.Commit, start.UTC().Truncate(time.Second)
	r.Order, r.Seconds = c.order(), time.Since(start).Seconds()
	return r, nil
}

type comparer struct {
	o       Options
	guest   guest
	plan    Plan
	start   time.Time
	runs    []experiment.Run
	at      int // the current run
	results []RunResult
	eta     *estimator
}

func newComparer(o Options, start time.Time) *comparer {
	// Every run has its own warm-up: the plan has no warm-up runs.
	c := &comparer{o: o, plan: planFor(o), start: start, runs: experiment.Plan(len(o.Arms), 0, o.Mix.Repeats, o.Mix.Seed)}
	c.eta = newEstimator(len(c.runs), o.Mix.Warmup+o.Mix.Measure)
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

// say reports the progress, and the time that is left.
func (c *comparer) say(s Step) {
	p := Progress{Done: len(c.results), All: len(c.runs), Step: s}
	if c.guest != nil && c.at < len(c.runs) {
		p.Arm = c.o.Arms[c.runs[c.at].Arm]
	}
	left, ok := c.eta.left(time.Since(c.start))
	p.Left = unit.OptOf(left, ok)
	c.o.Progress(p)
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

// run runs one arm once.
func (c *comparer) run(ctx context.Context) error {
	run := c.runs[c.at]
	begin := time.Now()
	c.eta.begin(begin.Sub(c.start))
	r, err := c.once(ctx, c.o.Arms[run.Arm], run.Repeat)
	if err != nil {
		return err
	}
	end := time.Now()
	r.HostSeconds, r.HostAround = end.Sub(begin).Seconds(), c.eta.end(end.Sub(c.start)).Seconds()
	c.results = append(c.results, r)
	if c.o.Keep != nil {
		c.o.Keep(r)
	}
	return nil
}

func (c *comparer) once(ctx context.Context, arm string, repeat int) (RunResult, error) {
	p := c.plan
	p.Arm, p.Repeat = arm, repeat
	data, err := json.Marshal(p)
	if err != nil {
		return RunResult{}, err
	}
	if err := c.guest.Put(ctx, planFile, 0o644, data); err != nil {
		return RunResult{}, err
	}
	r, err := c.guest.RunLines(ctx, c.line, "homenode-lab", "arm", planFile, resultFile)
	if err != nil {
		return RunResult{}, err
	}
	if r.Exit != 0 {
		return RunResult{}, fmt.Errorf("run arm %s, repeat %d: %s", arm, repeat+1, lastLine(r))
	}
	data, err = c.guest.Fetch(ctx, resultFile)
	if err != nil {
		return RunResult{}, err
	}
	var result RunResult
	if err := json.Unmarshal(data, &result); err != nil {
		return RunResult{}, fmt.Errorf("read result of arm %s: %w", arm, err)
	}
	return result, nil
}

// line handles a line that the guest's side of a run writes to stderr.
func (c *comparer) line(text string) {
	s, ok := parseStep(text)
	if !ok {
		return // an error, which the end of the run reports
	}
	if s.Stage != StageLoad {
		c.eta.step(time.Since(c.start), s.modelSeconds(c.o.Mix))
	}
	c.say(s)
}

// lastLine is the last message of the guest's side of a run, apart from its
// steps.
func lastLine(r lab.Result) string {
	last := fmt.Sprintf("it ended with code %d and printed nothing", r.Exit)
	for line := range strings.Lines(r.Stderr) {
		if _, ok := parseStep(line); !ok && strings.TrimSpace(line) != "" {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

// LoadSum identifies a load: the shape and everything of the mix except its
// warm-up and repeats.
func LoadSum(m Mix, s machine.Shape) string {
	m.Warmup, m.Repeats = 0, 0
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
