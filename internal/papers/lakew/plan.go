// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
)

// Name is the experiment's name.
const Name = "lakew"

// The mixes.
const (
	firstMix  = "vms-1"
	secondMix = "vms-2"
	quickMix  = "vms-few"
)

// Times of the experiment. The last VM arrives after some 5 minutes. One mover then takes 2
// minutes for 128 GB at MAO's 0.65 s/GB, and several times that over a busy interconnect:
// some 15 minutes were observed. With longer steps threads migrate less often, but not less
// far, and the run costs less: a step in which anything moves takes a hundredth of a second
// to compute.
const (
	fullWarmup = 20 * time.Minute
	fullLasts  = 25 * time.Minute
	fullStep   = 5 * time.Second
	// The quick run has few VMs.
	quickWarmup = 5 * time.Minute
	quickLasts  = 6 * time.Minute
	quickStep   = time.Second
	period      = 10 * time.Second
)

// policies are compared; the first is the reference. The paper has no NUMA balancing by the
// kernel. It is here because it is what Linux offers today.
var policies = []string{runner.None, runner.NUMABalancing, runner.SMIPC, runner.SMMPI}

// Plan is the experiment. If not full, it is a quick run with a part of the VMs and few
// seeds.
func Plan(full bool) arena.Plan {
	p := arena.Plan{
		Name: Name, About: "Lakew et al. 2025: virtual machines on six servers that are one machine of 288 cores.",
		Machines: []arena.Machine{torus()}, Policies: policies, Against: runner.None,
		Periods: map[string]time.Duration{runner.SMIPC: period, runner.SMMPI: period},
	}
	if !full {
		p.Mixes = []arena.Mix{quick()}
		p.Seeds = []uint64{1, 2, 3}
		return p
	}
	p.Mixes = []arena.Mix{
		mix(firstMix, "The paper's 20 VMs, the first way to give them applications: Neo4j is in both huge ones.", first),
		mix(secondMix, "The paper's 20 VMs, with the applications in VMs of other sizes.", second),
	}
	p.Seeds = []uint64{1, 2, 3, 4, 5}
	return p
}

func mix(name, about string, p population) arena.Mix {
	return arena.Mix{
		Name: name, About: about, Fits: fits,
		Specs: func(_ *arena.Machine, seed uint64) []sim.Spec { return p.specs(seed) },
		Lasts: fullLasts, Warmup: fullWarmup, Period: period, Step: fullStep,
	}
}

// quick is every third VM of a size, without the huge VMs.
func quick() arena.Mix {
	m := mix(quickMix, "A third of the paper's VMs, without the huge ones.", first.without("huge").part(3))
	m.Lasts, m.Warmup, m.Step = quickLasts, quickWarmup, quickStep
	return m
}

// fits reports whether each vCPU has a core: the paper has no over-subscription.
func fits(m *arena.Machine) bool {
	cores := 0
	for _, s := range Sizes {
		cores += s.Cores * s.Count
	}
	return m.Host.OnlineCPUs().Len() >= cores
}

// torus is the paper's machine.
func torus() arena.Machine { return arena.BuiltinMachine(catalog.Torus) }
