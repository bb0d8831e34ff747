// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/detmath"
)

// Family is the purpose of a mix: the first part of its name, up to the first hyphen.
type Family string

// The families. A mix whose name begins with "vm" has its memory placed in advance: each
// program's on one node, drawn at random, like a virtual machine whose memory was allocated
// there. In the others memory is first touched where threads start.
const (
	Pair        Family = "pair"  // two parallel programs of four threads
	Eight       Family = "eight" // one program of eight threads
	Four        Family = "four"  // one program of four threads, on eight CPUs
	Multi       Family = "multi" // eight programs of one thread
	VMPair      Family = "vmpair"
	VMFour      Family = "vmfour"
	VMMulti     Family = "vmmulti"
	Insensitive Family = "insensitive"
	Short       Family = "short" // jobs that come and go
	Scale       Family = "scale" // more and more threads, on larger machines
	VMScale     Family = "vmscale"
)

// FamilyOf returns the family of a mix by its name.
func FamilyOf(mix string) Family {
	name, _, _ := strings.Cut(mix, "-")
	return Family(name)
}

// sensitive lists the families by which the paper's figures are judged.
var sensitive = []Family{Pair, Eight, Four, Multi, VMPair, VMFour, VMMulti}

// parallelFamilies have programs whose threads meet at spinning barriers.
var parallelFamilies = []Family{Pair, Eight, Four, VMPair, VMFour}

// multiFamilies have programs of one thread.
var multiFamilies = []Family{Multi, VMMulti}

// drawSeed is the seed from which mixes were drawn. It was set before the first comparison.
const drawSeed = 2013

// entry is one workload of a mix.
type entry struct {
	program string
	threads int
	node    int // of its memory; -1: first touch
}

// drawn describes a mix before it is built.
type drawn struct {
	name    string
	entries []entry
}

// draw makes the mixes on Rao's machine, from drawSeed alone.
func draw() (all []drawn) {
	all = append(all, pairs(Pair, 6, false)...)
	all = append(all, alone(Eight, 3, 8, false)...)
	all = append(all, alone(Four, 3, 4, false)...)
	all = append(all, singles(Multi, 4, false)...)
	all = append(all, pairs(VMPair, 4, true)...)
	all = append(all, alone(VMFour, 2, 4, true)...)
	all = append(all, singles(VMMulti, 4, true)...)
	return append(all, unmoved()...)
}

func numbered(f Family, i int) string { return fmt.Sprintf("%s-%d", f, i+1) }

// nodeFor draws the node of a VM's memory.
func nodeFor(r *detmath.Random, vm bool) int {
	if !vm {
		return -1
	}
	return r.Below(2)
}

// pairs makes mixes of two different programs each. A pair that was drawn before is drawn
// again.
func pairs(f Family, n int, vm bool) (all []drawn) {
	r := detmath.NewRandom(drawSeed, string(f))
	for seen := map[[2]int]bool{}; len(all) < n; {
		first := r.Below(len(parallel))
		second := (first + 1 + r.Below(len(parallel)-1)) % len(parallel)
		if key := [2]int{min(first, second), max(first, second)}; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		all = append(all, drawn{numbered(f, len(all)), []entry{
			{parallel[first], 4, nodeFor(&r, vm)}, {parallel[second], 4, nodeFor(&r, vm)},
		}})
	}
	return all
}

// alone makes mixes of one program each, all different.
func alone(f Family, n, threads int, vm bool) (all []drawn) {
	r := detmath.NewRandom(drawSeed, string(f))
	left := slices.Clone(parallel)
	for i := range n {
		k := r.Below(len(left))
		all = append(all, drawn{numbered(f, i), []entry{{left[k], threads, nodeFor(&r, vm)}}})
		left = append(left[:k], left[k+1:]...)
	}
	return all
}

// singles makes mixes of eight programs, which may repeat.
func singles(f Family, n int, vm bool) (all []drawn) {
	r := detmath.NewRandom(drawSeed, string(f))
	for i := range n {
		d := drawn{name: numbered(f, i)}
		for range 8 {
			d.entries = append(d.entries, entry{single[r.Below(len(single))], 1, nodeFor(&r, vm)})
		}
		all = append(all, d)
	}
	return all
}

// unmoved makes the mixes that gain nothing from moving, and pay for it.
func unmoved() []drawn {
	var one []entry
	for i := range 8 {
		one = append(one, entry{insensitive[1+i%2], 1, -1})
	}
	return []drawn{
		{numbered(Insensitive, 0), []entry{{"ep", 8, -1}}},
		{numbered(Insensitive, 1), []entry{{"ep", 4, -1}, {"ep", 4, -1}}},
		{numbered(Insensitive, 2), one},
	}
}

