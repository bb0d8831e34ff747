// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"sync"
	"time"

	"homenode/internal/render"
)

// Health says whether an agent is alive, and whether it can do its work.
//
//	alive   the last round ended within three periods: the loop runs
//	ready   it is alive, the journal is open (or it is a dry run), and the last window
//	        is at most three periods old
//
// An agent that is not alive should be killed and restarted. One that is not ready
// needs a person's attention.
type Health struct {
	Alive bool     `json:"alive"`
	Ready bool     `json:"ready"`
	Why   []string `json:"why,omitempty"` // reasons for what is false
}

// pulse is what the loop reports about itself. It may be read at any time.
type pulse struct {
	mu      sync.Mutex
	started time.Time
	round   time.Time     // end of the last round; zero: none has ended
	window  time.Time     // when the last window was read
	period  time.Duration // until the next round
	journal bool
	failure string // failure of the last round; "": none
	ended   bool
}

const lateAfter = 3 // periods

func (p *pulse) begin(now time.Time, period time.Duration, journal bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started, p.period, p.journal, p.ended = now, period, journal, false
}

// beat marks the end of a round.
func (p *pulse) beat(now time.Time, period time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round, p.period, p.failure = now, period, ""
	if err != nil {
		p.failure = err.Error()
		return
	}
	p.window = now
}

func (p *pulse) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// health returns the health as of now. The first round has as much time as any
// other.
func (p *pulse) health(now time.Time) Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := lateAfter * max(p.period, time.Second)
	since := p.round
	if since.IsZero() {
		since = p.started
	}
	h := Health{Alive: !p.ended && !since.IsZero() && now.Sub(since) <= limit}
	switch {
	case p.ended:
		h.Why = append(h.Why, "it is ending")
	case since.IsZero():
		h.Why = append(h.Why, "it has not begun")
	case !h.Alive:
		h.Why = append(h.Why, fmt.Sprintf("no round has ended for %s: more than %d periods", render.Span(now.Sub(since)), lateAfter))
	}
	h.Ready = h.Alive
	if p.window.IsZero() {
		h.Ready = false
		h.Why = append(h.Why, "no window has been read yet"+because(p.failure))
	} else if age := now.Sub(p.window); age > limit {
		h.Ready = false
		h.Why = append(h.Why, fmt.Sprintf("the last window is %s old%s", render.Span(age), because(p.failure)))
	}
	if !p.journal {
		h.Ready = false
		h.Why = append(h.Why, "the journal is not open")
	}
	return h
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// Health is safe to call at any time, from any goroutine.
func (a *Agent) Health() Health { return a.pulse.health(time.Now()) }
