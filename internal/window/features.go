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
	// LocalAccessError is how far it may be off where it is an estimate (ErrorBasis).
	LocalAccessError unit.Opt[unit.Ratio]   `json:"local_access_error,omitzero"`
	LocalPageRatio   unit.Value[unit.Ratio] `json:"local_page_ratio"` // Σ CPU share(n) × page share(n)
	MBW              unit.Value[float64]    `json:"mbw"`              // bytes/s of DRAM reads; from resctrl: reads and writes
	MSR              unit.Value[unit.Ratio] `json:"msr"`              // memory stall cycles / cycles
	NPMR             unit.Value[unit.Ratio] `json:"npmr"`             // anon / (anon + file)
	RMBR             unit.Value[unit.Ratio] `json:"rmbr"`             // remote / all DRAM reads
}

// LineBytes is the size of a DRAM read in a window. A CPU with larger lines counts fewer,
// and each becomes several (event.Table.Lines; TestLineBytes).
const LineBytes = 64

// FeaturesOf computes the features of one workload over a period.
//
// The local access ratio comes from the best available source (LocalAccessRatio), and
// carries it. MBW is resctrl's where that is read (reads and writes), otherwise the PMU's
// (reads).
func FeaturesOf(w Workload, period time.Duration) Features {
	f := Features{LocalPageRatio: localPageRatio(&w), LocalAccessRatio: LocalAccessRatio(&w), LocalAccessError: LocalAccessError(&w), MBW: bandwidth(&w, period)}
	if all, ok := w.Loads(); ok && all > 0 {
		remote := float64(w.RemoteLoads.Or(0))
		f.RMBR = unit.ValueOf(unit.Ratio(remote/all), f.LocalAccessRatio.How, f.LocalAccessRatio.From)
	} else if v, ok := f.LocalAccessRatio.Get(); ok && counts(&w) == byTraffic {
		f.RMBR = unit.ValueOf(1-v, f.LocalAccessRatio.How, f.LocalAccessRatio.From)
	}
	f.MSR = stallRatio(w)
	anon, okA := SumBytes(w.AnonByNode)
	file, okF := SumBytes(w.FileByNode)
	if okA && okF && anon+file > 0 {
		f.NPMR = unit.Measured(unit.Ratio(float64(anon)/float64(anon+file)), "memory.numa_stat")
	}
	return f
}

func bandwidth(w *Workload, period time.Duration) unit.Value[float64] {
	if period <= 0 {
		return unit.UnknownValue[float64]("no period")
	}
	if b, ok := w.Traffic.Get(); ok {
		return unit.ValueOf(float64(b)/period.Seconds(), w.Traffic.How, w.Traffic.From)
	}
	all, ok := w.Loads()
	if !ok {
		return unit.UnknownValue[float64](w.LocalLoads.From)
	}
	how, from := unit.Weakest(w.LocalLoads.How, w.RemoteLoads.How), w.LocalLoads.From+", "+w.RemoteLoads.From
	return unit.ValueOf(all*LineBytes/period.Seconds(), how, from+" × 64 B")
}

// source is where a local access ratio comes from, best first.
type source uint8

const (
	byLoads   source = iota // DRAM reads that the PMU counted
	byTraffic               // resctrl's bytes: reads and writes
	byFaults                // NUMA hint faults: pages that are touched, not how often
	byPages                 // CPU × pages: where its pages are, touched or not
)

// counts is the best source that a workload has.
func counts(w *Workload) source {
	if all, ok := w.Loads(); ok && all > 0 {
		return byLoads
	}
	if all, ok := w.Traffic.Get(); ok && all > 0 && w.LocalTraffic.Known() {
		return byTraffic
	}
	if local, ok := w.LocalFaults.Get(); ok && w.RemoteFaults.Known() && (local > 0 || w.RemoteFaults.Or(0) > 0) {
		return byFaults
	}
	return byPages
}

// LocalSource is the source of a local access ratio: only ratios of one source may be
// compared. Lower values are better sources. 0: none yet.
type LocalSource uint8

// The sources that a policy distinguishes.
const (
	LocalCounted LocalSource = iota + 1 // by PMU or resctrl: of all that the caches fetched
	LocalFaults                         // an estimate by NUMA hint faults
	LocalPages                          // an estimate by CPU × pages
)

// LocalSourceOf is the source of LocalAccess's figure, if there is one.
func LocalSourceOf(w *Workload) LocalSource { return sourceOf(counts(w)) }

