// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/procfs"
	"homenode/internal/machine"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// fakeMeminfo is a node of 1 GiB: 64 MiB of 2 MiB pages (numastat -m would show 32
// "MB"), apart from 1 GiB pages.
const fakeMeminfo = `Node 0 MemTotal:       1048576 kB
Node 0 MemFree:         262144 kB
Node 0 SwapCached:        4096 kB
Node 0 Dirty:              512 kB
Node 0 FilePages:       204800 kB
Node 0 Mapped:           10240 kB
Node 0 AnonPages:       307200 kB
Node 0 Shmem:           102400 kB
Node 0 KernelStack:       2048 kB
Node 0 PageTables:        3072 kB
Node 0 SecPageTables:     1024 kB
Node 0 Slab:             81920 kB
Node 0 SReclaimable:     40960 kB
Node 0 SUnreclaim:       40960 kB
Node 0 AnonHugePages:   204800 kB
Node 0 HugePages_Total:    32
Node 0 HugePages_Free:     16
Node 0 HugePages_Surp:      0
`

const fakeNumaMaps = `1000 default file=/usr/bin/app mapped=2 N0=2 kernelpagesize_kB=4
2000 default file=/usr/bin/app anon=3 dirty=3 N1=3 kernelpagesize_kB=4
3000 default heap anon=100 dirty=100 N0=60 N1=40 kernelpagesize_kB=4
4000 bind:1 anon=512 dirty=512 N1=512 kernelpagesize_kB=4
5000 default file=/dev/hugepages/x\040(deleted) huge dirty=3 N0=1 N1=2 kernelpagesize_kB=2048
6000 default file=/memfd:wayland\040(deleted) mapped=5 mapmax=3 N0=5 kernelpagesize_kB=4
7000 default file=/dev/zero\040(deleted) dirty=4 N0=4 kernelpagesize_kB=4
8000 default file=/dev/zero anon=2 dirty=2 N0=2 kernelpagesize_kB=4
9000 default file=/run/x/y mapped=1 N0=1 kernelpagesize_kB=4
a000 default file=/run/disk/y mapped=1 N1=1 kernelpagesize_kB=4
b000 default stack anon=7 dirty=7 N1=7 kernelpagesize_kB=4
c000 default
`

