// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A workload runs away from its memory: the general finding. It is dropped if another
// finding knows the cause (Examine).
//
//  1. Either nothing keeps it apart: it may run on several nodes and use the memory of
//     several. Or its CPUs' nodes are among those whose memory it may use, by its
//     cpuset and the affinity of all its processes, and something else keeps them
//     apart: a policy of its own, a node that was full, or memory from before.
//  2. RemoteShare of its reads are remote: counted, else estimated from its pages
//     and CPU time by node.
//  3. An estimate alone does not say that memory matters to it: then its loss must be
//     known, and be Slight of the CPU time it uses. The same holds where threads of
//     several nodes write its lines in turns: what is left then must be worth
//     reporting.
//  4. Cost: its loss. Where it would fit: the node with most of its memory that has the
//     CPUs and the memory for it, and whose memory its reads would not fill. Where that
//     alone forbids it, it is spread.
func remoteWorkload(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for k, w := range s.Window.Workloads {
		if cpu, ok := w.CPU.Get(); ok && cpu < c.MinCPU {
			continue
		}
		lost := l.lostCPUs(w)
		remote, ok := lost.remote.Get()
		if !ok || !w.CPU.Known() {
			skipped = append(skipped, skip("its share of remote reads is unknown: "+because(lost.remote), w.ID))
			continue
		}
		if float64(remote) < c.RemoteShare { // 2
			continue
		}
		if v, known := lost.cpus.Get(); lost.remote.How == unit.HowEstimated || known && l.lineShare(w.ID) > 0 { // 3
			if !known {
				skipped = append(skipped, skip("its pages are remote, but whether it reads them is unknown: "+because(lost.cpus), w.ID))
			}
			if !known || v < c.Slight*w.CPU.Or(0) {
				continue
			}
		}
		cpus := l.runsOn(k)
		switch home := l.nodesOf(cpus); { // 1
		case l.unbound(w) && home.Len() != 1:
			found = append(found, l.remoteFinding(k, lost))
		case !home.IsEmpty() && (w.Binding.Mems.IsEmpty() || home.SubsetOf(w.Binding.Mems)):
			found = append(found, l.leftBehind(k, cpus, lost))
		}
	}
	return found, skipped
}

// runsOn are the CPUs that a workload may run on: its cpuset's, without those that the
// affinity of its processes excludes, if all of them were looked at.
func (l view) runsOn(k int) set.CPUSet {
	w := l.Window.Workloads[k]
	var affinity set.CPUSet
	for _, pid := range l.group(k).PIDs {
		p, ok := l.process(pid)
		if !ok || p.Allowed.IsEmpty() {
			return w.Binding.CPUs
		}
		affinity = affinity.Union(p.Allowed)
	}
	switch {
	case affinity.IsEmpty():
		return w.Binding.CPUs
	case w.Binding.CPUs.IsEmpty():
		return affinity
	}
	return affinity.Intersect(w.Binding.CPUs)
}

// unbound is number 1; a binding that is not known does not restrict.
func (l view) unbound(w window.Workload) bool {
	cpus := l.nodesOf(w.Binding.CPUs)
	return (w.Binding.CPUs.IsEmpty() || cpus.Len() > 1) && (w.Binding.Mems.IsEmpty() || w.Binding.Mems.Len() > 1)
}

func (l view) remoteFinding(k int, lost loss) Finding {
	w := l.Window.Workloads[k]
	f := Finding{
		Title:   fmt.Sprintf("%s runs away from its memory: %v of its reads are remote", w.ID, lost.remote.V),
		Subject: ofWorkload(w.ID), Cost: lost.cpus, draws: draws(l.remoteOf(k), lost.cpus), // 4
		Evidence: l.remoteEvidence(w, lost),
		Cause:    "Nothing keeps its threads where its pages are: the scheduler balances load over nodes, and pages stay where they were touched first.",
	}
	if cpu := l.cpuShares(w); cpu != nil {
		f.Evidence = append(f.Evidence, l.spread("CPU time", cpu, unit.HowEstimated, "where its threads last ran"))
	}
	if part, _ := l.anonShares(w); part != nil {
		f.Evidence = append(f.Evidence, l.spread("private memory", part, w.AnonByNode[0].How, w.AnonByNode[0].From))
	}
	f.Evidence = append(f.Evidence, l.place(func(p snapshot.Place) bool { return p.Workload == w.ID })...)
	i, why := l.fits(w)
	if i < 0 {
		if p := l.firstProcess(k); strings.HasPrefix(why, fills) && p.PID != 0 {
			f.Remedy = "Spread its memory: " + why + ", so that its work would take longer than now. To interleave it, stop it and start it again with the command line of " + processName(p) + " for COMMAND…."
			f.Commands, f.Afterwards = []string{restartUnderNumactl(p, "--interleave="+l.Machine.NodesWithMemory().String(), "")}, l.overruled(p)
			return f
		}
		f.Remedy = "No single node is known to have room for it (" + why + "): let homenode make room, or spread it evenly over the nodes."
		f.Commands = []string{"homenode agent --dry-run", "homenode why " + quote(w.ID)}
		f.Afterwards = onlyShow("homenode agent, or its owner, has made room for it")
		return f
	}
	nodes := l.nodeSet(l.id(i))
	f.Remedy = fmt.Sprintf("Keep it on %s, which has room for it; homenode agent does that, and gives it back when it no longer fits.", nodeNames(nodes)) + managed(w)
	f.Commands, f.Afterwards = l.bind(w, l.mayRunOn(w, nodes), nodes), l.askManager(w)
	return f
}

