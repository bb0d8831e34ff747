// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"homenode/internal/control"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/mao"
	"homenode/internal/window"
)

// An upgrade replaces the agent's program and keeps its bindings:
//
//	old program: a round ends ─▶ state into memory of this process ─▶ execve ┐
//	new program: journal ─▶ is the journal as it was? ─▶ state ─▶ next round ┘
//
// The process stays the same, so its manager sees no end and no start, and nothing is put
// back or bound again. It is safe, because the state cannot outlive the process:
//
//  1. Until execve nothing is changed. If it fails, the old program continues.
//  2. A kill at any point ends the process and the state with it. What is set is on record
//     in the journal as ever, and ExecStopPost, 'homenode restore' or the next start puts it
//     back.
//  3. execve gives up the journal's lock, and the new program takes it. If another homenode
//     has changed the journal in between, or the new program cannot use the state, it
//     restores everything, as after a kill.
//  4. If the new program does not start, its process ends, as in 2.

// handoverSchema is the version of the state. A program takes over only its own version's.
const handoverSchema = 2

// handover is what the new program needs in order to continue.
type handover struct {
	Schema   int                   `json:"schema"`
	StateDir string                `json:"state_dir"`
	Journal  uint64                `json:"journal_seq"` // its last record
	Window   uint64                `json:"window_seq"`  // the last window's number
	Rounds   uint64                `json:"rounds"`
	Loop     control.Progress      `json:"loop"`
	Policy   mao.State             `json:"policy"`
	Past     map[string][]Decision `json:"past,omitempty"`
	Excluded []Excluded            `json:"excluded,omitempty"`
}

// Handover is one that was refused: the agent continues as the program that it was.
type Handover struct {
	At    time.Time `json:"at"`
	Error string    `json:"error"`
	Later bool      `json:"later"` // it may succeed later, without a change
}

// HandOver makes the agent replace its program after this round. It is safe to call at
// any time, from any goroutine.
func (a *Agent) HandOver() {
	a.leaving.Store(true)
	a.awake()
}

// handOver returns if the program could not be replaced: then the loop continues.
func (a *Agent) handOver(ctx context.Context) {
	data, err := a.handoverState()
	if err == nil {
		err = a.mayHandOver(ctx)
	}
	if err == nil {
		a.saveHistory(a.status.Window.At, true)
		a.o.Log.Info("the program is replaced; bindings stay", "workloads", len(a.control.Jobs().Jobs))
		a.closeOutbox() // what waits for the disk must not end with this program
		err = a.o.Exec(data)
		if again := a.openOutbox(); again != nil {
			a.o.Log.Error("nothing is sent any more", "error", again)
		}
	}
	a.o.Log.Error("the program is not replaced: this one continues", "error", err)
	a.tellRefused(Handover{At: time.Now().Round(0), Error: err.Error(), Later: errors.Is(err, unix.ErrNoAnswer)})
}

// tellRefused puts it into status and View now: 'homenode handover' waits for it.
func (a *Agent) tellRefused(h Handover) {
	a.status.Handover = &h
	if v, ok := a.View(); ok {
		v.Status.Handover = &h
		a.view.Store(&v)
	}
	a.wrote("status", a.status.write(a.o.Config.StateDir, a.readers))
}

// mayHandOver refuses what the new program could not continue with. Only that program knows its
// configuration's keys, so it is asked.
func (a *Agent) mayHandOver(ctx context.Context) error {
	if a.o.Exec == nil {
		return fmt.Errorf("replace the program: this agent cannot be replaced while it runs")
	}
	if a.o.Next == nil {
		return ctx.Err()
	}
	next, err := a.o.Next(ctx)
	if err != nil {
		return fmt.Errorf("replace the program: the new one does not say whether it would start: %w", err)
	}
	if n := len(next.Errors); n > 0 {
		first := next.Errors[0]
		return fmt.Errorf("replace the program: the new one would refuse its configuration: %s:%d: %s: %s (mistakes: %d)", first.File, first.Line, first.Path, first.Text, n)
	}
	if a.o.DryRun {
		return ctx.Err()
	}
	if name := differs(ownersOf(a.started), next.Owners); name != "" {
		return fmt.Errorf("replace the program: %s has changed, which needs a restart", name)
	}
	return ctx.Err()
}

