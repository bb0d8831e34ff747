// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const top = "/sys/fs/cgroup"

func fakeV2(t *testing.T) Root { return kerneltest.Tree(t, fakeFilesV2()) }

func fakeFilesV2() kerneltest.Files {
	return kerneltest.TwoNodes().With(kerneltest.Files{
		"/proc/self/mountinfo":                "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		top + "/cgroup.controllers":           "cpuset cpu memory\n",
		top + "/cpuset.cpus.effective":        "0-3\n",
		top + "/cpuset.mems.effective":        "0-1\n",
		top + "/demo/cpuset.cpus.effective":   "0-3\n",
		top + "/demo/cpuset.mems.effective":   "0-1\n",
		top + "/demo/a/cgroup.procs":          "10\n",
		top + "/demo/a/cgroup.threads":        "10\n11\n",
		top + "/demo/a/cgroup.events":         "populated 1\n",
		top + "/demo/a/cpu.stat":              "usage_usec 1000000\n",
		top + "/demo/a/cpu.max":               "200000 100000\n",
		top + "/demo/a/memory.numa_stat":      "anon N0=1048576 N1=0\nfile N0=4096 N1=8192\n",
		top + "/demo/a/cpuset.cpus":           "2-3\n",
		top + "/demo/a/cpuset.cpus.effective": "2-3\n",
		top + "/demo/a/cpuset.mems":           "\n",
		top + "/demo/a/cpuset.mems.effective": "0-1\n",
		"/proc/10/numa_maps":                  "1000 default anon=90 N0=90\n2000 bind:1 anon=10 N1=10\n",
		"/proc/10/task/10/stat":               stat(10, 100, 0),
		"/proc/11/task/11/stat":               stat(11, 100, 2),
	})
}

func stat(tid, ticks, cpu int) string {
	return strconv.Itoa(tid) + " (x) S 1 1 1 0 -1 0 0 0 0 0 " + strconv.Itoa(ticks) + " 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 " + strconv.Itoa(cpu) + " 0\n"
}

// clock advances by a second on demand.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newFake(t *testing.T, root Root, cfg Config) (*Reader, *clock) {
	t.Helper()
	c := &clock{at: time.Unix(1000, 0)}
	cfg.Root, cfg.Now = root, c.now
	r, err := NewReader(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, c
}

