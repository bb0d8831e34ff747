// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent/decisions"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// served is a loop with all that New would have opened.
func served(t *testing.T, text *string) (*Agent, *world) {
	a, w := newLoop(t, 1, unit.GiB)
	w.approve(true)
	a.wake = make(chan struct{}, 1)
	dir := a.o.Config.StateDir
	a.o.Load = func() (Config, error) { return ParseConfig([]byte("state_dir: "+dir+"\n"+*text), "c.yaml") }
	c, err := a.o.Load()
	if err != nil {
		t.Fatal(err)
	}
	a.o.Config, a.started = c, c
	a.pulse.begin(time.Now(), c.Period, true)
	a.openFiles()
	a.resolveNear()
	return a, w
}

// A new configuration is taken within a period, also during a calm period. A bad one
// changes nothing. Settings that need a restart are reported.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "period: 10s\ncalm_period: 100s\nservices: [{name: w, match: /w0}]"
		a, w := served(t, &text)
		w.approve(false)
		var at time.Duration
		run(t, a,
			func() { time.Sleep(500 * time.Second) },
			func() {
				text = "period: 10s\ncalm_period: 100s\nservices: [{name: w, match: /w0, approved: true}]\ncgroups: [/x]"
				r, err := a.Reload()
				if err != nil || !slices.Equal(r.Changed, []string{"services"}) || !slices.Equal(r.Waits, []string{"cgroups"}) {
					t.Errorf("%+v, %v", r, err)
				}
				at = time.Since(start)
			},
			func() { time.Sleep(25 * time.Second) },
			func() {
				if steps := w.taken(); len(steps) == 0 || steps[0].at-at > 21*time.Second {
					t.Errorf("%v after the reload: %+v", at, steps)
				}
				text = "period: never"
				r, err := a.Reload()
				if !errors.Is(err, ErrConfig) || !strings.Contains(r.Error, "never") {
					t.Errorf("%+v, %v", r, err)
				}
			},
			func() { time.Sleep(25 * time.Second) },
			func() {
				v, ok := a.View()
				if !ok || v.Status.Totals.Reloads != 1 || v.Status.Totals.BadReloads != 1 || v.Status.Reload == nil || v.Status.Reload.Error == "" {
					t.Errorf("%+v", v.Status.Totals)
				}
				if got := v.Status.Workloads[0].Nodes; got.IsEmpty() {
					t.Error("a bad configuration unbound the workload")
				}
			})
	})
}

// An excluded workload is unbound within two periods, and left alone until the
// exclusion ends.
func TestExclude(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "period: 10s\ncalm_period: 100s\nservices: [{name: w, match: /w0, approved: true}]"
		a, w := served(t, &text)
		restores := func() (n int) {
			for _, s := range w.taken() {
				if s.Kind == action.Restore {
					n++
				}
			}
			return n
		}
		run(t, a,
			func() { time.Sleep(100 * time.Second) },
			func() { a.Exclude("/w0", time.Now().Add(5*time.Minute)) },
			func() { time.Sleep(21 * time.Second) },
			func() {
				if restores() != 1 {
					t.Errorf("not unbound: %+v", w.taken())
				}
				if v, _ := a.View(); len(v.Status.Excluded) != 1 || v.Status.Window.Workloads[0].Approved {
					t.Errorf("%+v", v.Status.Excluded)
				}
			},
			func() { time.Sleep(10 * time.Minute) },
			func() {
				if v, _ := a.View(); len(v.Status.Excluded) != 0 || !v.Status.Window.Workloads[0].Approved {
					t.Errorf("still %+v", v.Status.Excluded)
				}
			})
		if a.Include("/w0") {
			t.Error("Include found no exclusion")
		}
	})
}

