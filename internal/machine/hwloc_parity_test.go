// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"homenode/internal/machine/machinetest"
	"homenode/internal/unit"
)

// hwlocDiffers lists where hwloc 2.9 reads a tree differently, and what: facts by name.
// docs/decisions/0011 has the reasons.
type hwlocDiffers struct {
	facts map[string]string
	// hidden: hwloc leaves out what the recording process was not allowed to use, or GPU
	// memory. When it is made to show them, hwloc must agree on everything.
	hidden bool
	// refused: hwloc reads no machine from it.
	refused bool
}

var hwlocExceptions = map[string]hwlocDiffers{
	// In ../shared/machines.
	"8em64t-2s2ca2c-buggynuma":        {facts: map[string]string{"nodes": "0", "cpus of node 0": "0-7", "near of node 0": "0-7"}},
	"fakeheterocpunuma":               {facts: map[string]string{"nodes": "0-3"}},
	"fakememinitiators-1np2c+1npp+gi": {facts: map[string]string{"nodes": "5-10"}, hidden: true},
	"nvidiagpunumanodes":              {facts: map[string]string{"nodes": "0,8"}, hidden: true},
	// More of hwloc's own; only tried where HOMENODE_MACHINES has them.
	"16amd64-4n4c-cgroup-distance-merge": {facts: map[string]string{"nodes": "2-3", "online": "0-3"}, hidden: true},
	"16amd64-8n2c-cpusets":               {facts: map[string]string{"nodes": "1-4", "online": "0-3,5-6,12-15"}, hidden: true},
	"16em64t-4s2ca2c-cpusetreorder":      {facts: map[string]string{"online": "2-11,13"}, hidden: true},
	"32amd64-4s2n4c-cgroup2":             {facts: map[string]string{"nodes": "0-5", "online": "0-5"}, hidden: true},
	"32amd64-4s2n4c-cgroup":              {facts: map[string]string{"nodes": "0-5", "online": "0-5"}, hidden: true},
	"28em64t-2s2n7c-buggycoresiblings":   {facts: map[string]string{"packages": "[0-6 7-13 14-20 21-27]"}},
	"32ppc-4n4c2c":                       {refused: true},
	"64intel64-fakeKNL-A2A-cache":        {facts: map[string]string{"llcs": "L3 0-63 16 GiB"}},
	"fakeheteronuma":                     {facts: map[string]string{"nodes": "0-3"}},
	"4fake-4gr1nu1pu":                    {facts: map[string]string{"nodes": "0,2", "online": "0-1"}, hidden: true},
	"40intel64-4n10c+pci-conflicts": {facts: map[string]string{
		"packages": "[0,4,8,12,16,20,24,28,32,36 1,5,9,13,17,21,25,29,33,37 2,6,10,14,18,22,26,30,34,38]",
		"llcs": "L3 0,4,8,12,16,20,24,28,32,36 30 MiB; L3 1,5,9,13,17,21,25,29,33,37 30 MiB; L2 2 256 KiB; " +
			"L3 3,7,11,15,19,23,27,31,35,39 30 MiB; L2 6 256 KiB; L2 10 256 KiB; L2 14 256 KiB; L2 18 256 KiB; " +
			"L2 22 256 KiB; L2 26 256 KiB; L2 30 256 KiB; L2 34 256 KiB; L2 38 256 KiB"}},
}

// Parity: hwloc's reading of the same trees is an independent check. Our reading of what
// it writes must equal our reading of the tree, and it must read what we write.
func TestParityWithHwloc(t *testing.T) {
	if _, err := exec.LookPath("lstopo-no-graphics"); err != nil {
		t.Skip("hwloc is not installed: no lstopo-no-graphics")
	}
	if testing.Short() {
		t.Skip("-short: writing the trees out for hwloc takes a while")
	}
	compared := 0
	for _, path := range archives(t) {
		name, _, _ := strings.Cut(filepath.Base(path), ".tar")
		t.Run(name, func(t *testing.T) {
			dir := treeDir(t)
			writeTree(t, dir, machinetest.Unpack(t, path))
			m, _ := parseTree(t, dir, name)
			if differs := hwlocExceptions[name]; len(m.CPUs) == 0 || differs.refused {
				compared += hwlocRefuses(t, dir)
			} else {
				compared += compareReadings(t, m, dir, differs)
			}
			if len(m.CPUs) == 0 {
				return
			}
			checkInvariants(t, m)
			compared += compareWriting(t, m)
		})
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
	t.Logf("%d facts compared", compared)
}

// archives are those of ../shared/machines, and of the folder HOMENODE_MACHINES.
func archives(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{machinetest.Dir(t), os.Getenv("HOMENODE_MACHINES")} {
		found, err := filepath.Glob(filepath.Join(dir, "*.tar.*"))
		if err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			all = append(all, found...)
		}
	}
	return all
}

