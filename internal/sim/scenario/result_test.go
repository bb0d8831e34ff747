// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"homenode/internal/schema"
	"homenode/internal/sim"
	"homenode/internal/sim/runner"
	"homenode/internal/unit"
)

// fakeResult has two arms and three seeds; the second arm's latency is 0.5, 0.8 and 0.9 of
// the first's.
func fakeResult() Result {
	r := Result{
		Schema: ResultSchema, How: runner.How, Scenario: "fake", Digest: strings.Repeat("ab", 32), Machine: "fake:x", Nodes: 2, CPUs: 8,
		PeriodS: 60, Seconds: 3600, Seeds: []uint64{1, 2, 3}, Against: "none",
		Arms: []Outcome{{Name: "none", Policy: "none"}, {Name: "mao", Policy: "mao-b"}},
	}
	for i, factor := range []float64{0.9, 0.5, 0.8} {
		base := float64(i + 1)
		for k, f := range []float64{1, factor} {
			r.Arms[k].Runs = append(r.Arms[k].Runs, Run{
				Seed: uint64(i + 1), UnbindRatio: 1 - 0.5*float64(k), LocalRatio: 0.5, CPUSeconds: 100 * f,
				Services: []Service{
					{Name: "batch", Replicas: 1, Ops: 1000 / f, CPUPerOp: f, IPC: 1 / f},
					{Name: "web", Replicas: 2, Ops: 10, Asked: 10, LatencyS: base * f, P99S: 2 * base * f, CPUPerOp: f, LocalRatio: 0.5, IPC: 1},
				},
				Workloads: []Workload{{ID: "/web-1", Service: "web", LocalRatio: 0.5}},
				Series:    []Sample{{Hour: 0.5, Load: 0.5}, {Hour: 1, Load: 0.6}},
			})
		}
	}
	r.Paper = []Claim{
		{Figure: "Fig. 8", Service: "web", Arm: "mao", Against: "none", Metric: "latency", Value: unit.Some(-0.12)},
		{Figure: "Fig. 6", Arm: "mao", Against: "none", Metric: "unbind_ratio", Value: unit.Some(-0.3)},
		{Figure: "Fig. 9", Service: "batch", Arm: "mao", Against: "none", Metric: "p99", Value: unit.Some(-0.1)},
	}
	return r
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }

func TestCompare(t *testing.T) {
	found := map[string]Comparison{}
	for _, c := range Compare(fakeResult()) {
		if c.Arm != "mao" || c.Against != "none" {
			t.Errorf("%+v", c)
		}
		found[c.Service+" "+c.Metric] = c
	}
	c := found["web latency"]
	if !near(c.Ratio.Median, 0.8) || !near(c.Ratio.Min, 0.5) || !near(c.Ratio.Max, 0.9) || c.Ratio.N != 3 || !near(c.Base.Median, 2) || !near(c.Value.Median, 1) {
		t.Errorf("%+v", c)
	}
	if _, ok := found["batch latency"]; ok {
		t.Error("a service without requests has a latency")
	}
	if c := found[" latency"]; !near(c.Ratio.Median, 0.8) || c.Base.N != 3 { // only web has one
		t.Errorf("of all services %+v", c)
	}
	if c := found[" unbind_ratio"]; !near(c.Ratio.Median, 0.5) {
		t.Errorf("%+v", c)
	}
	if c := found["batch throughput"]; !near(c.Ratio.Median, 1/0.8) {
		t.Errorf("%+v", c)
	}
	if all := Compare(Result{Against: "gone"}); all != nil {
		t.Errorf("%+v", all)
	}
}

func TestSpread(t *testing.T) {
	if s := SpreadOf([]float64{4, 1, 3, 2}); s != (Spread{Median: 2.5, Min: 1, Max: 4, N: 4}) {
		t.Errorf("%+v", s)
	}
	if s := SpreadOf(nil); s != (Spread{}) {
		t.Errorf("%+v", s)
	}
}

