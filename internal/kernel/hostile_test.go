// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
)

// hostileMaps is a numa_maps of one file mapped n times under a path of 4 KiB.
func hostileMaps(n int) string {
	var text strings.Builder
	path := strings.Repeat("directory/", 400)
	for i := range n {
		fmt.Fprintf(&text, "%x default file=/%s mapped=1 N0=1 kernelpagesize_kB=4\n", 0x7f0000000000+i*8192, path)
	}
	return text.String()
}

// A process whose numa_maps has many megabytes takes none of the reader's memory, and
// its figures are unknown, with the reason; the figures of the others are there. Once
// it is small again it is read.
func TestHugeNumaMaps(t *testing.T) {
	kerneltest.InMemory(t)
	root := fakeV2(t)
	kerneltest.Remove(t, root, top+"/demo/a/memory.numa_stat")
	small := "7f0000000000 default anon=3 N0=3 kernelpagesize_kB=4\n"
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.procs": "10\n11\n", "/proc/10/numa_maps": hostileMaps(6000), "/proc/11/numa_maps": small})
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := read(t, r)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("the round took %d bytes of memory", took)
	}
	a := w.Workloads[0]
	for _, v := range append(a.AnonByNode, a.FileByNode...) {
		if v.Known() || !strings.Contains(v.From, "/proc/10/numa_maps") || !strings.Contains(v.From, "too large") {
			t.Errorf("memory: %+v", v)
		}
	}
	if !strings.Contains(strings.Join(w.Problems, "\n"), "too large") || !a.Tasks.Known() {
		t.Errorf("problems %q, tasks %v", w.Problems, a.Tasks)
	}
	kerneltest.Write(t, root, kerneltest.Files{"/proc/10/numa_maps": small})
	clock.at = clock.at.Add(10 * time.Second)
	if a := read(t, r).Workloads[0]; a.AnonByNode[0].Or(0) != 6*4096 {
		t.Errorf("once it is small: %v", a.AnonByNode)
	}
}

// A path that is longer than a line may be, which a user makes folder by folder, hides
// nothing: the memory of its workload is unknown, with the reason. So it is if one process
// may not be read.
func TestUnreadableNumaMaps(t *testing.T) {
	kerneltest.InMemory(t)
	small := "7f0000000000 default anon=3 N0=3 kernelpagesize_kB=4\n"
	for name, c := range map[string]struct{ text, why string }{
		"a path of 200 KiB": {"7f0000000000 default file=/" + strings.Repeat("directory/", 20<<10) + "f mapped=1 N0=1 kernelpagesize_kB=4\n", "longer than 65536 bytes"},
		"no number":         {"7f0000000000 default anon=x N0=3 kernelpagesize_kB=4\n", "malformed"},
	} {
		root := fakeV2(t)
		kerneltest.Remove(t, root, top+"/demo/a/memory.numa_stat")
		kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.procs": "10\n11\n", "/proc/10/numa_maps": small + c.text + small, "/proc/11/numa_maps": small})
		r, _ := newFake(t, root, Config{Roots: []string{"/demo/*"}})
		w := read(t, r)
		for _, v := range append(w.Workloads[0].AnonByNode, w.Workloads[0].FileByNode...) {
			if v.Known() || !strings.Contains(v.From, c.why) {
				t.Errorf("%s: %+v", name, v)
			}
		}
		if !strings.Contains(strings.Join(w.Problems, "\n"), c.why) {
			t.Errorf("%s: problems %q", name, w.Problems)
		}
	}
}

// The cost of all processes together is bounded by workload and by round.
func TestManyNumaMaps(t *testing.T) {
	root := fakeV2(t)
	kerneltest.Remove(t, root, top+"/demo/a/memory.numa_stat")
	text := hostileMaps(100)
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cgroup.procs": "10\n11\n", "/proc/10/numa_maps": text, "/proc/11/numa_maps": text})
	one, two, all := MapsBound{450 << 10, time.Minute}, MapsBound{600 << 10, time.Minute}, MapsBound{8 << 20, time.Minute}
	for name, c := range map[string]struct {
		bounds MapsBounds
		known  bool
	}{"all": {MapsBounds{one, all, all}, true}, "workload": {MapsBounds{one, two, all}, false}, "round": {MapsBounds{one, all, two}, false}} {
		r, _ := newFake(t, root, Config{Roots: []string{"/demo/*"}, Maps: c.bounds})
		if a := read(t, r).Workloads[0]; a.FileByNode[0].Known() != c.known {
			t.Errorf("%s: %v", name, a.FileByNode)
		}
	}
}

// Settings that may be left over from a lost journal are listed, with the command that
// undoes each. Settings on record, or unlike homenode's, are not.
func TestSuspects(t *testing.T) {
	root := fakeV2(t)
	name := "/demo/it's"
	dir := top + name
	kerneltest.Write(t, root, kerneltest.Files{
		dir + "/cgroup.procs": "12\n", dir + "/cgroup.threads": "12\n", dir + "/cpuset.cpus": "2\n", dir + "/cpuset.cpus.effective": "2\n",
		dir + "/cpuset.mems": "1\n", dir + "/cpuset.mems.effective": "1\n", dir + "/cgroup.freeze": "1\n",
	})
	all, err := Suspects(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir = root.Path(top)
	want := []Suspect{
		{"/demo/a", "its cpuset.cpus is 2-3", "echo > '" + dir + "/demo/a/cpuset.cpus'"},
		{name, "its cpuset.mems is 1", "echo > '" + dir + `/demo/it'\''s/cpuset.mems'`},
		{name, "it is frozen", "echo 0 > '" + dir + `/demo/it'\''s/cgroup.freeze'`},
	}
	if !slices.Equal(all, want) {
		t.Errorf("%v", all)
	}
	all, err = Suspects(t.Context(), root, func(id, _, _ string) bool { return id == "/demo/a" })
	if err != nil || !slices.Equal(all, want[1:]) {
		t.Errorf("%v, %v", all, err)
	}
}

// What a closer look reads of one process, and of all together, is bounded: the memory
// of those beyond it is unknown, and that of the others is there.
func TestSnapshotIsBounded(t *testing.T) {
	kerneltest.InMemory(t)
	small := "7f0000000000 default anon=3 N0=3 kernelpagesize_kB=4\n"
	for name, bounds := range map[string]MapsBounds{
		"process": {Process: MapsBound{64 << 10, time.Minute}, Round: MapsBound{8 << 20, time.Minute}},
		"all":     {Process: MapsBound{8 << 20, time.Minute}, Round: MapsBound{64 << 10, time.Minute}},
	} {
		root := fakeSnapshot(t)
		kerneltest.Write(t, root, kerneltest.Files{"/proc/9/numa_maps": small, "/proc/9/stat": stat(9, 1, 0), "/proc/10/numa_maps": hostileMaps(100), "/proc/10/stat": stat(10, 1, 0)})
		s, err := NewSnapshotter(SnapshotConfig{Reader: Config{Root: root}, Processes: Selection{PIDs: []int{9, 10}}, OnlyProcesses: true, Mappings: true, Maps: bounds})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Read(t.Context())
		if err != nil || len(got.Processes) != 2 {
			t.Fatalf("%s: %+v, %v", name, got.Processes, err)
		}
		if p := got.Processes[0]; p.MemoryHow != "numa_maps" {
			t.Errorf("%s: the small one: %+v", name, p)
		}
		if p := got.Processes[1]; !strings.Contains(p.MemoryHow, "too large") || len(p.Mappings) > 0 {
			t.Errorf("%s: the large one: %d mappings, %s", name, len(p.Mappings), p.MemoryHow)
		}
	}
}
