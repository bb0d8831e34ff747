// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"homenode/internal/action"
	"homenode/internal/set"
)

// The files of a cgroup, as the kernel calls them.
const (
	cpusFile = "cpuset.cpus"
	memsFile = "cpuset.mems"
)

// Apply takes steps as an owner does; what became of them is in the next window. A
// move takes time: it goes on while the world runs, at its rate, and takes CPU and
// bandwidth. After a step that was not done, the same workload's further ones are
// dropped, as the live loop does.
func (w *World) Apply(steps []action.Step) {
	stopped := map[string]bool{}
	for _, s := range steps {
		if stopped[s.Workload] {
			continue
		}
		o := w.take(s)
		if o.Status == "" { // a move that has begun
			continue
		}
		stopped[s.Workload] = o.Status != action.Done
		w.outcomes = append(w.outcomes, o)
	}
}

// take is one step; no status means that its outcome comes with the next window.
func (w *World) take(s action.Step) action.Outcome {
	wl, ok := w.find(s.Workload)
	if !ok {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("act on %s: no such file or directory (gone)", s.Workload)}
	}
	if why := w.refusal(wl, s); why != "" {
		return action.Outcome{Step: s, Status: action.Refused, Detail: why}
	}
	switch s.Kind {
	case action.SetCPUs:
		return w.setCPUs(wl, s)
	case action.SetMems:
		return w.setMems(wl, s)
	case action.MovePages:
		w.moves = append(w.moves, move{w.mover.Begin(&wl.group, s), wl})
		return action.Outcome{Step: s}
	}
	return w.restore(wl, s)
}

// busyNow draws whether a write is refused with EBUSY.
func (w *World) busyNow(wl *workload) bool {
	return w.c.Linux.Busy > 0 && wl.busyRandom.Float() < w.c.Linux.Busy
}

func ebusy(s action.Step, setting string, value any) action.Outcome {
	detail := fmt.Sprintf("set %s to %s: refused: EBUSY: a cgroup below it has more, or it is exclusive", setting, value)
	return action.Outcome{Step: s, Status: action.Refused, Detail: detail}
}

// setCPUs is what the journal does with a setting (journal.change): a value that is
// there already is not written, and stays whose it was.
func (w *World) setCPUs(wl *workload, s action.Step) action.Outcome {
	if wl.ownCPUs != s.CPUs {
		if w.busyNow(wl) {
			return ebusy(s, wl.id+" "+cpusFile, s.CPUs)
		}
		w.writeCPUs(wl, s.CPUs)
		wl.ownCPUs, wl.oursCPUs = s.CPUs, true
	}
	return action.Outcome{Step: s, Status: action.Done, Detail: fmt.Sprintf("%s %s = %s", wl.id, cpusFile, s.CPUs)}
}

func (w *World) writeCPUs(wl *workload, cpus set.CPUSet) {
	if wl.cpus == cpus {
		return
	}
	wl.cpus = cpus
	w.host.SetCPUs(&wl.group, w.count(cpus))
	w.rebound(wl)
}

func (w *World) setMems(wl *workload, s action.Step) action.Outcome {
	if wl.ownMems != s.Nodes {
		if w.busyNow(wl) {
			return ebusy(s, wl.id+" "+memsFile, s.Nodes)
		}
		w.writeMems(wl, s.Nodes)
		wl.ownMems, wl.oursMems = s.Nodes, true
	}
	return action.Outcome{Step: s, Status: action.Done, Detail: fmt.Sprintf("%s %s = %s", wl.id, memsFile, s.Nodes)}
}

// writeMems moves pages inside the write, as fast as an idle machine can; the workload
// stands still for it.
func (w *World) writeMems(wl *workload, nodes set.NodeSet) {
	if wl.mems == nodes {
		return
	}
	wl.mems = nodes
	seconds := w.mover.SetMems(&wl.group, nodes)
	wl.stop(seconds, seconds)
	w.rebound(wl)
}

// restore puts back what was there before the first step: moved pages stay.
func (w *World) restore(wl *workload, s action.Step) action.Outcome {
	was := w.parentCPUs()
	if own := wl.spec.Start.CPUs; !own.IsEmpty() {
		was = own
	}
	w.writeCPUs(wl, was)
	w.writeMems(wl, w.parentMems())
	wl.ownCPUs, wl.ownMems = wl.spec.Start.CPUs, set.NodeSet{}
	wl.oursCPUs, wl.oursMems = false, false
	return action.Outcome{Step: s, Status: action.Done}
}
