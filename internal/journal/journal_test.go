// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/set"
)

const boot = "5b1c-boot"

var ctx = context.Background()

func cpus(workload string, ids ...int) action.Step {
	return action.Step{Kind: action.SetCPUs, Workload: workload, CPUs: set.FromCPUs(ids...)}
}

func mems(workload string, ids ...int) action.Step {
	return action.Step{Kind: action.SetMems, Workload: workload, Nodes: set.FromNodes(ids...)}
}

func restoreStep(workload string) action.Step {
	return action.Step{Kind: action.Restore, Workload: workload}
}

// script binds and unbinds, one cgroup twice.
var script = []action.Step{
	cpus("/demo/a", 0, 1), mems("/demo/a", 0), cpus("/demo/b", 2, 3), restoreStep("/demo/a"),
	cpus("/demo/a", 2, 3), mems("/demo/a", 1), restoreStep("/demo/b"), cpus("/demo/a", 0, 1),
}

func mustOpen(t *testing.T, w *world) *Journal {
	t.Helper()
	j, err := open(w, boot)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// until runs f and reports whether it crashed.
func until(f func()) (crashed bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(crash); !ok {
				panic(r)
			}
			crashed = true
		}
	}()
	f()
	return false
}

// run takes the whole script; crashes come out of it.
func run(t *testing.T, w *world) {
	j := mustOpen(t, w)
	a := j.Wrap(w)
	for _, step := range script {
		if o := a.Apply(ctx, step); o.Status != action.Done {
			t.Fatalf("%s %s: %s: %s", step.Kind, step.Workload, o.Status, o.Detail)
		}
	}
}

// check restores and says how the tree differs from what it was.
func check(t *testing.T, w *world, want map[Setting]string, what string) {
	t.Helper()
	w.stop = 0 // it may continue now
	j := mustOpen(t, w)
	got, err := j.Restore(ctx, w)
	if err != nil || !maps.Equal(asBefore(w), want) || len(j.Outstanding()) > 0 || len(j.Equivalents()) > 0 && !w.populated {
		t.Fatalf("%s: %v, %v; the tree is %v, want %v; outstanding %v\njournal:\n%s", what, got, err, w.files, want, j.Outstanding(), w.log)
	}
	for _, r := range got {
		if r.Result == Left {
			t.Fatalf("%s: %v is taken for another process's change\njournal:\n%s", what, r, w.log)
		}
	}
	again, err := j.Restore(ctx, w)
	if err != nil || len(again) != len(j.Equivalents()) || !maps.Equal(asBefore(w), want) {
		t.Fatalf("%s: restoring twice did %v, %v", what, again, err)
	}
}

// asBefore is the tree, where a populated cgroup's equivalent counts as the empty set
// that the kernel would not accept back.
func asBefore(w *world) map[Setting]string {
	files := maps.Clone(w.files)
	for s, v := range files {
		if w.populated && v == "0-7" {
			files[s] = ""
		}
		if w.ids[s.Cgroup] >= 1000 && v == threadsHad { // born since, with the right value
			delete(files, s)
		}
	}
	return files
}

// worlds are the variants of the kernel that a restore meets.
func worlds() map[string]*world {
	empty, full := newWorld(), newWorld()
	full.populated = true // ENOSPC
	on, held, onFull := newWorld(), newWorld(), newWorld()
	onFull.populated = true
	for _, w := range []*world{on, held, onFull} {
		w.set(subtreeRoot, "+")
		w.set(subtreeDemo, "+")
	}
	held.files[cpusA], held.files[memsA], held.files[cpusB] = "0-3", "0-1", "1-2"
	return map[string]*world{"controller off": empty, "controller off, populated": full, "controller on": on, "controller on, populated": onFull, "had settings": held}
}

