// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// cpuTime reports what the benchmark's own thread used: on a busy host wall time means
// nothing.
func cpuTime(b *testing.B) func() {
	runtime.LockOSThread()
	before := unix.ThreadCPU()
	return func() {
		b.ReportMetric(float64((unix.ThreadCPU()-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
		runtime.UnlockOSThread()
	}
}

// One look at a thread of the running kernel, which formats the text again: the cost of
// hint faults, times HintTasks a round.
func BenchmarkHintLook(b *testing.B) {
	var buf unix.Buffer
	path := "/proc/" + strconv.Itoa(os.Getpid()) + "/task/" + strconv.Itoa(syscall.Gettid()) + "/sched"
	if _, err := buf.ReadFile(path); err != nil {
		b.Skipf("this kernel shows none: %v", err)
	}
	t := &threadHints{}
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		data, err := buf.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		h, err := procfs.ParseTaskHints(data)
		if err != nil {
			b.Fatal(err)
		}
		t.see(h, time.Unix(1, 0))
	}
}

// The extra cost of a workload in each window: cpu.pressure, the quota in cpu.stat, and
// the memory limits of itself and of its parent.
func BenchmarkWorkloadLimits(b *testing.B) {
	root := kerneltest.Tree(b, fakeFilesV2().With(kerneltest.Files{
		top + "/demo/a/cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=100\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		top + "/demo/a/memory.max":   "max\n", top + "/demo/memory.max": "1048576\n",
	}))
	r, err := NewReader(Config{Root: root, Roots: []string{"/demo/*"}})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	found, err := r.discover()
	if err != nil || len(found) != 1 {
		b.Fatal(found, err)
	}
	r.follow(found)
	w := r.workloads["/demo/a"]
	quota, throttled := sensorOf[*quotaSensor](b, w), sensorOf[*throttledSensor](b, w)
	limit, pressure := sensorOf[*memoryLimitSensor](b, w), sensorOf[*pressureSensor](b, w)
	stat := []byte("usage_usec 1000000\nuser_usec 7\nsystem_usec 8\nnr_periods 10\nnr_throttled 2\nthrottled_usec 9\nnr_bursts 0\nburst_usec 0\n")
	rd, out := r.beginRound(found), window.Workload{}
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		rd.seq++
		t, err := cgroup.ParseThrottling(stat)
		rd.throttling = unit.Some(t)
		if err := errors.Join(err, quota.read(rd, &out), limit.read(rd, &out)); err != nil {
			b.Fatal(err)
		}
		_, _ = throttled.read(rd, &out), pressure.read(rd, &out) // unknown: no period ends, no time passes
	}
}

// A window of 50 workloads: the cost of the loop and all collectors together, most of
// it for the fake tree's files.
func BenchmarkReadWindow(b *testing.B) {
	now := time.Unix(1000, 0)
	r, err := NewReader(Config{Root: kerneltest.Tree(b, manyFiles(50)), Roots: []string{"/demo/*"}, Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	b.ReportAllocs()
	defer cpuTime(b)()
	for b.Loop() {
		now = now.Add(10 * time.Second)
		if w, err := r.Read(b.Context()); err != nil || len(w.Workloads) != 50 {
			b.Fatal(len(w.Workloads), err)
		}
	}
}
