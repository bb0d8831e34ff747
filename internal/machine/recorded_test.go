// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/machine/machinetest"
	"homenode/internal/set"
)

// recorded is what a tree of ../shared/machines must decode to.
type recorded struct {
	archive                          string
	nodes, withCPUs, withMemory      string
	cpus, online                     int
	packages, dies, cores, l2s, llcs int
	doubt                            string
	nodeCPUs                         map[int]string
	distances                        map[[2]int]int
}

var recordedMachines = []recorded{
	{archive: "64amd64-4p2n4ca2co-opteron6272.tar.bz2", nodes: "0-7", withCPUs: "0-7", withMemory: "0-7",
		cpus: 64, online: 64, packages: 4, cores: 64, l2s: 32, llcs: 8, // 64 cores though thread_siblings says 32
		nodeCPUs:  map[int]string{1: "8-15", 2: "32-39", 6: "16-23"},
		distances: map[[2]int]int{{0, 0}: 10, {0, 3}: 22, {2, 3}: 16, {7, 4}: 22}},
	{archive: "40intel64-2g2n4c+pcilocality.tar.bz2", nodes: "0-3", withCPUs: "0-3", withMemory: "0-3",
		cpus: 40, online: 40, packages: 4, cores: 40, l2s: 40, llcs: 4,
		nodeCPUs:  map[int]string{1: "1,5,9,13,17,21,25,29,33,37"},
		distances: map[[2]int]int{{0, 3}: 20}},
	{archive: "128arm-2pa2n8cluster4co.tar.bz2", nodes: "0-3", withCPUs: "0-3", withMemory: "0-3",
		cpus: 128, online: 128, packages: 2, cores: 128, l2s: 128, llcs: 4,
		nodeCPUs:  map[int]string{3: "96-127"},
		distances: map[[2]int]int{{0, 1}: 16, {0, 2}: 32, {0, 3}: 33, {1, 2}: 25}},
	{archive: "memorysidecaches.tar.bz2", nodes: "0-3", withCPUs: "0-3", withMemory: "0-3",
		cpus: 80, online: 80, packages: 2, dies: 2, cores: 40, l2s: 40, llcs: 2,
		distances: map[[2]int]int{{0, 2}: 11, {0, 1}: 21}},
	{archive: "nri-sample2-pmem.tar.xz", nodes: "0-7", withCPUs: "0-3", withMemory: "0-7",
		cpus: 112, online: 112, packages: 2, dies: 2, cores: 56, l2s: 56, llcs: 2,
		nodeCPUs:  map[int]string{4: "", 7: ""},
		distances: map[[2]int]int{{0, 4}: 17, {0, 5}: 28, {2, 5}: 17}},
	{archive: "256ppc-8n8s4t.tar.bz2", nodes: "0-1,4-5,8-9,12-13", withCPUs: "0-1,4-5,8-9,12-13", withMemory: "0-1,4-5,8-9,12-13",
		cpus: 256, online: 256, packages: 64, cores: 64, l2s: 64, llcs: 64, // no cpulist, only cpumap
		nodeCPUs:  map[int]string{12: "192-223"},
		distances: map[[2]int]int{{12, 13}: 20, {4, 12}: 40, {8, 8}: 10}},
	{archive: "48amd64-4pa2n6c-sparse.tar.bz2", nodes: "0-2,33-34,45,72-73", withCPUs: "0-2,33-34,45,72-73", withMemory: "0-2,33-34,45,72-73",
		cpus: 48, online: 48, packages: 4, cores: 48, l2s: 48, llcs: 8, // NUL-padded files
		nodeCPUs:  map[int]string{72: "36-41"},
		distances: map[[2]int]int{{0, 33}: 22, {72, 45}: 22, {73, 72}: 16}},
	{archive: "nvidiagpunumanodes.tar.bz2", nodes: "0,8,250-255", withCPUs: "0,8", withMemory: "0,8,250-255",
		cpus: 32, online: 32, packages: 2, cores: 8, l2s: 4, llcs: 4, // cpulist 0-87 but 0-15 exist
		nodeCPUs:  map[int]string{0: "0-15", 8: "88-103", 250: ""},
		distances: map[[2]int]int{{0, 8}: 40, {250, 251}: 80}},
	{archive: "fakeheterocpunuma.tar.bz2", nodes: "0-5", withCPUs: "0-1,3-5", withMemory: "0-5",
		cpus: 24, online: 24, packages: 2, cores: 12, doubt: "nodes 3-5 all claim cpus 20-23",
		nodeCPUs:  map[int]string{2: "", 3: "20-23", 4: "16-19", 5: "12-15"},
		distances: map[[2]int]int{{2, 3}: 40, {3, 2}: 50, {0, 5}: 50, {5, 0}: 40}},
	{archive: "fakememinitiators-1np2c+1npp+gi.tar.bz2", nodes: "0-10", withCPUs: "0-3", withMemory: "5-10",
		cpus: 8, online: 8, packages: 2, cores: 8,
		nodeCPUs:  map[int]string{0: "0-1", 2: "4-5"},
		distances: map[[2]int]int{{0, 4}: 12, {4, 1}: 31, {10, 4}: 13}},
	{archive: "offline-cpu0-node0.tar.bz2", nodes: "1", withCPUs: "1", withMemory: "1",
		cpus: 24, online: 17, packages: 2, cores: 17, l2s: 17, llcs: 2,
		nodeCPUs:  map[int]string{1: "5,7,9,11,13,15,17,19"},
		distances: map[[2]int]int{{1, 1}: 10}},
	{archive: "8em64t-2s2ca2c-buggynuma.tar.bz2", nodes: "0-7", withCPUs: "0-7", withMemory: "0-7",
		cpus: 8, online: 8, packages: 2, cores: 8, l2s: 4, llcs: 4, doubt: "nodes 0-7 all claim cpus 0-7",
		nodeCPUs:  map[int]string{0: "0", 7: "7"},
		distances: map[[2]int]int{{0, 7}: 10}},
}

