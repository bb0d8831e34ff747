// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/window"
)

// amounts is the Population whose threads are amounts by node, for example 2.3 of them on
// one node. All threads of a workload are alike. linux.Host places and moves them.
type amounts struct {
	*World
	places []place // parallel to the machine's nodes
	pools  []*pool // present workloads, parallel to World.live

	// Reused from step to step.
	wants, idle, done []float64
	sharers           []float64 // workloads that use a node's CPUs
	shares            []float64 // of Load.Home
}

// pool is a workload's threads.
type pool struct {
	*Workload
	share  []float64 // by domain: share of its work on the domain's node; the sum per node is 1
	cycles []float64 // by domain: cycles of an operation, as last known

	class         action.Class // amounts_isolation.go
	llc           float64      // bytes, at the end of the last step
	traffic, near float64      // bytes since the last Window, and how many of them on the CPUs' own nodes
	waited        float64      // seconds since the last Window
}

func newAmounts(w *World) *amounts {
	n := len(w.Config.Machine.Nodes)
	return &amounts{World: w, places: placesOf(w.Config), idle: make([]float64, n), sharers: make([]float64, n)}
}

// of returns the pool of a workload that is present.
func (w *amounts) of(wl *Workload) *pool {
	return w.pools[slices.IndexFunc(w.pools, func(p *pool) bool { return p.Workload == wl })]
}

// Begin leaves the placing to linux.Host. The cost of an operation is a guess until the
// first step.
func (w *amounts) Begin(wl *Workload) {
	domains := len(w.Config.System.Domains)
	p := &pool{Workload: wl, share: make([]float64, domains), cycles: make([]float64, domains)}
	wl.Group.CPUs = w.count(wl.CPUs)
	w.spread(p)
	for d, dom := range w.Config.System.Domains {
		p.cycles[d] = CyclesAlone(&w.Config.System, &wl.Works[0], dom.Node)
	}
	w.pools = append(w.pools, p)
}

func (w *amounts) End(wl *Workload) {
	w.pools = slices.DeleteFunc(w.pools, func(p *pool) bool { return p.Workload == wl })
}

// Open and Close have nothing to do: private pages are always listed by the node of their
// threads.
func (w *amounts) Open(*Workload)  {}
func (w *amounts) Close(*Workload) {}

// MainNode has most of the threads; of several such nodes it is the one with the most free
// memory.
func (w *amounts) MainNode(wl *Workload) int {
	on, best := wl.Group.On, 0
	for n := range on {
		more := on[n] - on[best]
		if more > 1e-9 || more > -1e-9 && w.Host.Free(n) > w.Host.Free(best)+1e-6 {
			best = n
		}
	}
	return best
}

func (w *amounts) CPUsChanged(wl *Workload) {
	w.Host.SetCPUs(&wl.Group, w.count(wl.CPUs))
	w.spread(w.of(wl))
}

// Take handles isolation; amounts have no threads to pin.
func (w *amounts) Take(wl *Workload, s action.Step) (action.Outcome, bool) {
	if s.Kind == action.SetClass {
		return w.setClass(w.of(wl), s), true
	}
	return action.Outcome{}, false
}

func (w *amounts) Tell(wl *Workload, x *window.Workload, r Reading) {
	for n := range w.places {
		x.AnonByNode[n] = Pages(w.anonOn(&wl.Group, n))
	}
	if w.Config.Resctrl {
		w.of(wl).tellShared(x, r)
	}
}

func (w *amounts) anonOn(g *linux.Group, node int) float64 {
	n := len(w.places)
	pages := g.Memory.Shared[node]
	for t := range n {
		pages += g.Memory.Private[t*n+node]
	}
	return pages
}

// P99 is unknown: all operations of a closed loop take the mean.
func (w *amounts) P99(*Workload) float64 { return 0 }

// count returns how many CPUs of a set each node has.
func (w *amounts) count(cpus set.CPUSet) []float64 {
	by := make([]float64, len(w.places))
	for i, p := range w.places {
		by[i] = float64(cpus.Intersect(p.cpus).Len())
	}
	return by
}

// spread divides a workload's work on a node among the node's domains, by the CPUs that it
// may use.
func (w *amounts) spread(wl *pool) {
	for _, p := range w.places {
		sum := 0.0
		for k, d := range p.domains {
			share := w.Config.System.Domains[d].CPUs
			if p.sets != nil {
				share = float64(wl.CPUs.Intersect(p.sets[k]).Len())
			}
			wl.share[d] = share
			sum += share
		}
		for _, d := range p.domains {
			wl.share[d] /= max(sum, 1e-300)
		}
	}
}

// takeMovers subtracts the mover's CPU time from the nodes.
func (w *amounts) takeMovers(dt float64) {
	for n, p := range w.places {
		taken := w.Mover.Take(n, dt)
		w.Busy[n] += taken
		w.Host.Nodes[n].CPUs = p.count - taken/dt
	}
}

// giveMovers gives the nodes' CPUs back.
func (w *amounts) giveMovers() {
	for n, p := range w.places {
		w.Host.Nodes[n].CPUs = p.count
	}
}

// served is the part of a move that memory served in a step (World.MovePages).
func (w *amounts) served(m *Move, res *memsys.Result, dt float64) (pages, cpu, each float64) {
	loads := m.Served(res.Loads)
	for k := range loads {
		r := &loads[k]
		pages += r.Ops * dt
		cpu += r.Ops * dt * r.Cycles
	}
	cpu /= w.Config.System.Hz
	if pages > m.Pages*(1-1e-9) { // except for rounding
		pages = m.Pages
	}
	return pages, cpu, cpu / pages
}
