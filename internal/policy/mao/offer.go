// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// ledger is what the nodes have given away already, by index of node; number 1
// of place.go.
type ledger struct {
	use, quota []float64 // CPUs held by bound and by pinned workloads, by use and by quota
	cost       []float64 // CPUs used by others, unbound ones weighted by UnboundCost
	incoming   []float64 // bytes that bound workloads still have elsewhere
	traffic    []float64 // bytes/s of DRAM reads by those that are or stay there
	company    []int     // bound workloads
	bound      int
	total      float64   // bytes/s
	parts      []float64 // all but company, one after the other
}

// open returns this moment's ledger; a bind closes it (bindTo).
func (r *round) open() *ledger {
	if r.book == nil {
		r.ledger(&r.spare.book)
		r.book = &r.spare.book
	}
	return r.book
}

// ledger adds it up, in the place of the one before.
func (r *round) ledger(b *ledger) {
	n := len(r.nodes)
	parts := again(b.parts, 5*n)
	part := func(k int) []float64 { return parts[k*n : (k+1)*n : (k+1)*n] }
	*b = ledger{use: part(0), quota: part(1), cost: part(2), incoming: part(3), traffic: part(4), company: again(b.company, n), parts: parts}
	for i := range r.loads {
		l := &r.loads[i]
		switch {
		case l.bound():
			r.enterBound(b, l)
		case !l.Approved || l.Binding.PinnedCPUs || r.w.Seq < l.NotBefore: // it stays as it is
			r.enterUnbound(b, l)
		}
	}
	for i := range r.absent {
		if m := &r.absent[i]; m.bound() {
			r.enterBound(b, &load{Workload: &window.Workload{}, Memory: m})
		}
	}
}

// enterBound spreads a bound workload over its nodes by their CPUs.
func (r *round) enterBound(b *ledger, l *load) {
	b.bound++
	on := r.spanOf(l)
	use := r.need(l)
	quota := min(l.Quota.Or(use), on.count)
	missing := 0.0
	if !l.Binding.PinnedMems {
		missing = float64(r.outside(l, l.Nodes))
	}
	for _, j := range on.at {
		if on.count == 0 {
			break
		}
		share := r.nodes[j].count / on.count
		b.use[j] += float64(use * share)
		b.cost[j] += float64(use * share)
		b.quota[j] += float64(quota * share)
		b.incoming[j] += float64(missing * share)
		b.traffic[j] += float64(l.traffic * share)
		b.company[j]++
	}
	b.total += l.traffic
}

// enterUnbound leaves a workload where it was measured. Pinned by somebody else,
// it holds its CPUs; else the kernel can move it away, so it holds UnboundWeight
// of them and costs UnboundCost.
func (r *round) enterUnbound(b *ledger, l *load) {
	weight, cost := r.cfg.UnboundWeight, r.cfg.UnboundCost
	if l.Binding.PinnedCPUs {
		weight, cost = 1, 1
	}
	for j := range r.nodes {
		cpu := l.cpuOn(j, r.nodes[j].id, set.NodeSet{})
		b.use[j] += float64(cpu * weight)
		b.quota[j] += float64(cpu * weight)
		b.cost[j] += float64(cpu * cost)
		if l.total > 0 {
			b.traffic[j] += l.traffic * float64(l.pages[j]) / float64(l.total)
		}
	}
	b.total += l.traffic
}

// judge holds one node set against what is needed, and prices it if it fits.
func (s *search) judge(at []int) offer {
	o := offer{at: at}
	sum := room{}
	memoryKnown := true
	for _, j := range at {
		n := &s.rooms[j]
		sum.cpus += n.cpus
		sum.left += max(0, n.left)
		sum.leftQ += max(0, n.leftQ)
		sum.memory += n.memory
		memoryKnown = memoryKnown && n.memory >= 0
		sum.own += n.own
		sum.traffic += n.traffic
		sum.use += n.use
		sum.company += n.company
		sum.near = sum.near || n.near
	}
	o.toMove = s.l.total - sum.own
	s.limits(&o, sum, memoryKnown)
	if o.code == "" {
		s.price(&o, sum)
	}
	return o
}

