// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// The figures of fakeMachine.
const (
	fakeL1, fakeL2, fakeLLC = 16 * unit.KiB, 128 * unit.KiB, unit.MiB
	fakeController          = 20e9 // bytes/s of a node's memory
	fakeLink                = 8e9  // bytes/s between two nodes
	fakeStream              = 6e9  // bytes/s of one CPU
	fakePage                = 2 * time.Microsecond
	fakeCycles              = 2.5 // a ns
)

var fakeLatency = map[int]float64{10: 80, 17: 150, 21: 140, 31: 200} // ns by distance

// fakeMachine has sparse ids, a node without CPUs (5) and one without memory (7).
func fakeMachine() machine.Machine {
	m := machine.Machine{Origin: "fake:bench", PageSize: unit.Some(4 * unit.KiB)}
	for _, n := range []struct {
		id     int
		cpus   set.CPUSet
		memory unit.Bytes
	}{{0, set.FromCPUs(0, 1, 2, 3), unit.GiB}, {2, set.FromCPUs(4, 5, 6, 7), unit.GiB}, {5, set.CPUSet{}, unit.GiB}, {7, set.FromCPUs(8, 9), 0}} {
		m.Nodes = append(m.Nodes, machine.Node{ID: n.id, CPUs: n.cpus, Memory: unit.Some(n.memory)})
		for cpu := range n.cpus.All() {
			llc := unit.Some(len(m.LLCs))
			m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Node: unit.Some(n.id), Core: unit.Some(cpu / 2), LLC: llc, Online: true})
		}
		if !n.cpus.IsEmpty() {
			m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: n.cpus, Size: unit.Some(fakeLLC)})
		}
	}
	for _, row := range [][]int{{10, 21, 17, 21}, {21, 10, 31, 31}, {17, 31, 10, 31}, {21, 31, 31, 10}} {
		var distances []unit.Opt[int]
		for _, d := range row {
			distances = append(distances, unit.Some(d))
		}
		m.Distances = append(m.Distances, distances)
	}
	return m
}

// fake is a machine that answers by formulas, and a clock that its jobs move.
type fake struct {
	m          machine.Machine
	now        time.Time
	noise      float64
	rng        *rand.Rand
	setup      time.Duration // of each job
	perMiB     time.Duration
	free       map[int]unit.Bytes // where not 1 GiB
	cond       membench.Conditions
	others     float64 // CPUs that others use
	ownBusy    time.Duration
	how        unit.Source
	noCounters bool
	jobs       []string // the jobs that ran
	longest    time.Duration
	after      func(jobs int)
}

func newFake() *fake {
	return &fake{
		m: fakeMachine(), now: time.Unix(1e9, 0).UTC(), rng: rand.New(rand.NewPCG(1, 1)), setup: 10 * time.Millisecond, how: unit.HowMeasured,
		cond: membench.Conditions{CPUModel: "Fake 1", Governor: "performance", Busy: unit.Some(time.Hour), Throttled: unit.Some[uint64](3), Balancing: unit.Some(false), HugeAllowed: unit.Some(true)},
	}
}

type fakeClock struct{ how unit.Source }

func (fakeClock) Now(int) time.Duration { return 0 }
func (fakeClock) Name() string          { return "fake clock" }
func (c fakeClock) How() unit.Source    { return c.how }

func (f *fake) Clock() membench.Clock { return fakeClock{f.how} }

func (f *fake) Free(node int) (unit.Bytes, error) {
	if free, ok := f.free[node]; ok {
		return free, nil
	}
	return unit.GiB, nil
}

func (f *fake) Conditions() (membench.Conditions, error) {
	c := f.cond
	if busy, ok := c.Busy.Get(); ok {
		c.Busy = unit.Some(busy + f.ownBusy)
	}
	return c, nil
}

func (f *fake) spend(d time.Duration, threads int, what string) {
	f.now = f.now.Add(d)
	f.longest = max(f.longest, d)
	f.ownBusy += time.Duration(float64(d) * (float64(threads) + f.others))
	f.jobs = append(f.jobs, what)
	if f.after != nil {
		f.after(len(f.jobs))
	}
}

var errTooOld = errors.New("place memory: the kernel is older than 6.9")

func (f *fake) Run(ctx context.Context, j membench.Job) (membench.Result, error) {
	if err := ctx.Err(); err != nil {
		return membench.Result{}, err
	}
	var bytes unit.Bytes
	for _, b := range j.Buffers {
		bytes += b.Bytes
		if b.Policy == membench.WeightedInterleave {
			return membench.Result{}, errTooOld
		}
	}
	f.spend(f.setup+j.Length+j.Warm+f.perMiB*time.Duration(bytes/unit.MiB), threadsOf(j), fmt.Sprint(inPages(j.Buffers), j.Threads))
	if ctx.Err() != nil {
		return membench.Result{}, ctx.Err()
	}
	rates, use := f.rates(j)
	var r membench.Result
	for i, t := range j.Threads {
		var ns float64
		switch t.Work {
		case membench.Chase:
			ns = f.chase(j, i, use)
		case membench.Transfer:
			ns = f.transfer(t)
		default:
			ns = 64e9 / rates[i]
		}
		ns *= 1 + f.noise*f.rng.NormFloat64()
		r.Threads = append(r.Threads, f.result(t, ns, j.Length))
	}
	return r, nil
}

