// SPDX-License-Identifier: Apache-2.0

package linux

// Run gives out dt seconds of CPU. wants[i] is the CPU time, in CPUs, that group i could
// use. It sets each group's Used, and moves threads as the scheduler does.
//
// kernel/sched/fair.c: a cgroup is one entity of a CPU's queue, however many threads it
// has, and its weight lies where its runnable threads are (pick_next_entity,
// calc_group_shares). A node's CPUs are treated as one queue: balancing within a node takes
// milliseconds.
//
//  1. A group requests no more than it wants, than its quota (throttle_cfs_rq) and than
//     its threads: a thread has at most one CPU.
//  2. Threads migrate.
//  3. Threads of a group are alike: the group makes its request where they are.
//  4. Each node gives max-min fair shares to groups, by a group's weight times the part of
//     its threads on the node.
//  5. What a group did not get on a full node, its threads elsewhere take up, as far as
//     they have time and their node has CPU.
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

// ask is step 3 of Run. It reports whether a cpuset limits a group.
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

// askAgain is the first half of step 5 of Run. It reports whether a group requests more.
func (h *Host) askAgain() bool {
	s, n, any := &h.scratch, len(h.Nodes), false
	for i, g := range h.Groups {
		short, spare := s.asked[i], 0.0
		for k := range n {
			short -= g.Used[k]
			s.want[i*n+k] = 0
			if s.use[k] > 1e-9*h.Nodes[k].CPUs { // nearly nothing depends on the order of sums
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

// grant gives out what is left of the CPUs. It reports whether some node had too little.
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
//  1. Each group gets the same per weight there, or its whole request if that is less.
//  2. The rest of groups with smaller requests is shared again, until no group leaves any.
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