func fakeSnapshot(t *testing.T) Root {
	root := fakeV2(t)
	node := "/sys/devices/system/node/node"
	kerneltest.Write(t, root, kerneltest.Files{
		"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n" +
			"22 1 0:20 / / rw - tmpfs rootfs rw\n23 22 0:21 / /run rw - tmpfs tmpfs rw\n24 23 8:1 / /run/disk rw - ext4 /dev/sda rw\n",
		node + "0/meminfo":  fakeMeminfo,
		node + "0/numastat": "numa_hit 100\nnuma_miss 5\nnuma_foreign 0\ninterleave_hit 1\nlocal_node 90\nother_node 15\n",
		node + "1/numastat": "numa_hit 200\nnuma_miss 0\nnuma_foreign 5\ninterleave_hit 1\nlocal_node 190\nother_node 10\n",
		node + "0/hugepages/hugepages-2048kB/nr_hugepages":         "32\n",
		node + "0/hugepages/hugepages-2048kB/free_hugepages":       "16\n",
		node + "0/hugepages/hugepages-2048kB/surplus_hugepages":    "0\n",
		node + "0/hugepages/hugepages-1048576kB/nr_hugepages":      "0\n",
		node + "0/hugepages/hugepages-1048576kB/free_hugepages":    "0\n",
		node + "0/hugepages/hugepages-1048576kB/surplus_hugepages": "0\n",
		"/proc/zoneinfo":                                "Node 0, zone      DMA\n  pages free     3840\n        low      10\nNode 0, zone   Normal\n        low      20\nNode 1, zone   Normal\n        low      40\n",
		"/proc/vmstat":                                  "nr_free_pages 1\nnuma_pte_updates 10\nnuma_hint_faults 10\nnuma_hint_faults_local 5\nnuma_pages_migrated 1\npgmigrate_fail 0\n",
		"/proc/meminfo":                                 "SwapTotal: 1024 kB\nSwapFree: 512 kB\n",
		"/proc/cpuinfo":                                 "processor : 0\nvendor_id : GenuineIntel\nflags : fpu hypervisor vme\n",
		"/sys/class/dmi/id/sys_vendor":                  "QEMU\n",
		"/proc/sys/kernel/numa_balancing":               "1\n",
		"/proc/sys/vm/zone_reclaim_mode":                "0\n",
		"/sys/kernel/mm/transparent_hugepage/enabled":   "always [madvise] never\n",
		top + "/demo/a/memory.current":                  "1060864\n",
		top + "/demo/a/memory.max":                      "max\n",
		top + "/demo/memory.max":                        "2097152\n",
		top + "/demo/memory.current":                    "2000000\n",
		top + "/demo/memory.numa_stat":                  "anon N0=4096 N1=0\nfile N0=4096 N1=8192\n",
		top + "/demo/a/memory.events":                   "oom 1\noom_kill 1\n",
		top + "/demo/a/memory.stat":                     "anon 1\npgsteal 10\n",
		"/proc/interrupts":                              "      CPU0 CPU1 CPU2 CPU3\n  7:  1 0 0 0  IO-APIC 7-edge  x\n 25:  1 2 3 4  PCI-MSI 1-edge  nvme0q1\nLOC: 1 2 3 4 Local timer\n",
		"/proc/irq/25/effective_affinity_list":          "2\n",
		"/sys/bus/pci/devices/0000:3b:00.0/msi_irqs/25": "msix\n",
		"/sys/bus/pci/devices/0000:3b:00.0/numa_node":   "1\n",
		"/proc/10/comm":                                 "qemu-system-x86\n",
		"/proc/10/stat":                                 stat(10, 100, 0),
		"/proc/10/statm":                                "1000 700 0 0 0 0 0\n",
		"/proc/10/cgroup":                               "0::/demo/a\n",
		"/proc/10/status":                               "Name: x\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t2-3\nMems_allowed_list:\t0-1\n",
		"/proc/10/cmdline":                              "qemu\x00-numa\x00node,memdev=a\x00-numa\x00node,memdev=b\x00-numa\x00dist,src=0\x00",
		"/proc/10/numa_maps":                            fakeNumaMaps,
		"/proc/10/maps":                                 "3000-3800 rw-p 0 00:00 0 [heap]\n4000-4800 rw-p 0 00:00 0\n",
		"/proc/10/task/11/stat":                         strings.Replace(stat(11, 100, 2), "(x)", "(CPU 0/KVM)", 1),
		"/proc/10/task/11/status":                       "Cpus_allowed_list:\t2\nMems_allowed_list:\t0-1\n",
		"/proc/2/comm":                                  "kthreadd\n",
		"/proc/2/statm":                                 "0 0 0 0 0 0 0\n",
		"/proc/2/numa_maps":                             "",
		"/proc/2/stat":                                  "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 4 0 0 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 0 0 0\n",
	})
	return root
}

