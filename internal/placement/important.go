// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// Options say which placements are asked for.
type Options struct {
	VCPUs   int
	Links   *Links              // bandwidths between nodes; nil: the number of direct links
	Devices machine.DeviceClass // add the locality of these devices; "": none
	// Strict takes packings that cover all nodes only, as the paper does. Otherwise nodes
	// may stay empty where no further workload fits on them.
	Strict bool
}

// Score is a placement's by one concern.
type Score struct {
	Concern string `json:"concern"`
	Value   int64  `json:"value"`
	Unit    string `json:"unit"`
}

// Placement is one important placement: an example of those with its scores.
type Placement struct {
	Scores []Score     `json:"scores"` // in the order of List.Concerns
	Nodes  set.NodeSet `json:"nodes"`
	CPUs   set.CPUSet  `json:"cpus"`
	// Packings are the packings that need it: the node sets of the example's, its own
	// first. No other packing with blocks of these sizes is better.
	Packings []Packing `json:"packings"`
	PerNode  int       `json:"vcpus_per_node"`
}

// ScoreText is the scores as "concern=value", with spaces between.
func (p Placement) ScoreText() string {
	var words []string
	for _, s := range p.Scores {
		words = append(words, fmt.Sprintf("%s=%d", s.Concern, s.Value))
	}
	return strings.Join(words, " ")
}

// Packing is one way for several workloads of this size to share the machine.
type Packing struct {
	Blocks []set.NodeSet `json:"blocks"`
	Empty  set.NodeSet   `json:"empty"`
}

// Dropped is a concern that makes no difference on this machine.
type Dropped struct {
	Concern string `json:"concern"`
	Why     string `json:"why"`
}

// List is the answer to Important.
type List struct {
	VCPUs      int         `json:"vcpus"`
	Concerns   []Concern   `json:"concerns"`
	Dropped    []Dropped   `json:"dropped_placements"`
	Links      string      `json:"links_source"` // where the interconnect's score comes from
	Placements []Placement `json:"placements"`
	Packings   int         `json:"packing_count"` // that no other dominates
	// Cut is the number of sets of nodes for which only the best block of each size was
	// tried, since there were too many; 0: the list is exact.
	Cut int `json:"sets_cut"`
}

// maxSteps bounds the blocks that are tried: some ten seconds.
const maxSteps = 3_000_000

// maxNodes is what a set of nodes has bits for.
const maxNodes = 64

// ErrNoPlacement: so many vCPUs fit in no balanced way.
var ErrNoPlacement = errors.New("no placement")

// Important are the important placements of a workload, the fewest nodes first (Funston
// et al. §4):
//
//  1. Feasible scores: s nodes with N/s vCPUs each, spread evenly over the resources in
//     them (plan.go).
//  2. Packings of the nodes by blocks of feasible sizes that none dominates (pack.go).
//  3. Each block of those × each plan; equal score vectors are one placement.
//
// An error that is ErrNoPlacement names the nearest numbers of vCPUs that have one.
func Important(m machine.Machine, o Options) (List, error) {
	if o.VCPUs <= 0 {
		return List{}, fmt.Errorf("%w: %d vCPUs are none: give a number above 0", ErrNoPlacement, o.VCPUs)
	}
	p, err := newProblem(m, o)
	if err != nil {
		return List{}, err
	}
	if len(p.sizes) == 0 {
		return List{}, p.nearest(m, o)
	}
	return p.solve()
}

// problem is a machine as packings see it.
type problem struct {
	input
	list   List
	counts []Concern // inside nodes, the largest resource first
	ids    []int     // of the nodes with CPUs, by index
	trees  []tree
	opts   Options
}

func newProblem(m machine.Machine, o Options) (*problem, error) {
	all := Concerns(o.Devices)
	p := &problem{list: List{VCPUs: o.VCPUs, Dropped: []Dropped{}}, opts: o}
	var levels [][]set.CPUSet
	p.counts, levels = levelsOf(m, all)
	kinds := map[string]int{}
	for _, n := range m.Nodes {
		if n.CPUs.IsEmpty() {
			continue
		}
		t := split(n.CPUs, levels)
		kind, known := kinds[t.shape()]
		if !known {
			kind = len(kinds)
			kinds[t.shape()], p.fits = kind, append(p.fits, p.fitting(t))
		}
		p.ids, p.trees, p.kinds = append(p.ids, n.ID), append(p.trees, t), append(p.kinds, kind)
	}
	p.n = len(p.ids)
	if p.n == 0 || p.n > maxNodes {
		return nil, fmt.Errorf("%w: %d nodes have CPUs, and 1 to %d can be packed", ErrNoPlacement, p.n, maxNodes)
	}
	if o.Links != nil {
		if err := o.Links.Covers(p.ids); err != nil {
			return nil, err
		}
	}
	p.findSizes()
	p.weigh(m, all)
	return p, nil
}

