// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"homenode/internal/machine"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// spreadOver is CPUs' worth of time that a workload of one CPU saves when half of a full
// node's traffic goes to an idle one.
func spreadOver(full, idle, busy float64) float64 {
	factor, _, _ := migration.Longer(migration.Pressure{Node: full}, migration.Pressure{Node: idle + full/2}, busy)
	return 1 - factor
}

// accessScenarios are those of rules about which threads read what, and on which CPUs.
var accessScenarios = []scenario{
	// bandwidth-saturated
	{
		name: "node 0 at 92 %, node 1 at 10 %", rule: "bandwidth-saturated",
		make:    func(s *snapshot.Snapshot) { busy(s, 0.92, 0.1) },
		subject: "0", cost: spreadOver(0.92, 0.1, 0.5), want: []string{"92.0%", "10.0%", "/w0"}, remedy: "spreading wins", command: []string{"--interleave=0-1 -- COMMAND…"}, after: better,
	},
	{
		name: "and the reader has a policy of its own", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			busy(s, 0.92, 0.1)
			s.Processes[0].Mappings[0].Policy = "bind:0"
		},
		subject: "0", command: []string{"--interleave=0-1 -- COMMAND…"}, after: "(bind:0), which overrules numactl's",
	},
	{
		name: "two workloads: the smaller moves", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			busy(s, 0.1, 0.92)
			keep(s, 0, 0, 1*gib)
			run(s, 0, 0, 0.5)
		},
		subject: "1", command: []string{"echo 0 > /sys/fs/cgroup/w0/cpuset.mems", "echo 0-3 > /sys/fs/cgroup/w0/cpuset.cpus"},
	},
	{
		name: "the smaller may not use the idle node", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			busy(s, 0.1, 0.92)
			keep(s, 0, 0, 1*gib)
			run(s, 0, 0, 0.5)
			bound(s, 0, nodeCPUs(s, 1), 1)
			s.Window.Workloads[1].Owner = "kubelet"
		},
		subject: "1", command: []string{"echo 0 > /sys/fs/cgroup/w1/cpuset.mems"}, absent: []string{"w0"}, remedy: "the kubelet",
	},
	{
		name: "no user may use the idle node", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			busy(s, 0.92, 0.1)
			bound(s, 0, nodeCPUs(s, 0), 0)
		},
		subject: "0", command: []string{"homenode why /w0"}, absent: []string{"echo", "numactl"}, remedy: "None of its users may use node 1", after: "only show",
	},
	{
		name: "from HMAT's bandwidth", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Traffic.Busy = gone[unit.Ratio]()
				s.Machine.Nodes[i].Access = []machine.Access{{Class: 1, Initiators: set.FromNodes(i), ReadBandwidth: unit.Some(unit.Bytes(1e9))}}
			}
			s.Nodes[0].Traffic.Reads, s.Nodes[1].Traffic.Reads = known[uint64](125e6), known[uint64](10e6)
		},
		subject: "0", want: []string{"80.0%", "estimated"},
	},
	{
		name: "reads and writes share HMAT's bandwidth", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			for i := range s.Nodes {
				s.Nodes[i].Traffic.Busy = gone[unit.Ratio]()
				s.Machine.Nodes[i].Access = []machine.Access{{Class: 1, Initiators: set.FromNodes(i), ReadBandwidth: unit.Some(unit.Bytes(1e9))}}
			}
			s.Nodes[0].Traffic.Reads, s.Nodes[1].Traffic.Reads = known[uint64](75e6), known[uint64](10e6)
			s.Nodes[0].Traffic.Writes, s.Nodes[1].Traffic.Writes = known[uint64](50e6), known[uint64](0)
		},
		subject: "0", want: []string{"80.0%", "estimated", "writes"},
	},
	{
		name: "reads and writes are not told apart", rule: "bandwidth-saturated",
		make: func(s *snapshot.Snapshot) {
			for i, all := range []uint64{125e6, 10e6} {
				s.Nodes[i].Traffic = snapshot.Traffic{Busy: gone[unit.Ratio](), Reads: gone[uint64](), Writes: gone[uint64](), All: known(all)}
				s.Machine.Nodes[i].Access = []machine.Access{{Class: 1, Initiators: set.FromNodes(i), ReadBandwidth: unit.Some(unit.Bytes(1e9))}}
			}
		},
		subject: "0", want: []string{"80.0%", "estimated", "reads and writes"},
	},
	{name: "both are busy", rule: "bandwidth-saturated", make: func(s *snapshot.Snapshot) { busy(s, 0.92, 0.6) }, quiet: true},
	{name: "not yet saturated", rule: "bandwidth-saturated", make: func(s *snapshot.Snapshot) { busy(s, 0.6, 0.1) }, quiet: true},
	{name: "unknown", rule: "bandwidth-saturated", make: func(s *snapshot.Snapshot) {
		s.Nodes[0].Traffic, s.Nodes[1].Traffic = snapshot.Traffic{Busy: gone[unit.Ratio]()}, snapshot.Traffic{Busy: gone[unit.Ratio]()}
	}, skipped: "hidden by the test"},

	// shared-line
	{
		name: "a counter that both nodes write", rule: "shared-line",
		make:    func(s *snapshot.Snapshot) { hotLine(s, []uint64{30, 40}, []uint64{60, 50}) },
		subject: "100", cost: 0.5 * 180 / 1500, want: []string{"nodes 0-1", "0x7f0000001040", "[heap]", "count_hits", "node 0 60, node 1 50"}, command: []string{"perf c2c record -p 100"}, after: "until the program is changed",
	},
	{
		name: "a counter whose changes were seen to move between caches", rule: "shared-line",
		make: func(s *snapshot.Snapshot) {
			hotLine(s, []uint64{30, 40}, []uint64{60, 50})
			s.Samples.Lines[0].Modified = 77
		},
		subject: "100", cost: 0.5 * 180 / 1500, want: []string{"HITM", "77"}, command: []string{"perf c2c record -p 100"},
	},
	{
		name: "two processes of two workloads write it", rule: "shared-line",
		make: func(s *snapshot.Snapshot) {
			hotLine(s, []uint64{30, 40}, []uint64{60, 50})
			s.Samples.Lines[0].Users = []snapshot.LineUser{{PID: 100, Workload: "/w0", Samples: 120}, {PID: 101, Workload: "/w1", Samples: 60}}
		},
		subject: "100", cost: 0.5*120/1500 + 0.5*60/1500, want: []string{"nodes 0-1"}, command: []string{"perf c2c record -p 100"},
	},
	{name: "one writer", rule: "shared-line", make: func(s *snapshot.Snapshot) { hotLine(s, []uint64{30, 40}, []uint64{60, 2}) }, quiet: true},
	{name: "one thread, which moves", rule: "shared-line", make: func(s *snapshot.Snapshot) {
		hotLine(s, []uint64{30, 40}, []uint64{60, 50})
		s.Samples.Lines[0].Writers = 1
	}, quiet: true},
	{name: "too few samples", rule: "shared-line", make: func(s *snapshot.Snapshot) { hotLine(s, []uint64{3, 4}, []uint64{6, 5}) }, quiet: true},
	{name: "no samples", rule: "shared-line", make: func(s *snapshot.Snapshot) { s.Samples = snapshot.Samples{Why: "no PMU in this guest"} }, skipped: "no PMU in this guest"},
	{name: "no stores sampled", rule: "shared-line", make: func(s *snapshot.Snapshot) { s.Samples.Stores = 0 }, skipped: "no store"},

	// read-only-far
	{
		name: "a table that both nodes read", rule: "read-only-far",
		make:    func(s *snapshot.Snapshot) { far(s, 0, 50); table(s, []uint64{500, 500}, []uint64{0, 450}, nil) },
		subject: "100", cost: 0.5 * 0.5 * 0.66 / (0.5 + 0.5*1.66), want: []string{"/data/table", "lookup", "fewer than 0.30%", "45.0%"},
		command: []string{"numactl --cpunodebind=0 --membind=0 -- COMMAND…", "each of nodes 0-1"}, absent: []string{"\n"},
	},
	{name: "it is written too", rule: "read-only-far", make: func(s *snapshot.Snapshot) { table(s, []uint64{500, 500}, []uint64{0, 450}, []uint64{0, 5}) }, quiet: true},
	{
		name: "a table beside the stack of a thread", rule: "read-only-far",
		make: func(s *snapshot.Snapshot) {
			table(s, []uint64{500, 500}, []uint64{0, 450}, []uint64{0, 2})
			s.Samples.Places[0].Written, s.Samples.Places[0].Changes = 0, 0
		},
		subject: "100", want: []string{"2 beside 1000 loads, all where at most one thread loads"},
	},
	{
		name: "a table beside a few counters", rule: "read-only-far",
		make: func(s *snapshot.Snapshot) {
			table(s, []uint64{500, 500}, []uint64{0, 450}, []uint64{4, 5})
			s.Samples.Places[0].Written = 2
		},
		subject: "100", want: []string{"9, all on 2 of the 900 pages"},
	},
	{name: "a table that is updated here and there", rule: "read-only-far", make: func(s *snapshot.Snapshot) {
		table(s, []uint64{500, 500}, []uint64{0, 450}, []uint64{4, 5})
	}, quiet: true},
	{name: "each thread reads its own part", rule: "read-only-far", make: func(s *snapshot.Snapshot) {
		table(s, []uint64{500, 500}, []uint64{0, 450}, nil)
		s.Samples.Places[0].Common = unit.Some(unit.Ratio(0.02))
	}, quiet: true},
	{name: "one node reads it", rule: "read-only-far", make: func(s *snapshot.Snapshot) { table(s, []uint64{10, 990}, []uint64{0, 900}, nil) }, quiet: true},
	{name: "it is local enough", rule: "read-only-far", make: func(s *snapshot.Snapshot) { table(s, []uint64{500, 500}, []uint64{0, 100}, nil) }, quiet: true},
	{name: "too few samples", rule: "read-only-far", make: func(s *snapshot.Snapshot) { table(s, []uint64{40, 40}, []uint64{0, 40}, nil) }, quiet: true},
	{name: "no stores sampled", rule: "read-only-far", make: func(s *snapshot.Snapshot) { s.Samples.Stores = 0 }, skipped: "no store"},

	// guest-topology
	{
		name: "a guest of one node with remote reads", rule: "guest-topology", nodes: 1,
		make: func(s *snapshot.Snapshot) { s.Hypervisor = known("kvm"); far(s, 0, 30) },
		want: []string{"remote reads on a machine with one node", "30.0%", "kvm"}, command: []string{"lscpu"}, after: "only show",
	},
	{
		name: "a guest of one node with two packages", rule: "guest-topology", nodes: 1,
		make: func(s *snapshot.Snapshot) {
			s.Hypervisor = known("kvm")
			s.Machine.Packages = []set.CPUSet{set.FromCPUs(0, 1), set.FromCPUs(2, 3)}
		},
		want: []string{"one node for several packages"},
	},
	{
		name: "a guest whose nodes are all at 10", rule: "guest-topology",
		make: func(s *snapshot.Snapshot) {
			s.Hypervisor = known("vmware")
			s.Machine.Distances[0][1], s.Machine.Distances[1][0] = unit.Some(10), unit.Some(10)
		},
		want: []string{"distance 10"},
	},
	{
		name: "a guest whose cache spans nodes", rule: "guest-topology",
		make: func(s *snapshot.Snapshot) {
			s.Hypervisor = known("kvm")
			s.Machine.LLCs = []machine.Cache{{Level: 3, CPUs: set.FromCPUs(0, 1, 4, 5)}}
		},
		want: []string{"spans nodes", "0-1,4-5"},
	},
	{name: "a true guest", rule: "guest-topology", make: func(s *snapshot.Snapshot) { s.Hypervisor = known("kvm") }, quiet: true},
	{name: "metal", rule: "guest-topology", make: func(s *snapshot.Snapshot) {
		s.Machine.Distances[0][1], s.Machine.Distances[1][0] = unit.Some(10), unit.Some(10)
	}, quiet: true},
	{name: "a guest of one node, noise of a counter", rule: "guest-topology", nodes: 1, make: func(s *snapshot.Snapshot) { s.Hypervisor = known("kvm"); far(s, 0, 1) }, quiet: true},
	{name: "unknown", rule: "guest-topology", make: func(s *snapshot.Snapshot) { s.Hypervisor = gone[string]() }, skipped: "unknown"},

	// vm-flat-topology
	{
		name: "a flat VM on two nodes", rule: "vm-flat-topology",
		make:   func(s *snapshot.Snapshot) { vm(s, 1, 0, 4); run(s, 0, 0.5, 0.5); far(s, 0, 50) },
		remedy: "Fit the VM", subject: "100", cost: 0.5 * 0.5 * 0.66 / (0.5 + 0.5*1.66), want: []string{"2 virtual CPUs", "nodes 0-1"}, command: []string{"taskset -acp 0-3 100", "migratepages 100 1 0"}, after: better,
	},
	{
		name: "the node with most of it has no room for the rest", rule: "vm-flat-topology",
		make: func(s *snapshot.Snapshot) {
			vm(s, 1, 0, 4)
			keep(s, 0, 2*gib, 1*gib)
			fill(s, 0, 500*mib, 100*mib)
		},
		subject: "100", command: []string{"taskset -acp 4-7 100", "migratepages 100 0 1"},
	},
	{
		name: "no node has room for all of it", rule: "vm-flat-topology",
		make: func(s *snapshot.Snapshot) {
			vm(s, 1, 0, 4)
			keep(s, 0, 1*gib, 1*gib)
			fill(s, 0, 500*mib, 100*mib)
			fill(s, 1, 500*mib, 100*mib)
		},
		subject: "100", command: []string{"homenode why /w0", "taskset -acp 100"}, absent: []string{"migratepages"}, after: "only show",
	},
	{
		name: "only one node has memory", rule: "vm-flat-topology",
		make: func(s *snapshot.Snapshot) {
			vm(s, 1, 0, 4)
			s.Machine.Nodes[1].Memory = unit.Some(unit.Bytes(0))
		},
		subject: "100", command: []string{"taskset -acp 0-3 100"}, absent: []string{"migratepages"},
	},
	{name: "a flat VM on one node", rule: "vm-flat-topology", make: func(s *snapshot.Snapshot) { vm(s, 1, 0, 1) }, quiet: true},
	{name: "a VM with two nodes", rule: "vm-flat-topology", make: func(s *snapshot.Snapshot) { vm(s, 2, 0, 4) }, quiet: true},
	{name: "its nodes are unknown", rule: "vm-flat-topology", make: func(s *snapshot.Snapshot) { vm(s, 1, 0, 4); s.Processes[0].Guest.Nodes = gone[int]() }, skipped: "unknown"},

	// firmware-doubts
	{
		name: "doubts", rule: "firmware-doubts",
		make: func(s *snapshot.Snapshot) {
			s.Machine.Doubts = []string{"node 0 and node 1 both claim cpu 3", "distance 0"}
		},
		want: []string{"both claim cpu 3", "1 more", "distance 0"}, command: []string{"dmesg"}, after: "until the firmware's tables agree",
	},
	{
		name: "doubts about packages alone", rule: "firmware-doubts",
		make: func(s *snapshot.Snapshot) { s.Machine.PackageDoubts = []string{"the sibling lists have 4 packages"} },
		want: []string{"4 packages"}, command: []string{"dmesg"}, after: "until the firmware's tables agree",
	},
	{name: "no doubts", rule: "firmware-doubts", make: func(*snapshot.Snapshot) {}, quiet: true},

	// pinned-to-busy-cpu
	{
		name: "it waits for its CPU", rule: "pinned-to-busy-cpu",
		make:    func(s *snapshot.Snapshot) { pin(s, 2); s.Processes[0].Threads[1].Waited = known(0.4) },
		subject: "1001", cost: 0.4, want: []string{"CPU 2", "0.4 CPUs"}, command: []string{"taskset -cp 0-3 1001"},
	},
	{
		name: "waiting unknown, CPU full", rule: "pinned-to-busy-cpu",
		make: func(s *snapshot.Snapshot) {
			pin(s, 2)
			s.Processes[0].Threads[1].Waited, s.Processes[0].Threads[1].CPUTime = gone[float64](), known(0.5)
			s.Processes[0].Threads[2].CPUTime = known(0.5)
		},
		subject: "1001", cost: 0.5, want: []string{"estimated"},
	},
	{name: "pinned, not waiting", rule: "pinned-to-busy-cpu", make: func(s *snapshot.Snapshot) { pin(s, 2) }, quiet: true},
	{name: "waiting, free to move", rule: "pinned-to-busy-cpu", make: func(s *snapshot.Snapshot) { s.Processes[0].Threads[1].Waited = known(0.4) }, quiet: true},
	{name: "waiting, no other CPU is free", rule: "pinned-to-busy-cpu", make: func(s *snapshot.Snapshot) {
		pin(s, 2)
		s.Processes[0].Threads[1].Waited = known(0.4)
		s.Window.Nodes[0].CPUBusy = known(3.9)
	}, quiet: true},
	{name: "no threads", rule: "pinned-to-busy-cpu", make: func(s *snapshot.Snapshot) { s.Processes[0].Threads, s.Processes[1].Threads = nil, nil }, skipped: "no threads"},

	// remote-workload
	{
		name: "half of its reads are remote", rule: "remote-workload",
		make:    func(s *snapshot.Snapshot) { run(s, 0, 0.5, 0.5); keep(s, 0, 600*mib, 400*mib); far(s, 0, 50) },
		subject: "/w0", cost: 0.5 * 0.5 * 0.66 / (0.5 + 0.5*1.66), want: []string{"50.0%", "measured"}, command: []string{"echo 0-3 > /sys/fs/cgroup/w0/cpuset.cpus", "echo 0 > /sys/fs/cgroup/w0/cpuset.mems"},
	},
	{
		name: "most of its memory is where it may not be", rule: "remote-workload", nodes: 4,
		make: func(s *snapshot.Snapshot) {
			run(s, 0, 0.5, 0.5, 0, 0)
			keep(s, 0, 0, 300*mib, 700*mib, 0)
			far(s, 0, 50)
			bound(s, 0, nodeCPUs(s, 0, 1, 2).Without(4), 0, 1)
		},
		subject: "/w0", command: []string{"echo 5-7 > /sys/fs/cgroup/w0/cpuset.cpus", "echo 1 > /sys/fs/cgroup/w0/cpuset.mems"},
	},
	{
		name: "its cgroup is a service's own", rule: "remote-workload",
		make: func(s *snapshot.Snapshot) {
			rename(s, 1, "/x.slice/db.service/worker", "systemd")
			run(s, 1, 0.5, 0.5)
			far(s, 1, 50)
		},
		subject: "/x.slice/db.service/worker", command: []string{"homenode why /x.slice/db.service/worker"}, absent: []string{"systemctl", "echo"}, remedy: "not a unit of the system's", after: "until its manager changes its cgroup",
	},
	{
		name: "no node has room", rule: "remote-workload",
		make: func(s *snapshot.Snapshot) {
			run(s, 0, 1.5, 1.5)
			keep(s, 0, 600*mib, 400*mib)
			far(s, 0, 50)
			s.Window.Nodes[0].CPUBusy, s.Window.Nodes[1].CPUBusy = known(4.0), known(4.0)
		},
		subject: "/w0", command: []string{"homenode agent --dry-run", "homenode why /w0"}, after: "has made room",
	},
	{
		name: "its reads would fill its home", rule: "remote-workload",
		make: func(s *snapshot.Snapshot) {
			run(s, 0, 0.5, 0.5)
			keep(s, 0, 500*mib, 500*mib)
			s.Window.Workloads[0].LocalLoads, s.Window.Workloads[0].RemoteLoads = known[uint64](60e6), known[uint64](60e6)
			busy(s, 0.8, 0.8)
			for i := range s.Nodes {
				s.Machine.Nodes[i].Access = []machine.Access{{Class: 1, Initiators: set.FromNodes(i), ReadBandwidth: unit.Some(unit.Bytes(5e9 / 10))}}
			}
		},
		subject: "/w0", command: []string{"numactl --interleave=0-1 -- COMMAND…"}, absent: []string{"echo"}, remedy: "Spread its memory: its reads would fill the memory of node",
	},
	{
		name: "estimated, and it stalls", rule: "remote-workload",
		make: func(s *snapshot.Snapshot) {
			run(s, 0, 0.5, 0.5)
			keep(s, 0, 600*mib, 400*mib)
			s.Window.Workloads[0].LocalLoads = gone[uint64]()
		},
		subject: "/w0", want: []string{"estimated"},
	},
	{name: "estimated, and nothing says that it reads", rule: "remote-workload", make: func(s *snapshot.Snapshot) {
		run(s, 0, 0.5, 0.5)
		keep(s, 0, 600*mib, 400*mib)
		s.Window.Workloads[0].LocalLoads, s.Window.Workloads[0].StallCycles = gone[uint64](), gone[uint64]()
	}, skipped: "whether it reads them is unknown"},
	{
		name: "its affinity keeps it on a node that page cache fills", rule: "remote-workload",
		make: func(s *snapshot.Snapshot) {
			s.Processes[0].Allowed = nodeCPUs(s, 0)
			keep(s, 0, 0, 1*gib)
			far(s, 0, 99)
			fill(s, 0, 5*gib, 80*mib)
		},
		subject: "/w0", want: []string{"It may run on CPUs 0-3"}, command: []string{"drop_caches\nmigratepages 100 1 0"}, absent: []string{"cpuset"}, remedy: "Take memory back from the page cache", after: better,
	},
	{
		name: "its affinity keeps it on a node that other programs fill", rule: "remote-workload",
		make: func(s *snapshot.Snapshot) {
			s.Processes[0].Allowed = nodeCPUs(s, 0)
			keep(s, 0, 0, 1*gib)
			far(s, 0, 99)
			fill(s, 0, 100*mib, 80*mib)
		},
		subject: "/w0", command: []string{"migratepages 100 1 0"}, absent: []string{"drop_caches"}, after: "1 GiB would have to move to node 0, and 16 MiB are free there",
	},
	{name: "it waits for a line that two nodes write", rule: "remote-workload", make: func(s *snapshot.Snapshot) {
		run(s, 0, 0.5, 0.5)
		far(s, 0, 50)
		hotLine(s, []uint64{300, 400}, []uint64{300, 400})
		s.Samples.Places[0].Loads, s.Samples.Places[0].Stores = []uint64{330, 430}, []uint64{330, 430}
	}, quiet: true},
	{name: "a fifth is remote", rule: "remote-workload", make: func(s *snapshot.Snapshot) { far(s, 0, 20) }, quiet: true},
	{name: "remote, and idle", rule: "remote-workload", make: func(s *snapshot.Snapshot) { far(s, 0, 50); run(s, 0, 0.02, 0.02) }, quiet: true},
	{name: "bound, to memory elsewhere", rule: "remote-workload", make: func(s *snapshot.Snapshot) { far(s, 0, 50); bound(s, 0, nodeCPUs(s, 0), 1) }, quiet: true},
	{
		name: "bound, and its memory left behind", rule: "remote-workload",
		make:    func(s *snapshot.Snapshot) { far(s, 0, 90); bound(s, 0, nodeCPUs(s, 0), 0) },
		subject: "/w0", want: []string{"is bound, but not to its memory", "90.0%"},
	},
	{
		name: "left behind, and its node has no memory", rule: "remote-workload", nodes: 3,
		make: func(s *snapshot.Snapshot) {
			far(s, 0, 90)
			bound(s, 0, nodeCPUs(s, 0), 0, 1)
			keep(s, 0, 0, 0, 1*gib)
			s.Machine.Nodes[0].Memory, s.Nodes[0].Memory.Total, s.Window.Nodes[0].Memory = unit.Some(unit.Bytes(0)), known(unit.Bytes(0)), known(unit.Bytes(0))
			s.Machine.Distances[0][2] = unit.Some(31)
		},
		subject: "/w0", command: []string{"migratepages 100 2 1"},
	},
	{name: "unknown", rule: "remote-workload", make: func(s *snapshot.Snapshot) {
		s.Window.Workloads[0].LocalLoads, s.Window.Workloads[0].AnonByNode = gone[uint64](), nil
	}, skipped: "unknown"},

	// swap-beside-free
	{
		name: "node 0 swaps, node 1 is free", rule: "swap-beside-free",
		make: func(s *snapshot.Snapshot) {
			s.Swapping.Out = known[uint64](50000)
			fill(s, 0, 100*mib, 60*mib)
			bound(s, 0, nodeCPUs(s, 0), 0)
		},
		subject: "0", want: []string{"5,000 pages/s", "5 GiB", "/w0"}, command: []string{"echo 0-1 > /sys/fs/cgroup/w0/cpuset.mems"},
	},
	{name: "both are full", rule: "swap-beside-free", make: func(s *snapshot.Snapshot) {
		s.Swapping.Out = known[uint64](50000)
		fill(s, 0, 100*mib, 60*mib)
		fill(s, 1, 100*mib, 60*mib)
	}, quiet: true},
	{name: "hardly swaps", rule: "swap-beside-free", make: func(s *snapshot.Snapshot) { s.Swapping.Out = known[uint64](500); fill(s, 0, 100*mib, 60*mib) }, quiet: true},
	{name: "unknown", rule: "swap-beside-free", make: func(s *snapshot.Snapshot) { s.Swapping = snapshot.Swapping{} }, skipped: "unknown"},
}
