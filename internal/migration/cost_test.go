// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// twoNodes has distance 20 and no HMAT.
func twoNodes() machine.Machine {
	some := unit.Some[int]
	return machine.Machine{
		Nodes:     []machine.Node{{ID: 0}, {ID: 1}},
		Distances: [][]unit.Opt[int]{{some(10), some(20)}, {some(20), some(10)}},
	}
}

// measured is a profile as of a Skylake-SP: MAO's latencies and its 0.65 s/GB from
// node 0 to 1, half of that on the way back, and huge pages at a tenth.
func measured() *profile.Profile {
	figure := func(v float64) profile.Figure { return profile.FigureOf([]float64{v}) }
	pair := func(from, to int, v float64) profile.PairFigure {
		return profile.PairFigure{From: from, To: to, Figure: figure(v)}
	}
	move := func(from, to int, size unit.Bytes, perByte float64) profile.Migration {
		return profile.Migration{From: from, To: to, PageSize: size, PerPage: figure(perByte * float64(size) * 1e9), Rate: figure(1 / perByte)}
	}
	return &profile.Profile{
		How:       unit.HowMeasured,
		Latency:   []profile.PairFigure{pair(0, 0, 80), pair(0, 1, 138), pair(1, 0, 138), pair(1, 1, 80)},
		Bandwidth: []profile.PairFigure{pair(0, 0, 100e9), pair(1, 1, 50e9)},
		Migration: []profile.Migration{
			move(0, 1, 4*unit.KiB, 0.65e-9), move(1, 0, 4*unit.KiB, 0.325e-9), move(0, 1, 2*unit.MiB, 0.065e-9),
		},
	}
}

func TestDecisionPerByte(t *testing.T) {
	for _, c := range []struct {
		about    string
		p        *profile.Profile
		from, to int
		huge     bool
		want     float64
		how      unit.Source
		source   string
	}{
		{"no profile", nil, 0, 1, false, 0.65e-9, unit.HowEstimated, "MAO"},
		{"no profile, huge", nil, 0, 1, true, 0.65e-9, unit.HowEstimated, "MAO"},
		{"its pair", measured(), 1, 0, false, 0.325e-9, unit.HowMeasured, "1 to 0, pages of 4 KiB"},
		{"its pair, huge", measured(), 0, 1, true, 0.065e-9, unit.HowMeasured, "pages of 2 MiB"},
		{"another pair, huge", measured(), 1, 0, true, 0.065e-9, unit.HowEstimated, "mean of 1 other pair"},
		{"other pairs", measured(), 0, 7, false, 0.4875e-9, unit.HowEstimated, "mean of 2 other pairs"},
		{"nothing in it", &profile.Profile{How: unit.HowMeasured}, 0, 1, false, 0.65e-9, unit.HowEstimated, "MAO"},
		{"no huge pages in it", &profile.Profile{How: unit.HowModelled, Migration: measured().Migration[:1]}, 0, 1, true, 0.65e-9, unit.HowEstimated, "as of small"},
	} {
		v := CostsOf(c.p, machine.Machine{}).PerByte(c.from, c.to, c.huge)
		if math.Abs(v.Or(0)/c.want-1) > 1e-9 || v.How != c.how || !strings.Contains(v.From, c.source) {
			t.Errorf("%s: %v, want %g %v %q", c.about, v, c.want, c.how, c.source)
		}
	}
}

