// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// burn uses some CPU time.
func burn(d time.Duration) {
	for began := unix.ProcessCPU(); unix.ProcessCPU()-began < d; {
	}
}

// The program's own CPU time is that between two readings of /proc/stat, as the nodes' is:
// what it used before and after them is in neither.
func TestOwnTimeIsThatOfStat(t *testing.T) {
	now := time.Unix(1000, 0)
	r, err := NewReader(Config{Root: kerneltest.Tree(t, manyFiles(1)), Roots: []string{"/demo/*"}, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read := func() (began time.Duration) {
		began = unix.ProcessCPU()
		if _, err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		return began
	}
	burn(30 * time.Millisecond)
	began := read()
	if r.own.Known() {
		t.Errorf("known after one reading: %+v", r.own)
	}
	burn(20 * time.Millisecond)
	now = now.Add(time.Second)
	read()
	least, most := (20 * time.Millisecond).Seconds(), (unix.ProcessCPU() - began).Seconds()
	if own, ok := r.own.Get(); !ok || own < least || own > most {
		t.Errorf("own: %+v CPUs, want %.3f to %.3f", r.own, least, most)
	}
}
