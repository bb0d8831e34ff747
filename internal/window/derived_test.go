// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"testing"

	"homenode/internal/event"
	"homenode/internal/unit"
)

// MBW takes every DRAM read for LineBytes: a CPU's line is one of these, or several.
func TestLineBytes(t *testing.T) {
	for _, table := range event.All() {
		if got := int(table.Lines(event.LocalLoads)) * LineBytes; got != table.LineBytes || table.Lines(event.LLCMisses) != 1 {
			t.Errorf("%s: lines of %d bytes, counted as %d", table.Name, table.LineBytes, got)
		}
	}
}

func TestUncorePenalty(t *testing.T) {
	for _, c := range []struct {
		waits, requests float64
		want            unit.Opt[float64]
	}{{500, 10, unit.Some(50.0)}, {0, 10, unit.Some(0.0)}, {5, 0, unit.None[float64]()}, {math.NaN(), 3, unit.None[float64]()}, {3, math.NaN(), unit.None[float64]()}} {
		if got := UncorePenalty(c.waits, c.requests); got != c.want {
			t.Errorf("%v / %v: %v, want %v", c.waits, c.requests, got, c.want)
		}
	}
}