// Decisions, recording and histories are written to where the configuration says. A
// recording holds the configuration that decided.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		text := fmt.Sprintf("period: 10s\ncalm_period: 10s\nrecord: %s/rec\nhistory_every: 100s\nservices: [{name: w, match: /w0, approved: true}]", dir)
		a, _ := served(t, &text)
		path := a.o.Config.History.Path
		run(t, a, func() { time.Sleep(90 * time.Second) }, func() {
			if _, err := os.Stat(path); err != nil { // the first history is saved at once
				t.Error(err)
			}
		}, func() { time.Sleep(90 * time.Second) })
		all, skipped, err := decisions.Read(a.o.Config.Decisions.Path, func(decisions.Key) bool { return true }, 0)
		if err != nil || skipped != 0 || len(all) == 0 || all[0].Kind != action.Bind || all[0].Service != "w" {
			t.Errorf("%+v, %d, %v", all, skipped, err)
		}
		f, err := os.Open(filepath.Join(dir, "rec"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		rec, err := window.ReadRecording(f)
		if err != nil || len(rec.Windows) < 15 || !strings.Contains(rec.Config, "record:") || rec.Windows[3].Workloads[0].Service != "w" {
			t.Errorf("%d windows, %q, %v", len(rec.Windows), rec.Config, err)
		}
		nodes, err := readHistory(path, a.reader.Machine())
		if err != nil || len(nodes) != 4 || len(nodes[0].Utilisation) < 15 {
			t.Errorf("%+v, %v", nodes, err)
		}
		b, _ := newLoop(t, 1, unit.GiB)
		b.o.Config.History.Path = path
		b.readHistory()
		if !reflect.DeepEqual(b.policy.Histories(), nodes) {
			t.Error("the next agent does not know the decisions of this one")
		}
	})
}

// A file that cannot be written is logged once, and the loop continues.
func TestFilesFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "period: 10s\ndecisions: /dev/null/x\nrecord: /dev/full\nhistory: /proc/nobody/x\nservices: [{name: w, match: /w0, approved: true}]"
		a, w := served(t, &text)
		var out bytes.Buffer
		a.o.Log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
		a.openFiles()
		run(t, a, func() { time.Sleep(200 * time.Second) })
		if len(w.windows) < 10 || len(w.steps) == 0 {
			t.Errorf("%d windows, %d steps", len(w.windows), len(w.steps))
		}
		v, _ := a.View()
		if v.Status.Totals.FileErrors == 0 || strings.Count(out.String(), `msg="history:`) != 1 || !a.files.failing["history"] {
			t.Errorf("%+v\n%s", v.Status.Totals, out.String())
		}
	})
}

func TestHealth(t *testing.T) {
	var p pulse
	now := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return now.Add(d) }
	if h := p.health(now); h.Alive || h.Ready {
		t.Errorf("before: %+v", h)
	}
	p.begin(now, 10*time.Second, true)
	if h := p.health(after(29 * time.Second)); !h.Alive || h.Ready {
		t.Errorf("first round: %+v", h)
	}
	if h := p.health(after(31 * time.Second)); h.Alive || len(h.Why) != 2 {
		t.Errorf("first round hangs: %+v", h)
	}
	p.beat(after(time.Second), 10*time.Second, nil)
	if h := p.health(after(30 * time.Second)); !h.Alive || !h.Ready || h.Why != nil {
		t.Errorf("well: %+v", h)
	}
	p.beat(after(40*time.Second), 10*time.Second, errors.New("no cgroups"))
	if h := p.health(after(41 * time.Second)); !h.Alive || h.Ready || !strings.Contains(h.Why[0], "no cgroups") {
		t.Errorf("cannot read: %+v", h)
	}
	p.beat(after(50*time.Second), 100*time.Second, nil) // a calm period
	if h := p.health(after(340 * time.Second)); !h.Alive || !h.Ready {
		t.Errorf("calm: %+v", h)
	}
	p.end()
	if h := p.health(after(51 * time.Second)); h.Alive || h.Ready {
		t.Errorf("ended: %+v", h)
	}
	p.begin(now, time.Second, false)
	if h := p.health(now); h.Ready || !strings.Contains(h.Why[len(h.Why)-1], "journal") {
		t.Errorf("no journal: %+v", h)
	}
}

