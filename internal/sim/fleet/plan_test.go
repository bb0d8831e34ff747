// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"testing"

	"homenode/internal/sim"
	"homenode/internal/unit"
)

var (
	skylake = Host{CPUs: 80, Memory: 384 * (1 << 30), Hz: 2.7e9}
	little  = Host{CPUs: 4, Memory: 1 << 30, Hz: 2.7e9}
)

func generate(t testing.TB, seed uint64, h Host, z Size) *Plan {
	t.Helper()
	p, err := Generate(seed, h, z)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A seed is a fleet, held by its digest. If this fails and the change is intended,
// increment GeneratorVersion and add the new digest beside the old: files written by the
// old version keep its number.
func TestGeneratorIsFrozen(t *testing.T) {
	if GeneratorVersion != 1 {
		t.Fatalf("version %d: write its digests here", GeneratorVersion)
	}
	for _, c := range []struct {
		seed uint64
		host Host
		size Size
		want string
	}{
		{1, skylake, Size{30, 3 * 24 * 60, 20}, "6a7871e45546707e2ac1c86fa1a0863d7818d4d59f5bcc49b4057e6f89e50901"},
		{2, little, Size{4, 600, 6}, "be0f70222ba1c3efc8cc6d2517fe5fd3d8925ea67da3251bded869d2813497a3"},
	} {
		p := generate(t, c.seed, c.host, c.size)
		h := sha256.New()
		for _, v := range p.Services {
			fmt.Fprintln(h, v.Name, v.Kind, v.Replicas, v.CPU, int64(v.Memory), v.Life, v.Elastic)
			drawn(h, v.Spec)
		}
		for i := range p.Servers {
			for _, s := range p.Specs(i) {
				drawn(h, s)
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != c.want {
			t.Errorf("seed %d draws another fleet: digest %s, want %s", c.seed, got, c.want)
		}
	}
}

// drawn writes the part of a spec that the generator decides; fields that a spec gets later
// are not included.
func drawn(w io.Writer, s sim.Spec) {
	m, d := s.Memory, s.Demand
	fmt.Fprintln(w, s.Name, s.Service, s.Threads, s.CPULimit, s.Approved, s.Arrive, s.Depart)
	fmt.Fprintln(w, int64(m.Private), int64(m.Shared), int64(m.Files), int64(m.Cache), *m.PrivateAccesses, int64(m.CacheGrowth), m.Churn, m.Toucher)
	fmt.Fprintln(w, s.Work.Cycles, s.Work.Instructions)
	for _, g := range s.Work.Regions {
		fmt.Fprintln(w, int64(g.Size), g.Shared, g.Accesses, g.Parallelism, g.Stream, g.Writes)
	}
	fmt.Fprintln(w, d.Rate, d.Low, d.Peak, d.Noise, d.Spread, d.Bursts, d.Wakes, d.Queue)
}

// Every replica is on exactly one server at a time, and comes back where its service has
// it. Elastic replicas are absent for part of the day.
func TestEveryReplicaIsInOnePlace(t *testing.T) {
	p := generate(t, 7, skylake, Size{40, 4 * 24 * 60, 20})
	type id struct{ service, replica int32 }
	there := map[id][]int{}
	for _, y := range p.Stays {
		k := id{y.Service, y.Replica}
		if there[k] == nil {
			there[k] = make([]int, p.Minutes)
		}
		if y.From >= y.To || y.From < 0 || int(y.To) > p.Minutes {
			t.Fatalf("stay from %d to %d", y.From, y.To)
		}
		for m := y.From; m < y.To; m++ {
			there[k][m]++
		}
	}
	replicas, minutes := 0, 0
	for i, v := range p.Services {
		replicas += v.Replicas
		for n := range v.Replicas {
			for m, times := range there[id{int32(i), int32(n)}] {
				minutes += times
				if times > 1 {
					t.Fatalf("replica %d of %s is in %d places in minute %d", n, v.Name, times, m)
				}
				if times == 0 && v.Elastic == 0 && p.Unplaced == 0 {
					t.Fatalf("replica %d of %s is nowhere in minute %d", n, v.Name, m)
				}
			}
		}
	}
	mean := float64(minutes) / float64(p.Minutes) / float64(p.Servers)
	t.Logf("%d services, %d replicas, %d stays, %.2f workloads a server, %d unplaced", len(p.Services), replicas, len(p.Stays), mean, p.Unplaced)
	if math.Abs(mean-20) > 0.6 {
		t.Errorf("%.2f workloads a server on the average, want 20", mean)
	}
	if len(p.Stays) < replicas+replicas/20 {
		t.Errorf("%d stays of %d replicas: no replica moves", len(p.Stays), replicas)
	}
	if p.Unplaced > replicas/50 {
		t.Errorf("%d times there was no room", p.Unplaced)
	}
}

func TestNoServerIsPromisedMoreThanItHas(t *testing.T) {
	for _, h := range []Host{skylake, little} {
		p := generate(t, 3, h, Size{25, 2 * 24 * 60, 12})
		for s := range p.Servers {
			stays, specs := p.Of(s), p.Specs(s)
			for _, at := range stays { // the maximum is reached at an arrival
				var cpu float64
				var asked, has unit.Bytes
				for i, y := range stays {
					if y.From <= at.From && at.From < y.To {
						cpu += p.Services[y.Service].CPU
						asked += p.Services[y.Service].Memory
						has += held(specs[i].Memory)
					}
				}
				if cpu > h.CPUs || float64(asked) > h.Memory || has > asked {
					t.Fatalf("server %d in minute %d: %v of %v CPUs, %v of %v (%v in specs)", s, at.From, cpu, h.CPUs, asked, unit.Bytes(h.Memory), has)
				}
			}
		}
	}
}

// A larger fleet has larger services, and another seed has others.
func TestGenerateDependsOnSeed(t *testing.T) {
	digest := func(seed uint64) string {
		b, err := json.Marshal(generate(t, seed, skylake, Size{5, 60, 20}))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if first, again := digest(1), digest(1); first != again || first == digest(2) {
		t.Error("a seed does not decide the fleet")
	}
	for _, c := range []struct{ servers, want int }{{1, 20}, {200, 20}, {1000, 100}, {10_000, 400}} {
		if got := Services(c.servers); got != c.want {
			t.Errorf("%d servers have %d services, want %d", c.servers, got, c.want)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	good := Size{1, 1, 1}
	for _, c := range []struct {
		host Host
		size Size
	}{
		{skylake, Size{0, 1, 1}},
		{skylake, Size{1, 0, 1}},
		{skylake, Size{1, -5, 1}},
		{skylake, Size{1, 1, 0}},
		{skylake, Size{MostServers + 1, 1, 1}},
		{Host{CPUs: 0, Memory: 1, Hz: 1}, good},
		{Host{CPUs: 1, Memory: 0, Hz: 1}, good},
		{Host{CPUs: 1, Memory: 1, Hz: math.NaN()}, good},
	} {
		if p, err := Generate(1, c.host, c.size); err == nil || p != nil {
			t.Errorf("%+v %+v was accepted", c.host, c.size)
		}
	}
}

// The drawn services are of the paper's kinds: see kinds.
func TestServicesAreOfTheirKind(t *testing.T) {
	p := generate(t, 1, skylake, Size{2000, 60, 20})
	seen := map[string]int{}
	var key, n float64
	for _, v := range p.Services {
		seen[v.Kind]++
		s := v.Spec
		if s.Threads < 2 || s.Demand.Rate <= 0 || s.Work.Cycles <= 0 || len(s.Work.Regions) == 0 || (s.CPULimit > 0 && s.CPULimit < v.CPU) {
			t.Errorf("%s: %+v", v.Name, v)
		}
		if v.Kind == "predictor" || v.Kind == "feature" {
			key += float64(v.Replicas) * float64(anon(s))
			n += float64(v.Replicas)
		}
	}
	for _, k := range kinds {
		if seen[k.name] == 0 {
			t.Errorf("no %s among %d services", k.name, len(p.Services))
		}
	}
	// MAO: 2.5 GB of a key workload are remote where 42 % of its accesses are.
	if mean := key / n / (1 << 30); mean < 4 || mean > 9 {
		t.Errorf("key workloads hold %.1f GiB on the average", mean)
	}
}

func anon(s sim.Spec) unit.Bytes { return s.Memory.Private + s.Memory.Shared }

func BenchmarkGenerate(b *testing.B) {
	for b.Loop() {
		if _, err := Generate(1, skylake, Size{1000, 24 * 60, 20}); err != nil {
			b.Fatal(err)
		}
	}
}
