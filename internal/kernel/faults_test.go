// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/window"
)

// interfere has f called before each system call on the kernel's files, with its number.
func interfere(t *testing.T, f func(n int, path string)) {
	n := 0
	unix.Interfere = func(path string) { n++; f(n, path) }
	t.Cleanup(func() { unix.Interfere = nil })
}

// A cgroup that goes away between any two calls of a round is in the window or is not,
// and another one beside it is read as before. The round after that it is forgotten,
// and a new cgroup with the same name begins at zero.
func TestCgroupGoneBetweenCalls(t *testing.T) {
	kerneltest.InMemory(t)
	for n, last := 1, false; !last; n++ {
		root := fakeV2(t)
		beside := kerneltest.Files{}
		for path, content := range fakeFilesV2() {
			if name, ok := strings.CutPrefix(path, top+"/demo/a/"); ok {
				beside[top+"/demo/b/"+name] = content
			}
		}
		kerneltest.Write(t, root, beside)
		r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
		read(t, r)
		clock.at = clock.at.Add(time.Second)
		last = true
		interfere(t, func(call int, path string) {
			if call == n {
				last = false
				kerneltest.Remove(t, root, top+"/demo/a")
			}
		})
		w := read(t, r)
		unix.Interfere = nil
		if _, ok := w.Workload("/demo/b"); !ok || len(w.Workloads) > 2 || len(w.Problems) > 0 {
			t.Fatalf("gone before call %d: %d workloads, problems %q", n, len(w.Workloads), w.Problems)
		}
		clock.at = clock.at.Add(time.Second)
		if !last {
			goneAfter(t, r, clock, root, n)
		}
		r.Close()
		if last && n < 30 { // two workloads with a dozen files or more each, and the machine's
			t.Fatalf("only %d calls in a round: nothing was tried", n)
		}
	}
}

func goneAfter(t *testing.T, r *Reader, clock *clock, root Root, n int) {
	t.Helper()
	if w := read(t, r); len(w.Workloads) != 1 || len(r.workloads) != 1 || len(w.Problems) > 0 {
		t.Fatalf("gone before call %d: the next window has %d workloads, problems %q", n, len(w.Workloads), w.Problems)
	}
	again := kerneltest.Files{}
	for path, content := range fakeFilesV2() {
		if strings.HasPrefix(path, top+"/demo/a/") {
			again[path] = content
		}
	}
	kerneltest.Write(t, root, again)
	clock.at = clock.at.Add(time.Second)
	w := read(t, r)
	if a, ok := w.Workload("/demo/a"); !ok || a.CPU.Known() {
		t.Fatalf("gone before call %d: made again: %+v", n, a.CPU)
	}
}

// The length of a window is by the monotonic clock, however the wall clock was set; the
// recorded time is the time of day. While the machine sleeps neither that clock nor the
// CPU times advance.
func TestWindowLengthIsMonotonic(t *testing.T) {
	root := fakeV2(t)
	r, err := NewReader(Config{Root: root, Roots: []string{"/demo/*"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	read(t, r)
	if !strings.Contains(r.last.String(), " m=") {
		t.Errorf("the reader keeps %v: without its monotonic reading", r.last)
	}
	w := read(t, r)
	if strings.Contains(w.At.String(), " m=") || w.Length <= 0 || w.Length > time.Minute {
		t.Errorf("window at %v, %v long", w.At, w.Length)
	}
}

// A clock that goes backwards anyway, or stands still, makes figures unknown, never
// negative or infinite.
func TestClockGoesBackwards(t *testing.T) {
	for _, step := range []time.Duration{0, -time.Hour, 1} {
		root := fakeV2(t)
		r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
		read(t, r)
		clock.at = clock.at.Add(step)
		kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cpu.stat": "usage_usec 4000000\n"})
		w := read(t, r)
		cpu, known := w.Workloads[0].CPU.Get()
		if step <= 0 && known || known && cpu < 0 || w.Length < 0 {
			t.Errorf("a step of %v: CPU %v, window of %v", step, w.Workloads[0].CPU, w.Length)
		}
	}
}

// A window of a day, as after SIGSTOP: its figures are its average.
func TestVeryLongWindow(t *testing.T) {
	root := fakeV2(t)
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	read(t, r)
	clock.at = clock.at.Add(24 * time.Hour)
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cpu.stat": fmt.Sprintf("usage_usec %d\n", 1_000_000+24*3600*1_500_000)})
	if w := read(t, r); w.Length != 24*time.Hour || !near(w.Workloads[0].CPU, 1.5) {
		t.Errorf("%v, %v", w.Length, w.Workloads[0].CPU)
	}
}

// manyFiles is a tree of n cgroups below /demo.
func manyFiles(n int) kerneltest.Files {
	files := fakeFilesV2()
	for path, content := range fakeFilesV2() {
		name, ok := strings.CutPrefix(path, top+"/demo/a/")
		for i := range n {
			if ok {
				files[fmt.Sprintf("%s/demo/w%04d/%s", top, i, name)] = content
			}
		}
		if ok {
			delete(files, path)
		}
	}
	return files
}

func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(all)
}

// 2,000 cgroups: all are in the window, descriptors stay within the limit, nothing is
// held for those that ended, and memory is some kB for each.
func TestManyCgroups(t *testing.T) {
	kerneltest.InMemory(t)
	const n = 2000
	root := kerneltest.Tree(t, manyFiles(n))
	before := openFiles(t)
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	heap := heapNow()
	for range 3 {
		clock.at = clock.at.Add(10 * time.Second)
		if w := read(t, r); len(w.Workloads) != n || len(w.Problems) > 0 {
			t.Fatalf("%d workloads, problems %q", len(w.Workloads), w.Problems)
		}
	}
	var limit sys.Rlimit
	if err := sys.Getrlimit(sys.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	held, each := openFiles(t)-before, (heapNow()-heap)/n
	t.Logf("%d descriptors of %d, %d bytes each", held, limit.Cur, each)
	if uint64(held) > limit.Cur/4 || each > 32<<10 {
		t.Errorf("%d descriptors of %d that are allowed, %d bytes for each", held, limit.Cur, each)
	}
	kerneltest.Remove(t, root, top+"/demo")
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/": ""})
	if w := read(t, r); len(w.Workloads) != 0 || len(r.workloads) != 0 {
		t.Errorf("%d workloads are left", len(r.workloads))
	}
	if held := openFiles(t) - before; held > 8 {
		t.Errorf("%d descriptors are still held", held)
	}
}

func heapNow() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Few descriptors: with 200 cgroups and room for 64 files all of them are still read,
// and the process has descriptors left for its journal.
func TestFewDescriptors(t *testing.T) {
	kerneltest.InMemory(t)
	const n = 200
	root := kerneltest.Tree(t, manyFiles(n))
	var was sys.Rlimit
	if err := sys.Getrlimit(sys.RLIMIT_NOFILE, &was); err != nil {
		t.Skip(err)
	}
	few := was
	few.Cur = uint64(openFiles(t) + 64)
	if err := sys.Setrlimit(sys.RLIMIT_NOFILE, &few); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = sys.Setrlimit(sys.RLIMIT_NOFILE, &was); unix.BoundLoose() })
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	for i := range 3 {
		clock.at = clock.at.Add(10 * time.Second)
		kerneltestSet(t, root, n, i)
		w := read(t, r)
		if len(w.Workloads) != n || len(w.Problems) > 0 {
			t.Fatalf("%d workloads, problems %.300q", len(w.Workloads), w.Problems)
		}
		checkAllRead(t, w, i)
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatalf("no descriptor is left for others: %v", err)
		}
		f.Close()
	}
}

