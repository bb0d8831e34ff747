// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// sched is the kernel's text about a thread: pages by node.
func sched(run time.Duration, scans, node int, pages ...int) string {
	text := fmt.Sprintf("x (1, #threads: 2)\n%s\nse.sum_exec_runtime    : %d.%06d\nmm->numa_scan_seq    : %d\ncurrent_node=%d, numa_group_id=0\n",
		strings.Repeat("-", 67), run.Milliseconds(), run%time.Millisecond, scans, node)
	for n, p := range pages {
		text += fmt.Sprintf("numa_faults node=%d task_private=%d task_shared=0 group_private=0 group_shared=0\n", n, p)
	}
	return text
}

func hintFiles(of map[int]string) kerneltest.Files {
	f := kerneltest.Files{"/proc/sys/kernel/numa_balancing": "1\n"}
	for tid, text := range of {
		f["/proc/"+strconv.Itoa(tid)+"/task/"+strconv.Itoa(tid)+"/sched"] = text
	}
	return f
}

// Two threads, one of which uses three times as much CPU time as the other: its half
// of local pages counts three times.
func TestHintFaults(t *testing.T) {
	root := fakeV2(t)
	kerneltest.Write(t, root, hintFiles(map[int]string{10: sched(time.Second, 1, 0, 100, 0), 11: sched(time.Second, 1, 1, 0, 40)}))
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	a := read(t, r).Workloads[0]
	if a.LocalFaults.Known() || !strings.Contains(a.LocalFaults.From, "no CPU time") {
		t.Errorf("one look: %v", a.LocalFaults)
	}
	clock.at = clock.at.Add(10 * time.Second)
	// Thread 10: 100 was halved to 50; 50 and 100 are new. Thread 11: nothing is new,
	// so all of the earlier count is what is known.
	kerneltest.Write(t, root, hintFiles(map[int]string{10: sched(4*time.Second, 2, 0, 100, 50), 11: sched(2*time.Second, 2, 1, 0, 40)}))
	a = read(t, r).Workloads[0]
	// 10: 3 s of 10, half is local; 11: 1 s, all is local (20 are new of 40). 5/8 of 120.
	if a.LocalFaults.Or(0) != 75 || a.RemoteFaults.Or(0) != 45 || a.LocalFaults.How != unit.HowEstimated || a.LocalFaults.From != "NUMA hint faults of 2 of 2 threads" {
		t.Errorf("%v, %v", a.LocalFaults, a.RemoteFaults)
	}
	if v := window.LocalAccessRatio(&a); v.Or(0) != 0.625 || v.How != unit.HowEstimated || !strings.Contains(v.From, "hint faults") {
		t.Errorf("local access ratio: %v", v)
	}
	clock.at = clock.at.Add(hintAge + time.Second)
	kerneltest.Write(t, root, hintFiles(map[int]string{10: sched(8*time.Second, 2, 0, 100, 50), 11: sched(2*time.Second, 2, 1, 0, 40)}))
	if a = read(t, r).Workloads[0]; a.LocalFaults.Known() {
		t.Errorf("no new ones for %v: %v", hintAge, a.LocalFaults)
	}
}

func TestHintFaultsUnknown(t *testing.T) {
	later := map[int]string{10: sched(4*time.Second, 2, 0, 400, 50), 11: sched(2*time.Second, 2, 1, 0, 400)}
	for about, c := range map[string]struct {
		cfg  Config
		more kerneltest.Files
		want string
	}{
		"off in the kernel": {more: kerneltest.Files{"/proc/sys/kernel/numa_balancing": "0\n"}, want: "numa_balancing is off"},
		"tiering only":      {more: kerneltest.Files{"/proc/sys/kernel/numa_balancing": "2\n"}, want: "numa_balancing is off"},
		"off in homenode":   {cfg: Config{Hints: HintsOff}, want: "switched off"},
		"too few":           {more: hintFiles(map[int]string{10: sched(4*time.Second, 1, 0, 3, 0), 11: sched(2*time.Second, 1, 1, 0, 4)}), want: "only 7"},
		"of a bound one":    {more: hintFiles(map[int]string{10: sched(9*time.Second, 1, 0, 0, 0)}), want: "CPU time only"},
		"without the lines": {more: hintFiles(map[int]string{10: "x\n" + strings.Repeat("-", 67) + "\n", 11: ""}), want: "no CPU time"},
	} {
		root := fakeV2(t)
		kerneltest.Write(t, root, hintFiles(map[int]string{10: sched(0, 0, 0, 0, 0), 11: sched(0, 0, 1, 0, 0)}))
		c.cfg.Roots = []string{"/demo/*"}
		r, clock := newFake(t, root, c.cfg)
		read(t, r)
		clock.at = clock.at.Add(10 * time.Second)
		kerneltest.Write(t, root, hintFiles(later))
		kerneltest.Write(t, root, c.more)
		a := read(t, r).Workloads[0]
		if a.LocalFaults.Known() || a.RemoteFaults.Known() || !strings.Contains(a.LocalFaults.From, c.want) {
			t.Errorf("%s: %v, want %q", about, a.LocalFaults, c.want)
		}
	}
}

