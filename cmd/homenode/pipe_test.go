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
	"strings"
	"syscall"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/cli/clitest"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// TestMain is the program where a test needs it as a process of its own (asProcess).
func TestMain(m *testing.M) {
	if line := os.Getenv("HOMENODE_LINE"); line != "" {
		os.Exit(cli.Run(context.Background(), rootCommand(), strings.Fields(line)))
	}
	os.Exit(m.Run())
}

// asProcess is a command line as a process.
func asProcess(t *testing.T, line string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "HOMENODE_LINE="+line), env...)
	return cmd
}

// seenLines are commands that people read on a terminal, on files that are there.
func seenLines(t *testing.T) []string {
	t.Helper()
	dir := agentFolder(t)
	return []string{
		"topo --shape four", "events --cpu amd-zen4", "placements --shape four --vcpus 8", "doctor --snapshot " + savedSnapshot,
		"status --state " + dir, "why café --state " + dir, "top --once --replay " + fakeFour,
	}
}

// agentFolder is the state folder of an agent that runs, and watches a workload whose name is
// not ASCII.
func agentFolder(t *testing.T) string {
	t.Helper()
	why := action.Reason{Workload: "/srv/café", Rule: "mao.keep.no-signal", Numbers: []action.Number{{Name: "cpu_used", Value: unit.Measured(0.009062, "cpu.stat"), Unit: "cpus"}}}
	s := agent.Status{
		Schema: 3, PID: os.Getpid(), Mode: agent.ModeAct, Started: time.Now(), Period: 10 * time.Second, EventTable: "amd-zen4", Rounds: 7, Counting: &agent.Counting{Why: "no such event", Remedy: "a PMU"},
		Window:    window.Window{At: time.Now(), Length: 10 * time.Second, Nodes: []window.Node{{ID: 0, CPUs: set.FromCPUs(0, 1)}}, Workloads: []window.Workload{{ID: "/srv/café"}}},
		Workloads: []agent.WorkloadStatus{{ID: "/srv/café", Service: "café", Reason: why, Past: []agent.Decision{{At: time.Now(), Seq: 3, Action: "bind /srv/café to nodes 0", Reason: why}}}},
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(clitest.WriteFile(t, filepath.Join(t.TempDir(), "status.json"), string(text)))
}

// A reader that has gone ends a command without a word, as it ends cat: 'homenode topo | true'.
func TestPipeThatCloses(t *testing.T) {
	for _, line := range append(seenLines(t), "topo --shape two -o json", "--help") {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var errs bytes.Buffer
		cmd := asProcess(t, line)
		cmd.Stdout, cmd.Stderr = w, &errs
		err = cmd.Run()
		w.Close()
		var exited *exec.ExitError
		if !errors.As(err, &exited) || exited.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE || errs.Len() > 0 {
			t.Errorf("%s: %v: %q", line, err, errs.String())
		}
	}
}

// In the locale C, on 60 columns, text is ASCII; NO_COLOR and a file have no escape codes.
// Tables may be wider.
func TestPlainTerminal(t *testing.T) {
	for _, line := range seenLines(t) {
		out, err := asProcess(t, line, "LC_ALL=C", "COLUMNS=60", "NO_COLOR=1").Output()
		if err != nil || len(out) == 0 {
			t.Errorf("%s: %v", line, err)
		}
		if at := bytes.IndexFunc(out, func(r rune) bool { return r > 126 || r < ' ' && r != '\n' }); at >= 0 {
			t.Errorf("%s: %q", line, out[max(0, at-20):at+4])
		}
	}
}
