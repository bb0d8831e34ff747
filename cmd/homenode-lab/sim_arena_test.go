// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/cli"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/sim/arena"
)

// arenaArgs is the smallest possible run.
func arenaArgs(more ...string) []string {
	return append([]string{"sim", "arena", "--machine", "dual-e5620", "--mix", "parallel-1", "--policy", "mao-b", "--seeds", "2"}, more...)
}

func TestSimArenaAndWhatComesOfIt(t *testing.T) {
	dir := t.TempDir()
	result, page := filepath.Join(dir, "arena.json"), filepath.Join(dir, "arena.html")
	code, out, errs := runWith(arenaArgs("--out", result, "--html", page)...)
	if code != 0 || !strings.Contains(out, "Modelled") || !strings.Contains(out, "mao-b") || !strings.Contains(errs, "simulating quick") {
		t.Fatalf("exit code %d, %s\n%s", code, out, errs)
	}
	data, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	r, err := arena.Decode(data)
	if err != nil || len(r.Cells) != 4 || len(r.Rows) == 0 {
		t.Errorf("%v, %d cells, %d rows", err, len(r.Cells), len(r.Rows))
	}
	html, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(html), "modelled") {
		t.Errorf("%v: the page does not say that it is modelled", err)
	}
	if code, again, _ := runWith(arenaArgs("--workers", "1", "-o", "json")...); code != 0 || again != string(data) {
		t.Errorf("exit code %d; with one worker it says something else", code)
	}
	if code, again, _ := runWith("sim", "arena", result); code != 0 || again != out {
		t.Errorf("exit code %d; the stored result says\n%s\nwant\n%s", code, again, out)
	}
	if code, twice, _ := runWith("sim", "arena", result, result, "-o", "json"); code != 0 || strings.Count(twice, `"judged"`) != 2*len(r.Rows) {
		t.Errorf("exit code %d; rows of two results: %s", code, twice)
	}
}

func TestSimArenaBadInput(t *testing.T) {
	dir := t.TempDir()
	bad, old := clitest.WriteFile(t, filepath.Join(dir, "bad.json"), `{"schema":1,"how":"measured"}`), clitest.WriteFile(t, filepath.Join(dir, "new.json"), `{"schema":99}`)
	good := clitest.WriteFile(t, filepath.Join(dir, "good.json"), `{"schema":1,"how":"modelled"}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--experiment", "luck"}, "quick, all, rao, rao-large, lakew"},
		{[]string{"--machine", "cray"}, "dual-e5620, dual-skylake"},
		{[]string{"--mix", "tea"}, "parallel-1"},
		{[]string{"--policy", "luck"}, "numa-balancing"},
		{[]string{"--policy", ""}, "--policy is empty"},
		{[]string{"--seeds", "0"}, "want 1 to"},
		{[]string{"--seeds", "many"}, "whole number"},
		{[]string{"--workers", "0"}, "--workers is 0"},
		{[]string{"-o", "xml"}, "want text, json or yaml"},
		{[]string{"--out", "-", "-o", "json"}, "standard output"},
		{[]string{"--out", "-", "--html", "-"}, "standard output"},
		{[]string{"--out", filepath.Join(dir, "x"), "--html", filepath.Join(dir, "x")}, "name two files"},
		{[]string{"--html", filepath.Join(dir, "no", "where")}, "there is no folder"},
		{[]string{filepath.Join(dir, "missing.json")}, "no such file"},
		{[]string{bad}, `how is "measured"`},
		{[]string{old}, "newer homenode"},
		{[]string{good, "--seeds", "3"}, "--seeds"},
		{[]string{good, bad}, "bad.json"},
	} {
		code, out, errs := runWith(append([]string{"sim", "arena"}, c.args...)...)
		if code != exit.Bad || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, %q, %q, want %q", c.args, code, out, errs, c.want)
		}
	}
	if code, _, errs := runWith("sim", "run", clitest.WriteFile(t, filepath.Join(dir, "arena.json"), `{"schema":1,"how":"modelled","mixes":[]}`)); code != exit.Bad || !strings.Contains(errs, "homenode-lab sim arena") {
		t.Errorf("sim run of an arena: exit code %d, %s", code, errs)
	}
}

// Ctrl-C ends it with one line, and nothing is written.
func TestSimArenaInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "arena.json")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	root := rootCommand()
	root.SetArgs(arenaArgs("--out", out))
	var errs bytes.Buffer
	root.SetOut(&errs)
	root.SetErr(&errs)
	code := cli.Finish(root.Name(), root.ExecuteContext(ctx), &errs)
	if _, err := os.Stat(out); code == 0 || err == nil || !strings.Contains(errs.String(), "interrupted: nothing was written") {
		t.Errorf("exit code %d, %s, %v", code, errs.String(), err)
	}
}
