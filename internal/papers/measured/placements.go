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
func (c capacities) predicted(from Row, to string) (factor float64, ok bool) {
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
	longer, _, _ := migration.Longer(before, after, v[1]/c.ipc)
	return 1 / longer, true
}

// pairs are placements of one workload, from one to another.
type pair struct {
	workload, from, to  string
	predicted, measured float64
}

func (d Data) pairs() (all []pair) {
	for _, from := range d.Placements {
		c := d.capacities(programOf(from))
		for _, to := range d.Placements {
			if from["family"] != to["family"] || from["workload"] != to["workload"] || from["policy"] == to["policy"] || to["policy"] != interleaved && to["policy"] != oneNode {
				continue
			}
			a, ok1 := from.number("perf")
			b, ok2 := to.number("perf")
			if p, ok := c.predicted(from, to["policy"]); ok && ok1 && ok2 && a > 0 && b > 0 {
				all = append(all, pair{from["family"] + " " + from["workload"], from["policy"], to["policy"], p, b / a})
			}
		}
	}
	return all
}

// tally sums up some pairs.
type tally struct {
	n, large, sign, near int
	off                  float64
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
		if is, was := 1-1/p.predicted, 1-1/p.measured; is*was > 0 && is/was <= 1.5 && was/is <= 1.5 {
			t.near++
		}
	}
}

// Placements compares predicted and measured factors of placements.
func Placements(d Data) Section {
	s := Section{
		Title: "Placements: performance in another placement, as a factor",
		About: "Input: traffic by node, reads and instructions a cycle in one placement, and as the profile what the fullest node, all reads together and instructions a cycle were at most with other programs. Stall cycles were not measured: instructions a cycle stand in for the time without waiting. Each program is predicted without its own rows.",
		Heads: []string{"workload", "from", "to", "predicted", "measured", "error"},
	}
	all := map[string]*tally{"": {}}
	for _, p := range d.pairs() {
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
	t := all[""]
	s.Figures = map[string]float64{"n": float64(t.n), "error": t.off / float64(max(1, t.n)), "sign": float64(t.sign) / float64(max(1, t.large)), "near": float64(t.near) / float64(max(1, t.large))}
	return s
}
