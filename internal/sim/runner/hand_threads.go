// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
	"homenode/internal/window"
)

// handThreads is Rao's hand-optimised placement: an operator who knows the machine and
// every workload pins each thread once, at the first window and again when workloads come
// or go. Memory stays where it is. As Hand it sees the specs and the machine's model, which
// no policy can. It is no ceiling: the oracle is simpler than the world, so its best need
// not be best in the world.
type handThreads struct {
	sys   *memsys.System
	specs []known
	here  []string // IDs of the last decision
	least int      // least number of workloads for a decision
	homes map[threadKey]int
	pins  map[threadKey]*pin
}

type threadKey struct {
	workload string
	thread   int
}

// pin is the decision for a thread, and how often it was requested.
type pin struct {
	cpus  set.CPUSet
	tries int
}

func newHandThreads(o Options) *handThreads {
	h := &handThreads{sys: &o.System, homes: map[threadKey]int{}, pins: map[threadKey]*pin{}}
	h.specs, h.least = knownOf(o)
	return h
}

func (h *handThreads) Name() string { return HandThreads }

func (h *handThreads) Step(m machine.Machine, w window.Window) []action.Action {
	var here []string
	for i := range w.Workloads {
		if len(w.Workloads[i].Threads) > 0 {
			here = append(here, w.Workloads[i].ID)
		}
	}
	if !slices.Equal(here, h.here) && len(here) >= h.least {
		h.here = here
		h.forget(here)
		h.decide(m, w)
	}
	return h.wanted(w)
}

// wanted are for threads that are not yet where they should be: a refusal may pass.
func (h *handThreads) wanted(w window.Window) []action.Action {
	var actions []action.Action
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		for _, t := range wl.Threads {
			p := h.pins[threadKey{wl.ID, t.ID}]
			if p == nil || p.tries >= mostTries || t.Pinned || t.Ours && t.Allowed == p.cpus {
				continue
			}
			p.tries++
			actions = append(actions, action.Action{
				Kind: action.Pin, Workload: wl.ID, Thread: t.ID, CPUs: p.cpus,
				Reason: action.Reason{Rule: "hand-threads", Workload: wl.ID},
			})
		}
	}
	return actions
}

// forget drops workloads that are gone: one that comes back is a new one.
func (h *handThreads) forget(here []string) {
	for k := range h.pins {
		if !slices.Contains(here, k.workload) {
			delete(h.pins, k)
		}
	}
	for k := range h.homes {
		if !slices.Contains(here, k.workload) {
			delete(h.homes, k)
		}
	}
}

// decide searches for the best placement of the present threads, and gives each thread a
// CPU.
func (h *handThreads) decide(m machine.Machine, w window.Window) {
	domains := domainCPUs(m, h.sys)
	var jobs []ThreadJob
	var keys []threadKey
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		k := slices.IndexFunc(h.specs, func(k known) bool { return k.id == wl.ID })
		if k < 0 || len(wl.Threads) == 0 {
			continue
		}
		jobs = append(jobs, h.job(m, w, wl, h.specs[k].spec))
		for _, t := range wl.Threads {
			keys = append(keys, threadKey{wl.ID, t.ID})
		}
	}
	places := SearchThreads(h.sys, jobs)
	for i, cpus := range cpusOf(domains, places, placedOn(w, keys)) {
		h.pins[keys[i]] = &pin{cpus: cpus}
	}
}

// job is a workload in the search's form. Private memory is where the thread was when it
// was first seen, unless the spec says where it was touched: a window has the pages of a
// workload, but not of its threads. Pages that are not private are shared.
func (h *handThreads) job(m machine.Machine, w window.Window, wl *window.Workload, spec *sim.Spec) ThreadJob {
	job := ThreadJob{Spec: spec, Shared: make([]float64, len(h.sys.Nodes))}
	pages, _ := wl.PagesByNode()
	for i, n := range h.sys.Nodes {
		if k, ok := w.NodeIndex(n.ID); ok && k < len(pages) {
			job.Shared[i] = float64(pages[k])
		}
	}
	each := float64(spec.Memory.Private) / float64(max(1, spec.Threads))
	for _, t := range wl.Threads {
		home := make([]float64, len(h.sys.Nodes))
		for _, node := range h.homeOf(m, wl.ID, t, spec) {
			home[node] = 1
		}
		normalise(home)
		for i, share := range home {
			job.Shared[i] = max(0, job.Shared[i]-each*share)
		}
		job.Private = append(job.Private, home)
	}
	if normalise(job.Shared); detmath.Sum(job.Shared) == 0 && len(job.Private) > 0 {
		copy(job.Shared, job.Private[0])
	}
	return job
}

// homeOf are the indexes of the nodes of a thread's private memory.
func (h *handThreads) homeOf(m machine.Machine, id string, t window.Thread, spec *sim.Spec) []int {
	var nodes []int
	for _, some := range []set.NodeSet{spec.Start.Bind, spec.Start.Interleave, spec.Start.Touch} {
		for i, n := range h.sys.Nodes {
			if len(nodes) < some.Len() && some.Has(n.ID) {
				nodes = append(nodes, i)
			}
		}
	}
	if len(nodes) > 0 {
		return nodes
	}
	key := threadKey{id, t.ID}
	node, ok := h.homes[key]
	if !ok {
		cpu, _ := t.CPU.Get()
		node = max(0, slices.IndexFunc(m.Nodes, func(n machine.Node) bool { return n.CPUs.Has(cpu) }))
		h.homes[key] = node
	}
	return []int{node}
}

// normalise turns amounts into shares; all 0 stay so.
func normalise(of []float64) {
	all := detmath.Sum(of)
	for i := range of {
		if all > 0 {
			of[i] /= all
		}
	}
}

// placedOn is the CPU of each thread; -1: unknown.
func placedOn(w window.Window, keys []threadKey) []int {
	on := make([]int, len(keys))
	for i, k := range keys {
		on[i] = -1
		wl, _ := w.Workload(k.workload)
		if at := slices.IndexFunc(wl.Threads, func(t window.Thread) bool { return t.ID == k.thread }); at >= 0 {
			on[i] = wl.Threads[at].CPU.Or(-1)
		}
	}
	return on
}

// domainCPUs are the CPUs of each domain, as in a world.
func domainCPUs(m machine.Machine, sys *memsys.System) []set.CPUSet {
	out := make([]set.CPUSet, len(sys.Domains))
	for cpu, d := range (sim.Config{Machine: m, System: *sys}).Domains() {
		if d >= 0 {
			out[d] = out[d].With(cpu)
		}
	}
	return out
}

// cpusOf gives each thread of a domain a CPU of its own: its present one if possible, else
// the first free one. Which one makes no difference here: memsys knows only how many CPUs
// of a domain are busy, and computes siblings from that number. Where there are more
// threads than CPUs, all of them may use the whole domain.
func cpusOf(domains []set.CPUSet, places, on []int) []set.CPUSet {
	out := make([]set.CPUSet, len(places))
	for d, cpus := range domains {
		var here []int
		for i, at := range places {
			if at == d {
				here = append(here, i)
			}
		}
		if len(here) > cpus.Len() {
			for _, i := range here {
				out[i] = cpus
			}
			continue
		}
		free := cpus
		for _, i := range here {
			if free.Has(on[i]) {
				out[i], free = set.FromCPUs(on[i]), free.Without(on[i])
			}
		}
		for _, i := range here {
			if cpu, ok := free.First(); ok && out[i].IsEmpty() {
				out[i], free = set.FromCPUs(cpu), free.Without(cpu)
			}
		}
	}
	return out
}
