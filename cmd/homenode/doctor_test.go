// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/cli"
	"homenode/internal/cli/clitest"
	"homenode/internal/doctor"
	"homenode/internal/exit"
	"homenode/internal/snapshot"
	"homenode/internal/source"
)

const savedSnapshot = "../../internal/doctor/testdata/first-touch.snapshot.json"

func doctorOutput(t *testing.T, args ...string) string {
	t.Helper()
	cmd := doctorCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

// A saved snapshot is judged without a look at this host, as text and as JSON.
func TestDoctorSavedSnapshot(t *testing.T) {
	text := doctorOutput(t, "--snapshot", savedSnapshot)
	for _, want := range []string{"Is NUMA this machine's bottleneck? yes", "first-touch", "$ numactl --interleave=0-1 -- COMMAND…  # in place of postgres, PID 100 of /w0"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var r doctor.Report
	data := doctorOutput(t, "--snapshot", savedSnapshot, "-o", "json")
	if err := json.Unmarshal([]byte(data), &r); err != nil || r.Verdict.Answer != doctor.Yes || len(r.Findings) < 2 {
		t.Errorf("%v: %s", err, data)
	}
	if !strings.Contains(data, "775107379 > /sys/fs/cgroup") {
		t.Error("a command in the JSON is escaped")
	}
}

// A snapshot of the live host can be saved, and the file gives the same
// findings.
func TestDoctorSave(t *testing.T) {
	old := readSnapshot
	defer func() { readSnapshot = old }()
	var looked time.Duration
	readSnapshot = func(_ context.Context, d time.Duration, _ func(string)) (snapshot.Snapshot, error) {
		looked = d
		return source.Snapshot(savedSnapshot)
	}
	file := filepath.Join(t.TempDir(), "s.json")
	live := doctorOutput(t, "--for", "2s", "--save", file)
	if again := doctorOutput(t, "--snapshot", file); again != live || looked != 2*time.Second {
		t.Errorf("looked for %v; live:\n%s\nagain:\n%s", looked, live, again)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

// A snapshot has the names of processes and files. Whatever file was there before,
// only its owner may read the new one, and no other file is written to.
func TestDoctorSaveOver(t *testing.T) {
	dir := t.TempDir()
	old := clitest.WriteFile(t, filepath.Join(dir, "old.json"), "old\n")
	doctorOutput(t, "--snapshot", savedSnapshot, "--save", old)
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("over a file that others may read: %v %v", info, err)
	}
	if _, err := source.Snapshot(old); err != nil {
		t.Error(err)
	}
	other, link := clitest.WriteFile(t, filepath.Join(dir, "other"), "kept\n"), filepath.Join(dir, "link")
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{link, os.DevNull, dir} {
		if code, text := runCaught(t, "doctor", "--snapshot", savedSnapshot, "--save", to); code != exit.Bad || !strings.Contains(text, "not a regular file") {
			t.Errorf("%s: exit code %d, %s", to, code, text)
		}
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "kept\n" {
		t.Errorf("the link was followed: %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".homenode-*")); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// doctor alone prints Markdown, for tickets.
func TestDoctorMarkdown(t *testing.T) {
	if text := doctorOutput(t, "--snapshot", savedSnapshot, "-o", "markdown"); !strings.HasPrefix(text, "**Is NUMA this machine's bottleneck? yes") || !strings.Contains(text, "\n### 1. ") {
		t.Error(text)
	}
	if code, text := runCaught(t, "stat", "-o", "markdown"); code != exit.Bad || !strings.Contains(text, "want text, json or yaml") {
		t.Errorf("stat: exit code %d, %s", code, text)
	}
}

// Progress is for people: /dev/null is a character device, but not a terminal.
func TestProgress(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if progressTo(null) != nil || progressTo(&bytes.Buffer{}) != nil || cli.IsTerminal(null) {
		t.Error("/dev/null or a buffer is taken for a terminal")
	}
}

// What could not be read is reported, and sets the exit code.
func TestDoctorPartly(t *testing.T) {
	s, err := source.Snapshot(savedSnapshot)
	if err != nil {
		t.Fatal(err)
	}
	s.Problems = []string{"of 200 processes, 150 could not be looked into"}
	file := filepath.Join(t.TempDir(), "s.json")
	if err := (doctorOptions{save: file}).store(s); err != nil {
		t.Fatal(err)
	}
	for _, face := range []string{"text", "json"} {
		cmd := doctorCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"--snapshot", file, "-o", face})
		var code exit.Error
		if err := cmd.ExecuteContext(context.Background()); !errors.As(err, &code) || code.Code != exit.Partly || !strings.Contains(out.String(), s.Problems[0]) {
			t.Errorf("%s: %v: %s", face, err, out.String())
		}
	}
}

func TestDoctorBadInput(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "s.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor", "--snapshot", "none.json"}, "none.json"},
		{[]string{"doctor", "--snapshot", file("\x00\x01")}, "parse snapshot"},
		{[]string{"doctor", "--snapshot", file(`{"schema":9}`)}, "schema 9"},
		{[]string{"doctor", "--snapshot", file(`{"schema":1,"colour":1}`)}, "colour"},
		{[]string{"doctor", "--snapshot", savedSnapshot, "-o", "xml"}, "text, json, yaml or markdown"},
		{[]string{"doctor", "--for", "1ms"}, "--for"},
		{[]string{"doctor", "x"}, "no arguments"},
	} {
		if code, text := runCaught(t, c.args...); code != exit.Bad || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, text)
		}
	}
}
