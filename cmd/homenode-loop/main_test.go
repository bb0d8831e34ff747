// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
)

const model = "../../internal/model/gain/testdata/gain.json"

func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "gain.json")
	if err := os.WriteFile(broken, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "make demo-loop"},
		{[]string{"--model", model}, "--out"},
		{[]string{"--model", "none.json", "--out", t.TempDir()}, "no such file"},
		{[]string{"--model", broken, "--out", t.TempDir()}, "no model of gains"},
		{[]string{"--model", model, "--out", t.TempDir(), "-o", "csv"}, "want text, json or yaml"},
		{[]string{"--model", model, "--out", filepath.Join(t.TempDir(), "none")}, "--out"},
		{[]string{"x"}, "no arguments"},
	} {
		if code, text := clitest.RunCaught(t, rootCommand(), c.args...); code != exit.Bad || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d: %s; want %q", c.args, code, text, c.want)
		}
	}
}
