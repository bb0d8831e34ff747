// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"time"

	"homenode/internal/store"
)

// add is the batches of one request on their way to the store.
type add struct {
	ctx     context.Context // of the request
	batches []store.Batch
	done    chan error // has room for the answer
}

const (
	// mostGathered bounds one write: more rows are in the next.
	mostGathered = 50_000
	// storeLimit is how long a write may take.
	storeLimit = time.Minute
)

// write is the only writer of this hub. Requests that come while the store is busy are
// written together: a store takes many rows at once far more cheaply.
func (h *Server) write(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-h.adds:
			h.writeAll(ctx, h.gather(ctx, first))
		}
	}
}

func (h *Server) gather(ctx context.Context, first *add) []*add {
	all, rows := []*add{first}, rowsOf(first.batches)
	var wait <-chan time.Time
	if h.o.Gather > 0 {
		timer := time.NewTimer(h.o.Gather)
		defer timer.Stop()
		wait = timer.C
	}
	for rows < mostGathered {
		select {
		case next := <-h.adds:
			all, rows = append(all, next), rows+rowsOf(next.batches)
			continue
		default:
		}
		if wait == nil {
			return all
		}
		select {
		case next := <-h.adds:
			all, rows = append(all, next), rows+rowsOf(next.batches)
		case <-wait:
			return all
		case <-ctx.Done():
			return all
		}
	}
	return all
}

// writeAll writes requests together. If the store refuses that, it writes them one by one:
// the rows of one host must not keep those of others out.
func (h *Server) writeAll(ctx context.Context, all []*add) {
	var batches []store.Batch
	for _, a := range all {
		batches = append(batches, a.batches...)
	}
	err := h.writeOnce(ctx, batches)
	if err == nil || errors.Is(err, store.ErrBusy) || len(all) == 1 {
		for _, a := range all {
			a.done <- err
		}
		return
	}
	for _, a := range all {
		a.done <- h.writeOnce(ctx, a.batches)
	}
}

// writeOnce makes every failure that may pass into ErrBusy.
func (h *Server) writeOnce(ctx context.Context, batches []store.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, storeLimit)
	defer cancel()
	began := time.Now()
	added, err := h.store.Add(ctx, batches)
	h.metrics.addTime.Observe(time.Since(began).Seconds())
	h.failing.Store(err != nil)
	if err != nil {
		h.metrics.storeErrors.Inc()
		h.o.Log.Error("store", "batches", len(batches), "error", err)
		if ctx.Err() != nil {
			err = errors.Join(store.ErrBusy, err)
		}
		if errors.Is(err, store.ErrBusy) { // of the hub, not of a host: it would be of all hosts
			h.refused("", "", reasonBusy, err.Error())
		}
		return err
	}
	h.metrics.kept.Add(float64(added))
	h.metrics.duplicate.Add(float64(len(batches) - added))
	return nil
}

func rowsOf(all []store.Batch) (n int) {
	for i := range all {
		n += len(all[i].Windows) + len(all[i].Nodes) + len(all[i].Decisions) + len(all[i].Outcomes)
	}
	return n
}
