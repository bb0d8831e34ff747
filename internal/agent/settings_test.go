// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// other returns a value with everything in it changed.
func other(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), v.Len()+1, v.Len()+1))
	default:
		t.Fatalf("the test knows no %v", v.Type())
	}
}

// Every field of a configuration belongs to a setting. A change is taken or waits, and a
// waiting change is not shown as if it were in force.
func TestSettingsAreAll(t *testing.T) {
	old, err := ParseConfig(nil, "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(path string, at []int, kind reflect.Type)
	walk = func(path string, at []int, kind reflect.Type) {
		for i := range kind.NumField() {
			f := kind.Field(i)
			name, index := path+"."+f.Name, append(slices.Clone(at), i)
			switch {
			case slices.Contains([]string{"Running", "Runtimes", "Decisions", "Record", "History", "API", "Metrics", "Hub"}, f.Name):
				walk(name, index, f.Type)
				continue
			case f.Name == "Text" || f.Name == "StateDirAsked" || f.Name == "Unread": // the whole file; state_dir waits; problems of other files
				continue
			}
			next := old
			v := reflect.ValueOf(&next).Elem().FieldByIndex(index)
			switch f.Name {
			case "MAO":
				next.MAO.Target++
			case "Actuate":
				next.Actuate.Rate++
			case "Log":
				next.Log.Level = "debug"
			default:
				other(t, v)
			}
			got, r := adopt(old, next)
			if len(r.Changed)+len(r.Waits) != 1 {
				t.Errorf("%s: %+v", name, r)
			}
			if force := reflect.ValueOf(got).FieldByIndex(index); len(r.Waits) > 0 && !reflect.DeepEqual(force.Interface(), reflect.ValueOf(old).FieldByIndex(index).Interface()) {
				t.Errorf("%s waits for a restart, and is shown as %v", name, force)
			}
		}
	}
	walk("Config", nil, reflect.TypeFor[Config]())
}

// Resctrl uses the current configuration.
func TestServiceOfAfterReload(t *testing.T) {
	a := &Agent{o: Options{Config: Config{Services: []Service{{Name: "old", Match: "/w"}}}}}
	ask := a.serviceOf
	a.o.Config = Config{Services: []Service{{Name: "new", Match: "/w", Approved: true}}}
	if name, approved := ask("/w"); name != "new" || !approved {
		t.Errorf("%s, %v", name, approved)
	}
}

// A dry run takes nothing that belongs to the running agent, even if the
// configuration names it. A recording does not overwrite the host's figures.
func TestDryConfig(t *testing.T) {
	c, err := ParseConfig([]byte("api: {socket: /run/h/api.sock}\nmetrics: {listen: \":9464\"}\ndecisions: /var/log/d\nrecord: /var/log/r\nhistory: /var/lib/h"), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]Config{"dry run": dryConfig(c, "/run/dry"), "recording": playConfig(dryConfig(c, DefaultStateDir))} {
		if got.API.Socket == c.API.Socket || (got.Metrics.Listen == "") != (what == "recording") || got.Decisions.Path == c.Decisions.Path || got.Record.Path == c.Record.Path {
			t.Errorf("%s: %+v", what, got.Running)
		}
	}
	c.StateDir = t.TempDir()
	a, err := New(t.Context(), Options{Config: c, Log: slog.New(slog.DiscardHandler), Play: &Tape{rec: window.Recording{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for what, path := range map[string]string{"history": a.o.Config.History.Path, "decisions": a.o.Config.Decisions.Path, "socket": a.Config().API.Socket, "record": a.o.Config.Record.Path} {
		if filepath.Dir(path) != c.StateDir {
			t.Errorf("%s of a recording: %s", what, path)
		}
	}
}

// broken cannot be read after some time.
type broken struct {
	*world
	now atomic.Bool
}

func (b *broken) Read(ctx context.Context) (window.Window, error) {
	if b.now.Load() {
		return window.Window{}, errors.New("no cgroups")
	}
	return b.world.Read(ctx)
}

// While no window can be read the counters rise, so that the failure is
// visible.
func TestFailingRoundsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := "period: 10s\ncalm_period: 10s"
		a, w := served(t, &text)
		b := &broken{world: w}
		a.reader = b
		var before View
		run(t, a, func() { time.Sleep(55 * time.Second) },
			func() { before, _ = a.View(); b.now.Store(true) },
			func() { time.Sleep(60 * time.Second) },
			func() {
				v, _ := a.View()
				if got := v.Status.Totals; got.FailedRounds < 5 || got.Rounds <= before.Status.Totals.Rounds {
					t.Errorf("%+v", got)
				}
				if v.Status.Window.Seq != before.Status.Window.Seq {
					t.Error("the window is another one")
				}
			})
	})
}

// A problem is logged when it is new, and a status does not list thousands of
// them.
func TestProblems(t *testing.T) {
	var out bytes.Buffer
	a := &Agent{o: Options{Log: slog.New(slog.NewTextHandler(&out, nil))}, past: map[string][]Decision{}}
	w := window.Window{}
	for i := range 2000 {
		w.Problems = append(w.Problems, fmt.Sprintf("read /c%d: no", i))
	}
	for range 3 {
		a.tell(w, nil, 0)
	}
	if got := strings.Count(out.String(), "\n"); got != mostProblems+1 || !strings.Contains(out.String(), "more_problems=1950") {
		t.Errorf("%d lines", got)
	}
	if got := a.status.Window.Problems; len(got) != mostProblems+1 || got[mostProblems] != "and 1950 more" || a.status.Problems != 2000 {
		t.Errorf("%d, %q of %d", len(got), got[len(got)-1], a.status.Problems)
	}
	a.tell(window.Window{Problems: []string{"read /c0: no", "new"}}, nil, 0)
	if got := out.String(); strings.Count(got, "/c0:") != 1 || !strings.Contains(got, "problem=new") {
		t.Error(got[len(got)-200:])
	}
}

// A reload that changes nothing leaves the recording alone.
func TestReloadKeepsRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		text := fmt.Sprintf("period: 10s\ncalm_period: 10s\nrecord: %s/rec", dir)
		a, _ := served(t, &text)
		reload := func() {
			if _, err := a.Reload(); err != nil {
				t.Error(err)
			}
		}
		run(t, a, func() { time.Sleep(30 * time.Second) }, reload, func() { time.Sleep(30 * time.Second) }, reload, func() { time.Sleep(30 * time.Second) })
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%v", left)
		}
	})
}

