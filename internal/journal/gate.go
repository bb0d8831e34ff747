// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"sync"
)

// errAbandoned is the error for a caller that still holds an abandoned journal.
var errAbandoned = errors.New("the journal was given up: nothing is changed any more")

// Each write passes the gate: of a setting, and of the log.
type gate struct {
	mu        sync.Mutex
	writing   bool
	abandoned bool
}

// pass calls write, unless the journal was abandoned.
func (g *gate) pass(write func() error) error {
	g.mu.Lock()
	if g.abandoned {
		g.mu.Unlock()
		return errAbandoned
	}
	g.writing = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.writing = false
	}()
	return write()
}

// Abandon takes a journal from a user that hangs and may hold its locks, as if the
// process had been killed there. Nothing is written with it any more, and its directory
// may be opened again. It returns false, and changes nothing, while a write is under way:
// that write may land after whatever is written next.
func (j *Journal) Abandon() bool {
	j.gate.mu.Lock()
	defer j.gate.mu.Unlock()
	if j.gate.writing {
		return false
	}
	j.gate.abandoned = true
	j.store.Unlock()
	return true
}
