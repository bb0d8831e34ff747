// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"sync"

	"homenode/internal/sim/memsys"
)

// Memo lets worlds that differ in chance only share a search by hand: of the same
// workloads on the same machine. Where memory is already is left out of it then (chance
// decided that), so that what comes of it does not depend on whose search was first. It
// may be used by several at a time.
type Memo struct {
	lock  sync.Mutex
	found map[string]*memoEntry
}

type memoEntry struct {
	once sync.Once
	best Placement
}

// search is Search of an Oracle, or what it found before. A key is the system's name and
// the specs: systems of one name are one.
func (m *Memo) search(sys *memsys.System, here []Contender, stop func() bool) Placement {
	if m == nil {
		return bestPlaced(sys, here, stop)
	}
	key := []byte(sys.Name)
	for i := range here {
		here[i].Pages = nil
		data, err := json.Marshal(struct {
			Spec  any
			Fixed Nodes
		}{here[i].Spec, here[i].Fixed})
		if err != nil { // a figure that is none: it has no name to be found by
			return bestPlaced(sys, here, stop)
		}
		key = append(append(key, '\n'), data...)
	}
	m.lock.Lock()
	if m.found == nil {
		m.found = map[string]*memoEntry{}
	}
	e := m.found[string(key)]
	if e == nil {
		e = &memoEntry{}
		m.found[string(key)] = e
	}
	m.lock.Unlock()
	e.once.Do(func() { e.best = bestPlaced(sys, here, stop) })
	if stop != nil && stop() { // it may be half of one
		m.lock.Lock()
		delete(m.found, string(key))
		m.lock.Unlock()
	}
	return e.best
}
