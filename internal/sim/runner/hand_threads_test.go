// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/memsys"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// oneNode is all memory on one node.
func oneNode(nodes, k int) []float64 {
	home := make([]float64, nodes)
	home[k] = 1
	return home
}

func randomJobs(r *rand.Rand, n, threads, nodes int) []ThreadJob {
	var jobs []ThreadJob
	for i := range n {
		s := randomSpec(r, fmt.Sprintf("w%d", i))
		s.Threads, s.Demand.Rate = 1+r.IntN(threads), 0
		if s.Threads > 1 && r.IntN(2) == 0 {
			s.Work.Barrier, s.Work.Spin = 100, true
		}
		job := ThreadJob{Spec: &s, Shared: oneNode(nodes, r.IntN(nodes))}
		for range s.Threads {
			job.Private = append(job.Private, oneNode(nodes, r.IntN(nodes)))
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// The brute-force twin: every domain for every thread.
func bestThreads(o *threadOracle, p Placement, i int) float64 {
	if i == len(p) {
		return o.Score(p)
	}
	most := math.Inf(-1)
	for d := range o.sys.Domains {
		p[i] = 1 << d
		most = max(most, bestThreads(o, p, i+1))
	}
	return most
}

func scoreOf(o *threadOracle, places []int) float64 {
	p := make(Placement, len(places))
	for i, d := range places {
		p[i] = 1 << d
	}
	return o.Score(p)
}

func TestSearchThreadsFindsTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	for _, name := range []string{"two", "four"} {
		sys := memsys.FromShape(shapetest.Shape(t, name))
		for range 15 {
			jobs := randomJobs(r, 1+r.IntN(2), 2, len(sys.Nodes))
			o := newThreadOracle(&sys, jobs)
			got := scoreOf(o, SearchThreads(&sys, jobs))
			want := bestThreads(newThreadOracle(&sys, jobs), make(Placement, len(o.threads)), 0)
			if math.IsInf(got, -1) || math.Abs(got-want) > 1e-5 {
				t.Errorf("%s: %g, the best is %g", name, got, want)
			}
		}
	}
}

// Climbing, as for many threads, comes near the overall best.
func TestClimbIsNear(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	sys := memsys.FromShape(shapetest.Shape(t, "two"))
	sys.Misses = memsys.Misses{} // a search among loads that overlap, as on hardware
	for range 12 {
		jobs := randomJobs(r, 3, 2, len(sys.Nodes))
		o := newThreadOracle(&sys, jobs)
		p := o.nearMemory()
		o.climb(p)
		got, want := o.Score(p), bestThreads(newThreadOracle(&sys, jobs), make(Placement, len(p)), 0)
		if got > want+1e-5 || got < want-0.05 { // a mean logarithm: a twentieth of speed
			t.Errorf("%g, the best is %g", got, want)
		}
	}
}

// No domain has more threads than CPUs while others have room. Where there are more threads
// than CPUs, no domain has more than its part.
func TestSearchThreadsHasRoom(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 13))
	sys := memsys.FromShape(shapetest.Shape(t, "two"))
	cpus := int(sys.Domains[0].CPUs)
	for _, threads := range []int{2 * cpus, 4 * cpus, 5 * cpus} {
		s := randomSpec(r, "w")
		s.Threads = threads
		job := ThreadJob{Spec: &s, Shared: oneNode(2, 0)}
		for range threads {
			job.Private = append(job.Private, oneNode(2, 0))
		}
		used := make([]int, len(sys.Domains))
		for _, d := range SearchThreads(&sys, []ThreadJob{job}) {
			used[d]++
		}
		if most := slices.Max(used); most > (threads+1)/2 {
			t.Errorf("%d threads on 2 × %d CPUs: %v", threads, cpus, used)
		}
	}
	if got := SearchThreads(&sys, nil); len(got) != 0 {
		t.Errorf("no thread is placed on %v", got)
	}
}

// Threads go where their memory is. Threads that together overflow a cache go apart, if
// that is worth more.
func TestSearchThreadsKnowsWhatMatters(t *testing.T) {
	sys := memsys.FromShape(shapetest.Shape(t, "two"))
	spec := func(size unit.Bytes) *sim.Spec {
		return &sim.Spec{Name: "a", Threads: 1, Work: sim.WorkSpec{Cycles: 1000, Regions: []sim.RegionSpec{{Size: size, Accesses: 200, Parallelism: 1}}}}
	}
	large := ThreadJob{Spec: spec(64 * unit.MiB), Private: [][]float64{oneNode(2, 1)}, Shared: oneNode(2, 1)}
	if got := SearchThreads(&sys, []ThreadJob{large}); sys.Domains[got[0]].Node != 1 {
		t.Errorf("its memory is on node 1, it is on domain %v", got)
	}
	fits := ThreadJob{Spec: spec(unit.Bytes(sys.Domains[0].LLC * 0.9)), Private: [][]float64{oneNode(2, 0)}, Shared: oneNode(2, 0)}
	if got := SearchThreads(&sys, []ThreadJob{fits, fits}); got[0] == got[1] {
		t.Errorf("two that fill a cache each are on one: %v", got)
	}
}

