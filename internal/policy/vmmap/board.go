// SPDX-License-Identifier: Apache-2.0

package vmmap

import (
	"cmp"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// board is the machine with VMs on it: what is free, and which VMs are neighbours. CPUs of
// a unit are alike, so the board counts them; which CPUs a VM gets is decided at the end.
type board struct {
	cfg    *Config
	levels machine.Levels
	nodes  []place
	units  []unitOf
	caches []ByClass   // VMs in each last-level cache, by class
	cached map[int]int // from a machine's cache, or -1 - a node's id, to an index into caches; only looked up
	far    [][]int     // SLIT between nodes, the larger of both directions
	steps  []int       // the distinct distances, ascending; 10 first
	// servers are the sums over their nodes.
	servers []place
	tries   int // placements tried by this search
	work    int // by all searches on this board
}

// begin starts a search among residents. Examining some costs as much as trying something.
func (b *board) begin(residents []resident) {
	b.tries = 0
	b.work += len(residents) / 8
}

// afford counts one try; false: this search, or all of them together, tried enough.
func (b *board) afford() bool {
	b.tries++
	b.work++
	return !b.spent()
}

func (b *board) spent() bool {
	return b.tries > b.cfg.Searches || b.tired()
}

// tired reports that all searches together tried enough.
func (b *board) tired() bool { return b.work > b.cfg.StepSearches }

// place is a node.
type place struct {
	id    int
	units []int
	most  int // CPUs that it has
	free  int // those given to no VM
	// room is memory that no VM has or will have; bytes is the most that there could be.
	room, bytes float64
	server      int
}

// unitOf is the CPUs of one node below one last-level cache.
type unitOf struct {
	node, cache int
	cpus        []int // ids, those of one core together
	free        int
}

// want is a VM that has a place or needs one.
type want struct {
	id        int // the caller's
	class     Class
	sensitive bool
	cpus      int
	bytes     float64
	at        []Share // shares of its memory now, sum 1; Node is an index into board.nodes
}

// slot is a place for a VM: CPUs of units, memory of nodes. The zero slot is no place.
type slot struct {
	take  []grant
	share []Share // of its memory; Node is an index into board.nodes here
	span  int     // the largest distance between two of its nodes
	total int     // the sum of all distances
	level machine.Level
	cost  float64 // of its neighbours
}

type grant struct{ unit, cpus int }

func (s slot) none() bool { return len(s.take) == 0 }

// unknownDistance stands for a distance that the firmware does not give: REMOTE_DISTANCE of
// include/linux/topology.h.
const unknownDistance = 20

// newBoard has the nodes that have CPUs or memory, all free. cpus returns the CPUs that may
// be given, room the memory of a node that VMs may have.
func newBoard(m machine.Machine, cfg *Config, cpus func(node int) set.CPUSet, room func(node int) float64) *board {
	b := &board{cfg: cfg, levels: m.Levels()}
	b.cached = map[int]int{}
	for _, n := range m.Nodes {
		p := place{id: n.ID, room: room(n.ID)}
		p.server, _ = b.levels.Server(n.ID)
		p.bytes = p.room
		for _, u := range b.split(m, n.ID, cpus(n.ID)) {
			p.units = append(p.units, len(b.units))
			p.most += len(u.cpus)
			b.units = append(b.units, u)
		}
		p.free = p.most
		if p.most > 0 || p.room > 0 {
			b.nodes = append(b.nodes, p)
		} else {
			b.units = b.units[:len(b.units)-len(p.units)]
		}
	}
	b.servers = make([]place, len(b.levels.Servers))
	for _, n := range b.nodes {
		b.servers[n.server].most += n.most
		b.servers[n.server].bytes += n.bytes
	}
	b.caches = make([]ByClass, len(b.cached))
	b.measure(m)
	return b
}

// split divides a node's CPUs by last-level cache, in the order of their first CPU. Where
// no cache is known, the node counts as one.
func (b *board) split(m machine.Machine, node int, cpus set.CPUSet) (units []unitOf) {
	at := len(b.nodes)
	for id := range cpus.All() {
		key := cacheKey(m, node, id)
		k, ok := b.cached[key]
		if !ok {
			k = len(b.cached)
			b.cached[key] = k
		}
		i := slices.IndexFunc(units, func(u unitOf) bool { return u.cache == k })
		if i < 0 {
			i = len(units)
			units = append(units, unitOf{node: at, cache: k})
		}
		units[i].cpus = append(units[i].cpus, id)
	}
	for i := range units {
		u := &units[i]
		slices.SortStableFunc(u.cpus, func(a, b int) int {
			x, _ := m.CPU(a)
			y, _ := m.CPU(b)
			return cmp.Or(cmp.Compare(x.Core.Or(a), y.Core.Or(b)), cmp.Compare(a, b))
		})
		u.free = len(u.cpus)
	}
	return units
}

// cacheKey is a CPU's last-level cache; where none is known, its node.
func cacheKey(m machine.Machine, node, cpu int) int {
	c, _ := m.CPU(cpu)
	return c.LLC.Or(-1 - node)
}

// settle adds a VM that runs without a place from this policy: it is a neighbour, too.
func (b *board) settle(m machine.Machine, c Class, cpus set.CPUSet) {
	var seen []int
	for id := range cpus.All() {
		node, _ := m.NodeOf(id)
		k, ok := b.cached[cacheKey(m, node, id)]
		if ok && !slices.Contains(seen, k) {
			seen = append(seen, k)
			b.count(c, k, 1)
		}
	}
}

// measure computes the distances.
func (b *board) measure(m machine.Machine) {
	b.steps = []int{machine.LocalDistance}
	b.far = make([][]int, len(b.nodes))
	for i, from := range b.nodes {
		b.far[i] = make([]int, len(b.nodes))
		for j, to := range b.nodes {
			there, back := m.Distance(from.id, to.id), m.Distance(to.id, from.id)
			d := max(there.Or(back.Or(unknownDistance)), back.Or(there.Or(unknownDistance)))
			b.far[i][j] = d
			b.steps = append(b.steps, d)
		}
	}
	slices.Sort(b.steps)
	b.steps = slices.Compact(b.steps)
}

// neighbours is how bad the VMs in a unit's cache are for a class.
func (b *board) neighbours(c Class, unit int) float64 {
	n, with := b.caches[b.units[unit].cache], b.cfg.Compatible.of(c)
	return float64(n.Sheep*with.Sheep) + float64(n.Rabbit*with.Rabbit) + float64(n.Devil*with.Devil)
}

// crowd is the number of VMs in a unit's cache.
func (b *board) crowd(unit int) float64 {
	n := b.caches[b.units[unit].cache]
	return n.Sheep + n.Rabbit + n.Devil
}

// put gives a VM its slot; take removes it.
func (b *board) put(v want, s slot)  { b.change(v, s, 1) }
func (b *board) take(v want, s slot) { b.change(v, s, -1) }

func (b *board) change(v want, s slot, by int) {
	for i, g := range s.take {
		u := &b.units[g.unit]
		u.free -= by * g.cpus
		b.nodes[u.node].free -= by * g.cpus
		if !b.seen(s.take[:i], u.cache) {
			b.count(v.class, u.cache, float64(by))
		}
	}
	for _, sh := range s.share {
		b.nodes[sh.Node].room -= float64(float64(by) * sh.Of * v.bytes)
	}
}

func (b *board) seen(before []grant, cache int) bool {
	return slices.ContainsFunc(before, func(g grant) bool { return b.units[g.unit].cache == cache })
}

func (b *board) count(c Class, cache int, by float64) { *b.caches[cache].at(c) += by }

// costOf is how bad a VM's neighbours in a slot are, each cache once. The VM itself is not
// on the board.
func (b *board) costOf(v want, s slot) (sum float64) {
	for i, g := range s.take {
		if !b.seen(s.take[:i], b.units[g.unit].cache) {
			sum += b.neighbours(v.class, g.unit)
		}
	}
	return sum
}

// nearest is the nearest level that a VM of this size could have on an empty machine, and
// the farthest that suits it: an insensitive VM may be anywhere in a server.
func (b *board) nearest(v want) (nearest, suits machine.Level) {
	nearest = machine.Beyond
	for i := range b.nodes {
		n := &b.nodes[i]
		all := &b.servers[n.server]
		if n.most >= v.cpus && fits(v.bytes, n.bytes) {
			nearest = machine.SameNode
		}
		if all.most >= v.cpus && fits(v.bytes, all.bytes) {
			nearest = min(nearest, machine.SameServer)
		}
	}
	suits = nearest
	if !v.sensitive {
		suits = max(suits, machine.SameServer)
	}
	return nearest, suits
}

// fits allows for rounding errors in sums of shares.
func fits(bytes, room float64) bool { return bytes <= room+1+float64(room*1e-9) }

// materialise picks the CPUs of a slot: the first free CPUs of each unit.
func (b *board) materialise(s slot, free set.CPUSet) (nodes set.NodeSet, cpus set.CPUSet, share []Share) {
	for _, g := range s.take {
		left := g.cpus
		for _, id := range b.units[g.unit].cpus {
			if left > 0 && free.Has(id) {
				cpus = cpus.With(id)
				left--
			}
		}
	}
	for _, sh := range s.share {
		nodes = nodes.With(b.nodes[sh.Node].id)
		share = append(share, Share{b.nodes[sh.Node].id, sh.Of})
	}
	return nodes, cpus, share
}

// slotAt is the slot that given CPUs of given nodes form.
func (b *board) slotAt(v want, cpus set.CPUSet, nodes set.NodeSet, share []Share) slot {
	var s slot
	var at []int
	for i, n := range b.nodes {
		has := nodes.Has(n.id)
		for _, k := range n.units {
			got := 0
			for _, id := range b.units[k].cpus {
				if cpus.Has(id) {
					got++
				}
			}
			if got > 0 {
				s.take, has = append(s.take, grant{k, got}), true
			}
		}
		if has {
			at = append(at, i)
		}
	}
	for _, sh := range share {
		if i := slices.IndexFunc(b.nodes, func(p place) bool { return p.id == sh.Node }); i >= 0 {
			s.share = append(s.share, Share{i, sh.Of})
		}
	}
	b.span(&s, at)
	return s
}

// span computes how far a slot's nodes are from each other.
func (b *board) span(s *slot, nodes []int) {
	s.span, s.total, s.level = machine.LocalDistance, 0, machine.SameNode
	for i, x := range nodes {
		for _, y := range nodes[:i] {
			s.span = max(s.span, b.far[x][y])
			s.total += b.far[x][y]
			s.level = max(s.level, machine.SameServer)
			if b.nodes[x].server != b.nodes[y].server {
				s.level = machine.Beyond
			}
		}
	}
}

// roomOf is the part of a node's memory that VMs may have.
func roomOf(memory unit.Opt[unit.Bytes], others float64, reserve unit.Ratio) float64 {
	return max(0, float64(float64(memory.Or(0))*(1-float64(reserve)))-others)
}
