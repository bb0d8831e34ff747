// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/unit"
)

// Fit is what a load's source does not show: the cycles of its instructions, including the
// clock reads between batches, and the time of the guest's kernel. Each constant is fitted
// on one scenario, the kernel's share on all four.
type Fit struct {
	Chase  float64 `json:"chase_cycles"` // per step
	Line   float64 `json:"line_cycles"`  // per line of a stream
	Add    float64 `json:"add_cycles"`   // to pick a line and add, beyond the system's Atomic
	Unit   float64 `json:"unit_cycles"`  // per unit of a request
	Kernel float64 `json:"kernel_share"` // share of the time of a CPU that a load keeps busy
}

// SpecOf is the workload of a load, by one rule per kind.
//
//  1. An operation is a step, a line or a unit, as in Scenario.
//  2. A chase goes around its lines in one fixed order, so each is used once per lap: it
//     is a stream with one miss at a time. A server's requests begin anywhere, so they use
//     lines at random. Streams have the parallelism of the lab's model.
//  3. A stream of stores writes every line back.
//  4. The kernel's share is subtracted from the CPUs' time, as a limit.
//  5. Memory is where the command line puts it.
func SpecOf(l Load, f Fit, parallelism float64) (sim.Spec, error) {
	o, err := optionsOf(l.Args)
	if err != nil {
		return sim.Spec{}, err
	}
	s := sim.Spec{Name: l.Name, Replicas: 1, Threads: o.threads, CPULimit: float64(o.threads) * (1 - f.Kernel)}
	s.Demand.Wakes = 0
	if err := o.place(&s, l); err != nil {
		return sim.Spec{}, err
	}
	switch o.mode {
	case "chase":
		s.Work = chaseWork(o, f)
	case "stream":
		s.Work = sim.WorkSpec{Cycles: f.Line, Instructions: f.Line, Regions: []sim.RegionSpec{
			{Size: o.ws, Accesses: 1, Parallelism: parallelism, Stream: true, Writes: o.writes()}}}
	case "rao":
		s.Work = chaseWork(o, f)
		s.Work.Adds = 1 / o.every
		s.Work.Lines = float64(o.sharing / 64)
		s.Work.Cycles += f.Add / o.every
		s.Memory.Shared = o.sharing
	case "server":
		s.Work = sim.WorkSpec{Cycles: f.Unit, Instructions: f.Unit, Regions: []sim.RegionSpec{
			{Size: o.ws, Shared: true, Accesses: serverLoads, Parallelism: 1}}}
		s.Memory.Shared, s.Memory.Private = o.ws, 0
	default:
		return sim.Spec{}, fmt.Errorf("read load %q: no rule for %s", l.Args, o.mode)
	}
	return s, nil
}

// serverLoads are the loads of a unit (--loads-per-unit's default).
const serverLoads = 8

func chaseWork(o options, f Fit) sim.WorkSpec {
	return sim.WorkSpec{Cycles: f.Chase, Instructions: f.Chase, Regions: []sim.RegionSpec{
		{Size: o.ws, Accesses: 1, Parallelism: 1, Stream: true}}}
}

// options are the options of homenode-load that the rules know.
type options struct {
	mode        string
	threads     int
	ws, sharing unit.Bytes
	every       float64 // steps per add
	write       bool
	worker      bool // first touch by the workers
	cpus        string
	bind        string
	bindCPU     string
}

func (o options) writes() float64 {
	if o.write {
		return 1
	}
	return 0
}

func optionsOf(args string) (options, error) {
	f := strings.Fields(args)
	if len(f) == 0 {
		return options{}, fmt.Errorf("read load %q: it has no mode", args)
	}
	o := options{mode: f[0], threads: 1, ws: 8 * unit.MiB, sharing: 64 * unit.KiB, every: 8}
	for i := 1; i < len(f); i++ {
		name, flag := strings.TrimPrefix(f[i], "--"), f[i] == "--write" || f[i] == "--closed"
		value := ""
		if !flag && i+1 < len(f) {
			i++
			value = f[i]
		}
		if err := o.set(name, value); err != nil {
			return options{}, fmt.Errorf("read load %q: %w", args, err)
		}
	}
	if o.threads < 1 || o.threads > 1024 || !(o.every >= 1) || o.ws < 4*unit.KiB || o.sharing < 64 {
		return options{}, fmt.Errorf("read load %q: a count or a size is out of homenode-load's range", args)
	}
	return o, nil
}

func (o *options) set(name, value string) (err error) {
	switch name {
	case "threads", "workers":
		o.threads, err = strconv.Atoi(value)
	case "ws":
		o.ws, err = unit.ParseBytes(value)
	case "sharing":
		o.sharing, err = unit.ParseBytes(value)
	case "share-every":
		o.every, err = strconv.ParseFloat(value, 64)
	case "write":
		o.write = true
	case "touch":
		o.worker = value == "worker"
	case "cpus":
		o.cpus = value
	case "bind-mem":
		o.bind = value
	case "bind-cpu":
		o.bindCPU = value
	case "thp", "closed", "short-share", "short-us": // they say nothing about a unit
	default:
		return fmt.Errorf("option --%s has no rule", name)
	}
	if err != nil {
		return fmt.Errorf("option --%s %q: %w", name, value, err)
	}
	return nil
}

// place puts threads and memory where the command line puts them.
func (o options) place(s *sim.Spec, l Load) (err error) {
	s.Memory.Private = o.ws * unit.Bytes(o.threads)
	s.Memory.Toucher = "main"
	if o.worker {
		s.Memory.Toucher = "workers"
	}
	if s.Start.CPUs, err = set.ParseCPUs(o.cpus); err != nil {
		return fmt.Errorf("read load %q: --cpus: %w", l.Args, err)
	}
	s.Start.Pinned = true
	if s.Start.Bind, err = parseNodes(o.bind); err == nil {
		s.Start.Interleave, err = parseNodes(l.Interleave)
	}
	if err != nil {
		return fmt.Errorf("read load %q: %w", l.Args, err)
	}
	return nil
}

func parseNodes(text string) (set.NodeSet, error) {
	if text == "" {
		return set.NodeSet{}, nil
	}
	return set.ParseNodes(text)
}

// Within reports whether got is want ± a share of it.
func Within(got, want, share float64) bool { return math.Abs(got-want) <= share*math.Abs(want) }
