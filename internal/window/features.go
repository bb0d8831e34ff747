// SPDX-License-Identifier: Apache-2.0

package window

import (
	"time"

	"homenode/internal/unit"
)

// Features are MAO's four inputs and the local access ratio (MAO, Sensitivity
// model), each with how it is known.
type Features struct {
	LocalAccessRatio unit.Value[unit.Ratio] `json:"local_access_ratio"` // local / (local + remote) DRAM reads
	LocalPageRatio   unit.Value[unit.Ratio] `json:"local_page_ratio"`   // Σ CPU share(n) × page share(n)
	MBW              unit.Value[float64]    `json:"mbw"`                // bytes/s of DRAM reads
	MSR              unit.Value[unit.Ratio] `json:"msr"`                // memory stall cycles / cycles
	NPMR             unit.Value[unit.Ratio] `json:"npmr"`               // anon / (anon + file)
	RMBR             unit.Value[unit.Ratio] `json:"rmbr"`               // remote / all DRAM reads
}

const lineBytes = 64 // of a DRAM access, all CPUs with an event table so far

// FeaturesOf computes the features of one workload over a period.
//
// The local access ratio is measured where DRAM counters exist; else it is the
// estimate Σ CPU share(n) × page share(n), and marked so.
func FeaturesOf(w Workload, period time.Duration) Features {
	f := Features{LocalPageRatio: localPageRatio(&w)}
	f.LocalAccessRatio = LocalAccessRatio(&w)
	if all, ok := w.Loads(); ok && all > 0 {
		remote := float64(w.RemoteLoads.Or(0))
		how, from := f.LocalAccessRatio.How, f.LocalAccessRatio.From
		f.RMBR = unit.ValueOf(unit.Ratio(remote/all), how, from)
		if period > 0 {
			f.MBW = unit.ValueOf(all*lineBytes/period.Seconds(), how, from+" × 64 B")
		}
	}
	f.MSR = stallRatio(w)
	anon, okA := SumBytes(w.AnonByNode)
	file, okF := SumBytes(w.FileByNode)
	if okA && okF && anon+file > 0 {
		f.NPMR = unit.Measured(unit.Ratio(float64(anon)/float64(anon+file)), "memory.numa_stat")
	}
	return f
}

// LocalAccessRatio is Features.LocalAccessRatio alone.
func LocalAccessRatio(w *Workload) unit.Value[unit.Ratio] {
	ratio, measured := countedLocal(w)
	if !measured {
		return localPageRatio(w)
	}
	return unit.ValueOf(ratio, unit.Weakest(w.LocalLoads.How, w.RemoteLoads.How), w.LocalLoads.From+", "+w.RemoteLoads.From)
}

// LocalAccess is the figure of LocalAccessRatio, without how it is known: what a
// policy goes by, of every workload in every window.
func LocalAccess(w *Workload) unit.Opt[unit.Ratio] {
	if ratio, ok := countedLocal(w); ok {
		return unit.Some(ratio)
	}
	ratio, why := localPages(w)
	return unit.OptOf(ratio, why == "")
}

// countedLocal is local / (local + remote) DRAM reads; false where nobody counted
// them, or there were none.
func countedLocal(w *Workload) (unit.Ratio, bool) {
	all, ok := w.Loads()
	if !ok || !(all > 0) {
		return 0, false
	}
	return unit.Ratio((all - float64(w.RemoteLoads.Or(0))) / all), true
}

// Loads returns all DRAM reads of the period, local and remote; false when
// either is unknown. A float64, because a sum of counters may not wrap.
func (w Workload) Loads() (float64, bool) {
	local, okL := w.LocalLoads.Get()
	remote, okR := w.RemoteLoads.Get()
	return float64(local) + float64(remote), okL && okR
}

// stallRatio is unknown where the two counters contradict each other, which
// multiplexing (two different stretches of time, both scaled) can bring about.
func stallRatio(w Workload) unit.Value[unit.Ratio] {
	cycles, okC := w.Cycles.Get()
	stalls, okS := w.StallCycles.Get()
	if !okC || !okS || cycles == 0 {
		return unit.UnknownValue[unit.Ratio]("no cycles or stall cycles")
	}
	ratio, ok := unit.RatioOf(float64(stalls), float64(cycles)).Get()
	if !ok {
		return unit.UnknownValue[unit.Ratio]("more stall cycles than cycles")
	}
	return unit.ValueOf(ratio, unit.Weakest(w.Cycles.How, w.StallCycles.How), w.StallCycles.From)
}

