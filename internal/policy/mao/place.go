// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"cmp"
	"slices"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Placement. The paper: the scheduler picks the node by its remaining CPU quota, memory
// size and memory bandwidth. Our reading:
//
//  1. What each node has left (rooms, ledger). CPUs: online minus reserved ones, minus
//     what workloads bound to it use, minus what workloads that other processes pinned use
//     there. Memory: free, plus ReclaimableShare of the page cache, plus its own pages there,
//     minus FreeReserve and what is on its way there. Bandwidth, where a limit is known:
//     minus the larger of two figures, what was measured of the node in this window without
//     its own part, and what its workloads read by the ledger. The measurement does not
//     include what was bound just now.
//  2. What it needs: its smoothed CPU use × HeadroomFactor, at most its quota; its pages
//     and their expected growth (memoryNeed). Choice: the fit is judged by *use*, so that a
//     quota of 4 CPUs that uses 1.6 fits on 2. That the whole *quota* fits as well is
//     preferred (scores), not required. Strategy B corrects what turns out wrong.
//  3. Node sets of k nodes for k = 1, 2, … MaxNodes; the smallest k at which any set fits
//     wins. Every set of that size is examined (up to 16 nodes; of larger machines the 16
//     with most CPU left, for k > 1). A size at which the k best nodes together are too small
//     is skipped.
//     the quota fits too; least total distance inside; least cost; lowest ids.
//     Cost = MoveWeight × share of its pages to move
//     + BandwidthWeight × others' share of the DRAM traffic there
//     + CPUWeight × others' share of the CPUs there
//     + CompanyWeight × share of all bound workloads that are there
//     + DeviceWeight × distance from its devices (Workload.Near), by CPUs.
// Moving is paid once and neighbours for ever, hence the default weights. Approved
// workloads that are not bound yet do not count as neighbours: they will be placed
// themselves.
//  5. It must pay: the local ratio expected there (Σ CPU share × page share, 1 on one
//     node, about 1/k on k) must exceed the present one by MinGain.

// room is what one node has left for one workload.
type room struct {
	id      int
	code    string // why it is out of the question: "empty", "mems"; else ""
	cpus    float64
	left    float64 // CPUs by use
	leftQ   float64 // CPUs by quota
	memory  float64 // bytes; −1 if the node's free memory is unknown
	own     unit.Bytes
	traffic float64           // of others, bytes/s
	served  float64           // of others, bytes/s, compared with limit: measured, or from the ledger
	limit   unit.Opt[float64] // bytes/s
	use     float64           // CPUs of others, as cost
	company int               // bound workloads
	device  float64           // distance of its devices, as a share of the machine's largest
	near    bool              // it has one of its devices, or the workload has no devices
}

// place finds a node set for workload i and binds it, unless nothing fits. It must pay for
// this workload alone, unless the caller knows that it pays for its whole service.
func (r *round) place(i int, paysTogether bool) {
	l := &r.loads[i]
	s := r.newSearch(l)
	if s.usable < 2 {
		r.decide(i, action.Reason{Rule: "mao.skip.one-node", Numbers: l.evidence()})
		return
	}
	best, ok := s.run() // 3, 4
	if !ok {
		r.decide(i, s.refusal())
		return
	}
	if !paysTogether && best.local < float64(l.local.Or(0))+float64(r.cfg.MinGain)-rounding { // 5
		expected := figure("expected_local_ratio", derived(best.local, true, "CPU and page shares there"), "ratio")
		r.decide(i, action.Reason{Rule: "mao.skip.no-gain", Numbers: append(l.evidence(), expected), Alternatives: s.alternatives(offer{})})
		return
	}
	r.bindTo(i, s, best)
}

// search is the placement of one workload.
type search struct {
	r       *round
	l       *load
	need    float64 // CPUs by use
	quota   unit.Opt[float64]
	memory  float64 // bytes: its pages and its growth
	rooms   []room
	open    []int // rooms that are not excluded
	usable  int   // nodes with CPUs and memory
	bound   int   // workloads bound anywhere
	traffic float64
	offers  []offer
}

// offer is one examined node set.
type offer struct {
	at         []int // indexes of rooms, ascending
	code       string
	want, have float64 // of the constraint that broke
	away       float64 // share of its unmovable memory that is elsewhere
	short      bool    // the quota does not fit
	distance   int
	cost       float64
	parts      [5]float64 // of cost: move, traffic, cpu, company, device; unweighted
	toMove     unit.Bytes
	local      float64
}

func (r *round) newSearch(l *load) *search {
	book := r.open() // 1
	s := &search{r: r, l: l, quota: l.Quota.V, need: r.need(l), memory: r.memoryNeed(l), bound: book.bound, rooms: make([]room, len(r.nodes))}
	s.traffic = book.total + l.traffic
	for j := range r.nodes {
		o := &s.rooms[j]
		*o = r.roomFor(l, j, book)
		if o.code != "empty" {
			s.usable++
		}
		if o.code == "" {
			s.open = append(s.open, j)
		}
	}
	return s
}

