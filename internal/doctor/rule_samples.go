// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Both rules below need samples of accesses with their addresses (PMU: PEBS, IBS, SPE,
// or the lab's).

// CPUs of several nodes write a cache line, or a page (Cates, papers §5: "avoid hot
// writable lines"): each write takes the line away from the others.
//
//  1. At least MinSamples samples of it, by two threads or more: a single thread that
//     moves between nodes writes its own lines on both.
//  2. Stores from two nodes or more, each with SharedShare of them.
//  3. Cost: the workload's stall time × its part of the workload's samples, as if
//     each sampled access stalled alike. A contended line stalls longer than that.
func sharedLine(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	if why := l.noSamples(); why != "" {
		return nil, []Skipped{skip(why)}
	}
	if s.Samples.Stores == 0 {
		return nil, []Skipped{skip("no store was sampled: this PMU or period shows nothing about writers")}
	}
	for _, line := range s.Samples.Lines {
		if l.contended(line) { // 1, 2
			found = append(found, l.lineFinding(line, l.samplers(line.Stores)))
		}
	}
	return found, skipped
}

func (l view) noSamples() string {
	if s := l.Samples; s.Why != "" || s.How == unit.HowUnknown {
		return "no samples of addresses: " + orElse(s.Why, "none were taken")
	}
	return ""
}

// samplers are the nodes with SharedShare of these samples.
func (l view) samplers(by []uint64) set.NodeSet {
	var nodes set.NodeSet
	all := float64(total(by))
	for i, n := range by {
		if all > 0 && i < len(l.Machine.Nodes) && float64(n) >= l.c.SharedShare*all {
			nodes = nodes.Union(l.nodeSet(l.id(i)))
		}
	}
	return nodes
}

func (l view) lineFinding(line snapshot.Line, writers set.NodeSet) Finding {
	what, advice := "line", "Give each node, or each thread, its own copy of what is written, each on a cache line of its own (64 bytes; 128 where lines are fetched in pairs), and add them up when they are read."
	if line.Bytes > 128 {
		what, advice = "page", "Find the hot line in it with the command; what is written often belongs on a cache line of its own, or in a copy per node."
	}
	p, ok := l.process(line.PID)
	if !ok {
		p = snapshot.Process{PID: line.PID, Name: line.Workload, Workload: line.Workload}
	}
	who := ofProcess(p)
	who.Workload = line.Workload
	where := fmt.Sprintf("%#x in %s", line.Addr, line.Mapping)
	f := Finding{
		Title:   fmt.Sprintf("A %s that CPUs of %s write: %s of %s%s", what, nodeNames(writers), where, processName(p), inFunction(line.Functions)),
		Subject: who, Cost: l.lineCost(line), // 3
		Evidence: []Evidence{
			l.counts("sampled stores", line.Stores), l.counts("sampled loads", line.Loads),
			fact("where", where, l.Samples.How, l.Samples.From), l.functions(line.Functions),
		},
		Cause:      "Each write takes the " + what + " away from the caches of the other nodes, and each read after that fetches it back over the link.",
		Remedy:     advice + " Or keep those threads on one node.",
		Commands:   []string{fmt.Sprintf("perf c2c record -p %d -- sleep 10 && perf c2c report --stdio", line.PID)},
		Afterwards: onlyShow("the program is changed, or those threads run on one node"),
	}
	if line.Modified > 0 {
		f.Evidence = append(f.Evidence, fact("of these from another CPU's cache (HITM)", strconv.FormatUint(line.Modified, 10), l.Samples.How, l.Samples.From))
	}
	return f
}

func (l view) counts(name string, by []uint64) Evidence {
	return fact(name, orElse(l.byNode(func(i int) string { return strconv.FormatUint(at(by, i), 10) }), "none"), l.Samples.How, l.Samples.From)
}

func (l view) functions(all []snapshot.Function) Evidence {
	names := each(all, func(f snapshot.Function) string {
		return fmt.Sprintf("%s (%d samples, %d writes)", f.Name, f.Samples, f.Writes)
	})
	return fact("functions", orElse(render.ListFew(names, 3), "unknown"), l.Samples.How, l.Samples.From)
}

func inFunction(all []snapshot.Function) string {
	if len(all) == 0 {
		return ""
	}
	return ", in " + all[0].Name
}

