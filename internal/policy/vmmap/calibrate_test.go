// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"math"
	"strings"
	"testing"

	"homenode/internal/unit"
)

func TestCalibrated(t *testing.T) {
	of := func(requests, penalty, loads float64) Sample {
		return Sample{Requests: unit.Some(requests), Waits: unit.Some(requests * penalty), Loads: unit.Some(loads)}
	}
	chase := func(hits, memory float64) Sample { // a hit costs 40 cycles
		return of(0.004, hits*40+(1-hits)*memory, 0.004*(1-hits))
	}
	far := chase(0.125, 400)
	far.Far = unit.Some(2.0) // at a SLIT distance of 30
	r := References{Rabbit: of(0.02, 40, 0), Devil: of(0.2, 5, 0.2), Memory: chase(0.125, 200), Far: far, Crowded: chase(0.02, 260)}
	f, err := defaultInfer().Calibrated(r)
	want := defaultInfer()
	want.DRAM, want.Remote, want.DevilRate, want.RabbitRate, want.Crowd = 5, 1.5, 0.2, 0.02, 0.3
	for _, v := range []*float64{&f.DRAM, &f.Remote, &f.Crowd} {
		*v = math.Round(*v*1e9) / 1e9
	}
	if err != nil || f != want {
		t.Errorf("%+v, %v, want %+v", f, err, want)
	}
	for name, forget := range map[string]func(*References){
		"rabbit": func(r *References) { r.Rabbit = Sample{} }, "devil": func(r *References) { r.Devil.Loads = unit.None[float64]() },
		"far": func(r *References) { r.Far.Requests = unit.Some(0.0) }, "memory": func(r *References) { r.Memory = r.Rabbit },
		"crowded": func(r *References) { r.Crowded.Loads = unit.None[float64]() }, `"far" 5.00`: func(r *References) { r.Far = r.Memory },
	} {
		less := r
		forget(&less)
		if _, err := defaultInfer().Calibrated(less); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
