// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// This host is a guest, and its topology is flat or wrong (BRM, papers §2: inside
// a VM the virtual topology may be flat or wrong; set_mempolicy then hurts).
//
//  1. It is a guest: the hypervisor is known. Otherwise this rule is silent: the
//     firmware of a physical machine has a rule of its own.
//  2. One node, and counters that show remote reads.
//  3. One node for several packages: no such machine exists.
//  4. Several nodes, all at distance 10: remote would be as near as local.
//  5. A last-level cache that spans nodes.
//  6. Cost: unknown; a guest cannot count what it cannot see.
func guestTopology(s snapshot.Snapshot, c Config) ([]Finding, []Skipped) {
	l := view{s, c}
	name, ok := s.Hypervisor.Get()
	if !ok {
		return nil, []Skipped{skip("whether this host is a guest is unknown: " + because(s.Hypervisor))}
	}
	if name == "" { // 1
		return nil, nil
	}
	var evidence []Evidence
	evidence = append(evidence, l.remoteOnOneNode()...)
	evidence = append(evidence, l.flat()...)
	evidence = append(evidence, l.spanningCache()...)
	if len(evidence) == 0 {
		return nil, nil
	}
	return []Finding{{
		Title:   fmt.Sprintf("This guest's topology is flat or wrong: %s", evidence[0].Name),
		Subject: Subject{Kind: SubjectHost, Name: name}, Cost: unit.UnknownValue[float64]("what the guest cannot see it cannot count"),
		Evidence:   append(evidence, shown("hypervisor", s.Hypervisor)),
		Cause:      "The topology that the hypervisor shows to its guest is not that of the CPUs and memory that the guest runs on. Policies and bindings in here use a wrong topology.",
		Remedy:     "On the host: give the VM virtual nodes that match what it is pinned to, or fit it into one node. In here, do not bind by node until that is done.",
		Commands:   []string{"lscpu --extended=CPU,NODE,SOCKET,CACHE", "numactl --hardware"},
		Afterwards: onlyShow("the host below gives this guest a true topology"),
	}}, nil
}

// remoteOnOneNode is number 2.
func (l view) remoteOnOneNode() []Evidence {
	if len(l.Machine.Nodes) != 1 {
		return nil
	}
	for _, w := range l.Window.Workloads {
		remote, ok := w.RemoteLoads.Get()
		all, okAll := w.Loads()
		if ok && okAll && w.RemoteLoads.How >= unit.HowModelled && all > 0 && float64(remote) >= l.c.GuestRemote*all {
			return []Evidence{fact("remote reads on a machine with one node", fmt.Sprintf("%s of the reads of %s", render.Percent(float64(remote)/all), w.ID), w.RemoteLoads.How, w.RemoteLoads.From)}
		}
	}
	return nil
}

// flat is numbers 3 and 4.
func (l view) flat() []Evidence {
	n := len(l.Machine.Nodes)
	if n == 1 && len(l.Machine.Packages) > 1 {
		return []Evidence{fact("one node for several packages", render.Count(len(l.Machine.Packages), "package"), unit.HowMeasured, "sysfs topology")}
	}
	far := 0
	for i, row := range l.Machine.Distances {
		for j, d := range row {
			v, ok := d.Get()
			if i == j {
				continue
			}
			if !ok || v != machine.LocalDistance {
				return nil
			}
			far++
		}
	}
	if n < 2 || far == 0 {
		return nil
	}
	return []Evidence{fact("all nodes are at distance 10 of each other", render.Count(n, "node"), unit.HowMeasured, "nodeN/distance")}
}

// spanningCache is number 5.
func (l view) spanningCache() []Evidence {
	for _, c := range l.Machine.LLCs {
		if nodes := l.nodesOf(c.CPUs); nodes.Len() > 1 {
			return []Evidence{fact("a last-level cache that spans nodes", fmt.Sprintf("L%d of CPUs %v, %s", c.Level, c.CPUs, nodeNames(nodes)), unit.HowMeasured, "sysfs cache")}
		}
	}
	return nil
}

