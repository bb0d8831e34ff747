// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"

	"homenode/internal/action"
	"homenode/internal/kernel/migrate"
	"homenode/internal/set"
)

// hotPages is what was found to be accessed in a workload, for as long as it is moved.
type hotPages struct {
	to    set.NodeSet
	pages migrate.Hot // nil: they are there, or nobody can tell
	at    int         // the move that went by it last
}

func (h hotPages) done() hotPages {
	h.pages = nil
	return h
}

// hotLife is how many moves, of whatever workload, it is kept for without being used:
// then another journey begins with another look.
const hotLife = 64

// hotFirst says what to move before all else: the pages that are accessed now. They
// are a part of a workload's memory, often a small one, and all that it gains comes
// from them (MAO names moving the working set as future work).
//
//  1. One look for a journey: its first move waits for it. What becomes hot later is
//     moved with the rest.
//  2. When those are home, or nobody can tell which they are, the rest follows.
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
	req.Hot, req.Cache = h.pages, false // pages that nobody maps are not accessed by address
	return req, h.pages != nil          // 2
}
