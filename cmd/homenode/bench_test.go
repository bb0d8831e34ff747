// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/bench"
	"homenode/internal/cli"
	"homenode/internal/cli/clitest"
	"homenode/internal/exit"
	"homenode/internal/kernel/launch"
	"homenode/internal/kernel/membench"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// stubProber is a machine on which every line takes 100 ns.
type stubProber struct {
	jobs  int
	after func(jobs int)
}

func (s *stubProber) Clock() membench.Clock        { return membench.Monotonic() }
func (s *stubProber) Free(int) (unit.Bytes, error) { return 64 * unit.GiB, nil }
func (s *stubProber) Conditions() (membench.Conditions, error) {
	return membench.Conditions{CPUModel: "Stub"}, nil
}

func (s *stubProber) Run(ctx context.Context, j membench.Job) (r membench.Result, err error) {
	if s.jobs++; s.after != nil {
		s.after(s.jobs)
	}
	for range j.Threads {
		ops := uint64(j.Length / (100 * time.Nanosecond))
		r.Threads = append(r.Threads, membench.ThreadResult{Ops: ops, Bytes: 64 * ops, Elapsed: j.Length, Whole: j.Length})
	}
	return r, ctx.Err()
}

func (s *stubProber) Move(ctx context.Context, m membench.Move) (membench.Moved, error) {
	return membench.Moved{Pages: 1, Size: m.Bytes, Elapsed: time.Millisecond}, ctx.Err()
}

// stub makes bench measure a stub.
func stub(t *testing.T, s *stubProber) *stubProber {
	t.Helper()
	old := openProber
	t.Cleanup(func() { openProber = old })
	openProber = func() (bench.Prober, func() error, error) { return s, func() error { return nil }, nil }
	return s
}

// Bad input is exit code 2 and one sentence, before anything is measured.
func TestBenchBadInput(t *testing.T) {
	s := stub(t, &stubProber{})
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--nodes", "700"}, []string{"--nodes 700", "no node 700", "this machine has"}},
		{[]string{"--nodes", "x"}, []string{"--nodes", "x"}},
		{[]string{"--cpus", "8000"}, []string{"CPU 8000 is not online"}},
		{[]string{"--only", "speed"}, []string{`unknown part "speed"`, "latency"}},
		{[]string{"--skip", "speed"}, []string{"--skip", `unknown part "speed"`}},
		{[]string{"--only", "rao", "--skip", "rao"}, []string{"leave nothing"}},
		{[]string{"--repeats", "0"}, []string{"--repeats is 0", "at least 1"}},
		{[]string{"--budget", "-1s"}, []string{"--budget is -1s"}},
		{[]string{"--out", ""}, []string{"--out is empty"}},
		{[]string{"--out", in("none/p.json")}, []string{"no folder", "none"}},
		{[]string{"--out", dir}, []string{"not a regular file"}},
		{[]string{"--out", "/proc/self/p.json"}, []string{"--out /proc/self/p.json", "make a file"}},
		{[]string{"--html", in("none/p.html")}, []string{"--html", "no folder", "none"}},
		{[]string{"--html", dir}, []string{"--html", "not a regular file"}},
		{[]string{"--pictures", clitest.WriteFile(t, in("file"), "")}, []string{"--pictures", "make folder"}},
		{[]string{"--pictures", "/proc/self"}, []string{"--pictures /proc/self", "make a file"}},
		{[]string{"--only", ""}, []string{"--only is empty"}},
		{[]string{"--skip", ""}, []string{"--skip is empty"}},
		{[]string{"--nodes", " "}, []string{"--nodes is empty"}},
		{[]string{"--cpus", ""}, []string{"--cpus is empty"}},
		{[]string{"--html="}, []string{"--html is empty"}},
		{[]string{"-o", "xml"}, []string{"xml", "text, json or yaml"}},
		{[]string{"--html", "-", "-o", "json"}, []string{"both want standard output"}},
		{[]string{"--resume", "--out", clitest.WriteFile(t, in("bad.json"), "{")}, []string{"bad.json", "parse profile"}},
		{[]string{"show", in("no.json")}, []string{"read profile", "no.json"}},
		{[]string{"show", in("bad.json")}, []string{"bad.json", "parse profile"}},
		{[]string{"show"}, []string{"a profile's file"}},
		{[]string{"now"}, []string{"no arguments"}},
	} {
		args := append([]string{"bench"}, c.args...)
		if !slices.Contains(args, "--out") && args[1] != "show" {
			args = append(args, "--out", in("p.json"))
		}
		code, out, errs := runWith(args...)
		if code != exit.Bad || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.args, code, out, errs)
		}
		for _, w := range c.want {
			if !strings.Contains(errs, w) {
				t.Errorf("%v: %q does not say %q", c.args, errs, w)
			}
		}
	}
	if s.jobs != 0 {
		t.Errorf("%d jobs were run", s.jobs)
	}
}

