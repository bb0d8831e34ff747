// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"slices"
	"testing"

	"homenode/internal/sim"
	"homenode/internal/sim/runner"
)

// Every mix has a machine that can hold its load. Seeds do not change the load. A mix's
// family is the first part of its name.
func TestPlan(t *testing.T) {
	p := Plan(true)
	seen := map[string]bool{}
	for _, m := range p.Machines {
		for _, x := range p.Mixes {
			if !x.Fits(&m) {
				continue
			}
			seen[x.Name] = true
			specs := x.Specs(&m, 1)
			if bad := sim.ValidateAll(specs, m.Host); len(bad) > 0 {
				t.Errorf("%s on %s: %v", x.Name, m.Name, bad[0])
			}
			if again := x.Specs(&m, 2); len(again) != len(specs) || again[0].Name != specs[0].Name {
				t.Errorf("%s: a seed changes the load", x.Name)
			}
		}
	}
	all := append(slices.Clone(sensitive), Insensitive, Short, Scale, VMScale)
	for _, x := range p.Mixes {
		if !seen[x.Name] || !slices.Contains(all, FamilyOf(x.Name)) {
			t.Errorf("%s is on no machine, or of no family", x.Name)
		}
	}
	if len(p.Seeds) < 10 || len(seen) < 30 {
		t.Errorf("%d seeds, %d mixes", len(p.Seeds), len(seen))
	}
	for _, policy := range p.Policies {
		o := runner.Options{}
		p.Options(policy, nil, &o)
	}
	if o := literal(runner.Options{}.BRM); o.Rise != 1 || o.Smoothing != 1 {
		t.Errorf("%+v", o)
	}
}

// There are at most as many threads as CPUs, and as many as the name says.
func TestMixesAreAsThePaperHasThem(t *testing.T) {
	want := map[Family]int{Pair: 8, Eight: 8, Four: 4, Multi: 8, VMPair: 8, VMFour: 4, VMMulti: 8, Insensitive: 8}
	for _, d := range draw() {
		threads, put := 0, 0
		for _, s := range d.specs() {
			threads += s.Threads
			if !s.Start.Touch.IsEmpty() {
				put++
			}
			if s.Threads > 1 != s.Work.Spin {
				t.Errorf("%s: %d threads that spin: %v", d.name, s.Threads, s.Work.Spin)
			}
		}
		vm := slices.Contains([]Family{VMPair, VMFour, VMMulti}, FamilyOf(d.name))
		if threads != want[FamilyOf(d.name)] || vm != (put == len(d.entries)) {
			t.Errorf("%s: %d threads, memory of %d of %d put somewhere", d.name, threads, put, len(d.entries))
		}
	}
}

// Untagged specs say nothing about sensitivity, and the mix's own specs are unchanged.
func TestUntagged(t *testing.T) {
	p := Plan(true)
	specs := draw()[0].specs()
	c := sim.Config{Specs: specs}
	p.Configure(Inferred, &c)
	if c.Specs[0].Sensitive != nil || specs[0].Sensitive == nil {
		t.Error("tags were not taken, or taken from all")
	}
	p.Configure(runner.BRM, &c)
}
