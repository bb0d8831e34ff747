// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"time"

	"homenode/internal/machine"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// Mix is workloads that share a machine, sized by its CPUs and memory. A seed draws which
// applications, of what size, and when they arrive.
type Mix struct {
	Name, About string
	Make        func(m machine.Machine, y memsys.System, seed uint64) []sim.Spec
}

// Mixes lists all mixes; their names do not change.
func Mixes() []Mix {
	all := []Mix{
		{"vms", "Lakew's virtual machines, small to huge, on nine tenths of the CPUs.", VMMix},
		{"parallel", "Two or three parallel programs whose threads spin at barriers, on all CPUs.", ParallelMix},
		{"multiprogrammed", "Single-threaded programs, as many as CPUs.", SingleMix},
		{"services", "Services whose requests take six tenths of the CPU time.", ServiceMix},
		{"insensitive", "Programs that compute, on all CPUs.", InsensitiveMix},
		{"mixed-classes", "Drawn applications of all classes, on nine tenths of the CPUs.", DrawnMix},
	}
	for i := range all {
		all[i].Make = approved(all[i].Make)
	}
	return all
}

const (
	// filled is Lakew's share of CPUs that VMs have: 256 of 288.
	filled = 8.0 / 9
	// usable is the share of memory that workloads may have. The kernel needs some, and on
	// a completely full node every first touch falls over.
	usable = 0.95
	// resident is the share of a VM's memory that it has touched. The paper does not say.
	resident = 0.5
	// between arrivals, on average. The paper says only that VMs arrive. It is short, so
	// that all are there before a run's figures begin.
	gap = 3 * time.Second
)

// host is the part of a machine that sizes a mix.
type host struct {
	cpus   int
	memory float64 // bytes that workloads may have
}

func hostOf(m machine.Machine) host {
	h := host{cpus: m.CPUsOf(m.NodeIDs()).Len()}
	for _, n := range m.Nodes {
		h.memory += float64(n.Memory.Or(0)) * usable
	}
	return h
}

// share is the memory for this many CPUs.
func (h host) share(cpus int) unit.Bytes {
	return unit.Bytes(h.memory / float64(h.cpus) * float64(cpus))
}

// deck gives applications in a drawn order; one repeats only after all have come.
type deck struct {
	r    *detmath.Random
	all  []row
	left []int
}

func newDeck(r *detmath.Random, all []row) *deck { return &deck{r: r, all: all} }

func (d *deck) next() row {
	if len(d.left) == 0 {
		for i := range d.all {
			d.left = append(d.left, i)
		}
	}
	k := d.r.Below(len(d.left))
	i := d.left[k]
	d.left[k] = d.left[len(d.left)-1]
	d.left = d.left[:len(d.left)-1]
	return d.all[i]
}

// arriving gives specs their times, one after the other, in a drawn order; the first
// arrives at once.
func arriving(r *detmath.Random, specs []sim.Spec) []sim.Spec {
	order := make([]int, len(specs))
	for i := range order {
		k := r.Below(i + 1)
		order[i], order[k] = order[k], i
	}
	at := 0.0
	for _, i := range order {
		specs[i].Arrive = time.Duration(at * float64(time.Second)).Truncate(time.Millisecond)
		at += gap.Seconds() * r.Exponential()
	}
	return specs
}

// vmType is a type of Lakew's, in a system of 288 cores.
type vmType struct {
	name  string
	cores int
	count int
}

var vmTypes = []vmType{{"small", 4, 12}, {"medium", 8, 4}, {"large", 16, 2}, {"huge", 72, 2}}

// vmsOf are the sizes of a machine's VMs:
//
//  1. Each type has the same share of the machine's CPUs as of 288, at least one.
//  2. VMs are left out from the small end until the rest fits into 8/9 of the CPUs.
func vmsOf(cpus int) []vmType {
	var all []vmType
	sum := 0
	for _, t := range vmTypes { // 1
		t.cores = max(1, (t.cores*cpus+144)/288)
		for range t.count {
			all = append(all, t)
			sum += t.cores
		}
	}
	for sum > int(filled*float64(cpus)) && len(all) > 1 { // 2
		sum -= all[0].cores
		all = all[1:]
	}
	return all
}

