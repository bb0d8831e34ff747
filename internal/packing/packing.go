// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"homenode/internal/set"
)

// Names of the policies.
const (
	NameML              = "ml"
	NameConservative    = "conservative"
	NameAggressive      = "aggressive"
	NameSmartAggressive = "smart-aggressive"
	NameExact           = "exact"
)

// Placed is one container and where it is.
type Placed struct {
	Container int // index in Problem.Containers
	Copy      int // 1 …
	// Nodes and CPUs are what it is pinned to. Unpinned: those of the whole machine.
	Nodes     set.NodeSet
	CPUs      set.CPUSet
	Pinned    bool
	Placement int   // index in the list of its vCPUs; -1: none that is known
	Speed     Speed // expected; Known says whether there is one
	Known     bool
}

// Packing is what a policy makes of a problem.
type Packing struct {
	Policy string
	Placed []Placed
	Left   []int // copies that are not placed, by container
	// Partial: the exact solver stopped before it had tried everything.
	Partial bool
}

// Verdict says whether a container's expected speed meets its goal; false, false: its speed is
// unknown.
func (p *Problem) Verdict(one Placed) (meets, known bool) {
	return one.Known && p.Meets(one.Speed, p.Containers[one.Container].Goal), one.Known
}

// UsedNodes is how many nodes are taken.
func (k Packing) UsedNodes() int {
	var all set.NodeSet
	for _, one := range k.Placed {
		all = all.Union(one.Nodes)
	}
	return all.Len()
}

// builder puts containers onto sites, one by one.
type builder struct {
	p    *Problem
	free uint64 // nodes
	out  Packing
}

func (p *Problem) start(policy string) *builder {
	b := &builder{p: p, free: p.allNodes(), out: Packing{Policy: policy, Left: make([]int, len(p.Containers))}}
	for i, c := range p.Containers {
		b.out.Left[i] = c.Count
	}
	return b
}

func (p *Problem) allNodes() uint64 { return uint64(1)<<len(p.nodes) - 1 }

// put pins a copy of a container to a site.
func (b *builder) put(container int, s site) {
	c := b.p.Containers[container]
	one := Placed{Container: container, Nodes: s.Nodes, CPUs: s.CPUs, Pinned: true, Placement: s.Placement}
	one.Speed, one.Known = c.speedAt(s)
	b.free &^= s.mask
	b.add(one)
}

// putUnpinned leaves a copy to Linux, on all CPUs.
func (b *builder) putUnpinned(container int) {
	m := b.p.Machine
	b.add(Placed{Container: container, Nodes: m.NodesWithCPUs(), CPUs: m.OnlineCPUs(), Placement: -1})
}

func (b *builder) add(one Placed) {
	one.Copy = b.p.Containers[one.Container].Count - b.out.Left[one.Container] + 1
	b.out.Left[one.Container]--
	b.out.Placed = append(b.out.Placed, one)
}
