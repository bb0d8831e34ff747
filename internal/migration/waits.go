// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math"
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Excess is the share of all waiting for loads that ends when the remote ones become
// local: of the loads the share remote takes slower times as long as a local one.
func Excess(remote, slower float64) float64 {
	if slower <= 1 || remote <= 0 {
		return 0
	}
	if remote = min(1, remote); math.IsInf(slower, 1) {
		return 1
	}
	return remote * (slower - 1) / (1 - remote + float64(remote*slower))
}

// Waits is what is known of a workload's waiting for memory. It is the one model of what
// remote memory costs: Pays and the doctor use it.
type Waits struct {
	CPU     float64            // CPU-seconds a second
	Stalled unit.Opt[float64]  // share of its cycles in which it waits for memory
	Serial  unit.Opt[float64]  // CPU-seconds a second, if no two remote loads overlapped
	Loads   unit.Opt[Requests] // its requests, where they are counted
}

// Requests are what a workload waits for, a second.
type Requests struct {
	Memory    float64 // loads from memory
	Caches    float64 // beyond the private caches, and answered by a cache
	LocalLoad float64 // seconds of a load from the own node
}

// RequestsOf is the requests of a period: loads from memory, those beyond the private
// caches, and seconds of a load from the own node.
func RequestsOf(memory unit.Opt[float64], all unit.Value[uint64], length time.Duration, local unit.Value[float64]) unit.Opt[Requests] {
	loads, ok := memory.Get()
	beyond, counted := all.Get()
	seconds := length.Seconds()
	ns, known := local.Get()
	if !ok || !counted || !known || seconds <= 0 || loads <= 0 {
		return unit.None[Requests]() // without those that caches answer nothing bounds the waiting
	}
	return unit.Some(Requests{Memory: loads / seconds, Caches: max(0, float64(beyond)-loads) / seconds, LocalLoad: ns})
}

const (
	// cacheLoad is a hit of the last-level cache relative to a load from local memory: some
	// 54 cycles of 20 ns against 80 ns. Larger: more stall cycles are taken for memory's.
	cacheLoad = 0.25
	// queued is how much longer than when idle a load takes on a full machine: dual
	// Skylake, 166 against 92 ns (latency facts), and a remote load of a full link more.
	// Larger: more stall cycles are taken for memory's.
	queued = 3.0
)

// Explained is the largest share of its cycles in which a workload can wait for its
// requests: all of them one after the other, each as long as on a full machine. More stall
// cycles than that do not wait for memory, whatever the event is called.
func (w Waits) Explained() unit.Opt[float64] {
	r, ok := w.Loads.Get()
	if !ok || w.CPU <= 0 {
		return unit.None[float64]()
	}
	return unit.Some(min(1, float64(queued*r.LocalLoad)*(r.Memory+float64(cacheLoad*r.Caches))/w.CPU))
}

// Other says that the stall cycles count more than waiting for memory.
func (w Waits) Other() bool {
	most, ok := w.Explained().Get()
	stalled, counted := w.Stalled.Get()
	return ok && counted && stalled > most+stallNoise
}

// stallNoise is the share of cycles by which two counters that were not counted at the same
// time may differ.
const stallNoise = 0.05

// Saved is the CPU time a second that a workload saves when the share excess of its waiting
// ends:
//
//  1. its CPU time × the share of its cycles in which it waits × excess; and if that share
//     is not known, its CPU time × excess, as if it did nothing but wait;
//  2. no more cycles than its requests can explain (Explained);
//  3. at most what it is if no two of the loads overlap (Serial).
//
// So it is never more than its CPU time. False: neither the stalls nor the loads are
// counted, so that there is only this bound.
func (w Waits) Saved(excess float64) (saved float64, known bool) {
	stalled, counted := w.Stalled.Get()
	if !counted { // 1
		stalled = 1
	}
	stalled = min(1, stalled)
	if most, ok := w.Explained().Get(); ok && counted { // 2
		stalled = min(stalled, most)
	}
	serial, ok := w.Serial.Get()
	saved = w.CPU * stalled * excess
	if ok { // 3
		saved = min(saved, serial)
	}
	return saved, counted || ok
}

// Local is seconds of a load by CPUs of these nodes from their own memory, the mean, of the
// source of LatencyDifference.
func (c Costs) Local(cpus set.NodeSet) unit.Value[float64] {
	var m mean
	for n := range cpus.All() {
		if _, v := c.latencies(n, n, n); !m.add(v, 1) {
			return v
		}
	}
	return m.value()
}

// Pressure is how full the memory system is, at one rate of work, as shares of what it can
// do: the fullest node, and what leads from node to node (0: no limit is known).
type Pressure struct {
	Node, Between float64
}

// Full has the constants of what full nodes and links cost. Fitted on placements of 34
// workloads on four Gold 6130 (measured facts, part B).
type Full struct {
	// Bend is the exponent by which waiting grows towards a limit: work takes (free^Bend + Σ
	// pressure^Bend)^(1/Bend). 4 to 8 differ by less than 0.03 in the mean error. Larger: a
	// node that is nearly full slows nothing.
	Bend float64
	// Hidden is the pressure above which the window itself no longer shows how fast the work
	// would be on an idle memory system.
	Hidden float64
}

// DefaultFull is fitted on all of them.
func DefaultFull() Full { return Full{Bend: 5, Hidden: 0.7} }

// Longer is Full.Longer by DefaultFull.
func Longer(before, after Pressure, busy float64) (factor, low, high float64) {
	return DefaultFull().Longer(before, after, busy)
}

// Longer is by what factor the same work takes longer at another pressure, which is given
// at the present rate of work; below 1 it is shorter. busy is the least share of its time
// in which it does not wait for memory.
//
//  1. Work takes some time without waiting, free, and cannot go faster than a full node or
//     full links serve it. Far below both, free is nearly all of its present time.
//  2. On a full node the window does not show free: it is between busy and all of its
//     present time. Low and High are the factors of these two, and the factor itself is that
//     of their geometric mean.
func (f Full) Longer(before, after Pressure, busy float64) (factor, low, high float64) {
	busy = min(1, max(busy, 0.01))
	at := func(free float64) float64 { return f.timeAt(free, after) / f.timeAt(free, before) }
	free := f.freeAt(before)
	if hot := max(before.Node, before.Between); hot > f.Hidden { // 2
		free = math.Sqrt(busy)
		return at(free), min(at(busy), at(1)), max(at(busy), at(1))
	}
	factor = at(free)
	return factor, factor, factor
}

// freeAt is the time without waiting, as a share of the present time.
func (f Full) freeAt(p Pressure) float64 {
	return math.Pow(max(0, 1-math.Pow(p.Node, f.Bend)-math.Pow(p.Between, f.Bend)), 1/f.Bend)
}

func (f Full) timeAt(free float64, p Pressure) float64 {
	return math.Pow(math.Pow(free, f.Bend)+math.Pow(p.Node, f.Bend)+math.Pow(p.Between, f.Bend), 1/f.Bend)
}
