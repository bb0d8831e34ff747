// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/migration"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// What remote memory costs, number by number; migration.Waits has the sum, which Pays
// shares. The assumption is that stall cycles are
// spent on DRAM reads, and that each read stalls in proportion to its latency. So
// overlapping reads are accounted for: a read that the CPU hides does not stall. Stalls
// for other reasons make this an upper bound.
//
//  1. r, the share of remote reads: counted, else 1 − local page ratio, which is
//     an estimate (window.FeaturesOf).
//  2. k, latency remote / local, for each pair (CPU's node, page's node): from the
//     profile if it has the measured latencies of all pairs, for a mean needs one
//     source; else from the firmware's HMAT if it has both latencies; else 1 +
//     (distance/10 − 1) × SLITExcess. Averaged over the pairs by CPU share × page
//     share. Without those, over all pairs that the binding allows; if it allows one
//     node only, over all pairs of the machine.
//  3. With reads of latency 1 and k, the share of the waiting beyond that with all
//     reads local is x = r(k−1) / (1 − r + rk).
//  4. lost = CPU time × stall cycles / cycles × x. Cycles spent waiting for lines that
//     several nodes write are left out, as far as samples show them (lineShare): that
//     memory is not far.
//  5. It cannot be more than remote reads × (remote − local latency), which it is when
//     none of them overlap. That is the bound where the profile or HMAT has the
//     latency, and the figure itself without stall cycles.
//  6. If neither is known, the loss is unknown, and at most CPU time × x: as if all of
//     its time were memory stalls.

// loss is what a workload loses to remote memory.
type loss struct {
	cpus   unit.Value[float64]    // CPUs' worth of time, estimated; or why it is unknown
	atMost unit.Opt[float64]      // upper bound; None when not even that is known
	remote unit.Value[unit.Ratio] // r
	slower unit.Value[float64]    // k
}

// lostCPUs is the one place where the cost of remote memory is computed.
func (l view) lostCPUs(w window.Workload) loss {
	out := loss{remote: l.remoteShare(w), slower: l.slowdown(w)}
	cpu, okCPU := w.CPU.Get()
	r, okR := out.remote.Get()
	k, okK := out.slower.Get()
	reads, counted := w.Loads()
	switch {
	case okCPU && counted && reads == 0:
		out.remote = unit.ValueOf(unit.Ratio(0), min(w.LocalLoads.How, w.RemoteLoads.How), w.RemoteLoads.From)
		out.cpus, out.atMost = unit.ValueOf(0.0, out.remote.How, "no DRAM reads"), unit.Some(0.0)
		return out
	case okCPU && cpu == 0:
		out.cpus, out.atMost = unit.ValueOf(0.0, w.CPU.How, "no CPU time"), unit.Some(0.0)
		return out
	case !okCPU:
		out.cpus = unit.UnknownValue[float64]("its CPU time is unknown: " + because(w.CPU))
		return out
	case !okK:
		out.cpus = unit.UnknownValue[float64](because(out.slower))
		return out
	case !okR:
		out.cpus = unit.UnknownValue[float64]("its share of remote reads is unknown: " + because(out.remote))
		out.atMost = unit.Some(cpu * (k - 1) / k) // all reads remote
		return out
	}
	excess := migration.Excess(float64(r), k) // 3
	out.atMost = unit.Some(cpu * excess)      // 6
	out.cpus = l.lostBy(w, cpu, excess, k)
	return out
}

// lostBy is numbers 4 to 6.
func (l view) lostBy(w window.Workload, cpu, excess, k float64) unit.Value[float64] {
	stalls := window.FeaturesOf(w, l.Length).MSR
	m, okM := stalls.Get()
	m *= unit.Ratio(1 - l.lineShare(w.ID))
	serial, okSerial := l.unoverlapped(w, k)
	waits := migration.Waits{CPU: cpu, Stalled: unit.OptOf(float64(m), okM), Serial: unit.OptOf(serial, okSerial), Loads: l.requests(w)}
	saved, _ := waits.Saved(excess)
	switch {
	case okM && waits.Other():
		return unit.Estimated(saved, "requests × latency × remote share × (1 − local/remote latency); its stall cycles count more than waiting for memory, and are not used")
	case okM: // 4, 5
		return unit.Estimated(saved, "stall cycles × remote share × (1 − local/remote latency)")
	case okSerial:
		return unit.Estimated(saved, "remote reads × (remote − local latency), none overlapping")
	}
	return unit.UnknownValue[float64]("no stall cycles: " + because(stalls)) // 6
}

