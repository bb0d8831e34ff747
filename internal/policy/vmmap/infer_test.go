// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"encoding/json"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/unit"
	"homenode/internal/window/windowtest"
)

func sampleOf(t *testing.T, what string) Sample {
	t.Helper()
	h := &windowtest.Host{}
	h.Shape([]int{0}, 4, unit.GiB)
	l := h.Load("/a")
	if err := is(h, "/a", what); err != nil {
		t.Fatal(err)
	}
	return SampleOf(&l.Workload, Site{Cache: unit.Some(4 * unit.MiB), Caches: unit.Some(1.0)})
}

// Sheep and devils show alone, whatever they hold of a cache; rabbits show once they were
// seen with less of it. What counters do not show is unknown.
func TestVerdicts(t *testing.T) {
	f := defaultInfer()
	for what, want := range map[string]Class{"sheep": Sheep, "rabbit": Unknown, "hurt": Unknown, "devil": Devil} {
		s := sampleOf(t, what)
		v := f.verdict(s, 3)
		if v.Class != want || !v.Sensitive.Known() || !v.HurtRange.Known() || want != Unknown && !(v.Certain.Or(-1) > 0 && v.Certain.Or(2) <= 1) {
			t.Errorf("%s is taken for %+v", what, v)
		}
		less := s
		less.Held, less.Cache = unit.None[float64](), unit.None[float64]()
		if is := f.verdict(less, 3); is != v {
			t.Errorf("%s without its occupancy is taken for %+v", what, is)
		}
		if less.Requests = unit.None[float64](); f.verdict(less, 3).Class != Unknown || !f.verdict(less, 3).Sensitive.Known() {
			t.Errorf("%s without requests is taken for %+v", what, f.verdict(less, 3))
		}
		s.Waits = unit.None[float64]()
		if v := f.verdict(s, 3); v.Class != Unknown || v.Sensitive.Known() {
			t.Errorf("%s without waits is taken for %+v", what, v)
		}
	}
}

// A program that hits with all of a cache, and misses with an eighth of it, is a rabbit.
func TestSqueezedIsRabbit(t *testing.T) {
	f := defaultInfer()
	s := Sample{}
	for _, now := range []Sample{seenAt(0.125, 0.1), seenAt(0.125, 0.1), seenAt(1, 0.95), seenAt(1, 0.95)} {
		now.Waits = unit.Some(0.5)
		s = s.mix(now, 1)
	}
	if v := f.verdict(s, 4); !s.Squeezed() || v.Class != Rabbit || v.HurtRange.Known() || !(v.Certain.Or(0) > 0) {
		t.Errorf("%+v", v)
	}
}

// Lines that reach memory count where they are counted: not misses that it never sees.
func TestTrafficBeforeMisses(t *testing.T) {
	s := sampleOf(t, "devil")
	_, misses, _ := DefaultSolo().Expect(s, 3)
	s.Traffic = unit.Some(s.Loads.Or(0) / 4)
	if _, traffic, _ := DefaultSolo().Expect(s, 3); traffic.Expected*4 != misses.Expected {
		t.Errorf("a quarter of the lines: %+v, by misses %+v", traffic, misses)
	}
}

// seeing feeds windows to a Look, and counts changes of behaviour.
func seeing(l *Look, f Infer) func(s Sample, windows int) (changed int) {
	return func(s Sample, windows int) (changed int) {
		for range windows {
			if l.see(f, s) {
				changed++
			}
		}
		return changed
	}
}

// A class is given after some windows; another one only when the figures have said so for
// some windows in a row. New behaviour is noticed, and one odd window is not.
func TestHysteresis(t *testing.T) {
	f := defaultInfer()
	sheep, devil := sampleOf(t, "sheep"), sampleOf(t, "devil")
	l := &Look{}
	see := seeing(l, f)
	if see(sheep, f.Windows-1); l.Says.Class != Unknown {
		t.Errorf("after too few windows: %+v", l.Says)
	}
	if see(sheep, 1); l.Says.Class != Sheep {
		t.Errorf("after enough: %+v", l.Says)
	}
	if n := see(devil, 1) + see(sheep, 5); n != 0 || l.Says.Class != Sheep {
		t.Errorf("one odd window: %d changes, %+v", n, l.Says)
	}
	if n := see(devil, f.Changed+f.Windows-2); n != 1 || l.Says.Class != Sheep {
		t.Errorf("new behaviour: %d changes, %+v so soon", n, l.Says)
	}
	if see(devil, f.Windows+1); l.Says.Class != Devil {
		t.Errorf("new behaviour: still %+v", l.Says)
	}
}