// inPages makes the places of a repeat, and repeats in other places, compare equal.
func inPages(buffers []membench.Buffer) []membench.Buffer {
	all := slices.Clone(buffers)
	for i, b := range all {
		all[i].Bytes = (b.Bytes + pageSize - 1) / pageSize * pageSize
	}
	return all
}

func (f *fake) result(t membench.Thread, ns float64, length time.Duration) membench.ThreadResult {
	ops := uint64(float64(length) / ns)
	r := membench.ThreadResult{Ops: ops, Bytes: 64 * ops, Elapsed: length, Whole: length}
	if t.Count && !f.noCounters {
		n := float64(ops)
		r.Cycles, r.L2Misses, r.LLCMisses = unit.Some(float64(length)*fakeCycles), unit.Some(n), unit.Some(n/2)
		r.Requests, r.Critical = unit.Some(n), unit.Some(n*ns*fakeCycles)
	}
	return r
}

// nodes of a buffer's pages.
func (f *fake) nodes(b membench.Buffer) []int {
	if b.Policy == membench.Local {
		node, _ := f.m.NodeOf(b.TouchCPU)
		return []int{node}
	}
	if b.Policy == membench.Preferred || b.Policy == membench.PreferredMany {
		return b.Nodes.IDs()[:1]
	}
	return b.Nodes.IDs()
}

// rates are the streams' rates: what they can take, less where links or controllers are
// too slow for all; use is the used share of each controller.
func (f *fake) rates(j membench.Job) (rates []float64, use map[int]float64) {
	rates, use = make([]float64, len(j.Threads)), map[int]float64{}
	link := map[[2]int]float64{}
	each := func(do func(i, from, to int, share float64)) {
		for i, t := range j.Threads {
			if t.Work == membench.Chase || t.Work == membench.Transfer {
				continue
			}
			from, _ := f.m.NodeOf(t.CPU)
			to := f.nodes(j.Buffers[t.Buffer])
			for _, node := range to {
				do(i, from, node, 1/float64(len(to)))
			}
		}
	}
	each(func(i, from, to int, share float64) {
		rates[i] = 64 / (64/fakeStream + float64(j.Threads[i].Pause)*0.3e-9)
	})
	each(func(i, from, to int, share float64) { link[[2]int{from, to}] += rates[i] * share })
	slow := make([]float64, len(rates))
	each(func(i, from, to int, share float64) {
		if over := link[[2]int{from, to}] / fakeLink; from != to {
			slow[i] = max(slow[i], over)
		}
	})
	for i := range rates {
		rates[i] /= max(1, slow[i])
	}
	each(func(i, from, to int, share float64) { use[to] += rates[i] * share / fakeController })
	each(func(i, from, to int, share float64) { slow[i] = max(1, use[to]) })
	for i := range rates {
		rates[i] /= max(1, slow[i])
	}
	return rates, use
}

// chase depends on the working set; chases on one node share its last-level cache.
func (f *fake) chase(j membench.Job, i int, use map[int]float64) float64 {
	t := j.Threads[i]
	own, _ := f.m.NodeOf(t.CPU)
	together := unit.Bytes(0)
	for _, other := range j.Threads {
		if node, _ := f.m.NodeOf(other.CPU); node == own && other.Work == membench.Chase {
			together += j.Buffers[other.Buffer].Bytes
		}
	}
	switch ws := j.Buffers[t.Buffer].Bytes; {
	case ws <= fakeL1:
		return 1.5
	case ws <= fakeL2:
		return 5
	case together <= fakeLLC:
		return 20
	}
	sum := 0.0
	nodes := f.nodes(j.Buffers[t.Buffer])
	for _, to := range nodes {
		u := min(1, use[to])
		sum += (fakeLatency[f.m.Distance(own, to).Or(0)] + 100*u*u) / float64(len(nodes))
	}
	return sum
}

func (f *fake) transfer(t membench.Thread) float64 {
	a, _ := f.m.CPU(t.CPU)
	b, _ := f.m.CPU(t.Owner)
	return fakeTransfer(apartOf(f.m, a, b))
}

func fakeTransfer(a apart) float64 {
	return map[profile.Level]float64{profile.SameCore: 8, profile.SameLLC: 48, profile.Between: 5 * float64(a.distance.Or(0))}[a.level]
}

func (f *fake) Move(ctx context.Context, m membench.Move) (membench.Moved, error) {
	size := f.m.PageSize.Or(pageSize)
	if m.Huge {
		size = hugePage
	}
	pages := int(m.Bytes / size)
	took := time.Duration(pages) * fakePage
	f.spend(f.setup+took, 1, fmt.Sprint(m))
	return membench.Moved{Pages: pages, Size: size, Elapsed: took}, ctx.Err()
}

// options are for a fake.
func (f *fake) options() Options {
	return Options{Machine: f.m, Repeats: 3, Seed: 7, Now: func() time.Time { return f.now }, Version: "test", Command: "homenode bench"}
}
