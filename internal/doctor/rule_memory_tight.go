// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"path"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A workload may use too little memory: it ran out of memory, or soon will (Cates,
// papers §5: "membind (fails when full)").
//
//  1. Processes of it were killed in the period; or
//  2. its nodes are a part of the machine's, and the free memory and page cache there,
//     above the low watermarks, are less than 1 − NearFull of them; or
//  3. its use beyond page cache is NearFull of its limit; if a cgroup above it has the
//     tighter limit, that cgroup's use.
//  4. A failure is a risk, not a cost. If other nodes have free memory, NUMA limits the
//     machine, and the finding decides the verdict. Only number 2 does so: a kill may
//     come from the workload's own limit, which more nodes do not raise.
func memoryTooTight(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	for k, w := range s.Window.Workloads {
		t := l.tightness(k)
		switch {
		case len(t.risks) > 0:
			found = append(found, l.tightFinding(k, t))
		case t.unknown != "":
			skipped = append(skipped, skip(t.unknown, w.ID))
		}
	}
	return found, skipped
}

type tightness struct {
	risks    []string
	evidence []Evidence
	nodes    bool // number 2
	limit    bool // number 3
	unknown  string
}

func (l view) tightness(k int) tightness {
	w, g := l.Window.Workloads[k], l.group(k)
	memory := l.Machine.NodesWithMemory()
	var t tightness
	if n, ok := g.OOMKills.Get(); ok && n > 0 { // 1
		t.risks = append(t.risks, render.Count(int(min(n, 1<<31)), "process")+" killed for lack of memory in this period")
		t.evidence = append(t.evidence, figured("killed for lack of memory", unit.ValueOf(float64(n), g.OOMKills.How, g.OOMKills.From), ""))
	}
	if !w.Binding.Mems.IsEmpty() && !memory.SubsetOf(w.Binding.Mems) {
		l.nodesTight(w, &t)
	}
	l.limitTight(w, g, &t)
	return t
}

// nodesTight is number 2.
func (l view) nodesTight(w window.Workload, t *tightness) {
	var room, total unit.Bytes
	how := unit.HowMeasured
	for id := range w.Binding.Mems.All() {
		i, ok := l.index(id)
		free, ok1 := l.free(i).Get()
		file, ok2 := l.file(i).Get()
		all, ok3 := l.total(i).Get()
		if !ok || !ok1 || !ok2 || !ok3 {
			t.unknown = "free memory or page cache of its nodes is unknown"
			return
		}
		how = min(how, l.free(i).How, l.file(i).How)
		room, total = room+max(0, free+file-l.mem(i).LowFree.Or(0)), total+all
	}
	anon, known := window.SumBytes(w.AnonByNode)
	if total <= 0 || float64(room) > (1-l.c.NearFull)*float64(total) || known && anon < l.c.MinMemory {
		return
	}
	t.nodes = true
	t.risks = append(t.risks, fmt.Sprintf("%s of memory are left on %s, which it is bound to", room, nodeNames(w.Binding.Mems)))
	t.evidence = append(t.evidence, fact("free or page cache on "+nodeNames(w.Binding.Mems), fmt.Sprintf("%v of %v", room, total), how, "meminfo"))
}

// limited is the cgroup with the tightest limit, with what it uses and how much of that
// is page cache.
func (l view) limited(w window.Workload, g snapshot.Group) snapshot.Limited {
	if g.Limited != nil {
		return *g.Limited
	}
	own := snapshot.Limited{ID: w.ID, Used: g.MemoryUsed, File: unit.UnknownValue[unit.Bytes]("its page cache is unknown")}
	if file, ok := window.SumBytes(w.FileByNode); ok && len(w.FileByNode) > 0 {
		own.File = unit.ValueOf(file, w.FileByNode[0].How, w.FileByNode[0].From)
	}
	return own
}