func TestJudge(t *testing.T) {
	r := fakeResult()
	all := Judge(r)
	if len(all) != 3 || !near(all[0].Ours.Median, -0.2) || !near(all[0].Ours.Min, -0.5) || all[0].Why != "" || !near(all[1].Ours.Median, -0.5) || all[2].Ours != (Spread{}) || all[2].Why == "" {
		t.Errorf("%+v", all)
	}
	for _, c := range []struct {
		claim  Claim
		median float64
		n      int
		why    string
	}{
		{Claim{Arm: "mao", Metric: LocalRatio}, 0.5, 3, ""},            // its own figure
		{Claim{Arm: "mao", Metric: Latency, Service: "web"}, 1, 3, ""}, // 0.9, 1, 2.4
		{Claim{Arm: "mao", Metric: "binds"}, 0, 3, ""},                 // 0 is a count
		{Claim{Arm: "mao", Metric: Latency, Service: "batch"}, 0, 0, "this result has no such figure"},
		{Claim{Arm: "mao", Metric: "binds", Service: "web"}, 0, 0, "this result has no such figure"},
		{Claim{Arm: "mao", Metric: "joy"}, 0, 0, "this result has no such figure"},
		{Claim{Arm: "mao", Against: "none", Metric: "refused"}, 0, 0, "there is nothing to compare with"}, // 0 of 0
		{Claim{Arm: "mao", Against: "mao", Metric: Latency}, 0, 0, "the arm is compared with itself"},
		{Claim{Arm: "x", Metric: Latency}, 0, 0, `no arm of this result is called "x"`},
		{Claim{Arm: "mao", Against: "x", Metric: Latency}, 0, 0, `no arm of this result is called "x"`},
	} {
		r.Paper = []Claim{c.claim}
		if j := Judge(r)[0]; !near(j.Ours.Median, c.median) || j.Ours.N != c.n || j.Why != c.why || j.Claim != c.claim {
			t.Errorf("%+v, want %g of %d, %s", j, c.median, c.n, c.why)
		}
	}
}

// A service that starved has a throughput and no other figure; impossible ratios are no
// figures.
func TestMetricOfTheStarved(t *testing.T) {
	run := Run{Seed: 1, Services: []Service{{Name: "web", Asked: 5, LocalRatio: 0}}}
	for _, m := range Metrics() {
		if v, ok := m.Value(run, "web"); ok != (m.Name == Throughput) || v != 0 {
			t.Errorf("%s: %g %v", m.Name, v, ok)
		}
		if _, ok := m.Value(run, "ads"); ok {
			t.Errorf("%s of a service that is not there", m.Name)
		}
		if v, ok := m.Value(run, ""); ok != (m.run != nil) || v != 0 {
			t.Errorf("%s of the run: %g %v", m.Name, v, ok)
		}
	}
	fed := Run{Seed: 1, Services: []Service{{Name: "web", Ops: 5}}}
	m, _ := MetricOf(Throughput)
	if s := m.Against(Outcome{Runs: []Run{run}}, Outcome{Runs: []Run{fed}}, "web"); s != (Spread{N: 1}) {
		t.Errorf("%+v", s)
	}
	if s := m.Against(Outcome{Runs: []Run{fed}}, Outcome{Runs: []Run{run}}, "web"); s.N != 0 {
		t.Errorf("%+v", s)
	}
	fed.Services[0].Ops, run.Services[0].Ops = math.MaxFloat64, math.SmallestNonzeroFloat64
	if s := m.Against(Outcome{Runs: []Run{fed}}, Outcome{Runs: []Run{run}}, "web"); s.N != 0 {
		t.Errorf("%+v", s)
	}
}

// An unknown value is left out of the wire form, and 0 is not.
func TestClaimOnTheWire(t *testing.T) {
	r := fakeResult()
	r.Paper = []Claim{{Figure: "f", Arm: "mao", Metric: Latency}, {Figure: "f", Arm: "mao", Metric: LocalRatio, Value: unit.Some(0.0)}}
	text := string(encode(t, r))
	if strings.Count(text, `"value":`) != 1 || !strings.Contains(text, `"metric":"local_ratio","value":0,`) {
		t.Error(text)
	}
	back, err := Decode([]byte(text))
	if err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("%v %+v", err, back.Paper)
	}
}

