// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/kernel/unix"
)

// A user who asks for costly answers in a loop gets a fifth of the time; others, and
// root, are not affected.
func TestCostlyAnswersArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ctx := newPace(), context.Background()
		looping, other, root := unix.Peer{UID: 1000}, unix.Peer{UID: 1001}, unix.Peer{}
		var busy time.Duration
		began := time.Now()
		for time.Since(began) < 100*time.Second {
			end, ok := p.begin(ctx, looping)
			if !ok {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if _, again := p.begin(ctx, looping); again {
				t.Fatal("two at once")
			}
			at := time.Now()
			for _, peer := range []unix.Peer{other, root} {
				end, ok := p.begin(ctx, peer)
				if !ok || time.Since(at) > 0 {
					t.Fatalf("%+v has to wait for another user", peer)
				}
				end()
			}
			time.Sleep(500 * time.Millisecond)
			busy += 500 * time.Millisecond
			end()
		}
		if share := busy.Seconds() / time.Since(began).Seconds(); share > 0.22 || share < 0.1 {
			t.Errorf("the user had %v of the time", share)
		}
		time.Sleep(time.Minute)
		if _, ok := p.begin(ctx, other); !ok || len(p.until) > 0 {
			t.Errorf("%v, %v are remembered", ok, p.until)
		}
	})
}

// One user's connections leave room for those of others.
func TestConnectionsOfOneUser(t *testing.T) {
	l := limit(nil, mostLocal).(*limited)
	var leave []func()
	for {
		f, ok := l.admit(1000, true)
		if !ok {
			break
		}
		leave = append(leave, f)
	}
	if len(leave) != mostOfUser {
		t.Errorf("one user has %d connections", len(leave))
	}
	if f, ok := l.admit(1001, true); !ok {
		t.Error("another user is kept out")
	} else {
		f()
	}
	leave[0]()
	leave[0]() // Close may be called several times
	if _, ok := l.admit(1000, true); !ok {
		t.Error("a place was not given back")
	}
	if _, ok := l.admit(1000, true); ok {
		t.Error("a place was given back twice")
	}
	for range mostLocal {
		l.admit(0, false)
	}
	if _, ok := l.admit(1002, true); ok || l.open != mostLocal {
		t.Errorf("%d connections", l.open)
	}
}
