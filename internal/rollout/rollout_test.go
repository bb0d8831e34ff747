// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/unit"
)

func plan(n int) Plan {
	p := Usual("shop", nil)
	for i := range n {
		p.Replicas = append(p.Replicas, Replica{fmt.Sprint("host-", i/2), fmt.Sprint("/shop/", i)})
	}
	return p
}

// fleet shows what replicas of different levels show: effect is of the bound ones.
type fleet struct {
	r      *rand.Rand
	effect float64
	change func(bin, i int, v unit.Opt[float64]) unit.Opt[float64]
}

func (f fleet) shown(s State) []unit.Opt[float64] {
	all := make([]unit.Opt[float64], len(s.Plan.Replicas))
	for i, bound := range s.Bound() {
		x := 0.01 * (1 + float64(i%7)/20) * (1 + 0.02*f.r.NormFloat64()) * (1 + 0.3*math.Sin(float64(len(s.Seen))/10))
		if bound {
			x *= 1 + f.effect
		}
		all[i] = unit.Some(x)
		if f.change != nil {
			all[i] = f.change(len(s.Seen), i, all[i])
		}
	}
	return all
}

// run goes on to the end, or for as many bins.
func run(t *testing.T, s State, f fleet, most int) State {
	t.Helper()
	f.r = rand.New(rand.NewPCG(1, 1))
	for range most {
		if s.Ended() {
			break
		}
		s, _ = s.Step(f.shown(s))
	}
	return s
}

