// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"slices"
	"strings"
	"time"

	"homenode/internal/policy/brm"
	"homenode/internal/sim"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
)

// Variants of BRM.
const (
	// Inferred gets no tags: it infers which threads are sensitive to where they run.
	Inferred = runner.BRM + ":inferred"
	// Literal is the algorithm exactly as in the slides, with our choices only where they
	// leave something open.
	Literal = runner.BRM + ":literal"
	// Held ties threads to the node that they were put on. Xen's scheduler takes a vCPU
	// from another CPU only if that vCPU waits. Linux balances nodes, and separates the
	// threads that BRM put together. Held swaps threads at full nodes as Swap does;
	// otherwise it would tie eight threads to four CPUs.
	Held = runner.BRM + ":held"
	// Swap only exchanges threads where a node is full.
	Swap = runner.BRM + ":swap"
)

// period is the paper's.
const period = 10 * time.Millisecond

// Plan is the comparison of policies: all mixes with ten seeds. If not full, it is some
// mixes, two seeds and a shorter time, for tests. Seeds are chance only (where threads
// start, which thread is woken first): the mixes were drawn once and are the same for all
// seeds.
func Plan(full bool) arena.Plan {
	p := arena.Plan{
		Name:     "rao",
		About:    "Rao et al. (HPCA 2013) again: parallel mixes with spinning barriers, multiprogrammed mixes, loads that do not care, short jobs, and more threads on larger machines.",
		Policies: []string{runner.None, runner.NUMABalancing, runner.BRM, Inferred, Swap, Held, Literal, runner.HandThreads}, Against: runner.None,
		Periods: map[string]time.Duration{runner.BRM: period, Inferred: period, Literal: period, Held: period, Swap: period, runner.HandThreads: period},
		Abouts: map[string]string{
			Inferred: "BRM that is told nothing: it infers which threads care where they run.",
			Swap:     "BRM that goes to a full node only where it can change places with another thread.",
			Held:     "BRM that does so, and ties threads to the node that it put them on, so that Linux's load balancing cannot take them away.",
			Literal:  "BRM as the slides have it: the mean over all threads is made small, probability goes by ones, the newest period counts alone, full nodes take more.",
		},
		Options: func(policy string, _ *arena.Machine, o *runner.Options) {
			switch policy {
			case Literal:
				o.BRM = literal(o.BRM)
			case Swap:
				o.BRM.WhenFull = brm.FullSwapOnly
			case Held:
				o.BRM.Hold, o.BRM.WhenFull = true, brm.FullSwapOnly
			}
		},
		Configure: func(policy string, c *sim.Config) {
			if policy == Inferred {
				c.Specs = untagged(c.Specs)
			}
		},
	}
	if full {
		p.Seeds = []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		p.Mixes = slices.DeleteFunc(mixes(20*time.Second, 10*time.Second, nil), isLarge)
	} else {
		p.Seeds = []uint64{1, 2}
		p.Mixes = mixes(2*time.Second, time.Second, []string{"pair-1", "multi-1", "vmmulti-1", "vmpair-1", "insensitive-1", "short-jobs", "vmscale-16"})
	}
	p.Machines = machinesFor(p.Mixes)
	return p
}

// Large has 256 threads: a step of its world takes a tenth of a second. It has one seed,
// and not the variants of BRM that fewer threads show well enough.
func Large() arena.Plan {
	p := Plan(true)
	p.Name, p.About = "rao-large", "Rao et al. (HPCA 2013) again, with 256 threads."
	p.Policies, p.Seeds = []string{runner.None, runner.NUMABalancing, runner.BRM, Held, runner.HandThreads}, []uint64{1}
	p.Mixes = slices.DeleteFunc(mixes(0, 20*time.Second, nil), func(m arena.Mix) bool { return !isLarge(m) })
	p.Machines = machinesFor(p.Mixes)
	return p
}

func isLarge(m arena.Mix) bool { return strings.HasSuffix(m.Name, "-256") }

func machinesFor(mixes []arena.Mix) (all []arena.Machine) {
	for _, name := range []string{catalog.DualE5620, catalog.FourNodes, catalog.Opteron, catalog.Torus} {
		if fitsAny(mixes, name) {
			all = append(all, arena.BuiltinMachine(name))
		}
	}
	return all
}

// literal undoes our changes in BRM's configuration. The exploration of nodes that were
// never visited stays: the slides do not say how, and without it nothing moves.
func literal(c brm.Config) brm.Config {
	c.Scope, c.WhenFull = brm.ScopeSystem, brm.FullGo
	c.Rise, c.Fall, c.Margin, c.MinStall = 1, 1, 0, 0
	c.Smoothing, c.Settle, c.Samples = 1, 0, 1
	return c
}

// mixes returns the mixes with these names; nil: all. Larger machines and short jobs have
// the shorter time.
func mixes(long, short time.Duration, names []string) (all []arena.Mix) {
	for _, d := range draw() {
		all = append(all, d.mix(long))
	}
	all = append(all, shortMix(short))
	for _, s := range scales {
		all = append(all, scaleMix(Scale, s.threads, s.machine, short), scaleMix(VMScale, s.threads, s.machine, short))
	}
	return slices.DeleteFunc(all, func(m arena.Mix) bool { return names != nil && !slices.Contains(names, m.Name) })
}

func fitsAny(mixes []arena.Mix, machine string) bool {
	m := arena.Machine{Name: machine}
	return slices.ContainsFunc(mixes, func(x arena.Mix) bool { return x.Fits(&m) })
}

// untagged copies specs without their tags.
func untagged(specs []sim.Spec) []sim.Spec {
	out := slices.Clone(specs)
	for i := range out {
		out[i].Sensitive = nil
	}
	return out
}
