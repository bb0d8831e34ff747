// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math"
	"time"

	"homenode/internal/sim"
	"homenode/internal/unit"
)

// row is an application as data. Figures are per 1,000 instructions, as most published miss
// rates are (MPKI). An operation is a round of that many instructions.
type row struct {
	name, about, from string
	cpi               float64 // cycles per instruction, without waits beyond L1
	round             float64 // instructions per operation
	memory            perThread
	parts             []part
	adds, lines       float64 // locked adds per 1,000 instructions, and the lines they go to
	barrier           float64 // instructions of each thread between spinning barriers; 0: no barriers
	spread            float64 // squared coefficient of variation of an operation's work; 0: 1
	think             time.Duration
	wakes             float64 // per operation
}

// perThread is the memory it holds if none is given: a total, and more per thread.
type perThread struct{ all, each unit.Bytes }

// part is memory with one kind of access.
type part struct {
	// size is per thread, or of all threads if shared. If it is 0, the part has a share of
	// the application's memory, which threads divide equally unless it is shared.
	size   unit.Bytes
	share  float64
	shared bool
	apki   float64 // accesses per 1,000 instructions that miss L1
	mlp    float64 // misses outstanding at once
	stream bool
	writes float64
}

func (r row) app() App {
	return App{Name: r.name, About: r.about, From: r.from, Spec: r.spec}
}

// barrierSpread is how much rounds between barriers vary: loops over the same number of
// elements hardly do. Our choice; a larger value makes all threads wait for one.
const barrierSpread = 0.01

// spec makes an instance:
//
//  1. Regions by size, or by share of the memory, at least a page each.
//  2. Memory is private, except what its threads share. The rest beyond its regions is
//     private as well, or shared where nothing is private.
func (r row) spec(name string, threads int, memory unit.Bytes) sim.Spec {
	if memory <= 0 {
		memory = r.memory.all + unit.Bytes(threads)*r.memory.each
	}
	s := sim.Spec{Name: name, Service: r.name, Threads: threads}
	s.Work = sim.WorkSpec{
		Cycles: r.cpi * r.round, Instructions: r.round, Adds: r.adds * r.round / 1000, Lines: r.lines,
		Barrier: int(math.Round(r.barrier / r.round)), Spin: r.barrier > 0,
	}
	private := false
	for _, p := range r.parts { // 1
		region := p.region(threads, memory)
		region.Accesses = p.apki * r.round / 1000
		s.Work.Regions = append(s.Work.Regions, region)
		if p.shared {
			s.Memory.Shared += region.Size
		} else {
			s.Memory.Private += unit.Bytes(threads) * region.Size
			private = true
		}
	}
	if rest := memory - s.Memory.Shared - s.Memory.Private; rest > 0 && private { // 2
		s.Memory.Private += rest
	} else if rest > 0 {
		s.Memory.Shared += rest
	}
	s.Memory.Toucher = "workers"
	s.Demand = sim.DemandSpec{Think: r.think, Spread: r.spread, Wakes: r.wakes}
	if r.barrier > 0 {
		s.Demand.Spread = barrierSpread
	}
	return s
}

func (p part) region(threads int, memory unit.Bytes) sim.RegionSpec {
	size := p.size
	if size == 0 {
		bytes := float64(memory) * p.share
		if !p.shared {
			bytes /= float64(threads)
		}
		size = max(4*unit.KiB, unit.Bytes(bytes))
	}
	return sim.RegionSpec{Size: size, Shared: p.shared, Parallelism: p.mlp, Stream: p.stream, Writes: p.writes}
}
