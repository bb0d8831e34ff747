// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"fmt"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/sim"
)

// The files of a cgroup, as the kernel calls them.
const (
	cpusFile = "cpuset.cpus"
	memsFile = "cpuset.mems"
)

// Apply takes steps as an owner does; what became of them is in the next window. A
// move takes time: it goes on while the world runs. After a step of a workload that was
// not done, its further ones are dropped, as the live loop does; but threads are pinned
// one by one, whatever became of the others.
func (w *World) Apply(steps []action.Step) {
	stopped := map[string]bool{}
	for _, s := range steps {
		if stopped[s.Workload] && s.Kind != action.PinThread {
			continue
		}
		o := w.take(s)
		if o.Status == "" { // a move that has begun
			continue
		}
		if s.Kind != action.PinThread {
			stopped[s.Workload] = o.Status != action.Done
		}
		w.outcomes = append(w.outcomes, o)
	}
}

// take is one step; no status means that its outcome comes with the next window.
func (w *World) take(s action.Step) action.Outcome {
	wl, ok := w.find(s.Workload)
	if !ok {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("act on %s: no such file or directory (gone)", s.Workload)}
	}
	limits := sim.Limits{ID: wl.id, Owner: wl.owner, Mems: wl.mems, ParentCPUs: w.online, ParentMems: w.mems}
	if s.Kind == action.PinThread {
		return w.pin(wl, s, limits.Foreign())
	}
	if why := limits.Refusal(s); why != "" {
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

// pin is sched_setaffinity of one thread: it is moved at once, to the CPU that has the
// least to do. Released, it has its affinity back at once, and stays there until it is
// moved. No CPUs: its affinity is what it was.
func (w *World) pin(wl *workload, s action.Step, foreign string) action.Outcome {
	refused := func(format string, args ...any) action.Outcome {
		return action.Outcome{Step: s, Status: action.Refused, Detail: fmt.Sprintf(format, args...)}
	}
	if s.Thread < 1 || s.Thread > len(w.ids) || w.ids[s.Thread-1].wl != wl {
		return action.Outcome{Step: s, Status: action.Gone, Detail: fmt.Sprintf("pin thread %d of %s: no such process (gone)", s.Thread, wl.id)}
	}
	t := w.ids[s.Thread-1]
	switch usable := s.CPUs.Intersect(wl.cpus); {
	case foreign != "":
		return refused("%s", foreign)
	case t.pinned:
		return refused("pin thread %d of %s: refused: somebody else tied it to %s", t.id, wl.id, t.own)
	case s.CPUs.IsEmpty():
		t.own, t.ours = set.CPUSet{}, false
	case usable.IsEmpty():
		return refused("pin thread %d of %s to %s: refused: EINVAL: its %s has %s only", t.id, wl.id, s.CPUs, cpusFile, wl.cpus)
	default:
		t.own, t.ours = s.CPUs, true
		w.allow(t)
		if !has(t.mask, t.cpu) {
			w.put(t, w.leastLoaded(t, t.mask))
		}
		if s.Release {
			t.own, t.ours = set.CPUSet{}, false
		}
	}
	w.allow(t)
	return action.Outcome{Step: s, Status: action.Done, Detail: fmt.Sprintf("%s thread %d is on cpu %d", wl.id, t.id, w.cpus[t.cpu].id)}
}

// busyNow draws whether a write is refused with EBUSY.
func (w *World) busyNow(wl *workload) bool {
	return w.c.Linux.Busy > 0 && wl.busyRandom.Float() < w.c.Linux.Busy
}

// setCPUs is what the journal does with a setting: a value that is there already is not
// written, and stays whose it was.
func (w *World) setCPUs(wl *workload, s action.Step) action.Outcome {
	if wl.ownCPUs != s.CPUs {
		if w.busyNow(wl) {
			return sim.Busy(s, wl.id+" "+cpusFile, s.CPUs)
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
	w.rebound(wl)
	w.evict(wl)
}

func (w *World) setMems(wl *workload, s action.Step) action.Outcome {
	if wl.ownMems != s.Nodes {
		if w.busyNow(wl) {
			return sim.Busy(s, wl.id+" "+memsFile, s.Nodes)
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
	w.open(wl)
	seconds := w.mover.SetMems(&wl.group, nodes)
	w.close(wl)
	wl.requests.Stop(seconds, seconds)
	wl.bound = wl.cpus != w.online || wl.mems != w.mems
}

// restore puts back what was there before the first step: moved pages stay.
func (w *World) restore(wl *workload, s action.Step) action.Outcome {
	was := w.online
	if own := wl.spec.Start.CPUs; !own.IsEmpty() {
		was = own
	}
	for i := range wl.threads {
		if t := &wl.threads[i]; t.ours {
			t.own, t.ours = set.CPUSet{}, false
			w.allow(t)
		}
	}
	w.writeCPUs(wl, was)
	w.writeMems(wl, w.mems)
	wl.ownCPUs, wl.ownMems = wl.spec.Start.CPUs, set.NodeSet{}
	wl.oursCPUs, wl.oursMems = false, false
	return action.Outcome{Step: s, Status: action.Done}
}