// snapshoted snapshots a fake tree that changes during the interval.
func snapshoted(t *testing.T, root Root, cfg SnapshotConfig, meanwhile kerneltest.Files) snapshot.Snapshot {
	t.Helper()
	c := &clock{at: time.Unix(1000, 0)}
	cfg.Reader.Root, cfg.Reader.Now = root, c.now
	cfg.Wait = func(_ context.Context, d time.Duration) error {
		c.at = c.at.Add(d)
		kerneltest.Write(t, root, meanwhile)
		return nil
	}
	s, err := NewSnapshotter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	out, err := s.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func everything() SnapshotConfig {
	return SnapshotConfig{Reader: Config{Roots: []string{"/demo/*"}}, Interval: 2 * time.Second,
		Processes: Selection{All: true}, Threads: true, Mappings: true, IRQs: true}
}

var meanwhile = kerneltest.Files{
	"/sys/devices/system/node/node0/numastat": "numa_hit 300\nnuma_miss 15\nnuma_foreign 0\ninterleave_hit 1\nlocal_node 270\nother_node 45\n",
	"/proc/vmstat":                "numa_pte_updates 20\nnuma_hint_faults 30\nnuma_hint_faults_local 15\nnuma_pages_migrated 6\npgmigrate_fail 2\n",
	top + "/demo/a/memory.events": "oom 2\noom_kill 3\n",
	top + "/demo/a/memory.stat":   "anon 1\npgsteal 25\n",
	"/proc/interrupts":            "      CPU0 CPU1 CPU2 CPU3\n  7:  1 0 0 0  IO-APIC 7-edge  x\n 25:  1 12 3 104  PCI-MSI 1-edge  nvme0q1\nLOC: 1 2 3 4 Local timer\n",
	"/proc/10/task/11/stat":       strings.Replace(stat(11, 200, 2), "(x)", "(CPU 0/KVM)", 1),
}

func TestSnapshotNodes(t *testing.T) {
	s := snapshoted(t, fakeSnapshot(t), everything(), meanwhile)
	if len(s.Problems) != 0 || s.Length != 2*time.Second || len(s.Nodes) != 2 {
		t.Fatalf("problems %v, length %v, nodes %v", s.Problems, s.Length, s.Nodes)
	}
	n := s.Nodes[0]
	sum := unit.Bytes(0)
	for name, c := range map[string]struct {
		got  unit.Value[unit.Bytes]
		want unit.Bytes
	}{
		"free": {n.Memory.Free, 256}, "anon": {n.Memory.Anon, 300}, "file": {n.Memory.File, 96}, "shmem": {n.Memory.Shmem, 100},
		"slab": {n.Memory.Slab, 80}, "kernel": {n.Memory.Kernel, 6}, "huge": {n.Memory.Huge, 64}, "other": {n.Memory.Other, 122},
	} {
		if got, ok := c.got.Get(); !ok || got != c.want*unit.MiB {
			t.Errorf("%s: %v, want %d MiB", name, c.got, c.want)
		}
		sum += c.got.Or(0)
	}
	if sum != n.Memory.Total.Or(0) {
		t.Errorf("kinds add up to %v of %v", sum, n.Memory.Total)
	}
	if n.Memory.HugeFree.Or(0) != 32*unit.MiB || len(n.Pools) != 2 || n.LowFree.Or(0) != 30*4096 {
		t.Errorf("huge free %v, pools %v, low %v", n.Memory.HugeFree, n.Pools, n.LowFree)
	}
	if n.Numastat.Hit.Or(0) != 200 || n.Numastat.Miss.Or(0) != 10 || n.Numastat.OtherNode.Or(0) != 30 {
		t.Errorf("numastat: %+v", n.Numastat)
	}
	if b := s.Balancing; b.Mode.Or(0) != 1 || b.HintFaults.Or(0) != 20 || b.PagesMigrated.Or(0) != 5 || b.MigrateFailed.Or(0) != 2 {
		t.Errorf("balancing: %+v", b)
	}
	if s.Settings.THP.Or("") != "madvise" || s.Settings.SwapFree.Or(0) != 512*unit.KiB || s.Hypervisor.Or("?") != "QEMU" || !s.Settings.ZoneReclaim.Known() {
		t.Errorf("settings: %+v, hypervisor %v", s.Settings, s.Hypervisor)
	}
	if n.Traffic.Busy.Known() || s.Nodes[1].Memory.Slab.Known() || s.Nodes[1].Memory.Other.Known() {
		t.Errorf("something unknown became known: %+v", s.Nodes[1])
	}
}

func TestSnapshotGroupsAndIRQs(t *testing.T) {
	s := snapshoted(t, fakeSnapshot(t), everything(), meanwhile)
	g := s.Groups[0]
	if g.ID != "/demo/a" || g.ConfiguredCPUs.String() != "2-3" || !g.ConfiguredMems.IsEmpty() || g.MemoryLimit.Or(0) != 2*unit.MiB ||
		g.MemoryUsed.Or(0) != 1060864 || g.OOMKills.Or(9) != 2 || g.AllocStalls.Or(0) != 15 || !reflect.DeepEqual(g.PIDs, []int{10}) {
		t.Errorf("group: %+v", g)
	}
	by := g.Limited
	if by == nil || by.ID != "/demo" || by.Used.Or(0) != 2000000 || by.File.Or(0) != 12288 || g.MemoryLimit.From != "/demo/memory.max" {
		t.Errorf("limited by %+v, limit %v", by, g.MemoryLimit)
	}
	want := snapshot.IRQ{Number: "25", Name: "PCI-MSI 1-edge nvme0q1", Counts: []uint64{10, 100}, Device: "0000:3b:00.0", Node: unit.Some(1)}
	if len(s.IRQs) != 2 || s.IRQs[1].Allowed.String() != "2" {
		t.Fatalf("IRQs: %+v", s.IRQs)
	}
	if want.Allowed = s.IRQs[1].Allowed; !reflect.DeepEqual(s.IRQs[1], want) {
		t.Errorf("IRQ: %+v, want %+v", s.IRQs[1], want)
	}
}

func TestSnapshotProcess(t *testing.T) {
	s := snapshoted(t, fakeSnapshot(t), everything(), meanwhile)
	if len(s.Processes) != 1 {
		t.Fatalf("processes: %+v", s.Processes)
	}
	p := s.Processes[0]
	const page = 4096
	want := snapshot.ByKind{
		snapshot.Heap: {60 * page, 40 * page}, snapshot.Stack: {0, 7 * page}, snapshot.Anon: {2 * page, 512 * page},
		snapshot.Shared: {10 * page, 0}, snapshot.File: {2 * page, 4 * page}, snapshot.Huge: {2 * unit.MiB, 4 * unit.MiB},
	}
	if !reflect.DeepEqual(p.ByKind, want) {
		t.Errorf("by kind: %v, want %v", p.ByKind, want)
	}
	if len(p.Mappings) != 11 || p.Mappings[2].End != 0x3800 || p.Mappings[2].Access != "rw-p" || p.Mappings[0].End != 0 ||
		p.Mappings[5].Mappers != 3 || p.Mappings[5].Path != "/memfd:wayland (deleted)" || p.Mappings[4].Dirty != 6*unit.MiB || p.Mappings[3].Policy != "bind:1" {
		t.Errorf("mappings: %+v", p.Mappings)
	}
	if len(p.Threads) != 2 || !near(p.CPUByNode[1], 0.5) || !near(p.CPUByNode[0], 0) || p.Threads[1].Allowed.String() != "2" || p.Allowed.String() != "2-3" {
		t.Errorf("threads: %+v, CPU %v", p.Threads, p.CPUByNode)
	}
	if p.Workload != "/demo/a" || p.Guest == nil || p.Guest.VCPUs != 1 || p.Guest.Nodes.Or(0) != 2 || p.Guest.VCPUThreads[0] != 11 {
		t.Errorf("workload %q, guest %+v", p.Workload, p.Guest)
	}
}

// The wire form gives back its source.
func TestSnapshotJSON(t *testing.T) {
	s := snapshoted(t, fakeSnapshot(t), everything(), meanwhile)
	data, err := json.Marshal(s)
	var back snapshot.Snapshot
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	again, err2 := json.Marshal(back)
	if err != nil || err2 != nil || string(again) != string(data) || !strings.Contains(string(data), `"by_kind":{"heap":[245760,163840]`) {
		t.Errorf("%v, %v\n%s\n%s", err, err2, data, again)
	}
}

func TestSnapshotOneReading(t *testing.T) {
	cfg := everything()
	cfg.Interval = 0
	s := snapshoted(t, fakeSnapshot(t), cfg, nil)
	if s.Length != 0 || s.Nodes[0].Numastat.Hit.Known() || s.Balancing.HintFaults.Known() || s.Groups[0].OOMKills.Known() ||
		s.IRQs[0].Counts != nil || s.Processes[0].CPUByNode[0].Known() || !s.Nodes[0].Memory.Free.Known() {
		t.Errorf("one reading: %+v", s)
	}
}

// Each process whose memory is unknown has its own sentence.
func TestSnapshotRefusals(t *testing.T) {
	root := fakeSnapshot(t)
	kerneltest.Write(t, root, kerneltest.Files{
		"/proc/20/comm": "cut\n", "/proc/20/stat": stat(20, 1, 0), "/proc/20/numa_maps": "1000 default anon=1 N0=1\n2000 default ano",
		"/proc/21/comm": "bin\n", "/proc/21/stat": stat(21, 1, 0), "/proc/21/numa_maps": "\x00\x01\xff\n",
		"/proc/22/comm": "far\n", "/proc/22/stat": stat(22, 1, 0), "/proc/22/numa_maps": "1000 default anon=1 N7=1\n",
		"/proc/23/comm": "old\n", "/proc/23/stat": strings.Replace(stat(23, 1, 0), ") S", ") Z", 1), "/proc/23/numa_maps": "",
	})
	cfg := SnapshotConfig{OnlyProcesses: true, Processes: Selection{PIDs: []int{10, 99, 2, 20, 21, 22, 23}}}
	s := snapshoted(t, root, cfg, nil)
	all := strings.Join(s.Problems, "\n")
	for _, want := range []string{
		"process 99 is gone", "process 2 (kthreadd) is a kernel thread: it has no memory of its own", "process 23 (x) has ended",
		`/proc/20/numa_maps: line 2 "2000 default ano"`, `/proc/21/numa_maps: parse /proc/PID/numa_maps: line 1 "\x00\x01\xff"`, "node 7, which is not online",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in:\n%s", want, all)
		}
	}
	if len(s.Problems) != 6 || len(s.Processes) != 4 || !s.Processes[0].Known() || s.Processes[1].Known() {
		t.Errorf("%d problems, processes %+v", len(s.Problems), s.Processes)
	}
	if len(s.Machine.Nodes) != 2 || s.Nodes != nil {
		t.Errorf("only processes were asked for: %+v", s)
	}
}

