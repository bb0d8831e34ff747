// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"sync"
)

// errAbandoned is what whoever still holds an abandoned journal gets.
var errAbandoned = errors.New("the journal was given up: nothing is changed any more")

// gate is passed by each write: of a setting, and of the log.
type gate struct {
	mu        sync.Mutex
	writing   bool
	abandoned bool
}

// pass calls write, unless the journal was given up.
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

// Abandon gives up a journal whose user hangs, and may hold its locks: it is as if the
// process had been killed there. Nothing is written with it any more, and its directory may
// be opened again. It is false, and nothing has changed, while a write is under way: that
// may land after whatever is written next.
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
