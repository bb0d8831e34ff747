// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"

	"homenode/internal/machine"
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// Finding is the class of an application on a machine, and the evidence. Measured slowdowns
// of a real program give one as well (Judge).
type Finding struct {
	App       string          `json:"app"`
	Machine   string          `json:"machine"`
	How       unit.Source     `json:"how"`
	From      string          `json:"from,omitempty"` // what measured it, and how
	Threads   int             `json:"threads"`
	Distance  unit.Opt[int]   `json:"distance"` // distance of the memory for Remote
	Slowdowns vmmap.Slowdowns `json:"slowdowns"`
	Class     Class           `json:"class"`
	Sensitive unit.Opt[bool]  `json:"sensitive"`
}

// Judge fills in what follows from the slowdowns.
func (f Finding) Judge() Finding {
	f.Class, f.Sensitive = vmmap.ClassOf(f.Slowdowns)
	return f
}

// nominal is the SLIT distance for remote memory (vmmap.Slowdowns).
const nominal = 20

// Truth tries an application in a machine's memory system, as vmmap.Slowdowns defines:
//
//  1. It has a thread on half of the cores of one last-level cache, and its memory is
//     local. Each core has at most one busy CPU: competition between siblings is not part of
//     the classes.
//  2. Hurt: beside the reference devil on the other half.
//  3. Harm: the loss of the reference rabbit there.
//  4. Remote: alone, with all memory on the node whose distance is nearest to 20.
//
// It works as fast as it can: it neither thinks nor waits for requests. A cache of one core
// has no other half; then classes are unknown, as sensitivity is on a single node.
func Truth(a App, m machine.Machine, y *memsys.System) Finding {
	t := trial{y: y, at: benchOf(y)}
	f := Finding{App: a.Name, Machine: y.Name, How: unit.HowModelled}
	cores := int(y.Domains[t.at].CPUs) / max(1, y.Threads)
	t.half = max(1, cores/2) // 1
	f.Threads = t.half
	spec := a.Spec("trial", t.half, 0)
	t.work = workOf(spec)
	if cores >= 2 {
		devil, rabbit := t.references()
		f.Slowdowns.Hurt = unit.Some(t.longer(t.work, devil))  // 2
		f.Slowdowns.Harm = unit.Some(t.longer(rabbit, t.work)) // 3
	}
	if far, distance, ok := remote(m, y, y.Domains[t.at].Node); ok { // 4
		f.Distance = unit.Some(distance)
		f.Slowdowns.Remote = unit.Some(t.farther(far))
	}
	return f.Judge()
}

// Known is the application with its true class on a machine.
func (a App) Known(m machine.Machine, y *memsys.System) App {
	f := Truth(a, m, y)
	a.Class, a.Sensitive = f.Class, f.Sensitive.Or(false)
	return a
}

// trial is the place of the experiment.
type trial struct {
	y      *memsys.System
	at     int // domain
	half   int // cores
	work   *memsys.Work
	solver memsys.Solver
}

// benchOf is the first domain whose node has memory; 0 where none has.
func benchOf(y *memsys.System) int {
	for i, d := range y.Domains {
		if d.CPUs > 0 && y.Nodes[d.Node].Memory > 0 {
			return i
		}
	}
	return 0
}

// The references' own work for each access: as little as a loop has.
const referenceCycles = 10

// references are the devil and the rabbit of vmmap.Slowdowns.
func (t *trial) references() (devil, rabbit *memsys.Work) {
	llc := t.y.Domains[t.at].LLC
	devil = &memsys.Work{Cycles: referenceCycles, Instructions: referenceCycles, Regions: []memsys.Region{
		{Bytes: 4 * llc, Accesses: 1, Parallelism: 10, Stream: true},
	}}
	rabbit = &memsys.Work{Cycles: referenceCycles, Instructions: referenceCycles, Regions: []memsys.Region{
		{Bytes: llc / 2, Shared: true, Accesses: 1, Parallelism: 1},
	}}
	return devil, rabbit
}

// load is the load of one half, with all of its memory on a node.
func (t *trial) load(workload int, w *memsys.Work, node int) memsys.Load {
	home := make([]float64, len(t.y.Nodes))
	home[node] = 1
	n := float64(t.half)
	return memsys.Load{Workload: workload, Domain: t.at, CPUs: n, Threads: n, Ops: math.Inf(1), Work: w, Home: home, Slow: 1}
}

// first is the operations per second of the first of some loads.
func (t *trial) first(loads ...memsys.Load) float64 {
	return t.solver.Solve(t.y, loads).Loads[0].Ops
}

// longer is how much longer its operations take beside the other load.
func (t *trial) longer(w, beside *memsys.Work) float64 {
	node := t.y.Domains[t.at].Node
	alone := t.first(t.load(0, w, node))
	return alone/t.first(t.load(0, w, node), t.load(1, beside, node)) - 1
}

// farther is how much longer they take with the memory elsewhere.
func (t *trial) farther(node int) float64 {
	alone := t.first(t.load(0, t.work, t.y.Domains[t.at].Node))
	return alone/t.first(t.load(0, t.work, node)) - 1
}

// remote is the node with memory whose distance is nearest to the nominal one, the first of
// several; false if there is no other node with memory.
func remote(m machine.Machine, y *memsys.System, from int) (node, distance int, ok bool) {
	off := math.MaxInt
	for i, n := range y.Nodes {
		d, known := m.Distance(y.Nodes[from].ID, n.ID).Get()
		away := max(d-nominal, nominal-d)
		if i != from && n.Memory > 0 && known && away < off {
			node, distance, off, ok = i, d, away, true
		}
	}
	return node, distance, ok
}

// workOf is an operation of a spec without phases.
func workOf(s sim.Spec) *memsys.Work {
	work := s.Work.In(sim.PhaseSpec{})
	return &work
}
