// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"cmp"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// State is what is remembered between windows: a plain value, printable as JSON. Step never
// changes a State; it returns another. The zero State is a fresh start.
type State struct {
	Seed uint64        `json:"seed"`   // of the draws; 0: none yet
	Step uint64        `json:"step"`   // windows seen: the other half of the draws' seed
	Now  time.Duration `json:"now_ns"` // time seen
	// Nodes has the ids of nodes, by their lowest CPU; the indexes below refer to it.
	Nodes     []int    `json:"nodes,omitempty"`
	Workloads []Memory `json:"workloads,omitempty"` // by ID
	Threads   []Thread `json:"threads,omitempty"`   // by workload, then ID
	// Visits has len(Nodes) entries for each thread, one thread after the other. It is one
	// slice, since 2,000 slices would be garbage in each period.
	Visits []Visit `json:"visits,omitempty"`
}

// Thread is the paper's {cpu, bias node, probability}, and where the thread stands.
type Thread struct {
	Workload string `json:"workload"`
	ID       int    `json:"id"`
	Node     int    `json:"node"` // index into State.Nodes; none: unknown
	Bias     int    `json:"bias"` // the same; none: it knows no node
	Prob     int    `json:"prob"` // 0 … 100
	Here     int    `json:"here"` // whole periods on Node
	Counted  int    `json:"counted"`
	// Penalty is its own, as last counted at Seen; Known: whether it ever was.
	Penalty float64       `json:"penalty"`
	Seen    time.Duration `json:"seen_ns"`
	Known   bool          `json:"known"`
	// Stall is the share of its cycles that wait, smoothed.
	Stall unit.Opt[float64] `json:"stall"`
	// Noise is the relative difference of its penalty from the smoothed penalty, smoothed.
	Noise float64 `json:"noise"`
	// Base is its own least penalty on any node, fading; 0: not yet known.
	Base     float64       `json:"base"`
	Worse    int           `json:"worse"`   // periods in a row that it was much worse than that
	Changes  int           `json:"changes"` // number of times that this counted as a change, until Calm
	Calm     time.Duration `json:"calm_ns"`
	Explores bool          `json:"explores"` // it is on Node to explore it
	Looks    bool          `json:"looks"`    // its stay there began as exploration
	Next     time.Duration `json:"next_ns"`  // the earliest time to explore
	// Home is where it was when a trial sent it away; none: no trial did.
	Home    int           `json:"home"`
	Held    bool          `json:"held"` // homenode tied it to its node
	Refused int           `json:"refused"`
	Until   time.Duration `json:"until_ns"` // until then it is left alone
}

// none stands for no node.
const none = -1

// Visit is what a thread knows of a node: the paper's unc[node].
type Visit struct {
	Penalty float32       `json:"penalty"` // of the scope
	Own     float32       `json:"own"`     // of the thread
	At      time.Duration `json:"at_ns"`   // when it was last there
	Tries   uint8         `json:"tries"`   // visits since it was last the best
	Known   bool          `json:"known"`
}

// Thread returns what is remembered of a thread, and its visits by node.
func (s State) Thread(workload string, id int) (Thread, []Visit, bool) {
	i, ok := s.find(workload, id)
	if !ok {
		return Thread{}, nil, false
	}
	return s.Threads[i], s.visits(i), true
}

func (s State) find(workload string, id int) (int, bool) {
	return slices.BinarySearchFunc(s.Threads, id, func(t Thread, id int) int {
		return cmp.Or(cmp.Compare(t.Workload, workload), cmp.Compare(t.ID, id))
	})
}

func (s State) visits(i int) []Visit {
	n := len(s.Nodes)
	if (i+1)*n > len(s.Visits) { // not from Step: a foreign state
		return make([]Visit, n)
	}
	return s.Visits[i*n : (i+1)*n]
}

