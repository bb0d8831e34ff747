// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// The assumptions about a machine that was not measured: those of MAO's server and of
// facts/latency.md, a two-socket Skylake-SP.
const (
	usualHz         = 2.7e9
	usualLatency    = 80e-9 // seconds, DDR4-2400 on the own node; MAO. Remote: by SLIT distance, machine.LatencyRatio
	usualLLCPerCore = 1.375 * (1 << 20)
	usualL2         = 1 << 20
	usualL2Cycles   = 14
	usualLLCCycles  = 54 // 20 ns
	usualAtomic     = 18 // as in the lab
	// Intel's cores have had 10 fill buffers since Nehalem, and 12 since Skylake (Intel 64
	// and IA-32 Architectures Optimization Reference Manual). The queue between L2 and L3 is
	// commonly given as 16 there, but an Opteron 6272 has 8.6 lines outstanding by what one
	// thread reads (docs/limits.md): 12 is between. Fewer make a single core's bandwidth
	// smaller.
	usualFillBuffers = 12
	usualSuperqueue  = 12
)

// FromMachine is the system of any machine. Figures are those of its profile. Without a
// profile, or where it lacks one, a figure is an estimate from the machine's topology and
// distances, and From says so. An error says what is missing (no memory, no CPU), or how
// the profile is of another machine.
func FromMachine(m machine.Machine, p *profile.Profile) (System, error) {
	if m.NodesWithMemory().IsEmpty() {
		return System{}, fmt.Errorf("simulate memory of %s: no node has memory", m.Origin)
	}
	if m.NodesWithCPUs().IsEmpty() {
		return System{}, fmt.Errorf("simulate memory of %s: no node has an online CPU", m.Origin)
	}
	f := figures{m: m, p: &profile.Profile{}}
	how, from := unit.HowEstimated, "a two-socket Skylake's figures, by SLIT distance; waits on links are a guess"
	if p != nil {
		if why := p.Machine.Differs(profile.FingerprintOf(m, "")); why != "" {
			return System{}, fmt.Errorf("use profile of %s for %s: %s", p.Origin, m.Origin, why)
		}
		f.p, how, from = p, max(p.How, unit.HowEstimated), "profile of "+p.Origin
	}
	y := f.system()
	y.Name, y.How, y.From = m.Origin, how, from
	if p != nil && len(f.guessed) > 0 {
		y.From += "; estimated: " + strings.Join(f.guessed, ", ")
	}
	return y, nil
}

// figures looks things up, and records what it had to guess.
type figures struct {
	m       machine.Machine
	p       *profile.Profile
	hz      float64
	guessed []string
}

func (f *figures) guess(what string) {
	if !slices.Contains(f.guessed, what) {
		f.guessed = append(f.guessed, what)
	}
}

func (f *figures) system() System {
	f.hz = f.frequency()
	y := System{Hz: f.hz, Atomic: usualAtomic, Queue: PublishedCurve, Threads: f.threads()}
	y.L2, y.L2Cycles, y.LLCCycles = f.l2(y.Threads), f.hit(2, usualL2Cycles), f.hit(3, usualLLCCycles)
	for i, n := range f.m.Nodes {
		latency, transfer := make([]float64, len(f.m.Nodes)), make([]float64, len(f.m.Nodes))
		for j, to := range f.m.Nodes {
			latency[j] = f.latency(n.ID, to.ID) * f.hz
			transfer[j] = f.transfer(n, to, latency[j])
		}
		y.Latency, y.Transfer = append(y.Latency, latency), append(y.Transfer, transfer)
		y.InLLC = append(y.InLLC, f.inLLC(n))
		y.Nodes = append(y.Nodes, Node{ID: n.ID, CPUs: float64(n.CPUs.Len()), Memory: float64(n.Memory.Or(0))})
		y.Domains = append(y.Domains, f.domains(i)...)
	}
	f.controllers(&y)
	y.Misses = f.misses(&y)
	f.links(&y)
	return y
}

