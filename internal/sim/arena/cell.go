// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"context"
	"fmt"
	"time"

	"homenode/internal/actuate"
	"homenode/internal/sim"

	"homenode/internal/sim/linux"
	"homenode/internal/sim/runner"
	"homenode/internal/window"
)

// cell runs one cell.
//
//  1. The world is made by the mix, the seed and the policy's way to start. Linux has
//     DefaultSettings: NUMA balancing is an arm of its own.
//  2. The policy sees a window and acts once per period of its own. The cost of running it
//     is not simulated; the cost of moving memory is.
//  3. The books are written each period of the mix, whatever the policy's period. So
//     percentiles are over the same stretches of time under all policies.
//  4. The rest of the time after the last whole period passes without the policy.
func (p *Plan) cell(ctx context.Context, j job, tell func(float64)) (Cell, error) {
	fail := func(err error) (Cell, error) {
		if ctx.Err() != nil {
			return Cell{}, context.Cause(ctx)
		}
		return Cell{}, fmt.Errorf("%s: %w", j.name(), err)
	}
	name, _ := Kind(j.policy)
	specs := j.mix.Specs(j.machine, j.seed)
	c := sim.Config{Machine: j.machine.Host, System: j.machine.System, Linux: linux.DefaultSettings(), Specs: specs, Seed: j.seed, Start: runner.Start, Step: j.mix.Step}
	runner.Prepare(name, &c)
	if p.Configure != nil {
		p.Configure(j.policy, &c)
	}
	world, err := p.world(c) // 1
	if err != nil {
		return fail(err)
	}
	o := DefaultOptions(j.machine, specs)
	if p.Options != nil {
		p.Options(j.policy, j.machine, &o)
	}
	o.Stop = func() bool { return ctx.Err() != nil }
	policy, err := runner.New(name, o)
	if err != nil {
		return fail(err)
	}
	w := &watched{World: world, ctx: ctx, every: j.mix.Period, lasts: j.mix.Lasts, tell: tell, book: newBook(specs, j.mix.Warmup)}
	acts := runner.Actuate(name, actuate.DefaultConfig())
	if p.Actuate != nil {
		p.Actuate(j.policy, &acts)
	}
	period, _ := p.period(j.policy, j.mix)
	loop := &runner.Loop{World: w, Machine: j.machine.Host, Policy: policy, Actuate: acts, Period: period}
	for w.now+period <= j.mix.Lasts { // 2
		loop.Round()
		if ctx.Err() != nil {
			return fail(ctx.Err())
		}
	}
	w.Run(j.mix.Lasts - w.now) // 4
	if ctx.Err() != nil {
		return fail(ctx.Err())
	}
	w.Window()
	return w.book.close(j, loop.Counts), nil
}

// watched is a world in which the books are written while it runs (3 of cell).
type watched struct {
	World
	ctx        context.Context
	every      time.Duration
	lasts      time.Duration
	now        time.Duration
	windowFrom time.Duration // start of the next window
	tell       func(float64)
	book       *book
}

// Run lets time pass up to each time at which the books are written. It stops early when
// the context ends.
func (w *watched) Run(d time.Duration) {
	for end := w.now + d; w.now < end && w.ctx.Err() == nil; {
		next := min(end, (w.now/w.every+1)*w.every, w.book.next(w.now))
		w.World.Run(next - w.now)
		w.now = next
		if w.now%w.every == 0 || w.now == w.book.warmup || w.now == w.lasts {
			w.book.look(w.World, w.now)
			w.tell(float64(w.now) / float64(w.lasts))
		}
	}
}

// Window is the world's. A window after the warm-up also goes into the books.
func (w *watched) Window() window.Window {
	win := w.World.Window()
	if w.windowFrom >= w.book.warmup {
		w.book.window(win)
	}
	w.windowFrom = w.now
	return win
}
