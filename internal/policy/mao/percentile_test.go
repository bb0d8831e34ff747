// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"homenode/internal/machine/machinetest"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// The rounds of `make bench-optimizer`: 200 workloads on 8 nodes of 32 CPUs, as on a full
// host: replicas of 60 services, three in four approved. A machine starts (binding), runs
// for hours with all bound (steady), and has a node that is overloaded again and again
// (unbinding). Every sensor has figures, so no work is skipped for lack of them.
const (
	roundLoads = 200
	roundNodes = 8
	roundCPUs  = 32
)

type rounds struct {
	r       *rand.Rand
	h       *windowtest.Host
	windows uint64
	free    window.Binding // of an unbound workload: the whole machine
}

func newRounds(seed uint64) *rounds {
	b := &rounds{r: rand.New(rand.NewPCG(seed, 11)), h: &windowtest.Host{}}
	b.h.Shape(rangeOf(roundNodes), roundCPUs, 256*unit.GiB)
	b.free = window.Binding{CPUs: set.FromCPUs(rangeOf(roundNodes * roundCPUs)...), Mems: set.FromNodes(rangeOf(roundNodes)...)}
	for i := range b.h.Machine.Distances {
		for j := range b.h.Machine.Distances[i] {
			if i != j {
				b.h.Machine.Distances[i][j] = unit.Some([]int{16, 22}[(i+j)%2])
			}
		}
	}
	return b
}

// window is the next window; bound workloads are at home. hot is an overloaded node, or −1.
func (b *rounds) window(st State, hot int) window.Window {
	b.windows++
	busy := make([]float64, roundNodes)
	for i := range roundLoads {
		l := b.h.Load(fmt.Sprintf("/kubepods.slice/pod-%03d", i))
		l.Service, l.Approved = fmt.Sprintf("service-%02d", i%60), i%60%4 != 3
		nodes := st.Bound(l.ID)
		b.fill(l, i, nodes, hot)
		for n := range busy {
			busy[n] += l.CPUByNode[n].Or(0)
		}
	}
	w := b.h.Window()
	w.Length = 10 * time.Second
	for n := range w.Nodes {
		w.Nodes[n].CPUBusy = unit.Measured(min(roundCPUs, busy[n]+b.r.Float64()), "cpuacct.usage_percpu")
		w.Nodes[n].Traffic = unit.Measured(unit.Bytes(1e10*b.r.Float64()), "uncore_imc")
	}
	return w
}

func (b *rounds) fill(l *windowtest.Load, i int, nodes set.NodeSet, hot int) {
	cpu := 0.4 + float64(i%7)*0.1 + 0.2*b.r.Float64()
	l.Binding = b.free
	l.Quota = unit.Measured(1.5, "cpu.max")
	if !nodes.IsEmpty() {
		l.Binding = window.Binding{CPUs: b.h.Machine.CPUsOf(nodes), Mems: nodes, OursCPUs: true, OursMems: true}
		if nodes.Has(hot) {
			cpu = 1.6
		}
	}
	l.CPUByNode, l.AnonByNode, l.FileByNode = make([]unit.Value[float64], roundNodes), make([]unit.Value[unit.Bytes], roundNodes), make([]unit.Value[unit.Bytes], roundNodes)
	for n := range roundNodes {
		part := 1.0 / roundNodes
		if !nodes.IsEmpty() {
			part = 0
			if nodes.Has(n) {
				part = 1 / float64(nodes.Len())
			}
		}
		l.CPUByNode[n] = unit.Measured(cpu*part, "cpuacct.usage_percpu")
		l.AnonByNode[n] = unit.Measured(unit.Bytes((4e9+1e6*b.r.Float64())*part), "memory.numa_stat")
		l.FileByNode[n] = unit.Measured(unit.Bytes(5e8*part), "memory.numa_stat")
	}
	reads := 1e7 * (1 + b.r.Float64())
	remote := reads * 7 / 8
	if !nodes.IsEmpty() {
		remote = reads * 0.01
	}
	l.CPU = unit.Measured(cpu, "cpu.stat")
	l.LocalLoads, l.RemoteLoads = unit.Measured(uint64(reads-remote), "perf r01d3"), unit.Measured(uint64(remote), "perf r10d3")
	l.Cycles, l.StallCycles = unit.Measured(uint64(3e9), "perf cycles"), unit.Measured(uint64(1e9*(1+0.1*b.r.Float64())), "perf stalls")
	l.Instructions = unit.Measured(uint64(4e9), "perf instructions")
	l.Waiting, l.LLC = unit.Measured(unit.Ratio(0.001), "cpu.pressure"), unit.Measured(unit.MiB, "llc_occupancy")
	l.Traffic = unit.Measured(unit.Bytes(reads*80), "mbm_total_bytes")
}

