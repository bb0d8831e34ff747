// SPDX-License-Identifier: Apache-2.0

package lakew

import (
	"fmt"
	"strings"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
)

// Size is a type of VM.
type Size struct {
	Name   string
	Cores  int
	Memory unit.Bytes
	Count  int // in the paper's experiment
}

// Sizes are the paper's: 256 of 288 cores, and 1,024 of 1,152 GB.
var Sizes = []Size{
	{"small", 4, 16 * unit.GiB, 12},
	{"medium", 8, 32 * unit.GiB, 4},
	{"large", 16, 64 * unit.GiB, 2},
	{"huge", 72, 288 * unit.GiB, 2},
}

const (
	// between is the mean time between arrivals. The paper says only that VMs arrive.
	between = 15 * time.Second
)

// population says which application runs in which VM: by size, one application per VM.
// Every seed has the same population, so the runs of an application in VMs of one size can
// be compared.
type population map[string][]string

// The populations. Each of the paper's applications runs in small VMs. Stream runs in
// small, medium and large VMs as in the paper; so do Sunflow, Derby and FFT, so that sizes
// can be compared by the same applications. Huge VMs run what needs much memory.
var (
	first = population{
		"small":  {"derby", "derby", "fft", "fft", "sockshop", "sockshop", "sor", "sor", "stream", "stream", "sunflow", "mpegaudio"},
		"medium": {"stream", "derby", "fft", "sockshop"},
		"large":  {"stream", "sunflow"},
		"huge":   {"neo4j", "neo4j"},
	}
	second = population{
		"small":  {"derby", "fft", "sockshop", "sor", "stream", "stream", "sunflow", "sunflow", "mpegaudio", "mpegaudio", "neo4j", "neo4j"},
		"medium": {"sunflow", "sor", "mpegaudio", "neo4j"},
		"large":  {"derby", "fft"},
		"huge":   {"neo4j", "sockshop"},
	}
)

// vm is one VM of a population.
type vm struct {
	size  Size
	app   string
	index int // among the VMs of its size, from 1
}

// name is "small-03-derby"; sizeOf and the judge parse it.
func (v vm) name() string { return fmt.Sprintf("%s-%02d-%s", v.size.Name, v.index, v.app) }

// sizeOf returns the size of a workload by its ID; "": it is not a VM of the experiment.
func sizeOf(id string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(id, "/"), "-")
	for _, s := range Sizes {
		if s.Name == name {
			return name
		}
	}
	return ""
}

// vms lists the VMs of a population, in the order of sizes.
func (p population) vms() []vm {
	var all []vm
	for _, s := range Sizes {
		for i, app := range p[s.Name] {
			all = append(all, vm{s, app, i + 1})
		}
	}
	return all
}

// part keeps every n-th VM of a size, at least one: for a quick run.
func (p population) part(n int) population {
	some := population{}
	for size, apps := range p {
		for i := 0; i < len(apps); i += n {
			some[size] = append(some[size], apps[i])
		}
	}
	return some
}

// without removes the VMs of a size.
func (p population) without(size string) population {
	some := population{}
	for s, apps := range p {
		if s != size {
			some[s] = apps
		}
	}
	return some
}

// arrivals returns the VMs in an order, and at times, that the seed draws. They arrive one
// after the other, the first at once.
func (p population) arrivals(seed uint64) ([]vm, []time.Duration) {
	all := p.vms()
	random := detmath.NewRandom(seed, "lakew", "arrivals")
	for i := len(all) - 1; i > 0; i-- {
		k := random.Below(i + 1)
		all[i], all[k] = all[k], all[i]
	}
	times, at := make([]time.Duration, len(all)), time.Duration(0)
	for i := range times {
		times[i] = at.Round(time.Millisecond)
		at += time.Duration(random.Exponential() * float64(between))
	}
	return all, times
}

// specs returns the VMs as workloads. An unknown application is a bug of this package; a
// test holds that there is none.
func (p population) specs(seed uint64) []sim.Spec {
	all, times := p.arrivals(seed)
	specs := make([]sim.Spec, len(all))
	for i, v := range all {
		specs[i] = v.spec()
		specs[i].Arrive = times[i]
	}
	return specs
}
