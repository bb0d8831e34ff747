// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"fmt"
	"slices"

	"homenode/internal/set"
)

// All replicas of a service on this host alike (Config.Uniform: bind is 1 and 2, always
// all of it). The paper's deployment
// client binds and unbinds whole services, so that their instances perform alike; its
// optimizer speaks of single instances. On a host both meet, and this is how:
//
//  1. The replicas of a service are the workloads of the window that name it, without
//     those that somebody else pins: they are not ours to place.
//  2. A service is bound if one replica is a candidate, none is barred (not approved,
//     backing off, unknown), and all that are not bound yet find nodes, one after the
//     other, each seeing what the ones before it took. Then they are bound, as many in a
//     window as MaxBindsPerWindow; those that are left come first in the next windows,
//     whatever their own local ratio. So does, later, a replica that was unbound alone.
//  3. One that must be unbound takes the others along. A strategy's "least CPU use" is
//     then that of all the service's replicas that are bound here.
//  4. Where some are bound and others could not be for UniformWindows, all are unbound.

// group is a service with more than one replica here.
type group struct {
	members []int // indexes of loads, ascending
	done    bool  // bindService has been at it
}

// alone is the group of a workload without any.
const alone = -1

// group returns the others of workload i's service and itself; nil: it is alone.
func (r *round) group(i int) *group {
	if r.cfg.Uniform == UniformNone {
		return nil
	}
	if r.groupOf == nil {
		r.groupAll()
	}
	if r.groupOf[i] == alone {
		return nil
	}
	return &r.groups[r.groupOf[i]]
}

// groupAll is number 1. Mostly the services are those of the round before.
func (r *round) groupAll() {
	classes, same := r.spare.classes, len(r.spare.classes) == len(r.loads)
	if !same {
		classes = again(classes, len(r.loads))
	}
	for i := range r.loads {
		l := &r.loads[i]
		service := l.Service
		if l.Binding.PinnedCPUs && !l.bound() {
			service = ""
		}
		if same = same && classes[i] == service; !same {
			classes[i] = service
		}
	}
	r.spare.classes = classes
	if !same {
		r.divideAll()
	}
	r.groupOf, r.groups = r.spare.groupOf, r.spare.groups
	for k := range r.groups {
		r.groups[k].done = false
	}
}

// divideAll makes the groups of these services.
func (r *round) divideAll() {
	groupOf, groups := again(r.spare.groupOf, len(r.loads)), r.spare.groups[:0]
	first := make(map[string]int32, len(r.loads))
	for i, service := range r.spare.classes {
		groupOf[i] = alone
		if service == "" {
			continue
		}
		k, ok := first[service]
		if !ok {
			first[service] = int32(i)
			continue
		}
		if groupOf[k] == alone {
			groupOf[k] = int32(len(groups))
			groups = append(groups, group{members: []int{int(k)}})
		}
		groupOf[i] = groupOf[k]
		g := &groups[groupOf[k]]
		g.members = append(g.members, i)
	}
	r.spare.groupOf, r.spare.groups = groupOf, groups
}

// eachGroup yields the services with more than one replica here.
func (r *round) eachGroup(yield func(g *group)) {
	if r.cfg.Uniform == UniformNone || len(r.loads) < 2 {
		return
	}
	r.group(0)
	for k := range r.groups {
		yield(&r.groups[k])
	}
}

// bound and unbound replicas of a service.
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

// boundOf is how many replicas of a service are bound.
func (r *round) boundOf(g *group) (n int) {
	for _, i := range g.members {
		if r.loads[i].bound() {
			n++
		}
	}
	return n
}

// owed binds what is left of services of which some are bound already.
func (r *round) owed() {
	r.eachGroup(func(g *group) {
		if n := r.boundOf(g); n > 0 && n < len(g.members) {
			r.bindService(g)
		}
	})
}

// bindService is number 2.
func (r *round) bindService(g *group) {
	if g.done {
		return
	}
	g.done = true
	_, rest := r.divide(g)
	slices.SortFunc(rest, func(a, b int) int { return byTraffic(&r.loads[a], &r.loads[b]) })
	if r.binds >= r.cfg.MaxBindsPerWindow {
		r.limited(rest)
		return
	}
	for _, i := range rest {
		if why := r.bars(i); why != "" {
			r.passAll(rest, func() string {
				return fmt.Sprintf("its service is bound as a whole or not at all, and replica %s cannot be: %s", r.loads[i].ID, r.barWords(i, why))
			}, nil)
			return
		}
	}
	if !r.allFit(rest) {
		return
	}
	for k, i := range rest {
		if r.binds >= r.cfg.MaxBindsPerWindow {
			r.limited(rest[k:])
			return
		}
		r.placeAnyhow(i)
	}
}

