// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	mib = unit.MiB
	gib = unit.GiB
)

// known is a figure of the tests; gone is one that could not be read.
func known[T any](v T) unit.Value[T] { return unit.Measured(v, "test") }
func gone[T any]() unit.Value[T]     { return unit.UnknownValue[T]("hidden by the test") }

func knownAll[T any](all ...T) []unit.Value[T] {
	return each(all, func(v T) unit.Value[T] { return known(v) })
}

// healthy is a host on which everything is known and nothing is wrong. Its nodes have
// four CPUs and 8 GiB, at distance 21, and each has one local workload, /w0, /w1, …, of
// one process, 100, 101, …
func healthy(nodes int) snapshot.Snapshot {
	s := snapshot.Snapshot{
		Schema: snapshot.Schema, At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Length: 10 * time.Second,
		Machine: machine.Machine{Origin: "fake:doctor", PageSize: unit.Some(unit.Bytes(4096))},
		Window:  window.Window{Schema: window.Schema, Length: 10 * time.Second},
		Balancing: snapshot.Balancing{
			Mode: known(1), PTEUpdates: known[uint64](100), HintFaults: known[uint64](10), HintLocal: known[uint64](9),
			PagesMigrated: known[uint64](1), MigrateFailed: known[uint64](0),
		},
		Settings:   snapshot.Settings{ZoneReclaim: known(0), THP: known("madvise"), SwapTotal: known(unit.Bytes(0)), SwapFree: known(unit.Bytes(0))},
		Swapping:   snapshot.Swapping{In: known[uint64](0), Out: known[uint64](0)},
		Cgroups:    snapshot.Cgroups{Cpuset: snapshot.Hierarchy{Path: "/sys/fs/cgroup", V2: true}, Memory: snapshot.Hierarchy{Path: "/sys/fs/cgroup", V2: true}},
		Hypervisor: known(""),
		Samples:    snapshot.Samples{How: unit.HowMeasured, From: "PEBS", Loads: 10000, Stores: 5000},
	}
	for i := range nodes {
		addNode(&s, i, nodes)
	}
	for i := range nodes {
		addWorkload(&s, "/w"+strconv.Itoa(i), i)
	}
	return s
}

func addNode(s *snapshot.Snapshot, i, nodes int) {
	cpus := set.FromCPUs(4*i, 4*i+1, 4*i+2, 4*i+3)
	s.Machine.Nodes = append(s.Machine.Nodes, machine.Node{ID: i, CPUs: cpus, Memory: unit.Some(8 * gib)})
	row := make([]unit.Opt[int], nodes)
	for j := range row {
		row[j] = unit.Some(21)
	}
	row[i] = unit.Some(10)
	s.Machine.Distances = append(s.Machine.Distances, row)
	for c := range cpus.All() {
		s.Machine.CPUs = append(s.Machine.CPUs, machine.CPU{ID: c, Node: unit.Some(i), Package: unit.Some(i), LLC: unit.Some(i), Online: true})
	}
	s.Machine.Packages = append(s.Machine.Packages, cpus)
	s.Machine.LLCs = append(s.Machine.LLCs, machine.Cache{Level: 3, CPUs: cpus})
	s.Window.Nodes = append(s.Window.Nodes, window.Node{
		ID: i, CPUs: cpus, CPUBusy: known(1.0), Memory: known(8 * gib), Free: known(5 * gib), File: known(1 * gib), Anon: known(1 * gib),
	})
	s.Nodes = append(s.Nodes, snapshot.Node{
		ID: i,
		Memory: snapshot.Kinds{
			Total: known(8 * gib), Free: known(5 * gib), Anon: known(1 * gib), File: known(1 * gib), Shmem: known(unit.Bytes(0)),
			Slab: known(512 * mib), Kernel: known(256 * mib), Huge: known(128 * mib), Other: known(128 * mib), HugeFree: known(128 * mib),
		},
		Numastat: snapshot.Numastat{
			Hit: known[uint64](1e6), Miss: known[uint64](0), Foreign: known[uint64](0), InterleaveHit: known[uint64](0),
			LocalNode: known[uint64](1e6), OtherNode: known[uint64](0),
		},
		Pools:   []snapshot.HugePool{{PageSize: 2 * mib, Total: known[uint64](64), Free: known[uint64](64), Surplus: known[uint64](0)}},
		Traffic: snapshot.Traffic{Reads: known[uint64](1e8), Busy: known(unit.Ratio(0.2))},
		LowFree: known(64 * mib),
	})
	s.IRQs = append(s.IRQs, snapshot.IRQ{
		Number: strconv.Itoa(120 + i), Name: "nic" + strconv.Itoa(i), Counts: only(nodes, i, uint64(50000)), Allowed: cpus,
		Device: "0000:0" + strconv.Itoa(i) + ":00.0", Node: unit.Some(i),
	})
}