func TestRoundTrip(t *testing.T) {
	r := fakeResult()
	back, err := Decode(encode(t, r))
	if err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("%v\n%+v\n%+v", err, r, back)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*Result)
		why    string
	}{
		{func(r *Result) { r.Schema = 2 }, "newer"},
		{func(r *Result) { r.How = "measured" }, "modelled"},
		{func(r *Result) { r.Digest = "" }, "SHA-256"},
		{func(r *Result) { r.Against = "x" }, "no such arm"},
		{func(r *Result) { r.Arms[1].Name = "none" }, "no other has"},
		{func(r *Result) { r.Arms[1].Runs = r.Arms[1].Runs[1:] }, "2 runs for 3 seeds"},
		{func(r *Result) { r.Arms[1].Runs[0].Seed = 9 }, "seed 9"},
		{func(r *Result) { r.Seeds[1] = 1 }, "twice"},
		{func(r *Result) { r.Arms[0].Runs[0].LocalRatio = 1.5 }, "0 to 1"},
		{func(r *Result) { r.Arms[0].Runs[0].Services[1].Name = "batch" }, "ascending"},
		{func(r *Result) { r.Arms[0].Runs[0].Services[1].LatencyS = -1 }, "not negative"},
		{func(r *Result) { r.Arms[0].Runs[0].Series[1].Hour = 0 }, "ascending hours"},
		{func(r *Result) { r.Arms[0].Runs[0].Series = make([]Sample, MaxSamples+1) }, "samples"},
		{func(r *Result) { r.Arms[0].Runs[0].Binds = -1 }, "negative"},
		{func(r *Result) { r.Paper[1].Metric = "joy" }, `paper_claims[1].metric: there is no "joy"`},
		{func(r *Result) { r.Paper[0].Arm = "x" }, `paper_claims[0].arm: there is no arm "x"`},
		{func(r *Result) { r.Paper[0].Against = "x" }, `paper_claims[0].against: there is no arm "x"`},
		{func(r *Result) { r.Paper[0].Against = "" }, "paper_claims[0].value: it is -0.12"},
	} {
		r := fakeResult()
		c.change(&r)
		if err := r.Validate(); c.why != "newer" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%v, want %s", err, c.why)
		}
		if _, err := Encode(r); err == nil {
			t.Errorf("%s: it was written", c.why)
		}
	}
	good := string(encode(t, fakeResult()))
	for _, text := range []string{"", "{}", "null", good + "x", good[:len(good)-1], strings.Replace(good, `"how"`, `"who"`, 1)} {
		if r, err := Decode([]byte(text)); err == nil || !reflect.DeepEqual(r, Result{}) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	if _, err := Decode([]byte(strings.Replace(good, `"schema":1`, `"schema":9,"x":1`, 1))); !errors.Is(err, schema.ErrNewer) {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	data, err := Encode(fakeResult())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			if !reflect.DeepEqual(r, Result{}) {
				t.Errorf("an error, and yet %+v", r)
			}
			return
		}
		again, err := Encode(r)
		if err != nil {
			t.Fatalf("read, but not to be written: %v", err)
		}
		if back, err := Decode(again); err != nil || !reflect.DeepEqual(r, back) {
			t.Errorf("%v", err)
		}
		Compare(r)
		Judge(r)
	})
}

var exampleOnce struct {
	sync.Once
	r Result
}

// example is the result of two-services.yaml; callers must not change it.
func example(t *testing.T) Result {
	t.Helper()
	exampleOnce.Do(func() { exampleOnce.r = runAll(t, loadFile(t, "two-services.yaml"), 2) })
	return exampleOnce.r
}

// All arms of a seed see the same demand: where requests do not wait for answers, it is the
// same to the bit; with another seed it is not.
func TestSameDemand(t *testing.T) {
	asked := map[uint64]map[string]float64{}
	compared := 0
	r := example(t)
	for _, a := range r.Arms {
		for _, run := range a.Runs {
			for _, service := range run.Services {
				if service.LatencyS == 0 { // a closed loop requests as fast as it is answered
					continue
				}
				if asked[run.Seed] == nil {
					asked[run.Seed] = map[string]float64{}
				}
				before, seen := asked[run.Seed][service.Name]
				if seen && before != service.Asked {
					t.Errorf("%s, seed %d: %s is asked for %v, elsewhere %v", a.Name, run.Seed, service.Name, service.Asked, before)
				}
				asked[run.Seed][service.Name] = service.Asked
				compared++
			}
		}
	}
	if compared < 2*len(r.Arms) || asked[1]["feed"] == asked[2]["feed"] {
		t.Errorf("%d compared; %v", compared, asked)
	}
}

