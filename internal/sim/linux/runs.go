// SPDX-License-Identifier: Apache-2.0

package linux

// Run gives out dt seconds of CPU. wants[i] is how many CPUs' worth of time group
// i could use. It sets each group's Used, and moves threads as the scheduler does.
//
// kernel/sched/fair.c: a cgroup is one entity of a CPU's queue, whatever it has in
// threads, and its weight lies where its runnable threads are (pick_next_entity,
// calc_group_shares). A node's CPUs are taken as one queue: balancing within a node is
// a matter of milliseconds.
//
//  1. A group asks for no more than it wants, its quota (throttle_cfs_rq) and its
//     threads: a thread has at most one CPU.
//  2. Threads wander.
//  3. Threads of a group are alike: what it asks for, it asks for where they are.
//  4. Each node gives, max-min fair by group: by its weight, times the part of its
//     threads that is there.
//  5. What a group did not get on a full node, its threads elsewhere take up, as far
//     as they have time and their node has.
func (h *Host) Run(dt float64, wants []float64) {
	h.scratch.counted, h.scratch.idleKnown = false, false
	s := h.prepare()
	for i, g := range h.Groups {
		s.asked[i] = g.asks(wants[i]) // 1
	}
	h.wander(dt)      // 2
	held := h.ask()   // 3
	full := h.grant() // 4
	if (held || full) && h.askAgain() {
		h.grant() // 5
	}
}

// asks is step 1 of Run.
func (g *Group) asks(wants float64) float64 {
	asked := max(min(wants, g.Threads), 0)
	if g.Quota > 0 {
		asked = min(asked, g.Quota)
	}
	return asked
}

// ask is step 3 of Run; it says whether a cpuset holds a group back.
func (h *Host) ask() (held bool) {
	s, n := &h.scratch, len(h.Nodes)
	for i, g := range h.Groups {
		part := 0.0
		if g.Threads > 0 {
			part = s.asked[i] / g.Threads
		}
		for k := range n {
			g.Used[k] = 0
			s.want[i*n+k] = g.On[k] * part
			if s.want[i*n+k] > g.CPUs[k] {
				s.want[i*n+k], held = g.CPUs[k], true
			}
		}
	}
	for k := range n {
		s.use[k] = h.Nodes[k].CPUs
	}
	return held
}

// askAgain is the first half of step 5 of Run; it says whether a group asks.
func (h *Host) askAgain() bool {
	s, n, any := &h.scratch, len(h.Nodes), false
	for i, g := range h.Groups {
		short, spare := s.asked[i], 0.0
		for k := range n {
			short -= g.Used[k]
			s.want[i*n+k] = 0
			if s.use[k] > 1e-9*h.Nodes[k].CPUs { // what is nearly nothing depends on the order of sums
				s.want[i*n+k] = max(min(g.On[k], g.CPUs[k])-g.Used[k], 0)
				spare += s.want[i*n+k]
			}
		}
		if short <= 1e-9 || spare <= 0 {
			short = 0
		}
		any = any || short > 0
		for k := range n {
			s.want[i*n+k] *= min(short/max(spare, short, 1e-300), 1)
		}
	}
	return any
}

// grant gives what is left of the CPUs; it says if some node had not enough.
func (h *Host) grant() (full bool) {
	s, n := &h.scratch, len(h.Nodes)
	for k := range n {
		all := 0.0
		for i := range h.Groups {
			all += s.want[i*n+k]
		}
		if all > s.use[k] {
			h.fill(k)
			full = true
			continue
		}
		for i, g := range h.Groups {
			g.Used[k] += s.want[i*n+k]
		}
		s.use[k] -= all
	}
	return full
}

// fill shares what is left of a node among groups that want more than that.
//
//  1. Everyone has the same for its weight there, or all that it asks for if that is
//     less.
//  2. What those with less leave is shared again, until no group leaves anything.
func (h *Host) fill(node int) {
	s, n := &h.scratch, len(h.Nodes)
	open, weights := s.open[:0], room(s.weights, len(h.Groups))
	s.weights = weights
	left, all := s.use[node], 0.0
	for i, g := range h.Groups {
		if s.want[i*n+node] > 0 {
			weights[i] = g.weightOn(node)
			open, all = append(open, i), all+weights[i]
		}
	}
	s.open = open[:0]
	for more := true; more && all > 0; {
		each := left / all // 1
		rest := open[:0]
		more, all = false, 0
		for _, i := range open {
			want := s.want[i*n+node]
			if want > each*weights[i] {
				rest, all = append(rest, i), all+weights[i]
				continue
			}
			h.Groups[i].Used[node] += want
			left, more = left-want, true
		}
		open = rest // 2
	}
	for _, i := range open {
		h.Groups[i].Used[node] += max(left, 0) * (weights[i] / all)
	}
	s.use[node] = 0
}

// weightOn is the part of a group's weight that lies on a node.
func (g *Group) weightOn(node int) float64 {
	weight := g.Weight
	if weight <= 0 {
		weight = 1
	}
	return weight * (g.On[node] / g.Threads)
}
