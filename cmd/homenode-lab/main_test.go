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

// runWith runs a command line and returns exit code, stdout and stderr.
func runWith(args ...string) (int, string, string) { return clitest.Run(rootCommand(), args...) }

// Bad input is exit code 2 and one line that says what to do.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return clitest.WriteFile(t, filepath.Join(dir, name), text) }
	shapes := []string{"--shapes", "../../lab/shapes"}
	built := t.TempDir() // a lab without the Debian guest
	for _, name := range []string{"vmlinux", "initramfs.cpio", "libhomenode_lab.so"} {
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
		{[]string{"frobnicate"}, []string{"frobnicate", "homenode-lab --help"}},
		{append([]string{"run", "nonesuch", "true"}, shapes...), []string{"unknown shape", "nonesuch", "homenode-lab shapes"}},
		{append([]string{"shell"}, shapes...), []string{"a shape's name"}},
		{append([]string{"run", "two", "--cgroup", "v3", "true"}, shapes...), []string{"--cgroup", "v1 or v2"}},
		{append([]string{"run", "two", "--lab", dir, "true"}, shapes...), []string{"make lab"}},
		{append([]string{"run", "two", "--guest", "hurd", "true"}, shapesAndLab...), []string{`"hurd"`, "busybox or debian"}},
		{append([]string{"run", "two", "--guest", "debian", "true"}, shapesAndLab...), []string{"debian.img", "make lab-debian"}},
		{append([]string{"shell", "two", "--guest", "debian", "--cgroup", "v1"}, shapesAndLab...), []string{"cgroup v1 is not offered", "debian"}},
		{[]string{"run", file("bad.yaml", "name: x\nnodes: [{cpus: 0, memory: 1GiB, colour: red}]\n"), "true"}, []string{"bad.yaml", "colour"}},
		{[]string{"demo", "--mix", filepath.Join(dir, "none.yaml")}, []string{"none.yaml"}},
		{[]string{"demo", "--mix", file("mix.yaml", string(mix)+"\ncolour: red\n")}, []string{"mix.yaml", "colour"}},
		{[]string{"demo", "--mix", "../../lab/mixes/first-light.yaml", "--arms", "magic"}, []string{"magic", "numad"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--mix", "magic"}, []string{"magic", "database"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--warmup", "-1"}, []string{"--warmup"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--pilot", "--budget", "0s"}, []string{"--budget"}},
		{[]string{"demo", "--mixes", "../../lab/mixes", "--pilot", "-o", "json"}, []string{"--pilot"}},
	} {
		code, text := clitest.RunCaught(t, rootCommand(), c.args...)
		if code != exit.Bad || !strings.HasPrefix(text, "homenode-lab: ") {
			t.Errorf("%v: exit code %d, %s", c.args, code, text)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in: %s", c.args, w, text)
			}
		}
	}
}

// No QEMU: the error says what to install.
func TestNoQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if code, text := clitest.RunCaught(t, rootCommand(), "run", "two", "true", "--shapes", "../../lab/shapes", "--lab", t.TempDir()); code != exit.Bad || !strings.Contains(text, "qemu-system-x86") {
		t.Errorf("exit code %d: %s", code, text)
	}
}

// Shapes are completed, and every command that is not hidden is in a group.
func TestCompletion(t *testing.T) {
	for _, line := range []string{"shell f", "run f"} {
		if code, out, _ := runWith(append([]string{"__completeNoDesc"}, strings.Fields(line)...)...); code != exit.Done || out != "far\nfour\n:4\n" {
			t.Errorf("%s: exit code %d, %q", line, code, out)
		}
	}
	for _, cmd := range rootCommand().Commands() {
		if !cmd.Hidden && cmd.GroupID == "" && cmd.Name() != "completion" {
			t.Errorf("%s is in no group", cmd.Name())
		}
	}
}
