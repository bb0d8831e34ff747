// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"

	"homenode/internal/action"
	"homenode/internal/kernel/migrate"
	"homenode/internal/set"
)

// hotPages are the accessed pages that were found in a workload, kept while it is moved.
type hotPages struct {
	to    set.NodeSet
	pages migrate.Hot // nil: they have arrived, or are unknown
	at    int         // the last move that used it
}

func (h hotPages) done() hotPages {
	h.pages = nil
	return h
}

// hotLife is the number of moves, of any workload, after which unused hot pages are
// dropped: then another migration begins with another look.
const hotLife = 64

// hotFirst chooses what to move before all else: the pages that are accessed now. They
// are part of a workload's memory, often a small part, and all of the gain comes from
// them (MAO names moving the working set as future work).
//
//  1. One look for each migration: its first move waits for it. What becomes hot later is
//     moved with the rest.
//  2. When the hot pages have arrived, or are unknown, the rest follows.
func (a *Applier) hotFirst(ctx context.Context, step action.Step, req migrate.Request) (migrate.Request, bool) {
	if !step.HotFirst || a.cfg.Hot == nil {
		return req, false
	}
	a.moves++
	for id, h := range a.seen {
		if a.moves-h.at > hotLife {
			delete(a.seen, id)
		}
	}
	h, known := a.seen[step.Workload]
	if !known || h.to != step.Nodes { // 1
		h = hotPages{to: step.Nodes}
		if pages, err := a.cfg.Hot(ctx, req.PIDs); err == nil {
			h.pages = pages
		}
	}
	h.at = a.moves
	if a.seen == nil {
		a.seen = map[string]hotPages{}
	}
	a.seen[step.Workload] = h
	req.Hot, req.Cache = h.pages, false // unmapped pages are not accessed by address
	return req, h.pages != nil          // 2
}
