// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

func TestHolder(t *testing.T) {
	dir := t.TempDir()
	if pid, err := Holder(dir); pid != "" || err != nil {
		t.Errorf("no journal: %q, %v", pid, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("looking left %v", left)
	}
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := Holder(dir); pid != strconv.Itoa(os.Getpid()) || err != nil {
		t.Errorf("held: %q, %v", pid, err)
	}
	if err := os.Truncate(filepath.Join(dir, lockName), 0); err != nil { // a full disk
		t.Fatal(err)
	}
	if pid, err := Holder(dir); pid != "unknown" || err != nil {
		t.Errorf("held by a process that could not write its pid: %q, %v", pid, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if pid, err := Holder(dir); pid != "" || err != nil {
		t.Errorf("let go: %q, %v", pid, err)
	}
	if j, err = Open(dir); err != nil {
		t.Fatalf("looking kept the lock: %v", err)
	}
	j.Close()
}
