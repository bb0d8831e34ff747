// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/golden"
	"homenode/internal/machine/machinetest"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func loadShape(t *testing.T, name string) Shape {
	t.Helper()
	file := filepath.Join(machinetest.Root(t), "lab/shapes", name+".yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseShape(data, file)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != name || s.About == "" {
		t.Fatalf("%s: name %q, about %q", file, s.Name, s.About)
	}
	return s
}

// shapeNames are all shapes of the lab, so that a new file is tested automatically.
func shapeNames(t *testing.T) []string {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(machinetest.Root(t), "lab/shapes/*.yaml"))
	if len(files) < 4 {
		t.Fatalf("only %d shapes in lab/shapes", len(files))
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files
}

func TestModelConfGolden(t *testing.T) {
	for _, name := range shapeNames(t) {
		got := loadShape(t, name).ModelConf()
		golden.Check(t, filepath.Join("testdata", name+".conf.golden"), got)
	}
}

// A shape's machine, printed as a tree and read back, is itself.
func TestShapeMachinesReadBack(t *testing.T) {
	for _, name := range shapeNames(t) {
		want := loadShape(t, name).Machine()
		if want.Origin != "shape:"+name {
			t.Errorf("origin %q", want.Origin)
		}
		checkInvariants(t, want)
		got, err := ParseSysfs(treeOf(want), want.Origin)
		got.PageSize = want.PageSize // in no file of sysfs
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
		}
	}
}

func TestShapeFour(t *testing.T) {
	s := loadShape(t, "four")
	m := s.Machine()
	if s.Housekeeping.String() != "8" || m.Nodes[0].CPUs.String() != "0-1,8" || m.Nodes[0].Memory != unit.Some(unit.GiB) {
		t.Errorf("node 0: %+v, housekeeping %v", m.Nodes[0], s.Housekeeping)
	}
	if !reflect.DeepEqual(s.LinkPairs(), [][2]int{{0, 1}, {0, 2}, {1, 3}, {2, 3}}) || !reflect.DeepEqual(s.Model, DefaultModel()) {
		t.Errorf("links %v, model %+v", s.LinkPairs(), s.Model)
	}
	// A CPU of 3 reads memory of 0: by node 1, the lowest id: links 0→1, 1→3.
	if r := s.Routes(); !reflect.DeepEqual(r[3][0], []int{0, 4}) || !reflect.DeepEqual(r[0][3], []int{5, 1}) || len(r[2][2]) != 0 {
		t.Errorf("routes %v", r)
	}
}

func TestShapeFar(t *testing.T) {
	m := loadShape(t, "far").Machine()
	if m.NodesWithCPUs().String() != "0-1" || m.NodesWithMemory().String() != "0-2" || len(m.LLCs) != 2 {
		t.Errorf("got %+v", m)
	}
	if r := loadShape(t, "far").Routes(); !reflect.DeepEqual(r[1][2], []int{3, 0}) {
		t.Errorf("from node 2 to a CPU of node 1: %v", r[1][2])
	}
}

// The opteron shape has the recorded machine's SLIT, and its 18 links.
func TestShapeOpteronIsTheRecordedOne(t *testing.T) {
	s := loadShape(t, "opteron")
	real, err := ParseSysfs(unpack(t, "64amd64-4p2n4ca2co-opteron6272.tar.bz2"), "recorded:opteron")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Machine().Distances, real.Distances) {
		t.Errorf("distances differ:\n%v\n%v", s.Distances, real.Distances)
	}
	if len(s.LinkPairs()) != 18 {
		t.Errorf("%d links, want 18", len(s.LinkPairs()))
	}
}

const plainShape = `name: plain
about: for this test
nodes:
  - {cpus: 0-1, memory: 128MiB}
  - {cpus: 2-3, memory: 128MiB}
distances:
  - [10, 21]
  - [21, 10]
`

func TestShapeDefaults(t *testing.T) {
	s, err := ParseShape([]byte(plainShape), "plain.yaml")
	if err != nil || !reflect.DeepEqual(s.Model, DefaultModel()) || s.Links != nil || !s.Housekeeping.IsEmpty() {
		t.Fatalf("got %+v, %v", s, err)
	}
	s, err = ParseShape([]byte(plainShape+"model: {mhz: 100, dram_cycles: {10: 1, 21: 2}}\nlinks: [[1, 0]]\n"), "plain.yaml")
	want := DefaultModel()
	want.MHz, want.DRAMCycles = 100, map[int]int{10: 1, 21: 2}
	if err != nil || !reflect.DeepEqual(s.Model, want) || s.Routes()[0][1][0] != 0 {
		t.Fatalf("got %+v, %v", s, err)
	}
}

