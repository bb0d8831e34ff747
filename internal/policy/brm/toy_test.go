// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// toy is a machine whose penalties have closed forms, to test the pure policy on. Threads
// are always busy, Pins are done at once, and nothing else moves threads.
type toy struct {
	machine machine.Machine
	nodes   [][]int // CPUs
	ids     []int
	loads   []toyLoad
	r       *rand.Rand
	noise   float64 // relative
	seq     uint64
	length  time.Duration
	pending []action.Outcome
}

type toyLoad struct {
	id        string
	sensitive unit.Opt[bool]
	threads   []toyThread
	// penalty of a thread, given the node of each thread of the toy.
	penalty func(w *toy, l *toyLoad, t *toyThread) float64
	rate    float64 // requests for each cycle that it does not wait
	allowed set.CPUSet
}

type toyThread struct {
	id, cpu int
	home    int // node index, by the load's choice
	moves   int
	cycles  float64 // done, without waits
}

func newToy(seed uint64, nodes, cpus int) *toy {
	h := &windowtest.Host{}
	w := &toy{r: rand.New(rand.NewPCG(seed, 77)), noise: 0.02, length: 10 * time.Millisecond}
	for i := range nodes {
		w.ids = append(w.ids, i)
		w.nodes = append(w.nodes, nil)
		for c := range cpus {
			w.nodes[i] = append(w.nodes[i], i*cpus+c)
		}
	}
	h.Shape(w.ids, cpus, 16*unit.GiB)
	w.machine = h.Machine
	return w
}

// addLoad puts a load's threads on consecutive CPUs, from firstCPU on.
func (w *toy) addLoad(id string, n, firstCPU int, home func(i int) int, penalty func(*toy, *toyLoad, *toyThread) float64) *toyLoad {
	l := toyLoad{id: id, sensitive: unit.Some(true), penalty: penalty, rate: 0.02}
	for i := range n {
		l.threads = append(l.threads, toyThread{id: 1000*(len(w.loads)+1) + i, cpu: (firstCPU + i) % (len(w.nodes) * len(w.nodes[0])), home: home(i)})
	}
	w.loads = append(w.loads, l)
	return &w.loads[len(w.loads)-1]
}

func (w *toy) nodeOf(cpu int) int { return cpu / len(w.nodes[0]) }

// beside is how many of a load's threads are on a node.
func (w *toy) beside(l *toyLoad, node int) (n int) {
	for i := range l.threads {
		if w.nodeOf(l.threads[i].cpu) == node {
			n++
		}
	}
	return n
}

// byDistance: 80 cycles where its memory is, 160 elsewhere.
func byDistance(w *toy, _ *toyLoad, t *toyThread) float64 {
	if w.nodeOf(t.cpu) == t.home {
		return 80
	}
	return 160
}

// bySharing: each thread of the load on another node holds some of its lines.
func bySharing(w *toy, l *toyLoad, t *toyThread) float64 {
	return 40 + float64(60*(len(l.threads)-w.beside(l, w.nodeOf(t.cpu))))
}

// byCrowd: more than one thread on a node overflow its cache.
func byCrowd(w *toy, l *toyLoad, t *toyThread) float64 {
	return 40 + float64(60*(w.beside(l, w.nodeOf(t.cpu))-1))
}

// byNothing is the same everywhere.
func byNothing(*toy, *toyLoad, *toyThread) float64 { return 100 }

func (w *toy) window() window.Window {
	w.seq++
	win := window.Window{Schema: window.Schema, Seq: w.seq, Length: w.length, At: time.Unix(0, 0).Add(time.Duration(w.seq) * w.length), Outcomes: w.pending}
	w.pending = nil
	on := map[int]int{}
	for i := range w.loads {
		for _, t := range w.loads[i].threads {
			on[t.cpu]++
		}
	}
	for i, n := range w.machine.Nodes {
		win.Nodes = append(win.Nodes, window.Node{ID: w.ids[i], CPUs: n.CPUs})
	}
	for i := range w.loads {
		win.Workloads = append(win.Workloads, w.workload(&w.loads[i], on))
	}
	return win
}

func (w *toy) workload(l *toyLoad, on map[int]int) window.Workload {
	wl := window.Workload{ID: l.id, Sensitive: l.sensitive}
	if wl.Binding.CPUs = w.machine.OnlineCPUs(); !l.allowed.IsEmpty() {
		wl.Binding.CPUs = l.allowed
	}
	for i := range l.threads {
		t := &l.threads[i]
		used := 1 / float64(on[t.cpu])
		penalty := l.penalty(w, l, t) * (1 + w.noise*w.r.NormFloat64())
		cycles := 2e9 * used * w.length.Seconds()
		done := cycles / (1 + l.rate*penalty)
		t.cycles += done
		wl.Threads = append(wl.Threads, window.Thread{
			ID: t.id, CPU: unit.Some(t.cpu), Used: unit.Measured(used, "toy"), Allowed: wl.Binding.CPUs,
			Cycles: unit.Modelled(uint64(cycles), "toy"), UncoreRequests: unit.Modelled(uint64(done*l.rate), "toy"), UncoreWaits: unit.Modelled(uint64(done*l.rate*penalty), "toy"),
		})
	}
	return wl
}

func (w *toy) apply(t testing.TB, actions []action.Action) {
	t.Helper()
	for _, a := range actions {
		th := w.thread(a.Workload, a.Thread)
		cpu, ok := a.CPUs.First()
		if th == nil || !ok || a.Kind != action.Pin {
			t.Fatalf("%v of what is not there", a)
		}
		if w.nodeOf(th.cpu) != w.nodeOf(cpu) {
			th.moves++
		}
		th.cpu = cpu
	}
}

func (w *toy) thread(load string, id int) *toyThread {
	for i := range w.loads {
		for k := range w.loads[i].threads {
			if t := &w.loads[i].threads[k]; w.loads[i].id == load && t.id == id {
				return t
			}
		}
	}
	return nil
}

// run plays a number of periods, and returns in what share of them, after the first ones,
// ok was true.
func (w *toy) run(t testing.TB, cfg Config, periods, after int, ok func() bool) float64 {
	t.Helper()
	st, good := State{}, 0
	for i := range periods {
		var actions []action.Action
		st, actions, _ = Step(w.machine, cfg, st, w.window())
		w.apply(t, actions)
		if i >= after && ok() {
			good++
		}
	}
	return float64(good) / float64(periods-after)
}

func (w *toy) moves() (n int) {
	for i := range w.loads {
		for _, t := range w.loads[i].threads {
			n += t.moves
		}
	}
	return n
}

func home(w *toy) float64 {
	n, all := 0, 0
	for i := range w.loads {
		for _, t := range w.loads[i].threads {
			all++
			if w.nodeOf(t.cpu) == t.home {
				n++
			}
		}
	}
	return float64(n) / float64(all)
}