// A malformed file is a problem that names file, line and text; the rest is shown.
func TestSnapshotMalformed(t *testing.T) {
	root := fakeSnapshot(t)
	kerneltest.Write(t, root, kerneltest.Files{
		"/sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:  12x kB\n",
		"/proc/zoneinfo":                         "Node 0, zone\n  low \x00\n",
		"/proc/interrupts":                       "\xff\xfe",
		"/proc/vmstat":                           "numa_hint_faults many\n",
	})
	s := snapshoted(t, root, everything(), nil)
	all := strings.Join(s.Problems, "\n")
	for _, want := range []string{"node0/meminfo: parse node/meminfo: line 1 \"Node 0 MemTotal:  12x kB\"", "parse /proc/zoneinfo: line 2", `parse /proc/interrupts: line 1 "\xff\xfe"`, "parse /proc/vmstat: line 1"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in:\n%s", want, all)
		}
	}
	if s.Nodes[0].Memory.Free.Known() || !s.Nodes[1].Memory.Free.Known() || len(s.Processes) != 1 || len(s.Groups) != 1 {
		t.Errorf("the rest: %+v", s.Nodes)
	}
}

// Without a cpuset hierarchy there are nodes and processes, and a sentence.
func TestSnapshotWithoutCgroups(t *testing.T) {
	root := fakeSnapshot(t)
	kerneltest.Write(t, root, kerneltest.Files{"/proc/self/mountinfo": "22 1 0:20 / / rw - ext4 /dev/vda rw\n"})
	s := snapshoted(t, root, everything(), meanwhile)
	if len(s.Problems) != 1 || !strings.Contains(s.Problems[0], "CONFIG_CPUSETS") || len(s.Window.Nodes) != 2 || s.Groups == nil || len(s.Groups) != 0 ||
		len(s.Processes) != 1 || !near(s.Processes[0].CPUByNode[1], 0.5) || !s.Nodes[0].Numastat.Hit.Known() {
		t.Errorf("%+v", s)
	}
}

