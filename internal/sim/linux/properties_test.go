// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

func TestPagesAndCPUAreConserved(t *testing.T) {
	balanced := 0.0
	for seed := range uint64(2000) {
		r := detmath.NewRandom(seed)
		h := randomHost(&r)
		for i := range 40 {
			step(h, &r, same)
			check(t, h, sprint(seed, i))
		}
		for _, g := range h.Groups {
			balanced += g.Scan.Moved
		}
	}
	if balanced < 1e6 {
		t.Errorf("NUMA balancing moved %g pages in all: too few to show anything", balanced)
	}
}

func TestRunGivesNoGroupMoreThanItMayHave(t *testing.T) {
	for seed := range uint64(2000) {
		r := detmath.NewRandom(seed)
		h := randomHost(&r)
		wants := []float64{}
		for range 1 + r.Below(8) {
			h.Arrive(randomGroup(h, &r, sprint(int(r.Uint64()))))
			wants = append(wants, 20*r.Float())
		}
		h.Run(1, wants)
		check(t, h, sprint(seed))
		for i, g := range h.Groups {
			most := g.asks(wants[i])
			got := detmath.Sum(g.Used)
			if got > most*(1+1e-9) {
				t.Fatalf("seed %d: %s got %g of %g", seed, g.ID, got, most)
			}
			for n := range g.Used {
				if g.Used[n] > min(g.On[n], g.CPUs[n])*(1+1e-9) {
					t.Fatalf("seed %d: node %d: %g of %g threads, %g CPUs", seed, n, g.Used[n], g.On[n], g.CPUs[n])
				}
			}
		}
	}
}

func TestRenumberingNodesRenumbersTheResult(t *testing.T) {
	for seed := range uint64(1500) {
		r := detmath.NewRandom(seed)
		a := randomHost(&r)
		n := len(a.Nodes)
		turn := 1 + r.Below(4)
		to := func(i int) int { return (n - 1 - i + turn) % n }
		b := &Host{Settings: a.Settings, Nodes: renumbered(a.Nodes, to), Zonelist: renumbered(a.Zonelist, to)}
		for i, list := range b.Zonelist {
			b.Zonelist[i] = append([]int(nil), list...)
			for j := range list {
				b.Zonelist[i][j] = to(list[j])
			}
		}
		ra, rb := r, r
		for i := range 30 {
			step(a, &ra, same)
			step(b, &rb, to)
			alike(t, a, b, to, sprint(seed, i))
		}
	}
}

func alike(t *testing.T, a, b *Host, to func(int) int, what string) {
	t.Helper()
	n := len(a.Nodes)
	off := func(x, y float64) bool { return math.Abs(x-y) > 1e-9*max(math.Abs(x), math.Abs(y), 1e3) }
	for i, x := range a.Groups {
		y := b.Groups[i]
		for k := range n {
			m := to(k)
			for _, pair := range [][2]float64{{x.On[k], y.On[m]}, {x.Used[k], y.Used[m]},
				{x.Memory.Shared[k], y.Memory.Shared[m]}, {x.Memory.Mapped[k], y.Memory.Mapped[m]}, {x.Memory.Cache[k], y.Memory.Cache[m]},
				{x.Memory.Private[k*n+(k+1)%n], y.Memory.Private[m*n+to((k+1)%n)]}, {x.Memory.Private[k*n+k], y.Memory.Private[m*n+m]}} {
				if off(pair[0], pair[1]) {
					t.Fatalf("%s: %s on node %d: %v", what, x.ID, k, pair)
				}
			}
		}
	}
}

func TestSameSeedGivesTheSameBits(t *testing.T) {
	for seed := range uint64(200) {
		sums := [2]float64{}
		for i := range sums {
			r := detmath.NewRandom(seed)
			h := randomHost(&r)
			for range 40 {
				step(h, &r, same)
			}
			sums[i] = total(h)
			for _, g := range h.Groups {
				sums[i] += detmath.Sum(g.On) + g.Scan.Sunk + g.On[0]*g.Used[0] + g.Memory.Shared[0]
			}
		}
		if sums[0] != sums[1] {
			t.Fatalf("seed %d: %v", seed, sums)
		}
	}
}

