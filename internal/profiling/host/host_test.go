// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/exit"
	"homenode/internal/golden"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine/shapetest"
	"homenode/internal/placement"
	"homenode/internal/profiling"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func opteron(t *testing.T) placement.List {
	t.Helper()
	l, err := placement.Important(shapetest.Shape(t, "opteron").Machine(), placement.Options{VCPUs: 4})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// written makes a file that seems to be written all the time.
func written(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "ops")
	later := time.Now().Add(time.Hour)
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chtimes(file, later, later)); err != nil {
		t.Fatal(err)
	}
	return file
}

func metric(t *testing.T, text string) *meter {
	t.Helper()
	m, err := profiling.ParseMetric(text)
	if err != nil {
		t.Fatal(err)
	}
	return newMeter(m, "")
}

// A metric is read from a file, a command or an endpoint of this host, with a bound; what
// does not answer properly is one sentence.
func TestMeterReads(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/ops":
			fmt.Fprint(w, "ops_total 42\n")
		case "/huge":
			_, _ = w.Write(bytes.Repeat([]byte("1 "), profiling.MaxText))
		case "/away":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		default:
			http.Error(w, "no", http.StatusTeapot)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ops")
	if err := os.WriteFile(file, []byte("17\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]float64{"file:" + file: 17, "command:echo 3; echo 5": 5, server.URL + "/ops": 42} {
		if got, err := metric(t, text).read(context.Background()); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"file:" + file + "x": "no such file", "command:exit 7": "exit code 7", "command:echo": "no number",
		server.URL + "/huge": "more than", server.URL + "/away": "redirects", server.URL + "/no": "418",
	} {
		if _, err := metric(t, text).read(context.Background()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Only this host is asked.
func TestOtherHosts(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://127.0.0.1:9/m": true, "http://[::1]:9/m": true, "http://localhost/": true,
		"http://example.com/": false, "http://10.0.0.1/": false, "http://127.0.0.1.example.com/": false, "http://": false, "http://%": false,
	} {
		if _, err := withFlags(text, profiling.Metric{}); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// goesOn is a program that runs until it is told to end, or for some time.
func goesOn(lives time.Duration, starts *int) starter {
	return func(ctx context.Context, p launch.Placement, _ launch.Command) (launch.Outcome, error) {
		*starts++
		if p.Policy != launch.Bind || p.CPUs.IsEmpty() || p.Nodes.IsEmpty() {
			return launch.Outcome{}, errors.New("it is not placed")
		}
		if err := unix.Sleep(ctx, lives); err != nil {
			return launch.Outcome{}, err
		}
		return launch.Outcome{Stderr: []string{"out of input"}}, nil
	}
}

// A program that goes on is measured in a part of its run; one that ends meanwhile is named.
func TestCommandPart(t *testing.T) {
	l, starts := opteron(t), 0
	file := written(t, "17\n")
	c := &command{argv: []string{"server"}, meter: metric(t, "file:"+file), job: profiling.Job{Warm: time.Millisecond, For: 10 * time.Millisecond}, start: goesOn(time.Hour, &starts)}
	if f, err := c.Measure(context.Background(), l.Placements[0]); err != nil || f.Speed != 17 || starts != 1 {
		t.Errorf("%v, %v, %d starts", f.Speed, err, starts)
	}
	c.job.For, c.start = time.Hour, goesOn(time.Millisecond, &starts)
	if _, err := c.Measure(context.Background(), l.Placements[0]); err == nil || !strings.Contains(err.Error(), `"server" ended before it was measured`) || !strings.Contains(err.Error(), "out of input") {
		t.Errorf("ended: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Measure(ctx, l.Placements[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// A program that ends by itself runs once more before it counts, the first time.
func TestCommandWhole(t *testing.T) {
	l, starts := opteron(t), 0
	outcome := launch.Outcome{Elapsed: 250 * time.Millisecond, Stdout: []string{"8 ops"}}
	c := &command{argv: []string{"solver"}, meter: metric(t, "time"), job: profiling.Job{Warm: 1}, start: func(context.Context, launch.Placement, launch.Command) (launch.Outcome, error) {
		starts++
		return outcome, nil
	}}
	for i, want := range []int{2, 3} {
		if f, err := c.Measure(context.Background(), l.Placements[0]); err != nil || f.Speed != 4 || starts != want {
			t.Errorf("run %d: %v, %v, %d starts", i, f.Speed, err, starts)
		}
	}
	c.meter = metric(t, "output")
	if f, err := c.Measure(context.Background(), l.Placements[0]); err != nil || f.Speed != 8 {
		t.Errorf("output: %v, %v", f.Speed, err)
	}
	outcome = launch.Outcome{Exit: 3, Stderr: []string{"a", "no input"}}
	if _, err := c.Measure(context.Background(), l.Placements[0]); err == nil || err.Error() != `"solver" failed with exit code 3: no input` {
		t.Errorf("failed: %v", err)
	}
}

// What another program has limited is respected.
func TestLimited(t *testing.T) {
	for _, c := range []struct {
		b    window.Binding
		ours bool
		want string
	}{
		{window.Binding{}, false, ""},
		{window.Binding{PinnedCPUs: true, PinnedWhy: "its own cpuset.cpus is 0-1"}, true, "another program has limited it: its own cpuset.cpus is 0-1"},
		{window.Binding{PinnedMems: true}, false, "another program"},
		{window.Binding{OursCPUs: true}, false, "an earlier homenode"},
		{window.Binding{OursCPUs: true}, true, ""},
	} {
		if err := limited(c.b, "/a", c.ours); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.b, err, c.want)
		}
	}
	l := opteron(t)
	for _, c := range []struct {
		limits launch.Limits
		want   string
	}{
		{launch.Limits{}, ""}, {launch.Limits{CPUs: set.FromCPUs(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}, ""},
		{launch.Limits{CPUs: set.FromCPUs(0, 1)}, "CPUs 0-1 only"}, {launch.Limits{Mems: set.FromNodes(0)}, "nodes 0 only"},
	} {
		if err := allowed(l, c.limits); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.limits, err, c.want)
		}
	}
}

// A workload that was not touched is not put back, and a note is said once.
func TestUntouched(t *testing.T) {
	w := &workload{}
	w.note("a")
	w.note("a")
	if notes, err := w.Back(); err != nil || len(notes) != 1 {
		t.Errorf("%v, %v", notes, err)
	}
}

// reads is a reader of a workload on these CPUs.
type reads struct{ cpus set.CPUSet }

func (r reads) Read(context.Context) (window.Window, error) {
	return window.Window{Length: time.Second, Workloads: []window.Workload{{ID: "/a", Binding: window.Binding{CPUs: r.cpus}}}}, nil
}

func (reads) Close() {}

// A measurement on other CPUs than were set does not count.
func TestMeasuredElsewhere(t *testing.T) {
	file := written(t, "17\n")
	w := &workload{id: "/a", meter: metric(t, "file:"+file), job: profiling.Job{For: time.Millisecond}, reader: reads{set.FromCPUs(0, 1)}}
	if f, err := w.figures(context.Background(), set.FromCPUs(0, 1)); err != nil || f.Speed != 17 {
		t.Errorf("%v, %v", f.Speed, err)
	}
	if _, err := w.figures(context.Background(), set.FromCPUs(0)); err == nil || !strings.Contains(err.Error(), "another process changed its cpuset") {
		t.Errorf("%v", err)
	}
	w.id = "/b"
	if _, err := w.figures(context.Background(), set.FromCPUs(0)); !errors.Is(err, kernel.ErrGone) {
		t.Errorf("ended: %v", err)
	}
}

// counts is a reader whose first windows lack the counts.
type counts struct{ lacking int }

func (c *counts) Read(context.Context) (window.Window, error) {
	one := window.Workload{ID: "/a", Instructions: unit.UnknownValue[uint64]("the PMU had no room for it"), Cycles: unit.Measured[uint64](100, "")}
	if c.lacking--; c.lacking < 0 {
		one.Instructions = unit.Measured[uint64](50, "")
	}
	return window.Window{Length: time.Second, Workloads: []window.Workload{one}}, nil
}

func (*counts) Close() {}

// A window in which the events had no turn is measured again, and not for ever.
func TestWindowWithoutCounts(t *testing.T) {
	for lacking, ok := range map[int]bool{1: true, 2: true, windowTries: true, windowTries + 1: false, 99: false} { // the first read begins
		m := metric(t, "ipc")
		m.wait = unix.Sleep
		w := &workload{id: "/a", meter: m, job: profiling.Job{For: time.Millisecond}, reader: &counts{lacking}}
		f, err := w.figures(context.Background(), set.CPUSet{})
		if ok && (err != nil || f.Speed != 0.5) || !ok && (err == nil || !strings.Contains(err.Error(), "no room for it: not in 3 windows")) {
			t.Errorf("%d windows lack the counts: %v, %v", lacking, f.Speed, err)
		}
	}
}

// A state is continued by the same job only.
func TestOpenState(t *testing.T) {
	l := opteron(t)
	j := profiling.Job{
		Machine: "x", Source: profiling.Measured, Command: []string{"a"}, VCPUs: 4, Metric: profiling.Metric{Kind: profiling.Time}, For: time.Second, Repeats: 2, Placements: profiling.CandidatesOf(l),
	}
	o := Options{Saved: filepath.Join(t.TempDir(), "state.json")}
	s, err := o.openState(j)
	if err != nil || o.resumes {
		t.Fatal(err)
	}
	s.Samples = []profiling.Sample{{Placement: 2, Repeat: 1, Speed: 5, Took: 1}}
	if err := o.save(s); err != nil {
		t.Fatal(err)
	}
	if again, err := o.openState(j); err != nil || !o.resumes || len(again.Samples) != 1 {
		t.Errorf("continued: %+v, %v", again.Samples, err)
	}
	other := j
	other.Command = []string{"b"}
	if _, err := o.openState(other); err == nil || !strings.Contains(err.Error(), `another profile, of ["a"] with 4 vCPUs`) {
		t.Errorf("another job: %v", err)
	}
	for text, want := range map[string]string{`{"schema":99}`: "newer homenode", "x": "invalid character"} {
		if err := os.WriteFile(o.Saved, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := o.openState(j); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOptionsCheck(t *testing.T) {
	for want, o := range map[string]Options{
		"one of them":     {VCPUs: 1, MetricText: "time"},
		"--vcpus":         {Command: []string{"a"}, MetricText: "time"},
		"--no-spinning":   {Workload: "a", VCPUs: 1, MetricText: "ipc"},
		"want time":       {Workload: "a", VCPUs: 1, MetricText: "speed"},
		"--rows":          {Workload: "a", VCPUs: 1, MetricText: "file:/x"},
		"--timeout":       {Command: []string{"a"}, VCPUs: 1, MetricText: "time", Timeout: -1},
		"both have bandw": {Command: []string{"a"}, VCPUs: 1, MetricText: "time", Links: "l", Profile: "p"},
	} {
		if err := o.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A model that is not for this machine is refused before the workload is looked for.
func TestPlaceRefuses(t *testing.T) {
	const trained = "../../model/testdata/model.json"
	data, err := os.ReadFile(trained)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for text, want := range map[string]string{
		string(data): "another machine", strings.Replace(string(data), `"schema":1`, `"schema":2`, 1): "newer homenode", "{}": "schema", "": "parse model",
	} {
		path := filepath.Join(dir, "model.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Place(context.Background(), Options{Workload: "/no-such", Model: path, MetricText: "file:/x", Goal: 0.9, For: time.Second}, os.Stderr)
		var code exit.Error
		if !errors.As(err, &code) || code.Code != exit.Bad || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", text, err, want)
		}
	}
}

// N that does not fit or divide: the nearest that do.
func TestProfileRefuses(t *testing.T) {
	_, err := Profile(context.Background(), Options{Command: []string{"true"}, VCPUs: 100_003, MetricText: "time", Repeats: 2, For: time.Second}, os.Stderr)
	if !errors.Is(err, placement.ErrNoPlacement) || !strings.Contains(err.Error(), "nearest number") {
		t.Errorf("%v", err)
	}
}

// The rows of a finished profile are the file that python/tests reads.
func TestRowsFile(t *testing.T) {
	l := opteron(t)
	ipc := 0.5
	s := profiling.State{Schema: 1, Job: profiling.Job{
		Machine: "fake, 8 nodes, 16 CPUs", Source: profiling.Measured, Workload: "/db", VCPUs: 4, Links: l.Links, Metric: profiling.Metric{Kind: profiling.IPC}, For: time.Second, Repeats: 2, Seed: 1,
		Placements: profiling.CandidatesOf(l),
	}}
	for _, r := range s.Job.Runs() {
		one := profiling.Sample{Placement: r.Arm, Repeat: r.Repeat, Speed: float64(100 + 10*r.Arm + r.Repeat), Took: 1}
		if r.Arm > 0 {
			one.Features.IPC = &ipc
		}
		s.Samples = append(s.Samples, one)
	}
	path := filepath.Join(t.TempDir(), "rows.parquet")
	p := profile{o: &Options{Workload: "/db", Rows: path, Saved: path + ".json", Version: "test", CommandLine: "homenode profile"}, list: l}
	r, err := p.end(s, nil)
	if err != nil || r.Outcome != "complete" {
		t.Fatalf("%v, %+v", err, r)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "profile.parquet"), got)
}
