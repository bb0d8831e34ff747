// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/unit"
)

// plainTree is two packages of two cores, each a node; changes replace files, nil removes
// one.
func plainTree(changes map[string]*fstest.MapFile) fstest.MapFS {
	tree := fstest.MapFS{cpuDir + "/online": file("0-3\n")}
	for cpu := range 4 {
		first := cpu / 2 * 2
		for name, text := range map[string]string{
			"topology/core_id": fmt.Sprint(cpu), "topology/physical_package_id": fmt.Sprint(cpu / 2),
			"topology/core_cpus_list": fmt.Sprint(cpu), "topology/package_cpus_list": fmt.Sprintf("%d-%d", first, first+1),
			"cache/index0/level": "3", "cache/index0/type": "Unified", "cache/index0/size": "1024K",
			"cache/index0/shared_cpu_list": fmt.Sprintf("%d-%d", first, first+1),
		} {
			tree[cpuPath(cpu, name)] = file(text + "\n")
		}
	}
	for node := range 2 {
		tree[nodePath(node, "cpulist")] = file(fmt.Sprintf("%d-%d\n", 2*node, 2*node+1))
		tree[nodePath(node, "meminfo")] = file(fmt.Sprintf("Node %d MemTotal: 1024 kB\n", node))
	}
	tree[nodePath(0, "distance")], tree[nodePath(1, "distance")] = file("10 21\n"), file("21 10\n")
	for name, f := range changes {
		if f == nil {
			delete(tree, name)
			continue
		}
		tree[name] = f
	}
	return tree
}

