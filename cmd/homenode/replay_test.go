// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/agent/decisions"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/replay"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// recordedDay is a recording of some windows of a busy node, with the configuration
// of that time.
func recordedDay(t *testing.T, windows int, config string) []byte {
	t.Helper()
	var h windowtest.Host
	h.Shape([]int{0, 1}, 4, 16*unit.GiB)
	if _, err := h.Line("workload /a approved cpu=1 quota=0.9 cpus=0-7 mems=0-1 anon=0,1GiB"); err != nil {
		t.Fatal(err)
	}
	l := h.Load("/a")
	l.LocalLoads, l.RemoteLoads = unit.Measured(uint64(5e6), "test"), unit.Measured(uint64(5e6), "test")
	l.CPUByNode[0], l.CPUByNode[1] = unit.Measured(0.5, "test"), unit.Measured(0.5, "test")
	var out bytes.Buffer
	r, err := window.NewRecorderOf(&out, h.Machine, time.Second, config)
	for i := range windows {
		if i == 4 {
			_, err = h.Line("node 1 busy=3.6")
		}
		err = errors.Join(err, r.Add(h.Window()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestReplayCommand(t *testing.T) {
	dir := t.TempDir()
	day := recordedDay(t, 100, "mao: {strategy: B}\n")
	file := filepath.Join(dir, "day.jsonl")
	if err := os.WriteFile(file, day, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := replayOptions{output: "json", set: []string{"mao.strategy=A"}, stderr: os.Stderr}
	if err := runReplay(t.Context(), &out, file, o); err != nil {
		t.Fatal(err)
	}
	var r replay.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Windows != 100 || r.Now.Unbinds <= r.Then.Unbinds || r.Then.Name != "recorded" || !strings.Contains(r.Now.Name, "mao.strategy=A") {
		t.Errorf("%v: %+v", err, r)
	}
	out.Reset()
	o.output = "text"
	if err := runReplay(t.Context(), &out, file, o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"100 windows", "then: recorded", "now: recorded, mao.strategy=A", "decisions differ", "cannot react", "UNBOUND SHARE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// Bad input is exit code 2, with the line number.
func TestReplayRefuses(t *testing.T) {
	dir := t.TempDir()
	day := string(recordedDay(t, 3, ""))
	lines := strings.SplitAfter(day, "\n")
	for name, c := range map[string]struct {
		text string
		set  string
		code int
		want string
	}{
		"not one":        {"rubbish\n", "", exit.Bad, "line 1"},
		"a bad line":     {lines[0] + lines[1] + "{}\n" + lines[2], "", exit.Bad, "line 3"},
		"empty":          {lines[0], "", exit.Bad, "no window"},
		"cut off":        {day[:len(day)-40], "", exit.Partly, ""},
		"no setting":     {day, "mao.strategy", exit.Bad, "--set"},
		"unknown":        {day, "mao.strategies=A", exit.Bad, "strategies"},
		"not to be":      {day, "mao.target=7", exit.Bad, "between 0 and 1"},
		"more than that": {day, "mao.target=1\nx: y", exit.Bad, "--set"},
	} {
		file := filepath.Join(dir, "f")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o := replayOptions{output: "json", stderr: os.Stderr}
		if c.set != "" {
			o.set = []string{c.set}
		}
		var out bytes.Buffer
		err := runReplay(t.Context(), &out, file, o)
		var code exit.Error
		if !errors.As(err, &code) || code.Code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhyFromLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "d.jsonl")
	noStatus := agent.ErrNoStatus
	var out bytes.Buffer
	if err := whyFromLog(&out, log, "a", "text", noStatus); !errors.Is(err, noStatus) {
		t.Errorf("no log: %v", err)
	}
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := decisions.Entry{Schema: decisions.Schema, At: time.Unix(0, 0), Seq: 7, Action: "bind /d/a\x1b[31m to nodes 1", Kind: action.Bind, Workload: "/d/a", Reason: action.Reason{
		Rule: "mao.bind", Alternatives: []action.Alternative{{Code: "cpu", Chosen: true}}}}
	if err := decisions.Write(f, e); err != nil {
		t.Fatal(err)
	}
	if err := whyFromLog(&out, log, "a", "text", noStatus); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "window 7: bind /d/a") || !strings.Contains(got, "it has room on nodes") || strings.Contains(got, "\x1b") || !strings.Contains(got, "* chosen") {
		t.Error(got)
	}
	if err := whyFromLog(&out, log, "other", "text", noStatus); !errors.Is(err, noStatus) {
		t.Errorf("%v", err)
	}
	out.Reset()
	if err := whyFromLog(&out, log, "/d/a", "json", noStatus); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("%s, %v", out.String(), err)
	}
}

func TestReadAnswer(t *testing.T) {
	var r agent.Reloaded
	if err := readAnswer("reload", 200, []byte(`{"changed_settings":["mao"],"waits_for_restart":["api"]}`), &r); err != nil || len(r.Changed) != 1 || len(r.Waits) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	for code, want := range map[int]int{422: exit.Bad, 403: exit.Bad, 409: exit.Bad, 404: exit.Bad, 500: exit.Failed} {
		err := readAnswer("reload", code, []byte(`{"error":"period: soon"}`), &r)
		got := exit.Failed
		if c := (exit.Error{}); errors.As(err, &c) {
			got = c.Code
		}
		if err == nil || got != want || !strings.Contains(err.Error(), "reload: ") || !strings.Contains(err.Error(), "period: soon") {
			t.Errorf("%d: %v", code, err)
		}
	}
	if err := readAnswer("reload", 200, []byte("<html>"), &r); err == nil {
		t.Error("text that is not JSON was accepted")
	}
}

func TestAgentConfigLayers(t *testing.T) {
	dir := t.TempDir()
	file := clitest.WriteFile(t, filepath.Join(dir, "agent.yaml"), "period: 5s\n")
	c, err := agentConfig(file, dir)
	if err != nil || c.StateDir != dir || c.Period != 5*time.Second || c.Decisions.Path != filepath.Join(dir, "decisions.jsonl") || c.Text != "period: 5s\n" {
		t.Errorf("%+v, %v", c, err)
	}
}
