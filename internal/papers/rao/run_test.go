// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"bytes"
	"context"
	"testing"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
)

// The short plan, run: rows are judged, sensitive loads gain and insensitive loads do not
// lose, with wide margins. Exact figures are the full plan's.
func TestShortPlan(t *testing.T) {
	p := Plan(false)
	r, err := arena.Run(context.Background(), p, 2, func(float64) {})
	if err != nil {
		t.Fatal(err)
	}
	r.Rows = Judge(r)
	data, err := arena.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := arena.Decode(data); err != nil || len(again.Cells) != len(r.Cells) {
		t.Fatal(err)
	}
	f := newFigures(&r)
	for _, c := range []struct {
		mix, policy string
		low, high   float64 // run time against the default
	}{
		{"vmpair-1", runner.HandThreads, 0.5, 0.95}, {"vmpair-1", runner.BRM, 0.5, 0.97}, {"insensitive-1", runner.BRM, 0.98, 1.03},
		{"insensitive-1", Inferred, 0.98, 1.03}, {"insensitive-1", runner.HandThreads, 0.98, 1.02}, {"vmscale-16", runner.HandThreads, 0.5, 0.97},
	} {
		if v, ok := f.slower(c.mix, c.policy, runner.None); !ok || v < c.low || v > c.high {
			t.Errorf("%s of %s takes %.3f of the default's time, want %.2f to %.2f", c.mix, c.policy, v, c.low, c.high)
		}
	}
}

// The bytes are the same with any number of workers.
func TestSameBytes(t *testing.T) {
	run := func(workers int) []byte {
		p := Plan(false)
		p.Mixes = p.Mixes[:1]
		r, err := arena.Run(context.Background(), p, workers, func(float64) {})
		if err != nil {
			t.Fatal(err)
		}
		data, err := arena.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !bytes.Equal(run(1), run(3)) {
		t.Error("another number of workers, another result")
	}
}
