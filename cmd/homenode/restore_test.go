// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/views"
)

// A dry run says that it is one, in text and JSON. It has the results and the exit code
// of the restore that it announces, and does not suggest to try again.
func TestRestoreSays(t *testing.T) {
	of := func(results ...journal.Result) (all []journal.Restored) {
		for _, r := range results {
			all = append(all, journal.Restored{Setting: journal.Setting{Cgroup: "/a", File: "cpuset.cpus"}, Result: r, Detail: "why"})
		}
		return all
	}
	for _, dry := range []bool{false, true} {
		for name, c := range map[string]struct {
			what []journal.Restored
			err  error
			exit int // 0: no error
		}{
			"done":          {of(journal.PutBack, journal.Already), nil, 0},
			"nothing":       {nil, nil, exit.Nothing},
			"partly":        {of(journal.PutBack, journal.Kept), nil, exit.Partly},
			"not permitted": {of(journal.NotDone), kernel.ErrNotPermitted, exit.Bad},
			"damaged":       {of(journal.PutBack), journal.ErrDamaged, exit.Partly},
			"only damage":   {nil, journal.ErrDamaged, exit.Partly},
		} {
			var out bytes.Buffer
			marked := 0
			if dry {
				marked = len(c.what)
			}
			if err := views.Restored(&out, "text", dry, c.what); err != nil || strings.Count(out.String(), "dry run: ") != marked || strings.Count(out.String(), "\n") != len(c.what) {
				t.Errorf("%s, dry %v: %v, %q", name, dry, err, out.String())
			}
			out.Reset()
			var answer struct {
				Dry      bool               `json:"dry_run"`
				Restored []journal.Restored `json:"restored"`
			}
			if err := views.Restored(&out, "json", dry, c.what); err != nil || json.Unmarshal(out.Bytes(), &answer) != nil || answer.Dry != dry || answer.Restored == nil || len(answer.Restored) != len(c.what) {
				t.Errorf("%s, dry %v: %v, %s", name, dry, err, out.String())
			}
			err := views.RestoreResult(dry, c.what, c.err)
			exit := exit.Error{}
			if (err == nil) != (c.exit == 0) || err != nil && (!errors.As(err, &exit) || exit.Code != c.exit) || dry && err != nil && strings.Contains(err.Error(), "again") {
				t.Errorf("%s, dry %v: %v, exit code %d, want %d", name, dry, err, exit.Code, c.exit)
			}
		}
	}
}

// A configuration that cannot be read prevents no restore: the agent may have ended because
// of it, and its unit restores with the same file.
func TestRestoreWithoutConfiguration(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(bad, []byte("periood: 10s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	if code, text := runCaught(t, "restore", "--config", bad, "--state", state); code != exit.Bad || !strings.Contains(text, "periood") {
		t.Errorf("nothing on record: exit code %d, %s", code, text)
	}
	if err := os.WriteFile(filepath.Join(state, "log"), make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := runCaught(t, "restore", "--config", bad, "--state", state); code != exit.Partly || !strings.Contains(text, "periood") || !strings.Contains(text, "without it") || !strings.Contains(text, "damaged") {
		t.Errorf("a damaged record: exit code %d, %s", code, text)
	}
	if code, text := runCaught(t, "restore", "--config", bad, "--state", state, "--forget-damage"); code != exit.Bad || strings.Contains(text, "without it") {
		t.Errorf("forgetting the damage of a folder that may be another: exit code %d, %s", code, text)
	}
}