func TestNear(t *testing.T) {
	var h windowtest.Host
	h.Shape([]int{0, 2}, 1, unit.GiB)
	m := h.Machine
	m.Devices = []machine.Device{
		{Address: "0000:3b:00.0", Names: []string{"eth0", "eth1"}, Node: unit.Some(2)},
		{Address: "0000:3c:00.0", Names: []string{"nvme0n1"}},
		{Address: "0000:3d:00.0", Node: unit.Some(7)},
	}
	for _, c := range []struct {
		names string
		want  set.NodeSet
		wrong string
	}{
		{"eth1", set.FromNodes(2), ""}, {"0000:3b:00.0,node 0", set.FromNodes(0, 2), ""}, {"node2", set.FromNodes(2), ""},
		{"nvme0n1", set.NodeSet{}, "does not say"}, {"0000:3d:00.0", set.NodeSet{}, "node 7"}, {"eth9,eth0", set.FromNodes(2), "no such PCI device"}, {"node 1", set.NodeSet{}, "no such node"},
	} {
		got, problems := NearNodes(m, strings.Split(c.names, ","))
		if !got.Equal(c.want) || (c.wrong == "") != (problems == nil) || !strings.Contains(strings.Join(problems, "; "), c.wrong) {
			t.Errorf("%s: %v, %q", c.names, got, problems)
		}
	}
}

func TestReadLatency(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) { // its modification time is now
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.p99", "0.0123\n")
	write("bad", "fast")
	now := time.Now()
	var l latencies
	if v := l.of(dir+"/{workload}.p99", "/demo/a", now, 10*time.Second); v.Or(0) != 0.0123 || v.How != unit.HowMeasured || !strings.HasSuffix(v.From, "a.p99") {
		t.Errorf("%v", v)
	}
	for what, v := range map[string]unit.Value[float64]{
		"old":         l.of(dir+"/a.p99", "/a", now.Add(time.Minute), 10*time.Second),
		"no number":   l.of(dir+"/bad", "/a", now, time.Second),
		"no file":     l.of(dir+"/none", "/a", now, time.Second),
		"no file, it": l.of("/dev/zero", "/a", now, time.Hour),
	} {
		if v.Known() || v.From == "" {
			t.Errorf("%s: %v", what, v)
		}
	}
}

// A link, a second name of another file, a device, or another user's file tells nothing,
// and does not block the round.
func TestLatencyFileIsItsOwn(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.WriteFile(secret, []byte("1234\n"), 0o600), os.Mkdir(at("mine"), 0o755), os.WriteFile(at("mine/p99"), []byte("0.5\n"), 0o600),
		os.Symlink(secret, at("link")), os.Symlink("mine", at("folder")), os.Symlink("mine/p99", at("inside")), os.Link(secret, at("second")),
		os.Symlink("/sys/kernel/tracing/trace_pipe", at("pipe")), syscall.Mkfifo(at("fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var l latencies
	ask := func(pattern string) unit.Value[float64] { return l.of(pattern, "/x", time.Now(), time.Minute) }
	if v := ask(dir + "/mine/p99"); v.Or(0) != 0.5 {
		t.Errorf("its own: %v", v)
	}
	for _, name := range []string{"link", "folder/p99", "inside", "second", "pipe", "fifo", "mine"} {
		for _, pattern := range []string{at(name), dir + "{workload}/../" + name} {
			if v := ask(pattern); v.Known() || strings.Contains(v.From, "1234") || v.From == "" {
				t.Errorf("%s: %v", pattern, v)
			}
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(at("mine/p99"), 12345, -1); err != nil {
			t.Fatal(err)
		}
		if v := ask(dir + "/mine/p99"); v.Known() || !strings.Contains(v.From, "belongs to user 12345") {
			t.Errorf("another user's: %v", v)
		}
	}
}

// A file that does not answer costs its timeout once. It is not read again before it has
// answered.
func TestLatencyFileHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan bool)
		l := latencies{read: func(latencyFile, time.Time) small {
			<-answer
			return small{text: "0.5"}
		}}
		began := time.Now()
		for i := range 10 {
			if v := l.of(fmt.Sprintf("/run/%d", i), "/x", time.Now(), time.Minute); v.Known() || !strings.Contains(v.From, "answer") {
				t.Fatalf("%v", v)
			}
		}
		l.of("/run/0", "/x", time.Now(), time.Minute)
		if took := time.Since(began); took != latencyMost*latencyLimit {
			t.Errorf("it took %v", took)
		}
		close(answer)
		synctest.Wait()
		for i := range 10 {
			if v := l.of(fmt.Sprintf("/run/%d", i), "/x", time.Now(), time.Minute); v.Or(0) != 0.5 {
				t.Errorf("%d: %v", i, v)
			}
		}
	})
}

