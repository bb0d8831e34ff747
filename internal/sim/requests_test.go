// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)+1e-300) {
		t.Errorf("%s is %v, want %v within %v of it", what, got, want, tolerance)
	}
}

// stationOf has k servers, and exponential work unless work says otherwise.
func stationOf(k, service, work float64) station {
	return station{service: service, servers: k, work: work, varies: (1 + work) / 2}.whole()
}

// M/M/1 by hand: at a load of 0.8 and 10 ms of service, requests wait 40 ms, take 50 ms,
// and their 99th percentile is 50 ms × ln 100.
func TestWaitingByHand(t *testing.T) {
	settled := func(q station, rate float64) (wait, p99 float64) {
		var all tail
		x := q.waiting(rate, rate, 1e9)
		x.tail = &all
		x.run(1e4)
		all = tail{}
		x.area = 0
		x.run(1e4)
		return x.area / rate / 1e4, all.p99()
	}
	wait, p99 := settled(stationOf(1, 0.01, 1), 80)
	near(t, "M/M/1 wait", wait, 0.04, 1e-6)
	near(t, "M/M/1 P99", p99, 0.05*math.Log(100), 1e-5)
	wait, _ = settled(stationOf(1, 0.01, 0), 80)
	near(t, "M/D/1 wait: half of it", wait, 0.02, 1e-6)
	// M/M/4 at 0.8: Erlang C is 0.596 and the wait 0.00745 s; Sakasegawa is within 10 %.
	wait, _ = settled(stationOf(4, 0.01, 1), 320)
	near(t, "M/M/4 wait", wait, 0.596/(4*100-320), 0.1)
	wait, _ = settled(stationOf(0.5, 0.005, 1), 80)
	near(t, "half a server's wait: one of twice the service", wait, 0.04, 1e-6)
}

// A backlog of 100 that shrinks by 50 per second makes 100 × 2 s / 2 of waiting, whatever
// the step.
func TestBacklogByHand(t *testing.T) {
	for _, step := range []float64{0.1, 1, 10} {
		x := stationOf(1, 0.01, 1e-9).waiting(50, 50, 1e9)
		x.number, x.backlog, x.tail = 100, 100, &tail{}
		for at := 0.0; at < 9.99; at += step {
			x.run(step)
		}
		near(t, fmt.Sprintf("in steps of %v s", step), x.area-10*x.rest, 100, 0.05)
	}
}

// Blocking of M/M/1 with room for two, by hand: ρ³ (1 − ρ) / (1 − ρ⁴); and of M/M/k, by its
// states.
func TestBlockingByHand(t *testing.T) {
	for load, want := range map[float64]float64{0.7: 0.1354, 0.9: 0.2120, 0.98: 0.2426, 1: 0.25, 1.5: 0.4154} {
		q := stationOf(1, 0.01, 1)
		share, _ := q.refuses(100*load, 2)
		near(t, fmt.Sprintf("at a load of %v", load), share, want, 2e-3)
	}
	for _, k := range []float64{1, 2, 4, 16} {
		for _, room := range []float64{1, 5, 40} {
			for _, load := range []float64{0.5, 0.9, 0.9999, 1, 1.2, 3} {
				state, all, wait := 1.0, 1.0, 0.0
				for j := 1.0; j <= k+room; j++ {
					state *= load * k / min(j, k)
					all += state
					wait += state * max(0, j-k)
				}
				q := stationOf(k, 0.01, 1)
				share, mean := q.refuses(100*k*load, room)
				if math.Abs(share-state/all) > 0.02 {
					t.Errorf("M/M/%v with room for %v at %v refuses %v, want %v", k, room, load, share, state/all)
				}
				if share > 0.01 && math.Abs(mean-wait/all) > 0.1*room {
					t.Errorf("M/M/%v with room for %v at %v: %v wait, want %v", k, room, load, mean, wait/all)
				}
			}
		}
	}
}

func TestCosTurn(t *testing.T) {
	for i := range 1001 {
		x := float64(i) / 1000
		if d := math.Abs(cosTurn(x) - math.Cos(2*math.Pi*x)); d > 1e-14 {
			t.Fatalf("cosine of %v turns is off by %v", x, d)
		}
	}
}
