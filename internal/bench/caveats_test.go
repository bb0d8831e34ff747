// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

func toldOf(p profile.Profile) string {
	var all []string
	for _, c := range p.Caveats {
		all = append(all, fmt.Sprint(c.Code, c.Parts))
	}
	return strings.Join(all, " ")
}

// A caveat about a part stays, for that part only, when the measurement is continued
// under better conditions.
func TestResumeKeepsCaveats(t *testing.T) {
	f := newFake()
	f.cond.Governor, f.cond.Balancing, f.cond.HugeAllowed, f.noCounters = "powersave", unit.Some(true), unit.Some(false), true
	o := f.options()
	o.Parts = []profile.Part{profile.Latency}
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := toldOf(p), "governor[] balancing[] small-pages[] no-cycles[]"; got != want {
		t.Errorf("first %s, want %s", got, want)
	}
	good := newFake()
	o.Parts = []profile.Part{profile.Latency, profile.Mixes}
	if p, err = Measure(t.Context(), good, o, p); err != nil {
		t.Fatal(err)
	}
	const want = "governor[latency] balancing[latency] small-pages[latency] no-cycles[latency]"
	if got := toldOf(p); got != want {
		t.Errorf("gone on with %s, want %s", got, want)
	}
	if p, err = Measure(t.Context(), f, o, p); err != nil || toldOf(p) != want {
		t.Errorf("with nothing left to measure: %v, %s, want %s", err, toldOf(p), want)
	}
	o.Parts = []profile.Part{profile.CoreToCore}
	if p, err = Measure(t.Context(), f, o, p); err != nil || !strings.HasPrefix(toldOf(p), "governor[latency core-to-core] ") {
		t.Errorf("with a third part: %v, %s", err, toldOf(p))
	}
	valid(t, p)
}

// Ticks over a tiny time are no load, and no program uses more CPUs than there are.
func TestOthersLoad(t *testing.T) {
	at := func(busy time.Duration) membench.Conditions { return membench.Conditions{Busy: unit.Some(busy)} }
	for _, c := range []struct {
		busy, own, wall time.Duration
		want            float64
		ok              bool
	}{
		{20 * time.Millisecond, 0, 3 * time.Millisecond, 0, false},
		{499 * time.Millisecond, 0, 499 * time.Millisecond, 0, false},
		{1500 * time.Millisecond, time.Second, time.Second, 0.5, true},
		{9 * time.Second, 0, time.Second, 2, true},
	} {
		if got, ok := othersLoad(at(0), at(c.busy), c.own, c.wall, 2); got != c.want || ok != c.ok {
			t.Errorf("%+v: %g, %v", c, got, ok)
		}
	}
}