// limits finds the tightest constraint that breaks: the one with the largest
// want/have; of equals the first of cpu, memory, bandwidth. A set that breaks none of
// these may still be far from every device of the workload.
func (s *search) limits(o *offer, sum room, memoryKnown bool) {
	tightest := 1 + rounding
	broken := func(code string, want, have float64) {
		if over := want / max(have, rounding); over > tightest {
			o.code, o.want, o.have, tightest = code, want, have, over
		}
	}
	broken("cpu", s.need, sum.left)
	switch {
	case s.l.Binding.PinnedMems: // nothing will be moved
	case !memoryKnown:
		broken("memory", max(1, float64(s.l.total)), 0)
		o.have = -1
	default:
		broken("memory", s.memory, sum.memory)
	}
	for _, j := range o.at {
		n := &s.rooms[j]
		if limit, ok := n.limit.Get(); ok {
			broken("bandwidth", n.served+s.l.traffic*n.cpus/sum.cpus, limit)
		}
	}
	if o.code == "" && s.r.cfg.RequireNear && !sum.near {
		o.code = "device"
	}
}

// price is the cost of number 4 of place.go, and the local ratio of number 5.
func (s *search) price(o *offer, sum room) {
	cfg := &s.r.cfg
	moving := share(float64(o.toMove), float64(s.l.total))
	if s.l.Binding.PinnedMems {
		o.away, moving, o.toMove = moving, 0, 0
	}
	o.parts = [5]float64{moving, s.trafficShare(o.at, sum), share(sum.use, sum.cpus), share(float64(sum.company), float64(s.bound*len(o.at)))}
	for _, j := range o.at {
		o.parts[4] += float64(s.rooms[j].device * (s.rooms[j].cpus / sum.cpus))
	}
	o.cost = float64(cfg.MoveWeight*o.parts[0]) + float64(cfg.BandwidthWeight*o.parts[1]) + float64(cfg.CPUWeight*o.parts[2]) + float64(cfg.CompanyWeight*o.parts[3]) + float64(cfg.DeviceWeight*o.parts[4])
	q, ok := s.quota.Get()
	o.short = ok && min(q, sum.cpus) > sum.leftQ+rounding
	for _, j := range o.at {
		n := &s.rooms[j]
		pages := n.cpus / sum.cpus
		if s.l.Binding.PinnedMems {
			pages = share(float64(n.own), float64(s.l.total))
		}
		o.local += pages * n.cpus / sum.cpus
	}
	o.distance = s.distance(o.at)
}

// trafficShare is others' traffic there: of the nodes' limits where all are
// known, else of all traffic of the machine, ours included.
func (s *search) trafficShare(at []int, sum room) float64 {
	limits := 0.0
	for _, j := range at {
		limit, ok := s.rooms[j].limit.Get()
		if !ok {
			return share(sum.traffic, s.traffic)
		}
		limits += limit
	}
	return share(sum.traffic, limits)
}

// share is part/whole, at most 1; 0 of nothing.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, part/whole)
}

// far is beyond every SLIT distance.
const far = 256

// distance sums the SLIT distances inside the set, both ways; an unknown one
// counts as beyond any known one.
func (s *search) distance(at []int) int {
	sum := 0
	for _, a := range at {
		for _, b := range at {
			if a != b {
				sum += s.r.m.Distance(s.rooms[a].id, s.rooms[b].id).Or(far)
			}
		}
	}
	return sum
}

// tightest is "device" where nothing else stands against some set; else the code that
// most sets broke, of equals the first of cpu, memory, bandwidth; "mems" and "empty" only
// when there was no set to look at.
func (s *search) tightest() string {
	if slices.ContainsFunc(s.offers, func(o offer) bool { return o.code == "device" }) {
		return "device"
	}
	most, best := 0, ""
	for _, code := range [...]string{"cpu", "memory", "bandwidth"} {
		count := 0
		for i := range s.offers {
			if s.offers[i].code == code {
				count++
			}
		}
		if count > most {
			most, best = count, code
		}
	}
	if best != "" {
		return best
	}
	if s.usable > 0 {
		return "mems"
	}
	return "empty"
}

// refusal says by which constraint nothing fits, and by how much the set misses that
// comes closest.
func (s *search) refusal(code string) wording {
	say := wording{summary: refusals[code].summary, numbers: s.l.evidence(), alternatives: s.alternatives(offer{})}
	o, ok := s.closest(code)
	if !ok {
		return say
	}
	say.summary += fmt.Sprintf("; nodes %v come closest: %s", o.nodes(s), o.detail(s))
	name := map[string]string{"cpu": "cpu_needed", "memory": "memory_needed", "bandwidth": "bandwidth_needed"}[code]
	of := map[string]string{"cpu": "cpus", "memory": "bytes", "bandwidth": "bytes/s"}[code]
	if name != "" && o.have >= 0 {
		say.numbers = append(say.numbers, number(name, derived(o.want, true, "what nodes "+o.nodes(s).String()+" would have to have; limit: what is left there"), o.have, of))
	}
	return say
}

