// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"

	"homenode/internal/sim/linux"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	// Simulator is where all figures come from.
	Simulator = "simulator"
	// Why there is no rate or delta of a counter, which needs two readings: in the words of
	// the kernel's reader.
	firstWindow = "first window of it: no reading before"
	noLength    = "a window of no length"
)

// Reading is how a workload's counters are read, in a window of so many seconds.
type Reading struct {
	Seconds float64
	Seen    bool // by a window before
}

// Rate is of what it used in a window. A workload that arrived in the window was not
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

// Count is what of a sum is whole; the rest is the next window's. The first reading of
// a counter is only where the next one starts.
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

// rows gives a window's workloads their memory in few pieces: they may be many, and
// windows are.
type rows struct {
	out   *window.Window
	cpus  []unit.Value[float64]
	bytes []unit.Value[unit.Bytes]
}

// newRows is room for so many workloads.
func newRows(out *window.Window, most int) rows {
	n := len(out.Nodes)
	out.Workloads = make([]window.Workload, 0, most)
	return rows{out: out, cpus: make([]unit.Value[float64], n*most), bytes: make([]unit.Value[unit.Bytes], 2*n*most)}
}

// next is one workload more.
func (r *rows) next() *window.Workload {
	n, k := len(r.out.Nodes), len(r.out.Workloads)
	r.out.Workloads = r.out.Workloads[:k+1]
	x := &r.out.Workloads[k]
	x.CPUByNode = r.cpus[k*n : k*n+n : k*n+n]
	x.AnonByNode = r.bytes[2*k*n : 2*k*n+n : 2*k*n+n]
	x.FileByNode = r.bytes[2*k*n+n : 2*k*n+2*n : 2*k*n+2*n]
	return x
}

// tellNodes adds up what the window's workloads hold. CPU seconds by node begin anew.
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

// tell is what a window says of a workload by its spec.
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

// quota is the CPUs that a policy takes for its due; 0: not given.
func (s *Spec) quota() float64 {
	if s.CPULimit > 0 {
		return s.CPULimit
	}
	return s.CPURequest
}