func begin(t *testing.T, p Plan) State {
	t.Helper()
	s, err := Begin(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func codes(s State) (all []Code) {
	for _, e := range s.Events {
		all = append(all, e.Code)
	}
	return all
}

// A gain is proven and completed stage by stage, harm is undone, and no gain is undone in the end.
func TestWays(t *testing.T) {
	gain := run(t, begin(t, plan(40)), fleet{effect: -0.15}, 1000)
	if gain.Phase != Done || !gain.Proven || slices.Contains(gain.Bound(), false) {
		t.Errorf("a gain: %v, %v", gain, codes(gain))
	}
	if got := codes(gain); got[0] != Starts || got[len(got)-1] != Complete || !slices.Contains(got, Proven) {
		t.Errorf("a gain: %v", got)
	}
	harm := run(t, begin(t, plan(40)), fleet{effect: 0.15}, 1000)
	if last := harm.Events[len(harm.Events)-1]; harm.Phase != RolledBack || last.Code != Harm || last.Bound != 0 || last.Evidence.AtLeast <= 0 || slices.Contains(harm.Bound(), true) || harm.Stage != 0 {
		t.Errorf("harm: %v, %+v", harm, last)
	}
	none := run(t, begin(t, plan(100)), fleet{}, 1000)
	if none.Phase != RolledBack || none.Proven {
		t.Errorf("no effect: %v, %v", none, codes(none))
	}
	more := plan(40)
	more.LowerIsBetter = false
	if s := run(t, begin(t, more), fleet{effect: 0.15}, 1000); s.Phase != Done {
		t.Errorf("more is better: %v, %v", s, codes(s))
	}
}

// Each of these ends the rollout with its reason, and nothing stays bound.
func TestBrokenIndicators(t *testing.T) {
	after := func(bin int, what func(i int, v unit.Opt[float64]) unit.Opt[float64]) func(int, int, unit.Opt[float64]) unit.Opt[float64] {
		return func(now, i int, v unit.Opt[float64]) unit.Opt[float64] {
			if now < bin {
				return v
			}
			return what(i, v)
		}
	}
	none := func(int, unit.Opt[float64]) unit.Opt[float64] { return unit.None[float64]() }
	for name, c := range map[string]struct {
		change func(int, int, unit.Opt[float64]) unit.Opt[float64]
		want   Code
	}{
		"it stops":         {after(15, none), Silence},
		"it is NaN":        {after(15, func(int, unit.Opt[float64]) unit.Opt[float64] { return unit.OptOf(math.NaN(), true) }), Silence},
		"it is 0":          {after(15, func(int, unit.Opt[float64]) unit.Opt[float64] { return unit.Some(0.0) }), Silence},
		"it is constant":   {after(0, func(int, unit.Opt[float64]) unit.Opt[float64] { return unit.Some(7.0) }), Constant},
		"it is in ms":      {after(15, func(_ int, v unit.Opt[float64]) unit.Opt[float64] { return unit.Some(1000 * v.Or(0)) }), NewUnit},
		"the others ended": {after(15, func(i int, v unit.Opt[float64]) unit.Opt[float64] { return v }), ""},
	} {
		s := begin(t, plan(40))
		if c.want == "" { // all but the bound ones end
			s = run(t, s, fleet{}, 15)
			bound := s.Bound()
			c.change = after(15, func(i int, v unit.Opt[float64]) unit.Opt[float64] {
				if bound[i] {
					return v
				}
				return unit.None[float64]()
			})
			c.want = TooFew
		}
		s = run(t, s, fleet{change: c.change}, 60)
		if got := codes(s); s.Phase != RolledBack || got[len(got)-1] != c.want || slices.Contains(s.Bound(), true) {
			t.Errorf("%s: %v, %v, want %s", name, s, got, c.want)
		}
	}
}

// A pause holds the stage, not the watch; a stop undoes, also what is done.
func TestPauseAndStop(t *testing.T) {
	s := run(t, begin(t, plan(40)), fleet{effect: -0.15}, 13)
	if s.Stage != 0 {
		t.Fatal(s)
	}
	s.Paused = true
	if s = run(t, s, fleet{effect: -0.15}, 300); s.Stage != 0 || s.Phase != Widening {
		t.Errorf("paused: %v", s)
	}
	going := s
	going.Paused = false
	if going = run(t, going, fleet{effect: -0.15}, 200); going.Phase != Done {
		t.Errorf("after a long pause: %v, %v", going, codes(going))
	}
	if again := run(t, s, fleet{effect: 0.5}, 400); again.Phase != RolledBack {
		t.Errorf("harm while it is paused: %v", again)
	}
	done := run(t, begin(t, plan(40)), fleet{effect: -0.15}, 1000)
	undone, events := done.Stop(Veto)
	if undone.Phase != RolledBack || len(events) != 1 || events[0].Code != Veto || slices.Contains(undone.Bound(), true) || done.Phase != Done {
		t.Errorf("a veto: %v, %v", undone, events)
	}
	if _, events := undone.Stop(Operator); events != nil {
		t.Errorf("stopped twice: %v", events)
	}
}

// A state that was written and read goes on as the one that was not, and a step leaves the state
// before it as it was.
func TestStateIsKept(t *testing.T) {
	a := begin(t, plan(40))
	f := fleet{r: rand.New(rand.NewPCG(2, 2)), effect: -0.05}
	for range 100 {
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var b State
		if err := json.Unmarshal(text, &b); err != nil {
			t.Fatal(err)
		}
		shown := f.shown(a)
		next, events := a.Step(shown)
		again, same := b.Step(shown)
		one, _ := json.Marshal(next)
		two, _ := json.Marshal(again)
		if string(one) != string(two) || !reflect.DeepEqual(events, same) {
			t.Fatalf("bin %d: %v and %v", len(a.Seen), events, same)
		}
		if now, _ := json.Marshal(a); string(now) != string(text) {
			t.Fatalf("bin %d: the state before the step was changed", len(a.Seen))
		}
		if a = next; a.Ended() {
			break
		}
	}
	if s, events := a.Step(nil); events != nil || !reflect.DeepEqual(s, a) {
		t.Errorf("a step without replicas: %v", events)
	}
}

// crowd has one host with most of the replicas, which comes last.
func crowd(p *Plan) {
	p.Replicas = nil
	for i := range 60 {
		p.Replicas = append(p.Replicas, Replica{fmt.Sprint("host-", max(0, i-54)), fmt.Sprint("/shop/", i)})
	}
	for p.Seed = 0; p.Replicas[p.Order()[59]].Host != "host-0"; p.Seed++ {
	}
}

func TestCheckPlan(t *testing.T) {
	for want, change := range map[string]func(p *Plan){
		"":                        func(*Plan) {},
		"no name":                 func(p *Plan) { p.Service = "" },
		"on 2 hosts":              func(p *Plan) { p.Replicas = p.Replicas[:4] },
		"want each once":          func(p *Plan) { p.Replicas[3] = p.Replicas[2] },
		"end with 1":              func(p *Plan) { p.Stages = []float64{0.1, 0.5} },
		"ascending":               func(p *Plan) { p.Stages = []float64{0.5, 0.1, 1} },
		"at most 0.75":            func(p *Plan) { p.Stages = []float64{0.1, 0.9, 1} },
		"margin":                  func(p *Plan) { p.Margin = math.NaN() },
		"want 1s to 24h":          func(p *Plan) { p.Bin = time.Millisecond },
		"0 before (2 or more)":    func(p *Plan) { p.Before, p.Silent = 0, 0 },
		"3 to 2 a stage":          func(p *Plan) { p.Longest = 2 },
		"another seed":            crowd,
		"4 silent bins, 3 before": func(p *Plan) { p.Silent, p.Before = 4, 3 },
		"at most 100000 in all":   func(p *Plan) { p.Longest = 1e6 },
	} {
		p := plan(40)
		change(&p)
		if _, err := Begin(p); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

// Hosts are never bound in part, the first stage has two, and every stage but the last leaves some.
func TestStagesAreOfHosts(t *testing.T) {
	for seed := range uint64(50) {
		p := plan(13 + int(seed))
		p.Seed = seed
		order, before := p.Order(), 0
		for stage := range p.Stages {
			n := p.bound(order, stage)
			hosts := map[string]bool{}
			for _, i := range order[:n] {
				hosts[p.Replicas[i].Host] = true
			}
			for _, i := range order[n:] {
				if hosts[p.Replicas[i].Host] {
					t.Fatalf("seed %d, stage %d: %s is bound in part", seed, stage, p.Replicas[i].Host)
				}
			}
			if n < before || len(hosts) < 2 || (n == len(order)) != (stage == len(p.Stages)-1) {
				t.Errorf("seed %d, stage %d: %d of %d", seed, stage, n, len(order))
			}
			before = n
		}
	}
}

// Without an effect, looks after every bin call it harm, or a gain, no more often than the rates say.
func TestRatesHoldUnderPeeking(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const many = 1000
	harm, gain := 0, 0
	for range many {
		var bound, others [20]float64
		worse, better := false, false
		for look := 1; look <= 20; look++ { // means of ever more bins, as a rollout sees them
			for i := range bound {
				bound[i] += (0.05*r.NormFloat64() - bound[i]) / float64(look)
				others[i] += (0.05*r.NormFloat64() - others[i]) / float64(look)
			}
			e, ok := judge(bound[:], others[:], look)
			worse, better = worse || ok && e.AtLeast > 0, better || ok && e.GainOver > 0
		}
		if worse {
			harm++
		}
		if better {
			gain++
		}
	}
	most := func(rate float64) float64 { return rate*many + 3*math.Sqrt(rate*many) }
	if float64(harm) > most(harmRate) || float64(gain) > most(gainRate) {
		t.Errorf("of %d: harm %d times, a gain %d times", many, harm, gain)
	}
	if _, ok := judge([]float64{1}, []float64{1, 2}, 1); ok {
		t.Error("one replica was judged")
	}
	if _, ok := judge([]float64{1, 1}, []float64{2, 2}, 1); ok {
		t.Error("replicas without any variation were judged")
	}
}

// Bound replicas that end more often than others are harm, however well the others look. Replicas that
// end everywhere are not.
func TestLostReplicas(t *testing.T) {
	for _, c := range []struct {
		name  string
		gone  func(i int, bound bool) bool
		phase Phase
		codes []Code
	}{
		{"two of five bound hosts", func(i int, bound bool) bool { return bound && i/2%5 < 2 }, RolledBack, []Code{Lost, NotSafe}},
		{"all but one bound host", func(i int, bound bool) bool { return bound && i/2%5 < 4 }, RolledBack, []Code{Lost, Silence}},
		{"one host in ten, bound or not", func(i int, _ bool) bool { return i/2%10 == 3 }, Done, []Code{Complete}},
	} {
		s := begin(t, plan(100))
		f := fleet{effect: -0.15}
		f.change = func(bin, i int, v unit.Opt[float64]) unit.Opt[float64] {
			if bin > 14 && c.gone(i, s.BoundAt[i] >= 0) {
				return unit.None[float64]()
			}
			return v
		}
		f.r = rand.New(rand.NewPCG(1, 1))
		for range 1000 {
			s, _ = s.Step(f.shown(s))
		}
		if last := s.Events[len(s.Events)-1].Code; s.Phase != c.phase || !slices.Contains(c.codes, last) {
			t.Errorf("%s: %s, %v", c.name, s.Phase, codes(s))
		}
	}
}

// A stage that is held is not widened, and ends.
func TestHeld(t *testing.T) {
	s := run(t, begin(t, plan(40)), fleet{effect: -0.15}, 13)
	s.Held = true
	s = run(t, s, fleet{effect: -0.15}, 1000)
	if last := s.Events[len(s.Events)-1]; last.Code != NotBound || s.Phase != RolledBack || s.Seen != nil {
		t.Errorf("%v", codes(s))
	}
}

// A gain that was proven in an early stage, and is not there in the last that can be compared, is none.
func TestGainThatGoes(t *testing.T) {
	s := begin(t, plan(60))
	f := fleet{effect: -0.1, r: rand.New(rand.NewPCG(1, 1))}
	for range 1000 {
		if s.Stage >= 1 {
			f.effect = 0.01
		}
		s, _ = s.Step(f.shown(s))
	}
	if s.Phase != RolledBack || !slices.Contains(codes(s), Proven) {
		t.Errorf("%s: %v", s.Phase, codes(s))
	}
}

// Replicas whose hosts refuse to bind them show no effect. They are left out, others take their place, and
// a gain is completed that would not be told from harm for a day. One that was bound for a moment counts.
func TestHostsThatRefuse(t *testing.T) {
	p := plan(24)
	order := p.Order()
	refuses := map[int]bool{order[0]: true, order[1]: true} // both of the first host
	seen := func(s State) []float64 {
		all := make([]float64, len(s.BoundAt))
		for i, on := range s.Bound() {
			if on && !refuses[i] {
				all[i] = 1
			}
		}
		return all
	}
	f := fleet{r: rand.New(rand.NewPCG(1, 1)), effect: -0.15, change: func(_, i int, v unit.Opt[float64]) unit.Opt[float64] { return v }}
	shown := func(s State) []unit.Opt[float64] {
		all := f.shown(s)
		for i := range refuses {
			if s.BoundAt[i] >= 0 {
				all[i] = unit.Some(all[i].Or(0) / 0.85)
			}
		}
		return all
	}
	s := begin(t, p)
	for range 200 {
		if s.Ended() {
			break
		}
		next, observed, wanted := s.Observe(seen(s))
		if s.BoundCount() == len(p.Replicas) && wanted == len(p.Replicas) && observed != len(p.Replicas)-2 {
			t.Fatalf("%d of %d were seen bound", observed, wanted)
		}
		s, _ = next.Step(shown(s))
	}
	if want := []Code{Starts, Replaces, Proven, Widens, Widens, Widens, Complete}; s.Phase != Done || !slices.Equal(codes(s), want) {
		t.Errorf("%s after %d bins: %v, want %v", s.Phase, len(s.Seen), codes(s), want)
	}
	s = begin(t, p)
	for s.Phase != Widening {
		s, _ = s.Step(shown(s))
	}
	none := make([]float64, len(p.Replicas))
	if s, _, _ = s.Observe(none); s.apart(order[0]) {
		t.Error("a replica is left out before its host had the time to bind it")
	}
	s, _, _ = s.Watch(shown(s)).Observe(none)
	if !s.apart(order[0]) {
		t.Error("a replica that was never bound is compared")
	}
	none[order[0]] = 0.01
	if s, _, _ = s.Observe(none); s.apart(order[0]) || !s.apart(order[1]) {
		t.Error("one that was bound for a moment is left out")
	}
	if s, _, _ = s.Observe(make([]float64, len(p.Replicas))); s.apart(order[0]) {
		t.Error("one that was bound once is left out")
	}
}
