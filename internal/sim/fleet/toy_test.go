// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// toy is a world in which a workload's latency depends only on the share of its memory that
// is local to its CPUs: enough to test what runs worlds.
type toy struct {
	*windowtest.Host
	config sim.Config
	now    time.Duration
	got    map[string]*sim.Truth
	random detmath.Random
}

var toyShape = func() machine.Machine {
	h := &windowtest.Host{}
	h.Shape([]int{0, 1}, 40, 192*unit.GiB)
	return h.Machine
}()

func newToy(c sim.Config) (world, error) {
	h := &windowtest.Host{}
	h.Shape([]int{0, 1}, 40, 192*unit.GiB)
	return &toy{Host: h, config: c, got: map[string]*sim.Truth{}, random: detmath.NewRandom(c.Seed, "toy")}, nil
}

func (y *toy) Run(d time.Duration) {
	y.Length = d
	for i := range y.config.Specs {
		s := &y.config.Specs[i]
		switch there := s.Arrive <= y.now && (s.Depart == 0 || y.now < s.Depart); {
		case there:
			y.work(s, d.Seconds())
		default:
			y.Remove("/" + s.Name)
		}
	}
	y.now += d
}

func (y *toy) Apply(steps []action.Step) { y.Host.Apply(steps) }

// work runs a workload for some seconds.
func (y *toy) work(s *sim.Spec, seconds float64) {
	l := y.Load("/" + s.Name)
	if !l.CPU.Known() { // it is new: its memory is where it started
		first := detmath.NewRandom(y.config.Seed, s.Name)
		l.Service, l.Approved = s.Service, s.Approved
		at := first.Below(2)
		l.AnonByNode[at] = unit.Measured(s.Memory.Private+s.Memory.Shared, "toy")
		l.Binding.CPUs, l.Binding.Mems = set.CPUSet{}, set.NodeSet{}
		for _, n := range y.Machine.Nodes {
			l.Binding.CPUs = l.Binding.CPUs.Union(n.CPUs)
			l.Binding.Mems = l.Binding.Mems.Union(set.FromNodes(n.ID))
		}
	}
	noise := 1 + float64(0.1*y.random.Float())
	l.CPU = unit.Measured(s.Demand.Rate*s.Work.Cycles/2.7e9*noise, "toy")
	y.Spread(l)
	local := float64(window.FeaturesOf(l.Workload, y.Length).LocalPageRatio.Or(0.5))
	cycles, reads := s.Work.Cycles, 0.0
	for _, r := range s.Work.Regions {
		reads += r.Accesses
		cycles += r.Accesses / r.Parallelism * (243 + float64(130*(1-local)))
	}
	ops := s.Demand.Rate * seconds * noise
	l.LocalLoads, l.RemoteLoads = unit.Measured(uint64(ops*reads*local), "toy"), unit.Measured(uint64(ops*reads*(1-local)), "toy")
	l.Cycles, l.Instructions = unit.Measured(uint64(ops*cycles), "toy"), unit.Measured(uint64(ops*s.Work.Instructions), "toy")
	l.StallCycles = unit.Measured(uint64(ops*(cycles-s.Work.Cycles)), "toy")
	t := y.got[l.ID]
	if t == nil {
		t = &sim.Truth{Workload: l.ID, Service: s.Service}
		y.got[l.ID] = t
	}
	t.Seconds += seconds
	t.Ops += ops
	t.Asked += ops
	t.CPUSeconds += ops * cycles / 2.7e9
	t.Cycles += ops * cycles
	t.Instructions += ops * s.Work.Instructions
	t.Local += ops * reads * local
	t.Remote += ops * reads * (1 - local)
	t.Latency = cycles / 2.7e9 // of the last step only
}

func (y *toy) Truth() []sim.Truth {
	var all []sim.Truth
	for _, t := range y.got {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b sim.Truth) int { return cmp.Compare(a.Workload, b.Workload) })
	y.got = map[string]*sim.Truth{}
	return all
}
