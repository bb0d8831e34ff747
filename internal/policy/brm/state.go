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

// State is what is remembered between windows: a plain value, printable as JSON. Step
// never changes one, it returns another. The zero State is a fresh start.
type State struct {
	Seed uint64        `json:"seed"`   // of the draws; 0: none yet
	Step uint64        `json:"step"`   // windows seen: the draws' other half
	Now  time.Duration `json:"now_ns"` // time seen
	// Nodes are the ids that indexes below are of, by their lowest CPU.
	Nodes     []int    `json:"nodes,omitempty"`
	Workloads []Memory `json:"workloads,omitempty"` // by ID
	Threads   []Thread `json:"threads,omitempty"`   // by workload, then ID
	// Visits are len(Nodes) for each thread, one thread after the other: one slice, for
	// 2,000 of them would be garbage in each period.
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
	// Penalty is its own, as last seen at Seen; Known: ever.
	Penalty float64       `json:"penalty"`
	Seen    time.Duration `json:"seen_ns"`
	Known   bool          `json:"known"`
	// Stall is the share of its cycles that wait, smoothed.
	Stall unit.Opt[float64] `json:"stall"`
	// Noise is how much its penalty differs from its smoothed self, relative, smoothed.
	Noise float64 `json:"noise"`
	// Base is the least of its own penalty, on any node, fading; 0: not yet.
	Base     float64       `json:"base"`
	Worse    int           `json:"worse"`   // periods in a row that it was much worse than that
	Changes  int           `json:"changes"` // times that this counted for a change, until Calm
	Calm     time.Duration `json:"calm_ns"`
	Explores bool          `json:"explores"` // it is on Node to see what that is like
	Looks    bool          `json:"looks"`    // its stay there began with that
	Next     time.Duration `json:"next_ns"`  // it does not explore before
	// Home is where it was when a trial sent it away; none: nowhere.
	Home    int           `json:"home"`
	Held    bool          `json:"held"` // we tied it to its node
	Refused int           `json:"refused"`
	Until   time.Duration `json:"until_ns"` // it is left alone
}

// none is no node.
const none = -1

// Visit is what a thread knows of a node: the paper's unc[node].
type Visit struct {
	Penalty float32       `json:"penalty"` // of the scope
	Own     float32       `json:"own"`     // of the thread
	At      time.Duration `json:"at_ns"`   // when it was last there
	Tries   uint8         `json:"tries"`   // times that it went there, since it was last the best
	Known   bool          `json:"known"`
}

// Thread returns what is remembered of a thread, and of nodes by its visits.
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
	if (i+1)*n > len(s.Visits) { // not ours: read from somewhere
		return make([]Visit, n)
	}
	return s.Visits[i*n : (i+1)*n]
}

// recall makes this window's state: one thread for each of the window's, in the same
// order, with what is remembered of it. Both are sorted, so that one walk finds all.
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

// keep copies a thread. Where nodes came or went, indexes change.
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
	if t.Node >= n || t.Bias >= n || t.Home >= n { // not ours
		t.Node, t.Bias, t.Home = none, none, none
	}
	t.Prob, t.Changes, t.Refused = min(max(t.Prob, 0), certain), min(max(t.Changes, 0), mostDoublings), max(t.Refused, 0)
	r.next.Threads = append(r.next.Threads, t)
}

// index is where a node of that state is now.
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

// outcomes leaves threads alone for a while that could not be put somewhere.
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

// mostDoublings bounds what doubles to 64 times what it was.
const mostDoublings = 6

// mayUse is where a thread may be put: its affinity within its workload's CPUs. What is
// ours of it is no limit. Empty: unknown, or nowhere.
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