// TestEveryCrash stops at every operation of the script, before and after its effect;
// then at every byte of every record; and each time at every operation of the restore
// that follows. In the end nothing stays behind.
func TestEveryCrash(t *testing.T) {
	for name, first := range worlds() {
		points, restores := 0, 0
		for stop := 1; ; stop++ {
			w := first.clone()
			w.stop = stop
			if !until(func() { run(t, w) }) {
				break
			}
			points++
			restores += crashInRestore(t, w, first.files, fmt.Sprintf("%s, stopped at %d", name, stop))
		}
		torn := tornAppends(t, first, name)
		t.Logf("%s: %d crash points, %d crashes within their restores, %d torn writes", name, points, restores, torn)
		if points < 50 || restores < points || torn < 1000 {
			t.Errorf("%s: too few points to mean anything: %d, %d, %d", name, points, restores, torn)
		}
	}
}

// crashInRestore stops the restore at every operation, then lets it finish.
func crashInRestore(t *testing.T, crashed *world, want map[Setting]string, what string) (points int) {
	t.Helper()
	for stop := 1; ; stop++ {
		w := crashed.clone()
		w.stop = stop
		if !until(func() { _, _ = mustOpen(t, w).Restore(ctx, w) }) {
			check(t, w, want, what)
			return points
		}
		points++
		check(t, w.clone(), want, fmt.Sprintf("%s, restore stopped at %d", what, stop))
	}
}

// tornAppends stops within every append of the script, after every byte.
func tornAppends(t *testing.T, first *world, name string) (points int) {
	t.Helper()
	whole := first.clone()
	run(t, whole)
	for i, at := range whole.appends {
		for torn := 1; torn < whole.sizes[i]; torn++ {
			w := first.clone()
			w.stop, w.torn = at+1, torn
			if !until(func() { run(t, w) }) {
				t.Fatalf("%s: append %d did not tear", name, i)
			}
			what := fmt.Sprintf("%s, append %d torn after %d bytes", name, i, torn)
			check(t, w.clone(), first.files, what)
			if torn%16 == 1 {
				crashInRestore(t, w, first.files, what)
				goOn := w.clone() // the next start binds again, and is killed at its end
				run(t, goOn)
				check(t, goOn, first.files, what+", and the script once more")
			}
			points++
		}
	}
	return points
}

// A test of the tests: without the record before the write, a crash loses the original.
func TestCrashTestSeesALostRecord(t *testing.T) {
	w := newWorld()
	_ = mustOpen(t, w)
	w.set(subtreeRoot, "+") // behind the journal's back
	j := mustOpen(t, w)
	if got, err := j.Restore(ctx, w); err != nil || len(got) != 0 || w.files[subtreeRoot] != "+" {
		t.Errorf("restored what was never recorded: %v, %v", got, err)
	}
}

func TestEquivalentIsFollowed(t *testing.T) {
	w := newWorld()
	w.set(subtreeRoot, "+")
	w.set(subtreeDemo, "+")
	w.populated = true
	j := mustOpen(t, w)
	j.Wrap(w).Apply(ctx, cpus("/demo/a", 0, 1))
	got, err := j.Restore(ctx, w)
	if err != nil || len(got) != 1 || got[0].Result != Equivalent || w.files[cpusA] != "0-7" || len(j.Outstanding()) != 0 || len(j.Equivalents()) != 1 {
		t.Fatalf("%v, %v: %q", got, err, w.files[cpusA])
	}
	if j.Ours("/demo/a", "cpuset.cpus", "0-7") {
		t.Error("an equivalent of what was there counts as our binding")
	}
	j = mustOpen(t, w) // the next start, and its processes have left
	w.populated = false
	if got, err := j.Restore(ctx, w); err != nil || got[0].Result != PutBack || w.files[cpusA] != "" || len(j.Equivalents()) != 0 {
		t.Errorf("%v, %v: %q", got, err, w.files[cpusA])
	}
}

func TestBindAfterEquivalentKeepsTheOriginal(t *testing.T) {
	w := newWorld()
	w.set(subtreeRoot, "+")
	w.set(subtreeDemo, "+")
	w.populated = true
	j := mustOpen(t, w)
	a := j.Wrap(w)
	a.Apply(ctx, cpus("/demo/a", 0, 1))
	a.Apply(ctx, restoreStep("/demo/a"))
	a.Apply(ctx, cpus("/demo/a", 2, 3))
	if out := j.Outstanding(); len(out) != 1 || out[0].Original != "" {
		t.Errorf("outstanding: %+v", out)
	}
}