// Beyond the limit a new exclusion is refused, and an existing one may change.
func TestMostExcluded(t *testing.T) {
	a := &Agent{o: Options{Log: slog.New(slog.DiscardHandler)}, wake: make(chan struct{}, 1)}
	for i := range maxExcluded {
		if !a.Exclude(fmt.Sprint(i), time.Unix(1, 0)) {
			t.Fatalf("%d was refused", i)
		}
	}
	if a.Exclude("more", time.Unix(1, 0)) || !a.Exclude("5", time.Unix(2, 0)) {
		t.Error("fewer exclusions than the limit allows")
	}
}

// The status is for the group that the API is for.
func TestWhoReadsTheStatus(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, statusName)
	if err := os.WriteFile(file+".tmp", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	group := os.Getgid()
	if os.Getuid() == 0 {
		group = 7
	}
	if err := (Status{Schema: statusSchema}).write(dir, group); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil || st.Mode().Perm() != 0o640 || int(st.Sys().(*syscall.Stat_t).Gid) != group {
		t.Errorf("%v, %v", st, err)
	}
}

func TestDecodeRunningLimits(t *testing.T) {
	for text, want := range map[string]string{"api: {write_group: w}": "without group", "decisions_size: 1GiB": "decisions_size"} {
		if _, err := ParseConfig([]byte(text), "c.yaml"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if c, err := ParseConfig([]byte("decisions_size: 256MiB"), "c.yaml"); err != nil || c.Decisions.Size != 256*unit.MiB {
		t.Errorf("%v", err)
	}
}

// A configuration of megabytes, or one without an end, is refused before it is parsed.
func TestConfigIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, bytes.Repeat([]byte("# nothing\n"), MaxConfig/10+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{file, "/dev/zero"} {
		if _, err := ReadLayer(f); !errors.Is(err, unix.ErrTooLarge) {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := ParseConfig(bytes.Repeat([]byte("# nothing\n"), MaxConfig/10+1), "c.yaml"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("an oversized text: %v", err)
	}
}