// Several nodes read read-only data from afar: a copy per node would pay (Cates, papers
// §5: "replicate read-only data per node").
//
//  1. At least MinPlaceSamples samples of the mapping, and none of them a store where
//     several threads load, by a PMU that samples stores; none among n means fewer than
//     3/n. There may be a few written pages between the data: then the stores fall on the
//     same WrittenShare of the pages again and again. What one thread alone uses may be
//     written: a mapping may hold its stack, too.
//  2. Loads from two nodes or more, each with SharedShare of them, and CommonShare of
//     them where several threads load. Threads that move between nodes with parts of
//     their own need no copies, but a home node.
//  3. RemoteShare of them are remote.
//  4. Cost: its part of the workload's remote samples × the workload's loss.
func readOnlyFar(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	if why := l.noSamples(); why != "" {
		return nil, []Skipped{skip(why)}
	}
	if s.Samples.Stores == 0 {
		return nil, []Skipped{skip("no store was sampled: nothing shows what is only read")}
	}
	for _, p := range s.Samples.Places {
		loads, remote := total(p.Loads), total(p.Remote)
		readers := l.samplers(p.Loads)
		if loads < c.MinPlaceSamples || !l.readOnly(p) || readers.Len() < 2 || float64(p.Common.Or(0)) < c.CommonShare || float64(remote) < c.RemoteShare*float64(loads) { // 1, 2, 3
			continue
		}
		found = append(found, l.readOnlyFinding(p, readers))
	}
	return found, skipped
}

// readOnly is the second half of number 1.
func (l view) readOnly(p snapshot.Place) bool {
	return p.Changes == 0 || float64(p.Written) <= l.c.WrittenShare*float64(p.Pages) && uint64(3*p.Written) <= p.Changes
}

// writesSay is the evidence for it.
func (l view) writesSay(p snapshot.Place) Evidence {
	text := fmt.Sprintf("0 beside %d loads: fewer than %s of its accesses write", total(p.Loads), render.Percent(3/float64(total(p.Loads))))
	switch n := total(p.Stores); {
	case p.Changes > 0:
		text = fmt.Sprintf("%d, all on %d of the %d pages that were sampled", p.Changes, p.Written, p.Pages)
	case n > 0:
		text = fmt.Sprintf("%d beside %d loads, all where at most one thread loads", n, total(p.Loads))
	}
	return fact("sampled stores", text, l.Samples.How, l.Samples.From)
}

func (l view) readOnlyFinding(p snapshot.Place, readers set.NodeSet) Finding {
	loads, remote := total(p.Loads), total(p.Remote)
	proc, ok := l.process(p.PID)
	if !ok {
		proc = snapshot.Process{PID: p.PID, Name: p.Name}
	}
	proc.Workload = p.Workload
	f := Finding{
		Title:   fmt.Sprintf("Read-only data that %s read from afar: %s of %s%s", nodeNames(readers), p.Mapping, processName(proc), inFunction(p.Functions)),
		Subject: ofProcess(proc),
		Evidence: []Evidence{
			l.counts("sampled loads", p.Loads), l.counts("of these remote", p.Remote),
			l.writesSay(p),
			fact("remote", render.Percent(float64(remote)/float64(loads)), l.Samples.How, l.Samples.From), l.functions(p.Functions),
		},
		Cause:  "There is one copy of it, on one node, and CPUs of several nodes read it. It is not written, so copies cannot differ.",
		Remedy: "Keep one copy per node: load it once per node, or run one instance of " + processName(proc) + " per node, and replace COMMAND… with its command line.",
	}
	f.Cost, f.draws = l.readOnlyCost(p) // 4
	if p.Latency.Known() {
		f.Evidence = append(f.Evidence, fact("mean load latency", render.Amount(p.Latency.Or(0))+" cycles", l.Samples.How, l.Samples.From))
	}
	if strings.HasPrefix(p.Mapping, "/") {
		f.Remedy += " It is a file: its page cache is one copy for all, so each node needs a file of its own."
	}
	id, _ := readers.First()
	f.Afterwards = l.overruled(proc)
	f.Commands = []string{restartUnderNumactl(proc, fmt.Sprintf("--cpunodebind=%d --membind=%d", id, id), ", and so for each of "+nodeNames(readers))}
	return f
}

func (l view) readOnlyCost(p snapshot.Place) (unit.Value[float64], []draw) {
	k := slices.IndexFunc(l.Window.Workloads, func(w window.Workload) bool { return w.ID == p.Workload })
	all := uint64(0)
	for _, q := range l.Samples.Places {
		if q.Workload == p.Workload {
			all += total(q.Remote)
		}
	}
	if k < 0 || all == 0 {
		return unit.UnknownValue[float64]("it is in no workload of the window"), nil
	}
	cost := scaled(l.lostCPUs(l.Window.Workloads[k]).cpus, float64(total(p.Remote))/float64(all), "its part of the remote samples × what "+p.Workload+" loses")
	return cost, draws(l.remoteOf(k), cost)
}
