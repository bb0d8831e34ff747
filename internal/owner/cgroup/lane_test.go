// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel/unix"
	"homenode/internal/owner"
	"homenode/internal/set"
)

// A write that does not return is left. Nothing else is written before it has returned; what
// it brings late is on record, and is put back.
func TestHangingWriteIsLeft(t *testing.T) {
	files := v2()
	files["/proc/10/pagemap"] = "12345678"
	a, k := boot(t, files, Config{})
	a.lane.limit = 20 * time.Millisecond
	begun, free := make(chan struct{}), make(chan struct{})
	done := false
	k.refuse = func(path, _ string) error {
		if strings.HasSuffix(path, "/a/cpuset.mems") {
			if !done {
				done = true
				close(begun)
			}
			<-free // and then it is written
		}
		return nil
	}
	j := open(t)
	bound := j.Wrap(a)
	apply := func(kind action.StepKind, workload string) action.Outcome {
		return bound.Apply(context.Background(), action.Step{Kind: kind, Workload: workload, CPUs: set.FromCPUs(0), Nodes: set.FromNodes(1)})
	}
	if o := apply(action.SetMems, "/demo/a"); o.Status != action.Failed || !strings.Contains(o.Detail, journal.ErrUnsure.Error()) {
		t.Fatalf("a write that hangs: %+v", o)
	}
	<-begun
	before := len(k.writes)
	if o := apply(action.SetCPUs, "/demo/b"); o.Status != action.Failed || !strings.Contains(o.Detail, "the write of /demo/a cpuset.mems has not returned") || len(k.writes) != before {
		t.Fatalf("another write meanwhile: %+v, writes %q", o, k.writes[before:])
	}
	if restored, err := j.Restore(context.Background(), a); !errors.Is(err, unix.ErrNoAnswer) {
		t.Fatalf("a restore that cannot write: %v, %v", restored, err)
	}
	a.lane.limit = time.Minute
	close(free)
	for start := time.Now(); apply(action.SetCPUs, "/demo/b").Status != action.Done; time.Sleep(time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("the write has returned, and no other is begun")
		}
	}
	mems := k.root.Path(top + "/demo/a/cpuset.mems")
	if now, _ := os.ReadFile(mems); string(now) != "1\n" {
		t.Errorf("the write that was left brought %q", now)
	}
	if restored, err := j.Restore(context.Background(), a); err != nil {
		t.Fatalf("%v, %v", restored, err)
	}
	if now, _ := os.ReadFile(mems); strings.TrimSpace(string(now)) != "" {
		t.Errorf("cpuset.mems is left: %q; writes %q", now, k.writes)
	}
	if left := j.Outstanding(); len(left) > 0 {
		t.Errorf("still on record: %+v; writes %q", left, k.writes)
	}
}

// Nodes are put back only once the process's memory map is free.
func TestLockedMapIsNotPutBack(t *testing.T) {
	a, k := boot(t, v2(), Config{})
	j := open(t)
	step := action.Step{Kind: action.SetMems, Workload: "/demo/a", Nodes: set.FromNodes(1)}
	if o := j.Wrap(a).Apply(context.Background(), step); o.Status != action.Done {
		t.Fatalf("%+v", o)
	}
	if err := errors.Join(os.MkdirAll(k.root.Path("/proc/10"), 0o755), sys.Mkfifo(k.root.Path("/proc/10/pagemap"), 0o600)); err != nil {
		t.Fatal(err)
	}
	before := len(k.writes)
	restored, err := j.Restore(context.Background(), a)
	if !errors.Is(err, unix.ErrNoAnswer) || slices.ContainsFunc(k.writes[before:], func(w string) bool { return strings.Contains(w, memsFile) }) {
		t.Fatalf("a locked map: %v, %v, writes %q", restored, err, k.writes[before:])
	}
	if f, err := os.OpenFile(k.root.Path("/proc/10/pagemap"), os.O_WRONLY, 0); err == nil {
		f.Close()
	}
	os.Remove(k.root.Path("/proc/10/pagemap"))
	a.maps = owner.NewMaps(k.root, a.layout)
	if restored, err := j.Restore(context.Background(), a); err != nil {
		t.Fatalf("%v, %v", restored, err)
	}
}
