// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/window"
)

// affinities is an owner of threads whose calls may hang.
type affinities struct {
	mu     sync.Mutex
	of     map[journal.Setting]string
	writes int
	stuck  func(call string) // nil: no call hangs
}

func affinityOf(tid int) journal.Setting {
	return journal.Setting{Cgroup: fmt.Sprint("thread ", tid), File: "affinity"}
}

func (a *affinities) call(name string) {
	if a.stuck != nil {
		a.stuck(name)
	}
}

func (a *affinities) Plan(_ context.Context, s action.Step) ([]journal.Change, error) {
	return []journal.Change{{Setting: affinityOf(s.Thread), New: s.CPUs.String()}}, nil
}

func (a *affinities) Read(s journal.Setting) (journal.Current, error) {
	a.call("read")
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.of[s]
	if !ok {
		return journal.Current{}, fmt.Errorf("read %s: %w", s, kernel.ErrGone)
	}
	return journal.Current{Value: v, ID: 7}, nil
}

func (a *affinities) Same(_ journal.Setting, current, recorded string) bool {
	return current == recorded
}

func (a *affinities) Write(_ journal.Permit, s journal.Setting, value string) error {
	a.call("write")
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[s], a.writes = value, a.writes+1
	return nil
}

func (a *affinities) Equivalent(journal.Setting, string) (string, error) { return "0-3", nil }
func (a *affinities) Move(context.Context, journal.Permit, action.Step) action.Outcome {
	return action.Outcome{}
}

func (a *affinities) have() (string, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[affinityOf(5)], a.writes
}

// hanging is a reader that hangs in one window.
type hanging struct {
	*world
	at    int
	stuck func()
}

func (h *hanging) Read(ctx context.Context) (window.Window, error) {
	w, err := h.world.Read(ctx)
	if h.world.reads == h.at {
		h.stuck()
	}
	return w, err
}

// TestEndsWhateverHangs: wherever the run hangs when it is told to end, it ends, the
// thread has its affinity back, and the call that hung changes nothing any more.
func TestEndsWhateverHangs(t *testing.T) {
	for _, in := range []string{"reading", "read", "write"} {
		synctest.Test(t, func(t *testing.T) { endsWhileHanging(t, in) })
	}
}

func endsWhileHanging(t *testing.T, in string) {
	dir, owner := t.TempDir(), &affinities{of: map[journal.Setting]string{affinityOf(5): "0-3"}}
	held, _, err := Open(t.Context(), dir, owner)
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	let := make(chan bool)
	hang := func() { cancel(); <-let }
	w := newWorld(5)
	h := &hanging{world: w, stuck: hang}
	if in == "reading" {
		h.at = 20
	}
	calls := 0
	owner.stuck = func(call string) { // only the step's call hangs, not the restoring one
		if calls++; call == in && ctx.Err() == nil {
			hang()
		}
	}
	o := w.options(once(3, true))
	o.Reader, o.Actor = h, held
	began := time.Now()
	sum, err := Run(ctx, o)
	if took := time.Since(began); took > endLimit+2*putBackLimit {
		t.Errorf("%s: it took %v to end", in, took)
	}
	if stuckWriting := in == "write"; !sum.Hung || stuckWriting != errors.Is(err, journal.ErrHangs) || !stuckWriting && err != nil {
		t.Errorf("%s: %+v, %v", in, sum, err)
	}
	at, writes := owner.have()
	if at != "0-3" || !strings.Contains(strings.Join(w.said, "\n"), "has hung for more than 10s") {
		t.Errorf("%s: the affinity is %s, said %q", in, at, w.said)
	}
	close(let)
	synctest.Wait()
	if _, n := owner.have(); in != "write" && n != writes {
		t.Errorf("%s: what hung has written %d times since", in, n-writes)
	}
}