// This host runs a VM whose virtual CPUs are on several nodes, while the guest sees one
// node: it cannot keep its threads near their memory.
//
//  1. The guest's topology has one node.
//  2. Its virtual CPUs ran on CPUs of several nodes, or may run there.
//  3. If they may, but did not, and its memory is on that one node, nothing is lost
//     yet: silent.
//  4. Cost: its part of its workload's loss.
func vmFlatTopology(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	if len(s.Processes) == 0 {
		return nil, []Skipped{skip("no process was looked at")}
	}
	for _, p := range s.Processes {
		if p.Guest == nil {
			continue
		}
		nodes, ok := p.Guest.Nodes.Get()
		if !ok {
			skipped = append(skipped, skip("how many nodes its guest sees is unknown: "+because(p.Guest.Nodes), processName(p)))
			continue
		}
		if len(p.Guest.VCPUThreads) == 0 || len(p.Threads) == 0 {
			skipped = append(skipped, skip("its virtual CPUs' threads are unknown", processName(p)))
			continue
		}
		ran, may := l.vcpuNodes(p)
		if nodes != 1 || ran.Len() < 2 { // 1, 2, 3
			continue
		}
		found = append(found, l.vmFinding(p, ran, may))
	}
	return found, skipped
}

func (l view) vcpuNodes(p snapshot.Process) (ran, may set.NodeSet) {
	for _, t := range p.Threads {
		if !slices.Contains(p.Guest.VCPUThreads, t.TID) {
			continue
		}
		if node, ok := l.Machine.NodeOf(t.CPU); ok && t.CPUTime.Or(1) > 0 {
			ran = ran.Union(l.nodeSet(node))
		}
		may = may.Union(l.nodesOf(t.Allowed))
	}
	return ran, may
}

func (l view) vmFinding(p snapshot.Process, ran, may set.NodeSet) Finding {
	f := Finding{
		Title:   fmt.Sprintf("VM %s sees one node, and its %s run on %s", processName(p), render.Count(p.Guest.VCPUs, "virtual CPU"), nodeNames(ran)),
		Subject: ofProcess(p),
		Evidence: []Evidence{
			shown("nodes the guest sees", p.Guest.Nodes),
			fact("its virtual CPUs ran on", nodeNames(ran), unit.HowMeasured, "/proc/PID/task/TID/stat"),
			fact("and may run on", orElse(nodeNames(may), "unknown"), unit.HowMeasured, "Cpus_allowed"),
		},
		Cause:  "To the guest all of its memory is equally near, so its threads run far from their memory half of the time, and its own NUMA balancing is off.",
		Remedy: "Fit the VM into one node if it can be; else give it virtual nodes (<numa> in libvirt's <cpu>) and pin each to one of the host's.",
	}
	f.Cost, f.draws = l.processLoss(p) // 4
	if part := l.private(p); part != nil {
		f.Evidence = append(f.Evidence, l.spread("its memory", part, unit.HowMeasured, orElse(p.MemoryHow, "numa_maps")))
	}
	f.Commands, f.Afterwards = l.vmCommands(p, ran)
	return f
}

// vmCommands move it to the node with most of its memory, of those that it may use and
// that have the CPUs and the room for it. Without such a node they only show more.
func (l view) vmCommands(p snapshot.Process, ran set.NodeSet) (commands []string, afterwards string) {
	best, most := -1, -1.0
	part := l.private(p)
	for i, n := range l.Machine.Nodes {
		if ran.Has(n.ID) && l.vmFits(p, i) && at(part, i) > most {
			best, most = i, at(part, i)
		}
	}
	pid := strconv.Itoa(p.PID)
	if best < 0 {
		return []string{"homenode why " + quote(orElse(p.Workload, "/")), "taskset -acp " + pid + remark("shows where its threads may run")}, onlyShow("the VM has virtual nodes, or fits into one node")
	}
	nodes := l.nodeSet(l.id(best))
	commands = []string{"taskset -acp " + l.vmCPUs(p, best).String() + " " + pid}
	if from := l.Machine.NodesWithMemory().Minus(nodes); !from.IsEmpty() && !nodes.IsEmpty() {
		commands = append(commands, "migratepages "+pid+" "+from.String()+" "+nodes.String())
	}
	return commands, ""
}

// vmCPUs are a node's CPUs that the workload of a VM may use.
func (l view) vmCPUs(p snapshot.Process, i int) set.CPUSet {
	return l.mayRunOn(at(l.Window.Workloads, l.workload(p.Workload)), l.nodeSet(l.id(i)))
}

// vmFits says that a node has the CPUs for it, and room for the memory that would move
// there; false when that is unknown.
func (l view) vmFits(p snapshot.Process, i int) bool {
	if !p.Known() || l.vmCPUs(p, i).Len() < p.Guest.VCPUs || !l.mayUse(at(l.Window.Workloads, l.workload(p.Workload)), i) {
		return false
	}
	return (p.Mems.IsEmpty() || p.Mems.Has(l.id(i))) && l.roomFor(i, p.Total()-at(p.Bytes(), i))
}
