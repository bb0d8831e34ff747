// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/control"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/owner/cgroup"
	"homenode/internal/tui"
	"homenode/internal/window"
)

// Reader is kernel.Reader, or a fake.
type Reader interface {
	Read(ctx context.Context) (window.Window, error)
	Machine() machine.Machine
	Close()
}

// Host is this host for the screen: its windows, and the way to act on it. What is asked
// for by hand is the policy of the loop; the journal stands before each step. It takes
// the journal only when something is to be applied, and keeps it until it ends.
type Host struct {
	cfg    agent.Config
	period time.Duration

	wake chan struct{} // holds one; Apply: an action waits

	mu      sync.Mutex // Next runs beside Plan and Apply, and Close beside all of them
	closed  bool
	reader  Reader
	next    time.Time // when to read
	soonest time.Time // when to read if an action waits
	reads   int
	last    window.Window
	loop    control.Loop
	journal *journal.Journal // nil: nothing was applied yet
	beside  agent.Beside     // what another homenode has set, while there is no journal
	owner   journal.Owner
	shared  string // what of shared pages cannot be done
	moving  *background
	wanted  []action.Action // for the next window
}

// Open reads the running kernel; it takes no journal until Apply.
func Open(c agent.Config, period time.Duration) (*Host, error) {
	h := newHost(c, period)
	reader, err := kernel.NewReader(kernel.Config{Roots: c.Cgroups, UserOnly: c.UserOnly, Ours: h.ours})
	if err != nil {
		return nil, err
	}
	h.reader = reader
	return h, nil
}

func newHost(c agent.Config, period time.Duration) *Host {
	h := &Host{cfg: c, period: period, wake: make(chan struct{}, 1), beside: agent.Beside{Dir: c.StateDir}}
	h.loop = control.Loop{World: world{h}, Policy: control.PolicyFunc(h.takeWanted), Applier: journalled{h}}
	return h
}

// ours is asked while a window is read.
func (h *Host) ours(id, file, value string) bool {
	if h.journal != nil {
		return h.journal.Ours(id, file, value)
	}
	return h.beside.Ours(id, file, value)
}

// soon is the shortest window that still has rates worth showing.
const soon = time.Second

// errClosed is returned after Close.
var errClosed = errors.New("homenode top has ended")

// lock takes the mutex. It fails, and does not hold it, where the context has ended or
// Close was called while it waited.
func (h *Host) lock(ctx context.Context) error {
	h.mu.Lock()
	err := ctx.Err()
	if err == nil && h.closed {
		err = errClosed
	}
	if err != nil {
		h.mu.Unlock()
	}
	return err
}

// wait ends when a window is to be read: when the period is over, or soon where an
// action waits for it.
func (h *Host) wait(ctx context.Context) error {
	for {
		if err := h.lock(ctx); err != nil {
			return err
		}
		next := h.next
		if len(h.wanted) > 0 {
			next = h.soonest
		}
		h.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.wake:
		case <-time.After(time.Until(next)):
			return nil
		}
	}
}

// Next waits until a period is over, or an action waits, and runs one round of the loop.
// Rates need two reads: the second comes sooner.
func (h *Host) Next(ctx context.Context) (tui.Frame, error) {
	if err := h.wait(ctx); err != nil {
		return tui.Frame{}, err
	}
	if err := h.awaitMoves(ctx); err != nil {
		return tui.Frame{}, err
	}
	if err := h.lock(ctx); err != nil {
		return tui.Frame{}, err
	}
	defer h.mu.Unlock()
	now := time.Now()
	h.next, h.soonest = now.Add(h.period), now.Add(min(h.period, soon))
	if h.reads++; h.reads == 1 {
		h.next = h.soonest
	}
	h.arrange()
	r, err := h.loop.Round(ctx)
	if err != nil {
		return tui.Frame{}, err
	}
	h.last = r.Window
	h.endGone(ctx)
	return tui.Frame{Machine: h.reader.Machine(), Window: r.Window}, nil
}

// arrange has a window's moves take no longer than a period.
func (h *Host) arrange() { h.loop.Actuate, h.loop.Period = h.cfg.Actuate, h.period }

// world is the loop's. Moves go on beside it until the next window is read.
type world struct{ *Host }

func (w world) Machine() machine.Machine { return w.reader.Machine() }

func (w world) Read(ctx context.Context) (window.Window, error) {
	if w.journal == nil {
		_ = w.beside.Look() // unreadable: then nothing is known to be homenode's
	}
	win, err := w.reader.Read(ctx)
	if err != nil {
		return window.Window{}, err
	}
	w.cfg.Name(&win)
	win.Outcomes = append(win.Outcomes, w.takeMoved()...)
	return win, nil
}

// takeWanted is the loop's policy: what was asked for by hand.
func (h *Host) takeWanted(machine.Machine, window.Window) []action.Action {
	wanted := h.wanted
	h.wanted = nil
	return wanted
}

// journalled is the loop's applier. There are no steps before Apply has taken the journal.
type journalled struct{ *Host }

func (j journalled) Apply(ctx context.Context, steps []action.Step, tell func(action.Outcome)) {
	take := j.journal.Wrap(j.owner).Apply
	later := func(ctx context.Context, moves []action.Step) { j.startMoves(ctx, take, moves) }
	control.InOrder{Take: take, Now: time.Now, Later: later}.Apply(ctx, steps, tell)
}

// endGone ends the records of workloads that were bound when they ended. Where that fails,
// Close lists the workload as still bound.
func (h *Host) endGone(ctx context.Context) {
	if h.journal != nil && ctx.Err() == nil {
		_ = agent.EndGone(h.journal, h.owner, h.last)
	}
}

// open makes the owner, which plans and writes.
func (h *Host) open() error {
	if h.owner != nil {
		return nil
	}
	mover, shared, err := agent.NewMover()
	if err != nil {
		return err
	}
	if !shared {
		h.shared = ", without those that several processes map (that needs CAP_SYS_NICE)"
	}
	owner, err := agent.OwnersWith(cgroup.Config{DirectOwners: h.cfg.DirectOwners, Mover: mover}, h.cfg.Runtimes)
	if err != nil {
		return err
	}
	h.owner = owner
	return nil
}

// free returns an error where another homenode decides here.
func (h *Host) free() error {
	if h.journal != nil {
		return nil
	}
	pid, err := journal.Holder(h.cfg.StateDir)
	if err == nil && pid != "" {
		err = heldBy(pid)
	}
	return err
}

func heldBy(pid string) error {
	return fmt.Errorf("another homenode (pid %s) is running and decides here: stop it, or leave the binding to it", pid)
}

// Apply takes the journal, if it has not yet, and leaves the action for the next window,
// which then comes soon.
func (h *Host) Apply(ctx context.Context, a action.Action) error {
	if err := h.lock(ctx); err != nil {
		return err
	}
	defer h.mu.Unlock()
	if err := h.open(); err != nil {
		return err
	}
	if err := h.takeJournal(); err != nil {
		return err
	}
	h.wanted = append(h.wanted, a)
	select {
	case h.wake <- struct{}{}:
	default: // it is awake already
	}
	return nil
}

// takeJournal refuses a journal that was damaged: what cannot be read of it would be taken
// for another program's setting, and kept as what was there before.
func (h *Host) takeJournal() error {
	if h.journal != nil {
		return nil
	}
	if err := h.free(); err != nil {
		return err
	}
	j, err := journal.Open(h.cfg.StateDir)
	if err != nil {
		return err
	}
	if err := j.Damage(); err != nil {
		return errors.Join(err, j.Close())
	}
	h.journal = j
	return nil
}