// A profile is saved, shown in all formats, and continued.
func TestBenchAndShow(t *testing.T) {
	s := stub(t, &stubProber{})
	dir := t.TempDir()
	out, page := filepath.Join(dir, "p.json"), filepath.Join(dir, "p.html")
	code, text, errs := runWith("bench", "--only", "latency,mixes", "--out", out, "--html", page, "--pictures", filepath.Join(dir, "svg"))
	if code != exit.Done || !strings.Contains(text, "100") || !strings.Contains(errs, "measuring latency") || !strings.Contains(errs, "bench show "+out) {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, text, errs)
	}
	for _, path := range []string{page, filepath.Join(dir, "svg/latency.svg")} {
		if data, err := os.ReadFile(path); err != nil || !bytes.Contains(data, []byte("<svg")) {
			t.Errorf("%s: %v", path, err)
		}
	}
	p, err := source.ProfileFile(out)
	if err != nil || !slices.Equal(p.Done, []profile.Part{profile.Latency, profile.Mixes}) {
		t.Fatalf("done %v, %v", p.Done, err)
	}
	for face, want := range map[string]string{"text": "Stub", "json": `"cpu_model":"Stub"`, "html": "<html"} {
		if code, text, errs := runWith("bench", "show", out, "-o", face); code != exit.Done || !strings.Contains(text, want) {
			t.Errorf("show -o %s: exit %d, %q, %q", face, code, text, errs)
		}
	}
	before := s.jobs
	code, text, _ = runWith("bench", "--resume", "--only", "latency,mixes", "--out", out, "-o", "json")
	if code != exit.Done || s.jobs != before || !json.Valid([]byte(text)) {
		t.Errorf("--resume of a whole profile: exit %d, %d jobs more, %q", code, s.jobs-before, text)
	}
}

func TestBenchOfAnotherMachine(t *testing.T) {
	stub(t, &stubProber{})
	out := filepath.Join(t.TempDir(), "p.json")
	if code, _, errs := runWith("bench", "--only", "latency", "--out", out); code != exit.Done {
		t.Fatal(errs)
	}
	p, err := source.ProfileFile(out)
	if err != nil {
		t.Fatal(err)
	}
	p.Machine.Nodes = append(p.Machine.Nodes, 900)
	p.Machine.NodeCPUs = append(p.Machine.NodeCPUs, set.CPUSet{})
	p.Machine.Memory = append(p.Machine.Memory, unit.GiB)
	for i := range p.Machine.Distances {
		p.Machine.Distances[i] = append(p.Machine.Distances[i], unit.None[int]())
	}
	p.Machine.Distances = append(p.Machine.Distances, make([]unit.Opt[int], len(p.Machine.Nodes)))
	data, err := profile.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, out, string(data))
	code, _, errs := runWith("bench", "--resume", "--only", "latency", "--out", out)
	if code != exit.Bad || !strings.Contains(errs, "of another machine: it has") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d, %q", code, errs)
	}
	if again, err := os.ReadFile(out); err != nil || !bytes.Equal(again, data) {
		t.Error("the profile of the other machine was changed")
	}
}

