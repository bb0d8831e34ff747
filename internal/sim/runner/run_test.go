// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"homenode/internal/sim"
)

// squares is a plan with distinct outcomes; taken receives them.
func squares(cells, workers int, taken *[]int) Plan[int] {
	return Plan[int]{
		Cells: cells, Workers: workers,
		Run: func(_ context.Context, cell int, tell func(float64)) (int, error) {
			tell(0.5)
			tell(1)
			return cell * cell, nil
		},
		Take: func(cell, outcome int) error { *taken = append(*taken, cell, outcome); return nil },
	}
}

// Outcomes are taken in the order of cells, each once, with any number of workers, any
// costs and any bound on waiting outcomes.
func TestDecisionOrder(t *testing.T) {
	var want []int
	if err := Run(t.Context(), squares(50, 1, &want)); err != nil || len(want) != 100 || want[99] != 49*49 {
		t.Fatal(err, want)
	}
	for _, workers := range []int{-1, 2, 7, 100} {
		for _, ahead := range []int{0, 1, 3, 1000} {
			var got []int
			p := squares(50, workers, &got)
			if p.Ahead = ahead; ahead == 0 {
				p.Cost = func(cell int) float64 { return float64((cell * 37) % 11) }
			}
			if err := Run(t.Context(), p); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d workers, %d ahead: %v, %v", workers, ahead, err, got)
			}
		}
	}
	var none []int
	if err := Run(t.Context(), squares(0, 2, &none)); err != nil || len(none) != 0 {
		t.Errorf("no cells: %v, %v", err, none)
	}
}

// The longest cells start first.
func TestDecisionLongestFirst(t *testing.T) {
	var taken, started []int
	p := squares(6, 1, &taken)
	p.Cost = func(cell int) float64 { return float64(cell % 3) }
	run := p.Run
	p.Run = func(ctx context.Context, cell int, tell func(float64)) (int, error) {
		started = append(started, cell)
		return run(ctx, cell, tell)
	}
	if err := Run(t.Context(), p); err != nil || !slices.Equal(started, []int{2, 5, 1, 4, 0, 3}) {
		t.Errorf("%v, started %v", err, started)
	}
}

// No cell starts further ahead of the taken ones than the bound.
func TestDecisionAhead(t *testing.T) {
	var taken []int
	p := squares(200, 8, &taken)
	p.Ahead = 4
	var done atomic.Int64
	run, take := p.Run, p.Take
	p.Run = func(ctx context.Context, cell int, tell func(float64)) (int, error) {
		if at := done.Load(); int64(cell) > at+4 {
			t.Errorf("cell %d started when %d were taken", cell, at)
		}
		return run(ctx, cell, tell)
	}
	p.Take = func(cell, outcome int) error { done.Add(1); return take(cell, outcome) }
	if err := Run(t.Context(), p); err != nil || len(taken) != 400 {
		t.Errorf("%v, %d", err, len(taken))
	}
}

// An error of a cell, an error of Take, and the context's end each end everything, and no
// worker is left.
func TestDecisionEnds(t *testing.T) {
	bad := errors.New("bad")
	for _, workers := range []int{1, 3} {
		var running atomic.Int64
		plan := func(fails int) Plan[int] {
			var taken []int
			p := squares(1000, workers, &taken)
			p.Run = func(ctx context.Context, cell int, _ func(float64)) (int, error) {
				running.Add(1)
				defer running.Add(-1)
				if cell == fails {
					return 0, fmt.Errorf("cell %d: %w", cell, bad)
				}
				return 0, ctx.Err()
			}
			return p
		}
		if err := Run(t.Context(), plan(7)); !errors.Is(err, bad) || running.Load() != 0 {
			t.Errorf("%d workers: %v, %d run on", workers, err, running.Load())
		}
		taken := 0
		p := plan(-1)
		p.Take = func(int, int) error { taken++; return bad }
		if err := Run(t.Context(), p); !errors.Is(err, bad) || taken != 1 || running.Load() != 0 {
			t.Errorf("%d workers: %v, %d taken, %d run on", workers, err, taken, running.Load())
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		p = plan(-1)
		p.Take = func(cell, _ int) error {
			if cell == 5 {
				cancel(bad)
			}
			return nil
		}
		if err := Run(ctx, p); !errors.Is(err, context.Canceled) || running.Load() != 0 {
			t.Errorf("%d workers: %v, %d run on", workers, err, running.Load())
		}
	}
}

// Progress ascends to 1, reported by one goroutine at a time.
func TestDecisionProgress(t *testing.T) {
	var taken []int
	p := squares(40, 5, &taken)
	p.Cost = func(cell int) float64 { return float64(1 + cell) }
	last := 0.0
	var telling sync.Mutex
	p.Tell = func(share float64) {
		if !telling.TryLock() {
			t.Error("reported by two goroutines at once")
			return
		}
		defer telling.Unlock()
		if share < last-1e-9 {
			t.Errorf("%v after %v", share, last)
		}
		last = share
	}
	if err := Run(t.Context(), p); err != nil || last < 1-1e-9 || last > 1 {
		t.Errorf("%v, %v", err, last)
	}
}

// Adding one by one and adding in two halves give the same. Workloads without latency are
// in no mean of latencies.
func TestDecisionTally(t *testing.T) {
	truths := []sim.Truth{
		{Seconds: 1, Ops: 10, Asked: 12, Dropped: 2, CPUSeconds: 3, Cycles: 8, Instructions: 4, Local: 3, Remote: 1, Latency: 0.5, P99: 2, Stalled: 0.25, BoundSeconds: 1},
		{Seconds: 2, Ops: 30, CPUSeconds: 1, Cycles: 8, Instructions: 12},
	}
	var all, a, b Tally
	all.Add(&truths[0])
	all.Add(&truths[1])
	a.Add(&truths[0])
	b.Add(&truths[1])
	a.Plus(&b)
	if a != all || all.Requests != 10 || all.Rated != 10 || all.Latency != 5 || all.P99 != 20 || all.LocalRatio() != 0.75 || all.CPUPerOp() != 0.1 || all.IPC() != 1 || all.Bound != 1 {
		t.Errorf("%+v\n%+v", all, a)
	}
	if none := (&Tally{}); none.LocalRatio() != 0 || none.CPUPerOp() != 0 || none.IPC() != 0 || Share(2, 1) != 1 {
		t.Error("nothing to divide by is 0, and a share at most 1")
	}
}