// recall makes this window's state: one thread for each of the window's threads, in the
// same order, with what is remembered of it. Both are sorted, so one pass finds all.
func (r *round) recall(st State) {
	n, count := len(r.nodes), 0
	for i := range r.w.Workloads {
		count += len(r.w.Workloads[i].Threads)
	}
	r.next = State{Seed: st.Seed, Step: st.Step + 1, Now: st.Now + max(0, r.w.Length), Nodes: make([]int, n)}
	for k := range r.nodes {
		r.next.Nodes[k] = r.nodes[k].id
	}
	if r.next.Seed == 0 {
		r.next.Seed = mix(r.cfg.Seed + golden)
	}
	r.next.Threads = make([]Thread, 0, count)
	r.next.Visits = make([]Visit, count*n)
	same := slices.Equal(st.Nodes, r.next.Nodes)
	at := 0
	for i := range r.w.Workloads {
		wl := &r.w.Workloads[i]
		for k := range wl.Threads {
			id := wl.Threads[k].ID
			for at < len(st.Threads) && before(&st.Threads[at], wl.ID, id) {
				at++
			}
			if at < len(st.Threads) && st.Threads[at].ID == id && st.Threads[at].Workload == wl.ID {
				r.keep(&st, at, same)
				continue
			}
			r.next.Threads = append(r.next.Threads, Thread{Workload: wl.ID, ID: id, Node: none, Bias: none, Home: none, Prob: r.cfg.InitialProb})
		}
	}
	r.recallWorkloads(st)
}

func before(t *Thread, workload string, id int) bool {
	if t.Workload == workload {
		return t.ID < id
	}
	return t.Workload < workload
}

// keep copies a thread. Where nodes appeared or disappeared, indexes change.
func (r *round) keep(st *State, at int, same bool) {
	n, i := len(r.nodes), len(r.next.Threads)
	to := r.next.Visits[i*n : (i+1)*n]
	t := st.Threads[at]
	from := st.visits(at)
	if same {
		copy(to, from)
	} else {
		for k, id := range st.Nodes {
			if j := slices.Index(r.next.Nodes, id); j >= 0 {
				to[j] = from[k]
			}
		}
		t.Node, t.Bias, t.Home = r.index(st, t.Node), r.index(st, t.Bias), r.index(st, t.Home)
	}
	if t.Node >= n || t.Bias >= n || t.Home >= n { // a foreign state
		t.Node, t.Bias, t.Home = none, none, none
	}
	t.Prob, t.Changes, t.Refused = min(max(t.Prob, 0), certain), min(max(t.Changes, 0), mostDoublings), max(t.Refused, 0)
	r.next.Threads = append(r.next.Threads, t)
}

// index is the present index of a node of that state.
func (r *round) index(st *State, k int) int {
	if k < 0 || k >= len(st.Nodes) {
		return none
	}
	return slices.Index(r.next.Nodes, st.Nodes[k])
}

func (r *round) recallWorkloads(st State) {
	r.next.Workloads = make([]Memory, 0, len(r.w.Workloads))
	at := 0
	for i := range r.w.Workloads {
		id := r.w.Workloads[i].ID
		for at < len(st.Workloads) && st.Workloads[at].Workload < id {
			at++
		}
		if at < len(st.Workloads) && st.Workloads[at].Workload == id {
			r.next.Workloads = append(r.next.Workloads, st.Workloads[at])
			continue
		}
		r.next.Workloads = append(r.next.Workloads, Memory{Workload: id})
	}
}

// outcomes leaves threads alone for a while after their move was refused.
func (r *round) outcomes() {
	for i := range r.w.Outcomes {
		o := &r.w.Outcomes[i]
		if o.Step.Kind != action.PinThread {
			continue
		}
		k, ok := r.next.find(o.Step.Workload, o.Step.Thread)
		if !ok {
			continue
		}
		t := &r.next.Threads[k]
		switch o.Status {
		case action.Done:
			t.Refused = 0
			t.Held = !o.Step.Release && !o.Step.CPUs.IsEmpty()
		case action.Refused, action.Failed, action.Drifted:
			t.Until = r.next.Now + r.cfg.RefusedFor<<min(t.Refused, mostDoublings)
			t.Refused = min(t.Refused+1, mostDoublings)
			t.Explores = false
		}
	}
}

// mostDoublings bounds what doubles: 64 times the initial value.
const mostDoublings = 6

// mayUse is where a thread may be put: its affinity within its workload's CPUs. A
// restriction that homenode set is no limit. Empty: unknown, or nowhere.
func mayUse(wl *window.Workload, th *window.Thread) set.CPUSet {
	bound := wl.Binding.CPUs
	switch {
	case th.Ours || th.Allowed.IsEmpty() || th.Allowed == bound:
		return bound
	case bound.IsEmpty():
		return th.Allowed
	}
	return th.Allowed.Intersect(bound)
}