// The figures of the example, and their digest: examine any change of them.
func TestGolden(t *testing.T) {
	r := example(t)
	sum := sha256.Sum256(encode(t, r))
	out := "modelled figures of sim/scenarios/two-services.yaml\n"
	for _, a := range r.Arms {
		for _, run := range a.Runs {
			out += fmt.Sprintf("%-15s seed %d: local %.4f, unbound %.3f, %.1f CPU s, %d binds, %d refused\n", a.Name, run.Seed, run.LocalRatio, run.UnbindRatio, run.CPUSeconds, run.Binds, run.Refused)
			for _, s := range run.Services {
				out += fmt.Sprintf("  %-8s %.0f ops, %.4g s, %.4g s/op, local %.4f\n", s.Name, s.Ops, s.LatencyS, s.CPUPerOp, s.LocalRatio)
			}
		}
	}
	out += "sha256 " + hex.EncodeToString(sum[:]) + "\n"
	path := filepath.Join("testdata", "two-services.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out != string(want) {
		t.Errorf("the figures changed (go test -update, and look at the difference):\n%s", out)
	}
}

// The example shows what it is for: MAO and numad bring memory home, hand does best.
func TestExampleMakesSense(t *testing.T) {
	r := example(t)
	local := map[string]float64{}
	latency := map[string]float64{}
	for _, a := range r.Arms {
		all, _ := MetricOf(LocalRatio)
		wait, _ := MetricOf(Latency)
		local[a.Name] = all.Over(a, "search").Median
		latency[a.Name] = wait.Over(a, "search").Median
	}
	if !(local["interleave"] < 0.3 && local["none"] < 0.5 && local["mao-b"] > 0.95 && local["numad"] > 0.9 && local["hand"] > 0.95) {
		t.Errorf("local ratios of search: %v", local)
	}
	if !(latency["hand"] <= 1.02*latency["mao-b"] && latency["mao-b"] < 0.7*latency["none"]) {
		t.Errorf("latencies of search: %v", latency)
	}
}