// fitting are the plans of a node by the number of nodes in use.
func (p *problem) fitting(t tree) map[int][]string {
	fits := map[int][]string{}
	for size := 1; size <= min(p.opts.VCPUs, maxNodes); size++ {
		if p.opts.VCPUs%size == 0 {
			for _, plan := range t.plans(p.opts.VCPUs/size, len(p.counts)) {
				fits[size] = append(fits[size], plan.key())
			}
		}
	}
	return fits
}

func (p *problem) findSizes() {
	byKind := make([]int, len(p.fits))
	for _, kind := range p.kinds {
		byKind[kind]++
	}
	k := packer{input: &p.input}
	for size := 1; size <= p.n; size++ {
		if k.blockFits(size, byKind) {
			p.sizes = append(p.sizes, size)
		}
	}
}

// weigh sets the joint concerns, and says which concerns make no difference.
func (p *problem) weigh(m machine.Machine, all []Concern) {
	for _, c := range all {
		switch {
		case c.Name == nodes().Name || slices.ContainsFunc(p.counts, func(k Concern) bool { return k.Name == c.Name }):
			p.list.Concerns = append(p.list.Concerns, c)
			continue
		case c.Units != nil:
			p.list.Dropped = append(p.list.Dropped, Dropped{c.Name, "none is known that several CPUs share and that is not the same as another one"})
			continue
		}
		w, ok := c.Weigh(m, p.ids, p.opts.Links)
		if !ok {
			p.list.Dropped = append(p.list.Dropped, Dropped{c.Name, "the machine does not say"})
			continue
		}
		if c.Name == interconnect().Name {
			c.Unit, p.list.Links = "links", "direct links by the SLIT"
			if p.opts.Links != nil {
				c.Unit, p.list.Links = "bytes/s", p.opts.Links.From
			}
		}
		p.list.Concerns, p.joint = append(p.list.Concerns, c), append(p.joint, w)
	}
}

// symmetry of the machine: nodes of the same kind and own weights, pairs of equal ones.
func (p *problem) symmetry() *symmetry {
	kind, pair := make([]int, p.n), make([][]int, p.n)
	kinds, pairs := map[string]int{}, map[string]int{}
	number := func(of map[string]int, key string) int {
		if _, ok := of[key]; !ok {
			of[key] = len(of)
		}
		return of[key]
	}
	for i := range p.n {
		pair[i] = make([]int, p.n)
		own := fmt.Sprint(p.kinds[i])
		for _, w := range p.joint {
			own += fmt.Sprint(" ", w.Node[i])
		}
		kind[i] = number(kinds, own)
		for j := range p.n {
			key := ""
			for _, w := range p.joint {
				key += fmt.Sprint(" ", w.Pair[i][j])
			}
			pair[i][j] = number(pairs, key)
		}
	}
	return newSymmetry(kind, pair)
}

