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
	f := Features{LocalPageRatio: localPageRatio(w)}
	if all, ok := w.Loads(); ok && all > 0 {
		remote := float64(w.RemoteLoads.Or(0))
		from := w.LocalLoads.From + ", " + w.RemoteLoads.From
		how := unit.Weakest(w.LocalLoads.How, w.RemoteLoads.How)
		f.LocalAccessRatio = unit.ValueOf(unit.Ratio((all-remote)/all), how, from)
		f.RMBR = unit.ValueOf(unit.Ratio(remote/all), how, from)
		if period > 0 {
			f.MBW = unit.ValueOf(all*lineBytes/period.Seconds(), how, from+" × 64 B")
		}
	} else {
		f.LocalAccessRatio = f.LocalPageRatio
	}
	f.MSR = stallRatio(w)
	anon, okA := SumBytes(w.AnonByNode)
	file, okF := SumBytes(w.FileByNode)
	if okA && okF && anon+file > 0 {
		f.NPMR = unit.Measured(unit.Ratio(float64(anon)/float64(anon+file)), "memory.numa_stat")
	}
	return f
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
	if len(w.AnonByNode) == 0 || len(w.AnonByNode) != len(w.FileByNode) {
		return nil, false
	}
	pages := make([]unit.Bytes, len(w.AnonByNode))
	for i := range w.AnonByNode {
		a, okA := w.AnonByNode[i].Get()
		f, okF := w.FileByNode[i].Get()
		if !okA || !okF {
			return nil, false
		}
		pages[i] = a + f
	}
	return pages, true
}

func localPageRatio(w Workload) unit.Value[unit.Ratio] {
	pages, ok := w.PagesByNode()
	if !ok || len(w.CPUByNode) != len(pages) {
		return unit.UnknownValue[unit.Ratio]("no pages or CPU time by node")
	}
	var allPages, allCPU, local float64
	for i, p := range pages {
		cpu, ok := w.CPUByNode[i].Get()
		if !ok {
			return unit.UnknownValue[unit.Ratio]("no CPU time by node")
		}
		allPages += float64(p)
		allCPU += cpu
		local += float64(p) * cpu
	}
	if allPages == 0 || allCPU == 0 {
		return unit.UnknownValue[unit.Ratio]("no pages, or no CPU time in this period")
	}
	return unit.Estimated(unit.Ratio(local/allPages/allCPU), "Σ CPU share × page share by node")
}