func compareReadings(t *testing.T, m Machine, dir string, differs hwlocDiffers) int {
	t.Helper()
	theirs := hwlocReads(t, "-i", dir, "--if", "fsroot")
	if !differs.hidden {
		return compareFacts(t, "hwloc", facts(m), facts(theirs), differs.facts)
	}
	for name, want := range differs.facts {
		if got := facts(theirs)[name]; got != want || got == facts(m)[name] {
			t.Errorf("%s: hwloc has %q, want %q, which differs from ours", name, got, want)
		}
	}
	all := hwlocReads(t, "-i", dir, "--if", "fsroot", "--disallowed")
	return compareFacts(t, "hwloc, showing all,", facts(m), facts(all), nil)
}

// hwlocRefuses: a tree in which we find no CPU has none for hwloc either.
func hwlocRefuses(t *testing.T, dir string) int {
	t.Helper()
	if out, err := exec.Command("lstopo-no-graphics", "-i", dir, "--if", "fsroot", "--of", "console").CombinedOutput(); err == nil {
		t.Errorf("hwloc reads a machine:\n%s", out)
	}
	return 1
}

// hwlocReads returns lstopo's reading of an input, as XML.
func hwlocReads(t *testing.T, args ...string) Machine {
	t.Helper()
	cmd := exec.Command("lstopo-no-graphics", append(args, "--of", "xml", "-")...)
	cmd.Env = append(os.Environ(), "HWLOC_HIDE_ERRORS=2")
	var banner bytes.Buffer
	if !slices.Contains(args, "fsroot") { // a document of ours: hwloc has nothing to say about it
		cmd.Env = append(os.Environ(), "HWLOC_HIDE_ERRORS=0")
		cmd.Stderr = &banner
	}
	if slices.Contains(args, "--disallowed") {
		cmd.Env = append(cmd.Env, "HWLOC_KEEP_NVIDIA_GPU_NUMA_NODES=1")
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if banner.Len() > 0 && !strings.Contains(banner.String(), "non-16bit domain") { // 2pa-pcidomain32bits
		t.Errorf("hwloc says of our XML:\n%s", &banner)
	}
	m, err := ParseHwloc(out, "hwloc")
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, m)
	checkCounts(t, out, m)
	return m
}

// checkCounts compares with what a plain search finds in the XML: the parity must
// not rest on ParseHwloc alone. hwloc keeps packages that have no CPU left.
func checkCounts(t *testing.T, text []byte, m Machine) {
	t.Helper()
	for kind, n := range map[string]int{"NUMANode": len(m.Nodes), "Package": len(m.Packages), "Core": len(m.Cores),
		"L2Cache": len(m.L2s), "PU": m.OnlineCPUs().Len()} {
		found := len(regexp.MustCompile(`<object type="`+kind+`"`).FindAll(text, -1)) -
			len(regexp.MustCompile(`<object type="`+kind+`"[^>]* cpuset="0x0"[^>]* nodeset=`).FindAll(text, -1))
		if kind == "NUMANode" {
			found = bytes.Count(text, []byte(`<object type="NUMANode"`))
		}
		if found != n {
			t.Errorf("the XML has %d of type %s, ParseHwloc found %d", found, kind, n)
		}
	}
}

// facts are what must be equal, by name. Memory that is unknown or 0 is 0, because hwloc
// does not distinguish them, nor an unknown distance of a node to itself.
func facts(m Machine) map[string]string {
	f := map[string]string{
		"nodes": m.NodeIDs().String(), "online": m.OnlineCPUs().String(),
		"packages": fmt.Sprint(m.Packages), "cores": fmt.Sprint(m.Cores),
		"l2s": cacheFacts(m.L2s), "llcs": cacheFacts(m.LLCs), "inner caches": cacheFacts(m.Inner),
	}
	for _, n := range m.Nodes {
		near, _ := m.NearCPUs(n.ID)
		f[fmt.Sprintf("near of node %d", n.ID)] = near.String()
		for _, p := range n.HugePages {
			f[fmt.Sprintf("pages of %v of node %d", p.Size, n.ID)] = p.Count.String()
		}
		f[fmt.Sprintf("cpus of node %d", n.ID)] = n.CPUs.String()
		f[fmt.Sprintf("memory of node %d", n.ID)] = fmt.Sprint(int64(n.Memory.Or(0)))
		f[fmt.Sprintf("side caches of node %d", n.ID)] = fmt.Sprint(n.SideCaches)
		for _, o := range m.Nodes {
			if d, ok := m.Distance(n.ID, o.ID).Get(); ok {
				f[fmt.Sprintf("distance %d to %d", n.ID, o.ID)] = fmt.Sprint(d)
			}
		}
	}
	return f
}

func cacheFacts(caches []Cache) string {
	var all []string
	for _, c := range caches {
		kind := ""
		if c.Instr {
			kind = "i"
		}
		all = append(all, fmt.Sprintf("L%d%s %v %v", c.Level, kind, c.CPUs, c.Size))
	}
	return strings.Join(all, "; ")
}

// compareFacts requires every fact of theirs to be ours, apart from these exceptions.
func compareFacts(t *testing.T, who string, ours, theirs, but map[string]string) int {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		want := ours[name]
		if expected, ok := but[name]; ok {
			if want == expected {
				t.Errorf("%s: both say %s; it is no exception any more", name, want)
			}
			want = expected
		}
		if theirs[name] != want {
			t.Errorf("%s: %s has %s, want %s", name, who, theirs[name], want)
		}
	}
	return len(theirs)
}