// specs returns a drawn mix's workloads, by position: two entries of one program are two
// workloads.
func (d drawn) specs() []sim.Spec {
	var all []sim.Spec
	for i, e := range d.entries {
		var touch set.NodeSet
		if e.node >= 0 {
			touch = set.FromNodes(e.node)
		}
		all = append(all, specOf(e.program, fmt.Sprintf("%02d-%s", i, e.program), e.threads, touch))
	}
	return all
}

// about names the programs.
func (d drawn) about() string {
	var parts []string
	for _, e := range d.entries {
		part := fmt.Sprintf("%d × %s", e.threads, e.program)
		if e.node >= 0 {
			part += fmt.Sprintf(" (memory on node %d)", e.node)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

func on(name string) func(m *arena.Machine) bool {
	return func(m *arena.Machine) bool { return m.Name == name }
}

// mix builds the mix on Rao's machine.
func (d drawn) mix(lasts time.Duration) arena.Mix {
	return arena.Mix{
		Name: d.name, About: d.about(), Fits: on(catalog.DualE5620),
		Specs: func(*arena.Machine, uint64) []sim.Spec { return d.specs() },
		Lasts: lasts, Warmup: lasts / 10, Period: time.Second / 2, Step: step,
	}
}

// step is the world's step, and the paper's period.
const step = 10 * time.Millisecond

// scales lists numbers of threads, and a machine with as many CPUs.
var scales = []struct {
	threads int
	machine string
}{
	{2, catalog.DualE5620}, {4, catalog.DualE5620}, {8, catalog.DualE5620},
	{16, catalog.FourNodes}, {64, catalog.Opteron}, {256, catalog.Torus},
}

// scaleMix has programs of four threads, or of two where there are no more, all in turn.
func scaleMix(f Family, threads int, machine string, lasts time.Duration) arena.Mix {
	each := min(4, threads)
	r := detmath.NewRandom(drawSeed, string(f), fmt.Sprint(threads))
	d := drawn{name: fmt.Sprintf("%s-%d", f, threads)}
	for i := range threads / each {
		e := entry{parallel[i%len(parallel)], each, -1}
		if f == VMScale {
			e.node = r.Below(many)
		}
		d.entries = append(d.entries, e)
	}
	mix := d.mix(lasts)
	mix.About = fmt.Sprintf("%d threads of parallel programs of %d in turn, on %s", threads, each, machine)
	if f == VMScale {
		mix.About += "; each program's memory is on one node, drawn"
	}
	mix.Fits = on(machine)
	mix.Specs = func(m *arena.Machine, _ uint64) []sim.Spec {
		there := drawn{d.name, slices.Clone(d.entries)}
		for i := range there.entries {
			if e := &there.entries[i]; e.node >= 0 {
				e.node = m.Host.Nodes[e.node%len(m.Host.Nodes)].ID
			}
		}
		return there.specs()
	}
	return mix
}

// many is far above the number of nodes, so the remainder of a division by it is even.
const many = 1 << 40

// jobLasts is the length of a short job: ten periods of the paper. Eight jobs run at any
// time; the programs are the multiprogrammed ones, in turn.
const jobLasts = 100 * time.Millisecond

func shortMix(lasts time.Duration) arena.Mix {
	return arena.Mix{
		Name: string(Short) + "-jobs", About: fmt.Sprintf("eight at a time of the programs of one thread, each there for %v", jobLasts),
		Fits: on(catalog.DualE5620), Lasts: lasts, Warmup: lasts / 10, Period: time.Second / 2, Step: step,
		Specs: func(*arena.Machine, uint64) []sim.Spec { return jobs(lasts) },
	}
}

// jobs fills eight slots, a tenth of a job's time apart, so that jobs do not all start at
// once.
func jobs(lasts time.Duration) (all []sim.Spec) {
	for slot := range 8 {
		for i, at := 0, time.Duration(slot)*jobLasts/10; at+jobLasts <= lasts; i, at = i+1, at+jobLasts {
			p := single[(3*i+slot)%len(single)]
			s := specOf(p, fmt.Sprintf("%d-%04d-%s", slot, i, p), 1, set.NodeSet{})
			s.Arrive, s.Depart = at, at+jobLasts
			all = append(all, s)
		}
	}
	return all
}
