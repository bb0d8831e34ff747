// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"strings"

	"homenode/internal/schema"
	"homenode/internal/unit"
)

// Part is the estimate of moving this much of it, at the same pace: what was accessed,
// or what fits.
func (e Estimate) Part(b unit.Bytes) Estimate {
	if b >= e.Bytes || e.Bytes <= 0 {
		return e
	}
	share := float64(b) / float64(e.Bytes)
	scale := func(v unit.Value[float64]) unit.Value[float64] {
		s, ok := v.Get()
		if !ok {
			return v
		}
		return unit.ValueOf(s*share, v.How, v.From)
	}
	return Estimate{Bytes: b, Seconds: scale(e.Seconds), CPUSeconds: scale(e.CPUSeconds), BandwidthShare: e.BandwidthShare}
}

// BesideModel marks figures that were not measured on this machine as those of
// hardware: they stand beside those of a model's clock.
func (e Estimate) BesideModel() Estimate {
	for _, v := range []*unit.Value[float64]{&e.Seconds, &e.CPUSeconds} {
		if strings.Contains(v.From, maoSource) {
			v.From += " (of hardware; this is the lab's model)"
		}
	}
	return e
}

// Encode writes the wire form, one line.
func (r Report) Encode() ([]byte, error) { return schema.Encode(r, "report of a move") }