// memory.numa_stat lacks hugetlb pages: without its own controller, a workload's
// are unknown, and never 0.
func TestSnapshotGroupHuge(t *testing.T) {
	root := fakeSnapshot(t)
	if m := snapshoted(t, root, everything(), nil).Groups[0].Memory[1]; m.Huge.Known() || !m.Anon.Known() {
		t.Errorf("without a hugetlb controller: %+v", m)
	}
	kerneltest.Write(t, root, kerneltest.Files{top + "/demo/a/hugetlb.2MB.numa_stat": "total=6291456 N0=2097152 N1=4194304\n"})
	s := snapshoted(t, root, everything(), nil)
	if m := s.Groups[0].Memory; m[0].Huge.Or(0) != 2*unit.MiB || m[1].Huge.Or(0) != 4*unit.MiB {
		t.Errorf("with one: %+v, problems %v", m, s.Problems)
	}
	kerneltest.Write(t, root, kerneltest.Files{"/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": "0\n"})
	if m := snapshoted(t, root, everything(), nil).Groups[0].Memory[1]; m.Huge.Or(9) != 0 {
		t.Errorf("no pages in any pool: %+v", m)
	}
}

// Without nodeN/hugepages the size of the pages is unknown.
func TestSnapshotHugePagesUnknown(t *testing.T) {
	root := fakeSnapshot(t)
	kerneltest.Remove(t, root, "/sys/devices/system/node/node0/hugepages")
	s := snapshoted(t, root, everything(), nil)
	if m := s.Nodes[0].Memory; m.Huge.Known() || m.Other.Known() || !m.Anon.Known() || s.Nodes[1].Memory.Huge.Or(9) != 0 || s.Groups[0].Memory[0].Huge.Known() {
		t.Errorf("%+v, %v", m, s.Nodes[1].Memory.Huge)
	}
}