func read(t *testing.T, r *Reader) window.Window {
	t.Helper()
	w, err := r.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// sensorOf is a workload's sensor of that type.
func sensorOf[S sensor](t testing.TB, w *workload) S {
	t.Helper()
	for _, s := range w.sensors {
		if s, ok := s.(S); ok {
			return s
		}
	}
	t.Fatalf("%s has no such sensor", w.ID)
	panic("not reached")
}

// collectorOf is a reader's collector of that type.
func collectorOf[C collector](t testing.TB, r *Reader) C {
	t.Helper()
	for _, c := range r.collectors {
		if c, ok := c.collector.(C); ok {
			return c
		}
	}
	t.Fatal("there is no such collector")
	panic("not reached")
}

func near(v unit.Value[float64], want float64) bool {
	got, ok := v.Get()
	return ok && math.Abs(got-want) < 1e-9
}

func TestReadV2(t *testing.T) {
	root := fakeV2(t)
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	w := read(t, r)
	if len(w.Workloads) != 1 || w.Workloads[0].CPU.Known() || w.Nodes[0].CPUBusy.Known() || w.Length != 0 {
		t.Fatalf("the first window knows too much: %+v", w)
	}
	clock.at = clock.at.Add(2 * time.Second)
	kerneltest.Write(t, root, kerneltest.Files{
		top + "/demo/a/cpu.stat": "usage_usec 4000000\n",
		"/proc/stat":             "cpu0 50 0 0 50 0 0 0\ncpu1 0 0 0 100 0 0 0\ncpu2 100 0 0 0 0 0 0\ncpu3 100 0 0 0 0 0 0\n",
		"/proc/10/task/10/stat":  stat(10, 150, 0),
		"/proc/11/task/11/stat":  stat(11, 200, 2),
	})
	w = read(t, r)
	a := w.Workloads[0]
	if w.Length != 2*time.Second || !near(w.Nodes[0].CPUBusy, 0.5) || !near(w.Nodes[1].CPUBusy, 2) || w.Nodes[1].Free.Or(0) != 256*unit.MiB {
		t.Errorf("nodes: %+v", w.Nodes)
	}
	if !near(a.CPU, 1.5) || !near(a.Quota, 2) || a.Tasks.Or(0) != 2 || a.Owner != "none" {
		t.Errorf("workload: %+v", a)
	}
	if !near(a.CPUByNode[0], 0.5) || !near(a.CPUByNode[1], 1) || a.CPUByNode[0].How != unit.HowEstimated {
		t.Errorf("CPU by node: %v", a.CPUByNode)
	}
	if a.AnonByNode[0].Or(0) != unit.MiB || a.FileByNode[1].Or(0) != 8*unit.KiB || a.AnonByNode[0].How != unit.HowMeasured {
		t.Errorf("memory: %v %v", a.AnonByNode, a.FileByNode)
	}
	if a.LocalLoads.Known() || !strings.Contains(a.LocalLoads.From, "recorded") {
		t.Errorf("loads: %v", a.LocalLoads)
	}
	b := a.Binding
	if b.CPUs != set.FromCPUs(2, 3) || b.Mems.String() != "0-1" || !b.PinnedCPUs || b.OursCPUs || !b.PinnedMems || !strings.Contains(b.PinnedWhy, "bind:1") {
		t.Errorf("binding: %+v", b)
	}
	if len(w.Problems) != 0 || r.CPUTime() <= 0 {
		t.Errorf("problems: %v, CPU time %v", w.Problems, r.CPUTime())
	}
}

func TestOursIsNotPinned(t *testing.T) {
	root := fakeV2(t)
	r, _ := newFake(t, root, Config{Roots: []string{"/demo/*"}, Ours: func(id, file, value string) bool {
		return id == "/demo/a" && file == "cpuset.cpus" && value == "2-3"
	}})
	if b := read(t, r).Workloads[0].Binding; !b.OursCPUs || b.PinnedCPUs || b.OursMems {
		t.Errorf("binding: %+v", b)
	}
}

// A setting that equals the parent's, as every v1 cpuset does and an equivalent restore
// leaves it, pins nothing; and without the controller there is nothing to pin.
func TestEqualToParentIsNotPinned(t *testing.T) {
	root := fakeV2(t)
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cpuset.cpus": "0-3\n", top + "/demo/a/cpuset.cpus.effective": "0-3\n"})
	r, _ := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	if b := read(t, r).Workloads[0].Binding; b.PinnedCPUs || b.CPUs.Len() != 4 {
		t.Errorf("binding: %+v", b)
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems", "cpuset.cpus.effective", "cpuset.mems.effective"} {
		kerneltest.Remove(t, root, top+"/demo/a/"+f)
	}
	r, _ = newFake(t, root, Config{Roots: []string{"/demo/*"}})
	if b := read(t, r).Workloads[0].Binding; b.PinnedCPUs || b.CPUs.Len() != 4 || b.Mems.Len() != 2 {
		t.Errorf("without the controller: %+v", b)
	}
}

func TestNumaMapsWhereNoNumaStat(t *testing.T) {
	root := fakeV2(t)
	kerneltest.Remove(t, root, top+"/demo/a/memory.numa_stat")
	r, _ := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	a := read(t, r).Workloads[0]
	if a.AnonByNode[0].Or(0) != 90*4096 || a.AnonByNode[1].Or(0) != 10*4096 || a.FileByNode[0].Or(1) != 0 || !strings.HasPrefix(a.AnonByNode[0].From, "numa_maps") {
		t.Errorf("memory: %v %v", a.AnonByNode, a.FileByNode)
	}
}

func TestVanishedWorkloadIsLeftOut(t *testing.T) {
	root := fakeV2(t)
	r, _ := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	read(t, r)
	w := r.workloads["/demo/a"]
	kerneltest.Remove(t, root, top+"/demo/a")
	w.close() // on a kernel, the open file returns ENODEV and is opened again
	if _, err := r.readWorkload(r.beginRound(nil), w); !errors.Is(err, ErrGone) {
		t.Errorf("reading it: %v", err)
	}
	if w := read(t, r); len(w.Workloads) != 0 || len(w.Problems) != 0 || len(r.workloads) != 0 {
		t.Errorf("window: %+v", w)
	}
}

func TestCancelled(t *testing.T) {
	r, _ := newFake(t, fakeV2(t), Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestLive reads this very host, and a spinning process in a cpuset of its own if one
// can be made.
func TestLive(t *testing.T) {
	r, err := NewReader(Config{})
	if err != nil {
		t.Skipf("this host cannot be read: %v", err)
	}
	defer r.Close()
	id, pid := liveCgroup(t, r)
	read(t, r)
	time.Sleep(300 * time.Millisecond)
	w := read(t, r)
	t.Logf("problems: %v; cost %v for 2 windows", w.Problems, r.CPUTime())
	wl, ok := w.Workload(id)
	if !ok {
		t.Fatalf("workload %s (pid %d) is not in %+v", id, pid, w.Workloads)
	}
	t.Logf("%+v", wl)
	if wl.Tasks.Or(0) < 1 || wl.Binding.CPUs.IsEmpty() || wl.Binding.Mems.IsEmpty() || !w.Nodes[0].Memory.Known() {
		t.Errorf("workload %+v, nodes %+v", wl, w.Nodes)
	}
	sum := 0.0
	for _, v := range wl.CPUByNode {
		sum += v.Or(0)
	}
	if sum <= 0 || sum > 1.5 { // the host decides how much it gets
		t.Errorf("a spinner used %v CPUs by node %v", sum, wl.CPUByNode)
	}
}

// liveCgroup puts a spinning process into the same new cgroup of the cpuset and
// the perf_event hierarchy.
func liveCgroup(t *testing.T, r *Reader) (string, int) {
	id := "/homenode-test-" + strconv.Itoa(os.Getpid())
	spin := exec.Command("sh", "-c", "while :; do :; done")
	if err := spin.Start(); err != nil {
		t.Skipf("no process to look at: %v", err)
	}
	var dirs []string
	t.Cleanup(func() {
		spin.Process.Kill()
		spin.Wait()
		for _, d := range dirs {
			os.Remove(d)
		}
	})
	for i, h := range []string{r.layout.Cpuset.Mount, r.layout.Perf.Mount} {
		dir := filepath.Join(h, id)
		if h == "" || i > 0 && h == r.layout.Cpuset.Mount {
			continue
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("no cgroup can be made here: %v", err)
		}
		dirs = append(dirs, dir)
		for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
			if data, err := os.ReadFile(filepath.Join(h, f)); err == nil && i == 0 {
				_ = os.WriteFile(filepath.Join(dir, f), data, 0o644)
			}
		}
		if err := unix.WriteFile(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(spin.Process.Pid)); err != nil {
			t.Skipf("no process can be put into %s: %v", dir, err)
		}
	}
	return id, spin.Process.Pid
}

// sleepingPerf opens everything and counts nothing but the clock.
type sleepingPerf struct{ reads *int }

func (sleepingPerf) OpenDir(string) (int, error) { return 3, nil }
func (sleepingPerf) Close(int)                   {}
func (sleepingPerf) Open(*sys.PerfEventAttr, int, int, int) (int, error) {
	return 4, nil
}
func (p sleepingPerf) Read(_ int, words []uint64) (int, error) {
	*p.reads++
	ns := uint64(*p.reads) * uint64(100*time.Millisecond)
	clear(words)
	words[0], words[1], words[2], words[len(words)-1] = uint64(len(words)-3), ns, ns, ns
	return len(words), nil
}

// A PMU that is asleep (the lab's model is off) has no counts; zero would be wrong.
func TestSleepingPMU(t *testing.T) {
	root := fakeV2(t)
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}, Perf: sleepingPerf{new(int)}})
	read(t, r)
	clock.at = clock.at.Add(time.Second)
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cpu.stat": "usage_usec 1800000\n"})
	a := read(t, r).Workloads[0]
	if a.Cycles.Known() || !strings.Contains(a.Cycles.From, "model off") || !near(a.CPUByNode[1], 0.8) || a.CPUByNode[1].How != unit.HowMeasured {
		t.Errorf("cycles %v, CPU by node %v", a.Cycles, a.CPUByNode)
	}
}

// A kernel without cpuset is refused at once, with the remedy.
func TestNoCpuset(t *testing.T) {
	for about, files := range map[string]kerneltest.Files{
		"no cgroups":            {"/proc/self/mountinfo": "22 1 0:20 / / rw - ext4 /dev/vda rw\n"},
		"v2 without controller": {"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", top + "/cgroup.controllers": "cpu memory\n"},
	} {
		_, err := NewReader(Config{Root: kerneltest.Tree(t, kerneltest.TwoNodes().With(files))})
		if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), "CONFIG_CPUSETS") {
			t.Errorf("%s: %v", about, err)
		}
	}
}