// Ctrl-C ends a run soon, with the context's error and no result.
func TestCancelled(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	ctx, cancel := context.WithCancel(context.Background())
	rounds := 0
	r, err := s.RunAll(ctx, 1, func(float64) {
		if rounds++; rounds == 5 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || rounds > 6 || !reflect.DeepEqual(r, Result{}) {
		t.Errorf("%v after %d periods", err, rounds)
	}
}

func TestProgressAscends(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	s.Seeds, s.Arms = s.Seeds[:1], s.Arms[:2]
	last := 0.0
	if _, err := s.RunAll(context.Background(), 2, func(share float64) {
		if share < last {
			t.Errorf("%g after %g", share, last)
		}
		last = share
	}); err != nil || !(last > 1-1e-9) {
		t.Errorf("%v; %g at the end", err, last)
	}
}

// The warm-up is left out: in a run that is warm-up except for one period, only that period
// counts.
func TestWarmupIsLeftOut(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	s.Warmup = s.Lasts - s.Period
	a, _ := s.arm("mao-b")
	run, err := s.Run(context.Background(), a, 1, nil)
	if err != nil || len(run.Series) != 1 || s.measures() != s.Period || run.CPUSeconds > s.Period.Seconds()*9 || run.CPUSeconds == 0 {
		t.Errorf("%v %+v", err, run)
	}
}

// What was done is counted from the start: most binds happen in the warm-up, and their cost
// is not hidden there.
func TestCountsAreOfTheWholeRun(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	a, _ := s.arm("mao-b")
	var counts []Run
	for _, warm := range []time.Duration{0, s.Lasts - s.Period} {
		s.Warmup = warm
		run, err := s.Run(context.Background(), a, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, Run{Binds: run.Binds, Unbinds: run.Unbinds, Refused: run.Refused, MovedB: run.MovedB})
	}
	if counts[0].Binds == 0 || counts[0].MovedB == 0 || !reflect.DeepEqual(counts[0], counts[1]) {
		t.Errorf("%+v", counts)
	}
}

// An arm that drops the requests of the slow service gets no better mean latency for it:
// the comparison is weighted by the other arm's operations.
func TestAllServicesHaveTheSameMix(t *testing.T) {
	base := Run{Seed: 1, Services: []Service{{Name: "fast", Ops: 100, LatencyS: 1}, {Name: "slow", Ops: 100, LatencyS: 9}}}
	drops := Run{Seed: 1, Services: []Service{{Name: "fast", Ops: 100, LatencyS: 1}, {Name: "slow", Ops: 1, Dropped: 99, LatencyS: 9}}}
	none := Run{Seed: 1, Services: []Service{{Name: "fast", Ops: 100, LatencyS: 2}, {Name: "slow", Dropped: 100}}}
	m, _ := MetricOf(Latency)
	for _, c := range []struct {
		run  Run
		want float64
	}{{base, 1}, {drops, 1}, {none, 2}} {
		if s := m.Against(Outcome{Runs: []Run{c.run}}, Outcome{Runs: []Run{base}}, ""); s.N != 1 || !near(s.Median, c.want) {
			t.Errorf("%+v, want %g", s, c.want)
		}
	}
	if v, _ := m.Value(drops, ""); !(v < 1.1) { // its own mean is weighted by its own operations
		t.Errorf("%g", v)
	}
}

func TestKeep(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	one, err := s.Keep("hand", []uint64{7})
	if err != nil || len(one.Arms) != 1 || one.Against != "hand" || one.Seeds[0] != 7 {
		t.Errorf("%v %+v", err, one.Arms)
	}
	if _, err := s.Keep("foot", nil); err == nil || !strings.Contains(err.Error(), "hand") {
		t.Errorf("error %v", err)
	}
	if _, err := s.Keep("", []uint64{1, 1}); err == nil {
		t.Error("a seed twice was taken")
	}
}

// A claim is kept with the arms that it names.
func TestKeepClaims(t *testing.T) {
	s := loadFile(t, "mao-locality.yaml")
	s.Paper = append(s.Paper, Claim{Arm: "balancing", Against: "none", Metric: Latency})
	one, err := s.Keep("balancing", nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Scenario = one
	if r := s.result(); len(r.Paper) != 1 || !r.Paper[0].Absolute() || r.Paper[0].Value != unit.Some(0.5776) {
		t.Errorf("%+v", r.Paper)
	}
}

// A workload's time by what it did: shares are of its own time, sums add up.
func TestBook(t *testing.T) {
	s := loadFile(t, "two-services.yaml")
	b := newBook(&s, 1)
	loop, err := s.loop(s.Arms[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	truth := []sim.Truth{
		{Workload: "/search-1", Service: "search", Seconds: 10, Asked: 30, Ops: 30, CPUSeconds: 3, Local: 1, Remote: 3, Latency: 1, P99: 2, Cycles: 10, Instructions: 5, BoundSeconds: 5},
		{Workload: "/search-2", Service: "search", Seconds: 10, Asked: 12, Ops: 10, Dropped: 2, CPUSeconds: 1, Local: 4, Latency: 5, P99: 6, Cycles: 10, Instructions: 15},
	}
	b.addPeriod(s.Period, truth, loop)
	r := b.run(loop.Counts)
	want := Service{Name: "search", Replicas: 2, Ops: 40, Asked: 42, Dropped: 2, LatencyS: 2, P99S: 3, CPUPerOp: 0.1, LocalRatio: 5. / 8, IPC: 1}
	if r.Services[0] != want || r.Workloads[0].BoundShare != 0.5 || r.UnbindRatio != 1 || r.LocalRatio != 5./8 || r.Series[0].LatencyS != 2 || !near(r.Series[0].Load, 4./90) {
		t.Errorf("%+v", r)
	}
}