func TestLatencyFolder(t *testing.T) {
	for _, c := range []struct{ pattern, folder, path string }{
		{"/run/search/{workload}.p99", "/run/search/", "web-1.p99"}, {"/run/{workload}/p99", "/run/", "web-1/p99"},
		{"/run/a-{workload}/{workload}", "/run/", "a-web-1/web-1"}, {"/run/p99", "/run/", "p99"}, {"/p99", "/", "p99"},
	} {
		if got := latencyFileOf(c.pattern, "/services/web-1"); got.folder != c.folder || got.path != c.path {
			t.Errorf("%s: %+v", c.pattern, got)
		}
	}
}

func FuzzParseLatency(f *testing.F) {
	for _, s := range []string{"0.1", "1e-3\n", "-1", "NaN", "0x1p-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := parseLatency(text); !(v >= 0) || err != nil && v != 0 {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	})
}

// Level and format can change while the logger is used.
func TestLogger(t *testing.T) {
	var out bytes.Buffer
	log, set := Logger(&out, LogConfig{Level: "warn", Format: "text"})
	log.Info("one")
	set(LogConfig{Level: "info", Format: "json"})
	log.Info("two")
	if got := out.String(); strings.Contains(got, "one") || !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"two"`) {
		t.Error(got)
	}
}

func TestDecodeRunning(t *testing.T) {
	c, err := ParseConfig([]byte("log: {level: debug, format: json}\ndecisions: none\nrecord: /var/r.jsonl\napi: {group: homenode}\nmetrics: {listen: \"127.0.0.1:9464\", max_workloads: 5}"), "c.yaml")
	if err != nil || c.Log.Level != "debug" || c.Decisions.Path != "" || c.Record.Path != "/var/r.jsonl" || c.History.Path != defaultHistory ||
		c.API.Socket != DefaultStateDir+"/api.sock" || c.API.Asked || c.API.Group != "homenode" || c.Metrics.MaxWorkloads != 5 {
		t.Errorf("%+v, %v", c.Running, err)
	}
	c, err = ParseConfig([]byte("state_dir: /run/other"), "c.yaml")
	if err != nil || c.Decisions.Path != "/run/other/decisions.jsonl" || c.History.Path != "/run/other/history.json" || c.API.Socket != "/run/other/api.sock" {
		t.Errorf("%+v, %v", c.Running, err)
	}
	for text, want := range map[string]string{
		"log: {level: loud}": "loud", "log: {format: xml}": "xml", "decisions: here": "absolute path", "record_size: 1KiB": "record_size", "decisions_keep: -1": "decisions_keep",
		"history_every: 1ms": "history_every", "metrics: {listen: nine}": "127.0.0.1:9464", "metrics: {max_workloads: -1}": "max_workloads", "api: {sockets: x}": "sockets",
		"services: [{name: a, match: /a, near: [\"\"]}]": "near", "services: [{name: a, match: /a, latency_file: x}]": "latency_file",
	} {
		if _, err := ParseConfig([]byte(text), "c.yaml"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "c.yaml") {
			t.Errorf("%s: %v", text, err)
		}
	}
	c, err = ParseLayers(Layer{"c.yaml", []byte("mao: {target: 0.7, strategy: A}\nservices: [{name: a, match: /a}]")}, Layer{"--set", []byte("mao:\n  strategy: B\n")})
	if err != nil || c.MAO.Strategy != "B" || c.MAO.Target != 0.7 || c.MAO.MinLoads != 1000 || len(c.Services) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}
