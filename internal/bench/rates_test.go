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

// halting is a machine whose threads stand still for half of the time, and whose kernel
// has the CPU for as long again.
type halting struct{ *fake }

func (h halting) Run(ctx context.Context, j membench.Job) (membench.Result, error) {
	r, err := h.fake.Run(ctx, j)
	for i, t := range r.Threads {
		r.Threads[i].Quiet, r.Threads[i].Whole = t.Elapsed/2, 2*t.Elapsed
	}
	return r, err
}

// A rate is of all the time, the kernel's included, on hardware and in the lab. A latency
// is without interruptions.
func TestRatesAreOfAllTheTime(t *testing.T) {
	for _, how := range []unit.Source{unit.HowMeasured, unit.HowModelled} {
		f := newFake()
		f.how = how
		o := f.options()
		o.Parts = []profile.Part{profile.Latency, profile.Bandwidth, profile.Loaded}
		p, err := Measure(t.Context(), halting{f}, o, profile.Profile{})
		if err != nil {
			t.Fatal(err)
		}
		near(t, how.String()+" bandwidth", p.Bandwidth[0].Figure, fakeController/2, 0.01)
		near(t, how.String()+" latency", p.Latency[0].Figure, fakeLatency[10]/2, 0.01)
		last := p.Loaded[0].Points[len(pauses)-1]
		near(t, how.String()+" loaded bandwidth", last.Bandwidth, fakeController/2, 0.1)
	}
	if pace(membench.ThreadResult{Elapsed: time.Second}) != time.Second {
		t.Error("without batches a pace covers all the time")
	}
}
