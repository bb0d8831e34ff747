// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"homenode/internal/lab"
	"homenode/internal/set"
	"homenode/internal/trial"
	"homenode/internal/unit"
)

// Options of a comparison.
type Options struct {
	Mix     Mix
	Agent   []byte // the agent's configuration
	Arms    []string
	Boot    lab.Options
	Command string
	Commit  string
	// Progress is told what goes on: what is done of all, and a sentence.
	Progress func(done, all int, text string)
	// Keep is called with every run's result as it comes.
	Keep func(RunResult)
}

// tries bounds how often a run is repeated that did not count.
const tries = 2

const (
	agentConfig = "/etc/homenode.yaml"
	planFile    = "/tmp/plan.json"
	resultFile  = "/tmp/result.json"
)

// Compare boots the lab once and runs every arm in it, interleaved.
func Compare(ctx context.Context, o Options) (trial.Comparison, error) {
	start := time.Now()
	o.Progress(0, 1, "booting "+o.Boot.Shape.Name)
	g, err := lab.Boot(ctx, o.Boot)
	if err != nil {
		return trial.Comparison{}, err
	}
	defer g.Close()
	if err := g.Put(ctx, agentConfig, 0o644, o.Agent); err != nil {
		return trial.Comparison{}, err
	}
	c := comparer{o: o, guest: g, plan: planFor(o)}
	// Every run warms up by itself, until its local access ratio is steady.
	order := trial.Plan(len(o.Arms), 0, o.Mix.Repeats, o.Mix.Seed)
	for i, run := range order {
		c.done, c.all = i, len(order)
		if err := c.run(ctx, o.Arms[run.Arm], run.Repeat); err != nil {
			return trial.Comparison{}, err
		}
		c.order = append(c.order, o.Arms[run.Arm])
	}
	r := gather(o, c.results)
	r.Command, r.Commit, r.Date = o.Command, o.Commit, start.UTC().Truncate(time.Second)
	r.Order, r.Rejected, r.Seconds = c.order, c.rejected, time.Since(start).Seconds()
	return r, nil
}

type comparer struct {
	o         Options
	guest     *lab.Guest
	plan      Plan
	results   []RunResult
	order     []string
	rejected  []string
	done, all int
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

// run runs one arm once; a run whose model was too slow is run again.
func (c *comparer) run(ctx context.Context, arm string, repeat int) error {
	for try := 1; ; try++ {
		r, err := c.once(ctx, arm, repeat)
		if err != nil {
			return err
		}
		if r.Error == "" {
			r.Error = tooSlow(r, c.o.Mix)
		}
		if c.o.Keep != nil {
			c.o.Keep(r)
		}
		if r.Error == "" {
			c.results = append(c.results, r)
			return nil
		}
		c.rejected = append(c.rejected, fmt.Sprintf("%s, repeat %d: %s", arm, repeat+1, r.Error))
		if try == tries {
			return fmt.Errorf("arm %s, repeat %d did not count %d times; last: %s", arm, repeat+1, tries, r.Error)
		}
	}
}

// tooSlow refuses a run in which the host could not keep the model's pace: its
// guest timers no longer fit its cycles.
func tooSlow(r RunResult, m Mix) string {
	if r.ModelSeconds < m.ModelSeconds*0.99 {
		return fmt.Sprintf("%.2f of %.2f model-seconds: the host is too slow or too busy", r.ModelSeconds, m.ModelSeconds)
	}
	if r.SlowestRate < m.MinRate {
		return fmt.Sprintf("the model fell to %.0f %% of its nominal rate for 250 ms; %.0f %% is the least: the host is too busy", 100*r.SlowestRate, 100*m.MinRate)
	}
	return ""
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
	say := func(text string) {
		c.o.Progress(c.done, c.all, fmt.Sprintf("%s, repeat %d of %d: %s", Title(arm), repeat+1, c.o.Mix.Repeats, text))
	}
	say("starting the load")
	r, err := c.guest.RunLines(ctx, say, "homenode-lab", "arm", planFile, resultFile)
	if err != nil {
		return RunResult{}, err
	}
	if r.Exit != 0 {
		return RunResult{Arm: arm, Repeat: repeat, Error: lastLine(r.Stderr)}, nil
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

func lastLine(text string) string {
	last := ""
	for _, line := range splitLines(text) {
		last = line
	}
	return last
}

// GuestArm is the guest's side of one run: plan in, result out, as files.
func GuestArm(ctx context.Context, plan, result string) error {
	data, err := os.ReadFile(plan)
	if err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read plan: %w", err)
	}
	r, err := RunArm(ctx, p, func(text string) { fmt.Fprintln(os.Stderr, text) })
	if err != nil {
		return err
	}
	if data, err = json.Marshal(r); err != nil {
		return err
	}
	return os.WriteFile(result, data, 0o644)
}

// gather folds the runs into medians by arm, and judges the targets.
func gather(o Options, results []RunResult) trial.Comparison {
	c := trial.Comparison{
		Schema: 1, Name: o.Mix.Name, Machine: o.Boot.Shape.Name, How: "modelled (lab)",
		Repeats: o.Mix.Repeats, Seed: o.Mix.Seed,
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

func armOf(name string, m Mix, runs []RunResult) trial.Arm {
	a := trial.Arm{Name: name, Title: Title(name), Applicable: len(runs) > 0}
	if !a.Applicable {
		a.Why = "no run counted"
		return a
	}
	a.LocalSpread, a.LocalAccessRatio = median(runs, sensitiveRatioOf)
	_, a.PagesMoved = median(runs, func(r RunResult) unit.Opt[float64] { return r.PagesMoved })
	_, a.MoverCPUSeconds = median(runs, func(r RunResult) unit.Opt[float64] { return r.MoverCPUSeconds })
	_, a.MoverCPUShare = median(runs, func(r RunResult) unit.Opt[float64] { return r.MoverCPUShare })
	warm, _ := median(runs, func(r RunResult) unit.Opt[float64] { return unit.Some(r.WarmupSeconds) })
	rate, _ := median(runs, func(r RunResult) unit.Opt[float64] { return unit.Some(r.SlowestRate) })
	a.WarmupSeconds, a.Rate = warm.Median, rate.Min
	acted := false
	for _, r := range runs {
		acted = acted || r.Acted
		if r.Detail != "" {
			a.Detail = append(a.Detail, r.Detail)
		}
	}
	if !acted {
		a.Applicable, a.Why = false, "not applicable: it was never seen to act"
	}
	for i, w := range m.Workloads {
		a.Services = append(a.Services, serviceOf(w, runs, i))
	}
	return a
}

func serviceOf(w Workload, runs []RunResult, i int) trial.Service {
	s := trial.Service{Name: w.Name, Kind: w.Kind}
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

// median summarises one figure over the runs; unknown values are left out.
func median(runs []RunResult, of func(RunResult) unit.Opt[float64]) (trial.Summary, unit.Opt[float64]) {
	var values []float64
	for _, r := range runs {
		if v, ok := of(r).Get(); ok {
			values = append(values, v)
		}
	}
	s, ok := trial.Summarise(values)
	return s, unit.OptOf(s.Median, ok)
}
