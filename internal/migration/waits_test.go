// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"homenode/internal/profile"
	"homenode/internal/unit"
)

// Whatever the counters say, what is saved is never more than the CPU time, the stall time,
// or what loads that wait one by one would save.
func TestPropertySavedIsBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 3))
	for range 100000 {
		some := func(v float64) unit.Opt[float64] { return unit.OptOf(v, r.IntN(3) > 0) }
		w := Waits{CPU: r.Float64() * 64, Stalled: some(2 * r.Float64()), Serial: some(100 * r.Float64())}
		if r.IntN(2) == 0 {
			w.Loads = unit.Some(Requests{Memory: r.Float64() * 1e9, Caches: r.Float64() * 1e9, LocalLoad: 1e-7 * r.Float64()})
		}
		excess := Excess(1.2*r.Float64(), 4*r.Float64())
		saved, _ := w.Saved(excess)
		if !(excess >= 0 && excess <= 1) || saved < 0 || saved > w.CPU || saved > w.Serial.Or(math.Inf(1)) || saved > w.CPU*w.Stalled.Or(1) {
			t.Fatalf("%+v, excess %v: %v", w, excess, saved)
		}
	}
}

// A move of 180 GB/s of reads from a full node: the gain was 218 % of the CPU time before
// it was bounded.
func TestPaysWithinCPUTime(t *testing.T) {
	s := Stake{
		Bytes: unit.GiB, RemoteRate: unit.Measured(3e9, "test"), Difference: unit.Estimated(88e-9, "test"), PerByte: unit.Estimated(maoPerByte, maoSource), Horizon: time.Second,
		CPU: unit.Measured(128.0, "test"), Part: unit.Some(0.75), Slower: unit.Estimated(1.66, "test"),
	}
	free := s
	free.CPU = unit.Value[float64]{}
	if was := Pays(free).Gain.Or(0); was < 128 {
		t.Fatalf("without the bound %v CPU-s: the case shows nothing", was)
	}
	if gain := Pays(s).Gain.Or(math.NaN()); !(gain > 0 && gain < 128) {
		t.Errorf("%v CPU-s saved, of 128 that it uses", gain)
	}
	s.Stalled = unit.Measured(unit.Ratio(0.4), "stalls")
	if gain := Pays(s).Gain.Or(math.NaN()); !(gain > 0 && gain < 0.4*128) || Pays(s).Sum().Rule != "migration.sum-bounded" {
		t.Errorf("%v CPU-s saved, of 51 that it waits: %v", gain, Pays(s).Sum())
	}
}

// A counter of all stalls instead of memory stalls: a program with few requests stalls for
// something else. That is said, and the stalls are not used.
func TestStallsOfSomethingElse(t *testing.T) {
	w := Waits{CPU: 1, Stalled: unit.Some(0.7), Loads: unit.Some(Requests{Memory: 1e5, Caches: 1e5, LocalLoad: 80e-9})}
	if saved, _ := w.Saved(0.5); !w.Other() || saved > 0.02 {
		t.Errorf("100,000 loads a second save %v of a CPU (other: %v)", saved, w.Other())
	}
	w.Loads = unit.Some(Requests{Memory: 1e7, LocalLoad: 80e-9})
	if saved, _ := w.Saved(0.5); w.Other() || saved != 0.35 {
		t.Errorf("10,000,000 loads a second: %v, other: %v", saved, w.Other())
	}
	s := Stake{
		Bytes: 1, RemoteRate: unit.Measured(1e5, "test"), Difference: unit.Estimated(800e-9, "test"), PerByte: unit.Estimated(1e-9, "test"), Horizon: time.Second,
		CPU: unit.Measured(1.0, "test"), Stalled: unit.Measured(unit.Ratio(0.7), "stalls"), Slower: unit.Estimated(1.6, "test"), Requests: unit.Some(Requests{Memory: 1e5, LocalLoad: 80e-9}),
	}
	for _, n := range Pays(s).Numbers {
		if n.Name == bound && strings.Contains(n.Value.From, "more than waiting for memory") {
			return
		}
	}
	t.Errorf("nothing says that the stalls are of something else: %+v", Pays(s).Numbers)
}

// Binding onto a node that this would fill does not pay, however many loads become local.
func TestSpreadIsTheAnswer(t *testing.T) {
	s := Stake{
		Bytes: unit.GiB, RemoteRate: unit.Measured(1e8, "test"), Difference: unit.Estimated(53e-9, "test"), PerByte: unit.Estimated(maoPerByte, maoSource), Horizon: 10 * time.Minute,
		CPU: unit.Measured(128.0, "test"), Part: unit.Some(0.75), Slower: unit.Estimated(1.66, "test"),
	}
	if v := Pays(s); v.Answer != PaysYes {
		t.Fatalf("where no bandwidth is known: %+v", v)
	}
	factor, _, _ := Longer(Pressure{Node: 0.6}, Pressure{Node: 2.4}, 0.3)
	s.Fill, s.Crowded = unit.Estimated(2.4, "test"), unit.Estimated(factor, "test")
	if v := Pays(s); v.Answer != PaysNo || v.Short().Rule != "migration.spread" || v.Gain.Or(0) >= 0 {
		t.Errorf("onto a node that it would fill 2.4 times: %v, %+v", v.Short(), v)
	}
}

// Fuller is never faster, and the factors of both ways are inverse to each other where the
// window shows how fast the work is without waiting.
func TestPropertyLonger(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 22))
	for range 20000 {
		a, b := Pressure{r.Float64(), 0.5 * r.Float64()}, Pressure{4 * r.Float64(), 0.5 * r.Float64()}
		busy := r.Float64()
		factor, low, high := Longer(a, b, busy)
		more, _, _ := Longer(a, Pressure{b.Node + 0.1, b.Between}, busy)
		if !(factor > 0) || math.IsInf(factor, 0) || low > factor*(1+1e-9) || high < factor*(1-1e-9) || more < factor {
			t.Fatalf("%v to %v, busy %v: %v in %v to %v; fuller %v", a, b, busy, factor, low, high, more)
		}
		if same, _, _ := Longer(a, a, busy); math.Abs(same-1) > 1e-9 {
			t.Fatalf("%v to itself: %v", a, same)
		}
	}
}

// A profile in which remote memory is faster is not used for latencies, and that is said.
func TestContradictingProfile(t *testing.T) {
	p := measured()
	for i := range p.Latency {
		if f := &p.Latency[i]; f.From != f.To {
			f.Figure = profile.FigureOf([]float64{60})
		}
	}
	v := CostsOf(p, twoNodes()).LatencyDifference(0, 1, 0)
	if math.Abs(v.Or(0)*1e9-48) > 1e-6 || v.How != unit.HowEstimated || !strings.Contains(v.From, "not the profile's: a read from node 0 to node 1 takes 60 ns, and 80 ns to its own memory") {
		t.Errorf("%v", v)
	}
}
