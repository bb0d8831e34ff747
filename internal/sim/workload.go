// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"

	"homenode/internal/action"
	"homenode/internal/sim/exact"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
)

// workload is one replica.
type workload struct {
	asking
	works []memsys.Work // by phase, shared by replicas; one without phases
	Cpuset
	service    string
	came, gone bool
	seen       bool // by a Window: its counters have been read once
	group      linux.Group

	share  []float64 // by domain: of what it does on the domain's node; they sum to 1 a node
	cycles []float64 // by domain: of an operation, as last known

	private float64 // share of its accesses that go to private memory
	mixed   bool    // that share is what its regions read, by what caches have of them
	grown   float64 // pages of anonymous memory so far, beyond the start's
	owed    Owed
	slow    float64 // factor on its cycles: what NUMA balancing took in the last step

	class action.Class // see isolation.go
	llc   float64      // bytes, at the end of the last step

	byCPU []float64
	win   counts // since the last Window
	truth counts // since the last Truth
}

// Owed are pages by kind (linux.Kind) that a workload asked for and that were refused.
type Owed [linux.Cache]float64

// Bytes are all of them.
func (o Owed) Bytes() unit.Bytes {
	return linux.BytesOf(o[linux.Private] + o[linux.Shared] + o[linux.Mapped])
}

// Problem is what a kernel would have said of it in its log, or by its OOM killer.
func (o Owed) Problem(id string) string {
	return fmt.Sprintf("give %s memory: out of memory: %v refused, and asked for again", id, o.Bytes())
}

// counts are sums over time.
type counts struct {
	seconds, asked, ops, dropped float64
	cpu, cycles, instructions    float64
	stall, local, remote         float64
	latency                      float64
	stalled, bound               float64
	traffic, near, waits         float64 // bytes, of these with the memory of its CPUs' nodes; seconds. See isolation.go
}

func (wl *workload) here() bool { return wl.came && !wl.gone }

// id is that of a replica.
func (s Spec) id(replica int) string {
	if s.replicas() == 1 {
		return "/" + s.Name
	}
	return fmt.Sprintf("/%s-%d", s.Name, replica+1)
}

// prepare makes a spec's replicas; they are not there yet.
func (w *World) prepare(s *Spec) {
	works := worksOf(s)
	for r := range s.replicas() {
		wl := &workload{asking: asking{spec: s}, works: works, Cpuset: Cpuset{ID: s.id(r), Owner: s.Owner}, service: s.Service}
		if wl.service == "" {
			wl.service = s.Name
		}
		if wl.Owner == "" {
			wl.Owner = noOwner
		}
		w.all = append(w.all, wl)
	}
}

// worksOf is an operation in each phase.
func worksOf(s *Spec) []memsys.Work {
	phases := s.Phases
	if len(phases) == 0 {
		phases = []PhaseSpec{{}}
	}
	works := make([]memsys.Work, len(phases))
	for i, p := range phases {
		works[i] = memsys.Work{
			Cycles: s.Work.Cycles * orOne(p.Cycles), Instructions: s.Work.Instructions * orOne(p.Cycles),
			Adds: s.Work.Adds * orOne(p.Accesses), Lines: s.Work.Lines,
		}
		for _, r := range s.Work.Regions {
			works[i].Regions = append(works[i].Regions, memsys.Region{
				Bytes: float64(r.Size), Shared: r.Shared, Accesses: r.Accesses * orOne(p.Accesses),
				Parallelism: max(1, r.Parallelism), Stream: r.Stream, Writes: r.Writes,
			})
		}
	}
	return works
}

// orOne is a factor; 0 says nothing.
func orOne(factor float64) float64 {
	if factor == 0 {
		return 1
	}
	return factor
}

