// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/set"
	"homenode/internal/unit"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o444} }

// treeOf prints a machine as the kernel would: ParseSysfs must read it back.
func treeOf(m Machine) fstest.MapFS {
	tree := fstest.MapFS{cpuDir + "/online": file(m.OnlineCPUs().String() + "\n")}
	for i, n := range m.Nodes {
		tree[nodePath(n.ID, "cpulist")] = file(n.CPUs.String() + "\n")
		if b, ok := n.Memory.Get(); ok {
			tree[nodePath(n.ID, "meminfo")] = file(fmt.Sprintf("\nNode %d MemTotal:  %d kB\nNode %d MemFree: 7 kB\n", n.ID, b/unit.KiB, n.ID))
		}
		var row []string
		for j := range m.Nodes {
			row = append(row, m.Distances[i][j].String())
		}
		tree[nodePath(n.ID, "distance")] = file(strings.Join(row, " ") + "\n")
	}
	for _, c := range m.CPUs {
		tree[cpuPath(c.ID, "crash_notes")] = file("0\n")
		if node, ok := c.Node.Get(); ok {
			tree[cpuPath(c.ID, fmt.Sprintf("node%d", node))] = &fstest.MapFile{Data: []byte("../../node"), Mode: fs.ModeSymlink | 0o777}
		}
		if c.Online {
			cpuTree(tree, m, c)
		}
	}
	return tree
}

func cpuTree(tree fstest.MapFS, m Machine, c CPU) {
	put := func(name string, v any) { tree[cpuPath(c.ID, name)] = file(fmt.Sprintf("%v\n", v)) }
	put("topology/physical_package_id", 7*c.Package.Or(0))
	put("topology/package_cpus_list", m.Packages[c.Package.Or(0)])
	put("topology/die_id", -1)
	put("topology/die_cpus_list", c.ID)
	put("topology/core_id", c.Core.Or(0)%2)
	put("topology/core_cpus", m.Cores[c.Core.Or(0)].Mask())
	if len(m.Inner) > 0 { // each CPU's L1
		put("cache/index0/level", 1)
		put("cache/index0/type", "Data")
		put("cache/index0/shared_cpu_list", c.ID)
	}
	for i, cache := range []Cache{m.L2s[c.L2.Or(0)], m.LLCs[c.LLC.Or(0)]} {
		index := fmt.Sprintf("cache/index%d/", i+2)
		put(index+"level", cache.Level)
		put(index+"type", "Unified")
		put(index+"id", cache.ID.Or(-1))
		put(index+"size", fmt.Sprintf("%dK", cache.Size.Or(0)/unit.KiB))
		put(index+"shared_cpu_list", cache.CPUs)
	}
}

// randomMachine has sparse node ids, CPU-less nodes, nodes of different sizes,
// offline CPUs, asymmetric distances and two CPUs to a core.
func randomMachine(r *rand.Rand) Machine {
	m := Machine{Origin: "fake:random"}
	ids := r.Perm(40)[:1+r.IntN(6)]
	slices.Sort(ids)
	cpu := r.IntN(3)
	for i, id := range ids {
		n := Node{ID: id, Memory: unit.OptOf(unit.Bytes(r.IntN(5))*unit.MiB, r.IntN(5) > 0)}
		row := make([]unit.Opt[int], len(ids))
		for j := range row {
			row[j] = unit.Some(11 + r.IntN(60))
		}
		row[i] = unit.Some(LocalDistance)
		m.Distances = append(m.Distances, row)
		for range r.IntN(4) {
			cpu = addCore(&m, &n, cpu, len(m.Nodes))
		}
		m.Nodes = append(m.Nodes, n)
	}
	if len(m.CPUs) == 0 { // a machine has a CPU
		addCore(&m, &m.Nodes[0], cpu, 0)
	}
	finish(&m, r)
	return m
}

// addCore adds a core of two CPUs to a node, and returns the next CPU id.
func addCore(m *Machine, n *Node, cpu, group int) int {
	pair := set.FromCPUs(cpu, cpu+1)
	n.CPUs = n.CPUs.Union(pair)
	own := unit.Some(len(m.Cores))
	m.Cores = append(m.Cores, pair)
	m.L2s = append(m.L2s, Cache{Level: 2, CPUs: pair, Size: unit.Some(256 * unit.KiB)})
	for id := range pair.All() {
		m.CPUs = append(m.CPUs, CPU{ID: id, Node: unit.Some(n.ID), Core: own, L2: own, Online: true})
		m.Inner = append(m.Inner, Cache{Level: 1, CPUs: set.FromCPUs(id)})
	}
	return cpu + 2
}

