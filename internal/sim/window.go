// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// simulator is where all figures come from.
	simulator = "simulator"
	// A rate or a counter's delta needs two readings: why there is none, in the words of
	// the kernel's reader.
	firstWindow = "first window of it: no reading before"
	noLength    = "a window of no length"
)

// Window is what happened since the last one, as a kernel would tell it: counters
// are deltas, figures are modelled. Outcomes are those of Apply since.
func (w *World) Window() window.Window {
	w.endMoves()
	w.seq++
	length := w.now - w.since
	out := window.Window{
		Schema: window.Schema, Seq: w.seq, At: w.c.Start.Add(w.now).UTC(), Length: length,
		Nodes: make([]window.Node, len(w.places)), Outcomes: w.outcomes, Problems: w.problems(),
	}
	w.since, w.outcomes = w.now, nil
	w.workloads(&out, length.Seconds())
	w.nodes(&out, length.Seconds())
	return out
}

// nodes adds up what the workloads hold; they are in the window already.
func (w *World) nodes(out *window.Window, seconds float64) {
	for n, p := range w.places {
		var anon, file unit.Bytes
		for _, wl := range out.Workloads {
			anon += wl.AnonByNode[n].Or(0)
			file += wl.FileByNode[n].Or(0)
		}
		memory := linux.BytesOf(w.host.Nodes[n].Pages)
		free := max(0, memory-linux.BytesOf(w.host.Nodes[n].Other)-anon-file)
		out.Nodes[n] = window.Node{
			ID: p.id, CPUs: p.cpus, CPUBusy: perSecond(min(w.busy[n], p.count*seconds), seconds),
			Memory: unit.Modelled(memory, simulator), Free: unit.Modelled(free, simulator),
			File: unit.Modelled(file, simulator), Anon: unit.Modelled(anon, simulator),
		}
		w.busy[n] = 0
	}
}

// perSecond is unknown in a window of no length.
func perSecond(x, seconds float64) unit.Value[float64] {
	if seconds == 0 {
		return unit.UnknownValue[float64](noLength)
	}
	return unit.Modelled(x/seconds, simulator)
}

// workloads are told with few pieces of memory: they may be many, and windows are.
func (w *World) workloads(out *window.Window, seconds float64) {
	n := len(w.places)
	out.Workloads = make([]window.Workload, 0, len(w.live))
	cpus := make([]unit.Value[float64], n*len(w.live))
	bytes := make([]unit.Value[unit.Bytes], 2*n*len(w.live))
	for _, wl := range w.all {
		if wl.here() {
			k := len(out.Workloads)
			out.Workloads = out.Workloads[:k+1]
			x := &out.Workloads[k]
			x.CPUByNode = cpus[k*n : k*n+n : k*n+n]
			x.AnonByNode = bytes[2*k*n : 2*k*n+n : 2*k*n+n]
			x.FileByNode = bytes[2*k*n+n : 2*k*n+2*n : 2*k*n+2*n]
			w.workload(x, wl, seconds)
		}
		clear(wl.byCPU)
		wl.win.seconds, wl.seen = 0, wl.here()
	}
}

func (w *World) workload(x *window.Workload, wl *workload, seconds float64) {
	x.ID, x.Service, x.Owner, x.Approved = wl.id, wl.service, wl.owner, wl.spec.Approved
	if wl.spec.Target > 0 {
		x.Target = unit.Some(wl.spec.Target)
	}
	x.Tasks = unit.Modelled(wl.spec.Threads, simulator)
	if x.Quota = unit.UnknownValue[float64]("no limit is set"); wl.quota() > 0 {
		x.Quota = unit.Modelled(wl.quota(), simulator)
	}
	all := 0.0
	for n, used := range wl.byCPU {
		all += used
		x.CPUByNode[n] = wl.rate(used, seconds)
		x.AnonByNode[n] = unit.Modelled(linux.BytesOf(w.anonOn(&wl.group, n)), simulator)
		x.FileByNode[n] = unit.Modelled(linux.BytesOf(wl.group.Memory.Mapped[n]+wl.group.Memory.Cache[n]), simulator)
	}
	x.CPU = wl.rate(all, seconds)
	for _, c := range []struct {
		to  *unit.Value[uint64]
		sum *float64
	}{
		{&x.Cycles, &wl.win.cycles}, {&x.Instructions, &wl.win.instructions}, {&x.StallCycles, &wl.win.stall},
		{&x.LocalLoads, &wl.win.local}, {&x.RemoteLoads, &wl.win.remote},
	} {
		*c.to = wl.count(c.sum, seconds)
	}
	w.binding(x, wl)
}

// rate is of what it used in a window. One that came in the window was not there for
// all of it.
func (wl *workload) rate(x, seconds float64) unit.Value[float64] {
	if !wl.seen {
		return unit.UnknownValue[float64](firstWindow)
	}
	return perSecond(x, seconds)
}

// count is what of a sum is whole; the rest is the next window's. The first reading of
// a counter is only where the next one starts.
func (wl *workload) count(sum *float64, seconds float64) unit.Value[uint64] {
	whole := math.Floor(*sum)
	switch {
	case !wl.seen:
		*sum -= whole
		return unit.UnknownValue[uint64](firstWindow)
	case seconds == 0:
		return unit.UnknownValue[uint64](noLength)
	}
	*sum -= whole
	return unit.Modelled(uint64(whole), simulator)
}

// binding is whose doing its cpuset is, as the kernel's reader tells: the journal
// knows what is ours, and what is narrower than the parent's is somebody else's.
func (w *World) binding(x *window.Workload, wl *workload) {
	b := &x.Binding
	b.CPUs, b.Mems, b.OursCPUs, b.OursMems = wl.cpus, wl.mems, wl.oursCPUs, wl.oursMems
	b.PinnedCPUs = !wl.oursCPUs && wl.cpus != w.parentCPUs()
	b.PinnedMems = wl.group.Policy.Mode != linux.Local
	switch {
	case b.PinnedCPUs && b.PinnedMems:
		b.PinnedWhy = wl.whyBoth
	case b.PinnedCPUs:
		b.PinnedWhy = wl.whyCPUs
	case b.PinnedMems:
		b.PinnedWhy = wl.whyMems
	}
}

func (w *World) anonOn(g *linux.Group, node int) float64 {
	n := len(w.places)
	pages := g.Memory.Shared[node]
	for t := range n {
		pages += g.Memory.Private[t*n+node]
	}
	return pages
}
