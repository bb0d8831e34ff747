// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/exit"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/snapshot"
)

// statOut runs a command line in this process and returns what it printed.
func statOut(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := rootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

const fakeTop = "/sys/fs/cgroup"

func fakeTree(t *testing.T) string {
	return kerneltest.Tree(t, kerneltest.TwoNodes().With(kerneltest.Files{
		"/proc/self/mountinfo":                    "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		fakeTop + "/cgroup.controllers":           "cpuset cpu memory\n",
		fakeTop + "/cpuset.cpus.effective":        "0-3\n",
		fakeTop + "/cpuset.mems.effective":        "0-1\n",
		fakeTop + `/m\x2d1/cgroup.procs`:          "10\n",
		fakeTop + `/m\x2d1/cgroup.threads`:        "10\n",
		fakeTop + `/m\x2d1/cpuset.cpus.effective`: "0-3\n",
		fakeTop + `/m\x2d1/cpuset.mems.effective`: "0-1\n",
		fakeTop + `/m\x2d1/memory.numa_stat`:      "anon N0=1048576 N1=2097152\nfile N0=4096 N1=8192\nshmem N0=0 N1=4096\n",
		fakeTop + "/empty/cgroup.procs":           "",
		fakeTop + "/empty/cgroup.events":          "populated 0\n",
		"/proc/10/comm":                           "app\n",
		"/proc/10/stat":                           "10 (app) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
		"/proc/10/numa_maps":                      "1000 default heap anon=256 dirty=256 N0=256 kernelpagesize_kB=4\n2000 bind:1 anon=512 N1=512 kernelpagesize_kB=4\n",
		"/sys/devices/system/node/node0/numastat": "numa_hit 1\n",
		"/sys/devices/system/node/node1/numastat": "numa_hit 1\n",
	})).Path("/")
}

func TestStatOfATree(t *testing.T) {
	tree := fakeTree(t)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"stat", "--interval", "0"}, []string{"2 nodes, 4 CPUs", "Memory by kind", "unknown", `/m\x2d1`, "1 MiB/2.01 MiB"}},
		{[]string{"stat", "--interval", "0", "--workload", `m\x2d1`}, []string{`/m\x2d1`, "memory of nodes 0-1", "anon", "2 MiB"}},
		{[]string{"stat", "--interval", "0", "--cgroup", fakeTop + `/m\x2d1`}, []string{`/m\x2d1`, "shmem"}},
		{[]string{"stat", "--pid", "10"}, []string{"process 10 (app): 3 MiB on 2 nodes", "heap", "shared pages are counted"}},
		{[]string{"maps", "10"}, []string{"process 10 (app)", "The biggest of 2 mappings", "bind:1"}},
	} {
		text, err := statOut(t, append(c.args, "--root", tree)...)
		for _, w := range c.want {
			if err != nil || !strings.Contains(text, w) {
				t.Errorf("%v: %v, no %q in\n%s", c.args, err, w, text)
			}
		}
	}
}

// JSON is one snapshot per line.
func TestStatJSON(t *testing.T) {
	tree := fakeTree(t)
	text, err := statOut(t, "stat", "--interval", "20ms", "--count", "2", "-o", "json", "--root", tree)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(text))
	n := 0
	for ; d.More(); n++ {
		var s snapshot.Snapshot
		if err := d.Decode(&s); err != nil || len(s.Nodes) != 2 || s.Length < 20*time.Millisecond || s.Nodes[0].Numastat.Hit.Or(9) != 0 {
			t.Errorf("snapshot %d: %+v, %v", n, s, err)
		}
	}
	if n != 2 {
		t.Errorf("%d snapshots", n)
	}
}

// Each thing that cannot be shown has its own message, and is bad input.
func TestStatRefuses(t *testing.T) {
	tree := fakeTree(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stat", "--workload", "none"}, "find workload none: no cgroup"},
		{[]string{"stat", "--cgroup", "/none"}, "find cgroup /none: no cgroup has that path"},
		{[]string{"stat", "--cgroup", "/empty"}, "no process is in it"},
		{[]string{"stat", "--cgroup", "/"}, "the root is no workload"},
		{[]string{"stat", "--pid", "99"}, "process 99 is gone"},
		{[]string{"maps", "99"}, "process 99 is gone"},
	} {
		if code, text := runCaught(t, append(c.args, "--root", tree)...); code != exit.Bad || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, text)
		}
	}
	file := filepath.Join(t.TempDir(), "record.tar.gz")
	meminfo := filepath.Join(tree, "sys/devices/system/node/node0/meminfo")
	for _, name := range []string{file, meminfo} {
		if err := os.WriteFile(name, []byte("Node 0 MemTotal:   997"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"stat"}, {"maps", "10"}} {
		if code, text := runCaught(t, append(args, "--root", file)...); code != exit.Bad || !strings.Contains(text, "it is a file: give a folder") {
			t.Errorf("%v of a file: exit code %d, %s", args, code, text)
		}
	}
	if out, err := statOut(t, "stat", "--interval", "0", "--root", tree); codeOf(err) != exit.Partly ||
		!strings.Contains(strings.Join(strings.Fields(out), " "), `node0/meminfo: malformed: line 1: MemTotal "997"`) {
		t.Errorf("truncated: %v\n%s", err, out)
	}
	if _, err := statOut(t, "stat", "--pid", "10,99", "--root", tree); codeOf(err) != exit.Partly {
		t.Errorf("one of two: %v", err)
	}
}

// With the running kernel: a process that has ended, a kernel thread, another
// user's process.
func TestStatOfThisHost(t *testing.T) {
	if _, err := os.Stat("/proc/self/numa_maps"); err != nil {
		t.Skipf("this kernel has no numa_maps: %v", err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(gone.Process.Pid)
	if code, text := runCaught(t, "maps", pid); code != exit.Bad || text != "homenode: process "+pid+" is gone\n" {
		t.Errorf("gone: exit code %d, %s", code, text)
	}
	if name, err := os.ReadFile("/proc/2/comm"); err == nil && string(name) == "kthreadd\n" {
		const want = "homenode: process 2 (kthreadd) is a kernel thread: it has no memory of its own\n"
		if code, text := runCaught(t, "stat", "--pid", "2"); code != exit.Bad || text != want {
			t.Errorf("kernel thread: exit code %d, %s", code, text)
		}
	}
	if text, err := statOut(t, "stat", "--pid", strconv.Itoa(os.Getpid()), "--interval", "20ms"); err != nil || !strings.Contains(text, "CPUs used by node") {
		t.Errorf("this process: %v\n%s", err, text)
	}
}

func TestStatOfAnotherUser(t *testing.T) {
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
	pid := strconv.Itoa(os.Getpid())
	cmd := exec.Command(exe, "maps", pid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != exit.Bad || !strings.Contains(string(out), "belongs to root: reading its memory map needs CAP_SYS_PTRACE or that user") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// codeOf is the exit code that an error carries; exit.Done if it carries none.
func codeOf(err error) int {
	var e exit.Error
	if !errors.As(err, &e) {
		return exit.Done
	}
	return e.Code
}