type fakeProbe struct {
	calls []string
	stop  func()
}

func (p *fakeProbe) Start(context.Context, machine.Machine) error {
	p.calls = append(p.calls, "start")
	return nil
}

func (p *fakeProbe) Stop() {
	p.calls = append(p.calls, "stop")
	if p.stop != nil {
		p.stop()
	}
}

func (p *fakeProbe) Finish(s *snapshot.Snapshot) error {
	p.calls = append(p.calls, "finish")
	s.Samples.Loads = 7
	return errors.New("it lost some")
}

func TestSnapshotProbe(t *testing.T) {
	cfg := everything()
	probe := &fakeProbe{}
	cfg.Sampler = probe
	s := snapshoted(t, fakeSnapshot(t), cfg, nil)
	if !reflect.DeepEqual(probe.calls, []string{"start", "stop", "finish"}) || s.Samples.Loads != 7 || !reflect.DeepEqual(s.Problems, []string{"it lost some"}) {
		t.Errorf("%v, %+v, %v", probe.calls, s.Samples, s.Problems)
	}
}

// The probes stop at the end of the period, not after every process was read.
func TestSnapshotStopsProbesBeforeItLooks(t *testing.T) {
	root := fakeSnapshot(t)
	cfg := everything()
	cfg.Uncore = &fakeProbe{stop: func() { kerneltest.Write(t, root, meanwhile) }}
	if s := snapshoted(t, root, cfg, nil); s.Nodes[0].Numastat.Hit.Or(0) != 200 || !near(s.Processes[0].CPUByNode[1], 0.5) {
		t.Errorf("the counters were read before the probe was stopped: %+v, %v", s.Nodes[0].Numastat, s.Processes[0].CPUByNode)
	}
	var c SnapshotConfig
	probe := &fakeProbe{}
	c.Uncore, c.Interval, c.Reader.Root = probe, time.Second, root
	c.Wait = func(context.Context, time.Duration) error { return errors.New("told to stop") }
	s, err := NewSnapshotter(c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Read(context.Background()); err == nil || !reflect.DeepEqual(probe.calls, []string{"start", "stop"}) {
		t.Errorf("%v, %v", probe.calls, err)
	}
}

// A process that is among the largest only at the second reading may have run for an
// hour; a thread that started in between has not.
func TestSnapshotThreadsWithoutAnEarlierReading(t *testing.T) {
	root := fakeSnapshot(t)
	kerneltest.Write(t, root, kerneltest.Files{
		"/proc/uptime": "5000.25 1.00\n", "/proc/30/comm": "grown\n", "/proc/30/stat": stat(30, 360000, 0), "/proc/30/statm": "9 3 0 0 0 0 0\n",
		"/proc/30/numa_maps": fakeNumaMaps, "/proc/30/task/30/stat": stat(30, 360000, 0),
	})
	cfg := everything()
	cfg.Processes.Max = 1
	young := strings.Replace(stat(31, 100, 2), " 99 1 1", " 500100 1 1", 1)
	s := snapshoted(t, root, cfg, kerneltest.Files{"/proc/30/statm": "9999 9999 0 0 0 0 0\n", "/proc/30/task/31/stat": young})
	if len(s.Processes) != 1 || s.Processes[0].PID != 30 || len(s.Processes[0].Threads) != 2 {
		t.Fatalf("%+v", s.Processes)
	}
	p := s.Processes[0]
	if p.Threads[0].CPUTime.Known() || !near(p.Threads[1].CPUTime, 0.5) || p.CPUByNode[0].Known() {
		t.Errorf("threads %+v, by node %v", p.Threads, p.CPUByNode)
	}
}

// A node that /proc/zoneinfo does not have is unknown, not at 0.
func TestSnapshotZoneinfoLacksANode(t *testing.T) {
	root := fakeSnapshot(t)
	kerneltest.Write(t, root, kerneltest.Files{"/proc/zoneinfo": "Node 0, zone   Normal\n        low      20\n"})
	if s := snapshoted(t, root, everything(), nil); !s.Nodes[0].LowFree.Known() || s.Nodes[1].LowFree.Known() {
		t.Errorf("%v, %v", s.Nodes[0].LowFree, s.Nodes[1].LowFree)
	}
}

// TestSnapshotLive looks at this very host and process.
func TestSnapshotLive(t *testing.T) {
	if _, err := os.Stat("/proc/self/numa_maps"); err != nil {
		t.Skipf("this kernel has no numa_maps: %v", err)
	}
	s, err := NewSnapshotter(SnapshotConfig{Reader: Config{NoPerf: true}, Interval: 100 * time.Millisecond, IRQs: true, Threads: true, Mappings: true,
		Processes: Selection{All: true, Max: 3, PIDs: []int{os.Getpid()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		out, err := s.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("length %v, problems %v, hypervisor %v, %d IRQs", out.Length, out.Problems, out.Hypervisor, len(out.IRQs))
		n := out.Nodes[0]
		if !n.Memory.Other.Known() || !n.Numastat.Hit.Known() || !n.LowFree.Known() || len(out.Processes) < 1 || out.Length < 100*time.Millisecond {
			t.Errorf("node %+v, %d processes", n, len(out.Processes))
		}
		for _, p := range out.Processes {
			if p.PID == os.Getpid() && (p.Total() < unit.MiB || len(p.Threads) == 0 || len(p.Mappings) == 0 || p.Mappings[0].End == 0) {
				t.Errorf("this process: %+v", p)
			}
		}
	}
}

// Folding while reading gives the same as adding up a parsed file.
func FuzzFold(f *testing.F) {
	f.Add([]byte(fakeNumaMaps))
	f.Add([]byte("1000 prefer (many):0 file=/SYSV0 N0=1 N1=2 kernelpagesize_kB=64\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		index := nodePlaces(machine.Machine{Nodes: []machine.Node{{ID: 0}, {ID: 1}}})
		fold := fold{kinds: &kinds{known: true}, index: index, keep: 3, by: newByKind(2)}
		var err, whole error
		var vmas []procfs.VMA
		for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
			if len(line) > 0 && err == nil {
				err = fold.line(i+1, line)
			}
			var l procfs.NumaLine
			if len(line) > 0 && whole == nil {
				whole = l.Parse(i+1, line)
				vmas = append(vmas, l.VMA())
			}
		}
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		var want, got unit.Bytes
		resident := 0
		for _, v := range vmas {
			want += unit.Bytes(v.Pages() * v.PageSize)
			if len(v.Nodes) > 0 {
				resident++
			}
		}
		for _, b := range (snapshot.Process{ByKind: fold.by}).Bytes() {
			got += b
		}
		if whole != nil || got != want || fold.resident != resident || len(fold.mappings) != min(3, resident) {
			t.Fatalf("folded %v, parsed %v; %d of %d; %v", got, want, fold.resident, resident, whole)
		}
	})
}

// Only the biggest mappings are kept, by address, as many as requested.
func TestSnapshotBiggest(t *testing.T) {
	cfg := SnapshotConfig{OnlyProcesses: true, Processes: Selection{PIDs: []int{10}}, Biggest: 3}
	p := snapshoted(t, fakeSnapshot(t), cfg, nil).Processes[0]
	var starts []uint64
	for _, m := range p.Mappings {
		starts = append(starts, m.Start)
	}
	if !reflect.DeepEqual(starts, []uint64{0x3000, 0x4000, 0x5000}) || p.Resident != 11 || p.Mappings[0].End != 0 {
		t.Errorf("%x of %d", starts, p.Resident)
	}
}