// total is all pages of all groups.
func total(h *Host) float64 {
	all := 0.0
	h.bringAll()
	for _, g := range h.Groups {
		for n := range h.Nodes {
			all += g.Memory.on(n)
		}
	}
	return all
}

// New pages go only where a group may have them.
func TestTouchStaysWithinPolicyAndCpuset(t *testing.T) {
	for seed := range uint64(2000) {
		r := detmath.NewRandom(seed)
		h := randomHost(&r)
		g := randomGroup(h, &r, "g")
		h.Arrive(g)
		for range 10 {
			kind, pages := Kind(r.Below(4)), 3e5*r.Float()
			before, cache := total(h), detmath.Sum(g.Memory.Cache)+detmath.Sum(g.Memory.Mapped)
			refused := h.Touch(g, kind, pages)
			if got := total(h) - before; math.Abs(got+refused-pages) > 1e-6 && (cache == 0 && kind < Mapped || !h.Settings.Reclaim) {
				t.Fatalf("seed %d: asked for %g, got %g, refused %g", seed, pages, got, refused)
			}
			check(t, h, sprint(seed))
		}
		for n := range h.Nodes {
			if g.Memory.on(n) > 0 && (!g.Mems[n] || g.Policy.Mode == Bind && !h.allowed(g, n)) {
				t.Fatalf("seed %d: %g pages on node %d; may have %v, %v", seed, g.Memory.on(n), n, g.Mems, g.Policy)
			}
		}
	}
}

// A minute in one step has the same mean and spread as in sixty steps.
func TestStepSizeDoesNotMatter(t *testing.T) {
	const worlds = 1500
	one, sixty := spread(worlds, 1), spread(worlds, 60)
	for i, name := range []string{"threads on node 0", "private pages there", "shared pages there", "local private pages"} {
		a, b := one[i], sixty[i]
		t.Logf("%s: 1 step: %.4g ± %.4g, 60 steps: %.4g ± %.4g", name, a.mean, a.deviation, b.mean, b.deviation)
		if math.Abs(a.mean-b.mean) > 4*math.Hypot(a.deviation, b.deviation)/math.Sqrt(worlds)+0.01*math.Abs(b.mean) {
			t.Errorf("%s: mean %g in one step, %g in sixty", name, a.mean, b.mean)
		}
		if b.deviation > 1e-6*b.mean && math.Abs(a.deviation/b.deviation-1) > 0.1 {
			t.Errorf("%s: deviation %g in one step, %g in sixty", name, a.deviation, b.deviation)
		}
	}
}

type moments struct{ mean, deviation float64 }

func spread(worlds, steps int) []moments {
	out := make([]moments, 4)
	for i := range worlds {
		h := fakeHost(2, 16, 64)
		h.Settings.NUMABalancing = false
		g := fakeGroup("g", 6, 2)
		g.WakeRate, g.Random = 5, detmath.NewRandom(uint64(i), "g")
		o := fakeGroup("o", 4, 4)
		o.WakeRate, o.Random = 3, detmath.NewRandom(uint64(i), "o")
		h.Arrive(g)
		h.Arrive(o)
		h.Touch(g, Private, 1e6)
		h.Touch(g, Shared, 1e6)
		for range 3 * steps {
			h.Run(60/float64(steps), []float64{6, 4})
		}
		local := (g.Memory.Private[0] + g.Memory.Private[3]) / detmath.Sum(g.Memory.Private)
		for k, x := range []float64{g.On[0], g.Memory.Private[0] + g.Memory.Private[1], g.Memory.Shared[0], local} {
			out[k].mean += x / float64(worlds)
			out[k].deviation += x * x / float64(worlds)
		}
	}
	for k := range out {
		out[k].deviation = math.Sqrt(max(out[k].deviation-out[k].mean*out[k].mean, 0))
	}
	return out
}
