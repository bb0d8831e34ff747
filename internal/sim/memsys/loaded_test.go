// SPDX-License-Identifier: Apache-2.0

package memsys

import (
	"math"
	"testing"

	"homenode/internal/profile"
)

// loadedLatency is MLC's test: one CPU chases, and one CPU of each other core reads its own
// node's memory, outstanding lines at a time, at most bytes per second together. It returns
// bytes/s and ns.
func loadedLatency(sys *System, cores, outstanding, bytes float64) (rate, ns float64) {
	far := func(parallelism float64) *Work {
		return &Work{Cycles: 1, Regions: []Region{{Bytes: 1 << 30, Accesses: 1, Parallelism: parallelism, Stream: true}}}
	}
	loads := []Load{{Domain: 0, CPUs: 1, Threads: 1, Ops: math.Inf(1), Work: far(1)}}
	for d := range sys.Domains {
		cpus := cores
		if d == 0 {
			cpus--
		}
		ops := bytes / LineBytes * cpus / (cores*float64(len(sys.Domains)) - 1)
		loads = append(loads, Load{Workload: 1, Domain: d, CPUs: cpus, Threads: cpus, Ops: ops, Work: far(outstanding)})
	}
	var s Solver
	r := s.Solve(sys, loads)
	for _, n := range r.Nodes {
		rate += n.Lines * LineBytes * sys.Hz
	}
	return rate, r.Loads[0].Latency / sys.Hz * 1e9
}

// Parity with the table of facts/latency.md, point by point, by its own curve.
func TestLoadedLatency(t *testing.T) {
	_, sys := DualSkylake()
	for _, want := range skylakeLoaded {
		rate, ns := loadedLatency(&sys, skylakeCores, 10, want.X)
		t.Logf("%5.1f GB/s: %5.1f GB/s, %5.1f ns, want %5.1f", want.X/1e9, rate/1e9, ns, want.Y)
		if math.Abs(ns/want.Y-1) > 0.03 {
			t.Errorf("at %.1f GB/s %.1f ns, want %.1f", want.X/1e9, ns, want.Y)
		}
		if rate < 0.98*math.Min(want.X, 210e9) {
			t.Errorf("at %.1f GB/s only %.1f are reached", want.X/1e9, rate/1e9)
		}
	}
}

// The default law knows only the idle latency and the peak. Its two figures are fitted on
// every other point, and judged on the points between.
func TestDefaultLaw(t *testing.T) {
	_, sys := DualSkylake()
	idle, peak := (skylakeLatency[0][0]+skylakeLatency[1][1])/2, skylakeBandwidth[0][0]+skylakeBandwidth[1][1]
	var fit, judge []Point
	for i, p := range skylakeLoaded {
		p = Point{math.Min(1, p.X/peak), p.Y / idle}
		if i%2 == 0 {
			fit = append(fit, p)
		} else {
			judge = append(judge, p)
		}
	}
	linear, late := leastSquares(fit)
	if math.Abs(linear-defaultLinear) > 0.005 || math.Abs(late-defaultLate) > 0.005 {
		t.Errorf("fitted to %d points the law is %.3f and %.3f, not %v and %v", len(fit), linear, late, defaultLinear, defaultLate)
	}
	for i := range sys.Nodes {
		sys.Nodes[i].Curve = nil
	}
	for _, list := range []struct {
		name   string
		points []Point
	}{{"fitted", fit}, {"judged", judge}} {
		for _, p := range list.points {
			y, _ := defaultAt(p.X)
			rate, ns := loadedLatency(&sys, skylakeCores, 10, p.X*peak)
			t.Logf("%s: load %.3f: %.3f of idle, want %.3f; solved: %5.1f GB/s, %5.1f ns, want %5.1f", list.name, p.X, y, p.Y, rate/1e9, ns, p.Y*idle)
			if math.Abs(y/p.Y-1) > 0.1 || math.Abs(ns/idle/p.Y-1) > 0.1 {
				t.Errorf("%s: at a load of %.3f it is %.3f (solved %.3f), want %.3f", list.name, p.X, y, ns/idle, p.Y)
			}
		}
	}
}

// leastSquares fits 1 + a x + b x^8, by relative error.
func leastSquares(points []Point) (a, b float64) {
	var aa, ab, bb, ay, by float64
	for _, p := range points {
		u, v, y := p.X/p.Y, math.Pow(p.X, 8)/p.Y, (p.Y-1)/p.Y
		aa, ab, bb, ay, by = aa+u*u, ab+u*v, bb+v*v, ay+u*y, by+v*y
	}
	det := aa*bb - ab*ab
	return (ay*bb - by*ab) / det, (by*aa - ay*ab) / det
}

// Curves that other machines could have are reproduced, with any idle latency and peak. A
// noisy curve is reproduced except for its noise.
func TestOwnCurve(t *testing.T) {
	m, _ := DualSkylake()
	for _, c := range []struct{ idle, peak, end, power float64 }{{60, 40e9, 2, 2}, {120, 300e9, 4, 6}, {95, 150e9, 1.3, 1}} {
		p := skylakeProfile(m)
		p.Loaded, p.Peak, p.Bandwidth = nil, nil, nil
		one := func(v float64) profile.Figure { return profile.FigureOf([]float64{v}) }
		for i := range p.Latency {
			p.Latency[i].Figure = one(c.idle)
		}
		curve := profile.Curve{Name: "whole machine, all local"}
		for x := 0.05; x < 1.001; x += 0.05 {
			y := c.idle * (1 + (c.end-1)*math.Pow(x, c.power))
			curve.Points = append(curve.Points, profile.CurvePoint{Bandwidth: one(2 * c.peak * x), Latency: one(y)})
		}
		p.Loaded = []profile.Curve{curve}
		p.Peak = []profile.NodeFigure{{Node: 0, Figure: one(c.peak)}, {Node: 1, Figure: one(c.peak)}}
		sys, err := FromMachine(m, &p)
		if err != nil {
			t.Fatal(err)
		}
		sys.Misses = Misses{} // of curves, not of cores
		for _, q := range curve.Points[:len(curve.Points)-1] {
			rate, ns := loadedLatency(&sys, 28*4, 40, q.Bandwidth.Median.Or(0))
			want := q.Latency.Median.Or(0)
			if math.Abs(ns/want-1) > 0.02 {
				t.Errorf("%+v: at %.1f GB/s (%.1f) %.1f ns, want %.1f", c, q.Bandwidth.Median.Or(0)/1e9, rate/1e9, ns, want)
			}
		}
	}
}

// For any law the wait never falls as demand grows, and is finite.
func TestLawsAreMonotone(t *testing.T) {
	curve := []Point{{0.2, 1.01}, {0.2, 1.05}, {0.6, 1.4}, {0.8, 1.4}}
	for _, from := range []Server{{Cycles: 19}, {Cycles: 0.4, Curve: curve}, {}, {Cycles: math.Inf(1)}} {
		for _, law := range []Queue{PublishedCurve, MD1} {
			var q server
			q.init(from, law, 200)
			before := 0.0
			for ask := 0.0; ask < 40; ask += 0.001 {
				q.set(ask)
				if !(q.wait >= before-1e-9) || math.IsInf(q.wait, 0) || q.byAsk < 0 || q.busy > 1 {
					t.Fatalf("%+v law %d: at %v the wait is %v after %v", from, law, ask, q.wait, before)
				}
				before = q.wait
			}
		}
	}
}
