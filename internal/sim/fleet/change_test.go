// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"testing"

	"homenode/internal/sim/detmath"
)

// twoServices is a server on which one service takes 1 s per operation, more or less by
// cpu, and another takes a negligible amount.
func twoServices(cpu float64) []serviceShare {
	return []serviceShare{{service: 0, ops: 10, cpu: 10 * cpu, requests: 10, latency: 20 * cpu, local: 5, reads: 10}}
}

func TestChangeByHand(t *testing.T) {
	c := compared{paired: true, on: [][]serviceShare{twoServices(0.9), twoServices(0.8)}, off: [][]serviceShare{twoServices(1), twoServices(1)}}
	got := c.change(1, 2)
	if math.Abs(*got.CPU+0.15) > 1e-12 || math.Abs(*got.Latency+0.15) > 1e-12 || *got.LocalRatio != 0 {
		t.Errorf("%v %v %v, want -0.15, -0.15, 0", *got.CPU, *got.Latency, *got.LocalRatio)
	}
	// Of the four draws of two, one is twice the first, one twice the second.
	if i := got.CPUInterval; math.Abs(i.Low+0.2) > 1e-12 || math.Abs(i.High+0.1) > 1e-12 {
		t.Errorf("%+v, want -0.2 to -0.1", i)
	}
	c.on, c.off = c.on[:1], c.off[:1]
	if got := c.change(1, 2); got.CPU == nil || got.CPUInterval != nil {
		t.Errorf("one server has an interval: %+v", got)
	}
	if c.on = nil; c.change(1, 2) != nil {
		t.Error("a change against nothing")
	}
}

// In 19 of 20 fleets the interval contains the truth.
func TestIntervalsHoldTheTruth(t *testing.T) {
	for _, paired := range []bool{true, false} {
		held, fleets := 0, 200
		for seed := range fleets {
			r := detmath.NewRandom(uint64(seed), "test")
			c := compared{paired: paired}
			for range 40 {
				load := 1 + float64(0.1*r.Normal())
				c.off = append(c.off, twoServices(load))
				if !paired {
					load = 1 + float64(0.1*r.Normal())
				}
				c.on = append(c.on, twoServices(load*(0.9+float64(0.02*r.Normal()))))
			}
			if i := c.change(uint64(seed), 2).CPUInterval; i.Low <= -0.1 && -0.1 <= i.High {
				held++
			}
		}
		if held < fleets*90/100 || held > fleets*99/100 {
			t.Errorf("paired %v: %d of %d intervals hold the truth, want some 95 %%", paired, held, fleets)
		}
	}
}

// With a data set on a share of the servers, the change uses the pairs alone.
func TestChangeOfPairs(t *testing.T) {
	c := toyFleet(8)
	c.DataSet, c.Share = true, 0.5
	r, _ := runFleet(t, c)
	if !r.Change.Paired || r.With.Servers != 4 || r.Without.Servers != 8 || r.Change.CPUInterval == nil {
		t.Errorf("%+v, %d and %d servers", r.Change, r.With.Servers, r.Without.Servers)
	}
	if *r.Change.CPU < r.Change.CPUInterval.Low || *r.Change.CPU > r.Change.CPUInterval.High {
		t.Errorf("%v is outside of %+v", *r.Change.CPU, r.Change.CPUInterval)
	}
	c.DataSet = false
	r, _ = runFleet(t, c)
	if r.Change.Paired || r.Change.CPUInterval == nil {
		t.Errorf("unpaired: %+v", r.Change)
	}
}
