// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

const top = "/sys/fs/cgroup"

func treeV2() kerneltest.Files {
	return kerneltest.Files{
		"/proc/self/mountinfo":      "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/cgroup.controllers": "cpuset cpu\n",
		top + "/a/cgroup.procs":     "10\n11\n",
		top + "/a/cgroup.freeze":    "0\n",
		top + "/a/cgroup.events":    "populated 1\nfrozen 0\n",
	}
}

// treeV1 is a hybrid host: cpuset and freezer on v1, and an empty v2.
func treeV1() kerneltest.Files {
	return kerneltest.Files{
		"/proc/self/mountinfo": "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
			"35 31 0:32 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n" +
			"36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		top + "/cpuset/a/cgroup.procs":             "10\n",
		top + "/cpuset/a/b/cgroup.procs":           "11\n",
		top + "/freezer/a/cgroup.procs":            "11\n10\n",
		top + "/freezer/a/freezer.state":           "THAWED\n",
		top + "/freezer/a/freezer.self_freezing":   "0\n",
		top + "/freezer/a/freezer.parent_freezing": "0\n",
	}
}

func find(t *testing.T, root unix.Root) (*Freezer, error) {
	t.Helper()
	l, err := cgroup.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Find(unix.NewLive(), l, "/a")
	if err == nil {
		t.Cleanup(func() { f.Close() })
	}
	return f, err
}

func mustFind(t *testing.T, root unix.Root) *Freezer {
	t.Helper()
	f, err := find(t, root)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDecisionFind(t *testing.T) {
	without := func(files kerneltest.Files, names ...string) kerneltest.Files {
		for _, n := range names {
			delete(files, n)
		}
		return files
	}
	with := func(files kerneltest.Files, name, content string) kerneltest.Files {
		files[name] = content
		return files
	}
	for _, c := range []struct {
		about string
		files kerneltest.Files
		file  string
		wrong string
	}{
		{"v2", treeV2(), FileV2, ""},
		{"v2 before 5.2", without(treeV2(), top+"/a/cgroup.freeze"), "", "older than 5.2"},
		{"v1", treeV1(), FileV1, ""},
		{"v1 freezer has others", with(treeV1(), top+"/freezer/a/cgroup.procs", "10\n11\n12\n"), "", "other processes there, 3 of them, than the 2"},
		{"v1 without that cgroup, v2 has it", with(with(with(without(treeV1(), top+"/freezer/a/cgroup.procs", top+"/freezer/a/freezer.state", top+"/freezer/a/freezer.self_freezing", top+"/freezer/a/freezer.parent_freezing"),
			top+"/unified/a/cgroup.procs", "10\n11\n"), top+"/unified/a/cgroup.freeze", "0\n"), top+"/unified/a/cgroup.events", "frozen 0\n"), FileV2, ""},
		{"no freezer", with(treeV1(), "/proc/self/mountinfo", "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"), "", "no hierarchy with a freezer"},
		{"gone", without(treeV2(), top+"/a/cgroup.freeze", top+"/a/cgroup.procs", top+"/a/cgroup.events"), "", "gone"},
		{"garbage", with(treeV2(), top+"/a/cgroup.freeze", "perhaps\n"), "", `line 1 "perhaps\n": want 0 or 1`},
	} {
		f, err := find(t, kerneltest.Tree(t, c.files))
		switch {
		case c.wrong == "" && (err != nil || f.File != c.file):
			t.Errorf("%s: %+v, %v", c.about, f, err)
		case c.wrong != "" && (f != nil || err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %+v, %v, want %q", c.about, f, err, c.wrong)
		}
	}
	if _, err := Find(unix.Live{}, cgroup.Layout{}, "/a"); !errors.Is(err, unix.ErrNotSupported) {
		t.Errorf("without a live kernel: %v", err)
	}
}

func TestDecodeState(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  State
	}{
		{map[string]string{}, State{}},
		{map[string]string{"cgroup.freeze": "1\n"}, State{Own: true}},
		{map[string]string{"cgroup.freeze": "1\n", "cgroup.events": "populated 1\nfrozen 1\n"}, State{Own: true, Still: true}},
		{map[string]string{"cgroup.events": "populated 1\nfrozen 1\n"}, State{Above: true, Still: true}},
		{map[string]string{"freezer.state": "FREEZING\n", "freezer.self_freezing": "1\n"}, State{Own: true}},
		{map[string]string{"freezer.state": "FROZEN\n", "freezer.self_freezing": "1\n"}, State{Own: true, Still: true}},
		{map[string]string{"freezer.state": "FROZEN\n", "freezer.parent_freezing": "1\n"}, State{Above: true, Still: true}},
		{map[string]string{"freezer.state": "FROZEN\n", "freezer.self_freezing": "?"}, State{Own: true, Still: true}},
	} {
		files, dir := treeV2(), top+"/a/"
		for name := range c.files {
			if strings.HasPrefix(name, "freezer") {
				files, dir = treeV1(), top+"/freezer/a/"
			}
		}
		root := kerneltest.Tree(t, files)
		f := mustFind(t, root)
		for name, content := range c.files {
			kerneltest.Write(t, root, kerneltest.Files{dir + name: content})
		}
		if got, err := f.State(); got != c.want || err != nil {
			t.Errorf("%v: %+v, %v", c.files, got, err)
		}
	}
}

func TestWait(t *testing.T) {
	root := kerneltest.Tree(t, treeV2())
	f := mustFind(t, root)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if err := f.Set(true); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not every process stands still") {
		t.Errorf("%v", err)
	}
	kerneltest.Write(t, root, kerneltest.Files{top + "/a/cgroup.events": "populated 1\nfrozen 1\n"})
	if err := f.Wait(context.Background()); err != nil {
		t.Error(err)
	}
	kerneltest.Write(t, root, kerneltest.Files{top + "/a/cgroup.events": "populated 1\nfrozen 0\n"})
	if err := errors.Join(f.Set(false)); err != nil {
		t.Fatal(err)
	}
	if err := f.Wait(context.Background()); err == nil || !strings.Contains(err.Error(), "another process thawed") {
		t.Errorf("%v", err)
	}
}