func only[T any](n, i int, v T) []T {
	out := make([]T, n)
	out[i] = v
	return out
}

func addWorkload(s *snapshot.Snapshot, id string, node int) {
	n := len(s.Machine.Nodes)
	var all set.CPUSet
	var mems set.NodeSet
	for _, m := range s.Machine.Nodes {
		all, mems = all.Union(m.CPUs), mems.With(m.ID)
	}
	s.Window.Workloads = append(s.Window.Workloads, window.Workload{
		ID: id, Owner: "none", Tasks: known(4), CPU: known(1.0), Quota: unit.UnknownValue[float64]("no limit is set"),
		CPUByNode: knownAll(only(n, node, 1.0)...), AnonByNode: knownAll(only(n, node, 1*gib)...), FileByNode: knownAll(only(n, node, 256*mib)...),
		Cycles: known[uint64](2e10), Instructions: known[uint64](2e10), StallCycles: known[uint64](1e10),
		LocalLoads: known[uint64](99e6), RemoteLoads: known[uint64](1e6),
		Binding: window.Binding{CPUs: all, Mems: mems},
	})
	pid := 100 + len(s.Groups)
	s.Groups = append(s.Groups, snapshot.Group{ID: id, MemoryUsed: known(1280 * mib), OOMKills: known[uint64](0), AllocStalls: known[uint64](0), PIDs: []int{pid}})
	p := snapshot.Process{
		PID: pid, Name: "load", Workload: id, MemoryHow: "numa_maps",
		Mappings:  []snapshot.Mapping{{Start: 0x7f0000000000, Kind: snapshot.Anon, Policy: "default", ByNode: only(n, node, 1*gib)}},
		CPUByNode: knownAll(only(n, node, 1.0)...), Allowed: all, Mems: mems,
	}
	p.ByKind[snapshot.Anon] = only(n, node, 1*gib)
	for i := range 4 {
		p.Threads = append(p.Threads, snapshot.Thread{TID: pid*10 + i, Name: "load", CPU: 4*node + i, CPUTime: known(0.25), Allowed: all, Waited: known(0.0)})
	}
	s.Processes = append(s.Processes, p)
	s.Samples.Places = append(s.Samples.Places, snapshot.Place{
		PID: pid, Workload: id, Name: "load", Mapping: "[heap]", Loads: only(n, node, uint64(1000)), Remote: make([]uint64, n), Stores: only(n, node, uint64(500)),
	})
}

// run moves a workload's CPU time; keep moves its memory.
func run(s *snapshot.Snapshot, k int, by ...float64) {
	sum := 0.0
	for i, v := range by {
		s.Window.Nodes[i].CPUBusy = known(s.Window.Nodes[i].CPUBusy.Or(0) + v - s.Window.Workloads[k].CPUByNode[i].Or(0))
		sum += v
	}
	s.Window.Workloads[k].CPU, s.Window.Workloads[k].CPUByNode, s.Processes[k].CPUByNode = known(sum), knownAll(by...), knownAll(by...)
}

func keep(s *snapshot.Snapshot, k int, by ...unit.Bytes) {
	s.Window.Workloads[k].AnonByNode = knownAll(by...)
	s.Processes[k].ByKind[snapshot.Anon] = by
	s.Processes[k].Mappings[0].ByNode = by
}

// far gives a workload a share of remote reads, in percent.
func far(s *snapshot.Snapshot, k int, share uint64) {
	s.Window.Workloads[k].LocalLoads, s.Window.Workloads[k].RemoteLoads = known((100-share)*1e6), known(share*1e6)
}

