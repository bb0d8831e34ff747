// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// scenario is a situation, and what one rule finds in it.
type scenario struct {
	name  string
	rule  string
	nodes int // 0 is 2
	make  func(s *snapshot.Snapshot)

	quiet   bool     // the rule finds nothing, and could judge
	skipped string   // part of why it could not judge
	subject string   // of the finding
	cost    float64  // CPUs' worth; 0 is unknown or not checked
	want    []string // in title, evidence, risk
	command []string // in the commands
	absent  []string // from the commands
	remedy  string   // part of it
	after   string   // part of what the commands will not change; better: the verdict is better
	decides bool     // the verdict
}

const better = "better"

var scenarios = slices.Concat(memoryScenarios, accessScenarios)

// memoryScenarios are those of rules about where the memory of a workload is.
var memoryScenarios = []scenario{
	// page-cache-fills-node
	{
		name: "cache takes node 0, its workload lands on node 1", rule: "page-cache-fills-node",
		make: func(s *snapshot.Snapshot) {
			fill(s, 0, 5*gib, 80*mib)
			keep(s, 0, 256*mib, 768*mib)
			far(s, 0, 75)
			s.Window.Workloads[1].FileByNode = knownAll(4*gib, 0*gib)
			s.Groups[1].MemoryUsed = known(5 * gib)
		},
		subject: "0", cost: 0.5 * 0.75 * 0.66 / (0.25 + 0.75*1.66), want: []string{"62.5% of 8 GiB", "80 MiB", "64 MiB", "/w0", "node 1 75.0%"},
		command: []string{"/sys/devices/system/node/node0/reclaim", "/sys/fs/cgroup/w1/memory.reclaim", "drop_caches\nhomenode migrate --cgroup /w0 --to 0"},
		absent:  []string{"memory.high", "migrate --cgroup /w1"}, remedy: "bring home what went elsewhere",
	},
	{
		name: "cache takes node 1, allocations fall over", rule: "page-cache-fills-node",
		make: func(s *snapshot.Snapshot) {
			fill(s, 1, 6*gib, 70*mib)
			s.Nodes[1].Numastat.Foreign = known[uint64](50000)
		},
		subject: "1", want: []string{"5,000 pages/s"}, command: []string{"node1/reclaim"},
	},
	{name: "cache fills it, no workload loses by it", rule: "page-cache-fills-node", make: func(s *snapshot.Snapshot) { fill(s, 0, 5*gib, 80*mib) }, quiet: true},
	{name: "full of programs, not of cache", rule: "page-cache-fills-node", make: func(s *snapshot.Snapshot) {
		fill(s, 0, 1*gib, 80*mib)
		s.Nodes[0].Numastat.Foreign = known[uint64](50000)
	}, quiet: true},
	{name: "cache, and memory is free", rule: "page-cache-fills-node", make: func(s *snapshot.Snapshot) {
		fill(s, 0, 5*gib, 1*gib)
		s.Nodes[0].Numastat.Foreign = known[uint64](50000)
	}, quiet: true},
	{name: "displaced because it may not use the node", rule: "page-cache-fills-node", make: func(s *snapshot.Snapshot) {
		fill(s, 0, 5*gib, 80*mib)
		keep(s, 0, 0, 1*gib)
		bound(s, 0, nodeCPUs(s, 0), 1)
	}, quiet: true},
	{name: "no watermarks", rule: "page-cache-fills-node", make: func(s *snapshot.Snapshot) {
		fill(s, 0, 5*gib, 80*mib)
		s.Nodes[0].LowFree = gone[unit.Bytes]()
	}, skipped: "watermarks"},
	{name: "no numa_foreign", rule: "page-cache-fills-node", make: func(s *snapshot.Snapshot) {
		fill(s, 0, 5*gib, 80*mib)
		s.Nodes[0].Numastat = snapshot.Numastat{}
	}, skipped: "no numa_foreign"},

	// first-touch
	{
		name: "one thread touched all, threads on both nodes", rule: "first-touch",
		make: func(s *snapshot.Snapshot) {
			run(s, 0, 1, 1)
			keep(s, 0, 2*gib, 0)
			far(s, 0, 50)
			s.Samples.Places[0] = snapshot.Place{
				PID: 100, Workload: "/w0", Name: "load", Mapping: "anon 7f00", Loads: []uint64{500, 500}, Remote: []uint64{0, 480}, Stores: []uint64{1, 1},
				Functions: []snapshot.Function{{Name: "sum_rows", Samples: 480}},
			}
		},
		subject: "100", cost: 1 * 0.5 * 0.66 / (0.5 + 0.5*1.66), want: []string{"100.0% is on node 0", "node 1 50.0%", "sum_rows", "anon 7f00", "default"},
		command: []string{"numactl --interleave=0-1 -- COMMAND…  # in place of load, PID 100 of /w0"}, remedy: "the command line of load (100)",
		after: "about 50.0% of its reads are remote, and 50.0% are now",
	},
	{
		name: "two thirds of its threads are on the other node", rule: "first-touch",
		make:    func(s *snapshot.Snapshot) { run(s, 0, 0.7, 1.3); keep(s, 0, 2*gib, 0); far(s, 0, 65) },
		subject: "100", command: []string{"--interleave=0-1"}, after: better,
	},
	{name: "its threads run where the memory is", rule: "first-touch", make: func(s *snapshot.Snapshot) { run(s, 0, 1.8, 0.2); keep(s, 0, 2*gib, 0) }, quiet: true},
	{name: "99.7 % of its time is on one node: its memory went elsewhere", rule: "first-touch", make: func(s *snapshot.Snapshot) {
		run(s, 0, 1.994, 0.006)
		keep(s, 0, 0, 2*gib)
		far(s, 0, 99)
	}, quiet: true},
	{
		name: "and a node that it runs on has no memory left", rule: "first-touch",
		make: func(s *snapshot.Snapshot) {
			run(s, 0, 1, 1)
			keep(s, 0, 2*gib, 0)
			fill(s, 1, 5*gib, 80*mib)
		},
		subject: "100", want: []string{"Or node 1 had no memory left"}, command: []string{"--interleave=0-1"},
	},
	{name: "spread over both nodes", rule: "first-touch", make: func(s *snapshot.Snapshot) { run(s, 0, 1, 1); keep(s, 0, 1*gib, 500*mib) }, quiet: true},
	{name: "bound there on purpose", rule: "first-touch", make: func(s *snapshot.Snapshot) {
		run(s, 0, 1, 1)
		s.Processes[0].Mappings[0].Policy = "bind:0"
	}, quiet: true},
	{name: "only that node is allowed", rule: "first-touch", make: func(s *snapshot.Snapshot) {
		run(s, 0, 1, 1)
		s.Processes[0].Mems = set.FromNodes(0)
	}, quiet: true},
	{name: "too little memory to speak of", rule: "first-touch", make: func(s *snapshot.Snapshot) { run(s, 0, 1, 1); keep(s, 0, 1*mib, 0) }, quiet: true},
	{name: "idle", rule: "first-touch", make: func(s *snapshot.Snapshot) { run(s, 0, 0.01, 0.01) }, quiet: true},
	{name: "no numa_maps", rule: "first-touch", make: func(s *snapshot.Snapshot) {
		run(s, 0, 1, 1)
		s.Processes[0].Mappings, s.Processes[0].ByKind, s.Processes[0].MemoryHow = nil, [snapshot.NKinds][]unit.Bytes{}, "another user's"
	}, skipped: "another user's"},
	{name: "no CPU time", rule: "first-touch", make: func(s *snapshot.Snapshot) { s.Processes[0].CPUByNode = nil }, skipped: "no CPU time"},
	{name: "no processes", rule: "first-touch", make: func(s *snapshot.Snapshot) { s.Processes = nil }, skipped: "no process was looked at"},

	// allocation-fallback
	{
		name: "what went elsewhere is brought home", rule: "allocation-fallback",
		make: func(s *snapshot.Snapshot) {
			fill(s, 0, 500*mib, 70*mib)
			s.Nodes[0].Numastat.Foreign = known[uint64](100000)
			keep(s, 0, 200*mib, 800*mib)
		},
		subject: "0", command: []string{"homenode migrate --cgroup /w0 --to 0"}, remedy: "Then bring home",
	},
	{
		name: "full of programs that live there", rule: "allocation-fallback",
		make: func(s *snapshot.Snapshot) {
			fill(s, 0, 10*mib, 70*mib)
			s.Nodes[0].Numastat.Foreign = known[uint64](100000)
		},
		subject: "0", command: []string{"cat /sys/devices/system/node/node0/meminfo"}, absent: []string{"echo"}, after: "hardly any page cache",
	},
	{
		name: "node 0 falls over to node 1", rule: "allocation-fallback",
		make: func(s *snapshot.Snapshot) {
			fill(s, 0, 500*mib, 70*mib)
			s.Nodes[0].Numastat.Foreign, s.Nodes[1].Numastat.Miss = known[uint64](100000), known[uint64](100000)
			keep(s, 1, 2*gib, 0) // the stranger
			run(s, 1, 0, 1)
		},
		subject: "0", want: []string{"10,000 pages/s", "node 1 10,000", "private memory of processes"}, command: []string{"migratepages 101 0 1"}, after: better,
	},
	{
		name: "the stranger may not go to the nearest node", rule: "allocation-fallback", nodes: 3,
		make: func(s *snapshot.Snapshot) {
			fill(s, 0, 500*mib, 70*mib)
			s.Nodes[0].Numastat.Foreign = known[uint64](100000)
			keep(s, 1, 2*gib, 0, 0)
			bound(s, 1, nodeCPUs(s, 1), 0, 2)
			s.Machine.Distances[0][2] = unit.Some(31)
			s.Groups[1].PIDs, s.Window.Workloads[1].Owner = nil, "containerd"
		},
		subject: "0", command: []string{"echo 2 > /sys/fs/cgroup/w1/cpuset.mems"}, remedy: "belongs to containerd",
	},
	{name: "a few pages", rule: "allocation-fallback", make: func(s *snapshot.Snapshot) { s.Nodes[0].Numastat.Foreign = known[uint64](2000) }, quiet: true},
	{name: "many, but few of those wanted", rule: "allocation-fallback", make: func(s *snapshot.Snapshot) {
		s.Nodes[0].Numastat.Foreign, s.Nodes[0].Numastat.Hit = known[uint64](5000), known[uint64](1e7)
	}, quiet: true},
	{name: "no counter", rule: "allocation-fallback", make: func(s *snapshot.Snapshot) { s.Nodes[0].Numastat.Foreign = gone[uint64]() }, skipped: "no numa_foreign"},

	// balancing-thrash
	{
		name: "pages chase threads", rule: "balancing-thrash",
		make: func(s *snapshot.Snapshot) {
			s.Balancing = snapshot.Balancing{
				Mode: known(1), PTEUpdates: known[uint64](2e6), HintFaults: known[uint64](1e6), HintLocal: known[uint64](4e5), PagesMigrated: known[uint64](5e5), MigrateFailed: known[uint64](0),
			}
		},
		// 50,000 pages/s = 0.19 GiB/s × 0.69 + 100,000 faults × 1 µs + 200,000 entries × 50 ns
		cost: 0.1907*0.69 + 0.1 + 0.01, want: []string{"40.0%", "50,000 pages/s"}, command: []string{"sysctl kernel.numa_balancing=0"},
	},
	{name: "it has converged", rule: "balancing-thrash", make: func(s *snapshot.Snapshot) {
		s.Balancing.HintFaults, s.Balancing.HintLocal, s.Balancing.PagesMigrated = known[uint64](1e6), known[uint64](9e5), known[uint64](5e5)
	}, quiet: true},
	{name: "it is cheap", rule: "balancing-thrash", make: func(s *snapshot.Snapshot) {
		s.Balancing.HintFaults, s.Balancing.HintLocal = known[uint64](2000), known[uint64](100)
	}, quiet: true},
	{name: "it is off", rule: "balancing-thrash", make: func(s *snapshot.Snapshot) { s.Balancing = snapshot.Balancing{Mode: known(0)} }, quiet: true},
	{name: "mode unknown", rule: "balancing-thrash", make: func(s *snapshot.Snapshot) { s.Balancing.Mode = gone[int]() }, skipped: "unknown"},
	{name: "no counters", rule: "balancing-thrash", make: func(s *snapshot.Snapshot) { s.Balancing.HintFaults = gone[uint64]() }, skipped: "no counters"},

	// balancing-fights-binding
	{
		name: "a cpuset keeps pages away", rule: "balancing-fights-binding",
		make: func(s *snapshot.Snapshot) {
			s.Balancing.HintFaults, s.Balancing.HintLocal, s.Balancing.MigrateFailed = known[uint64](1e6), known[uint64](1e5), known[uint64](1e5)
			bound(s, 0, nodeCPUs(s, 0), 1)
			s.Window.Workloads[0].Owner = "libvirt"
		},
		remedy: "belongs to libvirt", subject: "/w0", cost: 0.1, want: []string{"node 0", "node 1", "10.0%"}, command: []string{"echo 0 > /sys/fs/cgroup/w0/cpuset.mems", "numa_balancing=0"},
	},
	{
		name: "a policy keeps pages away", rule: "balancing-fights-binding",
		make: func(s *snapshot.Snapshot) {
			s.Balancing.HintFaults, s.Balancing.HintLocal = known[uint64](1e6), known[uint64](1e5)
			keep(s, 0, 0, 1*gib)
			s.Processes[0].Mappings[0].Policy = "bind=static:1"
		},
		subject: "100", want: []string{"load (100)"}, command: []string{"migratepages 100 1 0"},
	},
	{name: "bound where it runs", rule: "balancing-fights-binding", make: func(s *snapshot.Snapshot) {
		s.Balancing.HintFaults, s.Balancing.HintLocal = known[uint64](1e6), known[uint64](1e5)
		bound(s, 0, nodeCPUs(s, 0), 0)
	}, quiet: true},
	{name: "bound apart, balancing off", rule: "balancing-fights-binding", make: func(s *snapshot.Snapshot) {
		s.Balancing.Mode = known(0)
		bound(s, 0, nodeCPUs(s, 0), 1)
	}, quiet: true},
	{name: "bound apart, hardly any faults", rule: "balancing-fights-binding", make: func(s *snapshot.Snapshot) { bound(s, 0, nodeCPUs(s, 0), 1) }, quiet: true},
	{name: "mode unknown", rule: "balancing-fights-binding", make: func(s *snapshot.Snapshot) { s.Balancing.Mode = gone[int]() }, skipped: "unknown"},

	// cpuset-apart
	{
		name: "CPUs on node 0, memory on node 1", rule: "cpuset-apart",
		make:    func(s *snapshot.Snapshot) { bound(s, 0, nodeCPUs(s, 0), 1); keep(s, 0, 0, 1*gib); far(s, 0, 100) },
		subject: "/w0", cost: 0.5 * 0.66 / 1.66, want: []string{"CPUs 0, memory 1", "100.0%"}, command: []string{"echo 0 > /sys/fs/cgroup/w0/cpuset.mems"},
	},
	{
		name: "half of its CPUs have no memory", rule: "cpuset-apart",
		make:    func(s *snapshot.Snapshot) { bound(s, 0, nodeCPUs(s, 0, 1), 0); run(s, 0, 1, 1); far(s, 0, 50) },
		subject: "/w0", want: []string{"partly"}, command: []string{"echo 0-1 > /sys/fs/cgroup/w0/cpuset.mems"},
	},
	{
		name: "systemd's unit is changed through systemd", rule: "cpuset-apart",
		make: func(s *snapshot.Snapshot) {
			s.Window.Workloads[1].ID, s.Groups[1].ID, s.Window.Workloads[1].Owner = "/x.slice/db.service", "/x.slice/db.service", "systemd"
			bound(s, 1, nodeCPUs(s, 1), 0)
		},
		subject: "/x.slice/db.service", command: []string{"systemctl set-property --runtime -- db.service AllowedMemoryNodes=1"},
	},
	{
		name: "v1 needs memory_migrate to move the pages; a hostile name is quoted", rule: "cpuset-apart",
		make: func(s *snapshot.Snapshot) {
			s.Cgroups.Cpuset = snapshot.Hierarchy{Path: "/sys/fs/cgroup/cpuset"}
			s.Window.Workloads[1].ID, s.Groups[1].ID = "/x; rm -rf '\n\x1b[2J", "/x; rm -rf '\n\x1b[2J"
			bound(s, 1, nodeCPUs(s, 1), 0)
		},
		subject: "/x; rm -rf '\n\x1b[2J", command: []string{"echo 1 > $'/sys/fs/cgroup/cpuset/x; rm -rf \\'\\x0a\\x1b[2J/cpuset.memory_migrate'", "cpuset.mems'"},
	},
	{name: "it may run there, but does not", rule: "cpuset-apart", make: func(s *snapshot.Snapshot) { bound(s, 0, nodeCPUs(s, 0, 1), 0) }, quiet: true},
	{name: "together", rule: "cpuset-apart", make: func(s *snapshot.Snapshot) { bound(s, 0, nodeCPUs(s, 1), 1) }, quiet: true},
	{name: "it has no task", rule: "cpuset-apart", make: func(s *snapshot.Snapshot) {
		bound(s, 0, nodeCPUs(s, 0), 1)
		run(s, 0, 0, 0)
		s.Window.Workloads[0].Tasks = known(0)
	}, quiet: true},
	{name: "a node without memory has the nearest", rule: "cpuset-apart", make: func(s *snapshot.Snapshot) {
		s.Nodes[0].Memory.Total, s.Window.Nodes[0].Memory = known(unit.Bytes(0)), known(unit.Bytes(0))
		bound(s, 0, nodeCPUs(s, 0), 1)
	}, quiet: true},
	{name: "its cpuset is unknown", rule: "cpuset-apart", make: func(s *snapshot.Snapshot) { s.Window.Workloads[0].Binding = window.Binding{} }, skipped: "unknown"},

	// wider-than-node
	{
		name: "six CPUs on nodes of four, of four nodes", rule: "wider-than-node", nodes: 4,
		make: func(s *snapshot.Snapshot) {
			run(s, 1, 1, 3, 1, 1)
			far(s, 1, 60)
			s.Machine.Distances[1] = []unit.Opt[int]{unit.Some(22), unit.Some(10), unit.Some(30), unit.Some(16)}
		},
		subject: "/w1", want: []string{"uses 6 CPUs", "has 4", "60.0%"}, command: []string{"echo 4-7,12-15 > /sys/fs/cgroup/w1/cpuset.cpus", "echo 1,3 > /sys/fs/cgroup/w1/cpuset.mems"}, after: better,
	},
	{
		name: "it needs both nodes", rule: "wider-than-node",
		make:    func(s *snapshot.Snapshot) { run(s, 0, 3, 3); far(s, 0, 50) },
		subject: "/w0", command: []string{"numactl --interleave=0-1 -- COMMAND…"}, after: "about 50.0% of its reads are remote",
	},
	{
		name: "six CPUs, and it may use two of four nodes", rule: "wider-than-node", nodes: 4,
		make: func(s *snapshot.Snapshot) {
			run(s, 1, 3, 3, 0, 0)
			far(s, 1, 60)
			bound(s, 1, nodeCPUs(s, 0, 1), 0, 1)
		},
		subject: "/w1", command: []string{"--interleave=0-1 -- COMMAND…"}, absent: []string{"2", "3"},
	},
	{
		name: "six CPUs, and it may not use the nearest node", rule: "wider-than-node", nodes: 4,
		make: func(s *snapshot.Snapshot) {
			run(s, 1, 1, 3, 1, 1)
			far(s, 1, 60)
			s.Machine.Distances[1] = []unit.Opt[int]{unit.Some(22), unit.Some(10), unit.Some(30), unit.Some(16)}
			bound(s, 1, nodeCPUs(s, 0, 1, 2), 0, 1, 2)
		},
		subject: "/w1", command: []string{"echo 0-7 > /sys/fs/cgroup/w1/cpuset.cpus", "echo 0-1 > /sys/fs/cgroup/w1/cpuset.mems"},
	},
	{
		name: "its memory is wider", rule: "wider-than-node",
		make:    func(s *snapshot.Snapshot) { keep(s, 0, 6*gib, 4*gib); far(s, 0, 40) },
		subject: "/w0", want: []string{"10 GiB", "8 GiB"},
	},
	{name: "wide, but local", rule: "wider-than-node", make: func(s *snapshot.Snapshot) { run(s, 0, 3, 3); far(s, 0, 5) }, quiet: true},
	{name: "a wide quota that is not used", rule: "wider-than-node", make: func(s *snapshot.Snapshot) { s.Window.Workloads[0].Quota = known(8.0); far(s, 0, 50) }, quiet: true},
	{name: "wide, and nothing counts its reads", rule: "wider-than-node", make: func(s *snapshot.Snapshot) {
		run(s, 0, 3, 3)
		s.Window.Workloads[0].LocalLoads, s.Window.Workloads[0].AnonByNode = gone[uint64](), nil
	}, skipped: "unknown"},

	// memory-too-tight
	{
		name: "bound to a node that is full", rule: "memory-too-tight",
		make:    func(s *snapshot.Snapshot) { bound(s, 0, nodeCPUs(s, 0), 0); fill(s, 0, 100*mib, 100*mib) },
		subject: "/w0", want: []string{"out of memory", "136 MiB", "free on node 1"}, command: []string{"echo 0-1 > /sys/fs/cgroup/w0/cpuset.mems"}, decides: true,
	},
	{
		name: "killed", rule: "memory-too-tight",
		make:    func(s *snapshot.Snapshot) { s.Groups[1].OOMKills = known[uint64](2) },
		subject: "/w1", want: []string{"2 processes killed"}, command: []string{"/sys/fs/cgroup/w1/memory.events"},
	},
	{
		name: "killed by its own limit, bound to a node with room", rule: "memory-too-tight",
		make: func(s *snapshot.Snapshot) {
			bound(s, 0, nodeCPUs(s, 0), 0)
			s.Groups[0].OOMKills, s.Groups[0].MemoryLimit, s.Groups[0].MemoryUsed = known[uint64](1), known(2*gib), known(300*mib)
		},
		subject: "/w0", want: []string{"1 process killed"}, command: []string{"echo 2684354560 > /sys/fs/cgroup/w0/memory.max"}, absent: []string{"cpuset"},
	},
	{
		name: "at the limit of the cgroup it is in", rule: "memory-too-tight",
		make: func(s *snapshot.Snapshot) {
			s.Groups[0].MemoryLimit = known(1 * gib)
			s.Groups[0].Limited = &snapshot.Limited{ID: "/up", Used: known(1100 * mib), File: known(100 * mib)}
			s.Groups[0].MemoryUsed = known(300 * mib)
		},
		subject: "/w0", want: []string{"1000 MiB of the limit of 1 GiB of /up"}, command: []string{"echo 1342177280 > /sys/fs/cgroup/up/memory.max", "w0"}, absent: []string{"w0/memory.max"},
	},
	{
		name: "at the limit of its systemd slice", rule: "memory-too-tight",
		make: func(s *snapshot.Snapshot) {
			rename(s, 1, "/x.slice/db.service", "systemd")
			s.Groups[1].MemoryLimit = known(1 * gib)
			s.Groups[1].Limited = &snapshot.Limited{ID: "/x.slice", Used: known(1100 * mib), File: known(100 * mib)}
		},
		subject: "/x.slice/db.service", command: []string{"systemctl set-property --runtime -- x.slice MemoryMax=1342177280"}, absent: []string{"echo"},
	},
	{name: "its own use is above the limit of the cgroup it is in, which has room", rule: "memory-too-tight", make: func(s *snapshot.Snapshot) {
		s.Groups[0].MemoryLimit, s.Groups[0].MemoryUsed = known(1*gib), known(1280*mib)
		s.Groups[0].Limited = &snapshot.Limited{ID: "/up", Used: known(900 * mib), File: known(100 * mib)}
	}, quiet: true},
	{
		name: "at its limit", rule: "memory-too-tight",
		make: func(s *snapshot.Snapshot) {
			s.Groups[0].MemoryLimit, s.Groups[0].MemoryUsed = known(1*gib), known(1260*mib)
		},
		subject: "/w0", want: []string{"1004 MiB of its limit of 1 GiB"}, command: []string{"echo 1342177280 > /sys/fs/cgroup/w0/memory.max"},
	},
	{name: "bound, full of cache that can be dropped", rule: "memory-too-tight", make: func(s *snapshot.Snapshot) {
		bound(s, 0, nodeCPUs(s, 0), 0)
		fill(s, 0, 3*gib, 100*mib)
	}, quiet: true},
	{name: "full, not bound", rule: "memory-too-tight", make: func(s *snapshot.Snapshot) { fill(s, 0, 100*mib, 100*mib) }, quiet: true},
	{name: "at its limit with page cache", rule: "memory-too-tight", make: func(s *snapshot.Snapshot) {
		s.Groups[0].MemoryLimit, s.Groups[0].MemoryUsed = known(1*gib), known(1*gib)
	}, quiet: true},
	{name: "bound, free memory unknown", rule: "memory-too-tight", make: func(s *snapshot.Snapshot) {
		bound(s, 0, nodeCPUs(s, 0), 0)
		s.Nodes[0].Memory.Free, s.Window.Nodes[0].Free = gone[unit.Bytes](), gone[unit.Bytes]()
	}, skipped: "unknown"},

	// huge-page-pools
	{
		name: "all on node 0", rule: "huge-page-pools",
		make:    func(s *snapshot.Snapshot) { pools(s, 128, 100, 0, 0) },
		subject: "1", want: []string{"2 MiB are unequal: 0 pages on node 1", "128 pages, 100 free"}, command: []string{"echo 64 > /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "echo 64 > /sys/devices/system/node/node0/"},
	},
	{
		name: "equal, but used up on node 0", rule: "huge-page-pools",
		make:    func(s *snapshot.Snapshot) { pools(s, 64, 0, 64, 30) },
		subject: "0", want: []string{"used up on node 0", "64 pages, 0 free"}, command: []string{"echo 80 > /sys/devices/system/node/node0/"},
	},
	{
		name: "the smallest is short, though it has free pages", rule: "huge-page-pools",
		make:    func(s *snapshot.Snapshot) { pools(s, 1000, 400, 10, 5) },
		subject: "1", want: []string{"unequal: 10 pages on node 1"}, command: []string{"echo 505 > /sys/devices/system/node/node1/"}, absent: []string{"node0"},
	},
	{
		name: "no memory for more huge pages", rule: "huge-page-pools",
		make:    func(s *snapshot.Snapshot) { pools(s, 64, 0, 64, 30); fill(s, 0, 1*gib, 65*mib) },
		subject: "0", command: []string{"cat /sys/devices/system/node/node0/meminfo"}, absent: []string{"echo"}, after: "free memory for more huge pages",
	},
	{
		name: "unequal, and hardly any memory for more", rule: "huge-page-pools",
		make:    func(s *snapshot.Snapshot) { pools(s, 128, 100, 0, 0); fill(s, 1, 1*gib, 74*mib) },
		subject: "1", command: []string{"echo 5 > /sys/devices/system/node/node1/", "echo 64 > /sys/devices/system/node/node0/"}, after: "it gets 5 pages of 64",
	},
	{
		name: "memory for some more huge pages", rule: "huge-page-pools",
		make:    func(s *snapshot.Snapshot) { pools(s, 64, 0, 64, 30); fill(s, 0, 1*gib, 74*mib) },
		subject: "0", command: []string{"echo 69 > /sys/devices/system/node/node0/"},
	},
	{name: "nearly equal", rule: "huge-page-pools", make: func(s *snapshot.Snapshot) { pools(s, 64, 10, 60, 8) }, quiet: true},
	{name: "no pools", rule: "huge-page-pools", make: func(s *snapshot.Snapshot) { pools(s, 0, 0, 0, 0) }, quiet: true},
	{name: "all used up everywhere", rule: "huge-page-pools", make: func(s *snapshot.Snapshot) { pools(s, 64, 0, 64, 0) }, quiet: true},
	{name: "unknown", rule: "huge-page-pools", make: func(s *snapshot.Snapshot) { s.Nodes[1].Pools[0].Free = gone[uint64]() }, skipped: "unknown"},
	{name: "a node without figures", rule: "huge-page-pools", make: func(s *snapshot.Snapshot) { s.Nodes[1].Pools = nil }, skipped: "node 1 has no figures"},

	// zone-reclaim
	{
		name: "on, on a host that caches", rule: "zone-reclaim",
		make: func(s *snapshot.Snapshot) { s.Settings.ZoneReclaim = known(3); fill(s, 0, 4*gib, 2*gib) },
		want: []string{"mode is 3", "write dirty pages out", "5 GiB"}, command: []string{"sysctl vm.zone_reclaim_mode=0"},
	},
	{name: "on, no cache", rule: "zone-reclaim", make: func(s *snapshot.Snapshot) { s.Settings.ZoneReclaim = known(1) }, quiet: true},
	{name: "off", rule: "zone-reclaim", make: func(s *snapshot.Snapshot) { fill(s, 0, 4*gib, 2*gib) }, quiet: true},
	{name: "unknown", rule: "zone-reclaim", make: func(s *snapshot.Snapshot) { s.Settings.ZoneReclaim = gone[int]() }, skipped: "unknown"},

	// irq-far
	{
		name: "a NIC of node 1 served on node 0", rule: "irq-far",
		make: func(s *snapshot.Snapshot) {
			s.IRQs[1].Counts = []uint64{490000, 10000}
			s.Machine.Devices = []machine.Device{{Address: "0000:01:00.0", Class: machine.Network, Names: []string{"eth1"}, Node: unit.Some(1)}}
		},
		subject: "0000:01:00.0", cost: 49000 * 0.5e-6, want: []string{"eth1", "50,000/s", "node 0 98.0%"}, command: []string{"for i in 121; do echo 4-7 > /proc/irq/$i/smp_affinity_list; done", "irqbalance"},
	},
	{name: "queues of one device on all nodes", rule: "irq-far", make: func(s *snapshot.Snapshot) {
		s.IRQs[0].Device, s.IRQs[0].Node = s.IRQs[1].Device, s.IRQs[1].Node
	}, quiet: true},
	{name: "few interrupts", rule: "irq-far", make: func(s *snapshot.Snapshot) { s.IRQs[1].Counts = []uint64{900, 0} }, quiet: true},
	{name: "its node is unknown", rule: "irq-far", make: func(s *snapshot.Snapshot) {
		s.IRQs[1].Counts, s.IRQs[1].Node = []uint64{50000, 0}, unit.None[int]()
	}, skipped: "its node is unknown"},
	{name: "none read", rule: "irq-far", make: func(s *snapshot.Snapshot) { s.IRQs = nil }, skipped: "no interrupts"},
}

// rename gives a workload another cgroup and manager.
func rename(s *snapshot.Snapshot, k int, id, owner string) {
	s.Window.Workloads[k].ID, s.Window.Workloads[k].Owner, s.Groups[k].ID = id, owner, id
	s.Processes[k].Workload, s.Samples.Places[k].Workload = id, id
}

func pools(s *snapshot.Snapshot, total0, free0, total1, free1 uint64) {
	for i, v := range [][2]uint64{{total0, free0}, {total1, free1}} {
		s.Nodes[i].Pools[0].Total, s.Nodes[i].Pools[0].Free = known(v[0]), known(v[1])
	}
}

func busy(s *snapshot.Snapshot, by ...unit.Ratio) {
	for i, v := range by {
		s.Nodes[i].Traffic.Busy = known(v)
	}
}

func hotLine(s *snapshot.Snapshot, loads, stores []uint64) {
	s.Samples.Lines = []snapshot.Line{{Writers: 2,
		PID: 100, Workload: "/w0", Addr: 0x7f0000001040, Bytes: 64, Mapping: "[heap]", Loads: loads, Stores: stores,
		Functions: []snapshot.Function{{Name: "count_hits", Samples: 100, Writes: 90}},
	}}
}

func table(s *snapshot.Snapshot, loads, remote, stores []uint64) {
	s.Samples.Places[0] = snapshot.Place{
		PID: 100, Workload: "/w0", Name: "load", Mapping: "/data/table", Loads: loads, Remote: remote, Stores: stores, Changes: total(stores), Pages: 900, Written: int(total(stores)),
		Common: unit.Some(unit.Ratio(0.9)), Latency: unit.Some(310.0), Functions: []snapshot.Function{{Name: "lookup", Samples: 900}},
	}
}

func vm(s *snapshot.Snapshot, nodes int, cpus ...int) {
	p := &s.Processes[0]
	p.Guest = &snapshot.Guest{VCPUs: len(cpus), Nodes: known(nodes)}
	for i, c := range cpus {
		p.Threads[i].CPU = c
		p.Guest.VCPUThreads = append(p.Guest.VCPUThreads, p.Threads[i].TID)
	}
}

// pin pins the second thread of the first process; the third one runs there too.
func pin(s *snapshot.Snapshot, cpu int) {
	s.Processes[0].Threads[1].CPU, s.Processes[0].Threads[2].CPU = cpu, cpu
	s.Processes[0].Threads[1].Allowed = set.FromCPUs(cpu)
}
