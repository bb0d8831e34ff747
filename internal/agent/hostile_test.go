// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// mostMemory bounds the agent's memory, whatever 10,000 processes of a hostile user do. The
// unit's MemoryMax is larger.
const mostMemory = 64 << 20

// hostileHost has 10,000 processes in 5,000 cgroups. The cgroups' names have 200 bytes that
// are not text. Without memory.numa_stat all numa_maps are read. Some of these have 2 MB,
// in lines of 4 KiB.
func hostileHost() kerneltest.Files {
	const top, cgroups, each = "/sys/fs/cgroup", 5000, 2
	files := hostFiles()
	small := strings.Repeat("7f0000000000 default file=/usr/lib/x anon=3 N0=3 kernelpagesize_kB=4\n", 40)
	var large strings.Builder
	for i := range 500 {
		fmt.Fprintf(&large, "%x default file=/%s mapped=1 N0=1 kernelpagesize_kB=4\n", 0x7f0000000000+i*8192, strings.Repeat("directory/", 400))
	}
	for c := range cgroups {
		dir := fmt.Sprintf("%s/demo/%05d\xff\x1b[2J%s/", top, c, strings.Repeat("\u202ex", 45))
		procs := ""
		for p := range each {
			pid := 1000 + c*each + p
			procs += fmt.Sprintf("%d\n", pid)
			files[fmt.Sprintf("/proc/%d/numa_maps", pid)] = small
			if pid%400 == 0 {
				files[fmt.Sprintf("/proc/%d/numa_maps", pid)] = large.String()
			}
			files[fmt.Sprintf("/proc/%d/cgroup", pid)] = "0::/\n"
			files[fmt.Sprintf("/proc/%d/stat", pid)] = fmt.Sprintf("%d (%s) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n", pid, "\x1b)(\xff x")
		}
		files[dir+"cgroup.procs"], files[dir+"cgroup.threads"] = procs, procs
		files[dir+"cpu.stat"], files[dir+"cgroup.events"] = "usage_usec 1000000\n", "populated 1\n"
		files[dir+"cpuset.cpus"], files[dir+"cpuset.mems"] = "\n", "\n"
		files[dir+"cpuset.cpus.effective"], files[dir+"cpuset.mems.effective"] = "0-3\n", "0-1\n"
	}
	return files
}

// TestMemoryBesideAHostileUser checks that the agent's memory stays below its
// bound.
func TestMemoryBesideAHostileUser(t *testing.T) {
	kerneltest.InMemory(t)
	root := kerneltest.Tree(t, hostileHost())
	runtime.GC()
	debug.FreeOSMemory()
	base, peak, calls := memoryInUse(), uint64(0), 0
	defer StaySmall(int64(base))()
	unix.Interfere = func(string) {
		if calls++; calls%1000 == 0 {
			peak = max(peak, memoryInUse())
		}
	}
	defer func() { unix.Interfere = nil }()
	reader, err := kernel.NewReader(kernel.Config{Root: root, Roots: []string{"/demo/*"}})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := boundAgent(t, reader)
	a.o.Rounds = 3
	a.o.Config.Period, a.o.Config.CalmPeriod = time.Millisecond, time.Millisecond
	if err := a.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if peak = max(peak, memoryInUse()); len(a.status.Workloads) < 2000 || calls < 10000 {
		t.Errorf("%d workloads, %d calls: nothing was tried", len(a.status.Workloads), calls)
	}
	used := peak - min(peak, base)
	if t.Logf("%d MiB at most, and %d that were there before, with %d workloads", used>>20, base>>20, len(a.status.Workloads)); used > mostMemory {
		t.Errorf("%d bytes of memory, at most %d are allowed", used, mostMemory)
	}
}

// memoryInUse is what the heap and the stacks have taken from the kernel.
func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