// finish makes every node with CPUs a package with one LLC, and adds an offline CPU.
func finish(m *Machine, r *rand.Rand) {
	for _, n := range m.Nodes {
		if n.CPUs.IsEmpty() {
			continue
		}
		for i := range m.CPUs {
			if n.CPUs.Has(m.CPUs[i].ID) {
				m.CPUs[i].Package, m.CPUs[i].LLC = unit.Some(len(m.Packages)), unit.Some(len(m.Packages))
			}
		}
		m.LLCs = append(m.LLCs, Cache{Level: 3, ID: unit.Some(len(m.LLCs)), CPUs: n.CPUs, Size: unit.Some(unit.MiB)})
		m.Packages = append(m.Packages, n.CPUs)
	}
	last := m.CPUs[len(m.CPUs)-1].ID
	m.CPUs = append(m.CPUs, CPU{ID: last + 1 + r.IntN(9), Node: unit.Some(m.Nodes[r.IntN(len(m.Nodes))].ID)})
}

// Parity of the printer above and the parser, and of JSON, on random machines.
func TestRandomMachinesReadBack(t *testing.T) {
	for seed := range uint64(300) {
		want := randomMachine(rand.New(rand.NewPCG(seed, 0)))
		got, err := ParseSysfs(treeOf(want), want.Origin)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %v\n got %+v\nwant %+v", seed, err, got, want)
		}
		checkInvariants(t, got)
		text, err := json.Marshal(got)
		var back Machine
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || !reflect.DeepEqual(back, got) {
			t.Fatalf("seed %d: JSON: %v\n%s", seed, err, text)
		}
	}
}

// Renumbering the nodes renumbers the answers.
func TestRenumberingNodes(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := randomMachine(r)
		order := r.Perm(len(m.Nodes)) // node i becomes node order[i]
		re, err := ParseSysfs(treeOf(renumber(m, order)), m.Origin)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range m.Nodes {
			if n, ok := re.Node(order[i]); !ok || n.CPUs != a.CPUs || n.Memory != a.Memory {
				t.Fatalf("seed %d: node %+v became %+v", seed, a, n)
			}
			for j, b := range m.Nodes {
				if re.Distance(order[i], order[j]) != m.Distance(a.ID, b.ID) {
					t.Fatalf("seed %d: distance %d to %d changed", seed, a.ID, b.ID)
				}
			}
		}
	}
}

// renumber gives node i the id order[i]; everything else stays as it is.
func renumber(m Machine, order []int) Machine {
	out := m
	n := len(order)
	out.Nodes, out.CPUs, out.Distances = make([]Node, n), slices.Clone(m.CPUs), make([][]unit.Opt[int], n)
	for i, node := range m.Nodes {
		for k, c := range m.CPUs {
			if c.Node == unit.Some(node.ID) {
				out.CPUs[k].Node = unit.Some(order[i])
			}
		}
		node.ID = order[i]
		out.Nodes[order[i]] = node
		row := make([]unit.Opt[int], n)
		for j := range row {
			row[order[j]] = m.Distances[i][j]
		}
		out.Distances[order[i]] = row
	}
	return out
}

func TestNoNodeDirectories(t *testing.T) {
	m, err := ParseSysfs(fstest.MapFS{
		cpuDir + "/cpu0/crash_notes": file(""), // cpu0 often has no "online"
		cpuDir + "/cpu1/online":      file("1\n"),
		cpuDir + "/cpu2/online":      file("0\n"),
		cpuDir + "/cpufreq/boost":    file("1"),
		"proc/meminfo":               file("MemTotal:  1024 kB\nMemFree: 1 kB\n"),
		"proc/hwloc-nofile-info":     file("OSName: Linux\nPageSize: 65536\n"),
	}, "fake:flat")
	if err != nil {
		t.Fatal(err)
	}
	want := Node{ID: 0, CPUs: set.FromCPUs(0, 1), Memory: unit.Some(unit.MiB)}
	if len(m.Nodes) != 1 || !reflect.DeepEqual(m.Nodes[0], want) || m.Distance(0, 0) != unit.Some(10) || m.PageSize != unit.Some(64*unit.KiB) {
		t.Errorf("got %+v", m)
	}
	if node, ok := m.NodeOf(2); !ok || node != 0 || m.OnlineCPUs().Has(2) {
		t.Errorf("cpu 2: node %d %v", node, ok)
	}
	checkInvariants(t, m)
}

