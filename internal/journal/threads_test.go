// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/kernel"
	"homenode/internal/set"
)

// threadWorld has threads beside its cgroups.
type threadWorld struct{ *world }

var thread7, thread8 = Setting{"thread 7", "affinity"}, Setting{"thread 8", "affinity"}

func newThreadWorld() *world {
	w := newWorld()
	w.ids["thread 7"], w.ids["thread 8"] = 700, 800
	w.files[thread7], w.files[thread8] = "0-7", "0-3"
	return w
}

func (w threadWorld) Plan(ctx context.Context, step action.Step) ([]Change, error) {
	if step.Kind != action.PinThread {
		return w.world.Plan(ctx, step)
	}
	s := Setting{fmt.Sprintf("thread %d", step.Thread), "affinity"}
	if _, ok := w.ids[s.Cgroup]; !ok {
		return nil, fmt.Errorf("act on %s: %w", s.Cgroup, kernel.ErrGone)
	}
	c := Change{Setting: s, ID: step.Start, Brief: true, Original: step.CPUs.IsEmpty()}
	if !c.Original {
		c.New, c.Release = step.CPUs.String(), step.Release
	}
	return []Change{c}, nil
}

func pin(thread int, release bool, ids ...int) action.Step {
	return action.Step{Kind: action.PinThread, Workload: "pid:5", Thread: thread, CPUs: set.FromCPUs(ids...), Release: release}
}

// threadScript holds, releases, moves, and binds a cgroup in between.
var threadScript = []action.Step{
	pin(7, true, 5), pin(8, false, 2), pin(7, true, 6), cpus("/demo/a", 0, 1), pin(8, false, 3), pin(7, false, 4),
	pin(8, false), pin(7, true, 1), pin(8, true, 0), restoreStep("pid:5"), pin(7, false, 2),
}

func runThreads(t *testing.T, w *world) *Journal {
	j := mustOpen(t, w)
	for i, step := range threadScript {
		if o := j.Wrap(threadWorld{w}).Apply(ctx, step); o.Status != action.Done {
			t.Fatalf("%s %d: %s: %s", step.Kind, step.Thread, o.Status, o.Detail)
		}
		if _, err := j.GiveBack(threadWorld{w}); err != nil {
			t.Fatal(err)
		}
		if i == len(threadScript)/2 {
			if _, err := j.Forget(w); err != nil || j.Compact() != nil {
				t.Fatal(err)
			}
		}
	}
	return j
}

// The script is stopped at every operation, within every append, and within the restore
// after it. No thread keeps an affinity of ours, nor do those that it started while it
// had one.
func TestEveryCrashWithThreads(t *testing.T) {
	everyCrash(t, newThreadWorld())
	fertile := newThreadWorld()
	fertile.fertile, fertile.files[thread8] = true, threadsHad
	everyCrash(t, fertile)
}

func everyCrash(t *testing.T, first *world) {
	points, restores := 0, 0
	for stop := 1; ; stop++ {
		w := first.clone()
		w.stop = stop
		if !until(func() { runThreads(t, w) }) {
			break
		}
		points++
		restores += crashInRestore(t, w, first.files, fmt.Sprintf("threads, stopped at %d", stop))
	}
	whole, torn := first.clone(), 0
	runThreads(t, whole)
	for i, at := range whole.appends {
		for n := 1; n < whole.sizes[i]; n++ {
			w := first.clone()
			w.stop, w.torn = at+1, n
			if !until(func() { runThreads(t, w) }) {
				t.Fatalf("append %d did not tear", i)
			}
			check(t, w, first.files, fmt.Sprintf("append %d torn after %d bytes", i, n))
			torn++
		}
	}
	t.Logf("%d crash points, %d crashes within their restores, %d torn writes", points, restores, torn)
	if points < 60 || restores < points || torn < 1000 {
		t.Error("too few points to mean anything")
	}
}

// syncs counts what is fsynced.
type syncs struct {
	*world
	n int
}

func (s *syncs) Sync() error { s.n++; return s.world.Sync() }

