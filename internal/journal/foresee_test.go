// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"homenode/internal/kernel"
)

// foreseen is an owner with a memory. Some of its settings cannot be read.
type foreseen struct {
	elephant
	fails map[Setting]error
}

func (f foreseen) Read(s Setting) (Current, error) {
	if err := f.fails[s]; err != nil {
		return Current{}, fmt.Errorf("read %s: %w", s, err)
	}
	return f.elephant.Read(s)
}

// Foresee announces what Restore then does, for every kind, in the same order and with
// the same error. It changes nothing: neither settings nor the journal's file.
func TestForesee(t *testing.T) {
	kept := Named(OfContainer, "docker/1a", "cpuset.cpus")
	other := Named(OfContainer, "docker/1a", "cpuset.mems")
	for about, c := range map[string]struct {
		then func(w *world, f *foreseen)
		want Result // of /demo/b's CPUs, or of what is remembered
		of   Setting
	}{
		"put back":        {func(*world, *foreseen) {}, PutBack, cpusB},
		"another process": {func(w *world, _ *foreseen) { w.files[cpusB] = "7" }, Left, cpusB},
		"as it was":       {func(w *world, _ *foreseen) { w.files[cpusB] = "" }, Already, cpusB},
		"gone":            {func(w *world, _ *foreseen) { delete(w.ids, "/demo/b") }, Vanished, cpusB},
		"another one":     {func(w *world, _ *foreseen) { w.ids["/demo/b"] = 77 }, Vanished, cpusB},
		"no answer":       {func(_ *world, f *foreseen) { f.fails[cpusB] = ErrNoAnswer }, Kept, cpusB},
		"not permitted":   {func(_ *world, f *foreseen) { f.fails[cpusB] = kernel.ErrNotPermitted }, NotDone, cpusB},
		"unclear":         {func(_ *world, f *foreseen) { f.fails[cpusB] = errors.New("what?") }, NotDone, cpusB},
		"remembered": {func(_ *world, f *foreseen) {
			f.all = []Entry{{Setting: kept, ID: 7, Original: "0-3", Ours: []string{"2"}}}
		}, PutBack, kept},
		"in their order": {func(_ *world, f *foreseen) {
			f.all = []Entry{{Setting: kept, ID: 7, Original: "0-3", Ours: []string{"2"}}, {Setting: other, ID: 7, Original: "0-1", Ours: []string{"1"}}}
		}, Left, other},
		"half of it": {func(_ *world, f *foreseen) {
			f.all, f.err = []Entry{{Setting: kept, ID: 7, Original: "0-3", Ours: []string{"2"}}}, errors.New("the rest is damaged")
		}, PutBack, kept},
	} {
		t.Run(about, func(t *testing.T) {
			w := newWorld()
			w.ids[kept.Cgroup], w.files[kept], w.files[other] = 7, "2", "0"
			f := foreseen{elephant: elephant{world: w}, fails: map[Setting]error{}}
			dir := filepath.Join(t.TempDir(), "state")
			j, err := Open(dir)
			if err != nil {
				t.Skipf("no journal on this host: %v", err)
			}
			for _, id := range []string{"/demo/a", "/demo/b"} {
				j.Wrap(f).Apply(ctx, cpus(id, 0, 1))
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			c.then(w, &f)
			before, after := foreseeAndRestore(t, dir, j.boot, f)
			if !reflect.DeepEqual(results(before), results(after)) {
				t.Errorf("foreseen %v\ndone     %v", before, after)
			}
			i := slices.IndexFunc(after, func(r Restored) bool { return r.Setting == c.of })
			if i < 0 || after[i].Result != c.want {
				t.Errorf("done %v: want %s of %s", after, c.want, c.of)
			}
		})
	}
}

func foreseeAndRestore(t *testing.T, dir, boot string, f foreseen) (before, after []Restored) {
	t.Helper()
	log, _ := os.ReadFile(filepath.Join(dir, logName))
	files := fmt.Sprint(f.files)
	before, err := Foresee(dir, boot, f)
	if now, _ := os.ReadFile(filepath.Join(dir, logName)); string(now) != string(log) || fmt.Sprint(f.files) != files {
		t.Errorf("by looking the journal became\n%sthe files %v", now, f.files)
	}
	j, bad := Open(dir)
	if bad != nil {
		t.Fatal(bad)
	}
	defer j.Close()
	after, failed := j.Restore(ctx, f)
	for _, kind := range []error{kernel.ErrNotPermitted, f.err} {
		if kind != nil && errors.Is(err, kind) != errors.Is(failed, kind) {
			t.Errorf("foreseen %v, done %v", err, failed)
		}
	}
	if (err == nil) != (failed == nil) {
		t.Errorf("foreseen %v, done %v", err, failed)
	}
	return before, after
}

func results(all []Restored) (said []string) {
	for _, r := range all {
		said = append(said, fmt.Sprint(r.Setting, r.Workload, r.Result))
	}
	return said
}

// While a homenode runs, Foresee fails as Restore does, with or without the pid in the
// lock. The journal of a newer homenode is an error, also of another boot. Without a
// journal there is nothing to do, and no directory is made.
func TestForeseeWhereRestoreFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, err := Open(dir)
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	w := newWorld()
	for range 2 {
		if _, err := Foresee(dir, j.boot, w); !errors.Is(err, ErrLocked) {
			t.Errorf("beside one that runs: %v", err)
		}
		if err := os.Truncate(filepath.Join(dir, lockName), 0); err != nil { // a full disk
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	line, _ := record{Kind: kindBoot, Version: version + 1, Boot: "another"}.line("another")
	if err := os.WriteFile(filepath.Join(dir, logName), line, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Foresee(dir, j.boot, w); err == nil || !strings.Contains(err.Error(), "newer homenode") {
		t.Errorf("of a newer one: %v", err)
	}
	none := filepath.Join(dir, "none")
	if all, err := Foresee(none, j.boot, w); err != nil || len(all) != 0 {
		t.Errorf("of nothing: %v, %v", all, err)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("looking made a folder")
	}
}
