// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"testing"

	"homenode/internal/unit"
)

func TestEstimatePart(t *testing.T) {
	e := Estimate{Bytes: 400, Seconds: unit.Measured(8.0, "p"), CPUSeconds: unit.UnknownValue[float64]("no profile"), BandwidthShare: unit.Estimated[unit.Ratio](0.5, "q")}
	want := Estimate{Bytes: 100, Seconds: unit.Measured(2.0, "p"), CPUSeconds: e.CPUSeconds, BandwidthShare: e.BandwidthShare}
	if got := e.Part(100); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, all := range []unit.Bytes{400, 500} {
		if got := e.Part(all); got != e {
			t.Errorf("all of it: %+v", got)
		}
	}
	if got := (Estimate{}).Part(0); got != (Estimate{}) {
		t.Errorf("%+v", got)
	}
	if got := e.Part(0); got.Bytes != 0 || got.Seconds.Or(-1) != 0 {
		t.Errorf("nothing: %+v", got)
	}
}