// limitTight is number 3.
func (l view) limitTight(w window.Workload, g snapshot.Group, t *tightness) {
	limit, ok1 := g.MemoryLimit.Get()
	if !ok1 || limit <= 0 { // no limit is set
		return
	}
	by := l.limited(w, g)
	used, ok2 := by.Used.Get()
	file, ok3 := by.File.Get()
	if !ok2 || !ok3 {
		t.unknown = "it has a memory limit, but what it uses or its page cache is unknown"
		return
	}
	if float64(used-file) < l.c.NearFull*float64(limit) {
		return
	}
	t.limit = true
	whose := fmt.Sprintf("its limit of %v", limit)
	if by.ID != w.ID {
		whose = fmt.Sprintf("the limit of %v of %s, which contains it,", limit, by.ID)
	}
	t.risks = append(t.risks, fmt.Sprintf("%v of %s are in use and cannot be dropped", used-file, whose))
	t.evidence = append(t.evidence, shown("memory used", by.Used), shown("memory limit", g.MemoryLimit))
}

func (l view) tightFinding(k int, t tightness) Finding {
	w, g := l.Window.Workloads[k], l.group(k)
	f := Finding{
		Title:   "Memory of " + w.ID + " is tight: " + t.risks[0],
		Subject: ofWorkload(w.ID), Risk: "out of memory: " + render.ListFew(t.risks, 3),
		Cost:     unit.UnknownValue[float64]("a failure, not a loss of time"),
		Evidence: append(t.evidence, fact("nodes it may use", w.Binding.Mems.String(), unit.HowMeasured, "cpuset.mems.effective")),
		Cause:    "It has used up the memory that it may use.",
		Remedy:   "Raise its limit, or give it less to do." + managed(w),
	}
	f.Commands, f.Afterwards = l.tightCommands(w, g)
	if pages, ok := g.AllocStalls.Get(); ok && pages > 0 {
		f.Evidence = append(f.Evidence, figured("reclaimed from it", l.perSecond(g.AllocStalls), "pages/s"))
	}
	if swap, ok := l.Settings.SwapFree.Get(); ok && swap > 0 {
		f.Evidence = append(f.Evidence, shown("free swap, which delays it", l.Settings.SwapFree))
	}
	if others := l.roomBeside(w.Binding.Mems); t.nodes && !t.limit && !others.IsEmpty() { // 4
		f.Decides = true
		f.Evidence = append(f.Evidence, l.roomEvidence(others))
		f.Cause = fmt.Sprintf("Its memory is bound to %s, and more memory is needed there than there is. %s has free memory that it may not use.", nodeNames(w.Binding.Mems), capital(nodeNames(others)))
		f.Remedy = "Let it use the nearest node with free memory too: some of its reads become remote, and nothing is killed." + managed(w)
		f.Commands, f.Afterwards = l.bind(w, set.CPUSet{}, w.Binding.Mems.Union(others)), l.askManager(w)
	}
	return f
}

// tightCommands raise the limit by a quarter where it is set; without a limit they show
// it.
func (l view) tightCommands(w window.Workload, g snapshot.Group) (commands []string, afterwards string) {
	limit, ok := g.MemoryLimit.Get()
	if !ok {
		return []string{"cat " + cgroupFile(l.Cgroups.Memory, w.ID, "memory.events")}, onlyShow("it needs less memory, or has more nodes")
	}
	by := l.limited(w, g)
	out := l.limit(w, by.ID, limit/4*5)
	if by.ID != w.ID {
		out[len(out)-1] += remark("the limit that holds for " + path.Base(w.ID))
	}
	return out, l.askManager(w)
}

// roomBeside is the nearest node with free memory that is not one of these.
func (l view) roomBeside(mems set.NodeSet) set.NodeSet {
	for id := range mems.All() {
		if near := l.nearest(id, func(i int) bool { return !mems.Has(l.id(i)) && l.roomy(i) }); len(near) > 0 {
			return l.nodeSet(near[0])
		}
	}
	return set.NodeSet{}
}

func (l view) roomEvidence(nodes set.NodeSet) Evidence {
	id, _ := nodes.First()
	i, _ := l.index(id)
	return shown("free on "+nodeName(id), l.free(i))
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return string(text[0]-'a'+'A') + text[1:]
}
