// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"

	"homenode/internal/sim/detmath"
	"homenode/internal/sim/memsys"
)

// What follows from a spec alone.

// IDs are the IDs of a spec's workloads, one per replica.
func (s *Spec) IDs() []string {
	if s.replicas() == 1 {
		return []string{s.id(0)}
	}
	var all []string
	for i := range s.replicas() {
		all = append(all, s.id(i))
	}
	return all
}

// id is the ID of a replica.
func (s *Spec) id(replica int) string {
	if s.replicas() == 1 {
		return "/" + s.Name
	}
	return fmt.Sprintf("/%s-%d", s.Name, replica+1)
}

func (s *Spec) replicas() int { return max(1, s.Replicas) }

// Held is the bytes that a workload cannot do without. Page cache can be dropped.
func (s *Spec) Held() float64 {
	return float64(s.Memory.Private) + float64(s.Memory.Shared) + float64(s.Memory.Files)
}

// worksOf is an operation in each phase.
func worksOf(s *Spec) []memsys.Work {
	phases := s.Phases
	if len(phases) == 0 {
		phases = []PhaseSpec{{}}
	}
	works := make([]memsys.Work, len(phases))
	for i, p := range phases {
		works[i] = s.Work.In(p)
	}
	return works
}

// In is an operation in a phase.
func (s *WorkSpec) In(p PhaseSpec) memsys.Work {
	work := memsys.Work{
		Cycles: s.Cycles * orOne(p.Cycles), Instructions: s.Instructions * orOne(p.Cycles),
		Adds: s.Adds * orOne(p.Accesses), Lines: s.Lines,
	}
	for _, r := range s.Regions {
		work.Regions = append(work.Regions, memsys.Region{
			Bytes: float64(r.Size), Shared: r.Shared, Accesses: r.Accesses * orOne(p.Accesses),
			Parallelism: max(1, r.Parallelism), Stream: r.Stream, Writes: r.Writes,
		})
	}
	return work
}

// orOne is a factor that may be omitted.
func orOne(factor float64) float64 {
	if factor == 0 {
		return 1
	}
	return factor
}

// CyclesAlone is the cost of an operation on a node before anything has run: all its misses
// are local.
func CyclesAlone(sys *memsys.System, work *memsys.Work, node int) float64 {
	cycles := work.Cycles
	for _, r := range work.Regions {
		cycles += r.Accesses * sys.Latency[node][node] / sys.Outstanding(&r)
	}
	return max(1, cycles)
}

// PrivateShare is the share of a workload's accesses that go to private memory. mixed: its
// regions are of both kinds and the spec gives no share. Then it is a guess, from the
// accesses and from how little of a region fits into an LLC. The first Solve corrects it
// (memsys.Solver.OwnReads).
func PrivateShare(sys *memsys.System, s *Spec, work *memsys.Work) (share float64, mixed bool) {
	m := &s.Memory
	switch {
	case m.Shared == 0 && m.Files == 0:
		return 1, false
	case m.Private == 0:
		return 0, false
	case m.PrivateAccesses != nil && *m.PrivateAccesses >= 0:
		return *m.PrivateAccesses, false
	}
	llc, own, all := 0.0, 0.0, 0.0
	for _, d := range sys.Domains {
		llc = max(llc, d.LLC)
	}
	for _, r := range work.Regions {
		reads := r.Accesses * (r.Bytes / (r.Bytes + llc))
		all += reads
		if !r.Shared {
			own += reads
		}
	}
	if all == 0 { // it reads only the lines it adds to, which are shared
		return 0, false
	}
	return own / all, own > 0 && own < all
}

// Wakes is the number of wake-ups of its threads per operation.
func (s *Spec) Wakes() float64 {
	switch d := &s.Demand; {
	case d.Wakes >= 0:
		return d.Wakes
	case d.Rate > 0:
		return 1
	}
	return 0
}

// Straggle is the ratio between the time of the slowest of its threads to a barrier and the
// mean thread's, where all are in the same place:
//
//	1 + √(2 ln n × spread / N)
//
// n threads do N operations of random work between two barriers; the largest of n sums of N
// is this far above their mean.
func (s *Spec) Straggle() float64 {
	n := float64(s.Threads)
	return 1 + math.Sqrt(2*detmath.Log(n)*orOne(s.Demand.Spread)/float64(s.Work.Barrier))
}
