// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The agent is found before a dry run, what runs before what a killed one left, and the
// error without either says what to do.
func TestFindStatus(t *testing.T) {
	dir := t.TempDir()
	dry := filepath.Join(dir, dryRunDir)
	if err := os.Mkdir(dry, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := FindStatus(dir); !errors.Is(err, ErrNoStatus) {
		t.Errorf("nothing runs: %v", err)
	}
	const gone = 1 << 30 // above PID_MAX_LIMIT
	write := func(dir string, s Status) {
		t.Helper()
		s.Schema = statusSchema
		if err := s.write(dir, 0); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, pid int, isDry bool) {
		t.Helper()
		if s, err := FindStatus(dir); err != nil || s.PID != pid || s.DryRun != isDry {
			t.Errorf("%s: %d, dry %v, %v", what, s.PID, s.DryRun, err)
		}
	}
	write(dry, Status{PID: os.Getpid(), DryRun: true})
	check("a dry run alone", os.Getpid(), true)
	write(dir, Status{PID: gone})
	check("a dry run, and what a killed agent left", os.Getpid(), true)
	write(dir, Status{PID: os.Getpid()})
	check("both", os.Getpid(), false)
	write(dir, Status{PID: gone})
	write(dry, Status{PID: gone, DryRun: true})
	check("both were killed", gone, false)
	if got := FindSocket(dir); got != filepath.Join(dir, socketName) {
		t.Error(got)
	}
}
