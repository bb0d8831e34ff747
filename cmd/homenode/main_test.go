// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"homenode/internal/journal"
	"homenode/internal/kernel"
)

// runCaught runs a command line and returns exit code and stderr.
func runCaught(t *testing.T, args ...string) (int, string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = old }()
	code := run(context.Background(), args)
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
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
	shapes := []string{"--shapes", "../../lab/shapes"}
	built := t.TempDir() // a lab without the Debian guest
	for _, name := range []string{"vmlinuz", "initramfs.cpio", "libhomenode_lab.so"} {
		if err := os.WriteFile(filepath.Join(built, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shapesAndLab := append([]string{"--lab", built}, shapes...)
	mix, err := os.ReadFile("../../lab/mixes/first-light.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"frobnicate"}, []string{"frobnicate", "--help"}},
		{[]string{"status", "--no-such-flag"}, []string{"no-such-flag"}},
		{append([]string{"lab", "run", "nonesuch", "true"}, shapes...), []string{"unknown shape", "nonesuch", "homenode lab shapes"}},
		{append([]string{"lab", "shell"}, shapes...), []string{"a shape's name"}},
		{append([]string{"lab", "run", "two", "--cgroup", "v3", "true"}, shapes...), []string{"--cgroup", "v1 or v2"}},
		{append([]string{"lab", "run", "two", "--lab", dir, "true"}, shapes...), []string{"make lab"}},
		{append([]string{"lab", "run", "two", "--guest", "hurd", "true"}, shapesAndLab...), []string{`"hurd"`, "busybox or debian"}},
		{append([]string{"lab", "run", "two", "--guest", "debian", "true"}, shapesAndLab...), []string{"debian.img", "make lab-debian"}},
		{append([]string{"lab", "shell", "two", "--guest", "debian", "--cgroup", "v1"}, shapesAndLab...), []string{"cgroup v1 is not offered", "debian"}},
		{[]string{"lab", "run", file("bad.yaml", "name: x\nnodes: [{cpus: 0, memory: 1GiB, colour: red}]\n"), "true"}, []string{"bad.yaml", "colour"}},
		{[]string{"agent", "--config", file("agent.yaml", "period: 1s\nservises: []\n")}, []string{"agent.yaml", "servises", "2"}},
		{[]string{"agent", "--config", filepath.Join(dir, "none.yaml")}, []string{"none.yaml"}},
		{[]string{"status", "--state", dir}, []string{"homenode agent"}},
		{[]string{"status", "-o", "xml", "--state", dir}, []string{"text or json"}},
		{[]string{"why"}, []string{"a workload"}},
		{[]string{"stat", "extra"}, []string{"no arguments"}},
		{[]string{"stat", "--pid", "1,x"}, []string{`"x"`, "all"}},
		{[]string{"stat", "--pid", "0"}, []string{"process ids"}},
		{[]string{"stat", "--pid", "1", "--cgroup", "/a"}, []string{"one of them"}},
		{[]string{"stat", "--interval", "-1s"}, []string{"negative"}},
		{[]string{"stat", "--interval", "1us"}, []string{"10ms"}},
		{[]string{"stat", "--interval", "0", "--count", "3"}, []string{"--interval"}},
		{[]string{"stat", "--count", "-1"}, []string{"--count -1"}},
		{[]string{"stat", "-o", "xml"}, []string{"text or json"}},
		{[]string{"stat", "--root", dir}, []string{"no CPU found"}},
		{[]string{"maps"}, []string{"a process id"}},
		{[]string{"maps", "init"}, []string{`"init"`}},
		{[]string{"maps", "1", "--top", "0"}, []string{"--top 0"}},
		{[]string{"brm"}, []string{"--pid or --cgroup"}},
		{[]string{"brm", "--pid", "1", "--period", "9ms"}, []string{"--period", "10ms"}},
		{[]string{"brm", "--pid", "1", "--period", "2h"}, []string{"--period", "1h"}},
		{[]string{"brm", "--pid", "1,x"}, []string{`"1,x"`, "process ids"}},
		{[]string{"brm", "--pid", "1", "--for", "-1s"}, []string{"--for", "negative"}},
		{[]string{"brm", "--cgroup", "demo"}, []string{`"demo"`, "/demo/*"}},
		{[]string{"brm", "--pid", "1", "-o", "xml"}, []string{"text or json"}},
		{[]string{"brm", "--pid", "999999999"}, []string{"999999999", "there is none"}},
		{[]string{"brm", "--pid", "1", "--config", file("brm.yaml", "scope: [\n")}, []string{"brm.yaml"}},
		{[]string{"brm", "--pid", "1", "--config", file("brm2.yaml", "scoop: system\n")}, []string{"brm2.yaml", "scoop"}},
		{[]string{"brm", "--pid", "1", "--config", file("brm3.yaml", "scope: galaxy\n")}, []string{"brm3.yaml", "galaxy"}},
		{[]string{"why", "x", "--state", dir}, []string{"homenode agent"}},
		{[]string{"demo", "--mix", filepath.Join(dir, "none.yaml")}, []string{"none.yaml"}},
		{[]string{"demo", "--mix", file("mix.yaml", string(mix)+"\ncolour: red\n")}, []string{"mix.yaml", "colour"}},
		{[]string{"demo", "--mix", "../../lab/mixes/first-light.yaml", "--arms", "magic"}, []string{"magic", "numad"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--mix", "magic"}, []string{"magic", "database"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--warmup", "-1"}, []string{"--warmup"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--pilot", "--budget", "0s"}, []string{"--budget"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--pilot", "-o", "json"}, []string{"--pilot"}},
	} {
		code, text := runCaught(t, c.args...)
		if code != exitBadInput {
			t.Errorf("%v: exit code %d, %s", c.args, code, text)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in: %s", c.args, w, text)
			}
		}
	}
}

// A name in an error is shown, and not obeyed by the terminal.
func TestErrorsArePrintable(t *testing.T) {
	var out bytes.Buffer
	err := errors.Join(errors.New("process 7 (\x1b[31mEVIL) has no memory"), errors.New("which of /a/\u202ex\rhomenode: all is well"))
	if code := finish(badInput(err), &out); code != exitBadInput {
		t.Errorf("exit code %d", code)
	}
	if want := "homenode: process 7 (\uFFFD[31mEVIL) has no memory\nwhich of /a/\uFFFDx homenode: all is well\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
	out.Reset()
	if tell(&out, []string{"still bound: /\x1b]0;EVIL\a"}); out.String() != "homenode: still bound: /\uFFFD]0;EVIL\uFFFD\n" {
		t.Errorf("got %q", out.String())
	}
}

// No QEMU: the error says what to install.
func TestNoQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if code, text := runCaught(t, "lab", "run", "two", "true", "--shapes", "../../lab/shapes"); code != exitBadInput || !strings.Contains(text, "qemu-system-x86") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// Without root the agent says what it may not do, and where.
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
	if err == nil || cmd.ProcessState.ExitCode() != exitBadInput || !strings.Contains(string(out), "root") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// What must be there and is not, or may not be done, ends a command with 2.
func TestPreconditions(t *testing.T) {
	for _, err := range []error{journal.ErrLocked, kernel.ErrNotSupported, kernel.ErrNotPermitted, fs.ErrPermission} {
		var out bytes.Buffer
		if code := finish(precondition(fmt.Errorf("open journal: %w", err)), &out); code != exitBadInput || !strings.Contains(out.String(), err.Error()) {
			t.Errorf("%v: exit %d, %s", err, code, out.String())
		}
	}
	if code := finish(precondition(errors.New("other")), io.Discard); code == exitBadInput || code == 0 {
		t.Errorf("anything else: exit %d", code)
	}
}
