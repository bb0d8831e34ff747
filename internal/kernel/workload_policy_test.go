// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"testing"
	"time"

	"homenode/internal/kernel/unix"
)

// Looks again come one workload at a time, the one not seen for longest first, and only
// when the time is there.
func TestPoliciesInTurns(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &Reader{cfg: Config{Now: func() time.Time { return now }}, workloads: map[string]*workload{}, seq: 9}
	for id, at := range map[string]uint64{"/a": 5, "/b": 3, "/c": 3, "/new": 0} {
		w := &workload{seen: policySettled + 1, policyAt: at}
		w.ID = id
		r.workloads[id] = w
	}
	r.workloads["/new"].seen = policySettled
	r.beginPolicies()
	if r.policy.next != "" {
		t.Fatalf("nothing is saved yet, but it is the turn of %s", r.policy.next)
	}
	for _, want := range []string{"/b", "/c", "/a", "/b"} {
		now = now.Add(20 * time.Second) // 2 ms
		r.seq++
		r.beginPolicies()
		if r.policy.next != want {
			t.Fatalf("turn of %q, want %s", r.policy.next, want)
		}
		r.workloads[want].policyAt = r.seq
	}
	r.policy.left = -5 * time.Millisecond // a large one
	for range 2 {
		now = now.Add(10 * time.Second)
		if r.beginPolicies(); r.policy.next != "" {
			t.Fatalf("%s while %v is owed", r.policy.next, r.policy.left)
		}
	}
	now = now.Add(time.Hour)
	if r.beginPolicies(); r.policy.next == "" || r.policy.left != policySaved {
		t.Errorf("after an hour: %q, %v saved", r.policy.next, r.policy.left)
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
