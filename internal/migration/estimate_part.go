// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"homenode/internal/schema"
	"homenode/internal/unit"
)

// Part is the estimate of moving so much of it, at the same pace: what was accessed,
// or what has room.
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

// Encode writes the wire form, one line.
func (r Report) Encode() ([]byte, error) { return schema.Encode(r, "report of a move") }
