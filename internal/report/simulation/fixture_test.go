// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"homenode/internal/sim/scenario"
	"homenode/internal/unit"
)

// The fixture is made up: it looks like a result, and is not one. 'go test -update' writes
// it anew.
const fixtureFile = "result.json"

func scenarioFixture(t *testing.T) (r scenario.Result) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "scenario", fixtureFile))
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMain(m *testing.M) {
	// Files are first read before flags are parsed, so they are written here.
	os.Exit(runTests(m))
}

func writeFixture() error {
	data, err := json.Marshal(fake())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("testdata", "scenario", fixtureFile), append(data, '\n'), 0o644)
}

// dice is a small generator, so the fixture is the same everywhere.
type dice uint64

func (d *dice) roll() float64 {
	*d += 0x9e3779b97f4a7c15 // splitmix64
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>40) / (1 << 24)
}

// around is v, plus or minus a share of it.
func (d *dice) around(v, share float64) float64 { return rounded(v * (1 + share*(2*d.roll()-1))) }

func rounded(v float64) float64 { return math.Round(v*1e7) / 1e7 }

type fakeArm struct {
	name, about, policy   string
	local, unbound        float64
	latency, cpu          float64 // × the first arm's
	moved                 float64
	binds, unbinds, fails int
}

func fake() scenario.Result {
	arms := []fakeArm{
		{"numa-balancing", "Linux alone, NUMA balancing on", "none", 0.55, 1, 1, 1, 310 << 30, 0, 0, 0},
		{"mao-a", "MAO, strategy A: unbind on any imbalance", "mao-a", 0.82, 0.34, 0.95, 0.96, 0, 610, 590, 12},
		{"mao-b", "MAO, strategy B: unbind above the history's P95", "mao-b", 0.93, 0.06, 0.9, 0.93, 0, 64, 52, 3},
		{"interleave", "all memory on all nodes alike", "interleave", 0.5, 1, 1.06, 1.03, 0, 12, 0, 0},
	}
	r := scenario.Result{
		Schema: scenario.ResultSchema, How: modelled, Scenario: "mao-fig8", About: "Search and Feed side by side, three days of diurnal load",
		Digest: "5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592", Machine: "skx-2x24 (shape)", From: "latency.md: Skylake-SP, DDR4-2400, 80/138 ns",
		Nodes: 2, CPUs: 96, PeriodS: 60, Seconds: 72 * 3600, Seeds: []uint64{1, 2, 3, 4, 5}, Against: "numa-balancing",
	}
	for _, a := range arms {
		r.Arms = append(r.Arms, a.outcome(r.Seeds))
	}
	r.Paper = []scenario.Claim{
		{Figure: "MAO Fig. 8", Service: "feed", Arm: "mao-b", Against: "numa-balancing", Metric: "latency", Value: unit.Some(-0.121), Note: "ours has one Feed service, the paper's several"},
		{Figure: "MAO Fig. 8", Service: "search", Arm: "mao-b", Against: "numa-balancing", Metric: "latency", Value: unit.Some(-0.086)},
		{Figure: "MAO Fig. 8", Service: "feed", Arm: "mao-b", Against: "numa-balancing", Metric: "cpu_per_op", Value: unit.Some(-0.098)},
		{Figure: "MAO Fig. 8", Service: "search", Arm: "mao-b", Against: "numa-balancing", Metric: "cpu_per_op", Value: unit.Some(-0.067)},
		{Figure: "MAO Fig. 8", Service: "search", Arm: "mao-b", Against: "numa-balancing", Metric: "local_ratio", Value: unit.Some(0.1726), Note: "the paper's Search starts from more local accesses"},
		{Figure: "made up", Arm: "mao-b", Against: "mao-a", Metric: "unbind_ratio", Value: unit.Some(-0.8)},
		{Figure: "MAO Fig. 8", Service: "ads", Arm: "mao-b", Against: "numa-balancing", Metric: "latency", Value: unit.Some(-0.05), Note: "Ads is not in this scenario"},
		{Figure: "MAO, fleet", Arm: "numa-balancing", Metric: "local_ratio", Value: unit.Some(0.5776), Note: "the fleet's average, of all services"},
		{Figure: "MAO Fig. 4", Service: "search", Arm: "mao-a", Against: "numa-balancing", Metric: "latency", Note: "the paper shows a curve"},
		{Figure: "MAO Fig. 9", Arm: "mao-b", Metric: "moved_bytes"},
	}
	return r
}