// fill fills a node's free memory with file or anonymous pages.
func fill(s *snapshot.Snapshot, i int, file, free unit.Bytes) {
	m := &s.Nodes[i].Memory
	m.File, m.Free = known(file), known(free)
	m.Anon = known(8*gib - file - free - 1*gib)
	s.Window.Nodes[i].File, s.Window.Nodes[i].Free, s.Window.Nodes[i].Anon = m.File, m.Free, m.Anon
}

func bound(s *snapshot.Snapshot, k int, cpus set.CPUSet, mems ...int) {
	s.Window.Workloads[k].Binding = window.Binding{CPUs: cpus, Mems: set.FromNodes(mems...), PinnedCPUs: true, PinnedMems: true}
}

func nodeCPUs(s *snapshot.Snapshot, nodes ...int) set.CPUSet {
	return s.Machine.CPUsOf(set.FromNodes(nodes...))
}

// renumber gives the nodes other ids: to[i] is the new id of position i.
func renumber(s snapshot.Snapshot, to []int) snapshot.Snapshot {
	order := make([]int, len(to)) // new position → old position
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(to[a], to[b]) })
	id := func(old int) int {
		for i, n := range s.Machine.Nodes {
			if n.ID == old {
				return to[i]
			}
		}
		return old
	}
	nodeSet := func(n set.NodeSet) set.NodeSet { return set.FromNodes(each(n.IDs(), id)...) }
	optID := func(o unit.Opt[int]) unit.Opt[int] {
		if v, ok := o.Get(); ok {
			return unit.Some(id(v))
		}
		return o
	}
	out := s
	out.Machine.Nodes, out.Nodes, out.Window.Nodes, out.Machine.Distances = moved(s.Machine.Nodes, order), moved(s.Nodes, order), moved(s.Window.Nodes, order), moved(s.Machine.Distances, order)
	for i := range order {
		out.Machine.Nodes[i].ID, out.Nodes[i].ID, out.Window.Nodes[i].ID = to[order[i]], to[order[i]], to[order[i]]
		out.Machine.Distances[i] = moved(out.Machine.Distances[i], order)
		access := slices.Clone(out.Machine.Nodes[i].Access)
		for j := range access {
			access[j].Initiators = nodeSet(access[j].Initiators)
		}
		out.Machine.Nodes[i].Access = access
	}
	out.Machine.CPUs = each(s.Machine.CPUs, func(c machine.CPU) machine.CPU { c.Node = optID(c.Node); return c })
	out.Window.Workloads = each(s.Window.Workloads, func(w window.Workload) window.Workload {
		w.CPUByNode, w.AnonByNode, w.FileByNode = moved(w.CPUByNode, order), moved(w.AnonByNode, order), moved(w.FileByNode, order)
		w.Binding.Mems = nodeSet(w.Binding.Mems)
		return w
	})
	out.Processes = each(s.Processes, func(p snapshot.Process) snapshot.Process {
		for k := range p.ByKind {
			p.ByKind[k] = moved(p.ByKind[k], order)
		}
		p.CPUByNode, p.Mems = moved(p.CPUByNode, order), nodeSet(p.Mems)
		p.Mappings = each(p.Mappings, func(m snapshot.Mapping) snapshot.Mapping {
			m.ByNode = moved(m.ByNode, order)
			if nodes, ok := bindNodes(m.Policy); ok {
				m.Policy = "bind:" + nodeSet(nodes).String()
			}
			return m
		})
		return p
	})
	out.IRQs = each(s.IRQs, func(q snapshot.IRQ) snapshot.IRQ { q.Counts, q.Node = moved(q.Counts, order), optID(q.Node); return q })
	out.Samples.Places = each(s.Samples.Places, func(p snapshot.Place) snapshot.Place {
		p.Loads, p.Remote, p.Stores = moved(p.Loads, order), moved(p.Remote, order), moved(p.Stores, order)
		return p
	})
	out.Samples.Lines = each(s.Samples.Lines, func(l snapshot.Line) snapshot.Line {
		l.Loads, l.Stores = moved(l.Loads, order), moved(l.Stores, order)
		return l
	})
	return out
}

// moved puts order[i] at position i; a missing entry stays missing.
func moved[T any](list []T, order []int) []T {
	if len(list) != len(order) {
		return slices.Clone(list)
	}
	return each(order, func(i int) T { return list[i] })
}
