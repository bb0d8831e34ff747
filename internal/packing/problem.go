// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/placement"
	"homenode/internal/unit"
)

// Container is what is to be packed: Count copies of it.
type Container struct {
	Name  string
	VCPUs int
	// Goal is the speed that it needs, relative to its baseline's.
	Goal  float64
	Count int
	// Speeds are in the order of placement.List.Placements of these vCPUs, each relative to
	// the baseline's. Empty: unknown; then only the policies that ask for no speed place it.
	Speeds []Speed
}

// Speed is a container's in one placement, relative to its baseline.
type Speed struct {
	Speed float64 `json:"speed"`
	// Low and High are the ends of its interval; equal to Speed where it was measured.
	Low  float64     `json:"low"`
	High float64     `json:"high"`
	How  unit.Source `json:"how"`
}

const (
	// MaxContainers bounds the copies of all containers together.
	MaxContainers = 1024
	maxGoal       = 100
)

// Problem is a machine and the containers to pack onto it.
type Problem struct {
	Machine    machine.Machine
	Containers []Container
	// Tolerance is by what share of its goal a container's speed may be lower before the goal
	// counts as missed. New sets DefaultTolerance.
	Tolerance float64

	nodes []int // ids of the nodes with CPUs, ascending
	lists map[int]*places
}

// places are a number of vCPUs' placements and where each can be.
type places struct {
	list  placement.List
	sites []site
}

// site is a placement.Site with its nodes as bits.
type site struct {
	placement.Site
	mask uint64
	size int
}

// DefaultTolerance is when a goal is missed: by more than 5 %.
const DefaultTolerance = 0.05

// New finds the sites of all containers. links: bandwidths between nodes; nil: direct links.
func New(m machine.Machine, links *placement.Links, containers []Container) (*Problem, error) {
	p := &Problem{Machine: m, Containers: containers, Tolerance: DefaultTolerance, lists: map[int]*places{}}
	for _, n := range m.Nodes {
		if !n.CPUs.IsEmpty() {
			p.nodes = append(p.nodes, n.ID)
		}
	}
	copies := 0
	for _, c := range containers {
		if err := p.add(c, links); err != nil {
			return nil, fmt.Errorf("container %.80s: %w", c.Name, err)
		}
		copies += c.Count
	}
	if copies < 1 || copies > MaxContainers {
		return nil, fmt.Errorf("%d containers: want 1 to %d", copies, MaxContainers)
	}
	return p, nil
}

// With is the same problem with other speeds and goals of its containers.
func (p *Problem) With(containers []Container) (*Problem, error) {
	q := *p
	q.Containers = containers
	for _, c := range containers {
		at := p.lists[c.VCPUs]
		if at == nil {
			return nil, fmt.Errorf("container %.80s: %d vCPUs are no container's of the problem", c.Name, c.VCPUs)
		}
		if err := checkSpeeds(c.Speeds, len(at.list.Placements)); err != nil {
			return nil, fmt.Errorf("container %.80s: %w", c.Name, err)
		}
	}
	return &q, nil
}

func (p *Problem) add(c Container, links *placement.Links) error {
	switch {
	case c.Count < 1:
		return fmt.Errorf("count %d: want 1 or more", c.Count)
	case !(c.Goal > 0 && c.Goal <= maxGoal):
		return fmt.Errorf("goal %v: want a speed relative to the baseline's, above 0, such as 0.9", c.Goal)
	}
	at, err := p.placesOf(c.VCPUs, links)
	if err != nil {
		return err
	}
	return checkSpeeds(c.Speeds, len(at.list.Placements))
}

func (p *Problem) placesOf(vcpus int, links *placement.Links) (*places, error) {
	if at := p.lists[vcpus]; at != nil {
		return at, nil
	}
	list, sites, err := placement.Sites(p.Machine, placement.Options{VCPUs: vcpus, Links: links})
	if err != nil {
		return nil, err
	}
	at := &places{list: list}
	for _, s := range sites {
		one := site{Site: s, size: s.Nodes.Len()}
		for i, id := range p.nodes {
			if s.Nodes.Has(id) {
				one.mask |= 1 << i
			}
		}
		at.sites = append(at.sites, one)
	}
	p.lists[vcpus] = at
	return at, nil
}

func checkSpeeds(speeds []Speed, placements int) error {
	if len(speeds) == 0 {
		return nil
	}
	if len(speeds) != placements {
		return fmt.Errorf("%d speeds: want one for each of the %d important placements ('homenode placements' lists them)", len(speeds), placements)
	}
	for i, s := range speeds {
		if !(s.Speed > 0 && s.Low >= 0 && s.Low <= s.Speed && s.High >= s.Speed) || math.IsInf(s.Speed, 1) {
			return fmt.Errorf("the speed in placement %d is %v (%v to %v): it must be a number above 0: measure it again", i+1, s.Speed, s.Low, s.High)
		}
	}
	return nil
}

// List is the important placements of a number of vCPUs that a container has.
func (p *Problem) List(vcpus int) placement.List { return p.lists[vcpus].list }

// Nodes is how many nodes have CPUs.
func (p *Problem) Nodes() int { return len(p.nodes) }

// Meets says that a speed meets a goal: the speed itself is at least the goal, and the low end
// of its interval misses it by no more than the tolerance. So with the interval's confidence
// the goal is not missed.
func (p *Problem) Meets(s Speed, goal float64) bool {
	return s.Speed >= goal && s.Low >= goal*(1-p.Tolerance)
}

// meeting are the sites where a container meets its goal.
func (p *Problem) meeting(c Container) (sites []site) {
	for _, s := range p.lists[c.VCPUs].sites {
		if at, ok := c.speedAt(s); ok && p.Meets(at, c.Goal) {
			sites = append(sites, s)
		}
	}
	return least(sites, c)
}

// least drops sites that have another one's nodes and more: a container that meets its goal
// on fewer nodes leaves the others to the rest. Of sites on the same nodes the fastest stays.
func least(sites []site, c Container) (kept []site) {
	slices.SortStableFunc(sites, func(a, b site) int {
		return cmp.Or(a.size-b.size, cmp.Compare(c.Speeds[b.Placement].Low, c.Speeds[a.Placement].Low))
	})
	for _, s := range sites {
		if !slices.ContainsFunc(kept, func(k site) bool { return k.mask&^s.mask == 0 }) {
			kept = append(kept, s)
		}
	}
	return kept
}

// speedAt is the container's on a site; false: unknown.
func (c Container) speedAt(s site) (Speed, bool) {
	if len(c.Speeds) == 0 || s.Placement < 0 {
		return Speed{}, false
	}
	return c.Speeds[s.Placement], true
}