// An interrupt is exit code 3, the results so far are saved, and the message says how
// to continue.
func TestBenchInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := stub(t, &stubProber{})
	s.after = func(jobs int) {
		if jobs == 40 {
			cancel()
		}
	}
	out := filepath.Join(t.TempDir(), "p.json")
	run := func(ctx context.Context, args ...string) (int, string) {
		var errs bytes.Buffer
		root := rootCommand()
		root.SetArgs(append([]string{"bench", "--only", "latency,mixes,policies", "--repeats", "5", "--out", out}, args...))
		root.SetOut(&errs)
		root.SetErr(&errs)
		return cli.Finish(root.Name(), root.ExecuteContext(ctx), &errs), errs.String()
	}
	code, errs := run(ctx)
	if code != exit.Partly || !strings.Contains(errs, "with --resume to continue") || s.jobs != 40 {
		t.Fatalf("exit %d after %d jobs, %q", code, s.jobs, errs)
	}
	p, err := source.ProfileFile(out)
	if err != nil || !slices.Contains(p.Done, profile.Latency) || slices.Contains(p.Done, profile.Policies) {
		t.Fatalf("done %v, %v", p.Done, err)
	}
	if code, errs := run(t.Context(), "--resume"); code != exit.Done {
		t.Errorf("--resume: exit %d, %q", code, errs)
	}
	if p, err = source.ProfileFile(out); err != nil || len(p.Done) != 3 {
		t.Errorf("done %v, %v", p.Done, err)
	}
}

// Nodes and CPUs that the process may not use are left out with a message. If
// they are named, that is refused.
func TestBenchWithinLimits(t *testing.T) {
	s := stub(t, &stubProber{})
	m, _, err := source.Live()
	if err != nil {
		t.Fatal(err)
	}
	online := m.OnlineCPUs()
	if online.Len() < 2 {
		t.Skip("one CPU: it cannot be restricted")
	}
	first, _ := online.First()
	old := readLimits
	t.Cleanup(func() { readLimits = old })
	readLimits = func() (launch.Limits, error) { return launch.Limits{CPUs: set.FromCPUs(first)}, nil }
	out := filepath.Join(t.TempDir(), "p.json")
	code, _, errs := runWith("bench", "--only", "latency", "--out", out)
	if code != exit.Done || !strings.Contains(errs, fmt.Sprintf("measuring with CPUs %d only", first)) {
		t.Errorf("exit %d, %q", code, errs)
	}
	p, err := source.ProfileFile(out)
	if err != nil || !p.UsedCPUs.Equal(set.FromCPUs(first)) || len(p.Caveats) == 0 {
		t.Errorf("used %s, caveats %v, %v", p.UsedCPUs, p.Caveats, err)
	}
	before := s.jobs
	code, _, errs = runWith("bench", "--only", "latency", "--out", out, "--cpus", online.String())
	if code != exit.Bad || !strings.Contains(errs, fmt.Sprintf("only %d (Cpus_allowed_list", first)) || s.jobs != before {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// A page that cannot be written does not lose the figures.
func TestBenchLateFailure(t *testing.T) {
	s := stub(t, &stubProber{})
	dir := t.TempDir()
	page := filepath.Join(dir, "p.html")
	s.after = func(jobs int) {
		if jobs == 1 {
			if err := os.Mkdir(page, 0o755); err != nil {
				t.Error(err)
			}
		}
	}
	code, out, errs := runWith("bench", "--only", "latency", "--out", filepath.Join(dir, "p.json"), "--html", page)
	if code == exit.Done || !strings.Contains(out, "Stub") || !strings.Contains(errs, "not a regular file") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errs)
	}
}
