// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"math"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const (
	// lengthMin is the measured stretch of a job: hundreds of timer ticks, and far
	// longer than it takes to start threads together.
	lengthMin = 20 * time.Millisecond
	// chaseLoads is the least number of loads from memory in a chase: one stray load in
	// a thousand then has no effect.
	chaseLoads = 4000
	// settle is the warm-up of work that only has to fill queues. The lab's queues
	// average the load of the last 10 ms, and many at once need a few times that.
	settle = 40 * time.Millisecond
	// lengthRate is the measured stretch of a bandwidth.
	lengthRate = 50 * time.Millisecond
	// settleChase is the warm-up of one chase, which leaves queues short.
	settleChase = 5 * time.Millisecond
	// warmMost bounds the warm-up that fills caches.
	warmMost = 250 * time.Millisecond
	// lapsMost bounds the stretch that is made longer for a whole lap.
	lapsMost = 150 * time.Millisecond

	// beyondLLC is the size, in last-level caches, of a working set that must miss.
	beyondLLC = 8
	// readBeyondLLC is the same for each cache's share of what is read in order.
	readBeyondLLC = 4
	// leastLLC is the least size, in last-level caches, for a figure of memory.
	leastLLC = 2
	// freeShare: a buffer may have this part (1/freeShare) of a node's free memory.
	freeShare = 4
	// guessedLLC is taken if nothing better is known: in a virtual machine the
	// firmware's sizes are often wrong.
	guessedLLC = 4 * unit.MiB

	line = 64
	// pageSize is the unit of buffer sizes: the smallest page that exists. The kernel's
	// may be larger (page).
	pageSize = 4 * unit.KiB
	hugePage = 2 * unit.MiB // on kernels with small pages of 4 KiB
)

// llc is the size of the last-level cache that buffer sizes are based on.
//
//  1. In the lab the measured one: its model knows nothing of QEMU's caches.
//  2. Elsewhere the larger of the measured size and the firmware's. A part of the cache
//     may belong to another core or guest now and to us later, and a guest's page walks
//     may look like memory. Larger is safe; it costs memory and time.
//  3. Otherwise the firmware's, in a virtual machine at least guessedLLC.
func (b *bench) llc() unit.Bytes {
	measured, ok := b.profile.LLC()
	switch {
	case ok && b.how == unit.HowModelled: // 1
		return measured
	case ok: // 2
		return max(measured, b.firmwareLLC())
	case b.guest || b.firmwareLLC() == 0: // 3
		return max(b.firmwareLLC(), guessedLLC)
	}
	return b.firmwareLLC()
}

// firmwareLLC is the largest last-level cache of the firmware's tables; 0: none.
func (b *bench) firmwareLLC() unit.Bytes {
	most := unit.Bytes(0)
	for _, c := range b.m.LLCs {
		most = max(most, c.Size.Or(0))
	}
	return most
}

// memoryLatency is the approximate time of a load from memory, for the lengths of jobs.
func (b *bench) memoryLatency() time.Duration {
	if ns, ok := b.dram(); ok {
		return time.Duration(ns)
	}
	if b.how == unit.HowModelled {
		return 5 * time.Microsecond // a model runs at tens of MHz
	}
	return 100 * time.Nanosecond
}

// dram is the measured latency of local memory, in ns.
func (b *bench) dram() (float64, bool) {
	if memory, ok := b.memoryStep(); ok {
		return memory.Median.Get()
	}
	best := math.Inf(1)
	for _, f := range b.profile.Latency {
		if ns, ok := f.Median.Get(); ok && f.From == f.To {
			best = min(best, ns)
		}
	}
	return best, !math.IsInf(best, 1)
}

// warmFor is the time of two passes over a working set, at the speed of memory.
func (b *bench) warmFor(ws unit.Bytes) time.Duration {
	if ws > 2*b.llc() && len(b.profile.Caches) > 0 { // it will miss anyway
		return settleChase
	}
	return min(warmMost, max(settleChase, 2*b.lap(ws)))
}