// frequency is cycles per second, from a figure of the profile that has both.
func (f *figures) frequency() float64 {
	var known []float64
	for _, l := range f.p.Latency {
		cycles, ok := l.Cycles.Get()
		ns, ok2 := l.Median.Get()
		if hz := cycles / ns * 1e9; ok && ok2 && hz >= 1e6 && hz <= 1e11 {
			known = append(known, hz)
		}
	}
	if len(known) == 0 {
		f.guess("2.7 GHz")
		return usualHz
	}
	slices.Sort(known)
	return known[len(known)/2]
}

// misses are the lines that a core can wait for. With a profile they follow from what one
// CPU reads of its own memory, by Little's law: bandwidth × latency / a line, where it makes
// some of that latency by its own load.
func (f *figures) misses(y *System) Misses {
	for _, row := range f.p.Policies {
		bytes, ok := row.Median.Get()
		node, ok2 := f.m.NodeOf(row.CPU)
		if row.Policy != "local" || row.Work != "read" || !ok || !ok2 || bytes <= 0 {
			continue
		}
		for i := range y.Nodes {
			if y.Nodes[i].ID == node {
				perCycle := bytes / f.hz / LineBytes
				lines := max(1, perCycle*y.Latency[i][i]*y.Nodes[i].loaded(perCycle*y.Nodes[i].Cycles))
				return Misses{L1: min(usualFillBuffers, lines), L2: lines}
			}
		}
	}
	f.guess("a core's outstanding misses")
	return Misses{L1: usualFillBuffers, L2: usualSuperqueue}
}

// loaded is a measured server's latency as a multiple of the idle one.
func (s *Server) loaded(busy float64) (y float64) {
	if len(s.Curve) > 0 {
		y, _ = curveAt(s.Curve, min(1, busy))
		return y
	}
	y, _ = defaultAt(min(1, busy))
	return y
}

// threads is the number of CPUs of a core, for most cores.
func (f *figures) threads() int {
	count := map[int]int{}
	best := 1
	for _, c := range f.m.Cores {
		n := c.Len()
		count[n]++
		if count[n] > count[best] || count[n] == count[best] && n < best {
			best = n
		}
	}
	return max(1, best)
}

// l2 is a core's part of the L2s; 0 where L2 is the last level.
func (f *figures) l2(threads int) float64 {
	if len(f.m.LLCs) > 0 && f.m.LLCs[0].Level < 3 {
		return 0
	}
	sum, n := 0.0, 0
	for _, c := range f.m.L2s {
		size, ok := c.Size.Get()
		if cpus := c.CPUs.Len(); ok && cpus > 0 && size > 0 {
			sum += float64(size) / math.Max(1, float64(cpus)/float64(threads))
			n++
		}
	}
	if n > 0 {
		return sum / float64(n)
	}
	for _, c := range f.p.Caches {
		if size, ok := c.Size.Get(); ok && c.Level == 2 {
			return float64(size)
		}
	}
	f.guess("L2 of 1 MiB")
	return usualL2
}

// hit is the cycles of a hit in a cache level.
func (f *figures) hit(level int, usual float64) float64 {
	for _, c := range f.p.Caches {
		if ns, ok := c.Latency.Median.Get(); ok && c.Level == level && ns > 0 {
			return ns / 1e9 * f.hz
		}
	}
	f.guess(fmt.Sprintf("hits of L%d in %.0f cycles", level, usual))
	return usual
}

// latency is in seconds: measured, the firmware's, or the local one scaled by distance;
// plain SLIT numbers promise too much (machine.SLITExcess).
func (f *figures) latency(from, to int) float64 {
	if l, ok := f.p.LatencyBetween(from, to); ok && !f.nearerThanLocal(from, to, l) {
		return l.Median.Or(0) / 1e9
	}
	if ns, ok := f.firmware(from, to); ok && len(f.p.Latency) == 0 && f.allFirmware(from) {
		return ns / 1e9
	}
	local := usualLatency
	if l, ok := f.p.LatencyBetween(from, from); ok {
		local = l.Median.Or(0) / 1e9
	} else if ns, ok := f.firmware(from, from); ok {
		local = ns / 1e9
	}
	if n, _ := f.m.Node(from); !n.CPUs.IsEmpty() {
		f.guess("latencies by distance")
	}
	const unknown = 2 * machine.LocalDistance
	return local * machine.LatencyRatio(f.m.Distance(from, to).Or(unknown), machine.SLITExcess)
}

