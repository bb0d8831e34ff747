// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
)

// Later looks come one workload at a time, the one with the oldest look first, and only
// when there is time.
func TestPoliciesInTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	c, rd := newPolicyCollector(), &round{host: &host{now: func() time.Time { return now }}, seq: 9}
	begin := func() {
		if err := c.begin(rd); err != nil {
			t.Fatal(err)
		}
	}
	for id, at := range map[string]uint64{"/a": 5, "/b": 3, "/c": 3, "/new": 0} {
		w := &workload{Cgroup: cgroup.Cgroup{ID: id}, seen: policySettled + 1}
		c.attach(w)
		c.of[id].seen = at
	}
	c.of["/new"].w.seen = policySettled
	begin()
	if c.next != "" {
		t.Fatalf("nothing is saved yet, but it is the turn of %s", c.next)
	}
	for _, want := range []string{"/b", "/c", "/a", "/b"} {
		now = now.Add(20 * time.Second) // 2 ms
		rd.seq++
		begin()
		if c.next != want {
			t.Fatalf("turn of %q, want %s", c.next, want)
		}
		c.of[want].seen = rd.seq
	}
	c.left = -5 * time.Millisecond // a large one
	for range 2 {
		now = now.Add(10 * time.Second)
		if begin(); c.next != "" {
			t.Fatalf("%s while %v is owed", c.next, c.left)
		}
	}
	now = now.Add(time.Hour)
	if begin(); c.next == "" || c.left != policySaved {
		t.Errorf("after an hour: %q, %v saved", c.next, c.left)
	}
}

func TestReadLineReadsAll(t *testing.T) {
	dir := t.TempDir()
	var buf unix.Buffer
	for _, text := range []string{"", "1\n", "no end", "a\nb\n", string(make([]byte, 9000)) + "\n"} {
		if err := os.WriteFile(dir+"/f", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := buf.ReadLine(dir + "/f"); err != nil || string(got) != text {
			t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
		}
	}
}
