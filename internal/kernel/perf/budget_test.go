// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// countedIn plays windows. It returns when each cgroup had events for two in a row, the
// most windows it had to wait for that, and how often each was counted.
func countedIn(t *testing.T, all []Candidate, b Budget, windows int) (wait map[string]int, times map[string]int) {
	t.Helper()
	var turns Turns
	last, before := map[string]int{}, map[string]bool{}
	wait, times = map[string]int{}, map[string]int{}
	for w := range windows {
		here := map[string]bool{}
		files := 0
		for _, id := range turns.Choose(all, b) {
			for _, c := range all {
				if c.ID == id {
					files += c.Files
				}
			}
			if here[id] {
				t.Fatalf("%s twice", id)
			}
			if here[id] = true; before[id] {
				wait[id] = max(wait[id], w-last[id])
				last[id] = w
				times[id]++
			}
		}
		if files > b.Files || b.Cgroups > 0 && len(here) > b.Cgroups {
			t.Fatalf("window %d: %d files, %d cgroups of %+v", w, files, len(here), b)
		}
		before = here
	}
	for _, c := range all {
		wait[c.ID] = max(wait[c.ID], windows-last[c.ID])
	}
	return wait, times
}

func alike(n, ours, files int) (all []Candidate) {
	for i := range n {
		all = append(all, Candidate{ID: fmt.Sprintf("/w%03d", i), Files: files, Ours: i < ours})
	}
	return all
}

func TestAllFit(t *testing.T) {
	_, times := countedIn(t, alike(10, 3, 6), Budget{Files: 60}, 20)
	for id, n := range times {
		if n != 19 {
			t.Errorf("%s was counted in %d windows of 19", id, n)
		}
	}
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		n, fit int
		b      Budget
	}{{10, 3, Budget{Files: 20}}, {200, 16, Budget{Files: 100}}, {7, 1, Budget{Files: 6}}, {9, 2, Budget{Files: 600, Cgroups: 2}}} {
		within := minStay*((c.n+c.fit-1)/c.fit) + 1
		wait, _ := countedIn(t, alike(c.n, 0, 6), c.b, 10*within)
		if len(wait) != c.n {
			t.Errorf("%+v: only %d are ever counted", c, len(wait))
		}
		for id, w := range wait {
			if w > within {
				t.Errorf("%+v: %s waits for %d windows, want %d", c, id, w, within)
			}
		}
	}
}

// Ours are counted all the time where they fit into their share, and the others in turns.
func TestOursFirst(t *testing.T) {
	_, times := countedIn(t, alike(20, 3, 6), Budget{Files: 30}, 101)
	for _, id := range []string{"/w000", "/w001", "/w002"} {
		if times[id] != 100 {
			t.Errorf("%s is ours and was counted in %d windows of 100", id, times[id])
		}
	}
	if len(times) != 20 {
		t.Errorf("%d of 20 were counted", len(times))
	}
	_, times = countedIn(t, alike(2, 1, 6), Budget{Files: 100, Cgroups: 1}, 41)
	if times["/w000"] < 8 || times["/w001"] < 8 {
		t.Errorf("one place for two: %v", times)
	}
}

// Whatever the sizes and the budget: no cgroup that fits the common part waits for ever.
func TestTurnsOfAnySize(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 8))
		var all []Candidate
		sum := 0
		for i := range 1 + r.IntN(30) {
			c := Candidate{ID: fmt.Sprintf("/w%03d", i), Files: 1 + r.IntN(40), Ours: r.IntN(3) == 0}
			sum += c.Files
			all = append(all, c)
		}
		b := Budget{Files: 160 + r.IntN(200), Cgroups: r.IntN(2) * (4 + r.IntN(10))}
		within := 4 * minStay * (len(all) + 1)
		wait, times := countedIn(t, all, b, 3*within)
		for _, c := range all {
			if times[c.ID] == 0 || wait[c.ID] > within {
				t.Fatalf("seed %d: %+v of %d was counted %d times and waits for %d windows of %+v", seed, c, sum, times[c.ID], wait[c.ID], b)
			}
		}
	}
}

func TestForgotten(t *testing.T) {
	var turns Turns
	turns.Choose(alike(2, 0, 6), Budget{Files: 6})
	turns.Forget("/w000")
	turns.Forget("/w001")
	if len(turns.since)+len(turns.until) != 0 {
		t.Errorf("%+v", turns)
	}
	if got := turns.Choose([]Candidate{{ID: "/x"}}, Budget{Files: 6}); len(got) != 0 {
		t.Errorf("what takes no files: %v", got)
	}
}

func TestDefaultBudget(t *testing.T) {
	if b := DefaultBudget(20000); b.Files < 10000 || b.Files > 15000 {
		t.Errorf("%+v", b)
	}
	if b := DefaultBudget(100); b.Files != 0 {
		t.Errorf("%+v", b)
	}
}