func (b *bench) lap(ws unit.Bytes) time.Duration {
	return time.Duration(float64(ws)/line) * b.memoryLatency()
}

// lengthFor is long enough for many loads, and for a lap if that is affordable.
func (b *bench) lengthFor(ws unit.Bytes) time.Duration {
	lap := min(lapsMost, b.lap(min(ws, 4*b.llc())))
	return max(lengthMin, lap, chaseLoads*b.memoryLatency())
}

// room sizes a buffer on a node: want, or what is free there; an error if that is less
// than least.
func (b *bench) room(node int, want, least unit.Bytes) (unit.Bytes, error) {
	free, err := b.freeOf(node)
	if err != nil {
		return 0, err
	}
	got := min(want, free/freeShare) / pageSize * pageSize
	if got < least || got < pageSize {
		return 0, fmt.Errorf("node %d has %v of free memory, %v short of the %v that this needs", node, free, max(1, least*freeShare-free), max(least, pageSize)*freeShare)
	}
	return got, nil
}

// freeOf reads it once a part: plans ask often.
func (b *bench) freeOf(node int) (unit.Bytes, error) {
	if free, ok := b.free[node]; ok {
		return free, nil
	}
	free, err := b.prober.Free(node)
	if err != nil {
		return 0, fmt.Errorf("free memory of node %d: %w", node, err)
	}
	if b.free != nil {
		b.free[node] = free
	}
	return free, nil
}

// far is the size of a working set on a node that no cache holds.
func (b *bench) far(node int) (unit.Bytes, error) {
	return b.room(node, beyondLLC*b.llc(), leastLLC*b.llc())
}

// sequential is the size of a buffer that these CPUs read in order, each a part, so
// that none of their caches holds its share.
func (b *bench) sequential(node int, cpus set.CPUSet) (unit.Bytes, error) {
	want := max(beyondLLC, readBeyondLLC*unit.Bytes(b.domains(cpus))) * b.llc()
	return b.room(node, want, want/readBeyondLLC*leastLLC)
}

// domains is the number of last-level caches of these CPUs; if that is unknown, the
// number of their nodes.
func (b *bench) domains(cpus set.CPUSet) int {
	seen := map[int]bool{}
	for id := range cpus.All() {
		c, _ := b.m.CPU(id)
		domain, ok := c.LLC.Get()
		if !ok {
			domain = -1 - c.Node.Or(0)
		}
		seen[domain] = true
	}
	return len(seen)
}

// allowed are the CPUs that may be used, of all nodes of the profile.
func (b *bench) allowed() set.CPUSet {
	cpus := b.m.OnlineCPUs()
	if !b.o.CPUs.IsEmpty() {
		cpus = cpus.Intersect(b.o.CPUs)
	}
	return cpus.Intersect(b.m.CPUsOf(b.asked(b.m.NodeIDs())))
}

// asked are those of the nodes that were requested.
func (b *bench) asked(nodes set.NodeSet) set.NodeSet {
	if b.o.Nodes.IsEmpty() {
		return nodes
	}
	return nodes.Intersect(b.o.Nodes)
}

// chosen are those of the nodes whose memory is measured.
func (b *bench) chosen(nodes set.NodeSet) set.NodeSet {
	if nodes = b.asked(nodes); b.o.Memory.IsEmpty() {
		return nodes
	}
	return nodes.Intersect(b.o.Memory)
}

// cpusOf are the CPUs of a node that may be used.
func (b *bench) cpusOf(node int) set.CPUSet {
	return b.allowed().Intersect(b.m.CPUsOf(set.FromNodes(node)))
}

// rows are the nodes with CPUs, columns those with memory.
func (b *bench) rows() []int {
	var ids []int
	for id := range b.asked(b.m.NodesWithCPUs()).All() {
		if !b.cpusOf(id).IsEmpty() {
			ids = append(ids, id)
		}
	}
	return ids
}