// The original of a held thread is fsynced once. Later moves, and threads that are
// released at once, are not fsynced.
func TestThreadsAreSyncedOnce(t *testing.T) {
	w := newThreadWorld()
	s := &syncs{world: w}
	j, err := open(s, boot)
	if err != nil {
		t.Fatal(err)
	}
	a := j.Wrap(threadWorld{w})
	for i := range 20 {
		a.Apply(ctx, pin(7, true, i%8))
		a.Apply(ctx, pin(8, false, i%8))
	}
	if s.n != 1 {
		t.Errorf("%d fsyncs for one thread that is held", s.n)
	}
	if w.files[thread7] != "0-7" || w.files[thread8] != "3" {
		t.Errorf("%v", w.files)
	}
	if !j.OursOf(thread8, 800, "3") || j.OursOf(thread8, 801, "3") || j.OursOf(thread7, 700, "0-7") {
		t.Error("what is held is ours; what was put back, or is of another start, is not")
	}
	if err := j.Compact(); err != nil || len(w.log) > 4000 {
		t.Errorf("%d bytes after shortening, %v", len(w.log), err)
	}
	j = mustOpen(t, w)
	if got, err := j.Restore(ctx, w); err != nil || len(got) != 2 || w.files[thread8] != "0-3" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestThreadsDrift(t *testing.T) {
	w := newThreadWorld()
	j := mustOpen(t, w)
	a := j.Wrap(threadWorld{w})
	a.Apply(ctx, pin(7, false, 5))
	w.files[thread7] = "1-2" // its owner
	if o := a.Apply(ctx, pin(7, true, 6)); o.Status != action.Drifted || w.files[thread7] != "1-2" {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	a.Apply(ctx, pin(8, false, 2))
	w.ids["thread 8"], w.files[thread8] = 801, "2" // another thread of that number, which happens to be there
	got, err := j.Restore(ctx, w)
	if err != nil || w.files[thread7] != "1-2" || w.files[thread8] != "2" {
		t.Errorf("%v, %v: %v", got, err, w.files)
	}
	if text := fmt.Sprint(got); !strings.Contains(text, "left") || !strings.Contains(text, "vanished") {
		t.Errorf("%s", text)
	}
}

// A thread that inherited a value of ours gets back the earlier value, however late it
// is seen. A thread that was there before, or is known, is not touched.
func TestHeirs(t *testing.T) {
	w := newThreadWorld()
	j := mustOpen(t, w)
	a := j.Wrap(threadWorld{w})
	a.Apply(ctx, pin(7, false, 5))
	child := w.bear("5")
	a.Apply(ctx, pin(7, false, 6)) // its parent went on before it was seen
	own, old := w.bear("5"), Setting{"thread 9", "affinity"}
	w.ids[old.Cgroup], w.files[old] = 900, "6"
	j.Know(func(s Setting, id uint64) bool { return s == own && id == w.ids[own.Cgroup] })
	if got, err := j.GiveBack(w); err != nil || len(got) != 1 || w.files[child] != "0-7" || w.files[own] != "5" || w.files[old] != "6" || w.files[thread7] != "6" {
		t.Fatalf("%v, %v: %v", got, err, w.files)
	}
	if len(j.Outstanding()) != 1 {
		t.Errorf("%v", j.Outstanding())
	}
	late := w.bear("5")
	j = mustOpen(t, w) // killed
	w.files[own] = "1"
	if got, err := j.Restore(ctx, w); err != nil || len(got) != 2 || w.files[late] != "0-7" || w.files[thread7] != "0-7" || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v: %v", got, err, w.files)
	}
}

// A thread that was put back is kept for two looks: one that was being started may be
// seen late. Then it is forgotten, and a change by its owner is no drift.
func TestReleasedIsForgotten(t *testing.T) {
	w := newThreadWorld()
	j := mustOpen(t, w)
	a := j.Wrap(threadWorld{w})
	a.Apply(ctx, pin(7, true, 5))
	if _, err := j.GiveBack(w); err != nil || !j.Passing() {
		t.Fatal(err)
	}
	late := w.bear("5")
	for range 3 {
		if _, err := j.GiveBack(w); err != nil {
			t.Fatal(err)
		}
	}
	if w.files[late] != "0-7" || j.Passing() || len(j.Outstanding()) != 0 {
		t.Errorf("%v, %v", w.files, j.Outstanding())
	}
	for range 2 { // with and without a look in between
		a.Apply(ctx, pin(7, true, 5))
		w.files[thread7] = "0-3"
		if o := a.Apply(ctx, pin(7, true, 1)); o.Status != action.Done || w.files[thread7] != "0-3" {
			t.Errorf("%s: %s", o.Status, o.Detail)
		}
	}
	a.Apply(ctx, pin(8, false, 2))
	if a.Apply(ctx, pin(8, true, 2)); w.files[thread8] != "0-3" {
		t.Errorf("a thread that is held there already is not released: %v", w.files)
	}
	w.files[thread7] = "2"
	if got, err := j.Restore(ctx, w); err != nil || len(got) != 2 || got[1].Result != Already || w.files[thread7] != "2" {
		t.Errorf("%v, %v", got, err)
	}
}

// A thread's number alone does not identify it, and threads that ended do not stay on
// record.
func TestNumbersAreUsedAgain(t *testing.T) {
	w := newThreadWorld()
	j := mustOpen(t, w)
	a := j.Wrap(threadWorld{w})
	other := pin(7, false, 5)
	other.Start = 699
	if o := a.Apply(ctx, other); o.Status != action.Gone || w.files[thread7] != "0-7" || len(j.Outstanding()) != 0 {
		t.Errorf("%s: %s: %v", o.Status, o.Detail, w.files)
	}
	for i := 200; i < 1200; i++ {
		s := Setting{fmt.Sprintf("thread %d", i), "affinity"}
		w.ids[s.Cgroup], w.files[s] = uint64(i), "0-7"
		if o := a.Apply(ctx, pin(i, i%2 == 0, 5)); o.Status != action.Done {
			t.Fatal(o.Detail)
		}
		delete(w.ids, s.Cgroup)
		delete(w.files, s)
	}
	child := w.bear("5")
	if got, err := j.Forget(w); err != nil || len(got) != 1 || w.files[child] != "0-7" || j.Compact() != nil {
		t.Errorf("%v, %v", got, err)
	}
	if len(j.Outstanding()) != 0 || len(w.log) > 200 {
		t.Errorf("%d outstanding, %d bytes", len(j.Outstanding()), len(w.log))
	}
}

// When the second write of a release fails, the thread is ours until it is put back.
func TestReleaseFailsHalfway(t *testing.T) {
	w := newThreadWorld()
	j := mustOpen(t, w)
	a := j.Wrap(threadWorld{w})
	w.writeErr = func(_ Setting, value string) error {
		if value == "0-7" {
			return errors.New("not now")
		}
		return nil
	}
	if o := a.Apply(ctx, pin(7, true, 5)); o.Status != action.Failed || !j.OursOf(thread7, 700, "5") {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	w.writeErr = nil
	if o := a.Apply(ctx, pin(7, false)); o.Status != action.Done || w.files[thread7] != "0-7" {
		t.Errorf("%s: %s", o.Status, o.Detail)
	}
	w.writeErr = func(Setting, string) error { return fmt.Errorf("ended (%w)", kernel.ErrGone) }
	if o := a.Apply(ctx, pin(8, true, 5)); o.Status != action.Gone || len(j.Outstanding()) != 1 {
		t.Errorf("%s: %s: %v", o.Status, o.Detail, j.Outstanding())
	}
}

// A shortened journal still knows the values set before, and the present value.
func TestCompactKeepsWhatWasGiven(t *testing.T) {
	for _, release := range []bool{false, true} {
		w := newThreadWorld()
		j := mustOpen(t, w)
		a := j.Wrap(threadWorld{w})
		for _, cpu := range []int{5, 6, 1} {
			a.Apply(ctx, pin(7, release, cpu))
		}
		before := *j.ledger[thread7]
		if err := j.Compact(); err != nil {
			t.Fatal(err)
		}
		j = mustOpen(t, w)
		now := *j.ledger[thread7]
		if now.Since = before.Since; !reflect.DeepEqual(now, before) {
			t.Errorf("%#v, was %#v", now, before)
		}
		child := w.bear("6")
		if _, err := j.Restore(ctx, w); err != nil || w.files[child] != "0-7" {
			t.Errorf("%v, %v", w.files, err)
		}
	}
}