// requests are what can explain its stall cycles, where latencies are known.
func (l view) requests(w window.Workload) unit.Opt[migration.Requests] {
	ns, ok := l.localLatency()
	return migration.RequestsOf(unit.OptOf(w.Loads()), w.UncoreRequests, l.Length, unit.Value[float64]{V: unit.OptOf(ns/1e9, ok)})
}

// unoverlapped is the extra time of all remote reads over local ones, one after the
// other, in CPUs' worth.
func (l view) unoverlapped(w window.Workload, k float64) (float64, bool) {
	reads, counted := w.RemoteLoads.Get()
	if !counted || l.Length <= 0 {
		return 0, false
	}
	local, ok := l.localLatency()
	if !ok {
		return 0, false
	}
	return float64(reads) * local * (k - 1) / float64(l.Length.Nanoseconds()), true
}

// localLatency is the mean over nodes of reads of their own memory, in ns, from one
// source.
func (l view) localLatency() (float64, bool) {
	latency := l.firmware
	if l.profiled() {
		latency = l.measured
	}
	sum, n := 0.0, 0
	for _, node := range l.Machine.Nodes {
		if ns, ok := latency(node.ID, node.ID); ok && !node.CPUs.IsEmpty() {
			sum, n = sum+ns, n+1
		}
	}
	return sum / float64(max(1, n)), n > 0
}

// remoteShare is number 1.
func (l view) remoteShare(w window.Workload) unit.Value[unit.Ratio] {
	local := window.FeaturesOf(w, l.Length).LocalAccessRatio
	v, ok := local.Get()
	if !ok {
		return local
	}
	from := local.From
	if !strings.HasPrefix(from, "Σ") {
		return unit.ValueOf(1-v, local.How, from)
	}
	return unit.ValueOf(1-v, local.How, "1 − "+from)
}

// profiled says that the profile has the latencies from all nodes with CPUs to all
// nodes with memory.
func (l view) profiled() bool {
	if l.c.Profile == nil || l.c.Profile.LatencyDoubt() != "" {
		return false
	}
	have := map[[2]int]bool{}
	for _, f := range l.c.Profile.Latency {
		have[[2]int{f.From, f.To}] = f.Median.Or(0) > 0
	}
	for _, from := range l.Machine.Nodes {
		for _, to := range l.Machine.Nodes {
			if memory, ok := to.Memory.Get(); !from.CPUs.IsEmpty() && (!ok || memory > 0) && !have[[2]int{from.ID, to.ID}] {
				return false
			}
		}
	}
	return true
}

// measured is what the profile has.
func (l view) measured(from, to int) (float64, bool) {
	if l.c.Profile == nil {
		return 0, false
	}
	f, _ := l.c.Profile.LatencyBetween(from, to)
	ns, ok := f.Median.Get()
	return ns, ok && ns > 0
}

// firmware is HMAT's latency. HMAT has the best initiators of each memory only.
func (l view) firmware(from, to int) (float64, bool) {
	n, _ := l.Machine.Node(to)
	for _, a := range n.Access {
		if ns, ok := a.ReadLatency.Get(); ok && ns > 0 && a.Initiators.Has(from) {
			return float64(ns), true
		}
	}
	return 0, false
}

// ratio is k of one pair.
func (l view) ratio(from, to int) (float64, bool) {
	k, _, ok := l.ratios()(from, to)
	return k, ok
}

// ratios gives k of pairs, and its source.
func (l view) ratios() func(from, to int) (k float64, source string, ok bool) {
	profiled := l.profiled()
	return func(from, to int) (float64, string, bool) {
		if profiled {
			if k, ok := quotient(l.measured, from, to); ok {
				return k, l.profileSource(), true
			}
		}
		if k, ok := quotient(l.firmware, from, to); ok {
			return k, "HMAT", true
		}
		d, ok := l.Machine.Distance(from, to).Get()
		if !ok || d == 255 || from != to && d <= machine.LocalDistance { // no way there; remote as near as local: no table at all
			return 0, "", false
		}
		return machine.LatencyRatio(d, l.c.SLITExcess), "SLIT distance", true
	}
}

// quotient is a ratio of latencies from one source: the scales of two sources differ.
func quotient(latency func(from, to int) (float64, bool), from, to int) (float64, bool) {
	near, ok1 := latency(from, from)
	far, ok2 := latency(from, to)
	if !ok1 || !ok2 {
		return 0, false
	}
	return max(1, far/near), true
}