func (b *bench) columns() []int { return b.memory().IDs() }

func (b *bench) memory() set.NodeSet { return b.chosen(b.m.NodesWithMemory()) }

// home is the nearest node with memory.
func (b *bench) home(node int) (int, bool) {
	has := b.memory()
	for _, id := range b.m.Nearest(node) {
		if has.Has(id) {
			return id, true
		}
	}
	return 0, false
}

// nearCPU is the first usable CPU of the nearest node that has one.
func (b *bench) nearCPU(node int) (int, bool) {
	for _, id := range b.m.Nearest(node) {
		if cpu, ok := b.cpusOf(id).First(); ok {
			return cpu, true
		}
	}
	return 0, false
}

// bound is memory of one node, first touched by a CPU.
func (b *bench) bound(node, cpu int, bytes unit.Bytes) membench.Buffer {
	return membench.Buffer{Bytes: bytes, Policy: membench.Bind, Nodes: set.FromNodes(node), TouchCPU: cpu, Huge: b.huge}
}

// chase is one CPU that chases over a working set on a node.
func (b *bench) chase(cpu, node int, ws unit.Bytes) membench.Job {
	return membench.Job{
		Buffers: []membench.Buffer{b.bound(node, cpu, ws)},
		Threads: []membench.Thread{{CPU: cpu, Work: membench.Chase, Count: true}},
		Length:  b.lengthFor(ws), Warm: b.warmFor(ws),
	}
}

// addReaders gives a job a buffer on a node, and CPUs that read it in order.
func (b *bench) addReaders(j *membench.Job, node int, cpus set.CPUSet, t membench.Thread) error {
	if cpus.IsEmpty() {
		return nil
	}
	bytes, err := b.sequential(node, cpus)
	if err != nil {
		return err
	}
	touch, _ := b.nearCPU(node)
	j.Buffers = append(j.Buffers, b.bound(node, touch, bytes))
	for cpu := range cpus.All() {
		t.CPU, t.Buffer = cpu, len(j.Buffers)-1
		j.Threads = append(j.Threads, t)
	}
	return nil
}

var errNoOp = errors.New("no operation was finished in the time")

// pace is the time of a thread's ops without interruptions, which are no property of
// memory: at the median pace of its batches, if it had batches.
func pace(t membench.ThreadResult) time.Duration {
	if t.Quiet > 0 {
		return t.Quiet
	}
	return t.Elapsed
}

// latencyOf is ns and cycles an op of one thread.
func latencyOf(t membench.ThreadResult) ([]float64, error) {
	if t.Ops == 0 || pace(t) <= 0 {
		return nil, errNoOp
	}
	ops := float64(t.Ops)
	return []float64{float64(pace(t)) / ops, t.Cycles.Or(math.NaN()) / ops}, nil
}

// rateOf is bytes/s of threads that ran together: the sum of their rates, each over all
// of its time. Batches that wait for a full controller belong to a rate, and so does the
// time in which the kernel has the CPU: without it the sum could be more than the
// controller serves.
func rateOf(threads []membench.ThreadResult) (float64, error) {
	rate := 0.0
	for _, t := range threads {
		if t.Bytes == 0 || t.Whole <= 0 {
			return 0, errNoOp
		}
		rate += float64(t.Bytes) / t.Whole.Seconds()
	}
	if rate == 0 {
		return 0, errNoOp
	}
	return rate, nil
}

// timed is a figure in ns, with its cycles.
func timed(ns, cycles []float64) profile.Figure {
	f := profile.FigureOf(ns)
	if f.Known() {
		f.Cycles = profile.FigureOf(cycles).Median
	}
	return f
}

// readChase reads a piece of one job whose first thread chases.
func readChase(out outcome) ([]float64, error) { return latencyOf(out.jobs[0].Threads[0]) }

// readRate reads a piece of one job whose threads all stream.
func readRate(out outcome) ([]float64, error) {
	rate, err := rateOf(out.jobs[0].Threads)
	return []float64{rate}, err
}
