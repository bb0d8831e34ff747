// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// The example of docs/architecture.md, "Add a collector". TestExampleIsTheDocumented
// requires that the two are the same.

// taskCountSensor reads how many tasks a workload has from pids.current (since 4.3).
type taskCountSensor struct{ file *unix.Kept }

func newTaskCountSensor(w *workload) sensor {
	return &taskCountSensor{w.file(w.memHier, "pids.current")}
}

func (s *taskCountSensor) read(rd *round, out *window.Workload) error {
	data, err := s.file.ReadLine(&rd.buf)
	if err != nil {
		return unix.Explain("read", s.file.Path, "", err)
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(data)))
	if err != nil {
		return fmt.Errorf("parse pids.current: %w (%w)", err, ErrMalformed)
	}
	out.Tasks = unit.Measured(n, "pids.current")
	return nil
}

func (s *taskCountSensor) unknown(_ *round, out *window.Workload, why string) {
	out.Tasks = unit.UnknownValue[int](why)
}

// End of the example.

func withTaskCount(t *testing.T, content string) window.Window {
	t.Helper()
	root := fakeV2(t)
	if content != "" {
		kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/pids.current": content})
	}
	r, c := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	r.collectors = append(r.collectors, registered{"task count", perWorkload{sensor: newTaskCountSensor}})
	read(t, r)
	c.at = c.at.Add(time.Second)
	return read(t, r)
}

// A collector that is added fills in its figure. If it fails the figure is unknown,
// with the reason, and every other figure is the same as without the collector.
func TestAddACollector(t *testing.T) {
	if w := withTaskCount(t, "17\n"); w.Workloads[0].Tasks != unit.Measured(17, "pids.current") {
		t.Errorf("tasks: %v", w.Workloads[0].Tasks)
	}
	for content, why := range map[string]string{"": "no such file", "many\n": "parse pids.current"} {
		w := withTaskCount(t, content)
		a := w.Workloads[0]
		if a.Tasks.Known() || !strings.Contains(a.Tasks.From, why) {
			t.Errorf("%q: tasks: %v", content, a.Tasks)
		}
		if !a.CPU.Known() || !a.Quota.Known() || !a.AnonByNode[0].Known() || !w.Nodes[0].Memory.Known() || len(w.Problems) > 0 {
			t.Errorf("%q: %+v, problems %q", content, w, w.Problems)
		}
	}
}

// failing is a collector whose calls all fail.
type failing struct{ base }

func (failing) begin(*round) error      { return errors.New("it could not begin") }
func (failing) attach(*workload) sensor { return failing{} }
func (failing) finish(*round) error     { return errors.New("it could not finish") }
func (failing) read(*round, *window.Workload) error {
	return errors.New("it could not read")
}
func (failing) unknown(_ *round, out *window.Workload, why string) {
	out.LLC = unit.UnknownValue[unit.Bytes](why)
}

// No collector prevents another from reading, at any position.
func TestFailingCollectorIsAlone(t *testing.T) {
	r, _ := newFake(t, fakeV2(t), Config{Roots: []string{"/demo/*"}})
	sound := read(t, r)
	for place := range r.collectors {
		r, _ := newFake(t, fakeV2(t), Config{Roots: []string{"/demo/*"}})
		r.collectors = append(r.collectors[:place:place], append([]registered{{"failing", failing{}}}, r.collectors[place:]...)...)
		w := read(t, r)
		if got := strings.Join(w.Problems, "; "); got != "it could not begin; it could not finish" {
			t.Errorf("at %d: problems %q", place, got)
		}
		w.Problems = sound.Problems
		for _, w := range []*window.Window{&w, &sound} { // the failing one's reason, and that it is its own
			w.Workloads[0].LLC = unit.Value[unit.Bytes]{}
		}
		if got, want := withoutRoots(w), withoutRoots(sound); got != want {
			t.Errorf("at %d:\n%s\nwithout it:\n%s", place, got, want)
		}
	}
}

// withoutRoots is a window as text, without the roots: the two trees have different
// folders, and reasons name them.
func withoutRoots(w window.Window) string {
	words := strings.Fields(fmt.Sprintf("%+v", w))
	for i, word := range words {
		if at := strings.Index(word, "/sys/fs/cgroup"); at >= 0 {
			words[i] = word[at:]
		}
	}
	return strings.Join(words, " ")
}

func architectureText(t *testing.T, heading string) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "\n"+heading+"\n")
	if !found {
		t.Fatalf("docs/architecture.md has no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// The example in the documentation is the tested one.
func TestExampleIsTheDocumented(t *testing.T) {
	_, code, _ := strings.Cut(architectureText(t, "### Add a collector"), "```go\n")
	code, _, found := strings.Cut(code, "```")
	here, err := os.ReadFile("collector_example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !found || len(code) < 100 || !bytes.Contains(here, []byte(code)) {
		t.Errorf("the example in docs/architecture.md is not in this file:\n%s", code)
	}
}

// The documentation lists the existing collectors, in the order in which they read.
func TestCollectorsAreDocumented(t *testing.T) {
	r, _ := newFake(t, fakeV2(t), Config{})
	var want, got []string
	for _, c := range r.collectors {
		want = append(want, c.name)
	}
	list, _, _ := strings.Cut(architectureText(t, "## How a window is read"), "### Add a collector")
	for line := range strings.Lines(list) {
		if cells := strings.Split(line, "|"); len(cells) > 3 && strings.HasPrefix(strings.TrimSpace(cells[2]), "`collect_") {
			got = append(got, strings.TrimSpace(cells[1]))
			file, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(cells[2]), "`"), "`")
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("documented: %q\nregistered: %q", got, want)
	}
}
