// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/golden"
)

// The reference says what the commands are today: 'make reference' writes it.
func TestReferenceIsUpToDate(t *testing.T) {
	text, err := cli.Reference(rootCommand())
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "../../docs/reference/cli.md", text)
}

func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if code, _, errs := runWith("reference", "--man", dir); code != exit.Done {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for name, want := range map[string]string{"homenode.1": "Exit codes: 0 done", "homenode-migrate.1": "freeze-limit"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: no %q (%v) in:\n%.1000s", name, want, err, text)
		}
	}
}
