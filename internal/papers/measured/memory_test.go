// SPDX-License-Identifier: Apache-2.0

package measured

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/profile"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/memsys"
)

// The limits of issue 22.
const (
	withProfile = 0.15
	without     = 0.35
)

// row is a measured figure beside the model's.
type row struct {
	what            string
	measured, model float64 // GB/s
	limit           float64
	fitted          string // what it set; "": it is judged
}

func (r row) off() float64 { return r.model/r.measured - 1 }

func (r row) String() string {
	judged := "judged"
	if r.fitted != "" {
		judged = "fitted: " + r.fitted
	}
	return fmt.Sprintf("%-64s %8.1f %8.1f  %+6.1f %%  of %2.0f  %s", r.what, r.measured, r.model, 100*r.off(), 100*r.limit, judged)
}

// facts is the directory of measured.md. It lies beside the checkout, as recorded machines
// do.
func facts(t *testing.T) string {
	t.Helper()
	return filepath.Join(machinetest.Dir(t), "..", "facts")
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true" {
		t.Skipf("%v: the measured facts are not beside this checkout", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// opteron are the best bandwidths of section C, GB/s, by nodes and threads a node: the
// better of both programs, as other users pull both down.
func opteron(t *testing.T) map[string]float64 {
	t.Helper()
	best := map[string]float64{}
	line := regexp.MustCompile(`(?m)^\| (\d+x\d+)[^|]*\| ([^|]*) \| ([^|]*) \|$`)
	for _, m := range line.FindAllStringSubmatch(read(t, filepath.Join(facts(t), "measured.md")), -1) {
		for _, cell := range m[2:] {
			figures := strings.Split(cell, "/")
			v, err := strconv.ParseFloat(strings.TrimSpace(figures[len(figures)-1]), 64)
			if err != nil {
				t.Fatalf("measured.md: %s: %v", m[0], err)
			}
			best[m[1]] = math.Max(best[m[1]], v)
		}
	}
	if len(best) < 7 {
		t.Fatalf("measured.md: %d rows of the Opteron, want 7", len(best))
	}
	return best
}

// reads is the bandwidth, GB/s, of a parallel sum over local memory: so many threads on each
// of the first nodes. The additions are done while lines are on their way.
func reads(sys *memsys.System, nodes, threads int) float64 {
	sum := &memsys.Work{Cycles: 1, Instructions: 1, Regions: []memsys.Region{{Bytes: 1 << 30, Accesses: 1, Parallelism: 1024, Stream: true}}}
	var loads []memsys.Load
	for d := range nodes {
		n := float64(threads)
		loads = append(loads, memsys.Load{Domain: d, CPUs: n, Threads: n, Ops: math.Inf(1), Work: sum})
	}
	total := 0.0
	for _, n := range new(memsys.Solver).Solve(sys, loads).Nodes {
		total += n.Lines * memsys.LineBytes * sys.Hz / 1e9
	}
	return total
}

// opteronRows: without a profile, the recorded machine of that kind; with one, its peak and
// what one CPU reads are two of the measured figures, and the rest is judged. No idle
// latency was published: 80 ns, as estimated.
func opteronRows(t *testing.T) (rows []row) {
	best := opteron(t)
	archive := filepath.Join(machinetest.Dir(t), "64amd64-4p2n4ca2co-opteron6272.tar.bz2")
	m, err := machine.ParseSysfs(machinetest.Unpack(t, archive), "recorded:opteron6272")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := memsys.FromMachine(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := profile.Profile{Origin: m.Origin, Machine: profile.FingerprintOf(m, "")}
	figure := func(v float64) profile.Figure { return profile.FigureOf([]float64{v}) }
	for _, n := range m.Nodes {
		p.Latency = append(p.Latency, profile.PairFigure{From: n.ID, To: n.ID, Figure: figure(80)})
		p.Peak = append(p.Peak, profile.NodeFigure{Node: n.ID, Figure: figure(best["1x8"] * 1e9)})
	}
	p.Policies = []profile.PolicyRow{{Policy: "local", Work: "read", Figure: figure(best["8x1"] / 8 * 1e9)}}
	measured, err := memsys.FromMachine(m, &p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		nodes, threads int
		fitted, core   string // with a profile, without
	}{{1, 8, "peak", ""}, {2, 8, "", ""}, {4, 8, "", ""}, {8, 1, "one CPU", "lines of a core"}, {8, 2, "", ""}, {8, 4, "", ""}, {8, 8, "", ""}} {
		name := fmt.Sprintf("%dx%d", c.nodes, c.threads)
		rows = append(rows,
			row{"Opteron 6272, " + name + ", with a profile", best[name], reads(&measured, c.nodes, c.threads), withProfile, c.fitted},
			row{"Opteron 6272, " + name + ", without", best[name], reads(&plain, c.nodes, c.threads), without, c.core})
	}
	return rows
}

// goldRows: all CPUs of four Gold 6130 read node 0's memory (membind): the most that any row
// of placement-gold6130.csv moves there. "GB" is 1024 x 10^6 bytes in it.
func goldRows(t *testing.T) (rows []row) {
	most, links := 0.0, 0.0
	lines := strings.Split(strings.TrimSpace(read(t, filepath.Join(facts(t), "measured", "placement-gold6130.csv"))), "\n")
	at := map[string]int{}
	for i, name := range strings.Split(lines[0], ",") {
		at[name] = i
	}
	for _, line := range lines[1:] {
		cells := strings.Split(line, ",")
		moved, err := strconv.ParseFloat(cells[at["mem_s0"]], 64)
		local, err2 := strconv.ParseFloat(cells[at["local_pct"]], 64)
		if cells[at["policy"]] != "imbalanced" || err != nil || err2 != nil {
			continue
		}
		most = math.Max(most, moved*1.024)
		links = math.Max(links, moved*1.024*(1-local/100)/3)
	}
	if most == 0 {
		t.Fatal("placement-gold6130.csv: no row of membind")
	}
	b, _ := catalog.MachineNamed(catalog.QuadGold)
	m, known := b.Make()
	plain, err := memsys.FromMachine(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, fitted string
		sys          *memsys.System
		limit        float64
	}{{", links known", "links", &known, without}, {", without a profile", "", &plain, without}} {
		node, link := membind(c.sys)
		rows = append(rows,
			row{"4 x Gold 6130, all CPUs read node 0" + c.name, most, node, c.limit, ""},
			row{"4 x Gold 6130, a link to node 0" + c.name, links, link, c.limit, c.fitted})
	}
	return rows
}

// membind is what node 0 serves to all, and what one link to it carries, GB/s.
func membind(sys *memsys.System) (node, link float64) {
	search := &memsys.Work{Cycles: 20, Instructions: 40, Regions: []memsys.Region{{Bytes: 1 << 34, Shared: true, Accesses: 1, Parallelism: 4}}}
	home := make([]float64, len(sys.Nodes))
	home[0] = 1
	var loads []memsys.Load
	for d := range sys.Domains {
		cpus := sys.Domains[d].CPUs
		loads = append(loads, memsys.Load{Domain: d, CPUs: cpus, Threads: cpus, Ops: math.Inf(1), Work: search, Home: home})
	}
	got := new(memsys.Solver).Solve(sys, loads)
	gb := memsys.LineBytes * sys.Hz / 1e9
	for _, l := range got.Links {
		link = math.Max(link, l.Lines*gb)
	}
	return got.Nodes[0].Lines * gb, link
}

// e5Rows: what programs move that saturate a socket of 16 cores (SP and MG, section A).
func e5Rows(*testing.T) []row {
	const least, most = 44.0, 49.0
	b, _ := catalog.MachineNamed(catalog.DualE5v4)
	m, _ := b.Make()
	plain, err := memsys.FromMachine(m, nil)
	if err != nil {
		panic(err) // a built-in machine
	}
	return []row{{"E5-2683 v4, 16 threads saturate a socket, without a profile", (least + most) / 2, reads(&plain, 1, 16), without, ""}}
}

// The memory system of the simulator: saturation of a node, links under load, loaded
// latency. A row is judged if nothing in the model was set by it, and fitted otherwise:
// both are shown.
func TestMeasuredMemory(t *testing.T) {
	rows := append(opteronRows(t), goldRows(t)...)
	rows = append(rows, e5Rows(t)...)
	t.Logf("%-64s %8s %8s  %8s", "GB/s", "measured", "model", "error")
	judged := 0
	for _, r := range rows {
		t.Log(r)
		if r.fitted != "" {
			continue
		}
		if judged++; math.Abs(r.off()) > r.limit {
			t.Errorf("%s: %.1f GB/s, measured were %.1f: %+.0f %%", r.what, r.model, r.measured, 100*r.off())
		}
	}
	if judged < 12 {
		t.Errorf("only %d rows were judged", judged)
	}
}