// What no machine has is an error, and what it is about is unknown: never a number that was
// made up, and never silence.
func TestNonsenseIsReported(t *testing.T) {
	type changes = map[string]*fstest.MapFile
	packages := func(m Machine) string { return fmt.Sprint(m.Packages) }
	llcs := func(m Machine) string { return cacheFacts(m.LLCs) }
	cores := func(m Machine) string { return fmt.Sprint(m.Cores) }
	online := func(m Machine) string { return m.OnlineCPUs().String() }
	memory := func(m Machine) string { return m.Nodes[0].Memory.String() }
	pages := func(m Machine) string { return fmt.Sprint(m.Nodes[0].HugePages) }
	const both = "L3 0-1 1 MiB; L3 2-3 1 MiB"
	for name, c := range map[string]struct {
		changes changes
		err     string
		get     func(Machine) string
		want    string
	}{
		"nothing":              {nil, "", packages, "[0-1 2-3]"},
		"online beyond cpuN":   {changes{cpuDir + "/online": file("0-8191")}, "cpu/online: malformed: line 1: it names cpus 4-8191, which have no folder", online, "0-3"},
		"memory beyond a CPU":  {changes{nodePath(0, "meminfo"): file("Node 0 MemTotal: 9007199254740991 kB")}, "more than 4 PiB", memory, "unknown"},
		"memory beyond 52 bit": {changes{nodePath(0, "meminfo"): file("Node 0 MemTotal: 4398046511105 kB")}, "more than 4 PiB", memory, "unknown"},
		"cache without itself": {changes{cpuPath(2, "cache/index0/shared_cpu_list"): file("0-1")}, "cpu2/cache/index0/shared_cpu_list: malformed: line 1: it lacks cpu 2 itself", llcs, both},
		"core without itself":  {changes{cpuPath(2, "topology/core_cpus_list"): file("0")}, "cpu2/topology/core_cpus_list: malformed: line 1: it lacks cpu 2 itself", cores, "[0 1 3]"},
		"package without itself": {changes{cpuPath(2, "topology/package_cpus_list"): file("0-1")},
			"cpu2/topology/package_cpus_list: malformed: line 1: it lacks cpu 2 itself", packages, "[0-1 2-3]"},
		"cache level":   {changes{cpuPath(0, "cache/index0/level"): file("99999999")}, "cpu0/cache/index0/level: malformed: line 1: level 99999999: want 1 to 9", llcs, both}, // cpu 1 names both
		"cache level 0": {changes{cpuPath(0, "cache/index0/level"): file("0")}, "level 0: want 1 to 9", llcs, both},
		"list and number of packages": {changes{cpuPath(2, "topology/package_cpus_list"): file("2"), cpuPath(3, "topology/package_cpus_list"): file("3")},
			"the sibling lists have 3 packages, physical_package_id has 2: the numbers were believed", packages, "[0-1 2-3]"},
		"list of both packages": {changes{cpuPath(0, "topology/package_cpus_list"): file("0-3")},
			"the sibling lists have 1 packages, physical_package_id has 2: the numbers were believed", packages, "[0-1 2-3]"},
		"a number of several packages": {changes{cpuPath(0, "topology/package_cpus_list"): file("0"), cpuPath(1, "topology/package_cpus_list"): file("1"), cpuPath(1, "topology/core_id"): file("0")},
			"the lists were believed, for cores of one number have one core_id", packages, "[0 1 2-3]"},
		"a number is missing": {changes{cpuPath(0, "topology/package_cpus_list"): file("0-3"), cpuPath(3, "topology/physical_package_id"): file("-1")},
			"the lists were believed, for some cpus have no number", packages, "[0-3]"},
		"no numbers": {changes{cpuPath(0, "topology/physical_package_id"): file("-1"), cpuPath(1, "topology/physical_package_id"): nil}, "", packages, "[0-1 2-3]"},
		"huge pages beyond the node": {changes{nodePath(0, "hugepages/hugepages-2048kB/nr_hugepages"): file("1")},
			"nr_hugepages: malformed: line 1: 1 pages of 2 MiB: the node has 1 MiB", pages, "[{2 MiB unknown}]"},
		"huge pages of no size": {changes{nodePath(0, "hugepages/hugepages-3kB/nr_hugepages"): file("1")}, "folder \"hugepages-3kB\"", pages, "[]"},
	} {
		m, err := ParseSysfs(plainTree(c.changes), "fake:"+name)
		if (err != nil) != (c.err != "") || err != nil && (!errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if got := c.get(m); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		checkInvariants(t, m)
	}
}

// Nodes have their CPUs from other files than packages: a doubt about packages is none about
// nodes, and keeps no policy from binding.
func TestDoubtsArePackagesOrNodes(t *testing.T) {
	m, _ := ParseSysfs(plainTree(map[string]*fstest.MapFile{cpuPath(0, "topology/package_cpus_list"): file("0-3")}), "fake:packages")
	if len(m.Doubts) != 0 || len(m.PackageDoubts) != 1 || !strings.Contains(m.PackageDoubts[0], "packages") {
		t.Errorf("packages: %q, %q", m.Doubts, m.PackageDoubts)
	}
	m, _ = ParseSysfs(plainTree(map[string]*fstest.MapFile{nodePath(1, "cpulist"): file("0-3")}), "fake:nodes")
	if len(m.Doubts) != 1 || len(m.PackageDoubts) != 0 || !reflect.DeepEqual(m.AllDoubts(), m.Doubts) {
		t.Errorf("nodes: %q, %q", m.Doubts, m.PackageDoubts)
	}
}

// A machine without a CPU that runs is none.
func TestNoCPUOnline(t *testing.T) {
	for name, changes := range map[string]map[string]*fstest.MapFile{
		"an empty list": {cpuDir + "/online": file("\n")},
		"others":        {cpuDir + "/online": file("64-100\n")},
		"all offline": {cpuDir + "/online": nil, cpuPath(0, "online"): file("0"), cpuPath(1, "online"): file("0"),
			cpuPath(2, "online"): file("0"), cpuPath(3, "online"): file("0")},
	} {
		m, err := ParseSysfs(plainTree(changes), "fake:x")
		if err == nil || !strings.Contains(err.Error(), "no CPU is online") || !reflect.DeepEqual(m, Machine{}) {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// A cpuinfo that says nothing about the CPU does not decide what a core is.
func TestJunkCPUInfo(t *testing.T) {
	modules := map[string]*fstest.MapFile{}
	for cpu := range 4 {
		first := cpu / 2 * 2
		modules[cpuPath(cpu, "topology/core_cpus_list")] = file(fmt.Sprintf("%d-%d", first, first+1))
	}
	for text, cores := range map[string]int{
		"vendor_id : AuthenticAMD\ncpu family : 21\n":           4,
		"vendor_id : AuthenticAMD\ncpu family : 23\n":           2,
		"vendor_id : GenuineIntel\ncpu family : 6\n":            2,
		"processor : 0\nBogoMIPS : 2\nCPU implementer : 0x41\n": 2,
		"": 4, "junk": 4, "\x00\x01\x02": 4, "vendor_id : \xff\ncpu family : 6\n": 4, "vendor_id : AuthenticAMD\n": 4, "a : b\nc : d\n": 4,
	} {
		modules["proc/cpuinfo"] = file(text)
		m, err := ParseSysfs(plainTree(modules), "fake:x")
		known := strings.Contains(text, "family : 2") || strings.Contains(text, "GenuineIntel") || strings.Contains(text, "implementer")
		if len(m.Cores) != cores || (err == nil) != known || err != nil && !strings.Contains(err.Error(), "parse proc/cpuinfo: malformed: ") {
			t.Errorf("%q: %d cores, want %d; %v", text, len(m.Cores), cores, err)
		}
	}
}

type unreadableFS struct{ fstest.MapFS }

func (u unreadableFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == cpuDir {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.MapFS.ReadDir(name)
}

// A folder that may not be read is not called empty.
func TestUnreadableCPUs(t *testing.T) {
	tree := plainTree(map[string]*fstest.MapFile{cpuDir + "/online": nil})
	if _, err := ParseSysfs(unreadableFS{tree}, "fake:x"); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "read "+cpuDir) {
		t.Errorf("got %v", err)
	}
}

// What a hybrid machine, a CXL device, the dax bus and GPUs show.
func TestKindsAndDevices(t *testing.T) {
	changes := map[string]*fstest.MapFile{
		"sys/devices/cpu_core/cpus": file("0-2\n"), "sys/devices/cpu_atom/cpus": file("3,9\n"),
		nodePath(1, "hugepages/hugepages-4kB/nr_hugepages"):      file("12\n"),
		pciDir + "/0000:35:00.0":                                 link("../../../devices/pci0000:34/0000:34:01.0/0000:35:00.0"),
		"sys/devices/pci0000:34/0000:34:01.0/0000:35:00.0/class": file("0x050210\n"),
		cxlDir + "/mem0": link("../../../devices/pci0000:34/0000:34:01.0/0000:35:00.0/mem0"),
		"sys/devices/pci0000:34/0000:34:01.0/0000:35:00.0/mem0/ram/size":  file("0x40000000\n"),
		"sys/devices/pci0000:34/0000:34:01.0/0000:35:00.0/mem0/pmem/size": file("0x0\n"),
		daxDir + "/dax0.0/size": file("16909336576\n"), daxDir + "/dax0.0/target_node": file("7\n"), daxDir + "/dax0.0/driver": link("../../drivers/kmem"),
		kfdDir + "/0/properties":            file("location_id 0\n"),
		kfdDir + "/1/properties":            file("domain 0\nlocation_id 49920\n"),
		kfdDir + "/2/properties":            file("domain 0\nlocation_id 50176\n"),
		kfdDir + "/1/io_links/0/properties": file("type 11\nnode_to 2\nmax_bandwidth 50000\n"),
		kfdDir + "/1/io_links/1/properties": file("type 2\nnode_to 0\nmax_bandwidth 7\n"),
		kfdDir + "/2/io_links/0/properties": file("type 11\nnode_to 1\nmax_bandwidth 40000\n"),
	}
	for cpu := range 4 {
		changes[cpuPath(cpu, "cpu_capacity")] = file([]string{"1024\n", "1000\n", "1024\n", "446\n"}[cpu])
	}
	m, err := ParseSysfs(plainTree(changes), "fake:x")
	if err != nil {
		t.Fatal(err)
	}
	some := unit.Some[int]
	for what, pair := range map[string][2]any{
		"kinds":   {fmt.Sprint(m.Kinds), "[{core 0-2 unknown} {atom 3 446}]"},
		"pages":   {m.Nodes[1].HugePages, []HugePages{{4 * unit.KiB, some(12)}}},
		"devices": {m.Devices, []Device{{Address: "0000:35:00.0", Class: CXLMemory, Names: []string{"mem0"}, Bridges: []string{"0000:34:01.0"}, Memory: unit.Some(unit.GiB)}}},
		"dax":     {m.DAX, []DAX{{"dax0.0", unit.Some[unit.Bytes](16909336576), some(7), "kmem"}}},
		"links":   {m.Links, []Links{{"XGMIBandwidth", []string{"0000:c3:00.0", "0000:c4:00.0"}, [][]unit.Opt[int]{{{}, some(50000)}, {some(40000), {}}}}}},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %+v, want %+v", what, pair[0], pair[1])
		}
	}
	delete(changes, "sys/devices/cpu_core/cpus")
	delete(changes, "sys/devices/cpu_atom/cpus")
	if m, err = ParseSysfs(plainTree(changes), "fake:x"); err != nil || fmt.Sprint(m.Kinds) != "[{ 0,2 1024} { 1 1000} { 3 446}]" {
		t.Errorf("kinds by capacity: %v, %v", m.Kinds, err)
	}
}

// The L1s, and an L3 below an L4, are neither L2 nor LLC.
func TestInnerCaches(t *testing.T) {
	changes := map[string]*fstest.MapFile{}
	for cpu := range 4 {
		for i, c := range [][3]string{{"1", "Data", fmt.Sprint(cpu)}, {"1", "Instruction", fmt.Sprint(cpu)}, {"2", "Unified", fmt.Sprint(cpu)},
			{"3", "Unified", fmt.Sprintf("%d-%d", cpu/2*2, cpu/2*2+1)}, {"4", "Unified", "0-3"}} {
			index := cpuPath(cpu, fmt.Sprintf("cache/index%d/", i))
			changes[index+"level"], changes[index+"type"], changes[index+"shared_cpu_list"], changes[index+"size"] = file(c[0]), file(c[1]), file(c[2]), file("32K")
		}
	}
	m, err := ParseSysfs(plainTree(changes), "fake:x")
	const want = "L1 0 32 KiB; L1 1 32 KiB; L1 2 32 KiB; L1 3 32 KiB; L1i 0 32 KiB; L1i 1 32 KiB; L1i 2 32 KiB; L1i 3 32 KiB; L3 0-1 32 KiB; L3 2-3 32 KiB"
	if got := cacheFacts(m.Inner); err != nil || got != want || cacheFacts(m.LLCs) != "L4 0-3 32 KiB" || len(m.L2s) != 4 {
		t.Errorf("%v\n got %s\nwant %s\nLLCs %v", err, got, want, m.LLCs)
	}
}