// Counted accesses are not estimated, unless the configuration wants both.
func TestHintFaultsWhereCounted(t *testing.T) {
	w := window.Workload{LocalLoads: unit.Measured[uint64](1, "x"), RemoteLoads: unit.Measured[uint64](1, "x")}
	if !counted(&w) || counted(&window.Workload{}) || counted(&window.Workload{Traffic: unit.Measured(unit.MiB, "x")}) {
		t.Error("counted is wrong")
	}
}

// A budget of 3 looks a round reaches every thread of 8 workloads in turn.
func TestHintFaultsTakeTurns(t *testing.T) {
	const groups, threads = 8, 4
	files := hintFiles(nil)
	for g := range groups {
		dir, ids := fmt.Sprintf("%s/demo/g%d/", top, g), ""
		for i := range threads {
			tid := 100*(g+1) + i
			ids += strconv.Itoa(tid) + "\n"
			files[fmt.Sprintf("/proc/%d/task/%d/sched", tid, tid)] = sched(time.Second, 0, 0, 100, 0)
		}
		for name, text := range map[string]string{"cgroup.procs": "1\n", "cgroup.threads": ids, "cgroup.events": "populated 1\n", "cpu.stat": "usage_usec 1\n",
			"cpuset.cpus.effective": "0-3\n", "cpuset.mems.effective": "0-1\n"} {
			files[dir+name] = text
		}
	}
	root := fakeV2(t)
	kerneltest.Write(t, root, files)
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/g*"}, HintTasks: 3})
	looks := func() (n int) {
		for _, w := range r.workloads {
			n += len(sensorOf[*hintSensor](t, w).threads)
		}
		return n
	}
	for round := range 3 * groups * threads {
		before := looks()
		clock.at = clock.at.Add(time.Second)
		read(t, r)
		if n := looks(); n > before+3 {
			t.Fatalf("round %d looked at %d threads", round, n-before)
		}
	}
	if n := looks(); n != groups*threads {
		t.Errorf("%d threads were looked at, want %d", n, groups*threads)
	}
}

func TestWaitingThrottledLimit(t *testing.T) {
	root := fakeV2(t)
	kerneltest.Write(t, root, kerneltest.Files{
		top + "/demo/a/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		top + "/demo/a/cpu.stat":     "usage_usec 1000000\nnr_periods 10\nnr_throttled 2\n",
		top + "/demo/a/memory.max":   "max\n", top + "/demo/memory.max": "1048576\n",
	})
	r, clock := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	a := read(t, r).Workloads[0]
	if a.Waiting.Known() || a.Throttled.Known() || a.MemoryLimit != unit.Measured(unit.MiB, "memory.max of /demo") {
		t.Errorf("first: %v, %v, %v", a.Waiting, a.Throttled, a.MemoryLimit)
	}
	clock.at = clock.at.Add(2 * time.Second)
	kerneltest.Write(t, root, kerneltest.Files{
		top + "/demo/a/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=500100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		top + "/demo/a/cpu.stat":     "usage_usec 1000000\nnr_periods 30\nnr_throttled 7\n",
		top + "/demo/a/memory.max":   "4096\n",
	})
	a = read(t, r).Workloads[0]
	if a.Waiting != unit.Measured(unit.Ratio(0.25), "cpu.pressure") || a.Throttled != unit.Measured(unit.Ratio(0.25), "cpu.stat") || a.MemoryLimit.Or(0) != 4096 {
		t.Errorf("second: %v, %v, %v", a.Waiting, a.Throttled, a.MemoryLimit)
	}
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/cpu.max": "max 100000\n", top + "/demo/a/memory.max": "max\n", top + "/demo/memory.max": "max\n"})
	kerneltest.Remove(t, root, top+"/demo/a/cpu.pressure")
	clock.at = clock.at.Add(2 * time.Second)
	sensorOf[*pressureSensor](t, r.workloads["/demo/a"]).file.Close()
	if a = read(t, r).Workloads[0]; a.Waiting.Known() || a.Throttled.Known() || a.MemoryLimit.Known() || a.MemoryLimit.From != noLimit || a.Throttled.From != noLimit {
		t.Errorf("without limits and PSI: %v, %v, %v", a.Waiting, a.Throttled, a.MemoryLimit)
	}
}
