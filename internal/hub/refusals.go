// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"
	"sync"
	"time"
)

// Refusal is something that was not let in or not taken.
type Refusal struct {
	At     time.Time // of the last
	Since  time.Time // of the first of this kind
	Count  int       // of this host and reason
	Host   string    // by its certificate; "": it has none that is good
	From   string    // address
	Reason string    // a word: wire.Reasons, and those of certificates
	Detail string    // of the last
}

// mostRefusals bounds what is remembered: a reason of a host is one entry, so that a host
// cannot push the others out.
const mostRefusals = 1000

type refusals struct {
	mu   sync.Mutex
	list []Refusal // oldest first
}

// add says whether this kind of refusal is new.
func (r *refusals) add(x Refusal) (fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.Since, x.Count = x.At, 1
	x.Detail = x.Detail[:min(len(x.Detail), 512)]
	i := slices.IndexFunc(r.list, func(y Refusal) bool {
		return y.Host == x.Host && y.Reason == x.Reason && (x.Host != "" || y.From == x.From)
	})
	if fresh = i < 0; !fresh {
		x.Since, x.Count = r.list[i].Since, r.list[i].Count+1
		r.list = slices.Delete(r.list, i, i+1)
	}
	if len(r.list) >= mostRefusals {
		r.list = slices.Delete(r.list, 0, 1)
	}
	r.list = append(r.list, x)
	return fresh
}

func (r *refusals) all() []Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.list)
	slices.Reverse(out)
	return out
}
