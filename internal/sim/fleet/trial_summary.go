// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"slices"
	"strings"

	"homenode/internal/experiment"
	"homenode/internal/model/gain"
)

// TrialSummary is what trials came to.
type TrialSummary struct {
	Schema   int         `json:"schema"`
	Machine  string      `json:"machine_name"`
	Seed     uint64      `json:"seed"`
	Fleets   int         `json:"fleet_count"`
	Servers  int         `json:"server_count"` // of a fleet
	Rows     int         `json:"row_count"`
	Services int         `json:"service_count"`
	Hurt     int         `json:"hurt_count"` // replicas whose latency rose by more than hurtFrom in both trials
	Kinds    []TrialKind `json:"kinds"`
	// Apart is how far two trials of a replica are apart, as a gain: half of them are closer.
	Apart *float64 `json:"gain_apart_median_ratio"`

	services map[string]bool
	apart    []float64
}

// TrialKind is the rows of one kind of service.
type TrialKind struct {
	Kind string `json:"kind"`
	Rows int    `json:"row_count"`
	Hurt int    `json:"hurt_count"`
	// Medians: where a binding overloads a node, a latency rises by orders of magnitude, and so does a
	// mean. All is of those that have it.
	Alone *float64 `json:"gain_alone_median_ratio"`
	All   *float64 `json:"gain_all_median_ratio"`

	alone, all []float64
}

const hurtFrom = 0.02

// Add adds a server's rows.
func (s *TrialSummary) Add(rows []gain.Row) {
	if s.services == nil {
		s.services = map[string]bool{}
	}
	for i := range rows {
		r := &rows[i]
		s.Rows++
		s.services[r.Service] = true
		k, ok := slices.BinarySearchFunc(s.Kinds, r.Kind, func(k TrialKind, name string) int { return strings.Compare(k.Kind, name) })
		if !ok {
			s.Kinds = slices.Insert(s.Kinds, k, TrialKind{Kind: r.Kind})
		}
		at := &s.Kinds[k]
		at.Rows++
		at.alone = append(at.alone, *r.GainLatency)
		if r.GainLatencyAll != nil {
			at.all = append(at.all, *r.GainLatencyAll)
		}
		if max(*r.GainLatency, *r.GainLatencyAgain) < -hurtFrom {
			at.Hurt++
			s.Hurt++
		}
		s.apart = append(s.apart, math.Abs(*r.GainLatency-*r.GainLatencyAgain))
	}
	s.Services = len(s.services)
}

// Settle computes the medians of what was added.
func (s *TrialSummary) Settle() {
	median := func(values []float64) *float64 {
		if m, ok := experiment.Median(values); ok {
			return known(m)
		}
		return nil
	}
	s.Apart = median(s.apart)
	for i := range s.Kinds {
		s.Kinds[i].Alone, s.Kinds[i].All = median(s.Kinds[i].alone), median(s.Kinds[i].all)
	}
}
