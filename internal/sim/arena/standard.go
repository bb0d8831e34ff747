// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"fmt"
	"slices"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"

	"homenode/internal/sim/runner"
)

// Standard is the full arena: machines × mixes × all policies. Its statistics and most
// periods were chosen before any comparison. Drawings, BRM's period, times, the rate of
// moves and the search by hand were chosen after a first comparison in an unfinished world,
// the mixes of the torus after another: docs/decisions/0022-arena.md says which, when and
// why.
func Standard() Plan {
	memo := &runner.Memo{}
	p := Plan{
		Name: "all", About: "All policies on machines of two to 36 nodes, under mixes of the papers' programs and of others.",
		Against: runner.None, Seeds: []uint64{1, 2, 3, 4, 5, 6}, Policies: policies(),
		Periods: map[string]time.Duration{runner.BRM: standardStep},
		// Placement by hand happens once, when all workloads are there. For many workloads
		// or nodes one search serves all seeds, as it takes up to minutes.
		Options: func(_ string, m *Machine, o *runner.Options) {
			if o.Patient = true; len(m.Host.Nodes) > manyNodes || len(o.Specs) > manySpecs {
				o.Memo = memo
			}
		},
		// As fast as the machine moves memory. The default rate is for a server that must
		// not notice it; with it, runs would be ten times as long.
		Actuate: func(_ string, c *actuate.Config) { c.Rate = 0 },
	}
	for _, name := range []string{catalog.DualSkylake, catalog.FourNodes, catalog.Opteron, catalog.Kunpeng, catalog.Torus} {
		p.Machines = append(p.Machines, BuiltinMachine(name))
	}
	for _, x := range catalog.Mixes() {
		if slices.Contains(drawnOnce, x.Name) {
			p.Mixes = append(p.Mixes, standardMix(x, x.Name, 1))
			continue
		}
		for drawing := range uint64(drawings) {
			p.Mixes = append(p.Mixes, standardMix(x, fmt.Sprintf("%s-%d", x.Name, drawing+1), drawing+1))
		}
	}
	return p
}

// drawings is how often a mix is drawn. Each drawing is a mix of its own, and seeds are
// chance only (where threads start, which wakes first, how demand drifts). So seeds are
// independent of each other, and variation can be measured.
const drawings = 2

// drawnOnce are mixes of many single programs: another drawing would be much the same.
var drawnOnce = []string{"multiprogrammed", "insensitive"}

// onManyCPUs are the mixes whose first drawing also runs on more CPUs than smallCPUs. Steps
// there take a hundred times as long as elsewhere where threads move in each, and a search
// by hand for 288 programs takes hours.
var onManyCPUs = []string{"vms", "mixed-classes"}

const (
	smallCPUs = 128
	manyNodes = 8
	manySpecs = 32
)

// Quick is a small part of it: two sockets, Rao's machine and MAO's.
func Quick() Plan {
	p := Standard()
	p.Name, p.About, p.Machines = "quick", "A small part of the arena: two machines of two sockets, half of the mixes.", nil
	for _, name := range []string{catalog.DualE5620, catalog.DualSkylake} {
		p.Machines = append(p.Machines, BuiltinMachine(name))
	}
	p.Mixes = slices.DeleteFunc(p.Mixes, func(x Mix) bool { return !slices.Contains(quickMixes, x.Name) })
	for i := range p.Mixes {
		x := &p.Mixes[i]
		few := x.Name == "services-1" // MAO's loads are for MAO's machine, the others for Rao's
		x.Lasts, x.Warmup = quickLasts, quickWarmup
		x.Fits = func(m *Machine) bool { return (m.Name == catalog.DualSkylake) == few }
	}
	return p
}

var quickMixes = []string{"parallel-1", "multiprogrammed", "services-1", "insensitive"}

const (
	quickLasts  = 60 * time.Second
	quickWarmup = 40 * time.Second
)

// policies are all policies that arm has, in its order.
func policies() (all []string) {
	for _, k := range runner.Policies() {
		all = append(all, k.Name)
	}
	return all
}

// Times of a mix: arrivals are over in the first minute, and a policy that moves memory
// (0.64 s per GB) has had another, before figures begin. BRM acts in each step; Rao's range
// is 10 to 100 ms.
const (
	standardLasts  = 150 * time.Second
	standardWarmup = 120 * time.Second
	standardPeriod = time.Second
	standardStep   = 100 * time.Millisecond
)

func standardMix(x catalog.Mix, name string, drawing uint64) Mix {
	small := drawing > 1 || !slices.Contains(onManyCPUs, x.Name)
	return Mix{
		Name: name, About: x.About, Lasts: standardLasts, Warmup: standardWarmup, Period: standardPeriod, Step: standardStep,
		Fits:  func(m *Machine) bool { return !small || m.Host.OnlineCPUs().Len() <= smallCPUs },
		Specs: func(m *Machine, _ uint64) []sim.Spec { return x.Make(m.Host, m.System, drawing) },
	}
}

// BuiltinMachine is a machine of the catalog, which must have it.
func BuiltinMachine(name string) Machine {
	b, ok := catalog.MachineNamed(name)
	if !ok {
		panic("there is no machine " + name)
	}
	host, system := b.Make()
	return Machine{Name: b.Name, About: b.About, Host: host, System: system}
}