// compareWriting reads back what WriteHwloc wrote, and what lstopo made of that.
func compareWriting(t *testing.T, m Machine) int {
	t.Helper()
	ours := facts(m)
	var text bytes.Buffer
	but := map[string]string{}
	if err := WriteHwloc(&text, m); err != nil {
		if strings.Contains(err.Error(), "L3Cache") {
			but["llcs"] = "" // 40intel64-4n10c+pci-conflicts: an L3 crosses two packages
		}
		t.Log(err)
	}
	back, err := ParseHwloc(text.Bytes(), m.Origin)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ours.xml")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	lstopo := hwlocReads(t, "-i", path, "--disallowed", "--whole-io")
	compared := 0
	for who, theirs := range map[string]Machine{"our own XML": back, "lstopo's copy of our XML": lstopo} {
		f := facts(theirs)
		if _, ok := but["llcs"]; ok {
			delete(f, "llcs")
		}
		compared += compareFacts(t, who, ours, f, nil)
		compareDevices(t, who, m.Devices, theirs.Devices)
		if !reflect.DeepEqual(theirs.DAX, m.DAX) {
			t.Errorf("%s has dax\n%v, want\n%v", who, theirs.DAX, m.DAX)
		}
	}
	return compared
}

// compareDevices compares what a document keeps. hwloc is built for 16 bits of domain.
func compareDevices(t *testing.T, who string, ours, theirs []Device) {
	t.Helper()
	key := func(d Device) string { return fmt.Sprint(d.Address, d.Class, d.Names, d.Vendor, d.Model, d.Bridges) }
	var a, b []string
	for _, d := range ours {
		if len(d.Address) == len("0000:00:00.0") {
			a = append(a, key(d))
		}
	}
	for _, d := range theirs {
		if len(d.Address) == len("0000:00:00.0") {
			b = append(b, key(d))
		}
	}
	if !slices.Equal(a, b) {
		t.Errorf("%s has devices\n%v, want\n%v", who, b, a)
	}
}

// treeDir is in memory where that is possible: a tree is thousands of files.
func treeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "homenode-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func writeTree(t *testing.T, dir string, files fstest.MapFS) {
	t.Helper()
	made := map[string]bool{}
	for name, f := range files {
		path := filepath.Join(dir, name)
		var err error
		if !made[filepath.Dir(path)] {
			made[filepath.Dir(path)] = true
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil && f.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(string(f.Data), path)
		} else if err == nil {
			err = os.WriteFile(path, f.Data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// parseTree reads a tree on disk, unable to leave it by a link.
func parseTree(t testing.TB, dir, name string) (Machine, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return ParseSysfs(root.FS(), "recorded:"+name)
}

// The whole of `homenode topo` has 50 ms of CPU on the biggest tree.
func BenchmarkParseSysfs256CPUs(b *testing.B) {
	m := Machine{}
	for cpu := range 256 {
		m.CPUs = append(m.CPUs, CPU{ID: cpu, Node: unit.Some(cpu / 32), Online: true})
	}
	tree := benchmarkTree(m)
	dir := b.TempDir()
	for name, f := range tree {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := parseTree(b, dir, "benchmark"); err != nil || len(got.Cores) != 256 || len(got.Nodes) != 8 {
			b.Fatalf("%d cores, %d nodes, %v", len(got.Cores), len(got.Nodes), err)
		}
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		b.Fatal(err)
	}
	ns := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(ns)/1e6/float64(b.N), "cpu-ms/op")
}

// benchmarkTree is the worst case: every CPU is a core with an L2 of its own.
func benchmarkTree(m Machine) fstest.MapFS {
	tree := fstest.MapFS{cpuDir + "/online": file("0-255\n")}
	for node := range 8 {
		tree[nodePath(node, "cpulist")] = file(fmt.Sprintf("%d-%d\n", 32*node, 32*node+31))
		tree[nodePath(node, "meminfo")] = file(fmt.Sprintf("Node %d MemTotal: 1048576 kB\n", node))
		tree[nodePath(node, "distance")] = file("10 20 20 20 20 20 20 20\n")
	}
	for _, c := range m.CPUs {
		first := c.ID / 32 * 32
		put := func(name, text string) { tree[cpuPath(c.ID, name)] = file(text + "\n") }
		put("topology/core_cpus_list", fmt.Sprint(c.ID))
		put("topology/package_cpus_list", fmt.Sprintf("%d-%d", first, first+31))
		for i, cpus := range []string{fmt.Sprint(c.ID), fmt.Sprint(c.ID), fmt.Sprint(c.ID), fmt.Sprintf("%d-%d", first, first+31)} {
			index := fmt.Sprintf("cache/index%d/", i)
			put(index+"level", fmt.Sprint(max(1, i)))
			put(index+"type", []string{"Data", "Instruction", "Unified", "Unified"}[i])
			put(index+"size", "1024K")
			put(index+"shared_cpu_list", cpus)
		}
	}
	return tree
}