// begin lets a workload come: its threads are placed, then it touches its memory.
func (w *World) begin(wl *workload) {
	wl.came, wl.slow = true, 1
	n, domains := len(w.places), len(w.c.System.Domains)
	room := make([]float64, 2*domains+n*(n+6)) // one piece of memory for all
	part := func(k int) []float64 {
		p := room[:k:k]
		room = room[k:]
		return p
	}
	wl.share, wl.cycles, wl.byCPU = part(domains), part(domains), part(n)
	wl.noise.start(w.c.Seed, wl.ID, wl.spec.Demand.Noise, w.now)
	policy := StartPolicy(w.c, wl.spec)
	wl.Cpuset = NewCpuset(w.c, wl.spec, wl.ID, wl.Owner, policy)
	wl.group = linux.Group{
		ID: wl.ID, Threads: float64(wl.spec.Threads), On: part(n), Used: part(n),
		CPUs: w.count(wl.CPUs), Mems: w.c.Indexes(wl.Mems), Pinned: wl.spec.Start.Pinned, Quota: wl.spec.CPULimit,
		Policy: policy, Random: exact.NewRandom(w.c.Seed, wl.ID, "linux"),
		Memory: linux.Memory{Private: part(n * n), Shared: part(n), Mapped: part(n), Cache: part(n)},
	}
	w.spread(wl)
	w.host.Arrive(&wl.group)
	w.live = append(w.live, wl)
	wl.private, wl.mixed = w.privateShare(wl)
	w.guess(wl)
	w.fill(wl)
}

func (w *World) privateShare(wl *workload) (share float64, mixed bool) {
	return PrivateShare(&w.c.System, wl.spec, &wl.works[0])
}

// guess is what an operation costs before anything ran: all its misses are local.
func (w *World) guess(wl *workload) {
	work := &wl.works[0]
	for d, dom := range w.c.System.Domains {
		wl.cycles[d] = CyclesAlone(&w.c.System, work, dom.Node)
	}
}

// fill is its first touch of all that it has.
//
//  1. Private memory is touched by its thread, page cache by who reads.
//  2. Shared memory by the main thread, unless the workers touch it.
//  3. Or all of it somewhere else, if the spec says so. That is no binding: what has no
//     room there goes along the zonelist, as from threads that ran there. So does an
//     interleave, which of one node is just that.
func (w *World) fill(wl *workload) {
	m, g := wl.spec.Memory, &wl.group
	policy := g.Policy
	if touch := wl.spec.Start.Touch; !touch.IsEmpty() && policy.Mode == linux.Local { // 3
		g.Policy = linux.Policy{Mode: linux.Interleave, Nodes: w.c.Indexes(touch)}
	}
	w.touch(wl, linux.Private, pagesOf(m.Private)) // 1
	on := g.On
	if m.Toucher != "workers" { // 2
		g.On = w.mainThread(g)
	}
	w.touch(wl, linux.Shared, pagesOf(m.Shared))
	w.touch(wl, linux.Mapped, pagesOf(m.Files))
	g.On = on
	w.touch(wl, linux.Cache, pagesOf(m.Cache))
	g.Policy = policy
}

// problems are what a kernel would have said in its log, or by its OOM killer.
func (w *World) problems() (all []string) {
	for _, wl := range w.all {
		if wl.here() && wl.owed.Bytes() > 0 {
			all = append(all, wl.owed.Problem(wl.ID))
		}
	}
	return all
}

// mainThread is g.On as if all of its threads were where the main one is: the node
// that has most of them, of several the one with the most free memory.
func (w *World) mainThread(g *linux.Group) []float64 {
	best := 0
	for n := range g.On {
		more := g.On[n] - g.On[best]
		if more > 1e-9 || more > -1e-9 && w.host.Free(n) > w.host.Free(best)+1e-6 {
			best = n
		}
	}
	on := make([]float64, len(g.On))
	on[best] = g.Threads
	return on
}

func pagesOf[B ~int64](b B) float64 { return math.Ceil(float64(b) / linux.PageBytes) }