func sourceOf(by source) LocalSource {
	switch by {
	case byFaults:
		return LocalFaults
	case byPages:
		return LocalPages
	}
	return LocalCounted
}

// LocalAccessRatio is Features.LocalAccessRatio alone:
//
//  1. local of all DRAM reads, where the PMU counts them; else
//  2. local of all bytes, where resctrl does; else
//  3. local of all NUMA hint faults: an estimate; else
//  4. Σ CPU share(n) × page share(n): an estimate.
//
// LocalAccessError says how reliable the estimates are.
func LocalAccessRatio(w *Workload) unit.Value[unit.Ratio] {
	by := counts(w)
	ratio, why := localOf(w, by)
	if why != "" {
		return unit.UnknownValue[unit.Ratio](why)
	}
	switch by {
	case byLoads:
		return unit.ValueOf(ratio, unit.Weakest(w.LocalLoads.How, w.RemoteLoads.How), w.LocalLoads.From+", "+w.RemoteLoads.From)
	case byTraffic:
		return unit.ValueOf(ratio, unit.Weakest(w.LocalTraffic.How, w.Traffic.How), w.LocalTraffic.From+", "+w.Traffic.From)
	case byFaults:
		return unit.ValueOf(ratio, unit.Weakest(w.LocalFaults.How, w.RemoteFaults.How, unit.HowEstimated), w.LocalFaults.From)
	}
	return unit.Estimated(ratio, pagesFrom)
}

const pagesFrom = "Σ CPU share × page share by node"

// LocalAccess is the figure of LocalAccessRatio, without how it is known: policies use it
// for every workload in every window.
func LocalAccess(w *Workload) unit.Opt[unit.Ratio] {
	ratio, _ := LocalAccessFrom(w)
	return ratio
}

// LocalAccessFrom is LocalAccess, and LocalSourceOf.
func LocalAccessFrom(w *Workload) (unit.Opt[unit.Ratio], LocalSource) {
	by := counts(w)
	ratio, why := localOf(w, by)
	return unit.OptOf(ratio, why == ""), sourceOf(by)
}

// localOf is the figure of a source, preferably of the best, or why there is none.
func localOf(w *Workload, by source) (ratio unit.Ratio, why string) {
	part := func(local, all float64) (unit.Ratio, string) { return unit.Ratio(min(1, local/all)), "" }
	switch by {
	case byLoads: // 1
		all, _ := w.Loads()
		return part(all-float64(w.RemoteLoads.Or(0)), all)
	case byTraffic: // 2: the two are read one after the other, so local may be a little more
		return part(float64(w.LocalTraffic.Or(0)), float64(w.Traffic.Or(0)))
	case byFaults: // 3
		local := float64(w.LocalFaults.Or(0))
		return part(local, local+float64(w.RemoteFaults.Or(0)))
	}
	return localPages(w) // 4
}

// Loads returns all DRAM reads of the period, local and remote; false when
// either is unknown. A float64, because a sum of counters may not wrap.
func (w *Workload) Loads() (float64, bool) {
	local, okL := w.LocalLoads.Get()
	remote, okR := w.RemoteLoads.Get()
	return float64(local) + float64(remote), okL && okR
}

// stallRatio is unknown where the two counters contradict each other. Multiplexing can
// cause that: two different stretches of time, both scaled.
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

// AppendPagesByNode is PagesByNode into a slice of the caller. It returns the appended
// part; nil when any figure is unknown.
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

// KnowsPages reports that anon and file bytes of all nodes are known.
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
	return unit.Estimated(ratio, pagesFrom)
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

// IPC is instructions per cycle. It does not measure progress where threads spin.
func IPC(instructions, cycles unit.Value[uint64]) unit.Value[float64] {
	return perCount(instructions, cycles, "no cycle was counted")
}

// MPI is misses per instruction: of the last-level cache, as DRAM reads.
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

// UncorePenalty is W/A: cycles for which a request that left the private caches stalled
// its core (Rao, HPCA 2013); its latency is O/A and its parallelism O/W. Counts of
// several threads or windows are added up first. Unknown without a request.
func UncorePenalty(waits, requests float64) unit.Opt[float64] {
	return unit.OptOf(waits/requests, requests > 0)
}

// perCount is one counter per unit of another; none is the reason why it is unknown at 0.
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
