// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/memsys"
	"homenode/internal/window"
)

// hand is what an operator does who knows the machine and every workload, and places them
// once: at the first window, and again when workloads come or go. It is an oracle: it sees
// the specs and the machine's model (see Oracle), which no policy can. It is a reference
// for policies, not one of them, and no ceiling: the oracle is simpler than the world, so
// its best need not be best in the world.
type hand struct {
	sys   *memsys.System
	specs []known
	ids   []string // workloads of the last decision
	least int      // least number of workloads for a decision
	jobs  map[string]*handJob
	memo  *Memo
	stop  func() bool
}

// known is a workload by its ID.
type known struct {
	id   string
	spec *sim.Spec
}

// handJob is the decision for a workload, and what was done about it.
type handJob struct {
	want, is set.NodeSet // empty: unbound
	waiting  bool        // unbound, to be bound elsewhere
	tries    int
}

// mostTries is how often a refused binding is requested again (EBUSY passes).
const mostTries = 10

func newHand(o Options) *hand {
	h := &hand{sys: &o.System, jobs: map[string]*handJob{}, memo: o.Memo, stop: o.Stop}
	h.specs, h.least = knownOf(o)
	return h
}

// knownOf lists all workloads that will come, and how many there must be for a decision.
func knownOf(o Options) (all []known, least int) {
	for i := range o.Specs {
		for _, id := range o.Specs[i].IDs() {
			all = append(all, known{id, &o.Specs[i]})
		}
	}
	if o.Patient {
		least = len(all)
	}
	return all, least
}

func (h *hand) Name() string { return Hand }

func (h *hand) Step(_ machine.Machine, w window.Window) []action.Action {
	h.outcomes(w)
	here := make([]string, len(w.Workloads))
	for i, wl := range w.Workloads {
		here[i] = wl.ID
	}
	if !slices.Equal(here, h.ids) && len(here) >= h.least {
		h.ids = here
		h.decide(w)
	}
	var actions []action.Action
	for _, wl := range w.Workloads {
		if job := h.jobs[wl.ID]; job != nil {
			actions = append(actions, job.next(wl)...)
		}
	}
	return actions
}

func (h *hand) outcomes(w window.Window) {
	for _, o := range w.Outcomes {
		job := h.jobs[o.Step.Workload]
		switch {
		case job == nil:
		case o.Status == action.Drifted:
			job.is, job.want, job.tries = set.NodeSet{}, set.NodeSet{}, mostTries
		case o.Status == action.Refused && o.Step.Kind == action.SetCPUs:
			job.is = set.NodeSet{}
			job.tries++
		}
	}
}

// next is the actions that bring a workload to where it should be.
func (j *handJob) next(wl window.Workload) []action.Action {
	a := action.Action{Workload: wl.ID, Reason: action.Reason{Rule: "hand", Workload: wl.ID}}
	switch {
	case j.is == j.want || j.tries >= mostTries:
		return nil
	case !j.is.IsEmpty():
		j.is, j.waiting = set.NodeSet{}, true
		a.Kind = action.Unbind
	case j.waiting && (wl.Binding.OursCPUs || wl.Binding.OursMems):
		return nil
	default:
		j.is, j.waiting = j.want, false
		a.Kind, a.Nodes = action.Bind, j.want
	}
	return []action.Action{a}
}

// decide searches for the best placement of the present workloads.
func (h *hand) decide(w window.Window) {
	var at []int // indexes in Window.Workloads
	var here []Contender
	for i, wl := range w.Workloads {
		k := slices.IndexFunc(h.specs, func(k known) bool { return k.id == wl.ID })
		if k < 0 {
			continue
		}
		at = append(at, i)
		here = append(here, h.contender(w, wl, h.specs[k].spec))
	}
	for id := range h.jobs {
		if _, ok := w.Workload(id); !ok {
			delete(h.jobs, id) // a workload that comes back is a new one
		}
	}
	best := h.memo.search(h.sys, here, h.stop)
	for i, nodes := range best {
		id := w.Workloads[at[i]].ID
		job := h.jobs[id]
		if job == nil {
			job = &handJob{}
			h.jobs[id] = job
		}
		job.want, job.tries = h.nodeSet(nodes), 0
		if wl := w.Workloads[at[i]]; wl.Binding.PinnedCPUs || wl.Binding.PinnedMems {
			job.want = set.NodeSet{}
		}
	}
}

func (h *hand) contender(w window.Window, wl window.Workload, spec *sim.Spec) Contender {
	c := Contender{Spec: spec, Pages: make([]float64, len(h.sys.Nodes))}
	pages, _ := wl.PagesByNode()
	for i, n := range h.sys.Nodes {
		k, ok := w.NodeIndex(n.ID)
		if ok && k < len(pages) {
			c.Pages[i] = float64(pages[k])
		}
		if ok && (wl.Binding.PinnedCPUs || wl.Binding.PinnedMems) && wl.Binding.CPUs.Overlaps(w.Nodes[k].CPUs) {
			c.Fixed |= 1 << i
		}
	}
	return c
}

// nodeSet is empty for all nodes that have CPUs, as that is no binding.
func (h *hand) nodeSet(nodes Nodes) set.NodeSet {
	var some set.NodeSet
	missing := false
	for i, n := range h.sys.Nodes {
		switch {
		case nodes.has(i):
			some = some.With(n.ID)
		case n.CPUs > 0:
			missing = true
		}
	}
	if !missing {
		return set.NodeSet{}
	}
	return some
}
