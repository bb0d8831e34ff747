// SPDX-License-Identifier: Apache-2.0

package threadworld

import (
	"fmt"
	"math"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/unit"
)

// usual is a load on nodes of four CPUs under default Linux.
type usual struct {
	name    string
	threads int     // of each of two workloads, per node
	share   float64 // requested share of all CPUs; 0: closed loops
	wakes   float64 // per operation
}

var usuals = []usual{
	{"closed, all CPUs", 2, 0, 0},
	{"closed, three for two CPUs", 3, 0, 0},
	{"half of the CPUs, three threads each", 6, 0.5, 0},
	{"half of the CPUs, threads wake up", 6, 0.5, 1e-3},
	{"four fifths of the CPUs", 6, 0.8, 0},
	{"four fifths, threads wake up", 6, 0.8, 1e-3},
}

func (u usual) config(nodes int, seed uint64) sim.Config {
	c := configOf(grid(nodes, 4))
	c.Seed = seed
	c.Linux.NUMABalancing = false
	for _, name := range []string{"a", "b"} {
		s := chasing(name, u.threads*nodes)
		s.Work.Cycles, s.Work.Regions[0].Accesses = 1000, 8
		if u.share > 0 {
			work := s.Work.In(sim.PhaseSpec{})
			s.Demand.Rate = u.share * float64(2*nodes) * c.System.Hz / sim.CyclesAlone(&c.System, &work, 0)
			s.Demand.Wakes = u.wakes
		}
		c.Specs = append(c.Specs, s)
	}
	return c
}

// seen is what both worlds report: local share by part of the run, CPUs, changes of node
// per thread and second (for sim, by its formula).
type seen struct {
	local [4]float64
	cpu   float64
	moves float64
}

const (
	usualSeeds = 6
	usualPart  = 20 * time.Second
)

type truthTeller interface {
	Run(time.Duration)
	Truth() []sim.Truth
}

func (x *seen) watch(w truthTeller, part time.Duration) {
	for k := range x.local {
		w.Run(part)
		for _, t := range w.Truth() {
			x.local[k] += t.Local / (t.Local + t.Remote) / 2 / usualSeeds
			x.cpu += t.CPUSeconds / t.Seconds / float64(len(x.local)) / usualSeeds
		}
	}
}

func both(t *testing.T, u usual, nodes int, part time.Duration, change func(*sim.Config)) (a, b seen) {
	t.Helper()
	for seed := range uint64(usualSeeds) {
		c := u.config(nodes, seed)
		change(&c)
		w := world(t, c)
		c.Step = time.Second
		v, err := sim.NewWorld(c)
		if err != nil {
			t.Fatal(err)
		}
		a.watch(w, part)
		b.watch(v, part)
		for _, x := range w.Threads() {
			a.moves += float64(x.Moves) / float64(len(w.ids)) / w.Now().Seconds() / usualSeeds
		}
	}
	busy := min(1, b.cpu/float64(4*nodes))
	b.moves = swapRate * busy * busy * (1 - 1/float64(nodes))
	return a, b
}

// TestDefaultLikeSim compares unpinned threads under Linux without NUMA balancing with
// package sim: how fast memory is left behind, and how often a thread changes nodes. Two
// cases are not comparable, as sim has threads as amounts: fewer threads than CPUs (in sim,
// their wake-ups find their own CPU busy), and threads that balance beyond even.
func TestDefaultLikeSim(t *testing.T) {
	for _, nodes := range []int{2, 4} {
		for _, u := range usuals {
			a, b := both(t, u, nodes, usualPart, func(*sim.Config) {})
			about := fmt.Sprintf("%d nodes, %s: local %.2f, sim %.2f; %.2f CPUs, sim %.2f; moves %.4f, law %.4f", nodes, u.name, a.local, b.local, a.cpu, b.cpu, a.moves, b.moves)
			t.Log(about)
			for k := range a.local {
				if math.Abs(a.local[k]-b.local[k]) > 0.2 {
					t.Errorf("part %d: %s", k, about)
				}
			}
			if math.Abs(a.cpu/b.cpu-1) > 0.08 {
				t.Errorf("CPU: %s", about)
			}
			if most := 3.0; u.wakes == 0 && a.moves > 1.5*b.moves || a.moves > most*b.moves || a.moves < b.moves/1.5 {
				t.Errorf("moves: %s", about)
			}
		}
	}
}

// TestNUMABalancingLikeSim: memory that is all on one node comes to its threads as fast as
// in package sim, and then stays at least as local: sim moves threads away from their
// preferred nodes by chance, which migrate_degrades_locality prevents here.
func TestNUMABalancingLikeSim(t *testing.T) {
	for _, nodes := range []int{2, 4} {
		for _, u := range usuals {
			a, b := both(t, u, nodes, 4*time.Second, func(c *sim.Config) {
				c.Linux.NUMABalancing = true
				for i := range c.Specs {
					c.Specs[i].Start.Touch = set.FromNodes(0)
				}
			})
			about := fmt.Sprintf("%d nodes, %s: local %.2f, sim %.2f", nodes, u.name, a.local, b.local)
			t.Log(about)
			if math.Abs(a.local[0]-b.local[0]) > 0.2 {
				t.Errorf("at first: %s", about)
			}
			for k := range a.local {
				if a.local[k] < b.local[k]-0.03 {
					t.Errorf("part %d: %s", k, about)
				}
			}
		}
	}
}

// TestSwapRateMatters shows the effect of the estimate swapRate: Linux's local share and
// pace on a busy machine with multiples of it, NUMA balancing on and off.
func TestSwapRateMatters(t *testing.T) {
	const seeds = 40
	for _, numa := range []bool{false, true} {
		last := 2.0
		for _, times := range []float64{0, 0.5, 1, 2} {
			local, ops := 0.0, 0.0
			for seed := range uint64(seeds) {
				c := usuals[0].config(2, seed)
				c.Linux.NUMABalancing = numa
				for i := range c.Specs {
					c.Specs[i].Work.Cycles = 100
					c.Specs[i].Memory.Private = unit.Bytes(c.Specs[i].Threads) * 64 * unit.MiB
					c.Specs[i].Work.Regions[0].Size = 64 * unit.MiB
				}
				w := world(t, c)
				w.swapRate *= times
				w.Run(60 * time.Second)
				for _, x := range w.Truth() {
					local += x.Local / (x.Local + x.Remote) / 2 / seeds
					ops += x.Ops / seeds
				}
			}
			t.Logf("NUMA balancing %v, swaps × %v: %.3f local, %.0f operations", numa, times, local, ops)
			if local > last+0.05 || times == 0 && local < 0.95 || numa && local < 0.9 {
				t.Errorf("NUMA balancing %v, swaps × %v: %.3f local, with less %.3f", numa, times, local, last)
			}
			last = local
		}
	}
}