// Each edit of the plain shape breaks one rule; the error says which and where.
func TestShapeRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"about:", "abuot:", `parse bad.yaml: line 2: malformed: unknown field "abuot": did you mean about?` + "\n    2 | abuot: for this test\n      | ^"},
		{"about: for", "name: again\nabout: for", `line 2: malformed: "name" is already defined in line 1`},
		{"{cpus: 0-1,", "{cpus: 0-1, cpu: 1,", `line 4: malformed: nodes[0]: unknown field "cpu": did you mean cpus?`},
		{"name: plain", "name: The Plain", `line 1: malformed: name: "The Plain" is not a name`},
		{"cpus: 0-1", "cpus: 0-x", `line 4: malformed: nodes[0].cpus: parse cpu list "0-x"`},
		{"cpus: 0-1", "cpus: [0, 1]", "line 4: malformed: nodes[0].cpus: it is a list: want one value"},
		{"cpus: 0-1", `cpus: ""`, "line 4: malformed: nodes[0].cpus: node 0 has no CPU"},
		{"cpus: 2-3", "cpus: 1-2", "line 5: malformed: nodes[1].cpus: CPUs 1 are already in a node before"},
		{"cpus: 2-3", "cpus: 3-4", "nodes: CPU 2 is in no node: number the CPUs without gaps from 0"},
		{"cpus: 2-3", "cpus: 2-64", "there are 65 CPUs: use at most 64"},
		{"2-3, memory: 128MiB", "2-3, memory: 126MiB", "line 5: malformed: nodes[1].memory: 126 MiB is too little"},
		{"2-3, memory: 128MiB", "2-3, memory: 129MiB", "whole huge pages: use a multiple of 2 MiB"},
		{"2-3, memory: 128MiB", "2-3, memory: 128M", `unknown unit "M"`},
		{"2-3, memory: 128MiB", "2-3, memory: 8191PiB", "does not add up"},
		{"2-3, memory: 128MiB", "2-3", "line 5: malformed: nodes[1].memory: 0 B is too little"},
		{"  - [21, 10]\n", "", "distances: 1 rows for 2 nodes"},
		{"[21, 10]", "[21]", "line 8: malformed: distances[1]: 1 columns for 2 nodes"},
		{"[10, 21]", "[11, 21]", "line 7: malformed: distances[0][0]: 11 is no distance of a node to itself: write 10"},
		{"[10, 21]", "[10, 10]", "distances[0][1]: 10 is no distance between nodes: use 11 to 254"},
		{"[10, 21]", "[10, 255]", "255 is no distance"},
		{"[10, 21]", "[10, 22]", "model.dram_cycles: no latency for distance 22: add one"},
		{"[10, 21]", "[10, x]", "line 7: malformed: "},
		{"$", "housekeeping: 4", "line 9: malformed: housekeeping: CPUs 4 are in no node"},
		{"$", "housekeeping: 0-3", "housekeeping: it takes every CPU"},
		{"$", "model: {mhz: 0}", "line 9: malformed: model.mhz: 0 is out of range: use 1 to 1000000"},
		{"$", "model: {l1: 7KiB}", "model.l1: 7 KiB is no cache the plugin can model"},
		{"$", "model: {l1: 512KiB}", "use a power of two from 64 B to 256 KiB"},
		{"$", "model: {dram_cycles: {10: 0, 21: 2}}", "0 cycles at distance 10 are out of range"},
		{"$", "model: {dram_cycles: {10: 1}}", "no latency for distance 21"},
		{"$", "model: {mhz: fast}", "line 9: malformed: "},
		{"$", "links: [[0, 2]]", "links[0]: [0 2] does not join two of the nodes: use ids 0 to 1"},
		{"$", "links: [[1, 1]]", "does not join two"},
		{"$", "links: [[0, 1], [1, 0]]", "links[1]: [1 0] is there twice"},
		{"$", "links: [[0, 1, 1]]", "line 9: malformed: links[0]: it has 3 values: want 2"},
		{"$", "links: []", "links: they leave a node unreachable"},
		{"$", "---\nname: b\n", "exactly one YAML document"},
		{"$", ": : [", "parse bad.yaml: "},
	} {
		text := strings.Replace(plainShape, c.from, c.to, 1)
		if c.from == "$" {
			text = plainShape + c.to + "\n"
		}
		s, err := ParseShape([]byte(text), "bad.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrMalformed) || !reflect.DeepEqual(s, Shape{}) {
			t.Errorf("%q → %q:\n got %v\nwant %s", c.from, c.to, err, c.want)
		}
	}
}

func TestShapeRefusesMore(t *testing.T) {
	if _, err := ParseShape(nil, "empty.yaml"); err == nil {
		t.Error("an empty file is no shape")
	}
	if _, err := ParseShape([]byte(strings.Repeat("#", maxShapeFile+1)), "big.yaml"); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("too big: %v", err)
	}
	s := Shape{Name: "wide", Model: DefaultModel()}
	for i := range 16 {
		s.Nodes = append(s.Nodes, ShapeNode{CPUs: set.FromCPUs(i), Memory: 128 * unit.MiB})
		row := make([]int, 16)
		for j := range row {
			row[j] = 21
		}
		row[i] = 10
		s.Distances = append(s.Distances, row)
	}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `shape "wide": links: 120 pairs need 240 directed links: name at most 32 pairs`) {
		t.Errorf("16 nodes, all joined: %v", err)
	}
	s.Nodes = append(s.Nodes, s.Nodes...)
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "there are 32: list 1 to 16 nodes") {
		t.Errorf("32 nodes: %v", err)
	}
}