func TestDriftIsRespected(t *testing.T) {
	w := newWorld()
	j := mustOpen(t, w)
	a := j.Wrap(w)
	a.Apply(ctx, cpus("/demo/a", 0, 1))
	if !j.Ours("/demo/a", "cpuset.cpus", "0-1\n") || j.Ours("/demo/b", "cpuset.cpus", "0-1") {
		t.Error("Ours is wrong")
	}
	w.files[cpusA] = "5"
	if o := a.Apply(ctx, cpus("/demo/a", 2, 3)); o.Status != action.Drifted || w.files[cpusA] != "5" {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	got, err := j.RestoreWorkload(ctx, w, "/demo/a")
	if err != nil || len(got) != 1 || got[0].Result != Left || w.files[cpusA] != "5" {
		t.Errorf("%v, %v", got, err)
	}
}

// A process that puts the original back has unbound the cgroup; a new bind may follow.
func TestOriginalPutBackByOthers(t *testing.T) {
	w := newWorld()
	j := mustOpen(t, w)
	a := j.Wrap(w)
	a.Apply(ctx, cpus("/demo/a", 0, 1))
	w.files[cpusA] = ""
	if o := a.Apply(ctx, cpus("/demo/a", 2, 3)); o.Status != action.Done || w.files[cpusA] != "2-3" {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
}

func TestIdempotent(t *testing.T) {
	w := newWorld()
	a := mustOpen(t, w).Wrap(w)
	a.Apply(ctx, cpus("/demo/a", 0, 1))
	size := len(w.log)
	if o := a.Apply(ctx, cpus("/demo/a", 0, 1)); o.Status != action.Done || len(w.log) != size {
		t.Errorf("%s: the journal grew by %d", o.Status, len(w.log)-size)
	}
}

// A cgroup that was removed and made again under its name is another one.
func TestRecreatedCgroupIsNotRestored(t *testing.T) {
	w := newWorld()
	j := mustOpen(t, w)
	a := j.Wrap(w)
	a.Apply(ctx, cpus("/demo/a", 0, 1))
	w.ids["/demo/a"] = 99
	got, err := j.RestoreWorkload(ctx, w, "/demo/a")
	if err != nil || got[0].Result != Vanished || w.files[cpusA] != "0-1" {
		t.Errorf("%v, %v", got, err)
	}
	a.Apply(ctx, cpus("/demo/a", 2, 3))
	if out := j.Outstanding(); out[0].Original != "0-1" || out[0].ID != 99 {
		t.Errorf("outstanding: %+v", out)
	}
}

func TestGoneAndRefused(t *testing.T) {
	w := newWorld()
	j := mustOpen(t, w)
	a := j.Wrap(w)
	if o := a.Apply(ctx, cpus("/demo/zzz", 0)); o.Status != action.Gone {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	w.writeErr = func(s Setting, _ string) error {
		if s == cpusA {
			return fmt.Errorf("set %s: %w", s, ErrRefused)
		}
		return nil
	}
	if o := a.Apply(ctx, cpus("/demo/a", 0)); o.Status != action.Refused || j.Ours("/demo/a", "cpuset.cpus", "0") {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	w.writeErr = func(Setting, string) error { return ErrInUse }
	got, err := j.Restore(ctx, w)
	if err != nil || len(got) != 2 || got[0].Result != Kept || len(j.Outstanding()) != 2 {
		t.Errorf("in use: %v, %v", got, err)
	}
	w.writeErr = func(Setting, string) error { return errors.New("disk on fire") }
	if got, err := j.Restore(ctx, w); err == nil || got[0].Result != NotDone || len(j.Outstanding()) != 2 {
		t.Errorf("failing: %v, %v", got, err)
	}
}

func TestDryRunTouchesNothing(t *testing.T) {
	w := newWorld()
	o := DryRun{w}.Apply(ctx, cpus("/demo/a", 0, 1))
	if o.Status != action.DryRun || !strings.Contains(o.Detail, "cpuset.cpus = 0-1") || w.files[subtreeRoot] != "-" || len(w.log) != 0 {
		t.Errorf("%+v", o)
	}
}

func TestOtherBootIsPutAside(t *testing.T) {
	w := newWorld()
	mustOpen(t, w).Wrap(w).Apply(ctx, cpus("/demo/a", 0, 1))
	j, err := open(w, "another")
	if err != nil || len(j.Outstanding()) != 0 || !strings.Contains(w.archive[boot], "cpuset.cpus") {
		t.Errorf("%v: %v, archive %v", err, j.Outstanding(), w.archive)
	}
}

func TestDamageInTheMiddleIsReported(t *testing.T) {
	w := newWorld()
	mustOpen(t, w).Wrap(w).Apply(ctx, cpus("/demo/a", 0, 1))
	lines := strings.SplitAfter(string(w.log), "\n")
	lines[1] = strings.Replace(lines[1], "subtree", "subTree", 1)
	w.log = []byte(strings.Join(lines, ""))
	j := mustOpen(t, w)
	if err := j.Damage(); !errors.Is(err, ErrDamaged) || len(j.Outstanding()) != 2 {
		t.Errorf("%v; %v", err, j.Outstanding())
	}
	why := 0
	for name, text := range w.archive {
		if strings.HasSuffix(name, ".why") && strings.Contains(text, "line 2") {
			why++
		}
	}
	if why != 1 || len(w.archive) != 2 {
		t.Errorf("kept aside: %v", w.archive)
	}
}

func TestCompactKeepsWhatIsOutstanding(t *testing.T) {
	w := newWorld()
	run(t, w)
	j := mustOpen(t, w)
	before, size := fmt.Sprint(ours(j)), len(w.log)
	if err := j.Compact(); err != nil || len(w.log) >= size || fmt.Sprint(ours(mustOpen(t, w))) != before {
		t.Errorf("%v: %d → %d bytes, %v → %v", err, size, len(w.log), before, ours(mustOpen(t, w)))
	}
}

func ours(j *Journal) (all []string) {
	for _, e := range j.Outstanding() {
		all = append(all, fmt.Sprint(e.Setting, e.Workload, e.ID, e.Original, e.Ours))
	}
	return all
}

func TestDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	j, err := Open(dir)
	if err != nil {
		t.Skipf("no journal on this host: %v", err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("a second agent: %v", err)
	}
	w := newWorld()
	j.Wrap(w).Apply(ctx, cpus("/demo/a", 0, 1))
	if es, err := Peek(dir, j.boot); err != nil || len(es) != 3 {
		t.Errorf("peek: %v, %v", es, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	f, _ := os.OpenFile(filepath.Join(dir, logName), os.O_APPEND|os.O_WRONLY, 0)
	f.WriteString("000000ff 1234")
	f.Close()
	if j, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if got, err := j.Restore(ctx, w); err != nil || len(got) != 3 || w.files[subtreeRoot] != "-" {
		t.Errorf("%v, %v", got, err)
	}
	if es, err := Peek(dir, "another boot"); err != nil || len(es) != 0 {
		t.Errorf("peek: %v, %v", es, err)
	}
	if es, err := Peek(filepath.Join(dir, "none"), "x"); err != nil || es != nil {
		t.Errorf("peek at nothing: %v, %v", es, err)
	}
}

func FuzzParse(f *testing.F) {
	line, _ := record{Seq: 1, Kind: kindIntent, Setting: cpusA, New: "0"}.line(boot)
	f.Add(line)
	f.Add(append(line, "00000002 00000000 {}\n"...))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := parse(data, boot)
		l := ledger{}
		for _, r := range p.records {
			l.replay(r)
		}
		again := parse(data[:p.good], boot)
		if len(again.records) != len(p.records) || len(again.damage) != len(p.damage) {
			t.Fatalf("cutting the tail off lost records: %+v, %+v", again, p)
		}
	})
}
