// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/agent"
	"homenode/internal/exit"
	"homenode/internal/experiment"
	"homenode/internal/lab/demo"
	"homenode/internal/unit"
)

const testMixes = "../../lab/mixes"

func TestDemoFindsMixes(t *testing.T) {
	for mix, want := range map[string]string{
		"first-light":             filepath.Join(testMixes, "first-light.yaml"),
		"database":                filepath.Join(testMixes, "database.yaml"),
		"parallel":                filepath.Join(testMixes, "parallel.yaml"),
		"mine.yaml":               "mine.yaml",
		"./there/mine":            "./there/mine",
		testMixes + "/other.yaml": testMixes + "/other.yaml",
	} {
		if got, err := mixFile(testMixes, mix); err != nil || got != want {
			t.Errorf("%s: %s, %v", mix, got, err)
		}
	}
	for _, mix := range []string{"second-light", "first-light-agent", ""} {
		if _, err := mixFile(testMixes, mix); err == nil || !strings.Contains(err.Error(), "want database, first-light, parallel, or a file") {
			t.Errorf("%q: %v", mix, err)
		}
	}
	if _, err := mixFile(t.TempDir(), "first-light"); err == nil || !strings.Contains(err.Error(), "--mixes") {
		t.Errorf("a folder without mixes: %v", err)
	}
}

// Every mix has a valid agent configuration next to it, which approves a service for
// just those workloads that fit in a node.
func TestDemoMixesHaveAgents(t *testing.T) {
	for _, name := range []string{"first-light", "database", "parallel"} {
		path, err := mixFile(testMixes, name)
		if err != nil {
			t.Fatal(err)
		}
		mix, err := demo.ReadMix(path)
		if err != nil {
			t.Fatal(err)
		}
		layer, err := agent.ReadLayer(beside(path, agentSuffix))
		if err != nil {
			t.Fatal(err)
		}
		config, err := agent.ParseLayers(layer)
		if err != nil {
			t.Fatal(err)
		}
		approved := map[string]bool{}
		for _, s := range config.Services {
			approved[strings.TrimPrefix(s.Match, "/demo/")] = s.Approved
		}
		for _, w := range mix.Workloads {
			if approved[w.Name] != (w.Kind == demo.Sensitive) {
				t.Errorf("%s: %s is %s, approved: %v", name, w.Name, w.Kind, approved[w.Name])
			}
		}
	}
}

func TestDemoStoredPeers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-peers.json")
	var said bytes.Buffer
	if c, err := storedPeers(path, "a", &said); c != nil || err != nil || said.Len() > 0 {
		t.Errorf("none is stored: %v, %v, %s", c, err, &said)
	}
	data, err := json.Marshal(experiment.Comparison{Load: "a", WarmupSeconds: 120})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := storedPeers(path, "a", &said); err != nil || c == nil || c.WarmupSeconds != 120 || said.Len() > 0 {
		t.Errorf("of this load: %+v, %v, %s", c, err, &said)
	}
	if c, err := storedPeers(path, "b", &said); err != nil || c != nil || !strings.Contains(said.String(), "make bench-peers") {
		t.Errorf("of another load: %+v, %v, %s", c, err, &said)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := storedPeers(path, "a", &said); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("half a file: %v", err)
	}
}

func TestDemoProgress(t *testing.T) {
	p := demo.Progress{All: 10}
	if got, want := demoText(p), "0 of 10 runs · booting the lab"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p = demo.Progress{Done: 3, All: 10, Left: unit.Some(4*time.Minute + 10*time.Second), Now: []demo.Running{
		{Arm: "numad", Step: demo.Step{Stage: demo.StageWarm, Done: 6, Of: 18, Local: unit.Some(0.52)}},
		{Arm: "by-hand", Step: demo.Step{Stage: demo.StageLoad}},
	}}
	if got, want := demoText(p), "3 of 10 runs · about 4 min left · numad warming up 6 of 18 model-s, local 0.52 · by-hand starting the load"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := leftText(59 * time.Second); got != "less than a minute left" {
		t.Errorf("%q", got)
	}
}

// Ctrl-C while the lab boots: QEMU ends, and all its files are removed.
func TestDemoInterruptedLeavesNothing(t *testing.T) {
	bin, built, temp, out := t.TempDir(), t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "demo")
	started := filepath.Join(bin, "pid")
	script := "#!/bin/sh\necho $$ > " + started + ".$$\nmv " + started + ".$$ " + started + "\nexec sleep 1000\n" // two guests may start at once
	for path, text := range map[string]string{
		filepath.Join(bin, "qemu-system-x86_64"):   script,
		filepath.Join(built, "vmlinux"):            "",
		filepath.Join(built, "initramfs.cpio"):     "",
		filepath.Join(built, "libhomenode_lab.so"): "",
		filepath.Join(bin, "homenode"):             "",
		filepath.Join(bin, "homenode-lab"):         "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temp)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		cmd := rootCommand()
		cmd.SetArgs([]string{"demo", "--mixes", testMixes, "--shapes", "../../lab/shapes", "--lab", built, "--bin", bin, "--out", out})
		cmd.SetErr(&bytes.Buffer{})
		ended <- cmd.ExecuteContext(ctx)
	}()
	pid := waitForPID(t, started, ended)
	stop()
	err := <-ended
	var code exit.Error
	if err == nil || errors.As(err, &code) || !strings.Contains(err.Error(), "interrupted before a run was complete") {
		t.Errorf("it says: %v", err)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("QEMU (%d) is still there: %v", pid, err)
	}
	for _, dir := range []string{temp, out} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
}

func waitForPID(t *testing.T, file string, ended <-chan error) int {
	t.Helper()
	for range 6000 {
		if text, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatal("QEMU was not started in a minute")
	return 0
}

// The runs before Ctrl-C are kept, and so is the last comparison.
func TestDemoKeepsRuns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "runs.jsonl")
	if err := os.WriteFile(path, []byte("the last comparison's\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := newKeptRuns(demoFlags{outDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "the last") {
		t.Errorf("gone before a run was complete: %q, %v", text, err)
	}
	k.addRun(demo.RunResult{Arm: "linux"})
	k.addRun(demo.RunResult{Arm: "numad"})
	k.close()
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 2 || strings.Contains(string(text), "the last") {
		t.Errorf("%q, %v", text, err)
	}
	got := interruptedDemo(2, demo.Options{Mix: demo.Mix{Repeats: 3}, Arms: demo.Arms}, path)
	var code exit.Error
	if !errors.As(got, &code) || code.Code != exit.Partly || !strings.Contains(got.Error(), "2 of 15 runs were complete and are in "+path) {
		t.Errorf("%v", got)
	}
}
