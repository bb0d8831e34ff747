// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"testing"

	"homenode/internal/action"
)

// Cgroups that end while they are bound leave no record behind, in memory or in the log,
// however many there were.
func TestGoneWhileBound(t *testing.T) {
	w := newWorld()
	w.files[subtreeRoot], w.files[subtreeDemo] = "+", "+"
	j := mustOpen(t, w)
	nobody := func(string) bool { return false }
	for i := range 3000 {
		id := fmt.Sprintf("/demo/job-with-a-name-that-is-a-bit-longer-%d", i)
		s := Setting{id, "cpuset.cpus"}
		w.ids[id], w.files[s] = uint64(100+i), "0-7"
		if o := j.Wrap(w).Apply(ctx, cpus(id, 1)); o.Status != action.Done {
			t.Fatalf("%+v", o)
		}
		delete(w.ids, id)
		delete(w.files, s)
		if i%100 == 0 {
			if err := j.EndGone(w, nobody); err != nil {
				t.Fatal(err)
			}
			if len(j.ledger) > 0 {
				t.Fatalf("%d: on record are %v", i, j.Outstanding())
			}
		}
	}
	if len(w.log) > mostLog+mostGrowth*1000 {
		t.Errorf("the log has %d bytes", len(w.log))
	}
	if again := mustOpen(t, w); len(again.ledger) >= 100 {
		t.Errorf("%d are still on record", len(again.ledger))
	}
}

// A setting that still exists, is seen, or cannot be read keeps its record. One that
// was made again under its name does not.
func TestOnlyWhatIsGoneEnds(t *testing.T) {
	for what, c := range map[string]struct {
		change func(*world)
		seen   bool
		ends   bool
	}{
		"there":    {func(*world) {}, false, false},
		"empty":    {func(w *world) { w.populated = false }, false, false},
		"seen":     {func(w *world) { delete(w.ids, "/demo/a") }, true, false},
		"gone":     {func(w *world) { delete(w.ids, "/demo/a") }, false, true},
		"anew":     {func(w *world) { w.ids["/demo/a"] = 99 }, false, true},
		"disabled": {func(w *world) { delete(w.files, cpusA) }, false, false},
	} {
		w := newWorld()
		w.set(subtreeRoot, "+")
		w.set(subtreeDemo, "+")
		j := mustOpen(t, w)
		j.Wrap(w).Apply(ctx, cpus("/demo/a", 1))
		c.change(w)
		err := j.EndGone(w, func(string) bool { return c.seen })
		if ended := j.ledger[cpusA] == nil; err != nil || ended != c.ends {
			t.Errorf("%s: ended %v, %v", what, ended, err)
		}
	}
}
