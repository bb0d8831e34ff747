// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"homenode/internal/sim"
	"homenode/internal/sim/exact"
	"homenode/internal/sim/linux"
	"homenode/internal/sim/memsys"
)

// workload is one replica.
type workload struct {
	spec  *sim.Spec
	works []memsys.Work // by phase
	sim.Cpuset
	service          string
	came, gone, seen bool
	threads          []thread
	group            linux.Group // its pages: rows of private ones by the node of their thread
	requests         *sim.Requests
	demand           sim.Demand
	random           exact.Random // of where its threads go
	mask             []uint64     // of CPUs

	private  float64 // share of its accesses that go to private memory
	mixed    bool
	key      uint64  // of where its shared pages are
	straggle float64 // sim.Spec.Straggle
	pace     float64 // operations a second of each thread, where they wait for each other
	need     float64 // operations a second of all, where they are asked for
	cycles   float64 // of an operation, the mean of its threads
	slow     float64
	grown    float64
	owed     sim.Owed
	numa     numa
	wakeRate float64 // of a thread, a second

	byCPU []float64
	used  []float64 // CPU seconds by node since the last tick
	llc   float64   // bytes
	win   counts
	truth counts
	tail  tail
}

func (wl *workload) here() bool { return wl.came && !wl.gone }

// closed says that its threads do one operation after the other and never stop.
func (wl *workload) closed() bool {
	return wl.demand.Closed && wl.spec.Demand.Think == 0 && wl.spec.Work.Barrier == 0
}

// prepare makes a spec's replicas; they are not there yet.
func (w *World) prepare(s *sim.Spec) {
	works := s.Works()
	for r := range s.Count() {
		wl := &workload{spec: s, works: works, Cpuset: sim.Cpuset{ID: s.ID(r), Owner: s.Owner}, service: s.Service, straggle: 1, slow: 1}
		if wl.service == "" {
			wl.service = s.Name
		}
		if wl.Owner == "" {
			wl.Owner = sim.NoOwner
		}
		if s.Work.Barrier > 0 && s.Threads > 1 {
			wl.straggle = s.Straggle()
		}
		w.all = append(w.all, wl)
	}
}

// number makes its threads, and gives them their IDs: those of all workloads in order.
func (w *World) number(wl *workload) {
	n := len(w.nodes)
	wl.threads = make([]thread, wl.spec.Threads)
	room := make([]float64, n*wl.spec.Threads)
	for i := range wl.threads {
		t := &wl.threads[i]
		*t = thread{wl: wl, index: i, cpu: -1, prefer: -1, private: room[i*n : i*n+n : i*n+n]}
		w.ids = append(w.ids, t)
		t.id = len(w.ids)
	}
}

// begin lets a workload come: its threads are placed, then it touches its memory.
func (w *World) begin(wl *workload) {
	n := len(w.nodes)
	wl.came = true
	wl.byCPU, wl.used = make([]float64, n), make([]float64, n)
	wl.requests = sim.NewRequests(w.c, wl.spec, wl.ID, w.now)
	wl.random = exact.NewRandom(w.c.Seed, wl.ID, "threads")
	wl.private, wl.mixed = sim.PrivateShare(&w.c.System, wl.spec, &wl.works[0])
	policy := sim.StartPolicy(w.c, wl.spec)
	wl.Cpuset = sim.NewCpuset(w.c, wl.spec, wl.ID, wl.Owner, policy)
	wl.group = linux.Group{
		ID: wl.ID, Threads: float64(wl.spec.Threads), On: make([]float64, n), Used: make([]float64, n),
		Mems: w.c.Indexes(wl.Mems), Pinned: true, Quota: wl.spec.CPULimit, Policy: policy,
		Random: exact.NewRandom(w.c.Seed, wl.ID, "linux"),
	}
	w.remask(wl)
	wl.demand = wl.requests.Ask(w.now, w.c.Step)
	w.start(wl)
	w.host.Arrive(&wl.group)
	w.live = append(w.live, wl)
	w.fill(wl)
	w.stale, w.changed, w.tallied = true, true, false
}

// remask is for what threads may use by its cpuset.
func (w *World) remask(wl *workload) {
	wl.mask = w.maskOf(wl.CPUs)
	for i := range wl.threads {
		w.allow(&wl.threads[i])
	}
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