// kerneltestSet gives every cgroup 0.2 CPUs in a window of 10 s.
func kerneltestSet(t *testing.T, root Root, n, round int) {
	files := kerneltest.Files{}
	for i := range n {
		files[fmt.Sprintf("%s/demo/w%04d/cpu.stat", top, i)] = fmt.Sprintf("usage_usec %d\n", 1_000_000+round*2_000_000)
	}
	kerneltest.Write(t, root, files)
}

func checkAllRead(t *testing.T, w window.Window, round int) {
	t.Helper()
	for _, wl := range w.Workloads {
		if round > 0 && !near(wl.CPU, 0.2) || !wl.AnonByNode[0].Known() || wl.Binding.CPUs.IsEmpty() {
			t.Fatalf("round %d, %s: CPU %v, memory %v, CPUs %v", round, wl.ID, wl.CPU, wl.AnonByNode[0], wl.Binding.CPUs)
		}
	}
}

// A read-only cgroup file system is detected before anything is tried.
func TestReadOnlyCgroups(t *testing.T) {
	for mount, want := range map[string]bool{
		"41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n":                         false,
		"41 31 0:38 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup2 rw\n":                         true,
		"41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 ro\n":                                true,
		"9 1 0:9 / /ro ro - tmpfs x ro\n41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n": false,
	} {
		root := kerneltest.Tree(t, fakeFilesV2().With(kerneltest.Files{"/proc/self/mountinfo": mount}))
		if got := ReadOnlyCgroups(root); got != want {
			t.Errorf("%s: %v", mount, got)
		}
	}
}

// A CPU that comes back while the machine is read, which takes a while after another
// one went, is there in the next window at the latest.
func TestHotplugWhileMachineIsRead(t *testing.T) {
	some := kerneltest.Files{"/sys/devices/system/cpu/online": "0-2\n", "/sys/devices/system/node/node1/cpulist": "2\n"}
	all := kerneltest.Files{"/sys/devices/system/cpu/online": "0-3\n", "/sys/devices/system/node/node1/cpulist": "2-3\n"}
	for n, last := 1, false; !last; n++ {
		root := fakeV2(t)
		r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
		read(t, r)
		kerneltest.Write(t, root, some)
		last = true
		interfere(t, func(call int, _ string) {
			if call == n {
				last = false
				kerneltest.Write(t, root, all)
			}
		})
		read(t, r)
		unix.Interfere = nil
		if last {
			kerneltest.Write(t, root, all)
		}
		clock.at = clock.at.Add(time.Second)
		if w := read(t, r); w.Nodes[1].CPUs != set.FromCPUs(2, 3) {
			t.Fatalf("back before call %d: node 1 has CPUs %v", n, w.Nodes[1].CPUs)
		}
		r.Close()
	}
}
