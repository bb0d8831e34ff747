// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"errors"
	"testing"
)

// Every placement's example is one of its sites, every site's scores are at least its
// placement's where more is not worse, and equal elsewhere.
func TestSites(t *testing.T) {
	for _, vcpus := range []int{8, 16, 24, 32} {
		l, sites, err := Sites(opteron(t), Options{VCPUs: vcpus})
		if err != nil {
			t.Fatal(err)
		}
		examples, none := make([]bool, len(l.Placements)), 0
		for _, s := range sites {
			if s.Placement < 0 {
				none++
				continue
			}
			p := l.Placements[s.Placement]
			if s.Nodes.Equal(p.Nodes) && s.CPUs.Equal(p.CPUs) {
				examples[s.Placement] = true
			}
			for i, c := range l.Concerns {
				if a, b := s.Scores[i].Value, p.Scores[i].Value; a < b || c.Weigh == nil && a != b {
					t.Errorf("%d vCPUs on %s: %s is %d, the placement's %d", vcpus, s.Nodes, c.Name, a, b)
				}
			}
			if s.CPUs.Len() != vcpus {
				t.Errorf("%d CPUs for %d vCPUs", s.CPUs.Len(), vcpus)
			}
		}
		for i, ok := range examples {
			if !ok {
				t.Errorf("%d vCPUs: placement %d is no site of its own", vcpus, i)
			}
		}
		t.Logf("%d vCPUs: %d sites, %d of no placement", vcpus, len(sites), none)
	}
}

func TestSitesRefused(t *testing.T) {
	if _, _, err := Sites(opteron(t), Options{VCPUs: 7000}); !errors.Is(err, ErrNoPlacement) {
		t.Error(err)
	}
	if _, _, err := Sites(fake(apart(17, flat), equally(17, 2), 1), Options{VCPUs: 2}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}