// A program of phases is recognised when it returns to one of them, also after a short
// moment in another. A third phase makes it forget none of them; a fourth makes it forget
// the one it knows least.
func TestPhases(t *testing.T) {
	f := defaultInfer()
	sheep, devil, rabbit, other := sampleOf(t, "sheep"), sampleOf(t, "devil"), sampleOf(t, "rabbit"), sampleOf(t, "rabbit")
	other.Intensity = unit.Some(other.Intensity.Or(0) * 10)
	l := &Look{}
	see := seeing(l, f)
	see(sheep, 6)
	see(devil, f.Changed+4)
	for n := range 3 {
		if changed := see(sheep, f.Changed); changed != 1 || l.Windows != 7+n || l.Mean.Intensity != sheep.Intensity || l.Says.Class != Sheep {
			t.Errorf("%d: back to a sheep: %d changes, %+v", n, changed, l)
		}
		if doubt := l.Doubt(f); !strings.Contains(doubt, "at times it behaves like a sensitive devil") {
			t.Errorf("%d: a sheep at times: %q", n, doubt)
		}
		if changed := see(devil, f.Changed); changed != 1 || l.Windows != 6+n || l.Says.Class != Devil {
			t.Errorf("%d: back to a devil: %d changes, %+v", n, changed, l)
		}
		if len(l.Past) != 1 || l.Past[0].Windows != 7+n {
			t.Errorf("%d: what it was: %+v", n, l.Past)
		}
	}
	see(rabbit, f.Changed) // known for one window only
	if see(sheep, f.Changed); l.Windows != 10 || len(l.Past) != 2 {
		t.Errorf("after a moment: %+v", l)
	}
	see(rabbit, f.Changed+f.Windows)
	if see(devil, f.Changed); l.Windows != 9 || len(l.Past) != 2 {
		t.Errorf("a third since: %+v", l)
	}
	see(other, f.Changed+f.Windows)
	if see(sheep, f.Changed); l.Windows != 11 || len(l.Past) != behaviours {
		t.Errorf("a fourth since: %+v", l)
	}
	if see(rabbit, f.Changed); l.Windows != 1 {
		t.Errorf("the one known least is still known: %+v", l)
	}
}

// Of misses, less is better: the sign flips.
func TestDeviation(t *testing.T) {
	some := unit.Some[float64]
	for _, c := range []struct {
		metric             Metric
		expected, measured float64
		want               float64
	}{{IPC, 2, 1, 0.5}, {IPC, 1, 2, -1}, {MPI, 1, 2, 1}, {MPI, 2, 1, -0.5}} {
		if got := deviation(c.metric, some(c.expected), some(c.measured)); got != some(c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if deviation(MPI, some(0), some(1)).Known() || deviation(IPC, unit.None[float64](), some(1)).Known() {
		t.Error("a deviation from nothing")
	}
	p := Pace{}
	for _, v := range []float64{5, 1, 2, 3} { // the worst of two in a row: 1, 1, 2
		p.see(some(v), IPC, 2)
	}
	if p.Best != some(2.0) {
		t.Errorf("best is %v", p.Best)
	}
}

func TestValidate(t *testing.T) {
	c := DefaultConfig()
	text, _ := json.Marshal(c)
	back := Config{}
	if err := c.Validate(); err != nil || json.Unmarshal(text, &back) != nil || back != c {
		t.Errorf("%v; %+v", err, back)
	}
	for i, change := range []func(*Config){
		func(c *Config) { c.Metric = "x" }, func(c *Config) { c.Unknown = "" }, func(c *Config) { c.Reserve = 1 },
		func(c *Config) { c.Searches = 0 }, func(c *Config) { c.Affected = 0 }, func(c *Config) { c.Horizon = 0 },
		func(c *Config) { c.Doublings = 99 }, func(c *Config) { c.Compatible.Rabbit.Devil = 1 }, func(c *Config) { c.Compatible.Sheep.Sheep = -1 },
		func(c *Config) { c.Benefit.Sheep.Node = 9 }, func(c *Config) { c.Threshold = 2 }, func(c *Config) { c.Infer.DRAM = 1 },
		func(c *Config) { c.Infer.Weight = 2 }, func(c *Config) { c.LocalShare = -1 }, func(c *Config) { c.PayRatio = -1 },
	} {
		c := DefaultConfig()
		if change(&c); c.Validate() == nil {
			t.Errorf("%d: %+v is said to be possible", i, c)
		}
	}
}

// The price of moving is what it took recently.
func TestPrice(t *testing.T) {
	some := unit.Some[float64]
	move := func(gb, seconds float64) action.Outcome {
		return action.Outcome{Step: action.Step{Kind: action.MovePages}, Moved: unit.Bytes(gb * 1e9), CPUSeconds: seconds}
	}
	for _, c := range []struct {
		was, want unit.Opt[float64]
		outcomes  []action.Outcome
	}{
		{unit.None[float64](), unit.None[float64](), nil},
		{unit.None[float64](), unit.None[float64](), []action.Outcome{move(0, 1)}},
		{unit.None[float64](), some(2), []action.Outcome{move(1, 1), move(1, 3)}},
		{some(4), some(3), []action.Outcome{move(1, 2)}},
		{some(4), some(4), nil},
	} {
		if got := priceOf(c.was, c.outcomes, 0.5); got != c.want {
			t.Errorf("%v and %v: %v, want %v", c.was, c.outcomes, got, c.want)
		}
	}
}
