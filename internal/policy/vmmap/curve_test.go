// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"math"
	"math/rand/v2"
	"testing"

	"homenode/internal/unit"
)

// seenAt is a window of a program with this occupancy and this share of hits.
func seenAt(held, hits float64) Sample {
	const cache = 1 << 20
	return Sample{Requests: unit.Some(0.01), Loads: unit.Some(0.01 * (1 - hits)), Waits: unit.Some(0.3), Held: unit.Some(held * cache), Cache: unit.Some(float64(cache))}
}

// A curve goes through its points, never falls, and stays between none and all, whatever
// windows say.
func TestCurve(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		footprint := 0.05 + 2*r.Float64()
		var c Curve
		for range 1 + r.IntN(12) {
			held := 0.01 + 0.99*r.Float64()
			c = c.withWindow(seenAt(held, min(1, max(0, held/footprint+0.4*(r.Float64()-0.5)))), 0.3)
		}
		if len(c) == 0 || len(c) > octaves {
			t.Fatalf("seed %d: %d points", seed, len(c))
		}
		last := 0.0
		for i := range 101 {
			h := c.at(float64(i) / 100)
			if h < last-1e-9 || h > 1 {
				t.Fatalf("seed %d: %v at %d%% after %v: %+v", seed, h, i, last, c)
			}
			last = h
		}
		for i, p := range c {
			if got := c.at(p.Held); math.Abs(got-p.Hits) > 1e-9 || i > 0 && octave(p.Held) >= octave(c[i-1].Held) {
				t.Fatalf("seed %d: %v at %+v: %+v", seed, got, p, c)
			}
		}
	}
	var none Curve
	for name, forget := range map[string]func(*Sample){
		"held": func(s *Sample) { s.Held = unit.None[float64]() }, "requests": func(s *Sample) { s.Requests = unit.Some(0.0) },
		"loads": func(s *Sample) { s.Loads = unit.None[float64]() }, "cache": func(s *Sample) { s.Cache = unit.None[float64]() },
	} {
		s := seenAt(0.5, 0.5)
		if forget(&s); len(none.withWindow(s, 0.3)) != 0 {
			t.Errorf("a point without %s", name)
		}
	}
	if s := seenAt(0, 0.5).with(Bounds{0.4, 0.45}); len(none.withWindow(s, 0.3)) != 1 || len(none.withWindow(s.with(anything), 0.3)) != 0 {
		t.Error("bounds: close ones are a point, wide ones are none")
	}
}

// A program's old behaviour is forgotten once it changes. Requests per instruction need not
// change with it, if only the working set grew.
func TestCurveForgets(t *testing.T) {
	var c Curve
	for range 5 {
		c = c.withWindow(seenAt(0.4, 0.97), 0.3)
	}
	for range 20 {
		c = c.withWindow(seenAt(0.95, 0.24), 0.3)
	}
	if len(c) != 1 || math.Abs(c.at(0.95)-0.24) > 1e-6 || c.tells() {
		t.Errorf("%+v", c)
	}
	for range 3 { // a small contradiction is chance
		c = c.withWindow(seenAt(0.4, 0.26), 0.3)
	}
	if len(c) != 2 || c[0].Hits > c[1].Hits || !c.tells() {
		t.Errorf("%+v", c)
	}
	var near Curve
	for range 9 {
		near = near.withWindow(seenAt(0.505, 0.5), 0.3).withWindow(seenAt(0.495, 0.5), 0.3)
	}
	if near.tells() {
		t.Errorf("two points that hardly differ: %+v", near)
	}
	if s := (Sample{Cache: unit.Some(float64(1 << 19)), Curve: c}).mix(seenAt(0.5, 0.5), 0.3); len(s.Curve) != 1 {
		t.Errorf("in another cache: %+v", s.Curve)
	}
}

// A program keeps a small part that it uses most, and streams the rest through. It is seen
// with all of a cache and with a tenth of it. Then it is known that little of what it
// brings in is useful, and that half of the cache would be enough.
func TestCurveTellsStreamsFromUse(t *testing.T) {
	f := defaultInfer()
	alone, squeezed := seenAt(1, 0.95), seenAt(0.1, 0.9)
	after := func(all ...Sample) Slowdowns {
		s := Sample{}
		for _, now := range all {
			s = s.mix(now, 1).mix(now, 1) // twice each
		}
		return f.Estimate(s)
	}
	twice, uniform := after(squeezed, alone), after(seenAt(0.1, 0.095), alone)
	if !(twice.Hurt.Or(9) < 0.8*uniform.Hurt.Or(0)) || !(twice.Harm.Or(9) < uniform.Harm.Or(0)/3) {
		t.Errorf("lines that are asked for alike %+v, a few often %+v", uniform, twice)
	}
	if once := after(alone); once.Hurt.Known() || once.Harm.Known() || !once.Remote.Known() {
		t.Errorf("what a program holds of a cache that nothing takes from it says something: %+v", once)
	}
}