// mayHave are the nodes that the workload might be bound to, whatever they have left.
func (s *search) mayHave() set.NodeSet { return offer{at: s.open}.nodes(s) }

// need is number 2: the CPUs that a workload needs, whether it is bound or not. A workload
// that gets bound will do the same work in less time, without its remote stalls.
func (r *round) need(l *load) float64 {
	use := l.Demand.Or(0) * r.cfg.HeadroomFactor
	if !l.bound() {
		use *= 1 - r.saved(l)
	}
	return min(use, l.Quota.Or(use))
}

// memoryNeed is number 2 for memory. It adds the expected growth, as widening computes it
// (widen.go). For a workload recently unbound for lack of memory it is at least the need of
// that time: otherwise a heap that grows and shrinks would be bound each time that it is
// small.
func (r *round) memoryNeed(l *load) float64 {
	need := float64(l.total)
	if !r.cfg.Widen {
		return need
	}
	need += r.wants(l)
	if l.Need > 0 && r.w.Seq < l.NotBefore+r.cfg.BackoffCap {
		need = max(need, float64(l.Need))
	}
	return need
}

// saved estimates the share of its cycles that a workload waits for remote reads beyond
// what local ones would take; 0 where that is unknown. With L local and R remote reads and
// a latency ratio k, stall cycles S are about c·(L + k·R), of which c·(k − 1)·R are saved.
func (r *round) saved(l *load) float64 {
	cycles, ok1 := l.Cycles.Get()
	stalls, ok2 := l.StallCycles.Get()
	local, ok3 := l.LocalLoads.Get()
	remote, ok4 := l.RemoteLoads.Get()
	k := machine.LatencyRatio(r.remoteDistance(), machine.SLITExcess)
	all := float64(local) + float64(k*float64(remote))
	if !ok1 || !ok2 || !ok3 || !ok4 || all <= 0 || stalls > cycles || cycles == 0 {
		return 0
	}
	return float64(stalls) / float64(cycles) * (k - 1) * float64(remote) / all
}

// remoteDistance is the mean SLIT distance between different nodes with CPUs; 10 where no
// distance is known, which promises nothing. It is computed once per round.
func (r *round) remoteDistance() float64 {
	if !r.apart.Known() {
		r.apart = unit.Some(r.meanDistance())
	}
	return r.apart.Or(machine.LocalDistance)
}

func (r *round) meanDistance() float64 {
	sum, count := 0.0, 0.0
	for i := range r.nodes {
		a := &r.nodes[i]
		if a.cpus.IsEmpty() {
			continue
		}
		for j := range r.nodes {
			b := &r.nodes[j]
			if d, ok := r.m.Distance(a.id, b.id).Get(); ok && a.id != b.id {
				sum, count = sum+float64(d), count+1
			}
		}
	}
	if count == 0 {
		return machine.LocalDistance
	}
	return sum / count
}

// roomFor is number 1 for one node.
func (r *round) roomFor(l *load, j int, b *ledger) room {
	n, wn := &r.nodes[j], &r.w.Nodes[j]
	cpus := n.count
	if allowed := l.Binding.CPUs; !allowed.IsEmpty() {
		cpus = float64(n.cpus.Intersect(allowed).Len())
	}
	o := room{
		id: n.id, cpus: cpus, own: l.pages[j], left: cpus - b.use[j], leftQ: cpus - b.quota[j],
		traffic: b.traffic[j], use: b.cost[j], company: b.company[j], memory: -1,
	}
	o.near, o.device = l.Near.IsEmpty() || l.Near.Has(n.id), r.fromDevices(l, n.id)
	if limit, ok := r.cfg.NodeBandwidth[n.id]; ok {
		o.limit, o.served = unit.Some(float64(limit)), r.served(l, j, b)
	}
	free, ok := wn.Free.Get()
	total, okTotal := n.memory.Get()
	if ok && okTotal {
		cache := float64(float64(max(0, wn.File.Or(0)-l.FileByNode[j].Or(0))) * float64(r.cfg.ReclaimableShare))
		o.memory = max(0, float64(free+o.own)+cache-float64(float64(total)*float64(r.cfg.FreeReserve))-b.incoming[j])
	}
	switch {
	case n.cpus.IsEmpty() || okTotal && total == 0:
		o.code = "empty"
	case cpus == 0 || !l.Binding.Mems.IsEmpty() && !l.Binding.Mems.Has(n.id):
		o.code = "mems"
	}
	return o
}

