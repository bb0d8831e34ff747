// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/agent/outbox"
	"homenode/internal/cli/clitest"
	"homenode/internal/store"
	"homenode/internal/store/sqlite"
)

// smallDisk mounts a file system of a size, and returns what makes it larger.
func smallDisk(t *testing.T, dir, size string) (grow func()) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("homenode-test", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no file system can be mounted here (run it as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return func() {
		t.Helper()
		if err := syscall.Mount("homenode-test", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
			t.Fatal(err)
		}
	}
}

// sender offers windows, each with a name of its own.
type sender struct {
	*outbox.Outbox
	t     *testing.T
	saved map[string]bool
}

func newSender(t *testing.T, dir, spool string) *sender {
	t.Helper()
	o, err := outbox.New(outboxOf(dir, "host", spool), slog.New(slog.DiscardHandler), outbox.Clock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return &sender{o, t, map[string]bool{}}
}

// offer offers windows of workloads of their own, a kilobyte each before compression, until
// something is so.
func (s *sender) offer(what string, until func(outbox.Status) bool) {
	s.t.Helper()
	const most = 20_000
	for ; len(s.saved) < most; time.Sleep(time.Millisecond) {
		if until(s.Status()) {
			return
		}
		at, name := time.Now(), fmt.Sprint("/w", len(s.saved))
		s.Put(store.Batch{
			Windows:   []store.Window{{At: at, Length: time.Second, Workload: name}},
			Decisions: []store.Decision{{At: at, Kind: "bind", Workload: name, Rule: "r", Sentence: strings.Repeat("why ", 250)}},
		})
		s.saved[name] = true
	}
	s.t.Fatalf("not within %d windows: %s: %+v", most, what, s.Status())
}

// drain waits until the hub has all. A decision goes at once, with all that is before it.
func (s *sender) drain() {
	s.t.Helper()
	for limit := time.Now().Add(2 * time.Minute); s.Status().Waiting > 0 || s.Status().Sent < uint64(len(s.saved)); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			s.t.Fatalf("not everything was sent within two minutes: %+v", s.Status())
		}
	}
	if d := s.Status(); len(d.Dropped) > 0 || d.Disk != "" || d.Error != "" {
		s.t.Errorf("in the end: %+v", d)
	}
}

// everythingOnce: the store has each window and decision once.
func (s *sender) everythingOnce(file string) {
	s.t.Helper()
	db, err := sqlite.Open(context.Background(), file)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	compare(s.t, db, s.saved, "SELECT workload, count(*) FROM events GROUP BY workload",
		"SELECT s.workload, count(*) FROM windows w JOIN series s ON s.id = w.series GROUP BY s.workload")
	s.t.Logf("%d windows, each once", len(s.saved))
}

func get(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The disk of the hub's store is full: the hub says so and takes nothing, the agent keeps
// its windows, and with room again everything arrives.
func TestFullDiskOfHub(t *testing.T) {
	page := clitest.FreeAddress(t)
	dir := prepare(t, "sqlite: DIR/small/status.db\npage: "+page)
	grow := smallDisk(t, filepath.Join(dir, "small"), "1m")
	h := start(t, "hub "+dir, func(string) {})
	t.Cleanup(h.kill)
	s := newSender(t, dir, filepath.Join(dir, "spool"))
	s.offer("the store is full", func(d outbox.Status) bool {
		return d.Sent > 0 && d.Waiting > 0 && strings.Contains(d.Error, "the store does not take rows now")
	})
	for at, want := range map[string]string{"/health": "database or disk is full", "/metrics": `homenode_hub_refused_total{reason="busy"} `, "/readyz": "takes no rows"} {
		if said := get(t, "http://"+page+at); !strings.Contains(said, want) || strings.Contains(said, want+"0\n") {
			t.Errorf("%s does not say %q:\n%s", at, want, said)
		}
	}
	grow()
	s.drain()
	h.kill()
	s.everythingOnce(filepath.Join(dir, "small", "status.db"))
}

// The disk of the agent's spool is full, and there is no hub: windows wait in memory, are sent
// when there is a hub, and are written again when there is room.
func TestFullDiskOfAgent(t *testing.T) {
	dir := prepare(t, "sqlite: DIR/status.db")
	grow := smallDisk(t, filepath.Join(dir, "small"), "256k")
	s := newSender(t, dir, filepath.Join(dir, "small", "spool"))
	s.offer("the spool is full", func(d outbox.Status) bool { return d.Disk != "" })
	t.Logf("the agent says: %s", s.Status().Disk)
	h := start(t, "hub "+dir, func(string) {})
	t.Cleanup(h.kill)
	grow()
	more := len(s.saved) + 10
	s.offer("ten more", func(outbox.Status) bool { return len(s.saved) == more })
	s.drain()
	h.kill()
	s.everythingOnce(filepath.Join(dir, "status.db"))
}
