// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// All replicas of a service on this host are treated alike (Config.Uniform: bind is 1 and
// 2, always is all of it). The paper's deployment client binds and unbinds whole services,
// so that their instances perform alike; its optimizer treats single instances. On a host
// both meet, as follows:
//
//  1. The replicas of a service are the workloads of the window that name it, except those
//     that another process pins: homenode does not place them.
//  2. A service is bound if one replica is a candidate, none is barred (not approved,
//     backing off, unknown), and all unbound ones find nodes, one after the other, each
//     seeing what the ones before it took. Then they are bound, up to MaxBindsPerWindow in a
//     window. The rest come first in the next windows, whatever their own local ratio; so
//     does, later, a replica that was unbound alone.
//  3. A replica that must be unbound takes the others along. A strategy's "least CPU use"
//     is then that of all the service's replicas that are bound here.
//  4. If some are bound and others could not be for UniformWindows, all are unbound.

// group is a service with more than one replica here.
type group struct {
	members []int // indexes of loads, ascending
	done    bool  // bindService has handled it
}

// groupAll is number 1. Without groups, groupOf is nil for each.
func (r *round) groupAll() {
	r.groupOf = make([]*group, len(r.loads))
	if r.cfg.Uniform == UniformNone {
		return
	}
	first := make(map[string]int, len(r.loads))
	for i := range r.loads {
		l := &r.loads[i]
		if l.Service == "" || l.Binding.PinnedCPUs && !l.bound() {
			continue
		}
		k, ok := first[l.Service]
		if !ok {
			first[l.Service] = i
			continue
		}
		g := r.groupOf[k]
		if g == nil {
			g = &group{members: []int{k}}
			r.groupOf[k], r.groups = g, append(r.groups, g)
		}
		r.groupOf[i], g.members = g, append(g.members, i)
	}
}

// divide returns the bound and the unbound replicas of a service.
func (r *round) divide(g *group) (bound, rest []int) {
	for _, i := range g.members {
		if r.loads[i].bound() {
			bound = append(bound, i)
		} else {
			rest = append(rest, i)
		}
	}
	return bound, rest
}

// boundOf is the number of bound replicas of a service.
func (r *round) boundOf(g *group) (n int) {
	for _, i := range g.members {
		if r.loads[i].bound() {
			n++
		}
	}
	return n
}

// owed binds the rest of services that are partly bound.
func (r *round) owed() {
	for _, g := range r.groups {
		if n := r.boundOf(g); n > 0 && n < len(g.members) {
			r.bindService(g)
		}
	}
}

// bindService is number 2.
func (r *round) bindService(g *group) {
	if g.done {
		return
	}
	g.done = true
	_, rest := r.divide(g)
	slices.SortFunc(rest, func(a, b int) int { return byTraffic(&r.loads[a], &r.loads[b]) })
	if r.binds < r.cfg.MaxBindsPerWindow && (r.barred(rest) || !r.allFit(rest)) {
		return
	}
	for _, i := range rest {
		if r.binds >= r.cfg.MaxBindsPerWindow {
			r.limited(i)
			continue
		}
		r.place(i, true)
	}
}

// barred reports that one of these replicas cannot be bound, whatever room there is. Then
// all get that as their reason.
func (r *round) barred(rest []int) bool {
	for _, i := range rest {
		l := &r.loads[i]
		why := r.reasons[i]
		if rule := r.bar(l); !r.decided(i) && rule != "" {
			why = r.standingReason(l, rule)
		}
		if why.Rule != "" {
			r.passAll(rest, notWhole(l.ID, why))
			return true
		}
	}
	return false
}

