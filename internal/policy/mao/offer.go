// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// ledger is what the nodes have already given away, by index of node; number 1 of place.go.
type ledger struct {
	use, quota []float64 // CPUs held by bound and by pinned workloads, by use and by quota
	cost       []float64 // CPUs used by others, unbound ones weighted by UnboundCost
	incoming   []float64 // bytes that bound workloads still have elsewhere
	traffic    []float64 // bytes/s of DRAM reads by workloads that are there and stay
	company    []int     // bound workloads
	bound      int
	total      float64 // bytes/s
}

// open returns the current ledger. Whatever changes a binding sets book to nil.
func (r *round) open() *ledger {
	if r.book == nil {
		r.book = r.ledger()
	}
	return r.book
}

// ledger adds it up.
func (r *round) ledger() *ledger {
	n := len(r.nodes)
	b := &ledger{
		use: make([]float64, n), quota: make([]float64, n), cost: make([]float64, n), incoming: make([]float64, n),
		traffic: make([]float64, n), company: make([]int, n),
	}
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
	return b
}

// enterBound spreads a bound workload over its nodes by their CPUs.
func (r *round) enterBound(b *ledger, l *load) {
	b.bound++
	cpus := r.countOf(l.Nodes)
	use := r.need(l)
	quota := min(l.Quota.Or(use), cpus)
	missing := 0.0
	if !l.Binding.PinnedMems {
		missing = float64(r.outside(l, l.Nodes))
	}
	for j := range r.nodes {
		if cpus == 0 || !l.Nodes.Has(r.nodes[j].id) {
			continue
		}
		share := r.nodes[j].count / cpus
		b.use[j] += float64(use * share)
		b.cost[j] += float64(use * share)
		b.quota[j] += float64(quota * share)
		b.incoming[j] += float64(missing * share)
		b.traffic[j] += float64(l.traffic * share)
		b.company[j]++
	}
	b.total += l.traffic
}

// enterUnbound counts a workload where it was measured. If another process pinned it, it
// holds its CPUs. Else the kernel can move it away, so it holds UnboundWeight of them and
// costs UnboundCost.
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

// judge compares one node set with what is needed, and prices it if it fits.
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

// limits finds the tightest broken constraint: the one with the largest want/have; of
// equals the first of cpu, memory, bandwidth. A set that breaks none of these may still be
// far from every device of the workload.
func (s *search) limits(o *offer, sum room, memoryKnown bool) {
	tightest := 1 + rounding
	broken := func(code string, want, have float64) {
		if over := want / max(have, rounding); over > tightest {
			o.code, o.want, o.have, tightest = code, want, have, over
		}
	}
	broken("cpu", s.need, sum.left)
	switch {
	case s.l.Binding.PinnedMems: // no memory will be moved
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

// trafficShare is others' traffic there: relative to the nodes' limits where all are known,
// else to all traffic of the machine, this workload's included.
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

// share is part/whole, at most 1; 0 if the whole is 0.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(1, part/whole)
}

// far is larger than every SLIT distance.
const far = 256

// distance sums the SLIT distances inside the set, both ways. An unknown distance counts as
// larger than any known one.
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

// tightest is "device" if some set breaks nothing else. Else it is the code that most sets
// broke; of equals the first of cpu, memory, bandwidth. It is "mems" or "empty" only when
// there was no set to examine.
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

// refusal names the constraint by which nothing fits, the set that comes closest, and by
// how much that set misses it.
func (s *search) refusal() action.Reason {
	code := s.tightest()
	rule, name, in := refusalOf(code)
	why := action.Reason{Rule: rule, Workload: s.l.ID, Numbers: s.l.evidence(), Alternatives: s.alternatives(offer{})}
	o, ok := s.closest(code)
	if !ok {
		return why
	}
	why.Nodes = o.nodes(s)
	if name != "" {
		need := figure(name, derived(o.want, true, "what these nodes would have to have; limit: what is left there"), in)
		need.Limit = unit.OptOf(o.have, o.have >= 0)
		why.Numbers = append(why.Numbers, need)
	}
	return why
}

// refusals by the tightest constraint.
var refusals = []struct{ code, rule, needs, unit string }{
	{"cpu", "mao.skip.cpu", "cpu_needed", "cpus"},
	{"memory", "mao.skip.memory", "memory_needed", "bytes"},
	{"bandwidth", "mao.skip.bandwidth", "bandwidth_needed", "bytes/s"},
	{"device", "mao.skip.device", "", ""},
	{"mems", "mao.skip.mems", "", ""},
	{"empty", "mao.skip.empty", "", ""},
}

func refusalOf(code string) (rule, needs, in string) {
	for _, r := range refusals {
		if r.code == code {
			return r.rule, r.needs, r.unit
		}
	}
	return "", "", ""
}

// closest is the set that breaks a constraint by least.
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

// manyAlternatives is how many a reason lists: a screenful.
const manyAlternatives = 12

// alternatives lists the sets that were examined: the chosen one, then those that fit by
// rank, then those that do not, then nodes that are excluded.
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
	var list []action.Alternative
	for _, o := range offers[:min(len(offers), manyAlternatives)] {
		list = append(list, action.Alternative{
			Nodes: o.nodes(s), Code: o.code, Figures: o.figures(s), Chosen: len(chosen.at) > 0 && slices.Equal(o.at, chosen.at),
		})
	}
	for k := range s.rooms {
		n := &s.rooms[k]
		if n.code != "" && len(list) < manyAlternatives {
			list = append(list, action.Alternative{Nodes: set.FromNodes(n.id), Code: n.code})
		}
	}
	return list
}

// figures say how an offer fits, or by how much it does not.
func (o *offer) figures(s *search) []action.Figure {
	if o.code != "" {
		return o.missing()
	}
	all := []action.Figure{{Name: "cost", Value: o.cost}}
	if s.l.Binding.PinnedMems {
		all = append(all, action.Figure{Name: "memory_that_stays_elsewhere", Value: o.away})
	} else {
		all = append(all, action.Figure{Name: "bytes_to_move", Value: float64(o.toMove)}, action.Figure{Name: "share_to_move", Value: o.parts[0]})
	}
	all = append(all, action.Figure{Name: "traffic_of_others", Value: o.parts[1]}, action.Figure{Name: "cpu_of_others", Value: o.parts[2]}, action.Figure{Name: "company", Value: o.parts[3]})
	if !s.l.Near.IsEmpty() {
		all = append(all, action.Figure{Name: "distance_to_devices", Value: o.parts[4]})
	}
	if len(o.at) > 1 {
		all = append(all, action.Figure{Name: "distance_inside", Value: float64(o.distance)})
	}
	if o.short {
		all = append(all, action.Figure{Name: "quota_needed", Value: s.quota.Or(0)})
	}
	return all
}

// missing are the needed and the remaining amount of the constraint that broke.
func (o *offer) missing() []action.Figure {
	_, name, _ := refusalOf(o.code)
	if name == "" {
		return nil
	}
	left := action.Figure{Name: o.code + "_left", Value: o.have}
	if o.have < 0 { // unknown
		return []action.Figure{{Name: name, Value: o.want}}
	}
	return []action.Figure{{Name: name, Value: o.want}, left}
}