// nearerThanLocal reports that a profile has another node's memory nearer than the own one,
// by more than noise. It contradicts itself there, and the distance is believed instead.
func (f *figures) nearerThanLocal(from, to int, l profile.Figure) bool {
	const noise = 0.95
	local, ok := f.p.LatencyBetween(from, from)
	own, ns := local.Median.Or(0), l.Median.Or(0)
	if from == to || !ok || ns >= noise*own {
		return false
	}
	f.guess(fmt.Sprintf("latencies by distance, as that from node %d to %d is %.0f ns, below the local %.0f", from, to, ns, own))
	return true
}

// allFirmware reports that HMAT has a node's latency to all memory. Usually it has only
// that to its own. Combined with estimates by distance, that would make a far node look
// near.
func (f *figures) allFirmware(from int) bool {
	for to := range f.m.NodesWithMemory().All() {
		if _, ok := f.firmware(from, to); !ok {
			return false
		}
	}
	return true
}

// firmware is HMAT's figure, ns.
func (f *figures) firmware(from, to int) (float64, bool) {
	n, _ := f.m.Node(to)
	for _, a := range n.Access {
		if ns, ok := a.ReadLatency.Get(); ok && ns > 0 && a.Initiators.Has(from) {
			return float64(ns), true
		}
	}
	return 0, false
}

// domains are the LLCs of a node. An LLC that spans nodes is split by CPUs.
func (f *figures) domains(i int) []Domain {
	n := f.m.Nodes[i]
	if n.CPUs.IsEmpty() {
		return nil
	}
	var all []Domain
	var seen set.CPUSet
	for _, c := range f.m.LLCs {
		here := c.CPUs.Intersect(n.CPUs)
		if here.IsEmpty() {
			continue
		}
		seen = seen.Union(here)
		cpus := float64(here.Len())
		all = append(all, f.domain(i, cpus, f.llc(c, cpus)))
	}
	if rest := n.CPUs.Minus(seen).Len(); rest > 0 {
		all = append(all, Domain{Node: i, CPUs: float64(rest), LLC: f.llc(machine.Cache{}, float64(rest))})
	}
	return all
}

// A group of cores with an LLC of its own has a fabric of its own: a CCD reads some 50 GB/s
// with 8 cores (32 bytes per cycle of a fabric at 1.5 to 1.8 GHz), however much its node's
// memory has. A third of the idle latency is spent there: a guess.
const (
	fabricPerCore = 6.25e9 // bytes/s
	fabricIdle    = 0.3
)

func (f *figures) domain(i int, cpus, llc float64) Domain {
	d := Domain{Node: i, CPUs: cpus, LLC: llc}
	if n := f.m.Nodes[i]; f.grouped(n) {
		f.guess("fabrics of groups with an LLC")
		bytes := fabricPerCore * math.Ceil(cpus/float64(f.threads()))
		d.Fabric = Server{Cycles: LineBytes * f.hz / bytes}
		d.Idle = fabricIdle * f.latency(n.ID, n.ID) * f.hz
	}
	return d
}

// llc is the bytes of a cache for cpus of its CPUs.
func (f *figures) llc(c machine.Cache, cpus float64) float64 {
	all := float64(max(1, c.CPUs.Len()))
	if size, ok := c.Size.Get(); ok && size > 0 {
		return float64(size) * cpus / all
	}
	if size, ok := f.p.LLC(); ok && c.Level > 0 {
		return float64(size) * cpus / all
	}
	f.guess("LLC of 1.375 MiB a core")
	return usualLLCPerCore * math.Ceil(cpus/float64(f.threads()))
}
