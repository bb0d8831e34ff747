// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// Site is a set of nodes that a workload can be spread over evenly, in one way.
type Site struct {
	Placement int // index in List.Placements; -1: it carries out none of them
	Nodes     set.NodeSet
	CPUs      set.CPUSet
	Scores    []Score // the site's own, in the order of List.Concerns
}

// MaxSiteNodes bounds the nodes of a machine whose sites are listed: there are 2^nodes sets.
const MaxSiteNodes = 16

// ErrTooLarge: there are too many sets of nodes to list.
var ErrTooLarge = errors.New("too many sets of nodes")

// Sites are all sets of nodes that a workload can be spread over, the fewest nodes first, with
// the important placements that each carries out:
//
//  1. Both use as many of each counted resource.
//  2. The site's joint scores are at least the placement's: a concern that cannot help when it
//     is lower is no worse when it is higher (Funston et al. §3).
//
// A site that carries out none has a lower joint score than all of them: nothing is known of
// a workload's speed there.
func Sites(m machine.Machine, o Options) (List, []Site, error) {
	list, err := Important(m, o)
	if err != nil {
		return List{}, nil, err
	}
	p, err := newProblem(m, o)
	if err != nil {
		return List{}, nil, err
	}
	if p.n > MaxSiteNodes {
		return List{}, nil, fmt.Errorf("%w: %d nodes have CPUs, and up to %d can be packed", ErrTooLarge, p.n, MaxSiteNodes)
	}
	k := &packer{input: &p.input}
	var sites []Site
	for _, size := range p.sizes {
		for block := range uint64(1) << p.n {
			if len(indexes(block)) == size {
				sites = append(sites, p.sitesOf(k, block, size, list)...)
			}
		}
	}
	return list, sites, nil
}

func (p *problem) sitesOf(k *packer, block uint64, size int, list List) (sites []Site) {
	for _, key := range k.plansOf(block, size) {
		here, none := p.place(block, size, planOf(key)), true
		site := Site{Placement: -1, Nodes: here.Nodes, CPUs: here.CPUs, Scores: here.Scores}
		for i, one := range list.Placements {
			if p.carriesOut(here, one) {
				site.Placement, none = i, false
				sites = append(sites, site)
			}
		}
		if none {
			sites = append(sites, site)
		}
	}
	return sites
}

// carriesOut is numbers 1 and 2.
func (p *problem) carriesOut(here, one Placement) bool {
	return !slices.ContainsFunc(p.list.Concerns, func(c Concern) bool {
		a, b := here.score(c.Name), one.score(c.Name)
		return c.Weigh == nil && a != b || c.Weigh != nil && a < b
	})
}

func (p Placement) score(concern string) int64 {
	i := slices.IndexFunc(p.Scores, func(s Score) bool { return s.Concern == concern })
	return p.Scores[i].Value
}
