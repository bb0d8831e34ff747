// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
)

// runCaught runs a command line and returns exit code and stderr.
func runCaught(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return clitest.RunCaught(t, rootCommand(), args...)
}

// Bad input is exit code 2 and one sentence that says what to do.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"frobnicate"}, []string{"frobnicate", "--help"}},
		{[]string{"status", "--no-such-flag"}, []string{"no-such-flag"}},
		{[]string{"agent", "--config", file("agent.yaml", "period: 1s\nservises: []\n")}, []string{"agent.yaml", "servises", "2"}},
		{[]string{"agent", "--config", filepath.Join(dir, "none.yaml")}, []string{"none.yaml"}},
		{[]string{"status", "--state", dir}, []string{"homenode agent"}},
		{[]string{"status", "-o", "xml", "--state", dir}, []string{"text, json or yaml"}},
		{[]string{"why"}, []string{"a workload"}},
		{[]string{"stat", "extra"}, []string{"no arguments"}},
		{[]string{"stat", "--pid", "1,x"}, []string{`"1,x"`, "all"}},
		{[]string{"stat", "--pid", "0"}, []string{"process ids"}},
		{[]string{"stat", "--pid", "1", "--cgroup", "/a"}, []string{"one of them"}},
		{[]string{"stat", "--interval", "-1s"}, []string{"negative"}},
		{[]string{"stat", "--interval", "1us"}, []string{"10ms"}},
		{[]string{"stat", "--interval", "0", "--count", "3"}, []string{"--interval"}},
		{[]string{"stat", "--count", "-1"}, []string{"--count -1"}},
		{[]string{"stat", "-o", "xml"}, []string{"text, json or yaml"}},
		{[]string{"stat", "--root", dir}, []string{"no CPU found"}},
		{[]string{"record"}, []string{"give --out"}},
		{[]string{"freeze", "--cgroup", "/a", "--direct-owner", "me"}, []string{`--direct-owner "me"`, "want systemd"}},
		{[]string{"maps"}, []string{"a process id"}},
		{[]string{"maps", "init"}, []string{`"init"`}},
		{[]string{"maps", "1", "--top", "0"}, []string{"--top 0"}},
		{[]string{"pin"}, []string{"--pid or --cgroup"}},
		{[]string{"pin", "--pid", "1", "--period", "9ms"}, []string{"--period", "10ms"}},
		{[]string{"pin", "--pid", "1", "--period", "2h"}, []string{"--period", "1h"}},
		{[]string{"pin", "--pid", "1,x"}, []string{`"1,x"`, "process ids"}},
		{[]string{"pin", "--pid", "1", "--for", "-1s"}, []string{"--for", "negative"}},
		{[]string{"pin", "--cgroup", "demo"}, []string{`"demo"`, "/demo/*"}},
		{[]string{"pin", "--pid", "1", "-o", "xml"}, []string{"text, json or yaml"}},
		{[]string{"pin", "--pid", "999999999"}, []string{"999999999", "it does not exist"}},
		{[]string{"pin", "--pid", "1", "--config", file("brm.yaml", "scope: [\n")}, []string{"brm.yaml"}},
		{[]string{"pin", "--pid", "1", "--config", file("brm2.yaml", "scoop: system\n")}, []string{"brm2.yaml", "scoop"}},
		{[]string{"pin", "--pid", "1", "--config", file("brm3.yaml", "scope: galaxy\n")}, []string{"brm3.yaml", "galaxy"}},
		{[]string{"why", "x", "--state", dir}, []string{"homenode agent"}},
	} {
		code, text := runCaught(t, c.args...)
		if code != exit.Bad {
			t.Errorf("%v: exit code %d, %s", c.args, code, text)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in: %s", c.args, w, text)
			}
		}
	}
}

// Without root the agent reports what it may not do, and where.
func TestNotRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: cannot become nobody")
	}
	exe := filepath.Join(t.TempDir(), "homenode")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, dir := range []string{filepath.Dir(exe), filepath.Dir(filepath.Dir(exe))} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(exe, "agent", "--state", "/run/homenode-test-nobody")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exit.Bad || !strings.Contains(string(out), "root") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}