// slowdown is number 2.
func (l view) slowdown(w window.Workload) unit.Value[float64] {
	cpu := l.cpuShares(w)
	pages, ok := w.PagesByNode()
	var page []float64
	if ok {
		page = byteShares(pages, len(l.Machine.Nodes))
	}
	var k mean
	if cpu != nil && page != nil {
		k = l.pairs(func(i, j int) float64 { return cpu[i] * page[j] })
	}
	if k.weight == 0 {
		k = l.pairs(func(i, j int) float64 { return allowed(w, l.Machine.Nodes[i], l.Machine.Nodes[j]) })
	}
	if k.weight == 0 {
		k = l.pairs(func(i, _ int) float64 { return min(1, float64(l.Machine.Nodes[i].CPUs.Len())) })
	}
	if k.weight == 0 {
		return unit.UnknownValue[float64]("no distance between its nodes")
	}
	slices.Sort(k.sources)
	return unit.Estimated(k.sum/k.weight, strings.Join(k.sources, " and ")+", by CPU time and pages")
}

// mean is a mean over pairs of nodes, with its sources.
type mean struct {
	sum, weight float64
	sources     []string
}

// profileSource names the profile.
func (l view) profileSource() string {
	name := "profile (latencies " + l.c.Profile.How.String()
	if only := l.c.Profile.Only(); only != "" {
		name += " with " + only
	}
	return name + ")"
}

// allowed is 1 when a workload may run on one node with memory of the other.
func allowed(w window.Workload, from, to machine.Node) float64 {
	runs := from.CPUs.Overlaps(w.Binding.CPUs) || w.Binding.CPUs.IsEmpty() && !from.CPUs.IsEmpty()
	if runs && (w.Binding.Mems.IsEmpty() || w.Binding.Mems.Has(to.ID)) {
		return 1
	}
	return 0
}

// pairs averages k over the pairs of two nodes.
func (l view) pairs(weigh func(i, j int) float64) (m mean) {
	ratio := l.ratios()
	for i, from := range l.Machine.Nodes {
		for j, to := range l.Machine.Nodes {
			w := weigh(i, j)
			if i == j || w <= 0 {
				continue
			}
			k, source, ok := ratio(from.ID, to.ID)
			if !ok {
				continue
			}
			m.sum, m.weight = m.sum+k*w, m.weight+w
			if !slices.Contains(m.sources, source) {
				m.sources = append(m.sources, source)
			}
		}
	}
	return m
}

// lostOf adds up what these workloads lose; unknown when it is unknown for all of them.
func (l view) lostOf(ids ...int) (unit.Value[float64], []draw) {
	var from []draw
	sum, known := 0.0, false
	why := "no workload is known to lose time by it"
	for _, i := range ids {
		v := l.lostCPUs(at(l.Window.Workloads, i)).cpus
		if lost, ok := v.Get(); ok {
			sum, known, from = sum+lost, true, append(from, draw{l.remoteOf(i), lost})
		} else {
			why = because(v)
		}
	}
	if !known {
		return unit.UnknownValue[float64](why), nil
	}
	return unit.Estimated(sum, "what its workloads lose to remote memory"), from
}

// stalledCPUs is CPUs' worth of time a workload waits for memory.
func (l view) stalledCPUs(id string) unit.Value[float64] {
	i := l.workload(id)
	if i < 0 {
		return unit.UnknownValue[float64]("its workload is not in the window")
	}
	w := l.Window.Workloads[i]
	stalls := window.FeaturesOf(w, l.Length).MSR
	m, ok1 := stalls.Get()
	cpu, ok2 := w.CPU.Get()
	if !ok1 || !ok2 {
		return unit.UnknownValue[float64]("no stall cycles: " + because(stalls))
	}
	return unit.ValueOf(cpu*float64(m), min(stalls.How, w.CPU.How), stalls.From)
}

// scaled is a part of a value. It is no longer measured.
func scaled(v unit.Value[float64], part float64, from string) unit.Value[float64] {
	f, ok := v.Get()
	if !ok {
		return v
	}
	return unit.Estimated(f*part, from)
}

// remoteEvidence is the evidence of every finding about a workload far from its memory.
func (l view) remoteEvidence(w window.Workload, lost loss) []Evidence {
	out := []Evidence{shown("remote reads", lost.remote), figured("CPU time", w.CPU, "CPUs")}
	if f := window.FeaturesOf(w, l.Length); f.MSR.Known() {
		out = append(out, shown("stalled on memory", f.MSR))
	}
	return append(out, figured("latency remote / local", lost.slower, ""))
}