// SumBytes adds up a slice by node; it is unknown if any part is.
func SumBytes(by []unit.Value[unit.Bytes]) (unit.Bytes, bool) {
	var sum unit.Bytes
	for _, v := range by {
		b, ok := v.Get()
		if !ok {
			return 0, false
		}
		sum += b
	}
	return sum, len(by) > 0
}

// PagesByNode returns anon + file bytes by node, parallel to Window.Nodes; ok is
// false if any is unknown.
func (w Workload) PagesByNode() ([]unit.Bytes, bool) {
	return w.AppendPagesByNode(make([]unit.Bytes, 0, len(w.AnonByNode)))
}

// AppendPagesByNode is PagesByNode into a slice that the caller has: it returns the
// part that was appended; nil when any is unknown.
func (w *Workload) AppendPagesByNode(to []unit.Bytes) ([]unit.Bytes, bool) {
	if !w.KnowsPages() {
		return nil, false
	}
	from := len(to)
	for i := range w.AnonByNode {
		to = append(to, w.AnonByNode[i].Or(0)+w.FileByNode[i].Or(0))
	}
	return to[from:len(to):len(to)], true
}

// KnowsPages says that anon and file bytes of all nodes are known.
func (w *Workload) KnowsPages() bool {
	if len(w.AnonByNode) == 0 || len(w.AnonByNode) != len(w.FileByNode) {
		return false
	}
	for i := range w.AnonByNode {
		if !w.AnonByNode[i].Known() || !w.FileByNode[i].Known() {
			return false
		}
	}
	return true
}

func localPageRatio(w *Workload) unit.Value[unit.Ratio] {
	ratio, why := localPages(w)
	if why != "" {
		return unit.UnknownValue[unit.Ratio](why)
	}
	return unit.Estimated(ratio, "Σ CPU share × page share by node")
}

// localPages is Σ CPU share(n) × page share(n), or why that is unknown.
func localPages(w *Workload) (ratio unit.Ratio, why string) {
	if !w.KnowsPages() || len(w.CPUByNode) != len(w.AnonByNode) {
		return 0, "no pages or CPU time by node"
	}
	var allPages, allCPU, local float64
	for i := range w.AnonByNode {
		cpu, ok := w.CPUByNode[i].Get()
		if !ok {
			return 0, "no CPU time by node"
		}
		pages := float64(w.AnonByNode[i].Or(0) + w.FileByNode[i].Or(0))
		allPages += pages
		allCPU += cpu
		local += float64(pages * cpu)
	}
	if allPages == 0 || allCPU == 0 {
		return 0, "no pages, or no CPU time in this period"
	}
	return unit.Ratio(local / allPages / allCPU), ""
}

// IPC is instructions a cycle. It is no measure of progress where threads spin.
func IPC(instructions, cycles unit.Value[uint64]) unit.Value[float64] {
	return perCount(instructions, cycles, "no cycle was counted")
}

// MPI is misses an instruction: of the last-level cache, as DRAM reads.
func MPI(w *Workload) unit.Value[float64] {
	loads, ok := w.Loads()
	n, known := w.Instructions.Get()
	switch {
	case !ok:
		return unit.UnknownValue[float64]("DRAM reads are not counted")
	case !known:
		return unit.UnknownValue[float64](w.Instructions.From)
	case n == 0:
		return unit.UnknownValue[float64]("no instruction was counted")
	}
	how := unit.Weakest(w.LocalLoads.How, w.RemoteLoads.How, w.Instructions.How)
	return unit.ValueOf(loads/float64(n), how, w.LocalLoads.From+", "+w.RemoteLoads.From+", "+w.Instructions.From)
}

// perCount is one counter for each of another; none is why it is unknown at 0.
func perCount(of, each unit.Value[uint64], none string) unit.Value[float64] {
	a, ok := of.Get()
	b, ok2 := each.Get()
	switch {
	case !ok:
		return unit.UnknownValue[float64](of.From)
	case !ok2:
		return unit.UnknownValue[float64](each.From)
	case b == 0:
		return unit.UnknownValue[float64](none)
	}
	return unit.ValueOf(float64(a)/float64(b), unit.Weakest(of.How, each.How), of.From+", "+each.From)
}
