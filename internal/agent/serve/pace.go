// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"sync"
	"time"

	"homenode/internal/kernel/unix"
)

// pause is how long a user waits after a costly answer, as a multiple of its duration: a
// user gets a fifth of a CPU at most. A wait of up to shortPause is done for the user, a
// longer one is refused.
const (
	pause      = 4
	shortPause = time.Second
)

// pace rations costly answers by user. Root is not rationed.
type pace struct {
	mu    sync.Mutex
	busy  map[uint32]bool
	until map[uint32]time.Time
}

func newPace() *pace { return &pace{busy: map[uint32]bool{}, until: map[uint32]time.Time{}} }

// begin is false where the user has an answer under way, or had one too recently. end is
// called after the answer.
func (p *pace) begin(ctx context.Context, peer unix.Peer) (end func(), ok bool) {
	if peer.UID == 0 {
		return func() {}, true
	}
	p.mu.Lock()
	p.forget()
	wait := time.Until(p.until[peer.UID])
	if p.busy[peer.UID] || wait > shortPause {
		p.mu.Unlock()
		return nil, false
	}
	p.busy[peer.UID] = true
	p.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-ctx.Done():
	}
	began := time.Now()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.busy, peer.UID)
		p.until[peer.UID] = time.Now().Add(pause * time.Since(began))
	}, true
}

// forget keeps the map small.
func (p *pace) forget() {
	for uid, until := range p.until {
		if time.Now().After(until) {
			delete(p.until, uid)
		}
	}
}
