// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"slices"
	"testing"

	"homenode/internal/machine/shapetest"
	"homenode/internal/sim/detmath"
)

// shape is a shape of the lab.
func shape(t testing.TB, name string) System { return FromShape(shapetest.Shape(t, name)) }

// randomLoads are loads of all kinds on a system.
func randomLoads(r *detmath.Random, sys *System, n int) []Load {
	var loads []Load
	for w := 0; len(loads) < n; w++ {
		work := randomWork(r)
		for d := range sys.Domains {
			if len(loads) == n || r.Float() < 0.3 {
				continue
			}
			cpus := math.Ceil(r.Float() * sys.Domains[d].CPUs)
			l := Load{Workload: w, Domain: d, CPUs: cpus, Threads: cpus, Ops: math.Inf(1), Work: work, Slow: 1, Home: randomHome(r, sys)}
			if r.Float() < 0.3 {
				l.CPUs *= r.Float()
			}
			if r.Float() < 0.3 {
				l.Ops = sys.Hz / 200 * r.Float()
			}
			loads = append(loads, l)
		}
	}
	return loads
}

func randomHome(r *detmath.Random, sys *System) []float64 {
	home, sum := make([]float64, len(sys.Nodes)), 0.0
	for m := range home {
		if sys.Nodes[m].Memory > 0 && r.Float() < 0.7 {
			home[m] = r.Exponential()
		}
		sum += home[m]
	}
	if sum == 0 { // none was drawn
		home[slices.IndexFunc(sys.Nodes, func(n Node) bool { return n.Memory > 0 })] = 1
		return home
	}
	for m := range home {
		home[m] /= sum
	}
	return home
}

func randomWork(r *detmath.Random) *Work {
	w := &Work{Cycles: 1 + 200*r.Float(), Instructions: 1 + 200*r.Float()}
	for range 1 + r.Below(2) {
		w.Regions = append(w.Regions, Region{
			Bytes: 4096 * detmath.Exp(9*r.Float()), Shared: r.Float() < 0.5, Accesses: 3 * r.Float(),
			Parallelism: 1 + math.Floor(6*r.Float()), Stream: r.Float() < 0.4, Writes: math.Max(0, r.Float()-0.5),
		})
	}
	if r.Float() < 0.25 {
		w.Adds, w.Lines = r.Float(), math.Ceil(detmath.Exp(12*r.Float()))
	}
	return w
}

func TestRobust(t *testing.T) {
	for _, name := range []string{"two", "four", "far", "opteron", "smt"} {
		sys := shape(t, name)
		r := detmath.NewRandom(1, name)
		var s Solver
		bad, most, sum := 0, 0, 0
		const n = 2000
		for i := range n {
			loads := randomLoads(&r, &sys, 1+r.Below(12))
			res := s.Solve(&sys, loads)
			sum, most = sum+res.Rounds, max(most, res.Rounds)
			if !(res.Residue <= 1e-5) {
				bad++
				if bad < 4 {
					t.Errorf("%s %d: residue %v after %d rounds", name, i, res.Residue, res.Rounds)
				}
			}
		}
		t.Logf("%s: %d bad, rounds mean %.1f most %d", name, bad, float64(sum)/n, most)
	}
}

// The lab's model in simple cases: cycles of an operation on shape two.
func TestLabFigures(t *testing.T) {
	sys := shape(t, "two")
	chase := func(bytes float64) *Work {
		return &Work{Cycles: 1, Instructions: 1, Regions: []Region{{Bytes: bytes, Accesses: 1, Parallelism: 1, Stream: true}}}
	}
	stream := &Work{Cycles: 3, Instructions: 3, Regions: []Region{{Bytes: 16 << 20, Accesses: 1, Parallelism: 4, Stream: true}}}
	add := &Work{Cycles: 2, Instructions: 2, Adds: 1, Lines: 1}
	near, far := []float64{1, 0}, []float64{0, 1}
	for _, c := range []struct {
		what     string
		cpus     float64
		work     *Work
		home     []float64
		low, top float64
	}{
		{"a chase in L2", 1, chase(32 << 10), near, 13, 13},
		{"in the LLC", 1, chase(256 << 10), near, 41, 41},
		{"of twice the LLC: 1 - exp(-2m) of it misses", 1, chase(1 << 20), near, 1 + 0.203*40 + 0.797*216, 183},
		{"in memory", 1, chase(64 << 20), near, 217, 219},
		{"in memory of the other node", 1, chase(64 << 20), far, 374, 383},
		{"a stream", 1, stream, near, 57, 60},
		{"6 streams: the controller does 0.98 of a line in 19 cycles", 6, stream, near, 6 * 19 / 0.981, 6 * 19 / 0.979},
		{"2 streams from the other node: one link", 2, stream, far, 2 * 57 / 0.98, 2 * 57 / 0.8},
		{"adds to one's own line", 1, add, near, 20 + 12, 20 + 12},
		{"adds of two CPUs to one line: 130 cycles each way", 2, add, near, 235, 275},
	} {
		got := new(Solver).Solve(&sys, []Load{{CPUs: c.cpus, Threads: c.cpus, Ops: math.Inf(1), Work: c.work, Home: c.home}})
		if cycles := got.Loads[0].Cycles; !(cycles >= c.low*(1-1e-6) && cycles <= c.top*(1+1e-6)) {
			t.Errorf("%s: %v cycles, want %v to %v", c.what, cycles, c.low, c.top)
		}
	}
}
