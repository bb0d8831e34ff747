// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/store/storetest"
)

func open(t *testing.T) store.Store { return openAt(t, filepath.Join(t.TempDir(), "a ?#%20.db")) }

func openAt(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"newer":   {"PRAGMA user_version = 99", "version 99"},
		"older":   {"PRAGMA user_version = 1", "version 1, of a development version"},
		"foreign": {"PRAGMA application_id = 7", "another program"},
	} {
		path := filepath.Join(t.TempDir(), "x.db")
		openAt(t, path)
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(c.script); err != nil {
			t.Fatal(err)
		}
		db.Close()
		if _, err := Open(t.Context(), path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), text); err == nil {
		t.Error("a text was opened")
	}
}

// TestSQLReadsOnly tries what could change a file, this one or another.
func TestSQLReadsOnly(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, filepath.Join(dir, "x.db"))
	other := filepath.Join(dir, "other.db")
	for _, q := range []string{
		"ATTACH '" + other + "' AS o", "VACUUM INTO '" + other + "'", "PRAGMA journal_mode = DELETE", "PRAGMA user_version = 7", "PRAGMA writable_schema = 1",
	} {
		for _, q := range []string{q, "SELECT 1; " + q, "SELECT 1) q; " + q + "; SELECT * FROM (SELECT 1", "SELECT 1) q; PRAGMA query_only = 0; " + q + "; SELECT * FROM (SELECT 1"} {
			_, err := s.SQL(t.Context(), q, 10)
			t.Logf("%s: %v", q, err)
			if _, err := os.Stat(other); err == nil {
				t.Fatalf("%s wrote a file", q)
			}
		}
	}
	table, err := s.SQL(t.Context(), "SELECT user_version, (SELECT journal_mode FROM pragma_journal_mode) FROM pragma_user_version", 1)
	if err != nil || fmt.Sprint(table.Rows) != "[[2 wal]]" {
		t.Errorf("afterwards: %v, %v", table.Rows, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.SQL(ctx, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", 1); err == nil {
		t.Error("an endless query ended without an error")
	}
	if _, err := s.SQL(t.Context(), "SELECT randomblob(100000000)", 1); err == nil {
		t.Error("a cell of 100 MB was made")
	}
}

// TestKilled kills a process that adds batches, and looks for what it said was added.
func TestKilled(t *testing.T) {
	if path := os.Getenv("HOMENODE_STORE_ADDS"); path != "" {
		s := openAt(t, path)
		for _, b := range storetest.Batches(11, 20, 6000) {
			if _, err := s.Add(t.Context(), []store.Batch{b}); err != nil {
				t.Fatal(err)
			}
			fmt.Printf("added %s %d\n", b.Host, b.Number)
		}
		return
	}
	path := filepath.Join(t.TempDir(), "x.db")
	said := map[string]bool{}
	for round := range 3 {
		killed(t, path, 20*(round+1), said)
	}
	s := openAt(t, path)
	table, err := s.SQL(t.Context(), "SELECT host, number FROM batches b JOIN runs r ON r.id = b.run", 1e6)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		delete(said, fmt.Sprintf("added %s %d", row...))
	}
	if len(said) > 0 || len(table.Rows) < 60 {
		t.Errorf("%d batches are there; lost: %v", len(table.Rows), said)
	}
	sums, err := s.SQL(t.Context(), "SELECT (SELECT sum(cpu_s) FROM windows) - (SELECT sum(cpu_s) FROM windows_hours), (SELECT count(*) FROM windows) - (SELECT sum(windows) FROM windows_minutes)", 1)
	if err != nil || sums.Rows[0][0].(float64) > 1e-6 || sums.Rows[0][1] != 0.0 {
		t.Errorf("raw rows less roll-ups: %v, %v", sums.Rows, err)
	}
}

// killed lets a process add batches, and kills it after some.
func killed(t *testing.T, path string, after int, said map[string]bool) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "HOMENODE_STORE_ADDS="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if said[lines.Text()] = true; n == after {
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	child.Wait() //nolint:errcheck // it was killed
}
