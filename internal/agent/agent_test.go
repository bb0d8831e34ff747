// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/control"
	"homenode/internal/journal"
	"homenode/internal/migration"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func TestDecodeConfig(t *testing.T) {
	c, err := ParseConfig([]byte(`
period: 2s
cgroups: ["/a/*"]
reserved_cpus: "8"
services:
  - {name: x, match: "/a/x*", approved: true, target_local_ratio: 0.9}
  - {name: rest, match: "/a/*"}
mao: {strategy: A}
profile: /var/lib/homenode/profile.json
actuate: {rate: 64MiB, horizon: 5m, pay_ratio: 1.5, when_unknown: wait, ping_pong_doublings: 3, page_cache: false, max_stall: 5ms}
`), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Period != 2*time.Second || c.CalmPeriod != 20*time.Second || c.StateDir != DefaultStateDir || c.MAO.Strategy != "A" ||
		c.MAO.ReservedCPUs.String() != "8" || c.Actuate.ReservedCPUs.String() != "8" || c.Actuate.Rate != 64<<20 {
		t.Errorf("%+v", c)
	}
	if a := c.Actuate; c.Profile != "/var/lib/homenode/profile.json" || a.Horizon != 5*time.Minute || a.PayRatio != 1.5 || a.WhenUnknown != actuate.WaitToKnow ||
		a.PingPongDoublings != 3 || a.PageCache || a.MaxStall != 5*time.Millisecond || a.Profile != nil {
		t.Errorf("%q %+v", c.Profile, a)
	}
	w := window.Window{Workloads: []window.Workload{{ID: "/a/x1"}, {ID: "/a/y"}, {ID: "/b"}}}
	c.Name(&w)
	x, y, b := w.Workloads[0], w.Workloads[1], w.Workloads[2]
	if target, ok := x.Target.Get(); x.Service != "x" || !x.Approved || !ok || target != 0.9 {
		t.Errorf("%+v", x)
	}
	if y.Service != "rest" || y.Approved || y.Target.Known() || b.Service != "" || b.Approved {
		t.Errorf("%+v %+v", y, b)
	}
}

// Every mistake gives one message that names the file and the mistake.
func TestDecodeConfigMistakes(t *testing.T) {
	for text, want := range map[string][]string{
		"perod: 1s":                            {"c.yaml", "perod", "1"}, // line and excerpt
		"period: 1s\nperiod: 2s":               {"c.yaml", "period", "2"},
		"period: 1ms":                          {"period: it is 1ms"},
		"period: 2s\ncalm_period: 1s":          {"calm_period: it is 1s"},
		"period: soon":                         {"c.yaml", "soon"},
		"reserved_cpus: x":                     {"reserved_cpus", "x"},
		"cgroups: [demo]":                      {"demo", "/demo/*"},
		"services: [{name: a}]":                {"services[0]", "match"},
		"services: [{name: a, match: \"/[\"}]": {"services[0].match", "pattern"},
		"services: [{name: a, match: /a, target_local_ratio: 95}]": {"services[0].target_local_ratio: it is 95", "0 to 1"},
		"mao: {strategy: C}":          {"strategy", "A or B"},
		"mao: {target: 2}":            {"target", "between 0 and 1"},
		"actuate: {rate: -1}":         {"c.yaml", "-1"},
		"actuate: {horizon: -1s}":     {"c.yaml", "actuate.horizon: it is -1s"},
		"actuate: {pay_ratio: 0}":     {"pay_ratio: it is 0"},
		"actuate: {when_unknown: no}": {"when_unknown", "move or wait"},
		"actuate: {max_stall: -1ms}":  {"max_stall: it is -1ms"},
		"actuate: {costs: {}}":        {"costs"},
		"mao: {no_such_threshold: 1}": {"no_such_threshold"},
		"docker_socket: docker.sock":  {"docker_socket", "absolute path"},
		"docker_memory: x":            {"docker_memory", "absolute path"},
		"containerd_socket: ../x":     {"containerd_socket", "absolute path"},
	} {
		_, err := ParseConfig([]byte(text), "c.yaml")
		if err == nil {
			t.Errorf("%q was taken", text)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: no %q in: %v", text, w, err)
			}
		}
	}
}

func FuzzDecodeConfig(f *testing.F) {
	f.Add([]byte("period: 2s\nservices: [{name: a, match: /a, approved: true}]"))
	f.Add([]byte("mao: {strategy: A}\nactuate: {rate: 1MiB}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := ParseConfig(text, "c.yaml"); err != nil && !strings.Contains(err.Error(), "c.yaml") {
			t.Errorf("%q: an error without the file: %v", text, err)
		}
	})
}