func TestDecodeRecordedMachines(t *testing.T) {
	for _, want := range recordedMachines {
		t.Run(want.archive, func(t *testing.T) {
			m, err := ParseSysfs(unpack(t, want.archive), "recorded:"+want.archive)
			if (err != nil) != (want.doubt != "") || err != nil && !strings.Contains(err.Error(), want.doubt) {
				t.Errorf("error %v, want %q", err, want.doubt)
			}
			want.check(t, m)
			checkInvariants(t, m)
		})
	}
}

func (want recorded) check(t *testing.T, m Machine) {
	t.Helper()
	for what, pair := range map[string][2]string{
		"nodes":             {m.NodeIDs().String(), want.nodes},
		"nodes with CPUs":   {m.NodesWithCPUs().String(), want.withCPUs},
		"nodes with memory": {m.NodesWithMemory().String(), want.withMemory},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", what, pair[0], pair[1])
		}
	}
	got := [...]int{len(m.CPUs), m.OnlineCPUs().Len(), len(m.Packages), len(m.Dies), len(m.Cores), len(m.L2s), len(m.LLCs)}
	if wanted := [...]int{want.cpus, want.online, want.packages, want.dies, want.cores, want.l2s, want.llcs}; got != wanted {
		t.Errorf("cpus, online, packages, dies, cores, L2s, LLCs: %v, want %v", got, wanted)
	}
	for id, cpus := range want.nodeCPUs {
		if n, _ := m.Node(id); n.CPUs.String() != cpus {
			t.Errorf("node %d has CPUs %v, want %s", id, n.CPUs, cpus)
		}
	}
	for pair, d := range want.distances {
		if got, ok := m.Distance(pair[0], pair[1]).Get(); !ok || got != d {
			t.Errorf("distance %v is %d (%v), want %d", pair, got, ok, d)
		}
	}
}

// checkInvariants holds for every machine.
func checkInvariants(t *testing.T, m Machine) {
	t.Helper()
	var given set.CPUSet
	for _, n := range m.Nodes {
		if given.Overlaps(n.CPUs) {
			t.Errorf("CPUs %v were given twice", given.Intersect(n.CPUs))
		}
		given = given.Union(n.CPUs)
		if near := m.Nearest(n.ID); len(near) != len(m.Nodes) || near[0] != n.ID {
			t.Errorf("Nearest(%d) = %v", n.ID, near)
		}
		for id := range n.CPUs.All() {
			if of, ok := m.NodeOf(id); !ok || of != n.ID {
				t.Errorf("cpu %d is of node %d and in node %d", id, of, n.ID)
			}
		}
	}
	if !given.SubsetOf(m.OnlineCPUs()) || !m.CPUsOf(m.NodeIDs()).Equal(given) {
		t.Errorf("nodes have CPUs %v, online are %v", given, m.OnlineCPUs())
	}
	for _, c := range m.CPUs {
		inGroup(t, c, c.Package.Or(-1), m.Packages)
		inGroup(t, c, c.Die.Or(-1), m.Dies)
		inGroup(t, c, c.Core.Or(-1), m.Cores)
		inGroup(t, c, c.L2.Or(-1), cpusOf(m.L2s))
		inGroup(t, c, c.LLC.Or(-1), cpusOf(m.LLCs))
	}
}

func inGroup(t *testing.T, c CPU, i int, groups []set.CPUSet) {
	t.Helper()
	for j, g := range groups {
		if g.Has(c.ID) != (i == j) {
			t.Errorf("cpu %d: index %d, but group %d has %v", c.ID, i, j, g)
		}
	}
}

func cpusOf(caches []Cache) (cpus []set.CPUSet) {
	for _, c := range caches {
		cpus = append(cpus, c.CPUs)
	}
	return cpus
}

// unpack reads an archive of ../shared/machines by its name.
func unpack(t *testing.T, archive string) fstest.MapFS {
	t.Helper()
	return machinetest.Unpack(t, filepath.Join(machinetest.Dir(t), archive))
}