func (a fakeArm) outcome(seeds []uint64) scenario.Outcome {
	o := scenario.Outcome{Name: a.name, About: a.about, Policy: a.policy}
	for _, seed := range seeds {
		o.Runs = append(o.Runs, a.run(seed))
	}
	return o
}

func (a fakeArm) run(seed uint64) scenario.Run {
	d := dice(seed * 1000)
	for _, b := range a.name {
		d = d*31 + dice(b)
	}
	r := scenario.Run{
		Seed: seed, Binds: a.binds + int(seed), Unbinds: a.unbinds + int(seed)/2, Refused: a.fails, MovedB: math.Round(d.around(a.moved, 0.1)),
		UnbindRatio: min(1, d.around(a.unbound, 0.08)), LocalRatio: min(1, d.around(a.local, 0.01)), CPUSeconds: math.Round(d.around(9.1e6*a.cpu, 0.01)),
	}
	if a.binds == 0 {
		r.Binds, r.Unbinds = 0, 0
	}
	demand := dice(seed) // the same in all arms
	for i, name := range []string{"batch", "feed", "search"} {
		asked := math.Round(demand.around(2.6e8, 0.03))
		s := scenario.Service{
			Name: name, Replicas: 4, Ops: asked, Asked: asked, LatencyS: demand.around(0.0123*float64(i), 0.02) * d.around(a.latency-0.01*float64(i-1)*a.local, 0.01),
			CPUPerOp: demand.around(0.0042, 0.01) * d.around(a.cpu, 0.008), LocalRatio: min(1, d.around(a.local, 0.02)), IPC: d.around(0.9/a.cpu, 0.01), StalledS: d.around(1e5*a.latency, 0.05),
		}
		s.LatencyS, s.CPUPerOp = rounded(s.LatencyS), rounded(s.CPUPerOp)
		s.P99S = rounded(s.LatencyS * d.around(3.4, 0.05))
		if a.name == "interleave" && name == "search" {
			s.Dropped = math.Round(asked * 0.012)
			s.Ops -= s.Dropped
		}
		r.Services = append(r.Services, s)
		for k := range 4 {
			r.Workloads = append(r.Workloads, scenario.Workload{
				ID: fmt.Sprintf("/%s-%d", name, k+1), Service: name, LocalRatio: min(1, d.around(a.local, 0.09)), LatencyS: s.LatencyS, CPUPerOp: s.CPUPerOp, BoundShare: rounded(1 - r.UnbindRatio),
			})
		}
	}
	r.Series = a.series(&d, &demand)
	return r
}

// series is three days in 48 samples: a day goes up and down in straight lines.
func (a fakeArm) series(d, demand *dice) (out []scenario.Sample) {
	for i := range 48 {
		hour := float64(i+1) * 1.5
		day := math.Abs(math.Mod(hour, 24)-12) / 12 // 1 at night, 0 at noon
		load := 0.82 - 0.55*day
		busy := 1 + 2*load*load*load
		out = append(out, scenario.Sample{
			Hour: hour, Load: demand.around(load, 0.04), LatencyS: d.around(0.011*busy*(1-(1-a.latency)*(0.4+load)), 0.015),
			LocalRatio: min(1, d.around(a.local, 0.02)), Unbound: min(1, d.around(a.unbound*(0.3+1.4*load), 0.1)),
		})
		if a.unbound == 1 {
			out[i].Unbound = 1
		}
	}
	return out
}