func TestNoCPU(t *testing.T) {
	m, err := ParseSysfs(fstest.MapFS{nodeDir + "/node0/cpulist": file("0-3")}, "fake:empty")
	if !errors.Is(err, ErrNoCPU) || !reflect.DeepEqual(m, Machine{}) {
		t.Errorf("got %+v, %v", m, err)
	}
}

// A malformed file is reported with its place, and only its values are unknown.
func TestMalformedFilesAreReported(t *testing.T) {
	tree := fstest.MapFS{
		cpuDir + "/online":                            file("0-3"),
		cpuDir + "/cpu1/crash_notes":                  file(""),
		cpuDir + "/cpu2/crash_notes":                  file(""),
		cpuDir + "/cpu0/topology/physical_package_id": file("zero"),
		cpuDir + "/cpu0/cache/index3/level":           file("3"),
		cpuDir + "/cpu0/cache/index3/type":            file("Unified"),
		cpuDir + "/cpu0/cache/index3/shared_cpu_map":  file("3"),
		cpuDir + "/cpu0/cache/index3/size":            file("6144kB"),
		nodeDir + "/node0/cpulist":                    file("0-1"),
		nodeDir + "/node0/meminfo":                    file("Node 0 MemTotal: 12 MB"),
		nodeDir + "/node0/distance":                   file("0 9 30"),
		nodeDir + "/node1/cpumap":                     file("x"),
		nodeDir + "/node1/cpulist":                    file("2"),
		nodeDir + "/node1/distance":                   file("20 x 10"),
		nodeDir + "/node5/distance":                   file("20 10"),
		cpuDir + "/cpu3/node5":                        file(""),
	}
	m, err := ParseSysfs(tree, "fake:malformed")
	if !errors.Is(err, ErrMalformed) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		`parse sys/devices/system/cpu/cpu0/topology/physical_package_id: malformed: line 1, field 1 "zero": invalid syntax`,
		`parse sys/devices/system/cpu/cpu0/cache/index3/size: malformed: line 1, field 1 "6144kB": invalid syntax`,
		`parse sys/devices/system/node/node0/meminfo: malformed: line 1: MemTotal "12 MB": want a number and kB`,
		`node0/distance: malformed: line 1: distance 9 to node 1: values below 10 are reserved`,
		`node1/distance: malformed: line 1, field 2 "x": invalid syntax`,
		`node5/distance: malformed: line 1: 2 fields for 3 nodes`,
		`node1/cpumap: malformed: parse cpu mask "x": field 1 "x"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 7 {
		t.Errorf("%d errors, want 7:\n%v", n, err)
	}
	want := []string{"0-1", "2", "3"} // node 1 by its cpulist, node 5 by cpu 3's link
	for i, n := range m.Nodes {
		if n.CPUs.String() != want[i] || n.Memory.Known() {
			t.Errorf("node %d: %+v, want CPUs %s", n.ID, n, want[i])
		}
	}
	if m.Distance(0, 0) != unit.Some(10) || m.Distance(0, 1).Known() || m.Distance(0, 5) != unit.Some(30) || m.Distance(7, 7).Known() {
		t.Errorf("distances %v", m.Distances)
	}
	if got := m.Nearest(0); !slices.Equal(got, []int{0, 5, 1}) || m.Nearest(7) != nil {
		t.Errorf("nearest to 0: %v", got)
	}
	if len(m.LLCs) != 1 || m.LLCs[0].CPUs.String() != "0-1" || m.LLCs[0].Size.Known() {
		t.Errorf("LLCs %+v", m.LLCs)
	}
}

type deniedFS struct{ fstest.MapFS }

func (d deniedFS) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, "distance") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return d.MapFS.ReadFile(name)
}

func TestUnreadableIsAnErrorMissingIsNot(t *testing.T) {
	tree := fstest.MapFS{cpuDir + "/online": file("0"), nodeDir + "/node0/cpulist": file("0"), nodeDir + "/node0/distance": file("10")}
	if _, err := ParseSysfs(deniedFS{tree}, "fake:denied"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	delete(tree, nodeDir+"/node0/distance")
	if m, err := ParseSysfs(tree, "fake:bare"); err != nil || len(m.CPUs) != 1 || m.CPUs[0].LLC.Known() || m.CPUs[0].Core.Known() || m.PageSize.Known() {
		t.Errorf("got %+v, %v", m, err)
	}
}