// served is others' traffic on a node, bytes/s, for number 1.
func (r *round) served(l *load, j int, b *ledger) float64 {
	bytes, ok := r.w.Nodes[j].Traffic.Get()
	if !ok || r.w.Length <= 0 {
		return b.traffic[j]
	}
	own := float64(l.traffic * share(float64(l.pages[j]), float64(l.total)))
	return max(b.traffic[j], float64(bytes)/r.w.Length.Seconds()-own)
}

// fromDevices is the distance from a node to the nearest of a workload's devices, as a
// share of the largest distance of the machine; 0 without devices, 1 where it is unknown.
func (r *round) fromDevices(l *load, id int) float64 {
	if l.Near.IsEmpty() || l.Near.Has(id) {
		return 0
	}
	nearest, largest := -1, machine.LocalDistance
	for _, row := range r.m.Distances {
		for _, d := range row {
			largest = max(largest, d.Or(0))
		}
	}
	for to := range l.Near.All() {
		if d, ok := r.m.Distance(id, to).Get(); ok && (nearest < 0 || d < nearest) {
			nearest = d
		}
	}
	if nearest < 0 || largest == machine.LocalDistance {
		return 1
	}
	return share(float64(nearest-machine.LocalDistance), float64(largest-machine.LocalDistance))
}

// run is numbers 3 and 4.
func (s *search) run() (offer, bool) {
	most := s.r.cfg.MaxNodes
	if most == 0 {
		most = s.usable - 1
	}
	for k := 1; k <= min(most, len(s.open)); k++ {
		if k > 1 && !s.couldFit(k) {
			continue
		}
		from := len(s.offers)
		s.judgeAll(k)
		if best, ok := bestOf(s.offers[from:]); ok {
			return best, true
		}
	}
	return offer{}, false
}

// judgeAll examines all sets of k nodes.
func (s *search) judgeAll(k int) {
	eachSet(s.pool(k), k, func(at []int) { s.offers = append(s.offers, s.judge(at)) })
}

// largestBruteForce is the most nodes of which all sets are examined: C(16,8) is 12,870,
// about 2 ms. One node more doubles that.
const largestBruteForce = 16

// pool is the nodes from which sets of k are made.
func (s *search) pool(k int) []int {
	if k == 1 || len(s.open) <= largestBruteForce {
		return s.open
	}
	pool := slices.Clone(s.open)
	slices.SortStableFunc(pool, func(a, b int) int { return cmp.Compare(s.rooms[b].left, s.rooms[a].left) })
	pool = pool[:largestBruteForce]
	slices.Sort(pool)
	return pool
}

// couldFit compares the k best nodes together with what is needed.
func (s *search) couldFit(k int) bool {
	cpu := s.sumOfLargest(k, func(o room) float64 { return o.left })
	memory := s.sumOfLargest(k, func(o room) float64 { return o.memory })
	return cpu >= s.need-rounding && (s.l.Binding.PinnedMems || memory >= float64(s.l.total))
}

func (s *search) sumOfLargest(k int, of func(room) float64) float64 {
	values := make([]float64, 0, len(s.open))
	for _, j := range s.open {
		values = append(values, max(0, of(s.rooms[j])))
	}
	slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(b, a) })
	sum := 0.0
	for _, v := range values[:min(k, len(values))] {
		sum += v
	}
	return sum
}

// eachSet yields every k of these, in lexicographic order; the callee owns it.
func eachSet(of []int, k int, yield func([]int)) {
	var grow func(from int, at []int)
	grow = func(from int, at []int) {
		if len(at) == k {
			yield(slices.Clone(at))
			return
		}
		for i := from; i <= len(of)-(k-len(at)); i++ {
			grow(i+1, append(at, of[i]))
		}
	}
	grow(0, make([]int, 0, k))
}

// bestOf is number 4.
func bestOf(offers []offer) (offer, bool) {
	best := -1
	for i := range offers {
		if offers[i].code == "" && (best < 0 || offers[i].before(&offers[best])) {
			best = i
		}
	}
	if best < 0 {
		return offer{}, false
	}
	return offers[best], true
}

func (o *offer) before(p *offer) bool {
	return cmp.Or(
		compareRounded(o.away, p.away),
		cmp.Compare(b2i(o.short), b2i(p.short)),
		cmp.Compare(o.distance, p.distance),
		compareRounded(o.cost, p.cost),
		slices.Compare(o.at, p.at),
	) < 0
}

// compareRounded treats as equal what differs only by the order of additions.
func compareRounded(a, b float64) int {
	if a-b < rounding && b-a < rounding {
		return 0
	}
	return cmp.Compare(a, b)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (o offer) nodes(s *search) set.NodeSet {
	ids := make([]int, len(o.at))
	for i, j := range o.at {
		ids[i] = s.rooms[j].id
	}
	return set.FromNodes(ids...)
}