func TestDecodeStatus(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadStatus(dir); err == nil || !strings.Contains(err.Error(), "homenode agent") {
		t.Errorf("no status: %v", err)
	}
	s := Status{Schema: statusSchema, Workloads: []WorkloadStatus{{ID: "/a/x", Service: "s"}, {ID: "/a/y", Service: "s"}, {ID: "/b/x2", Service: "t"}}}
	if err := s.write(dir, 0); err != nil {
		t.Fatal(err)
	}
	got, err := ReadStatus(dir)
	if err != nil || len(got.Workloads) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, want := range map[string]string{"/a/x": "/a/x", "y": "/a/y", "t": "/b/x2", "s": "", "z": ""} {
		w, err := got.Find(name)
		if w.ID != want || (err == nil) != (want != "") {
			t.Errorf("Find(%q): %q, %v", name, w.ID, err)
		}
	}
	s.Schema++
	newer, _ := json.Marshal(s)
	if err := os.WriteFile(filepath.Join(dir, statusName), newer, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadStatus(dir); err == nil {
		t.Error("a newer schema was taken")
	}
}

// The sum survives the status file, also if a figure is unknown.
func TestStatusKeepsTheSum(t *testing.T) {
	dir := t.TempDir()
	v := migration.Pays(migration.Stake{
		Bytes: unit.GiB, RemoteRate: unit.UnknownValue[float64]("no events"), Difference: unit.Estimated(8e-8, "SLIT"),
		Horizon: time.Minute, PerByte: unit.Estimated(0.65e-9, "MAO"), Undone: unit.MiB,
	})
	s := Status{Schema: statusSchema, Workloads: []WorkloadStatus{{ID: "/a", Pays: unit.Some(v), Moving: true, Reason: action.Reason{Rule: "r"}}, {ID: "/b"}}}
	if err := s.write(dir, 0); err != nil {
		t.Fatal(err)
	}
	got, err := ReadStatus(dir)
	if err != nil || len(got.Workloads) != 2 || !reflect.DeepEqual(got.Workloads[0], s.Workloads[0]) || got.Workloads[1].Pays.Known() {
		t.Errorf("%v\n%+v\n%+v", err, got.Workloads, s.Workloads)
	}
}

func TestDecisionPeriod(t *testing.T) {
	a := &Agent{o: Options{Config: Config{Period: time.Second, CalmPeriod: 10 * time.Second}}}
	for range calmAfter {
		if a.period() != time.Second {
			t.Errorf("calm after %d quiet windows", a.quiet)
		}
		a.quiet++
	}
	if a.period() != 10*time.Second {
		t.Error("not calm")
	}
}

// A contention that is not decided yet ends the calm, as a step does: the windows that decide
// it come at the short period.
func TestDecisionPeriodOfAlarm(t *testing.T) {
	a := &Agent{o: Options{Config: Config{Period: time.Second, CalmPeriod: 10 * time.Second}, Log: slog.New(slog.DiscardHandler)}}
	for _, alarmed := range []bool{false, true} {
		a.quiet, a.alarmed = calmAfter, alarmed
		a.noteDecided(control.Round{})
		if calm := a.period() != time.Second; calm == alarmed {
			t.Errorf("alarmed %v: calm is %v", alarmed, calm)
		}
	}
}

// A setting that the running agent makes later is known in the next window. If the journal
// cannot be read, the known settings stay.
func TestBesideLooksAgain(t *testing.T) {
	dir := t.TempDir()
	b := Beside{Dir: dir}
	if err := b.Look(); err != nil || b.Ours("/demo/a", "cpuset.cpus", "2-3") {
		t.Errorf("an empty folder: %v, %v", err, b.Entries())
	}
	j, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if o := j.Wrap(newCpusets()).Apply(t.Context(), bind("/demo/a")); o.Status != action.Done {
		t.Fatal(o)
	}
	if b.Ours("/demo/a", "cpuset.cpus", "2-3") {
		t.Error("known before Look was called")
	}
	if err := errors.Join(b.Look(), j.Close()); err != nil || !b.Ours("/demo/a", "cpuset.cpus", "2-3\n") || b.Ours("/demo/a", "cpuset.cpus", "0-3") {
		t.Errorf("%v, %v", err, b.Entries())
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "log")), os.Mkdir(filepath.Join(dir, "log"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := b.Look(); err == nil || len(b.Entries()) != 1 {
		t.Errorf("unreadable: %v, %v", err, b.Entries())
	}
}

// The outcomes in a recording belong to the recorded agent, not to the agent that
// plays it.
func TestTapeHasNoOutcomes(t *testing.T) {
	theirs := []action.Outcome{{Step: bind("/demo/a"), Status: action.Refused}}
	tape, err := NewTape(window.Recording{Windows: []window.Window{{Length: time.Second, Outcomes: theirs}}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if w, err := tape.Read(t.Context()); err != nil || len(w.Outcomes) != 0 {
			t.Errorf("%v, %v", w.Outcomes, err)
		}
	}
}
