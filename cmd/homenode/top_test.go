// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/control/host"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/source"
	"homenode/internal/window"
)

const fakeFour = "../../internal/tui/testdata/fake-four.jsonl.gz"

func TestTopBadInput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"empty": "", "text": "hello\n", "headeronly": `{"schema":1,"kind":"homenode-windows","period_ns":1,"machine":{}}` + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"top --replay " + fakeFour, "needs a terminal"},
		{"top --once --replay " + dir + "/none", "none"},
		{"top --once --replay " + dir + "/empty", "line 1"},
		{"top --once --replay " + dir + "/text", "hello"},
		{"top --once --replay " + dir + "/headeronly", "has no window"},
		{"top --once --speed fast --replay " + fakeFour, "--speed"},
		{"top --once --speed 4", "--speed is for --replay"},
		{"top --once --period 1s --replay " + fakeFour, "leave out --period"},
		{"top --once --period 1ms", "10ms to 1h"},
		{"top --once --cgroup demo", "/demo/*"},
		{"record --for 10m", "--for is for --windows"},
		{"record --period 2s --out " + dir + "/m.tar.gz", "--period is for --windows"},
		{"record --workload /demo/*", "--workload is for --windows"},
		{"record --penalty", "--penalty is for --windows"},
		{"record --config none.yaml", "--config is for --windows"},
		{"record --windows=", "--windows wants"},
		{"record --windows " + dir + "/text", "exists already"},
		{"record --windows " + dir + "/x --for 1s --period 2s", "want at least one --period"},
		{"record --windows " + dir + "/x --workload demo", "/demo/*"},
	} {
		code, text := runCaught(t, strings.Fields(c.args)...)
		if code != exit.Bad || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, %s; want %q", c.args, code, text, c.want)
		}
	}
}

// A recording that was cut off is shown as far as it goes; scripts see the cut by
// the exit code.
func TestTopCutOff(t *testing.T) {
	whole, err := os.ReadFile(fakeFour)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(file, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if code, text := runCaught(t, "top", "--once", "--speed", "max", "--replay", file); code != exit.Partly || !strings.Contains(text, "cut off") {
		t.Errorf("exit code %d, %s", code, text)
	}
}

// endingReader ends its recording after some reads.
type endingReader struct {
	host.Reader
	left int
	end  func()
}

func (r *endingReader) Read(ctx context.Context) (window.Window, error) {
	w, err := r.Reader.Read(ctx)
	if r.left--; r.left == 0 {
		r.end()
	}
	return w, err
}

// top shows the figures that were recorded of a (fake) tree.
func TestRecordWindows(t *testing.T) {
	const top = "/sys/fs/cgroup"
	root := kerneltest.Tree(t, kerneltest.TwoNodes().With(kerneltest.Files{
		"/proc/self/mountinfo":         "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/cgroup.controllers":    "cpuset cpu memory\n",
		top + "/cpuset.cpus.effective": "0-3\n", top + "/cpuset.mems.effective": "0-1\n",
		top + "/a/cgroup.procs": "10\n", top + "/a/cgroup.threads": "10\n", top + "/a/cgroup.events": "populated 1\n",
		top + "/a/cpu.stat": "usage_usec 1000000\n", top + "/a/memory.numa_stat": "anon N0=1048576 N1=3145728\nfile N0=0 N1=0\n",
	}))
	file := filepath.Join(t.TempDir(), "r.jsonl")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := agentConfig("", "")
	if err != nil {
		t.Fatal(err)
	}
	o := host.RecordOptions{File: file, Agent: c, Period: 20 * time.Millisecond, Stderr: null} // until it is stopped
	o.Open = func(c kernel.Config) (host.Reader, error) {
		c.Root = root
		r, err := kernel.NewReader(c)
		return &endingReader{r, 4, cancel}, err
	}
	if err := host.Record(ctx, o); err != nil {
		t.Fatalf("the stop was an error: %v", err)
	}
	rec, err := source.Recording(file)
	if err != nil || len(rec.Windows) < 3 || len(rec.Machine.Nodes) != 2 || rec.Windows[0].Length == 0 {
		t.Fatalf("%d windows, %v", len(rec.Windows), err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := runTop(context.Background(), topOptions{replay: file, once: true, speed: "max", period: time.Second, stdout: out}); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(out.Name())
	if !strings.Contains(string(text), "/a ") || !strings.Contains(string(text), "node 1") || !strings.Contains(string(text), "4M") {
		t.Errorf("it shows\n%s", text)
	}
	if o.Force = true; host.Record(ctx, o) != nil {
		t.Error("nor before it began")
	}
	if o.Length = 2 * o.Period; host.Record(context.Background(), o) != nil {
		t.Error("nor when its time is over")
	}
}
