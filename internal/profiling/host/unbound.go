// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"homenode/internal/profiling"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// unbound puts a trial's workload back where it was, and measures it there. How much of its memory
// is on each node is as it was; which pages those are is not.
func (w *workload) unbound(ctx context.Context) (f profiling.Figures, err error) {
	all, err := w.putBackTold(ctx)
	if err == nil && !all {
		err = fmt.Errorf("%s cannot be unbound: another process changed its settings", w.id)
	}
	if err == nil {
		err = w.respread(ctx)
	}
	if err == nil {
		f, err = w.settled(ctx, w.cpus)
	}
	return f, err
}

// backUnbound puts a trial's memory back at its end. It may take twice as long as the rate says.
func (w *workload) backUnbound() error {
	limit := homeLimit
	if w.rate > 0 {
		limit += time.Duration(2 * float64(sum(w.spread)) / float64(w.rate) * float64(time.Second))
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := w.respread(ctx); err != nil {
		return fmt.Errorf("its memory is not spread as it was: %w", err)
	}
	return nil
}

// spreadShare is the share of its memory by which a node may have too much or too little of it.
const spreadShare = 0.01

// mostUnspread is the share of its memory that may stay where the binding had it: with more, the
// workload is not measured unbound.
const mostUnspread = 0.05

// respread moves as much of its memory to each node as was there before. Memory that it allocated
// since stays.
func (w *workload) respread(ctx context.Context) error {
	win, one, err := w.look(ctx)
	if err != nil {
		return err
	}
	now, err := spreadOf(&win, &one)
	if err != nil {
		return err
	}
	from, lacks := surplus(w.spread, now)
	for _, l := range lacks {
		if err := w.give(ctx, from, l.node, l.bytes); err != nil {
			return err
		}
	}
	return nil
}

// lack is what a node should have more of.
type lack struct {
	node  int
	bytes unit.Bytes
}

// surplus compares how memory was spread with how it is: the nodes that have too much, and those
// that have too little, in order.
func surplus(was, now map[int]unit.Bytes) (from set.NodeSet, lacks []lack) {
	nodes := map[int]bool{}
	for _, spread := range []map[int]unit.Bytes{was, now} {
		for n := range spread {
			nodes[n] = true
		}
	}
	tolerated := unit.Bytes(spreadShare * float64(sum(was)))
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		switch d := was[n] - now[n]; {
		case d > tolerated:
			lacks = append(lacks, lack{n, d})
		case d < -tolerated:
			from = from.With(n)
		}
	}
	if from.IsEmpty() { // it shrank
		return from, nil
	}
	return from, lacks
}

// give moves some of its memory to a node.
func (w *workload) give(ctx context.Context, from set.NodeSet, to int, most unit.Bytes) error {
	j := w.migration(set.FromNodes(to))
	j.From, j.Most = from, most
	r, err := w.move(ctx, j)
	err = onlyCode(err)
	moved := unit.Bytes(0)
	if res, ok := r.Result.Get(); ok {
		moved = res.Moved()
	}
	if left := most - moved; err == nil && float64(left) > mostUnspread*float64(sum(w.spread)) {
		err = fmt.Errorf("%s is not unbound: %v of its memory could not be moved back to node %d", w.id, left, to)
	}
	return err
}

// sum is the memory on all nodes.
func sum(spread map[int]unit.Bytes) (all unit.Bytes) {
	for _, b := range spread {
		all += b
	}
	return all
}

// spreadOf is how much of a workload's memory is on each node.
func spreadOf(win *window.Window, one *window.Workload) (map[int]unit.Bytes, error) {
	by, ok := one.PagesByNode()
	if !ok {
		return nil, fmt.Errorf("where the memory of %s is cannot be read", one.ID)
	}
	spread := map[int]unit.Bytes{}
	for i, b := range by {
		spread[win.Nodes[i].ID] = b
	}
	return spread, nil
}
