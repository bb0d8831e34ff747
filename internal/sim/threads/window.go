// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"math"

	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// simulator is where all figures come from.
	simulator   = "simulator"
	firstWindow = "first window of it: no reading before"
	noLength    = "a window of no length"
)

// Window is what happened since the last one, as a kernel would tell it, thread by
// thread: counters are deltas, figures are modelled. Outcomes are those of Apply since.
func (w *World) Window() window.Window {
	w.endMoves()
	w.seq++
	length := w.now - w.since
	out := window.Window{
		Schema: window.Schema, Seq: w.seq, At: w.c.Start.Add(w.now).UTC(), Length: length,
		Nodes: make([]window.Node, len(w.nodes)), Outcomes: w.outcomes, Problems: w.problems(),
	}
	w.since, w.outcomes = w.now, nil
	w.tellWorkloads(&out, length.Seconds())
	w.tellNodes(&out, length.Seconds())
	return out
}

// tellNodes adds up what the workloads hold; they are in the window already.
func (w *World) tellNodes(out *window.Window, seconds float64) {
	for n := range w.nodes {
		var anon, file unit.Bytes
		for i := range out.Workloads {
			anon += out.Workloads[i].AnonByNode[n].Or(0)
			file += out.Workloads[i].FileByNode[n].Or(0)
		}
		memory := linux.BytesOf(w.host.Nodes[n].Pages)
		free := max(0, memory-linux.BytesOf(w.host.Nodes[n].Other)-anon-file)
		busy := min(w.busy[n], float64(float64(len(w.nodes[n].cpus))*seconds))
		out.Nodes[n] = window.Node{
			ID: w.nodes[n].id, CPUs: w.nodes[n].set, CPUBusy: perSecond(busy, seconds),
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

func (w *World) tellWorkloads(out *window.Window, seconds float64) {
	n := len(w.nodes)
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
			w.tellWorkload(x, wl, seconds)
		}
		clear(wl.byCPU)
		wl.win.seconds, wl.seen = 0, wl.here()
	}
}

func (w *World) tellWorkload(x *window.Workload, wl *workload, seconds float64) {
	x.ID, x.Service, x.Owner, x.Approved = wl.id, wl.service, wl.owner, wl.spec.Approved
	if wl.spec.Target > 0 {
		x.Target = unit.Some(wl.spec.Target)
	}
	if s := wl.spec.Sensitive; s != nil {
		x.Sensitive = unit.Some(*s)
	}
	x.Tasks = unit.Modelled(wl.spec.Threads, simulator)
	if x.Quota = unit.UnknownValue[float64]("no limit is set"); wl.quota() > 0 {
		x.Quota = unit.Modelled(wl.quota(), simulator)
	}
	for n := range w.nodes {
		x.CPUByNode[n] = wl.rate(wl.byCPU[n], seconds)
		x.AnonByNode[n] = unit.Modelled(linux.BytesOf(w.anonOn(wl, n)), simulator)
		x.FileByNode[n] = unit.Modelled(linux.BytesOf(wl.group.Memory.Mapped[n]+wl.group.Memory.Cache[n]), simulator)
	}
	x.CPU = wl.rate(sum(wl.byCPU), seconds)
	c := &wl.win
	x.Cycles, x.Instructions, x.StallCycles = wl.count(&c.cycles, seconds), wl.count(&c.instructions, seconds), wl.count(&c.stall, seconds)
	x.LocalLoads, x.RemoteLoads = wl.count(&c.local, seconds), wl.count(&c.remote, seconds)
	x.UncoreRequests, x.UncoreWaits = wl.count(&c.requests, seconds), wl.count(&c.waits, seconds)
	x.LLC = unit.Modelled(unit.Bytes(math.Round(wl.llc)), simulator)
	w.binding(x, wl)
	x.Threads = w.tellThreads(wl, seconds)
}

// tellThreads is one by one.
func (w *World) tellThreads(wl *workload, seconds float64) []window.Thread {
	all := make([]window.Thread, len(wl.threads))
	for i := range wl.threads {
		t, x := &wl.threads[i], &all[i]
		c := &t.win
		x.ID, x.CPU = t.id, unit.Some(w.cpus[t.cpu].id)
		x.Used = wl.rate(min(c.cpu, seconds), seconds)
		x.Cycles, x.Instructions = wl.count(&c.cycles, seconds), wl.count(&c.instructions, seconds)
		x.UncoreRequests, x.UncoreWaits = wl.count(&c.requests, seconds), wl.count(&c.waits, seconds)
		x.Allowed, x.Ours = t.allowed(), t.ours
		x.Pinned = !t.ours && t.pinned && x.Allowed != wl.cpus
		c.cpu = 0
	}
	return all
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

// binding is whose doing its cpuset is, as the kernel's reader tells.
func (w *World) binding(x *window.Workload, wl *workload) {
	b := &x.Binding
	b.CPUs, b.Mems, b.OursCPUs, b.OursMems = wl.cpus, wl.mems, wl.oursCPUs, wl.oursMems
	b.PinnedCPUs = !wl.oursCPUs && wl.cpus != w.online
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

func (w *World) anonOn(wl *workload, node int) float64 {
	pages := wl.group.Memory.Shared[node]
	for i := range wl.threads {
		pages += wl.threads[i].private[node]
	}
	return pages
}