// While v1 is FREEZING, the freeze is requested again.
func TestWaitAsksAgainV1(t *testing.T) {
	root := kerneltest.Tree(t, treeV1())
	f := mustFind(t, root)
	kerneltest.Write(t, root, kerneltest.Files{top + "/freezer/a/freezer.state": "FREEZING\n", top + "/freezer/a/freezer.self_freezing": "1\n"})
	_ = f.Wait(context.Background()) // ends with what the fake makes of it: FROZEN, and the rest of FREEZING
	if data, _ := os.ReadFile(root.Path(top + "/freezer/a/freezer.state")); !strings.HasPrefix(string(data), "FROZEN") {
		t.Errorf("%q", data)
	}
}

func FuzzParsers(f *testing.F) {
	for _, seed := range []string{"0\n", "1\n", "THAWED\n", "FREEZING\n", "FROZEN\n", ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, parse := range []func([]byte) (bool, error){ParseFreeze, ParseFreezing} {
			if v, err := parse(data); err != nil && (v || !errors.Is(err, unix.ErrMalformed)) {
				t.Fatalf("%q: %v, %v", data, v, err)
			}
		}
		if asked, still, err := ParseFreezerState(data); err != nil && (asked || still || !errors.Is(err, unix.ErrMalformed)) || still && !asked {
			t.Fatalf("%q: %v, %v, %v", data, asked, still, err)
		}
	})
}

func TestDecisionIsRoot(t *testing.T) {
	root := kerneltest.Tree(t, kerneltest.Files{
		"/v2/cgroup.procs": "", "/ns/cgroup.procs": "", "/ns/cgroup.events": "populated 1\n", "/v1/release_agent": "", "/part/cgroup.procs": "",
	})
	const info = `1 0 0:1 / /v2 rw - cgroup2 c rw
2 0 0:2 / /ns rw - cgroup2 c rw
3 0 0:3 / /v1 rw - cgroup c rw,name=systemd
4 0 0:4 / /part rw - cgroup c rw,name=systemd
5 0 0:5 /docker/1 /v1 rw - cgroup c rw,freezer
`
	want := []bool{true, false, true, false, false}
	for i, m := range parseMounts(t, info) {
		if got := isRoot(root, m); got != want[i] || !isKilledBy(m) {
			t.Errorf("%+v: %v", m, got)
		}
	}
}