func (p *problem) solve() (List, error) {
	k := &packer{input: &p.input, sym: p.symmetry(), done: map[state]front{}, strict: p.opts.Strict}
	all, none := uint64(1)<<p.n-1, make([]int, len(p.fits))
	packings := k.pack(all, none)
	if len(packings) == 0 {
		return List{}, fmt.Errorf("%w of %d vCPUs is in a packing that covers all %d nodes: leave nodes empty (without --cover-all)", ErrNoPlacement, p.opts.VCPUs, p.n)
	}
	found := map[string]*Placement{}
	for _, sizes := range slices.Sorted(maps.Keys(packings)) {
		for _, l := range packings[sizes] {
			p.list.Packings++
			blocks, ok := k.unpack(all, none, l)
			if !ok {
				return List{}, fmt.Errorf("packing %v cannot be unpacked: this is a defect of homenode", l)
			}
			p.add(k, found, blocks)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		p.list.Placements = append(p.list.Placements, *found[key])
	}
	slices.SortStableFunc(p.list.Placements, comparePlacements)
	p.list.Cut = k.cut
	return p.list, nil
}

// add makes the placements of a packing's blocks. One with several blocks of the same
// scores is named once.
func (p *problem) add(k *packer, found map[string]*Placement, blocks []uint64) {
	named := map[string]bool{}
	for i, b := range blocks {
		size := len(indexes(b))
		for _, key := range k.plansOf(b, size) {
			one := p.place(b, size, planOf(key))
			name := fmt.Sprint(one.Scores)
			if found[name] == nil {
				found[name] = &one
			}
			if !named[name] {
				named[name] = true
				found[name].Packings = append(found[name].Packings, p.packing(blocks, i))
			}
		}
	}
}

func (p *problem) packing(blocks []uint64, own int) (packing Packing) {
	order := append([]uint64{blocks[own]}, slices.Delete(slices.Clone(blocks), own, own+1)...)
	empty := set.FromNodes(p.ids...)
	for _, b := range order {
		nodes := p.nodesOf(b)
		packing.Blocks, empty = append(packing.Blocks, nodes), empty.Minus(nodes)
	}
	packing.Empty = empty
	return packing
}

func (p *problem) nodesOf(block uint64) set.NodeSet {
	var ids []int
	for _, i := range indexes(block) {
		ids = append(ids, p.ids[i])
	}
	return set.FromNodes(ids...)
}

// place is a block with one plan.
func (p *problem) place(block uint64, size int, spread plan) Placement {
	one := Placement{Nodes: p.nodesOf(block), PerNode: p.opts.VCPUs / size}
	for _, i := range indexes(block) {
		one.CPUs = one.CPUs.Union(p.trees[i].take(one.PerNode, spread))
	}
	joint := 0
	for _, c := range p.list.Concerns {
		score := Score{Concern: c.Name, Unit: c.Unit}
		switch at := slices.IndexFunc(p.counts, func(k Concern) bool { return k.Name == c.Name }); {
		case c.Weigh != nil:
			score.Value, joint = p.joint[joint].Of(indexes(block)), joint+1
		case at >= 0:
			score.Value = int64(size)
			for _, n := range spread[:at+1] {
				score.Value *= int64(n)
			}
		default:
			score.Value = int64(size)
		}
		one.Scores = append(one.Scores, score)
	}
	return one
}

// comparePlacements: fewer nodes first, then the more of everything else.
func comparePlacements(a, b Placement) int {
	if c := cmp.Compare(a.Nodes.Len(), b.Nodes.Len()); c != 0 {
		return c
	}
	for i := len(a.Scores) - 1; i >= 0; i-- {
		if c := cmp.Compare(b.Scores[i].Value, a.Scores[i].Value); c != 0 {
			return c
		}
	}
	return 0
}

func planOf(key string) (p plan) {
	for i := 0; i < len(key); i += 2 {
		p = append(p, int(key[i])|int(key[i+1])<<8)
	}
	return p
}

// nearest is the error of a number of vCPUs without placement.
func (p *problem) nearest(m machine.Machine, o Options) error {
	online := m.OnlineCPUs().Len()
	fits := func(n int) bool {
		if n < 1 || n > online {
			return false
		}
		o.VCPUs = n
		q, err := newProblem(m, o)
		return err == nil && len(q.sizes) > 0
	}
	var near []int
	for n := min(o.VCPUs-1, online); n > 0; n-- {
		if fits(n) {
			near = append(near, n)
			break
		}
	}
	for n := o.VCPUs + 1; n <= online; n++ {
		if fits(n) {
			near = append(near, n)
			break
		}
	}
	switch len(near) {
	case 0:
		return fmt.Errorf("%w of %d vCPUs: the machine has %d CPUs online", ErrNoPlacement, p.opts.VCPUs, online)
	case 1:
		return fmt.Errorf("%w of %d vCPUs uses the machine's %d CPUs evenly: the nearest number that has one is %d", ErrNoPlacement, p.opts.VCPUs, online, near[0])
	}
	return fmt.Errorf("%w of %d vCPUs uses the machine's %d CPUs evenly: the nearest numbers that have one are %d and %d", ErrNoPlacement, p.opts.VCPUs, online, near[0], near[1])
}