// leftBehind is the finding about a workload that is bound and whose memory is
// elsewhere nevertheless.
func (l view) leftBehind(k int, cpus set.CPUSet, lost loss) Finding {
	w := l.Window.Workloads[k]
	f := Finding{
		Title:   fmt.Sprintf("%s is bound, but not to its memory: %v of its reads are remote", w.ID, lost.remote.V),
		Subject: ofWorkload(w.ID), Cost: lost.cpus, draws: draws(l.remoteOf(k), lost.cpus),
		Evidence: l.remoteEvidence(w, lost),
		Cause: fmt.Sprintf("It may run on CPUs %v and use memory of nodes %v; its pages are elsewhere, because they were there before it was bound, because its node was full, or because a policy of its own puts them there.%s",
			cpus, w.Binding.Mems, pinnedWhy(w)),
		Remedy: "Move its pages to where it runs. If a memory policy put them there, start it without.",
	}
	if part, _ := l.anonShares(w); part != nil {
		f.Evidence = append(f.Evidence, l.spread("private memory", part, w.AnonByNode[0].How, w.AnonByNode[0].From))
	}
	f.Evidence = append(f.Evidence, l.place(func(p snapshot.Place) bool { return p.Workload == w.ID })...)
	to := l.memoryNodes(l.nodesOf(cpus))
	if !w.Binding.Mems.IsEmpty() {
		to = to.Intersect(w.Binding.Mems)
	}
	from := l.Machine.NodesWithMemory().Minus(to)
	f.Commands = l.makeRoom(to)
	dropped, come := len(f.Commands) > 0, unit.Bytes(0)
	for _, p := range l.Processes {
		if p.Workload == w.ID && !from.IsEmpty() && !to.IsEmpty() {
			come += l.bytesOn(p, from)
			f.Commands = append(f.Commands, fmt.Sprintf("migratepages %d %v %v  # %s in %s", p.PID, from, to, quote(p.Name), quote(w.ID)))
		}
	}
	f.Afterwards = l.noRoomFor(come, to, dropped)
	if dropped {
		f.Remedy = "Take memory back from the page cache that fills its node. " + f.Remedy
	}
	if len(f.Commands) == 0 {
		f.Commands = []string{"homenode stat --workload " + quote(w.ID)}
		f.Afterwards = onlyShow("its pages are moved to where it runs")
	}
	return f
}

// bytesOn is the memory that a process has on these nodes.
func (l view) bytesOn(p snapshot.Process, nodes set.NodeSet) (sum unit.Bytes) {
	by := p.Bytes()
	for id := range nodes.All() {
		i, _ := l.index(id)
		sum += at(by, i)
	}
	return sum
}

// makeRoom frees page cache if it fills one of these nodes.
func (l view) makeRoom(nodes set.NodeSet) (commands []string) {
	for id := range nodes.All() {
		i, _ := l.index(id)
		full, _ := l.full(i)
		if total := l.total(i).Or(0); full && total > 0 && float64(l.file(i).Or(0)) >= l.c.CacheShare*float64(total) {
			commands = append(commands, l.cacheCommands(i)...)
		}
	}
	return commands
}

// fits is the node with most of a workload's memory, of those that it may use and that
// have room for all of it; -1 and the tightest reason when there is none.
func (l view) fits(w window.Workload) (int, string) {
	pages, ok := w.PagesByNode()
	if !ok || len(pages) != len(l.Machine.Nodes) || len(w.CPUByNode) != len(pages) {
		return -1, "its CPU time or memory by node is unknown"
	}
	order := make([]int, len(pages))
	sum := unit.Bytes(0)
	for i, b := range pages {
		order[i], sum = i, sum+b
	}
	sortBy(order, func(i int) float64 { return -float64(pages[i]) })
	why := "no CPUs"
	for _, i := range order {
		if reason := l.noRoom(w, i, sum-pages[i]); reason == "" {
			return i, ""
		} else if slices.Index(order, i) == 0 {
			why = reason
		}
	}
	return -1, why
}

// noRoom says why a node cannot take all of a workload, if come bytes would have to
// move there.
func (l view) noRoom(w window.Workload, i int, come unit.Bytes) string {
	n := l.Machine.Nodes[i]
	if !l.mayLive(w, i) {
		return "it may not use " + nodeName(n.ID)
	}
	busy, ok1 := l.windowNode(i).CPUBusy.Get()
	free, ok2 := l.free(i).Get()
	own, ok3 := w.CPUByNode[i].Get()
	if !ok1 || !ok2 || !ok3 {
		return "what is free on " + nodeName(n.ID) + " is unknown"
	}
	if room := float64(l.mayRunOn(w, l.nodeSet(n.ID)).Len()) - (busy - own); room < w.CPU.Or(0) {
		return fmt.Sprintf("%s has %s CPUs' worth left, it uses %s", nodeName(n.ID), render.Amount(max(0, room)), render.Amount(w.CPU.Or(0)))
	}
	if room := free + l.file(i).Or(0); room < come {
		return fmt.Sprintf("%s has %v left, %v would have to move there", nodeName(n.ID), room, come)
	}
	return l.filled(w, i)
}