// closest is of the sets that break a constraint the one that does so by least.
func (s *search) closest(code string) (offer, bool) {
	best := -1
	for i := range s.offers {
		if o := &s.offers[i]; o.code == code && (best < 0 || o.over() < s.offers[best].over()-rounding) {
			best = i
		}
	}
	if best < 0 {
		return offer{}, false
	}
	return s.offers[best], true
}

func (o *offer) over() float64 { return o.want / max(o.have, rounding) }

// manyAlternatives is how many a reason lists: a screen's worth.
const manyAlternatives = 12

// alternatives lists what was looked at: the chosen set, then those that fit by
// rank, then those that do not, then nodes out of the question.
func (s *search) alternatives(chosen offer) []action.Alternative {
	offers := make([]*offer, len(s.offers))
	for i := range offers {
		offers[i] = &s.offers[i]
	}
	slices.SortStableFunc(offers, func(a, b *offer) int {
		if by := cmp.Compare(b2i(a.code != ""), b2i(b.code != "")); by != 0 || a.code != "" {
			return by
		}
		return b2i(b.before(a)) - b2i(a.before(b))
	})
	list := make([]action.Alternative, 0, min(len(offers), manyAlternatives))
	for _, o := range offers[:min(len(offers), manyAlternatives)] {
		list = append(list, action.Alternative{
			Nodes: o.nodes(s), Code: o.code, Detail: o.detail(s), Chosen: len(chosen.at) > 0 && slices.Equal(o.at, chosen.at),
		})
	}
	for k := range s.rooms {
		n := &s.rooms[k]
		if n.code != "" && len(list) < manyAlternatives {
			list = append(list, action.Alternative{Nodes: set.FromNodes(n.id), Code: n.code, Detail: outDetails[n.code]})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

var outDetails = map[string]string{
	"empty": "it has no CPUs to bind to, or no memory",
	"mems":  "its cgroup may not use this node",
}

// detail says in words how an offer fits, or why not. A bind asks for it of a dozen: it
// does without fmt where they fit.
func (o *offer) detail(s *search) string {
	switch o.code {
	case "cpu":
		return fmt.Sprintf("it needs %.2f CPUs, %.2f are left", o.want, o.have)
	case "memory":
		if o.have < 0 {
			return "how much memory is free is unknown"
		}
		return fmt.Sprintf("it needs %v, %v are left", unit.Bytes(o.want), unit.Bytes(o.have))
	case "bandwidth":
		return fmt.Sprintf("there would be %v/s of DRAM traffic, the limit is %v/s", unit.Bytes(o.want), unit.Bytes(o.have))
	case "device":
		return fmt.Sprintf("it has room, and none of its devices, which are on nodes %v", s.l.Near)
	}
	var most [128]byte
	b := appendFixed(append(most[:0], "cost "...), o.cost, 3)
	if s.l.Binding.PinnedMems {
		b = append(appendPercent(append(b, ", "...), o.away), " of its memory is elsewhere and stays"...)
	} else {
		b = append(append(append(b, ", "...), o.toMove.String()...), " to move ("...)
		b = append(appendPercent(b, o.parts[0]), ')')
	}
	b = appendPercent(append(b, ", others' traffic "...), o.parts[1])
	b = appendPercent(append(b, ", CPU "...), o.parts[2])
	b = appendPercent(append(b, ", company "...), o.parts[3])
	if !s.l.Near.IsEmpty() {
		b = appendPercent(append(b, ", devices "...), o.parts[4])
	}
	if len(o.at) > 1 {
		b = append(strconv.AppendInt(append(b, ", distance "...), int64(o.distance), 10), " in all"...)
	}
	if o.short {
		b = append(b, ", its whole quota does not fit"...)
	}
	return string(b)
}

func appendFixed(b []byte, v float64, digits int) []byte {
	return strconv.AppendFloat(b, v, 'f', digits, 64)
}

func appendPercent(b []byte, v float64) []byte { return append(appendFixed(b, v*100, 0), '%') }