// bar is the rule by which a replica cannot be bound; "" if there is none. Its own local
// ratio does not count: it is bound with the others.
func (r *round) bar(l *load) string {
	switch {
	case len(r.m.Doubts) > 0:
		return "mao.skip.doubts"
	case !l.Aside.IsEmpty(): // it gets its CPUs back in this round, and has one action per round
		return "mao.keep.aside"
	case !l.Approved:
		return "mao.skip.not-approved"
	case r.w.Seq < l.NotBefore:
		return "mao.skip.backoff"
	case !l.Demand.Known() || l.pages == nil:
		return ruleUnplaceable
	}
	return ""
}

// notWhole is the reason of a service with a replica that cannot be bound.
func notWhole(replica string, why action.Reason) action.Reason {
	why.Alternatives = nil
	return action.Reason{Rule: ruleService, Other: replica}.Because(why)
}

// allFit reports whether all of these find nodes, one after the other, and whether that
// pays; else they get the reason why not.
func (r *round) allFit(rest []int) bool {
	fit, pays := true, r.boundOf(r.groupOf[rest[0]]) > 0
	book := r.open() // before the trial, and restored after it
	for _, i := range rest {
		l := &r.loads[i]
		s := r.newSearch(l)
		best, ok := s.run()
		if s.usable < 2 || !ok {
			refused := s.refusal()
			why := notWhole(l.ID, refused)
			why.Alternatives = refused.Alternatives
			r.passAll(rest, why)
			fit = false
			break
		}
		pays = pays || best.local >= float64(l.local.Or(0))+float64(r.cfg.MinGain)-rounding
		l.Nodes, r.book = best.nodes(s), nil
	}
	for _, i := range rest { // this was only a trial
		r.loads[i].Nodes = set.NodeSet{}
	}
	r.book = book
	if fit && !pays {
		r.passAll(rest, action.Reason{Rule: ruleService})
	}
	return fit && pays
}

// passAll gives the candidates among them their reason. Only the first gets alternatives.
func (r *round) passAll(rest []int, why action.Reason) {
	for _, i := range rest {
		l := &r.loads[i]
		if r.decided(i) || r.standing(l) != "" {
			continue
		}
		why.Numbers = l.evidence()
		r.decide(i, why)
		why.Alternatives = nil
	}
}

// together is number 3: the other replicas of a service go with the one that was unbound.
func (r *round) together(i int) {
	g := r.groupOf[i]
	if g == nil || r.cfg.Uniform != UniformAlways {
		return
	}
	for _, k := range g.members {
		if l := &r.loads[k]; k != i && l.bound() && !r.decided(k) {
			nodes := l.Nodes
			r.release(k, action.Reason{Rule: "mao.unbind.service", Other: r.loads[i].ID, Numbers: r.keeping(l)})
			r.project(l, nodes)
		}
	}
}

// pressingCPU is the CPU use that decides which is unbound first.
func (r *round) pressingCPU(i int) float64 {
	g := r.groupOf[i]
	if r.cfg.Uniform != UniformAlways || g == nil {
		return r.loads[i].CPU.Or(0)
	}
	sum := 0.0
	for _, k := range g.members {
		if r.loads[k].bound() {
			sum += r.loads[k].CPU.Or(0)
		}
	}
	return sum
}

// unbindUneven is number 4.
func (r *round) unbindUneven() {
	if r.cfg.Uniform != UniformAlways {
		return
	}
	for _, g := range r.groups {
		bound, rest := r.divide(g)
		if len(bound) == 0 || len(rest) == 0 {
			continue
		}
		since := uint64(0)
		for _, i := range bound {
			since = max(since, r.loads[i].Since)
		}
		if r.w.Seq < since || r.w.Seq-since <= uint64(r.cfg.UniformWindows) {
			continue
		}
		for _, i := range bound {
			if !r.decided(i) {
				r.release(i, action.Reason{Rule: "mao.unbind.uneven", Numbers: append(r.loads[i].evidence(),
					number("replicas_unbound", unit.Measured(float64(len(rest)), "counted"), float64(len(g.members)), "replicas"),
					windows("windows_since_bind", r.w.Seq-since))})
			}
		}
	}
}
