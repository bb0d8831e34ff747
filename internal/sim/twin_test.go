// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim/detmath"
)

// twin is M/M/k, event by event: requests arrive at random; in order, each goes to the
// server that is free first. stops are times in which no server serves. It shares nothing
// with the formulas.
func twin(seed uint64, k int, service, rate, seconds float64, stops [][2]float64) (mean float64, all []float64) {
	r := detmath.NewRandom(seed, "twin")
	free := make([]float64, k)
	sum := 0.0
	for at := r.Exponential() / rate; at < seconds; at += r.Exponential() / rate {
		first := 0
		for i := range free {
			if free[i] < free[first] {
				first = i
			}
		}
		end := max(at, free[first])
		for left := service * r.Exponential(); ; {
			begin, next := end, math.Inf(1)
			for _, s := range stops {
				if begin >= s[0] && begin < s[1] {
					begin = s[1]
				}
			}
			for _, s := range stops {
				if s[0] > begin {
					next = min(next, s[0])
				}
			}
			if end = begin + left; end <= next {
				break
			}
			left, end = left-(next-begin), next
		}
		free[first] = end
		sum += end - at
		all = append(all, end-at)
	}
	return sum / float64(len(all)), all
}

// twins is the mean of many runs, and the 99th percentile of all of them.
func twins(runs, k int, service, rate, seconds float64, stops [][2]float64) (mean, p99 float64) {
	var every []float64
	for seed := range uint64(runs) {
		m, all := twin(seed, k, service, rate, seconds, stops)
		mean += m / float64(runs)
		every = append(every, all...)
	}
	slices.Sort(every)
	return mean, every[len(every)*99/100]
}

// requestsOnly is a service that only computes, on CPUs of its own, so its service time is
// known.
func requestsOnly(k int, service float64, c Config, load float64) Config {
	s := Spec{Name: "a", Threads: k, Work: WorkSpec{Cycles: service * c.System.Hz, Instructions: 1}}
	s.Demand = DemandSpec{Rate: load * float64(k) / service, Queue: 1 << 30}
	var cpus []int
	for _, n := range c.Machine.Nodes {
		cpus = append(cpus, n.CPUs.IDs()...)
	}
	s.Start = StartSpec{CPUs: set.FromCPUs(cpus[:k]...), Pinned: true}
	c.Specs = []Spec{s}
	return c
}

// The mean latency of two minutes from empty, over loads up to beyond saturation, servers
// and steps, against the twin. A backlog is not counted twice, and a queue that takes hours
// to settle does not settle at once.
func TestLatencyAgainstTwin(t *testing.T) {
	worst := 0.0
	for _, k := range []int{1, 4, 16} {
		service := 0.0076 * float64(k)
		for _, load := range []float64{0.5, 0.7, 0.9, 0.98, 1, 1.02, 1.05} {
			want, wantP99 := twins(40, k, service, load*float64(k)/service, 120, nil)
			for _, step := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
				m, y := server()
				c := requestsOnly(k, service, Config{Machine: m, System: y, Seed: 1, Start: start, Step: step}, load)
				c.System.Threads = 1
				w := world(t, c)
				w.Run(2 * time.Minute)
				got := w.Truth()[0]
				worst = max(worst, math.Abs(got.Latency/want-1))
				t.Logf("k %2d, load %.2f, step %4v: latency %.4f, twin %.4f, P99 %.3f, twin %.3f", k, load, step, got.Latency, want, got.P99, wantP99)
				near(t, fmt.Sprintf("latency of %d servers at %v in steps of %v", k, load, step), got.Latency, want, 0.15)
			}
		}
	}
	t.Logf("worst: %.1f %%", 100*worst)
}

// One stop of 0.5 s per minute at a load of 0.7 adds λ S²/2 / (1 − ρ) of waiting, and its
// tail, whatever the step; checked against the twin.
func TestStopAgainstTwin(t *testing.T) {
	const service = 0.00072
	stop := [][2]float64{{0, 0.5}}
	want, wantP99 := twins(20, 1, service, 0.7/service, 60, stop)
	near(t, "the twin by hand", want, service/0.3+0.5*0.5/2/0.3/60, 0.03)
	for _, step := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, 400 * time.Millisecond, time.Second, 10 * time.Second, time.Minute} {
		m, y := server()
		w := world(t, requestsOnly(1, service, Config{Machine: m, System: y, Seed: 1, Start: start, Step: step}, 0.7))
		w.Run(time.Minute)
		w.Truth()
		w.live[0].stall, w.live[0].calls = 0.5, 0.5
		w.Run(time.Minute)
		got := w.Truth()[0]
		t.Logf("step %v: latency %.5f, twin %.5f, P99 %.4f, twin %.4f", step, got.Latency, want, got.P99, wantP99)
		near(t, fmt.Sprintf("latency in steps of %v", step), got.Latency, want, 0.05)
		near(t, fmt.Sprintf("P99 in steps of %v", step), got.P99, wantP99, 0.15)
		near(t, "stalled", got.Stalled, 0.5, 1e-9)
	}
}

// Many short stops, as in a move, are a slower server, and each has its own late requests.
func TestManyStopsAgainstTwin(t *testing.T) {
	const service = 0.002
	var stops [][2]float64
	for i := range 100 {
		stops = append(stops, [2]float64{0.6 * float64(i), 0.6*float64(i) + 0.1})
	}
	want, wantP99 := twins(10, 1, service, 0.5/service, 60, stops)
	for _, step := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		m, y := server()
		w := world(t, requestsOnly(1, service, Config{Machine: m, System: y, Seed: 1, Start: start, Step: step}, 0.5))
		for range time.Minute / step {
			w.live[0].stall, w.live[0].calls = step.Seconds()/6, 0.1
			w.Run(step)
		}
		got := w.Truth()[0]
		t.Logf("step %v: latency %.5f, twin %.5f, P99 %.4f, twin %.4f", step, got.Latency, want, got.P99, wantP99)
		near(t, fmt.Sprintf("latency in steps of %v", step), got.Latency, want, 0.2)
		near(t, fmt.Sprintf("P99 in steps of %v", step), got.P99, wantP99, 0.25)
	}
}

// A queue with room for two drops as M/M/1/3 does, and what is not dropped is done.
func TestFiniteQueueDrops(t *testing.T) {
	for load, want := range map[float64]float64{0.7: 0.1354, 0.9: 0.2120, 0.98: 0.2426, 1.3: 0.3538} {
		for _, step := range []time.Duration{time.Second, time.Minute} {
			m, y := server()
			c := requestsOnly(1, 0.005, Config{Machine: m, System: y, Seed: 1, Start: start, Step: step}, load)
			c.Specs[0].Demand.Queue = 2
			w := world(t, c)
			w.Run(10 * time.Minute)
			got := w.Truth()[0]
			near(t, fmt.Sprintf("dropped at %v", load), got.Dropped/got.Asked, want, 0.03)
			near(t, "asked", got.Ops+got.Dropped+w.live[0].queue, got.Asked, 1e-9)
			// By Little's law, for M/M/1/3.
			p, all, in := 1.0, 1.0, 0.0
			for j := 1.0; j <= 3; j++ {
				p *= load
				all, in = all+p, in+j*p
			}
			near(t, fmt.Sprintf("latency at %v", load), got.Latency, in/all/(load/0.005*(1-p/all)), 0.1)
		}
	}
}
