// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"testing"
	"time"

	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/unit"
)

// halting is a machine whose threads stand still for half of the time.
type halting struct{ *fake }

func (h halting) Run(ctx context.Context, j membench.Job) (membench.Result, error) {
	r, err := h.fake.Run(ctx, j)
	for i := range r.Threads {
		r.Threads[i].Quiet = r.Threads[i].Elapsed / 2
	}
	return r, err
}

// Slow batches lower a measured rate. A latency, and a modelled rate, are without
// interruptions.
func TestRatesAreOfAllTheTime(t *testing.T) {
	for how, want := range map[unit.Source]float64{unit.HowMeasured: fakeController, unit.HowModelled: 2 * fakeController} {
		f := newFake()
		f.how = how
		o := f.options()
		o.Parts = []profile.Part{profile.Latency, profile.Bandwidth, profile.Loaded}
		p, err := Measure(t.Context(), halting{f}, o, profile.Profile{})
		if err != nil {
			t.Fatal(err)
		}
		near(t, how.String()+" bandwidth", p.Bandwidth[0].Figure, want, 0.01)
		near(t, how.String()+" latency", p.Latency[0].Figure, fakeLatency[10]/2, 0.01)
		last := p.Loaded[0].Points[len(pauses)-1]
		near(t, how.String()+" loaded bandwidth", last.Bandwidth, want, 0.1)
	}
	if pace(membench.ThreadResult{Elapsed: time.Second}) != time.Second {
		t.Error("without batches a pace covers all the time")
	}
}
