// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"homenode/internal/sim/detmath"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// Workload is one replica of a spec. The exported fields are for the Population.
type Workload struct {
	asking
	Works []memsys.Work // by phase, shared by replicas; one entry without phases
	Cpuset
	service    string
	came, gone bool
	seen       bool // a Window has read its counters once
	Group      linux.Group

	Private float64 // share of its accesses that go to private memory
	Mixed   bool    // that share is derived from what its regions read beyond the caches
	Slow    float64 // factor on its cycles: the cost of NUMA balancing in the last step
	Owed    Owed
	Grown   float64 // pages of anonymous memory added since the start

	ByCPU []float64 // CPU seconds by node since the last Window
	Win   Counts    // since the last Window
	Got   Counts    // since the last Truth
}

// Counts are sums over time.
type Counts struct {
	Seconds, Asked, Ops, Dropped float64
	CPU, Cycles, Instructions    float64
	Stall, Local, Remote         float64
	Requests, Waits              float64 // uncore requests and waits: misses of L2, cycles
	Latency                      float64
	Stalled, Bound               float64
}

func (c *Counts) add(o *Counts) {
	c.Seconds += o.Seconds
	c.Asked += o.Asked
	c.Ops += o.Ops
	c.Dropped += o.Dropped
	c.CPU += o.CPU
	c.Cycles += o.Cycles
	c.Instructions += o.Instructions
	c.Stall += o.Stall
	c.Local += o.Local
	c.Remote += o.Remote
	c.Requests += o.Requests
	c.Waits += o.Waits
	c.Latency += o.Latency
	c.Stalled += o.Stalled
	c.Bound += o.Bound
}

// Count adds a step's counts to the next Window and the next Truth.
func (wl *Workload) Count(c *Counts) {
	wl.Win.add(c)
	wl.Got.add(c)
}

// NewCounts starts the counts of a step of dt seconds.
func (wl *Workload) NewCounts(dt float64) Counts {
	c := Counts{Seconds: dt, Stalled: wl.Demand.Still}
	if wl.Bound {
		c.Bound = dt
	}
	return c
}

// Here reports that it has arrived and not departed.
func (wl *Workload) Here() bool { return wl.came && !wl.gone }

// replicasOf makes a spec's workloads; they are not present yet.
func replicasOf(s *Spec) (all []*Workload) {
	works := worksOf(s)
	for _, id := range s.IDs() {
		wl := &Workload{asking: asking{Spec: s}, Works: works, Cpuset: Cpuset{ID: id, Owner: s.Owner}, service: s.Service, Slow: 1}
		if wl.service == "" {
			wl.service = s.Name
		}
		if wl.Owner == "" {
			wl.Owner = noOwner
		}
		all = append(all, wl)
	}
	return all
}

// begin lets a workload arrive: its threads are placed, then it touches its memory.
func (w *World) begin(wl *Workload) {
	n := len(w.Config.Machine.Nodes)
	wl.came = true
	wl.ByCPU = make([]float64, n)
	wl.noise.start(w.Config.Seed, wl.ID, wl.Spec.Demand.Noise, w.now)
	wl.Private, wl.Mixed = PrivateShare(&w.Config.System, wl.Spec, &wl.Works[0])
	policy := startPolicy(w.Config, wl.Spec)
	wl.Cpuset = newCpuset(w.Config, wl.Spec, wl.ID, wl.Owner, policy)
	wl.Group = linux.Group{
		ID: wl.ID, Threads: float64(wl.Spec.Threads), On: make([]float64, n), Used: make([]float64, n),
		Mems: indexes(w.Config.Machine, wl.Mems), Pinned: wl.Spec.Start.Pinned, Quota: wl.Spec.CPULimit,
		Policy: policy, Random: detmath.NewRandom(w.Config.Seed, wl.ID, "linux"),
	}
	w.population.Begin(wl)
	w.Host.Arrive(&wl.Group)
	w.live = append(w.live, wl)
	w.fill(wl)
}
