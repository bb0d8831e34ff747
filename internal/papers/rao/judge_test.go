// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"fmt"
	"math"
	"testing"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
)

// made is a hand-made result: time per operation, penalty and IPC by mix, policy and seed.
// It has two workloads per mix, of four threads each, or of one in mixes of single threads.
type made struct {
	time              func(mix, policy string, seed uint64) float64
	penalty, ipc, mpi func(time float64) float64
	fairness          func(policy string) float64
}

var madeMixes = []string{"pair-1", "pair-2", "eight-1", "multi-1", "vmmulti-1", "insensitive-1", "short-jobs", "scale-8", "scale-16"}

func usual() made {
	return made{
		time: func(mix, policy string, seed uint64) float64 {
			noise := 0.01 * float64(int(seed%3)-1)
			family := FamilyOf(mix)
			switch {
			case family == Insensitive, family == Short:
				return 1
			case policy == runner.None:
				return 1.5 * (1 + 10*noise)
			case policy == runner.HandThreads:
				return 1
			}
			return 1.02 + noise/4
		},
		penalty:  func(time float64) float64 { return 10 + 90*time*time },
		mpi:      func(time float64) float64 { return 0.01 * (2 - 0.3*time) },
		ipc:      func(time float64) float64 { return 1 + 0.2*math.Abs(time-1.25) },
		fairness: func(string) float64 { return 0.98 },
	}
}

func (m made) result() arena.Result {
	r := arena.Result{Schema: arena.Schema, How: "modelled", Name: "rao", Against: runner.None, Seeds: []uint64{1, 2, 3, 4}}
	for _, p := range []string{runner.None, runner.BRM, runner.HandThreads} {
		r.Policies = append(r.Policies, arena.Named{Name: p})
	}
	for _, mix := range madeMixes {
		for _, p := range r.Policies {
			for _, seed := range r.Seeds {
				c := arena.Cell{Machine: catalog.DualE5620, Mix: mix, Policy: p.Name, Seed: seed}
				for i := range 2 {
					time := m.time(mix, p.Name, seed)
					a := arena.App{ID: fmt.Sprintf("/%d", i), Threads: 4, Ops: 1e5 / time, CPUPerOp: 4 * time / 1e5, IPC: m.ipc(time), MPI: m.mpi(time), Penalty: m.penalty(time), Fairness: m.fairness(p.Name)}
					if f := FamilyOf(mix); f == Multi || f == VMMulti {
						a.Threads, a.Fairness, a.CPUPerOp = 1, 1, a.CPUPerOp/4
					}
					c.Apps = append(c.Apps, a)
				}
				r.Cells = append(r.Cells, c)
			}
		}
	}
	return r
}

// letters returns the verdicts of the runs' rows, in the order of Judge.
func letters(r arena.Result) string {
	text := ""
	for _, row := range Judge(r)[9:] {
		text += map[arena.Verdict]string{arena.Confirmed: "y", arena.NotConfirmed: "n", arena.CannotTest: "?"}[row.Verdict]
	}
	return text
}

// Each statement is confirmed when its effect is there and not when it is missing, and no
// other verdict changes. Order: indexes of parallel and of single programs, faster, near
// hand, steady, price, scale, short jobs, fair; targets: hand, steady, faster, price.
func TestJudgeRuns(t *testing.T) {
	with := func(change func(*made)) made { m := usual(); change(&m); return m }
	slower := func(by float64, of func(mix, policy string) bool) func(*made) {
		return func(m *made) {
			before := m.time
			m.time = func(mix, policy string, seed uint64) float64 {
				if of(mix, policy) {
					return by * before(mix, policy, seed)
				}
				return before(mix, policy, seed)
			}
		}
	}
	brmOn := func(f Family) func(mix, policy string) bool {
		return func(mix, policy string) bool { return policy == runner.BRM && FamilyOf(mix) == f }
	}
	for _, c := range []struct {
		what, want string
		m          made
	}{
		{"the usual", "yyyyyyyyyyyyy", usual()},
		{"IPC tells as well", "nyyyyyyyyyyyy", with(func(m *made) { m.ipc = func(t float64) float64 { return 1 / (t * t) } })},
		{"misses tell as well", "ynyyyyyyyyyyy", with(func(m *made) { m.mpi = func(t float64) float64 { return 0.01 * t } })},
		{"BRM as slow as the default", "yynnyyyyynyny", with(slower(1.42, func(mix, p string) bool {
			return p == runner.BRM && FamilyOf(mix) != Insensitive && FamilyOf(mix) != Short
		}))},
		{"a high price", "yyyyynyyyyyyn", with(slower(1.05, brmOn(Insensitive)))},
		{"breaks at 16", "yyyyyynyyyyyy", with(slower(1.6, brmOn(Scale)))},
		{"short jobs gain", "yyyyyyynyyyyy", with(slower(0.7, brmOn(Short)))},
		{"unfair", "yyyyyyyynyyyy", with(func(m *made) {
			m.fairness = func(p string) float64 { return map[string]float64{runner.None: 0.98, runner.BRM: 0.9}[p] }
		})},
	} {
		if got := letters(c.m.result()); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
	}
}

// Without runs, or with runs that did nothing, there is no verdict, and no unknown figure
// is 0.
func TestJudgeNothing(t *testing.T) {
	targets := 0
	for _, row := range Judge(arena.Result{}) {
		if row.Target {
			targets++
		}
	}
	if targets != 4 {
		t.Errorf("%d targets, want hand, steady, faster, price", targets)
	}
	if got := letters(arena.Result{}); got != "?????????????" {
		t.Errorf("of nothing: %s", got)
	}
	r := usual().result()
	for i := range r.Cells {
		r.Cells[i].Apps[0].Ops = 0
	}
	for _, row := range Judge(r)[11:] { // except fairness, which uses CPU time
		if row.Verdict != arena.CannotTest && row.Statement != "Fairness is left as it is." {
			t.Errorf("%+v", row)
		}
	}
}

func TestFigures(t *testing.T) {
	f := newFigures(&arena.Result{Seeds: []uint64{1, 2}, Cells: []arena.Cell{
		{Mix: "pair-1", Policy: "a", Seed: 1, Apps: []arena.App{{ID: "/x", Ops: 100}, {ID: "/y", Ops: 10}}},
		{Mix: "pair-1", Policy: "a", Seed: 2, Apps: []arena.App{{ID: "/x", Ops: 200}, {ID: "/y", Ops: 10}}},
		{Mix: "pair-1", Policy: "b", Seed: 1, Apps: []arena.App{{ID: "/x", Ops: 50}, {ID: "/y", Ops: 10}}},
		{Mix: "pair-1", Policy: "b", Seed: 2, Apps: []arena.App{{ID: "/x", Ops: 100}, {ID: "/y", Ops: 10}}},
	}})
	if v, ok := f.slower("pair-1", "b", "a"); !ok || math.Abs(v-math.Sqrt2) > 1e-12 { // twice as slow for one of two
		t.Errorf("slower by %v, %v", v, ok)
	}
	if _, ok := f.slower("pair-1", "c", "a"); ok {
		t.Error("a policy without runs was compared")
	}
	// 10 and 5 ms: mean 7.5, deviation 3.54. The other workload does not vary.
	if v, ok := f.variation("pair-1", "a"); !ok || math.Abs(v-math.Sqrt(12.5)/7.5/2) > 1e-12 {
		t.Errorf("variation %v, %v", v, ok)
	}
}