func TestDecisionLatency(t *testing.T) {
	hmat := twoNodes()
	hmat.Nodes[0].Access = []machine.Access{{Initiators: set.FromNodes(0), ReadLatency: unit.Some(100), ReadBandwidth: unit.Some(unit.Bytes(7e9))}}
	full := twoNodes()
	for i := range full.Nodes {
		full.Nodes[i].Access = []machine.Access{{Initiators: set.FromNodes(0), ReadLatency: unit.Some(100 + 90*i)}}
	}
	modelled := measured()
	modelled.How = unit.HowModelled
	for _, c := range []struct {
		about string
		c     Costs
		ns    float64 // of node 0's CPUs, page from 1 to 0
		how   unit.Source
		from  string
	}{
		{"profile", CostsOf(measured(), twoNodes()), 58, unit.HowMeasured, "profile"},
		{"profile of the lab", CostsOf(modelled, twoNodes()), 58, unit.HowModelled, "profile"},
		{"not in the profile", CostsOf(&profile.Profile{}, twoNodes()), 48, unit.HowEstimated, "80 ns at 10"},
		{"distances", CostsOf(nil, twoNodes()), 48, unit.HowEstimated, "SLIT distance, 80 ns at 10"},
		{"distances, HMAT of the own node", CostsOf(nil, hmat), 60, unit.HowEstimated, "SLIT distance × firmware"},
		{"HMAT", CostsOf(nil, full), 90, unit.HowEstimated, "firmware (HMAT)"},
		{"nothing", Costs{}, math.NaN(), unit.HowUnknown, "no latency or distance"},
	} {
		v := c.c.LatencyDifference(0, 1, 0)
		if math.Abs(v.Or(math.NaN())*1e9-c.ns) > 1e-6 || v.Known() == math.IsNaN(c.ns) || v.How != c.how || !strings.Contains(v.From, c.from) {
			t.Errorf("%s: %v, want %g ns %v", c.about, v, c.ns, c.how)
		}
	}
	if v := CostsOf(measured(), twoNodes()).LatencyDifference(0, 0, 1); math.Abs(v.Or(0)*1e9+58) > 1e-6 {
		t.Errorf("to a farther node: %v, want -58 ns", v)
	}
	if v := CostsOf(nil, hmat).Bandwidth(0); v.Or(0) != 7e9 || v.How != unit.HowEstimated {
		t.Errorf("bandwidth of HMAT: %v", v)
	}
}

// Averages over several nodes: by bytes where pages come from, alike where they go.
func TestDecisionDifference(t *testing.T) {
	d := func(row ...int) (r []unit.Opt[int]) {
		for _, v := range row {
			r = append(r, unit.Some(v))
		}
		return r
	}
	m := machine.Machine{Nodes: []machine.Node{{ID: 0}, {ID: 1}, {ID: 2}}, Distances: [][]unit.Opt[int]{d(10, 20, 30), d(20, 10, 20), d(30, 20, 10)}}
	c := CostsOf(nil, m)
	one, two := set.FromNodes(0), set.FromNodes(0, 1)
	from := []NodeBytes{{1, 3 * unit.MiB}, {2, unit.MiB}}
	if v := c.Difference(one, from, one); math.Abs(v.Or(0)*1e9-60) > 1e-6 { // 0.6 × (3×80 + 1×160) / 4
		t.Errorf("from two nodes: %v", v)
	}
	// CPUs of 0 and 1, a page of 2 to either: 0.6 × ((240+160)/2 - (80+160+160+80)/4) = 48
	if v := c.Difference(two, from[1:], two); math.Abs(v.Or(0)*1e9-48) > 1e-6 {
		t.Errorf("to two nodes: %v", v)
	}
	if v := c.Difference(one, nil, one); v.Known() {
		t.Errorf("of nothing: %v", v)
	}
	if v := CostsOf(measured(), m).Price([]NodeBytes{{0, unit.MiB}, {1, unit.MiB}}, set.FromNodes(1), false); v.How != unit.HowEstimated || !strings.Contains(v.From, "and 1 more") {
		t.Errorf("a measured and an estimated price: %v", v)
	}
}

