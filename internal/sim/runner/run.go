// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Plan is a number of cells and how to run one.
type Plan[T any] struct {
	Cells   int
	Workers int // cells at a time; below 1: one
	// Run is called by several workers at once. It reports how much of the cell is done, 0
	// to 1.
	Run func(ctx context.Context, cell int, tell func(share float64)) (T, error)
	// Take gets each outcome once, in the order of cells, from the goroutine that called Run.
	Take func(cell int, outcome T) error
	// Tell receives the share of the whole plan that is done, 0 to 1, from one goroutine at
	// a time. It may be nil.
	Tell func(share float64)
	// Cost is roughly how long a cell takes, in any unit. The longest cells start first, so
	// that none is left to run alone at the end. Nil: all take equally long, and start in
	// order.
	Cost func(cell int) float64
	// Ahead bounds how many outcomes wait for an earlier one; 0: no bound. It needs cells
	// that start in order, so Cost must be nil.
	Ahead int
}

// Run runs all cells. The first error of a cell or of Take, or the end of the context, ends
// them all and is returned. All workers have ended when it returns.
func Run[T any](outer context.Context, p Plan[T]) error {
	ctx, end := context.WithCancelCause(outer)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer end(nil)
	slots := make([]chan T, p.waiting()) // outcome i waits in slot i modulo their number
	for i := range slots {
		slots[i] = make(chan T, 1)
	}
	free := make(chan struct{}, len(slots))
	next := make(chan int)
	progress := newProgress(&p)
	workers.Go(func() { deal(ctx, next, free, p.order()) })
	for range min(max(1, p.Workers), p.Cells) {
		workers.Go(func() {
			for i := range next {
				outcome, err := p.Run(ctx, i, progress.of(i))
				if err != nil {
					end(err)
					return
				}
				slots[i%len(slots)] <- outcome
			}
		})
	}
	for i := range p.Cells {
		select {
		case outcome := <-slots[i%len(slots)]:
			<-free
			if err := p.Take(i, outcome); err != nil {
				return err
			}
		case <-ctx.Done():
			return cmp.Or(outer.Err(), context.Cause(ctx))
		}
	}
	return cmp.Or(outer.Err(), context.Cause(ctx))
}

func (p *Plan[T]) waiting() int {
	if p.Ahead > 0 {
		return min(p.Ahead, p.Cells)
	}
	return p.Cells
}

func (p *Plan[T]) order() []int {
	order := make([]int, p.Cells)
	for i := range order {
		order[i] = i
	}
	if p.Cost != nil {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.Cost(b), p.Cost(a)) })
	}
	return order
}

// deal hands out cells, as many at a time as there are slots.
func deal(ctx context.Context, next chan<- int, free chan<- struct{}, order []int) {
	defer close(next)
	for _, i := range order {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case next <- i:
		case <-ctx.Done():
			return
		}
	}
}

// progress adds up the progress of all cells, weighted by cost.
type progress struct {
	lock sync.Mutex
	cost []float64
	done []float64 // 0 to 1
	sum  float64
	all  float64
	tell func(share float64)
}

func newProgress[T any](p *Plan[T]) *progress {
	g := &progress{tell: p.Tell}
	if p.Tell == nil {
		return g
	}
	g.cost, g.done = make([]float64, p.Cells), make([]float64, p.Cells)
	for i := range g.cost {
		if g.cost[i] = 1; p.Cost != nil {
			g.cost[i] = p.Cost(i)
		}
		g.all += g.cost[i]
	}
	return g
}

// of reports how much of a cell is done.
func (g *progress) of(cell int) func(share float64) {
	return func(share float64) {
		if g.tell == nil {
			return
		}
		g.lock.Lock()
		defer g.lock.Unlock()
		g.sum += (share - g.done[cell]) * g.cost[cell]
		g.done[cell] = share
		g.tell(min(1, g.sum/g.all))
	}
}