// OwnerSettings are the settings that say where the journal is and who acts. With others the new
// program could not put back what is set.
type OwnerSettings struct {
	StateDir         string   `json:"state_dir"`
	DirectOwners     []string `json:"direct_owners"`
	DockerSocket     string   `json:"docker_socket"`
	DockerMemory     string   `json:"docker_memory"`
	ContainerdSocket string   `json:"containerd_socket"`
}

func ownersOf(c Config) *OwnerSettings {
	return &OwnerSettings{c.StateDir, append([]string{}, c.DirectOwners...), c.Runtimes.DockerSocket, c.Runtimes.DockerMemory, c.Runtimes.ContainerdSocket}
}

// differs names a setting that is another one in b; "" if none is.
func differs(a, b *OwnerSettings) string {
	if b == nil {
		return "state_dir"
	}
	old, now := reflect.ValueOf(*a), reflect.ValueOf(*b)
	for i := range old.NumField() {
		if !reflect.DeepEqual(old.Field(i).Interface(), now.Field(i).Interface()) {
			return old.Type().Field(i).Tag.Get("json")
		}
	}
	return ""
}

func (a *Agent) handoverState() ([]byte, error) {
	h := handover{
		Schema: handoverSchema, StateDir: a.o.Config.StateDir, Window: a.status.Window.Seq, Rounds: a.status.Rounds,
		Loop: a.control.Progress(), Policy: a.policy, Past: a.past, Excluded: a.excludedNow(time.Now()),
	}
	if a.journal != nil {
		h.Journal = a.journal.Seq()
	}
	data, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("replace the program: its state: %w", err)
	}
	return data, nil
}

// readHanded returns nil if nothing usable was handed over.
func (a *Agent) readHanded() *handover {
	if a.o.Handed == nil {
		return nil
	}
	var h handover
	err := json.Unmarshal(a.o.Handed, &h)
	a.o.Handed = nil
	if err == nil && h.Schema != handoverSchema {
		err = exit.BadInput(fmt.Errorf("its form is %d, this program knows %d", h.Schema, handoverSchema))
	}
	if err != nil {
		a.o.Log.Warn("what the program before handed over is not used", "error", err)
		return nil
	}
	return &h
}

func (h *handover) seq() uint64 {
	if h == nil {
		return 0
	}
	return h.Window
}

// refuse says why the state does not fit the journal; "" if it fits, or there is none.
func (h *handover) refuse(j *journal.Journal, c Config) string {
	switch {
	case h == nil:
		return ""
	case h.StateDir != c.StateDir: // only if another program has another default
		return fmt.Sprintf("its journal is in %s: run 'homenode restore --state %s'", h.StateDir, h.StateDir)
	case j.Damage() != nil:
		return "the journal was damaged"
	case h.Journal != j.Seq():
		return fmt.Sprintf("another homenode has changed the journal since (record %d, not %d)", j.Seq(), h.Journal)
	}
	return ""
}

// takeOver continues where the program before ended.
func (a *Agent) takeOver(h *handover) {
	if h == nil {
		return
	}
	a.control.Continue(h.Loop)
	a.policy = h.Policy
	a.status.Rounds = h.Rounds
	a.status.Window = window.Window{Seq: h.Window}
	if h.Past != nil {
		a.past = h.Past
	}
	for _, e := range h.Excluded {
		if a.excluded == nil {
			a.excluded = map[string]time.Time{}
		}
		a.excluded[e.Workload] = e.Until
	}
	if n := len(h.Loop.Jobs.Jobs); n > 0 {
		a.status.Recovered = append(a.status.Recovered, fmt.Sprintf("the program was replaced: %d bindings stayed", n))
	}
	a.o.Log.Info("taken over from the program before; bindings stay", "workloads", len(h.Loop.Jobs.Jobs))
}
