// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"math/rand/v2"
	"time"

	"homenode/internal/sim"
	"homenode/internal/unit"
)

// TrialMix is what runs while bindings are tried in the lab, and in the simulator on the lab's
// shapes: services, each of which is tried, and what runs beside them.
type TrialMix struct {
	Seed     uint64
	Services []TrialService
	Beside   []TrialLoad
}

// TrialService is a server of homenode-load: a closed loop that hardly thinks, so that the work
// that it counts is 1 / the time of a request, times its workers.
type TrialService struct {
	Name, Kind string
	Limit      float64 // CPUs; 0: none
	Workers    int
	WS, Extra  unit.Bytes // what its requests read, and what is only held
	Think      time.Duration
	Loads, ALU int // of a unit of work
}

// TrialLoad runs beside the services and is not tried: a stream over WS for each thread, or
// spinning, which needs no memory (0).
type TrialLoad struct {
	Name    string
	Threads int
	WS      unit.Bytes
}

// TrialKinds are the kinds of services.
var TrialKinds = []string{"memory", "mixed", "computing"}

// DrawTrials draws a mix from a seed. Services differ in what decides whether a binding helps:
// memory, accesses per request, workers against a node's CPUs (two in shape four), limits, and how
// busy the rest of the machine is.
func DrawTrials(seed uint64) TrialMix {
	r := rand.New(rand.NewPCG(seed, 0x747269616c73))
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	mib := func(of ...int) unit.Bytes { return unit.Bytes(pick(of...)) * unit.MiB }
	m := TrialMix{Seed: seed}
	for i := range 2 + r.IntN(2) {
		s := TrialService{Name: fmt.Sprintf("s%d", i), Kind: TrialKinds[r.IntN(3)], Loads: pick(16, 24, 32), ALU: pick(0, 100, 200)}
		switch s.Kind {
		case "mixed":
			s.Loads, s.ALU = pick(4, 6, 8), pick(200, 400)
		case "computing":
			s.Loads, s.ALU = pick(1, 2), pick(400, 800)
		}
		s.Limit = []float64{0, 1, 1.5, 2}[r.IntN(4)]
		s.Workers, s.WS, s.Extra = pick(1, 2, 3, 4, 6), mib(2, 4, 8, 16), mib(0, 4, 16)
		s.Think = time.Duration(pick(50, 500, 2000)) * time.Microsecond
		m.Services = append(m.Services, s)
	}
	if r.IntN(5) < 2 {
		m.Beside = append(m.Beside, TrialLoad{Threads: 1, WS: mib(16, 32)})
	}
	if n := pick(0, 0, 1, 2); n > 0 {
		m.Beside = append(m.Beside, TrialLoad{Threads: n})
	}
	for i := range m.Beside {
		m.Beside[i].Name = fmt.Sprintf("b%d", i)
	}
	return m
}

// Requests take 300 to 400 µs of nominal time. With a few long ones among many short ones, as in
// MAO's demand, 2 s of a service that is mostly idle would say more about its draws than about where
// it runs.
const shortest, longest = 300 * time.Microsecond, 400 * time.Microsecond

// Load is homenode-load's command line.
func (s TrialService) Load() string {
	return fmt.Sprintf("server --workers %d --ws %dMiB --extra %dMiB --closed --think-us %d --short-share 1 --short-us %d:%d --loads-per-unit %d --alu-per-unit %d",
		s.Workers, s.WS/unit.MiB, s.Extra/unit.MiB, s.Think.Microseconds(), shortest.Microseconds(), longest.Microseconds(), s.Loads, s.ALU)
}

// Load is homenode-load's command line.
func (l TrialLoad) Load() string {
	if l.WS == 0 {
		return fmt.Sprintf("spin --threads %d", l.Threads)
	}
	return fmt.Sprintf("stream --threads %d --ws %dMiB", l.Threads, l.WS/unit.MiB)
}

// What the sources of homenode-load do not show, in cycles: internal/sim/parity fits it to the
// lab, and holds these to what it found. TrialKernel is the share of a CPU's time that the
// guest's kernel takes.
const (
	TrialChase  = 4.12  // a step, without its load
	TrialLine   = 6.88  // a line of a stream
	TrialUnit   = 70.9  // a unit, beyond its steps and register work
	TrialKernel = 0.068 // of a CPU
	// kernelIPC is the kernel's instructions per cycle, from the counters of one guest of shape two
	// (homenode-load status, total less user). A window counts them, too: where a service waits for
	// memory, they are up to half of all.
	kernelIPC = 0.38
	// localLoad is the cycles that homenode-load assumes for a load when it turns the nominal time
	// of a request into units (LOCAL_LOAD_CYCLES, lab/workload/options.c).
	localLoad = 220
)

// Specs are the services, and then what runs beside them, on a machine whose guest has a clock of
// hz and a time factor. An operation is a request of the mean number of units.
func (m TrialMix) Specs(hz, timeFactor, parallelism float64) []sim.Spec {
	var specs []sim.Spec
	for _, s := range m.Services {
		specs = append(specs, s.spec(hz, timeFactor))
	}
	for _, l := range m.Beside {
		specs = append(specs, l.spec(parallelism))
	}
	return specs
}

func (s TrialService) spec(hz, timeFactor float64) sim.Spec {
	units := (shortest + longest).Seconds() / 2 * timeFactor * hz / float64(s.Loads*localLoad+s.ALU)
	cycles := units * (TrialUnit + TrialChase*float64(s.Loads) + float64(s.ALU))
	kernel := TrialKernel * kernelIPC * (cycles + units*float64(s.Loads)*localLoad)
	p := sim.Spec{
		Name: s.Name, Service: s.Name, Replicas: 1, Threads: s.Workers, CPULimit: most(s.Workers, s.Limit),
		Memory: sim.MemorySpec{Shared: s.WS + s.Extra, Toucher: "main"},
		Work: sim.WorkSpec{Cycles: cycles, Instructions: cycles + kernel, Regions: []sim.RegionSpec{
			{Size: s.WS, Shared: true, Accesses: units * float64(s.Loads), Parallelism: 1}}},
	}
	p.Demand.Think = time.Duration(float64(s.Think) * timeFactor)
	return p
}

func (l TrialLoad) spec(parallelism float64) sim.Spec {
	p := sim.Spec{Name: l.Name, Service: l.Name, Replicas: 1, Threads: l.Threads, CPULimit: most(l.Threads, 0)}
	p.Work = sim.WorkSpec{Cycles: 1000, Instructions: 1000}
	if l.WS > 0 {
		p.Memory = sim.MemorySpec{Private: l.WS * unit.Bytes(l.Threads), Toucher: "main"}
		p.Work = sim.WorkSpec{Cycles: TrialLine, Instructions: TrialLine, Regions: []sim.RegionSpec{
			{Size: l.WS, Accesses: 1, Parallelism: parallelism, Stream: true}}}
	}
	return p
}

// most is a limit that leaves the kernel its share of each thread's CPU.
func most(threads int, limit float64) float64 {
	free := float64(threads) * (1 - TrialKernel)
	if limit > 0 {
		return min(limit, free)
	}
	return free
}