// handWindow is a window of two threads of one workload on node 0 of a shape.
func handWindow(m machine.Machine, pinned bool) window.Window {
	w := window.Window{Nodes: []window.Node{{ID: 0, CPUs: m.Nodes[0].CPUs}, {ID: 1, CPUs: m.Nodes[1].CPUs}}}
	wl := window.Workload{ID: "/a"}
	for i := range 2 {
		wl.Threads = append(wl.Threads, window.Thread{ID: 100 + i, CPU: unit.Some(m.Nodes[0].CPUs.IDs()[0]), Allowed: m.OnlineCPUs(), Pinned: pinned && i == 1})
	}
	w.Workloads = []window.Workload{wl}
	return w
}

// It pins each thread once to a CPU of its own, requests that again when refused, stops
// when it is done, and leaves alone threads that another process tied.
func TestHandThreadsPinsOnce(t *testing.T) {
	s := shapetest.Shape(t, "two")
	m := s.Machine()
	spec := sim.Spec{Name: "a", Threads: 2, Memory: sim.MemorySpec{Private: 2 * unit.MiB},
		Work: sim.WorkSpec{Cycles: 1000, Regions: []sim.RegionSpec{{Size: unit.MiB, Accesses: 200, Parallelism: 1}}}}
	p, err := New(HandThreads, Options{System: memsys.FromShape(s), Specs: []sim.Spec{spec}})
	if err != nil || p.Name() != HandThreads {
		t.Fatal(p, err)
	}
	w := handWindow(m, false)
	first := p.Step(m, w)
	if len(first) != 2 || first[0].Kind != action.Pin || first[0].CPUs.Len() != 1 || first[0].CPUs == first[1].CPUs || first[0].Thread != 100 {
		t.Fatalf("%+v", first)
	}
	w.Workloads[0].Threads[0].Allowed, w.Workloads[0].Threads[0].Ours = first[0].CPUs, true
	if again := p.Step(m, w); len(again) != 1 || again[0].Thread != 101 || again[0].CPUs != first[1].CPUs {
		t.Errorf("%+v", again)
	}
	w.Workloads[0].Threads[1].Allowed, w.Workloads[0].Threads[1].Ours = first[1].CPUs, true
	if done := p.Step(m, w); len(done) != 0 {
		t.Errorf("%+v", done)
	}
	p, _ = New(HandThreads, Options{System: memsys.FromShape(s), Specs: []sim.Spec{spec}})
	if got := p.Step(m, handWindow(m, true)); len(got) != 1 || got[0].Thread != 100 {
		t.Errorf("a thread that was pinned before: %+v", got)
	}
}

// CPUs of a domain: each thread has its own while there are enough, its present one where
// possible.
func TestCPUsOf(t *testing.T) {
	domains := []set.CPUSet{set.FromCPUs(0, 1), set.FromCPUs(2, 3)}
	got := cpusOf(domains, []int{0, 0, 1, 1, 1}, []int{1, 3, 2, -1, 0})
	want := []set.CPUSet{set.FromCPUs(1), set.FromCPUs(0), domains[1], domains[1], domains[1]}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// BenchmarkSearchThreads is of 64 programs of four threads on 36 nodes.
func BenchmarkSearchThreads(b *testing.B) {
	r := rand.New(rand.NewPCG(14, 14))
	torus, _ := catalog.MachineNamed(catalog.Torus)
	_, sys := torus.Make()
	var jobs []ThreadJob
	for i := range 64 {
		s := randomSpec(r, fmt.Sprintf("w%d", i))
		s.Threads, s.Demand.Rate, s.Work.Barrier = 4, 0, 100
		job := ThreadJob{Spec: &s, Shared: oneNode(36, r.IntN(36))}
		for range s.Threads {
			job.Private = append(job.Private, oneNode(36, r.IntN(36)))
		}
		jobs = append(jobs, job)
	}
	for b.Loop() {
		SearchThreads(&sys, jobs)
	}
}
