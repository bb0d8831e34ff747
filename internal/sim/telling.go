// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// Simulator is the source of all figures.
	Simulator = "simulator"
	// The reasons why a rate or delta of a counter is missing, which needs two readings, in
	// the words of the kernel's reader.
	firstWindow = "first window of it: no reading before"
	noLength    = "a window of no length"
)

// Reading describes how a workload's counters are read, in a window of this many seconds.
type Reading struct {
	Seconds float64
	Seen    bool // by an earlier window
}

// Rate is the rate of its use in a window. A workload that arrived in the window was not
// present for all of it.
func (r Reading) Rate(x float64) unit.Value[float64] {
	if !r.Seen {
		return unit.UnknownValue[float64](firstWindow)
	}
	return perSecond(x, r.Seconds)
}

// perSecond is unknown in a window of no length.
func perSecond(x, seconds float64) unit.Value[float64] {
	if seconds == 0 {
		return unit.UnknownValue[float64](noLength)
	}
	return unit.Modelled(x/seconds, Simulator)
}

// Count returns the whole part of a sum and leaves the rest for the next window. The first
// reading of a counter only sets where the next one starts.
func (r Reading) Count(sum *float64) unit.Value[uint64] {
	whole := math.Floor(*sum)
	switch {
	case !r.Seen:
		*sum -= whole
		return unit.UnknownValue[uint64](firstWindow)
	case r.Seconds == 0:
		return unit.UnknownValue[uint64](noLength)
	}
	*sum -= whole
	return unit.Modelled(uint64(whole), Simulator)
}

// rows allocates the memory for a window's workloads in few pieces: there may be many
// workloads, and many windows.
type rows struct {
	out   *window.Window
	cpus  []unit.Value[float64]
	bytes []unit.Value[unit.Bytes]
}

// newRows has room for this many workloads.
func newRows(out *window.Window, most int) rows {
	n := len(out.Nodes)
	out.Workloads = make([]window.Workload, 0, most)
	return rows{out: out, cpus: make([]unit.Value[float64], n*most), bytes: make([]unit.Value[unit.Bytes], 2*n*most)}
}

// next adds one workload.
func (r *rows) next() *window.Workload {
	n, k := len(r.out.Nodes), len(r.out.Workloads)
	r.out.Workloads = r.out.Workloads[:k+1]
	x := &r.out.Workloads[k]
	x.CPUByNode = r.cpus[k*n : k*n+n : k*n+n]
	x.AnonByNode = r.bytes[2*k*n : 2*k*n+n : 2*k*n+n]
	x.FileByNode = r.bytes[2*k*n+n : 2*k*n+2*n : 2*k*n+2*n]
	return x
}

// tellNodes adds up what the window's workloads hold. CPU seconds by node start anew.
func (w *World) tellNodes(out *window.Window) {
	nodes, seconds := w.Config.Machine.Nodes, out.Length.Seconds()
	for n := range nodes {
		var anon, file unit.Bytes
		for i := range out.Workloads {
			anon += out.Workloads[i].AnonByNode[n].Or(0)
			file += out.Workloads[i].FileByNode[n].Or(0)
		}
		memory := linux.BytesOf(w.Host.Nodes[n].Pages)
		free := max(0, memory-linux.BytesOf(w.Host.Nodes[n].Other)-anon-file)
		all := float64(nodes[n].CPUs.Len()) * seconds
		out.Nodes[n] = window.Node{
			ID: nodes[n].ID, CPUs: nodes[n].CPUs, CPUBusy: perSecond(min(w.Busy[n], all), seconds),
			Memory: unit.Modelled(memory, Simulator), Free: unit.Modelled(free, Simulator),
			File: unit.Modelled(file, Simulator), Anon: unit.Modelled(anon, Simulator),
		}
		w.Busy[n] = 0
	}
}

// tell fills in what a window says about a workload from its spec.
func (s *Spec) tell(x *window.Workload) {
	x.Approved = s.Approved
	if s.Target > 0 {
		x.Target = unit.Some(s.Target)
	}
	x.Tasks = unit.Modelled(s.Threads, Simulator)
	if x.Quota = unit.UnknownValue[float64]("no limit is set"); s.quota() > 0 {
		x.Quota = unit.Modelled(s.quota(), Simulator)
	}
}

// quota is the CPUs that a policy takes as its quota; 0: not given.
func (s *Spec) quota() float64 {
	if s.CPULimit > 0 {
		return s.CPULimit
	}
	return s.CPURequest
}
