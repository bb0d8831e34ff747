// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/migration"
	"homenode/internal/render"
)

// Policies of the table.
const (
	interleaved = "interleaved"
	oneNode     = "imbalanced" // all memory on node 0
)

// programOf is what is held out at a time: a library of searches, a benchmark of a
// database, all of fio.
func programOf(r Row) string {
	family, workload := r["family"], r["workload"]
	switch family {
	case "ann":
		return family + " " + strings.Split(workload, "/")[0]
	case "rocksdb":
		return family + " " + workload
	}
	return family
}

// byNode is the traffic of each node, reads and writes.
func (r Row) byNode() ([]float64, bool) { return r.numbers("mem_s0", "mem_s1", "mem_s2", "mem_s3") }

// capacities are what the machine was seen to do by the other programs: the profile.
type capacities struct{ node, between, ipc float64 }

func (d Data) capacities(without string) (c capacities) {
	for _, r := range d.Placements {
		if programOf(r) == without {
			continue
		}
		if nodes, ok := r.byNode(); ok {
			c.node = max(c.node, slices.Max(nodes))
		}
		reads, _ := r.number("mem_read")
		ipc, _ := r.number("ipc")
		c.between, c.ipc = max(c.between, reads), max(c.ipc, ipc)
	}
	return c
}

// predicted is by what factor a workload is faster in another placement, from the counters
// of one; false where they were not measured.
func (c capacities) predicted(f migration.Full, from Row, to string) (factor float64, ok bool) {
	nodes, ok1 := from.byNode()
	v, ok2 := from.numbers("mem_read", "ipc")
	if !ok1 || !ok2 || c.node <= 0 || c.between <= 0 || c.ipc <= 0 {
		return 0, false
	}
	sum, part := 0.0, 1.0
	for _, b := range nodes {
		sum += b
	}
	if to == interleaved {
		part = 1 / float64(len(nodes))
	}
	before := migration.Pressure{Node: slices.Max(nodes) / c.node, Between: v[0] / c.between}
	after := migration.Pressure{Node: part * sum / c.node, Between: before.Between}
	longer, _, _ := f.Longer(before, after, v[1]/c.ipc)
	return 1 / longer, true
}

// pairs are placements of one workload, from one to another.
type pair struct {
	program             string // that is held out
	workload, from, to  string
	predicted, measured float64
	off                 float64 // standard error of measured, as a share of it
}

func (d Data) pairs(f migration.Full) (all []pair) {
	for _, from := range d.Placements {
		c := d.capacities(programOf(from))
		for _, to := range d.Placements {
			if from["family"] != to["family"] || from["workload"] != to["workload"] || from["policy"] == to["policy"] || to["policy"] != interleaved && to["policy"] != oneNode {
				continue
			}
			a, ok1 := from.number("perf")
			b, ok2 := to.number("perf")
			if p, ok := c.predicted(f, from, to["policy"]); ok && ok1 && ok2 && a > 0 && b > 0 {
				all = append(all, pair{programOf(from), from["family"] + " " + from["workload"], from["policy"], to["policy"], p, b / a, math.Hypot(from.spread(), to.spread())})
			}
		}
	}
	return all
}

// spread is the standard error of a row's performance, as a share of it.
func (r Row) spread() float64 {
	v, ok := r.numbers("perf", "perf_std", "runs")
	if !ok || v[0] <= 0 || v[2] < 1 {
		return 0
	}
	return v[1] / v[0] / math.Sqrt(v[2])
}

// tally sums up some pairs.
type tally struct {
	n, large, sign, near, noisy int
	off                         float64
}

func (t *tally) add(p pair) {
	t.n++
	t.off += math.Abs(p.predicted/p.measured - 1)
	if math.Abs(p.measured-1) > noise {
		t.large++
		if (p.predicted > 1) == (p.measured > 1) {
			t.sign++
		}
		// the time that is saved or lost: Pays' figure
		if alike(p.predicted, p.measured) {
			t.near++
		}
		if !alike(p.measured*(1+p.off), p.measured/(1+p.off)) {
			t.noisy++
		}
	}
}

// alike says that two factors save or lose times within a factor of 1.5.
func alike(a, b float64) bool {
	x, y := 1-1/a, 1-1/b
	return x*y > 0 && x/y <= 1.5 && y/x <= 1.5
}

// heldOut are the pairs of each program by constants that are nearest on the others.
func (d Data) heldOut() (t tally) {
	var fits [][]pair
	for _, bend := range []float64{2, 2.5, 3, 3.5, 4, 5, 6, 8} {
		for _, hidden := range []float64{0.3, 0.5, 0.6, 0.7, 0.8} {
			fits = append(fits, d.pairs(migration.Full{Bend: bend, Hidden: hidden}))
		}
	}
	for k := range fits[0] {
		var best tally
		at := -1
		for i, fit := range fits {
			var others tally
			for _, p := range fit {
				if p.program != fits[0][k].program {
					others.add(p)
				}
			}
			if at < 0 || others.near > best.near || others.near == best.near && others.off < best.off {
				best, at = others, i
			}
		}
		t.add(fits[at][k])
	}
	return t
}

// Placements compares predicted and measured factors of placements.
func Placements(d Data) Section {
	s := Section{
		Title: "Placements: performance in another placement, as a factor",
		About: "Input: traffic by node, reads and instructions a cycle in one placement, and as the profile what the fullest node, all reads together and instructions a cycle were at most with other programs. Stall cycles were not measured: instructions a cycle stand in for the time without waiting. Each program is predicted without its own rows.",
		Heads: []string{"workload", "from", "to", "predicted", "measured", "error"},
	}
	all := map[string]*tally{"": {}}
	for _, p := range d.pairs(migration.DefaultFull()) {
		kind := p.from + " to " + p.to
		if all[kind] == nil {
			all[kind] = &tally{}
		}
		all[kind].add(p)
		all[""].add(p)
		s.Rows = append(s.Rows, []string{p.workload, p.from, p.to, render.Fixed(p.predicted, 2), render.Fixed(p.measured, 2), percent(p.predicted/p.measured - 1)})
	}
	kinds := make([]string, 0, len(all))
	for kind := range all {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		t, name := all[kind], kind
		if name == "" {
			name = "all"
		}
		s.Summary = append(s.Summary, fmt.Sprintf("%s: mean error of the factor %s of %d; sign right for %d of %d that change by more than %s; the time saved or lost within a factor of 1.5 for %d of these.",
			name, render.Percent(t.off/float64(max(1, t.n))), t.n, t.sign, t.large, render.Percent(noise), t.near))
	}
	t, held := all[""], d.heldOut()
	s.Summary = append(s.Summary,
		fmt.Sprintf("With the two constants of the law chosen on the other programs, too: mean error %s, sign right for %d of %d, within a factor of 1.5 for %d.", render.Percent(held.off/float64(max(1, held.n))), held.sign, held.large, held.near),
		fmt.Sprintf("Of the measured times saved or lost, %d of %d are not known within a factor of 1.5 (one standard error of the runs to either side), so a perfect model would miss some of them, too.", t.noisy, t.large))
	s.Figures = map[string]float64{"n": float64(t.n), "error": t.off / float64(max(1, t.n)), "sign": float64(t.sign) / float64(max(1, t.large)), "near": float64(t.near) / float64(max(1, t.large))}
	return s
}
