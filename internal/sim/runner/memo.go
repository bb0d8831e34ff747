// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"encoding/json"
	"sync"

	"homenode/internal/sim/memsys"
)

// Memo lets worlds that differ only in chance share a search by hand, of the same workloads
// on the same machine. The search then ignores where memory is (chance decided that), so
// its result does not depend on which world searched first. Several goroutines may use it
// at a time.
type Memo struct {
	lock  sync.Mutex
	found map[string]*memoEntry
}

type memoEntry struct {
	once sync.Once
	best Placement
}

// search is Search of an Oracle, or its earlier result. The key is the system's name and
// the specs: systems of the same name count as one.
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
		if err != nil { // a NaN or infinity: there is no key for it
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
	if stop != nil && stop() { // the search may be incomplete
		m.lock.Lock()
		delete(m.found, string(key))
		m.lock.Unlock()
	}
	return e.best
}
