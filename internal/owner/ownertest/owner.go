// SPDX-License-Identifier: Apache-2.0

package ownertest

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/owner"
)

// Open opens a journal, and closes it with the test.
func Open(t *testing.T, dir string) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir)
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// Must takes steps, each of which has to be done.
func Must(t *testing.T, j *journal.Journal, o journal.Owner, steps ...action.Step) {
	t.Helper()
	for _, s := range steps {
		if got := j.Wrap(o).Apply(context.Background(), s); got.Status != action.Done {
			t.Fatalf("%s: %s: %s", s.Kind, got.Status, got.Detail)
		}
	}
}

// PagesFirst checks that a workload's nodes are refused, and its CPUs are not, while much
// of its memory is elsewhere and the runtime would wait.
func PagesFirst(t *testing.T, root kernel.Root, o journal.Owner, setCPUs, setMems action.Step) {
	t.Helper()
	j := Open(t, t.TempDir())
	stat := func(bytes string) {
		kerneltest.Write(t, root, kerneltest.Files{"/sys/fs/cgroup" + setMems.Workload + "/memory.numa_stat": "anon N0=" + bytes + " N1=999999999\nfile_mapped N0=1 N1=1\nfile N0=999999999 N1=1\n"})
	}
	stat("67108864")
	if out := j.Wrap(o).Apply(context.Background(), setMems); out.Status != action.Refused || !strings.Contains(out.Detail, "elsewhere") {
		t.Errorf("%s: %s", out.Status, out.Detail)
	}
	Must(t, j, o, setCPUs)
	stat("67108863")
	Must(t, j, o, setMems)
}

// WaitsOnce checks that a manager that does not answer in time is asked again, but not at
// once. No process listens on the client's socket yet; listen starts the server that
// answers.
func WaitsOnce(t *testing.T, c *owner.Client, listen func(), ask func() error) {
	t.Helper()
	l, err := net.Listen("unix", c.Socket) // accepts connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	c.Limit = 50 * time.Millisecond
	if err := ask(); !errors.Is(err, journal.ErrNoAnswer) || !c.Backoff.Lasts() {
		t.Errorf("%v", err)
	}
	start := time.Now()
	c.Limit = time.Minute
	for range 100 {
		if err := ask(); !errors.Is(err, journal.ErrNoAnswer) {
			t.Errorf("%v", err)
		}
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("waited for %v", d)
	}
	l.Close()
	listen()
	c.Backoff, c.Limit = owner.Backoff{}, owner.AnswerLimit
	if err := ask(); err != nil {
		t.Errorf("later: %v", err)
	}
}
