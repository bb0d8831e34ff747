// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/kernel"
	"homenode/internal/lab/model"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Phases that the load programs credit their operations to.
const (
	phaseWarmup  = 1
	phaseMeasure = 2
	phaseAfter   = 3
)

const (
	cgroupRoot = "/sys/fs/cgroup"
	mixGroup   = "demo"  // holds a cgroup per workload
	houseGroup = "house" // holds daemons and this runner
	// readyLimit ends a load that hangs. It is guest time, which does not depend on
	// how busy the host is.
	readyLimit = 10 * time.Minute
	// settledAfter is for how long the guest has been up, at least, when a run begins. To
	// numad, a process that it has not placed yet was placed when the machine started, and it
	// leaves a process alone for 300 s after placing it (numad.c, version 20150602).
	settledAfter = 301 * time.Second
)

// How often the local access ratio is read during the warm-up, and when it counts as
// steady: the last checks lie close together. Neither ends the warm-up.
const (
	checkEvery   = 2.0 // model-seconds
	steadyOver   = 3   // checks
	steadyWithin = 0.02
	pollEvery    = 20 * time.Millisecond // of the model's clock
)

// RunArm runs one arm once, inside the lab's guest, and leaves nothing behind.
//
//  1. It makes the cgroups with their limits, placed in the arm by hand, and sets NUMA balancing.
//  2. It waits until the guest has been up for five minutes, as any machine in use has.
//  3. It starts the load, then the mover, and then waits for the mix's warm-up: as many
//     model-seconds in every arm, whatever the local access ratio.
//  4. It waits for the mix's model-seconds of measurement. Counters are read with the model
//     off before and after, so that they contain only the measurement.
//  5. It ends everything, and checks that the mover's settings are gone.
func RunArm(ctx context.Context, p Plan, progress func(Step)) (RunResult, error) {
	model, err := model.Open("/sys")
	if err != nil {
		return RunResult{}, err
	}
	r := &armRun{plan: p, model: model, progress: progress, res: RunResult{Arm: p.Arm, Repeat: p.Repeat}}
	defer r.cleanUp()
	for _, step := range []func(context.Context) error{r.prepare, r.settle, r.startLoad, r.startMover, r.warmUp, r.measure, r.stop} {
		if err := step(ctx); err != nil {
			return RunResult{}, fmt.Errorf("arm %s, repeat %d: %w", p.Arm, p.Repeat+1, err)
		}
	}
	return r.res, nil
}

type armRun struct {
	plan     Plan
	model    *model.Model
	progress func(Step)
	res      RunResult

	loads       []*loadProcess
	meter       *meter
	mover       mover
	migrated    float64 // pgmigrate_success before
	moverBefore float64
}

// prepare makes the cgroups; the limits and CPUs are the same in every arm.
func (r *armRun) prepare(context.Context) error {
	balancing := "0"
	if r.plan.Arm == ArmBalancing {
		balancing = "1"
	}
	writes := []struct{ path, value string }{
		{"/proc/sys/kernel/numa_balancing", balancing},
		{cgroupRoot + "/cgroup.subtree_control", "+cpuset +cpu +memory"},
	}
	for _, g := range []struct{ name, cpus string }{{houseGroup, r.plan.Housekeeping}, {mixGroup, r.plan.CPUs}} {
		if err := os.MkdirAll(filepath.Join(cgroupRoot, g.name), 0o755); err != nil {
			return err
		}
		writes = append(writes, struct{ path, value string }{filepath.Join(cgroupRoot, g.name, "cpuset.cpus"), g.cpus})
	}
	writes = append(writes,
		struct{ path, value string }{filepath.Join(cgroupRoot, houseGroup, "cgroup.procs"), strconv.Itoa(os.Getpid())},
		struct{ path, value string }{filepath.Join(cgroupRoot, mixGroup, "cgroup.subtree_control"), "+cpuset +cpu +memory"})
	for _, w := range writes {
		if err := os.WriteFile(w.path, []byte(w.value), 0o644); err != nil {
			return fmt.Errorf("prepare: write %q: %w", w.value, err)
		}
	}
	for _, w := range r.plan.Mix.Workloads {
		if err := r.prepareWorkload(w); err != nil {
			return fmt.Errorf("prepare workload %s: %w", w.Name, err)
		}
	}
	return nil
}

