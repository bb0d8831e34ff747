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
	names "homenode/internal/kernel/cgroup"
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

// Host is this host for the screen: its windows, and the way to act on it. The loop's
// policy is what the person asks for; the journal records each step first. Host opens
// the journal only when an action is applied, and keeps it until it ends.
type Host struct {
	cfg    agent.Config
	labels names.Labeller
	period time.Duration

	wake chan struct{} // buffer of one; Apply sends when an action waits

	mu      sync.Mutex // Next runs in parallel to Plan and Apply, and Close to all of them
	closed  bool
	reader  Reader
	next    time.Time // time of the next read
	soonest time.Time // time of the next read if an action waits
	reads   int
	last    window.Window
	loop    control.Loop
	journal *journal.Journal // nil: nothing has been applied yet
	beside  agent.Beside     // what another homenode has set, while the journal is not open
	owner   journal.Owner
	shared  string // what cannot be done with shared pages
	moving  *background
	wanted  []action.Action // actions for the next window
}

// Open reads the running kernel; it opens no journal before Apply.
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

// ours is called while a window is read.
func (h *Host) ours(id, file, value string) bool {
	if h.journal != nil {
		return h.journal.Ours(id, file, value)
	}
	return h.beside.Ours(id, file, value)
}

// soon is the shortest window with useful rates.
const soon = time.Second

// errClosed is returned after Close.
var errClosed = errors.New("homenode top has ended")

// lock locks the mutex. It fails without the lock if the context has ended or Close
// was called while it waited.
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

// wait ends when a window is due: when the period is over, or after soon if an
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
// Rates need two reads: the second one comes sooner.
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

// arrange limits a window's moves to one period.
func (h *Host) arrange() { h.loop.Actuate, h.loop.Period = h.cfg.Actuate, h.period }

// world is the loop's world. Moves continue in the background until the next
// window is read.
type world struct{ *Host }

func (w world) Machine() machine.Machine { return w.reader.Machine() }

func (w world) Read(ctx context.Context) (window.Window, error) {
	if w.journal == nil {
		_ = w.beside.Look() // if unreadable, no setting is known to be homenode's
	}
	win, err := w.reader.Read(ctx)
	if err != nil {
		return window.Window{}, err
	}
	w.cfg.Name(&win)
	w.labels.Name(&win)
	win.Outcomes = append(win.Outcomes, w.takeMoved()...)
	return win, nil
}

// takeWanted is the loop's policy: what the person asked for.
func (h *Host) takeWanted(machine.Machine, window.Window) []action.Action {
	wanted := h.wanted
	h.wanted = nil
	return wanted
}

// journalled is the loop's applier. There are no steps before Apply has opened the
// journal.
type journalled struct{ *Host }

func (j journalled) Apply(ctx context.Context, steps []action.Step, tell func(action.Outcome)) {
	take := j.journal.Wrap(j.owner).Apply
	later := func(ctx context.Context, moves []action.Step) { j.startMoves(ctx, take, moves) }
	control.InOrder{Take: take, Now: time.Now, Later: later}.Apply(ctx, steps, tell)
}

// endGone ends the records of bound workloads that have ended. If that fails, Close lists
// the workload as still bound.
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
		h.shared = ", except those that several processes map (that needs CAP_SYS_NICE)"
	}
	owner, err := agent.OwnersWith(cgroup.Config{DirectOwners: h.cfg.DirectOwners, Mover: mover}, h.cfg.Runtimes)
	if err != nil {
		return err
	}
	h.owner = owner
	return nil
}

// free returns an error if another homenode decides on this host.
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
	return fmt.Errorf("another homenode (pid %s) is running and decides on this host: stop it, or leave the binding to it", pid)
}

// Apply opens the journal, if it is not open yet, and keeps the action for the next
// window, which then comes soon.
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
	default: // the loop is awake already
	}
	return nil
}

// takeJournal refuses a damaged journal. What cannot be read of it would be taken for
// another program's setting, and kept as the state before.
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