// MAO, §1: 2,048 MB took 1.272 s, 2,560 MB 1.583 s. Its mean of 2.5 GB remote
// memory is 1.6 s of a core.
func TestDecisionEstimateMAO(t *testing.T) {
	for mb, want := range map[int]float64{16: 0.0079, 51: 0.0339, 128: 0.083, 512: 0.323, 1024: 0.645, 2048: 1.272, 2560: 1.583} {
		var c Census
		c.Add(Anon, 0, unit.Bytes(mb)*1e6)
		e := EstimateOf(c, nil, machine.Machine{}, set.NodeSet{}, set.FromNodes(1), Freeze, 0)
		if got := e.CPUSeconds.Or(0); math.Abs(got/want-1) > 0.35 || mb > 64 && math.Abs(got/want-1) > 0.06 {
			t.Errorf("%d MB: %.4f CPU-s, MAO measured %.4f", mb, got, want)
		}
	}
}

func TestDecisionEstimate(t *testing.T) {
	var c Census
	c.Add(Anon, 0, 800e6)
	c.Add(THP, 0, 1000e6)
	c.Add(Cache, 0, 200e6)
	c.Add(Anon, 1, 5e9) // is there already
	c.Add(Anon, 2, 1e9) // not asked for
	to, from := set.FromNodes(1), set.FromNodes(0)
	e := EstimateOf(c, measured(), machine.Machine{}, from, to, Live, 0)
	fast := 1e9*0.65e-9 + 1e9*0.065e-9
	if e.Bytes != 2e9 || math.Abs(e.Seconds.Or(0)-fast) > 1e-9 || math.Abs(e.CPUSeconds.Or(0)-fast) > 1e-9 || e.Seconds.How != unit.HowMeasured {
		t.Errorf("as fast as it goes: %+v", e)
	}
	if want := 2e9 / fast / 50e9; math.Abs(float64(e.BandwidthShare.Or(0))/want-1) > 1e-9 || e.BandwidthShare.How != unit.HowMeasured {
		t.Errorf("share %v, want %g of node 1, the tightest", e.BandwidthShare, want)
	}
	e = EstimateOf(c, measured(), machine.Machine{}, from, to, Live, 200e6)
	if math.Abs(e.Seconds.Or(0)-10) > 1e-9 || math.Abs(float64(e.BandwidthShare.Or(0))-0.004) > 1e-9 || math.Abs(e.CPUSeconds.Or(0)-fast) > 1e-9 {
		t.Errorf("at 200 MB/s: %+v", e)
	}
	if e = EstimateOf(c, measured(), machine.Machine{}, from, to, Live, unit.TiB); math.Abs(e.Seconds.Or(0)-fast) > 1e-9 {
		t.Errorf("a rate beyond what it can do: %+v", e.Seconds)
	}
	if e = EstimateOf(c, measured(), machine.Machine{}, from, to, Freeze, 1); math.Abs(e.Seconds.Or(0)-fast) > 1e-9 || e.Seconds.How != unit.HowEstimated || !strings.Contains(e.Seconds.From, "workers") {
		t.Errorf("frozen: %+v", e.Seconds)
	}
	if e = EstimateOf(c, measured(), machine.Machine{}, from, to, Hot, 0); e.Seconds.How != unit.HowEstimated || !strings.Contains(e.Seconds.From, "at most") {
		t.Errorf("hot: %+v", e.Seconds)
	}
	if e = EstimateOf(c, nil, machine.Machine{}, from, to, Live, 0); e.BandwidthShare.Known() || !e.Seconds.Known() || e.Seconds.How != unit.HowEstimated {
		t.Errorf("without a profile: %+v", e)
	}
	hmat := twoNodes()
	for i := range hmat.Nodes {
		hmat.Nodes[i].Access = []machine.Access{{Initiators: set.FromNodes(i), ReadBandwidth: unit.Some(unit.Bytes(8e9))}}
	}
	if e = EstimateOf(c, nil, hmat, from, to, Live, 200e6); math.Abs(float64(e.BandwidthShare.Or(0))-0.025) > 1e-9 || e.BandwidthShare.From != "firmware (HMAT)" {
		t.Errorf("with HMAT: %+v", e.BandwidthShare)
	}
	if e = EstimateOf(c, nil, machine.Machine{}, set.FromNodes(3), to, Live, 0); e.Bytes != 0 || e.Seconds.Or(1) != 0 || e.CPUSeconds.Or(1) != 0 {
		t.Errorf("nothing to do: %+v", e)
	}
}

