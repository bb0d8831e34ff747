// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"maps"
	"testing"
)

// othersCPUs is none of the script's values, and not the original.
const othersCPUs = "5-6"

// Another process sets a bound cgroup's CPUs at any operation of the script, and homenode
// is killed at any later one; or it sets them within the restore that follows. Nothing of
// homenode's is left, and what the other process set last before the restore stays.
func TestEveryCrashBesideAnotherWriter(t *testing.T) {
	first := worlds()["had settings"]
	points, kept, within := 0, 0, 0
	for stop := 2; ; stop++ {
		w := first.clone()
		if w.stop = stop; !until(func() { runBesideOther(t, w) }) {
			break
		}
		for at := 1; at < stop; at++ {
			w := first.clone()
			w.stop, w.otherAt = stop, at
			until(func() { runBesideOther(t, w) })
			points++
			if checkBesideOther(t, w, first.files, fmt.Sprintf("killed at %d, set at %d", stop, at)) {
				kept++
			}
		}
		within += setInRestore(t, w, first.files, fmt.Sprintf("killed at %d", stop))
	}
	t.Logf("%d crash points × times of the other's write, its value was kept in %d; %d writes within restores", points, kept, within)
	if points < 2000 || kept < points/4 || within < 500 {
		t.Error("too few to mean anything")
	}
}

// runBesideOther takes the script; a step that finds the other's value may do nothing.
func runBesideOther(t *testing.T, w *world) {
	t.Helper()
	a := mustOpen(t, w).Wrap(w)
	for _, step := range script {
		a.Apply(ctx, step)
	}
}

// setInRestore has the other process write at each operation of a restore.
func setInRestore(t *testing.T, crashed *world, want map[Setting]string, what string) (points int) {
	t.Helper()
	whole := crashed.clone()
	if _, err := mustOpen(t, whole).Restore(ctx, whole); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= whole.ticks; at++ {
		w := crashed.clone()
		w.otherAt = at
		checkBesideOther(t, w, want, fmt.Sprintf("%s, set at %d of the restore", what, at))
		points++
	}
	return points
}

// checkBesideOther restores, and reports whether the other's value was there before. Then it
// has to be there afterwards. Otherwise homenode has written after the other process: what
// it read just before is back, which is the original where the other process wrote between
// that reading and the write.
func checkBesideOther(t *testing.T, w *world, want map[Setting]string, what string) (others bool) {
	t.Helper()
	others = w.files[cpusA] == othersCPUs
	w.stop = 0
	j := mustOpen(t, w)
	if _, err := j.Restore(ctx, w); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	now := maps.Clone(w.files)
	if others && now[cpusA] != othersCPUs {
		t.Fatalf("%s: the restore made %q of the other's value\njournal:\n%s", what, now[cpusA], w.log)
	}
	if now[cpusA] == othersCPUs {
		now[cpusA] = want[cpusA]
	}
	if !maps.Equal(now, want) || len(j.Outstanding()) > 0 || j.Damage() != nil {
		t.Fatalf("%s: the tree is %v, want %v; outstanding %v\njournal:\n%s", what, w.files, want, j.Outstanding(), w.log)
	}
	if again, err := j.Restore(ctx, w); err != nil || len(again) > 0 {
		t.Fatalf("%s: restoring twice did %v, %v", what, again, err)
	}
	return others
}
