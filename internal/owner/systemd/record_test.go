// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/kerneltest"
)

// Which answer ends a record: only that there is no such unit.
func TestWhatEndsARecord(t *testing.T) {
	const std = "org.freedesktop.DBus.Error."
	for _, c := range []struct {
		err  error
		ends bool
		kept bool // no manager has answered
	}{
		{dbus.Error{Name: service + ".NoSuchUnit"}, true, false},
		{dbus.Error{Name: std + "NotSupported"}, false, false},
		{dbus.Error{Name: std + "UnknownProperty"}, false, false},
		{dbus.Error{Name: std + "UnknownObject"}, false, false},
		{dbus.Error{Name: std + "AccessDenied"}, false, false},
		{dbus.Error{Name: std + "NoReply"}, false, true},
		{dbus.Error{Name: std + "ServiceUnknown"}, false, true},
		{context.DeadlineExceeded, false, true},
		{fmt.Errorf("connect: %w", errNotSent), false, true},
		{io.EOF, false, true},
	} {
		a, f := boot(t)
		j := open(t, filepath.Join(t.TempDir(), "journal"))
		j.Wrap(a).Apply(ctx, cpus("plain.service", 1))
		f.refuse = func(string) error { return c.err }
		got, err := j.Restore(ctx, a)
		if ended := len(j.Outstanding()) == 0; ended != c.ends || len(got) != 1 || (got[0].Result == journal.Kept) != c.kept {
			t.Errorf("%v: ended %v: %v, %v", c.err, ended, got, err)
		}
	}
}

// A transient unit that is made anew while systemd is asked has our value only because of
// its name: it is released again.
func TestMadeAnewMeanwhile(t *testing.T) {
	a, f := boot(t)
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	f.refuse = func(q string) error {
		if strings.HasPrefix(q, "set") && strings.HasSuffix(q, "=1") {
			// The old one stays elsewhere, or the new one could get its number.
			if err := os.Rename(f.root.Path("/run/systemd/transient/brief.service"), filepath.Join(t.TempDir(), "old")); err != nil {
				t.Fatal(err)
			}
			kerneltest.Write(t, f.root, kerneltest.Files{"/run/systemd/transient/brief.service": "[Service]\n"})
		}
		return nil
	}
	if o := j.Wrap(a).Apply(ctx, mems("brief.service", 1)); o.Status != action.Gone || f.state()["brief.service"] != " " || len(j.Outstanding()) != 0 {
		t.Errorf("%+v; %v", o, f.state())
	}
}

// A unit whose drop-in cannot be tidied up is put back all the same, and that is
// reported.
func TestUntidy(t *testing.T) {
	a, f := boot(t)
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	j.Wrap(a).Apply(ctx, cpus("plain.service", 1))
	a.empty = func(string, string) error { return errors.New("read-only file system") }
	got, err := j.Restore(ctx, a)
	if err != nil || len(got) != 1 || got[0].Result != journal.PutBack || !strings.Contains(got[0].Detail, "read-only") || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v; %v", got, err, f.state())
	}
}

// If the amount of memory elsewhere cannot be read, it may be large.
func TestUnknownElsewhere(t *testing.T) {
	a, f := boot(t)
	if err := os.Mkdir(f.root.Path(top+"/system.slice/plain.service/memory.numa_stat"), 0o755); err != nil { // EISDIR
		t.Fatal(err)
	}
	if o := (journal.DryRun{Owner: a}).Apply(ctx, mems("plain.service", 1)); o.Status != action.Failed {
		t.Errorf("%+v", o)
	}
}

// hung is a PID 1 that never answers.
type hung struct {
	bus
	asked int
}

func (h *hung) Unit(ctx context.Context, _ string) (unitState, error) {
	h.asked++
	<-ctx.Done()
	return unitState{}, ctx.Err()
}

// A manager that does not answer in time is not waited for again at once.
func TestSilenceIsWaitedForOnce(t *testing.T) {
	a, _ := boot(t)
	h := &hung{}
	a.bus, a.cfg.Limit = h, 20*time.Millisecond
	for range 50 {
		if _, err := a.Read(Setting("plain.service", CPUs)); !errors.Is(err, journal.ErrNoAnswer) {
			t.Errorf("%v", err)
		}
	}
	if h.asked != 1 {
		t.Errorf("asked %d times", h.asked)
	}
}
