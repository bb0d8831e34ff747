// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/yamlfile"
)

// After a handover the bindings stay: the new program takes no step for a workload that is
// bound. An exec that fails changes nothing: the old program continues.
func TestHandoverKeepsBindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, w := newLoop(t, 2, unit.GiB)
		a.wake = make(chan struct{}, 1)
		var data []byte
		a.o.Exec = func(d []byte) error { data = d; return fmt.Errorf("hand over: %w", unix.ErrNoAnswer) }
		a.Exclude("/other", time.Now().Add(24*time.Hour))
		var rounds int
		run(t, a,
			func() { w.approve(true) },
			func() { time.Sleep(100 * testPeriod) },
			func() { rounds = w.seen(); a.HandOver() },
			func() { time.Sleep(30 * testPeriod) })
		if data == nil || w.seen() <= rounds {
			t.Fatalf("handed over %d bytes; %d rounds, then %d", len(data), rounds, w.seen())
		}
		if v, _ := a.View(); v.Status.Handover == nil || !v.Status.Handover.Later || !strings.Contains(v.Status.Handover.Error, unix.ErrNoAnswer.Error()) {
			t.Errorf("the status does not say why it was refused: %+v", v.Status.Handover)
		}
		var h handover
		if err := json.Unmarshal(data, &h); err != nil {
			t.Fatal(err)
		}
		bound := 0
		for _, j := range h.Loop.Jobs.Jobs {
			if j.Stage == actuate.StageBound {
				bound++
			}
		}
		if bound != 2 {
			t.Fatalf("%d of 2 are bound: %s", bound, data)
		}
		before := len(w.taken())
		b := &Agent{o: Options{Config: a.o.Config, Log: a.o.Log, Handed: data}, reader: w, apply: w, past: map[string][]Decision{}}
		b.takeOver(b.readHanded())
		if again, err := b.handoverState(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("it took over something else: %v\n%s\n%s", err, again, data)
		}
		run(t, b, func() { time.Sleep(50 * testPeriod) })
		for _, s := range w.taken()[before:] {
			t.Errorf("a step after the handover: %+v", s)
		}
	})
}

// The new program keeps what is set if the journal is as it was handed over. If another
// homenode has changed it, or the state cannot be used, it puts everything back.
func TestTakeOver(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h *handover, dir string)
		kept   bool
	}{
		"as it was":               {func(*handover, string) {}, true},
		"another form":            {func(h *handover, _ string) { h.Schema++ }, false},
		"another state folder":    {func(h *handover, _ string) { h.StateDir = "/elsewhere" }, false},
		"the journal has changed": {func(h *handover, _ string) { h.Journal-- }, false},
		"nothing was handed over": {func(h *handover, _ string) { *h = handover{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			owner, dir := newCpusets(), t.TempDir()
			j, err := journal.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			if o := j.Wrap(owner).Apply(t.Context(), action.Step{Kind: action.SetCPUs, Workload: "/demo/a", CPUs: set.FromCPUs(1)}); o.Status != action.Done {
				t.Fatal(o)
			}
			h := handover{Schema: handoverSchema, StateDir: dir, Journal: j.Seq()}
			if err := j.Close(); err != nil { // as execve does
				t.Fatal(err)
			}
			c.change(&h, dir)
			data, err := json.Marshal(h)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			a := &Agent{o: Options{Config: Config{StateDir: dir}, Handed: data, Log: slog.New(slog.NewTextHandler(&log, nil))}, owner: owner}
			if err := a.openJournal(context.Background(), &kernel.Config{}, a.readHanded()); err != nil {
				t.Fatal(err)
			}
			defer a.journal.Close()
			want := map[bool]string{true: "1", false: "0-3"}[c.kept]
			if got := owner.files[cpusOfA]; got != want || c.kept != (len(a.journal.Outstanding()) == 1) {
				t.Errorf("the CPUs are %s, want %s; on record: %v; log:\n%s", got, want, a.journal.Outstanding(), log.String())
			}
			if c.kept == strings.Contains(log.String(), "not used") {
				t.Errorf("log:\n%s", log.String())
			}
		})
	}
}

// The new program says whether it would start, so a key that only it knows is no mistake. What
// it cannot continue with is refused.
func TestHandoverAsksTheNewProgram(t *testing.T) {
	c, err := ParseConfig([]byte("state_dir: /s\ndirect_owners: [kubelet]\n"), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		next func(*Check) error
		want string
	}{
		"it would start":           {func(*Check) error { return nil }, ""},
		"it refuses":               {func(c *Check) error { c.Errors = yamlfile.Problems(wrongConfig(t)); return nil }, "c.yaml:2: period: "},
		"it does not answer":       {func(*Check) error { return errors.New("it hangs") }, "does not say whether it would start: it hangs"},
		"another journal":          {func(c *Check) error { c.Owners.StateDir = "/t"; return nil }, "state_dir has changed, which needs a restart"},
		"another way to act":       {func(c *Check) error { c.Owners.DirectOwners = nil; return nil }, "direct_owners has changed"},
		"it says nothing of these": {func(c *Check) error { c.Owners = nil; return nil }, "state_dir has changed"},
	} {
		a := &Agent{o: Options{Config: c, Exec: func([]byte) error { return nil }, Load: func() (Config, error) { return Config{}, errors.New("a new key") }}, started: c}
		a.o.Next = func(context.Context) (Check, error) {
			answer := Check{Owners: ownersOf(c)}
			err := x.next(&answer)
			return answer, err
		}
		err := a.mayHandOver(t.Context())
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

func wrongConfig(t *testing.T) error {
	t.Helper()
	_, err := ParseConfig([]byte("mode: act\nperiod: 10\n"), "c.yaml")
	if err == nil {
		t.Fatal("period: 10 is taken")
	}
	return err
}