// The sum with real numbers: MAO's mean workload (2.5 GB remote, 80 against 138 ns,
// 0.65 s/GB), and around where it turns.
func TestDecisionPays(t *testing.T) {
	rate := func(v float64) unit.Value[float64] { return unit.Measured(v, "perf r01d3") }
	mao := Stake{
		Bytes: 2.5e9, RemoteRate: rate(1.2e6), Difference: unit.Estimated(58e-9, "SLIT"), Horizon: 10 * time.Minute,
		PerByte: unit.Estimated(0.65e-9, "0.65 s/GB (MAO)"),
	}
	with := func(change func(*Stake)) Stake { s := mao; change(&s); return s }
	for about, c := range map[string]struct {
		s          Stake
		want       Answer
		gain, cost float64 // -1: unknown
	}{
		"MAO's mean workload": {mao, PaysYes, 41.76, 1.625},
		"for 20 seconds":      {with(func(s *Stake) { s.Horizon = 20 * time.Second }), PaysNo, 1.392, 1.625},
		"for 24 seconds":      {with(func(s *Stake) { s.Horizon = 24 * time.Second }), PaysYes, 1.6704, 1.625},
		"hardly read":         {with(func(s *Stake) { s.RemoteRate = rate(1e4) }), PaysNo, 0.348, 1.625},
		"not read at all":     {with(func(s *Stake) { s.RemoteRate = rate(0) }), PaysNo, 0, 1.625},
		"ratio 20":            {with(func(s *Stake) { s.Ratio = 20 }), PaysYes, 41.76, 1.625},
		"ratio 30":            {with(func(s *Stake) { s.Ratio = 30 }), PaysNo, 41.76, 1.625},
		"there and back":      {with(func(s *Stake) { s.Horizon = 40 * time.Second; s.Undone = s.Bytes }), PaysNo, 2.784, 3.25},
		"away":                {with(func(s *Stake) { s.Difference = unit.Measured(-58e-9, "profile") }), PaysNo, -41.76, 1.625},
		"away, loads unknown": {with(func(s *Stake) {
			s.Difference = unit.Measured(-58e-9, "")
			s.RemoteRate = unit.UnknownValue[float64]("x")
		}), PaysNo, -1, 1.625},
		"loads unknown":         {with(func(s *Stake) { s.RemoteRate = unit.UnknownValue[float64]("no event table") }), PaysCannotTell, -1, 1.625},
		"latency unknown":       {with(func(s *Stake) { s.Difference = unit.UnknownValue[float64]("no distance") }), PaysCannotTell, -1, 1.625},
		"price unknown":         {with(func(s *Stake) { s.PerByte = unit.UnknownValue[float64]("no price") }), PaysCannotTell, 41.76, -1},
		"51 MB, MAO's smallest": {with(func(s *Stake) { s.Bytes = 51e6; s.RemoteRate = rate(1000) }), PaysYes, 0.0348, 0.03315},
	} {
		v := Pays(c.s)
		same := func(v unit.Value[float64], want float64) bool {
			got, ok := v.Get()
			return !ok && want == -1 || ok && math.Abs(got-want) < 1e-9
		}
		if v.Answer != c.want || !same(v.Gain, c.gain) || !same(v.Cost, c.cost) {
			t.Errorf("%s: %s, gain %v, cost %v; want %s, %g, %g", about, v.Answer, v.Gain, v.Cost, c.want, c.gain, c.cost)
		}
		var back Verdict
		if text, err := json.Marshal(v); err != nil || json.Unmarshal(text, &back) != nil || !reflect.DeepEqual(back, v) {
			t.Errorf("%s: through JSON it is %+v, was %+v", about, back, v)
		}
	}
}

