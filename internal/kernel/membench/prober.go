// SPDX-License-Identifier: Apache-2.0

package membench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
)

// The sentinels of this room, always wrapped in a sentence.
var (
	ErrNoRoom = errors.New("not enough free memory")
	ErrNoNode = errors.New("no such node")
	ErrNoCPU  = errors.New("no such CPU")
	ErrBadJob = errors.New("a job that cannot be done")
)

// Prober runs jobs on the running kernel, one at a time, and keeps buffers between
// them.
type Prober struct {
	mu    sync.Mutex
	root  unix.Root
	clock Clock
	table perf.Table
	buf   unix.Buffer
	cache cache
	pager unix.Pager
	// How much of the machine's own time may pass without progress; see giveUp.
	patience time.Duration
	// Why counters requested in the last job are unknown.
	problems []error
}

// New needs the running kernel. A nil clock is the monotonic one.
func New(live unix.Live, clock Clock) (*Prober, error) {
	if !live.Valid() {
		return nil, fmt.Errorf("probe the machine: only the running kernel can be probed (%w)", unix.ErrNotSupported)
	}
	if clock == nil {
		clock = Monotonic()
	}
	p := &Prober{root: live.Root(), clock: clock, table: perf.Detect(live.Root()).With(perf.ThreadFields), pager: unix.LivePager{}, patience: 30 * time.Second}
	p.cache.limit = p.cacheLimit()
	return p, nil
}

// Clock is the source of times.
func (p *Prober) Clock() Clock { return p.clock }

// CountProblems says why counters requested in the last job are unknown.
func (p *Prober) CountProblems() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problems
}

// Close frees the kept buffers.
func (p *Prober) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cache.shrink(0)
}

// Run runs a job:
//
//  1. Buffers are mapped, placed and filled, or taken from those kept.
//  2. Threads start, each an OS thread of its own, pinned; they sleep.
//  3. All start at once: warm, then the measured stretch.
//
// The garbage collector is off meanwhile. A memory limit (GOMEMLIMIT) would start it,
// so there is none. A cancelled context ends the run within some 100 ms.
func (p *Prober) Run(ctx context.Context, j Job) (Result, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := p.check(j); err != nil {
		return Result{}, err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if err := stage(p.clock, Staged.Prepare); err != nil {
		return Result{}, err
	}
	regions, err := p.regions(ctx, j) // 1
	defer p.cache.release(regions)
	if err != nil {
		if err2 := stage(p.clock, Staged.Measure); err2 != nil {
			err = errors.Join(err, err2)
		}
		return Result{}, err
	}
	return newRun(p, j, regions).do(ctx) // 2, 3
}
