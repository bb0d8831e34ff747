// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// EstimateOf is a stand-in: it knows MAO's figure, and no profile.
func EstimateOf(c Census, _ *profile.Profile, from, to set.NodeSet, _ Mode, rate unit.Bytes) Estimate {
	const perGB, why = 0.65, "MAO's 0.65 s/GB"
	e := Estimate{Bytes: c.Elsewhere(from, to), BandwidthShare: unit.UnknownValue[unit.Ratio]("no profile of this machine: 'homenode bench' makes one")}
	gb := float64(e.Bytes) / 1e9
	e.CPUSeconds = unit.Estimated(perGB*gb, why)
	e.Seconds = e.CPUSeconds
	if rate > 0 {
		e.Seconds = unit.Estimated(float64(e.Bytes)/float64(rate), "the rate that was asked for")
	}
	return e
}