func TestSentences(t *testing.T) {
	s := Stake{
		Bytes: 512 * unit.MiB, RemoteRate: unit.Measured(1.2e6, "perf r01d3"), Difference: unit.Measured(58e-9, "profile: latency"),
		Horizon: 10 * time.Minute, PerByte: unit.Estimated(0.65e-9, "0.65 s/GB (MAO)"),
	}
	few, back, unknown, factor := s, s, s, s
	factor.Ratio = 200
	few.RemoteRate, few.Bytes = unit.Measured(1e4, "perf"), 3277*unit.MiB
	back.Undone = 100 * unit.MiB
	unknown.RemoteRate = unit.UnknownValue[float64]("no event table")
	for _, c := range []struct{ got, want string }{
		{words.Sentence(Pays(s).Sum()), "its remote memory: 512 MiB; 1,200,000 remote loads/s × 58 ns × 600 s = 41.8 CPU-s saved, 0.349 CPU-s cost"},
		{words.Sentence(Pays(few).Short()), "moving 3.2 GiB would cost 2.23 CPU-s and save 0.348 in 10 min"},
		{words.Sentence(Pays(back).Sum()), "its remote memory: 512 MiB; 1,200,000 remote loads/s × 58 ns × 600 s = 41.8 CPU-s saved, 0.417 CPU-s cost (with that of 100 MiB that were moved here before)"},
		{words.Sentence(Pays(factor).Short()), "moving 512 MiB would cost 0.349 CPU-s and save 41.8 in 10 min (pay_ratio 200)"},
		{words.Sentence(Pays(unknown).Sum()), "its remote memory: 512 MiB; what it would save is unknown (no event table), 0.349 CPU-s cost"},
		{words.Sentence(Pays(unknown).Short()), "it is unknown whether moving 512 MiB pays: no event table"},
		{words.Full(action.Reason{Rule: "test", Numbers: Pays(s).Numbers}), "test: test [remote_bytes 512 MiB (measured); remote_loads 1,200,000 per second (measured); saved_per_load 58 ns (measured); horizon 10 min (estimated); cost_per_byte 0.65 ns of CPU time (estimated); move_cost 349 ms of CPU time (estimated); move_gain 41.8 s of CPU time (measured, limit 349 ms of CPU time)]"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
}

// What more of a good thing does: more loads, a larger difference, a longer horizon
// never turn a yes into another answer; more bytes and a higher ratio never a no.
func TestPaysIsMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	seen := map[Answer]int{}
	for range 20000 {
		s := Stake{
			Bytes: unit.Bytes(r.Int64N(1 << 33)), RemoteRate: unit.Measured(r.ExpFloat64()*1e5, ""), Difference: unit.Measured((r.Float64()-0.2)*1e-7, ""),
			Horizon: time.Duration(1+r.IntN(600)) * time.Second, PerByte: unit.Measured(r.Float64()*1e-9, ""), Ratio: r.Float64() * 3,
		}
		v := Pays(s)
		seen[v.Answer]++
		better, worse := s, s
		switch r.IntN(4) {
		case 0:
			better.RemoteRate = unit.Measured(s.RemoteRate.Or(0)*2, "")
			worse.Bytes *= 2
		case 1:
			better.Horizon *= 2
			worse.Undone = s.Bytes
		case 2:
			better.PerByte = unit.Measured(s.PerByte.Or(0)/2, "")
			worse.Ratio = max(1, s.Ratio) * 2
		case 3:
			better.Difference = unit.Measured(math.Abs(s.Difference.Or(0))*2, "")
			worse.Difference = unit.Measured(-1e-9, "")
		}
		if v.Answer == PaysYes && Pays(better).Answer != PaysYes {
			t.Fatalf("%+v pays, %+v does not", s, better)
		}
		if v.Answer == PaysNo && Pays(worse).Answer != PaysNo {
			t.Fatalf("%+v does not pay, %+v does", s, worse)
		}
	}
	if seen[PaysYes] < 1000 || seen[PaysNo] < 1000 || seen[PaysCannotTell] > 0 {
		t.Errorf("too one-sided to have tested anything: %v", seen)
	}
}
