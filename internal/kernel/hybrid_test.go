// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/unit"
)

// hybrid is fakeV2 with one controller on a v1 hierarchy, where the workload's process
// is in the cgroup at that path.
func hybrid(t *testing.T, controller, path string) Root {
	root := fakeV2(t)
	kerneltest.Write(t, root, kerneltest.Files{
		"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n42 41 0:39 / /v1 rw - cgroup cgroup rw," + controller + "\n",
		"/proc/10/cgroup":      "2:" + controller + ":" + path + "\n0::/demo/a\n",
		"/v1" + path + "/":     "",
	})
	return root
}

// A workload whose processes are in another cgroup of the perf_event hierarchy is not
// counted, and its figures say so.
func TestPerfCgroupElsewhere(t *testing.T) {
	p := &countingPerf{open: map[int]bool{}}
	r, _ := newFake(t, hybrid(t, "perf_event", "/elsewhere"), Config{Roots: []string{"/demo/*"}, Perf: p})
	a := read(t, r).Workloads[0]
	if a.Cycles.Known() || !strings.Contains(a.Cycles.From, "another cgroup of the perf_event hierarchy") || len(p.open) > 0 {
		t.Errorf("cycles %+v, %d events are open", a.Cycles, len(p.open))
	}
}

// With cpu on v2 and cpuacct on v1, the CPU time and the throttling are in two files.
func TestThrottledOnHybrid(t *testing.T) {
	root := hybrid(t, "cpuacct", "/demo/a")
	kerneltest.Write(t, root, kerneltest.Files{
		"/v1/demo/a/cpuacct.usage": "1000000000\n", "/v1/demo/a/cpuacct.usage_percpu": "0 0 0 0\n",
		top + "/demo/a/cpu.stat": "nr_periods 10\nnr_throttled 2\n",
	})
	r, c := newFake(t, root, Config{Roots: []string{"/demo/*"}})
	if a := read(t, r).Workloads[0]; a.Throttled.Known() || a.Throttled.From != firstWindow {
		t.Errorf("first: %+v", a.Throttled)
	}
	c.at = c.at.Add(time.Second)
	kerneltest.Write(t, root, kerneltest.Files{"/v1/demo/a/cpuacct.usage": "1500000000\n", top + "/demo/a/cpu.stat": "nr_periods 30\nnr_throttled 7\n"})
	if a := read(t, r).Workloads[0]; a.Throttled != unit.Measured(unit.Ratio(0.25), "cpu.stat") || !near(a.CPU, 0.5) {
		t.Errorf("second: %+v, CPU %v", a.Throttled, a.CPU)
	}
}