// bars is the rule by which a replica cannot be bound, whatever room there is; "" if
// nothing bars it.
func (r *round) bars(i int) string {
	l := &r.loads[i]
	switch {
	case r.decided(i):
		return barDecided
	case len(r.m.Doubts) > 0:
		return "mao.skip.doubts"
	case !l.Aside.IsEmpty(): // it gets its CPUs back in this round, which is one thing to do
		return "mao.keep.aside"
	case !l.Approved:
		return "mao.skip.not-approved"
	case r.w.Seq < l.NotBefore:
		return "mao.skip.backoff"
	case !l.Demand.Known() || l.pages == nil:
		return barUnknown
	}
	return ""
}

// Bars that are no rule of standing.
const (
	barDecided = "decided"
	barUnknown = "unknown"
)

// barWords says in words by what a replica is barred.
func (r *round) barWords(i int, bar string) string {
	switch bar {
	case barDecided:
		return "it was " + r.rules[i] + " in this window"
	case barUnknown:
		return "its CPU use or its pages by node are unknown"
	}
	return r.standingFor(&r.loads[i], bar)
}

// allFit says whether all of these find nodes, one after the other; else why not.
func (r *round) allFit(rest []int) bool {
	fit, pays := true, r.boundOf(r.group(rest[0])) > 0
	book := r.open() // before the try, and after it
	for k, i := range rest {
		l := &r.loads[i]
		if k > 0 {
			r.ledger(&r.spare.trial)
			r.book = &r.spare.trial
		}
		s := r.newSearch(l)
		best, ok := s.run()
		if s.usable < 2 || !ok {
			r.passAll(rest, func() string {
				return fmt.Sprintf("its service is bound as a whole or not at all, and replica %s finds no room with the others", l.ID)
			}, s)
			fit = false
			break
		}
		pays = pays || best.local >= float64(l.local.Or(0))+float64(r.cfg.MinGain)-rounding
		l.Nodes = best.nodes(s)
	}
	for _, i := range rest { // it was for a try
		r.loads[i].Nodes = set.NodeSet{}
	}
	r.book = book
	if fit && !pays {
		r.passAll(rest, func() string { return "no replica of its service would have more local accesses than now" }, nil)
	}
	return fit && pays
}

// passAll gives those that are candidates their reason; s is the search that failed, of
// which the first of them tells more.
func (r *round) passAll(rest []int, summary func() string, s *search) {
	var kept *search
	if s != nil {
		kept = s.keep()
	}
	first := true
	for _, i := range rest {
		if r.decided(i) || r.standing(&r.loads[i]) != "" {
			continue
		}
		more := first
		first = false
		r.passSaying(i, "mao.skip.service", func() wording { return r.serviceWords(i, summary(), kept, more) })
	}
}

func (r *round) serviceWords(i int, summary string, s *search, more bool) wording {
	say := wording{summary: summary, numbers: r.loads[i].evidence()}
	if s == nil {
		return say
	}
	why := s.refusal(s.tightest())
	say.summary += ": " + why.summary
	if more {
		say.numbers = append(say.numbers, why.numbers[len(s.l.evidence()):]...)
		say.alternatives = why.alternatives
	}
	return say
}

// limited tells those that would be bound that this window's limit is used up.
func (r *round) limited(rest []int) {
	for _, i := range rest {
		r.pass(i, "mao.skip.limit")
	}
}

// together is number 3: the others of a service go with the one that was unbound.
func (r *round) together(i int) {
	g := r.group(i)
	if g == nil || r.cfg.Uniform != UniformAlways {
		return
	}
	for _, k := range g.members {
		if l := &r.loads[k]; k != i && l.bound() && !r.decided(k) {
			nodes := l.Nodes
			say := wording{summary: fmt.Sprintf("replica %s of its service is unbound, and all of them are to be alike", r.loads[i].ID), numbers: r.keeping(l)}
			r.release(k, "mao.unbind.service", say)
			r.project(l, nodes)
		}
	}
}

// pressingCPU is the CPU use by which the least is unbound.
func (r *round) pressingCPU(i int) float64 {
	if r.cfg.Uniform != UniformAlways || r.group(i) == nil {
		return r.loads[i].CPU.Or(0)
	}
	g := r.group(i)
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
	r.eachGroup(func(g *group) {
		bound, rest := r.divide(g)
		if len(bound) == 0 || len(rest) == 0 {
			return
		}
		since := uint64(0)
		for _, i := range bound {
			since = max(since, r.loads[i].Since)
		}
		if r.w.Seq < since || r.w.Seq-since <= uint64(r.cfg.UniformWindows) {
			return
		}
		for _, i := range bound {
			if !r.decided(i) {
				r.release(i, "mao.unbind.uneven", wording{summary: fmt.Sprintf(
					"%d of %d replicas of its service are not bound, the last one was %d windows ago, and all of them are to be alike", len(rest), len(g.members), r.w.Seq-since), numbers: r.loads[i].evidence()})
			}
		}
	})
}