// VMMix are VMs of Lakew's types, each with one of its applications, and with memory in
// proportion to cores, of which half is touched.
func VMMix(m machine.Machine, _ memsys.System, seed uint64) []sim.Spec {
	r := detmath.NewRandom(seed, "mix", "vms")
	h, d := hostOf(m), newDeck(&r, lakew)
	var specs []sim.Spec
	for i, t := range vmsOf(h.cpus) {
		app := d.next()
		memory := unit.Bytes(resident * float64(h.share(t.cores)))
		specs = append(specs, app.spec(fmt.Sprintf("%s-%02d-%s", t.name, i+1, app.name), t.cores, memory))
	}
	return arriving(&r, specs)
}

// problem is the memory of a parallel program's thread: NAS's class C is tens of MiB per
// thread on tens of threads. Our choice.
const problem = 48 * unit.MiB

// ParallelMix is two or three of NAS's programs, without ep; each has an equal part of the
// CPUs, one thread per CPU.
func ParallelMix(m machine.Machine, _ memsys.System, seed uint64) []sim.Spec {
	r := detmath.NewRandom(seed, "mix", "parallel")
	h, d := hostOf(m), newDeck(&r, nas[:len(nas)-1])
	n := 2 + r.Below(2)
	var specs []sim.Spec
	for i := range n {
		threads := h.cpus*(i+1)/n - h.cpus*i/n
		app := d.next()
		specs = append(specs, app.spec(fmt.Sprintf("%s-%d", app.name, i+1), threads, unit.Bytes(threads)*problem))
	}
	return arriving(&r, specs)
}

// SingleMix is one of SPEC's programs on each CPU, all ten equally often, give or take one.
func SingleMix(m machine.Machine, _ memsys.System, seed uint64) []sim.Spec {
	r := detmath.NewRandom(seed, "mix", "multiprogrammed")
	h, d := hostOf(m), newDeck(&r, spec2006)
	var specs []sim.Spec
	for i := range h.cpus {
		app := d.next()
		specs = append(specs, app.spec(fmt.Sprintf("%s-%03d", app.name, i+1), 1, 0))
	}
	return together(&r, specs)
}

// together lets all arrive within one gap: a batch of programs is started at once.
func together(r *detmath.Random, specs []sim.Spec) []sim.Spec {
	for i := range specs {
		specs[i].Arrive = time.Duration(r.Float() * float64(gap)).Truncate(time.Millisecond)
	}
	return specs
}

// InsensitiveMix is programs that compute: single-threaded ones on half of the CPUs, ep and
// mpegaudio on a quarter each.
func InsensitiveMix(m machine.Machine, _ memsys.System, seed uint64) []sim.Spec {
	r := detmath.NewRandom(seed, "mix", "insensitive")
	h, d := hostOf(m), newDeck(&r, spec2006[len(spec2006)-4:])
	quarter := max(1, h.cpus/4)
	var specs []sim.Spec
	for i := range h.cpus - 2*quarter {
		app := d.next()
		specs = append(specs, app.spec(fmt.Sprintf("%s-%03d", app.name, i+1), 1, 0))
	}
	for _, name := range []string{"ep", "mpegaudio"} {
		for _, a := range rows() {
			if a.name == name {
				specs = append(specs, a.spec(name, quarter, 0))
			}
		}
	}
	return together(&r, specs)
}

// DrawnMix is drawn applications, with one thread up to an eighth of the CPUs each, until
// 8/9 of these are in use. None of them is Generate's: the policies' inference of classes
// is fitted and judged on those, and would recognise them.
func DrawnMix(m machine.Machine, _ memsys.System, seed uint64) []sim.Spec {
	r := detmath.NewRandom(seed, "mix", "mixed-classes")
	h := hostOf(m)
	left := int(filled * float64(h.cpus))
	apps := generate("m", left, seed, "mix", "mixed-classes", "app")
	var specs []sim.Spec
	for i := 0; left > 0; i++ {
		threads := min(left, 1+r.Below(max(1, h.cpus/8)))
		left -= threads
		s := apps[i].Spec(fmt.Sprintf("%s-%d", apps[i].Name, threads), threads, unit.Bytes(float64(h.share(threads))/2))
		specs = append(specs, s)
	}
	return arriving(&r, specs)
}