func (r *armRun) prepareWorkload(w Workload) error {
	dir := groupOf(w.Name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	settings := map[string]string{}
	if w.CPULimit > 0 {
		settings["cpu.max"] = fmt.Sprintf("%d 100000", int(w.CPULimit*100000))
	}
	if r.plan.Arm == ArmByHand {
		cpus, err := r.plan.cpusOf(w.Nodes)
		if err != nil {
			return err
		}
		settings["cpuset.cpus"], settings["cpuset.mems"] = cpus.String(), w.Nodes.String()
	}
	for file, value := range settings {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(value), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cpusOf are the CPUs of nodes, without those kept for daemons.
func (p Plan) cpusOf(nodes set.NodeSet) (cpus set.CPUSet, err error) {
	for n := range nodes.All() {
		if n >= len(p.NodeCPUs) {
			return set.CPUSet{}, fmt.Errorf("place on nodes %s: there are %d nodes", nodes, len(p.NodeCPUs))
		}
		of, err := set.ParseCPUs(p.NodeCPUs[n])
		if err != nil {
			return set.CPUSet{}, fmt.Errorf("place on nodes %s: %w", nodes, err)
		}
		cpus = cpus.Union(of)
	}
	return cpus, nil
}

func groupOf(name string) string { return filepath.Join(cgroupRoot, mixGroup, name) }

func (r *armRun) settle(ctx context.Context) error {
	for {
		up := kernel.Monotonic()
		if up >= settledAfter {
			return nil
		}
		r.progress(Step{Stage: StageBoot})
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(settledAfter-up, 20*time.Second)):
		}
	}
}

func (r *armRun) startLoad(ctx context.Context) error {
	r.progress(Step{Stage: StageLoad})
	r.model.SetPhase(phaseWarmup)
	for _, w := range r.plan.Mix.Workloads {
		l, err := startLoad(w, loadArgs(w, r.plan.Arm), r.plan.Mix.Seed+uint64(r.plan.Repeat))
		if err != nil {
			return err
		}
		r.loads = append(r.loads, l)
	}
	for _, l := range r.loads {
		if err := l.waitReady(ctx, readyLimit); err != nil {
			return err
		}
	}
	var err error
	r.migrated = vmstat("pgmigrate_success")
	r.meter, err = newMeter()
	return err
}

func (r *armRun) startMover(context.Context) error {
	if err := r.model.Switch(model.On); err != nil {
		return err
	}
	var err error
	r.mover, err = startMover(r.plan)
	return err
}

// warmUp lets the mix's model-seconds pass and reads the ratio.
func (r *armRun) warmUp(ctx context.Context) error {
	if _, err := r.meter.read(ctx); err != nil {
		return err
	}
	r.progress(Step{Stage: StageWarm, Of: r.plan.Mix.Warmup})
	begin := r.model.Clock()
	for r.res.WarmupSeconds < r.plan.Mix.Warmup {
		want := min(r.res.WarmupSeconds+checkEvery, r.plan.Mix.Warmup)
		if err := r.until(ctx, begin, want); err != nil {
			return err
		}
		uses, err := r.meter.read(ctx)
		if err != nil {
			return err
		}
		ratio := sensitiveRatio(r.plan.Mix, uses)
		r.res.WarmupSeconds = want
		r.res.WarmupRatios = append(r.res.WarmupRatios, ratio)
		r.progress(Step{Stage: StageWarm, Done: want, Of: r.plan.Mix.Warmup, Local: unit.Some(ratio)})
	}
	r.res.Steady = experiment.Steady(r.res.WarmupRatios, steadyOver, steadyWithin)
	return nil
}

// until waits for the model's clock. A slow host makes the wait longer, and
// changes nothing else.
func (r *armRun) until(ctx context.Context, begin model.Clock, seconds float64) error {
	for modelSeconds(begin, r.model.Clock()) < seconds {
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(pollEvery)
	}
	return nil
}

func modelSeconds(begin, end model.Clock) float64 {
	return float64(end.ModelCycles-begin.ModelCycles) / float64(begin.MHz) / 1e6
}

func (r *armRun) measure(ctx context.Context) error {
	if err := r.model.Switch(model.Off); err != nil {
		return err
	}
	if _, err := r.meter.read(ctx); err != nil {
		return err
	}
	r.moverBefore = r.mover.cpuSeconds()
	if err := r.model.Switch(model.On); err != nil {
		return err
	}
	r.model.SetPhase(phaseMeasure)
	begin := r.model.Clock()
	for done := 0.0; done < r.plan.Mix.Measure; {
		r.progress(Step{Stage: StageMeasure, Done: done, Of: r.plan.Mix.Measure})
		done = min(done+checkEvery, r.plan.Mix.Measure)
		if err := r.until(ctx, begin, done); err != nil {
			return err
		}
	}
	r.model.SetPhase(phaseAfter)
	end := r.model.Clock()
	if err := r.model.Switch(model.Off); err != nil {
		return err
	}
	r.res.ModelSeconds = modelSeconds(begin, end)
	if used, ok := since(r.mover.cpuSeconds(), r.moverBefore); ok {
		r.res.MoverCPUShare = unit.Some(used / r.res.ModelSeconds)
	}
	r.progress(Step{Stage: StageEnd})
	return r.collect(ctx)
}

func since(now, before float64) (float64, bool) { return now - before, now == now && before == before }

// collect reads the counters of the measurement, then ends the load and reads
// its reports.
func (r *armRun) collect(ctx context.Context) error {
	uses, err := r.meter.read(ctx)
	if err != nil {
		return err
	}
	for _, l := range r.loads {
		report, err := l.finish()
		if err != nil {
			return err
		}
		s := ServiceResult{Name: l.workload.Name, Kind: l.workload.Kind}
		s.fill(report.phase(phaseMeasure), uses[l.workload.Name], r.res.ModelSeconds)
		r.res.Services = append(r.res.Services, s)
	}
	return nil
}

// fill joins the load program's figures with the counters.
func (s *ServiceResult) fill(p loadPhase, u use, modelSeconds float64) {
	s.Work = p.Work
	s.WorkPerModelS = p.Work / modelSeconds
	if cycles, ok := u.cycles.Get(); ok && p.Work > 0 {
		s.CyclesPerOp = unit.Some(cycles / p.Work)
	}
	s.LocalLoads, s.RemoteLoads, s.CPU = u.local, u.remote, u.cpus
	s.LocalAccessRatio = ratio(u)
	if p.Latency != nil {
		s.LatencyP50us, s.LatencyP99us = unit.Some(p.Latency.P50), unit.Some(p.Latency.P99)
	}
}

func (r *armRun) stop(context.Context) error {
	r.res.MoverCPUSeconds = known(r.mover.cpuSeconds())
	r.res.Acted, r.res.Detail = r.mover.acted()
	r.res.PagesMoved = known(vmstat("pgmigrate_success") - r.migrated)
	if err := r.mover.stop(); err != nil {
		return err
	}
	return r.checkLeft()
}

func known(v float64) unit.Opt[float64] { return unit.OptOf(v, v == v) }

// checkLeft checks that the mover left every workload with all of its parent's
// CPUs and nodes. The kernel does not accept an empty cpuset again for a
// populated cgroup (ENOSPC, validate_change in kernel/cgroup/cpuset.c): the
// parent's set, written out, means the same.
func (r *armRun) checkLeft() error {
	if r.plan.Arm == ArmByHand {
		return nil
	}
	for _, file := range []string{"cpuset.cpus.effective", "cpuset.mems.effective"} {
		all, err := os.ReadFile(filepath.Join(cgroupRoot, mixGroup, file))
		if err != nil {
			return err
		}
		for _, w := range r.plan.Mix.Workloads {
			got, err := os.ReadFile(filepath.Join(groupOf(w.Name), file))
			if err != nil {
				return err
			}
			if string(got) != string(all) {
				return fmt.Errorf("%s of %s is %q after the mover ended, its parent's is %q", file, w.Name, bytes.TrimSpace(got), bytes.TrimSpace(all))
			}
		}
	}
	return nil
}

// cleanUp ends running processes and removes the cgroups in any case.
func (r *armRun) cleanUp() {
	_ = r.model.Switch(model.Off)
	if r.mover != nil {
		_ = r.mover.stop()
	}
	for _, l := range r.loads {
		l.kill()
	}
	if r.meter != nil {
		r.meter.close()
	}
	_ = os.WriteFile("/proc/sys/kernel/numa_balancing", []byte("0"), 0o644)
	for _, w := range r.plan.Mix.Workloads {
		for range 100 { // a dying process holds its cgroup for a moment
			if err := os.Remove(groupOf(w.Name)); err == nil || os.IsNotExist(err) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// vmstat reads one counter of /proc/vmstat; NaN if it does not exist.
func vmstat(name string) float64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return nan
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && key == name {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				return v
			}
		}
	}
	return nan
}