// collectEvery is the number of windows between garbage collections. The collector does not
// start by itself, so no round pays for it.
const collectEvery = 2

type roundFigures struct {
	Name    string             `json:"name"`
	Rounds  int                `json:"rounds"`
	Actions map[string]int     `json:"actions"`
	Micros  map[string]float64 `json:"us"`
	// Least is, for each round, the least of leastOf times: the round's own cost, without
	// the host's disturbance. Only the first time reads the window anew.
	Least map[string]float64 `json:"us_least"`
}

const leastOf = 5

// benchFile is the environment variable that names the file for the percentiles. Without it
// each round is done once: a test of what the rounds do, not of how long they take.
const benchFile = "HOMENODE_BENCH_OPTIMIZER"

// threadTime is CPU time of this thread, ns: the time that other load on the host disturbs
// least. The collector's own threads are not in it; the waits that it causes for
// allocations are.
func threadTime() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// roundRuns is how often rounds are run: a bench measures them, a test sees that they happen.
func roundRuns() int {
	if os.Getenv(benchFile) != "" {
		return 6
	}
	return machinetest.Seeds(1, 6)
}

// measure runs rounds of each kind, and returns how long each took: 150 binding rounds, as
// many steady ones, then unbinding, where a node is overloaded in one window of twenty.
func measure(seed uint64) map[string]*roundFigures {
	all := map[string]*roundFigures{}
	took, least := map[string][]float64{}, map[string][]float64{}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	times, measuring := 1, os.Getenv(benchFile) != ""
	if measuring {
		times = leastOf
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // except in the calls below
	}
	for run := range uint64(roundRuns()) {
		b, st, cfg := newRounds(seed+run), State{}, DefaultConfig()
		cfg.NodeBandwidth = map[int]unit.Bytes{}
		for n := range roundNodes {
			cfg.NodeBandwidth[n] = 1e11
		}
		for n := range 600 {
			kind, hot := "binding", -1
			switch {
			case n >= 300:
				kind = "unbinding"
				if n%20 == 0 {
					hot = n / 20 % roundNodes
				}
			case n >= 200:
				kind = "steady"
			}
			w := b.window(st, hot)
			if measuring && n%collectEvery == 0 {
				runtime.GC() // collects the generator's garbage, which our rounds would pay for otherwise
			}
			begin := threadTime()
			next, actions, _ := Step(b.h.Machine, cfg, st, w)
			us := float64(threadTime()-begin) / 1e3
			f := all[kind]
			if f == nil {
				f = &roundFigures{Name: kind, Actions: map[string]int{}}
				all[kind] = f
			}
			f.Rounds++
			for _, a := range actions {
				f.Actions[a.Reason.Rule]++
			}
			took[kind] = append(took[kind], us)
			took["all"] = append(took["all"], us)
			for range times - 1 {
				begin := threadTime()
				Step(b.h.Machine, cfg, st, w)
				us = min(us, float64(threadTime()-begin)/1e3)
			}
			least[kind], least["all"] = append(least[kind], us), append(least["all"], us)
			st = next
		}
	}
	all["all"] = &roundFigures{Name: "all", Rounds: len(took["all"])}
	for kind, us := range took {
		all[kind].Micros, all[kind].Least = percentiles(us), percentiles(least[kind])
	}
	return all
}

func percentiles(us []float64) map[string]float64 {
	slices.Sort(us)
	at := func(p float64) float64 { return us[min(len(us)-1, int(p*float64(len(us))))] }
	return map[string]float64{"min": math.Round(us[0]), "p50": math.Round(at(0.5)), "p90": math.Round(at(0.9)), "p99": math.Round(at(0.99)), "max": math.Round(us[len(us)-1])}
}

// With HOMENODE_BENCH_OPTIMIZER=FILE the percentiles go there. Else this tests the rounds:
// that they bind, hold and unbind.
func TestRounds(t *testing.T) {
	figures := measure(1)
	for _, kind := range []string{"binding", "steady", "unbinding", "all"} {
		f := figures[kind]
		t.Logf("%-9s %5d rounds %v, least of %d %v %v", kind, f.Rounds, f.Micros, leastOf, f.Least, f.Actions)
	}
	if 6*figures["binding"].Actions["mao.bind"] < 500*roundRuns() || figures["unbinding"].Actions["mao.unbind.B"] < 5*roundRuns() {
		t.Errorf("%v, %v: too little happens", figures["binding"].Actions, figures["unbinding"].Actions)
	}
	if path := os.Getenv(benchFile); path != "" {
		text, err := json.MarshalIndent(figures, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
