// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// These run on any machine: one node is enough.

const execEnv = "HOMENODE_TEST_EXEC"

// TestMain is the program that TestLiveExec becomes.
func TestMain(m *testing.M) {
	if os.Getenv(execEnv) != "" {
		err := Exec(unix.NewLive(), Placement{Policy: Interleave, Nodes: set.FromNodes(0), CPUs: set.FromCPUs(0)},
			[]string{"sh", "-c", "grep Cpus_allowed_list /proc/self/status; grep -c interleave:0 /proc/self/numa_maps"}, os.Environ())
		os.Stderr.WriteString(err.Error())
		os.Exit(9)
	}
	os.Exit(m.Run())
}

func needNode0(t *testing.T) {
	t.Helper()
	l, err := ReadLimits(unix.At("/"))
	if err != nil || !l.Mems.Has(0) || !l.CPUs.Has(0) {
		t.Skipf("not allowed node 0 and CPU 0: %+v, %v", l, err)
	}
	if err := Probe(unix.NewLive(), Placement{Policy: Bind, Nodes: set.FromNodes(0)}); err != nil {
		t.Skipf("this kernel or sandbox has no memory policies: %v", err)
	}
}

// The settings of one thread of many are those of the program after execve.
func TestLiveExec(t *testing.T) {
	needNode0(t)
	t.Setenv(execEnv, "1")
	o, err := Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{os.Args[0]}})
	if err != nil || o.Exit != 0 {
		t.Fatalf("%+v, %v", o, err)
	}
	if len(o.Stdout) != 2 || !strings.HasSuffix(o.Stdout[0], "\t0") || o.Stdout[1] == "0" {
		t.Errorf("%q", o.Stdout)
	}
}

// The child is placed, and this process's thread is as before.
func TestLiveRun(t *testing.T) {
	needNode0(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, _ := liveThread{}.affinity()
	var echo bytes.Buffer
	o, err := Run(t.Context(), unix.NewLive(), Placement{Policy: Bind, Nodes: set.FromNodes(0), CPUs: set.FromCPUs(0)},
		Command{Argv: []string{"sh", "-c", "grep Cpus_allowed_list /proc/self/status; grep -m1 -o bind:0 /proc/self/numa_maps; echo gone wrong >&2; exit 3"}, Echo: &echo})
	if err != nil || o.Exit != 3 || o.Failed(0) != "failed with exit code 3" {
		t.Fatalf("%+v, %v", o, err)
	}
	if strings.Join(o.Stdout, "|") != "Cpus_allowed_list:\t0|bind:0" || strings.Join(o.Stderr, "|") != "gone wrong" || !strings.Contains(echo.String(), "gone wrong") {
		t.Errorf("%q, %q, echo %q", o.Stdout, o.Stderr, echo.String())
	}
	if o.Elapsed <= 0 || o.Elapsed > time.Minute || o.MinorFaults == 0 || o.User+o.System > o.Elapsed+50*time.Millisecond {
		t.Errorf("%+v", o)
	}
	after, _ := liveThread{}.affinity()
	if mode, n, err := (liveThread{}).policy(); err != nil || mode != 0 || !n.IsEmpty() || after != before {
		t.Errorf("this thread: policy %d of %s, %v; CPUs %s, before %s", mode, n, err, after, before)
	}
}

func TestLiveRunMemory(t *testing.T) {
	o, err := Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{"sh", "-c", "head -c 200000000 /dev/zero | tail -n1 | wc -c"}})
	if err != nil || o.Exit != 0 || o.MaxRSS.Or(0) < 100*unit.MiB {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{"true"}}); err != nil || o.MaxRSS.Known() {
		t.Errorf("a small child's memory is not known, it starts with ours: %+v, %v", o, err)
	}
}

// A program that takes too long is ended, with what it started; so is one that is
// interrupted.
func TestLiveRunEnds(t *testing.T) {
	start := time.Now()
	o, err := Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{"sh", "-c", "sleep 60 & sleep 61"}, Timeout: time.Second})
	if err != nil || !o.TimedOut || o.Failed(time.Second) != "ran longer than 1s" || time.Since(start) > 30*time.Second {
		t.Errorf("%+v, %v after %v", o, err, time.Since(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := Run(ctx, unix.NewLive(), Placement{}, Command{Argv: []string{"sleep", "60"}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	o, err = Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{"sh", "-c", "kill -SEGV $$"}})
	if err != nil || o.Signal != syscall.SIGSEGV || !strings.Contains(o.Failed(0), "was ended by signal 11") {
		t.Errorf("%+v, %v", o, err)
	}
	start = time.Now()
	const leaves = "setsid sleep 60 & until grep -q sleep /proc/$!/comm; do sleep 0.01; done; echo left $!" // it is sleep once it has left
	if o, err = Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{"sh", "-c", leaves}, Timeout: 30 * time.Second}); err != nil || o.Exit != 0 ||
		o.Elapsed > 30*time.Second || time.Since(start) > 30*time.Second || o.LeftBehind || len(o.Stdout) != 1 {
		t.Fatalf("a child that left the group holds the pipe: %+v, %v after %v", o, err, time.Since(start))
	}
	pid, err := strconv.Atoi(strings.TrimPrefix(o.Stdout[0], "left "))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("it was meant to keep running: %v", err)
	}
}

// What a program leaves in the background is ended with it, and Run does not wait for
// the pipe that it holds.
func TestLiveRunLeavesNothing(t *testing.T) {
	run := func(script string) Outcome {
		o, err := Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{"sh", "-c", script}})
		if err != nil || o.Exit != 0 || len(o.Stdout) != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
		return o
	}
	start := time.Now()
	o := run("sleep 60 & echo $!")
	if took := time.Since(start); !o.LeftBehind || took > 30*time.Second {
		t.Errorf("%+v after %v", o, took)
	}
	pid, err := strconv.Atoi(o.Stdout[0])
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); syscall.Kill(pid, 0) == nil && !isZombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on", pid)
		}
	}
	if o = run("sleep 0 & wait; echo none"); o.LeftBehind {
		t.Errorf("%+v", o)
	}
}

// isZombie: in a container there may be no process that reaps orphans.
func isZombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(data), ") Z ")
}

func TestLiveRunRefuses(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	script := filepath.Join(dir, "script")
	for name, mode := range map[string]os.FileMode{text: 0o644, script: 0o755} {
		if err := os.WriteFile(name, []byte("echo\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, want string }{
		{"no-such-program-here", "it is not in PATH"}, {filepath.Join(dir, "none"), "no such file"},
		{text, "may not be run"}, {script, "#! line"}, {"", "none was given"},
	} {
		if _, err := Run(t.Context(), unix.NewLive(), Placement{}, Command{Argv: []string{c.name}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Run(t.Context(), unix.Live{}, Placement{}, Command{Argv: []string{"true"}}); err == nil {
		t.Error("a recorded machine started a program")
	}
}
