// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"math"
	"slices"
	"strings"

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
	// Apart is how far two trials of a replica are apart: the root of the mean square, as a gain.
	Apart *float64 `json:"gain_apart_ratio"`

	services map[string]bool
	square   float64
}

// TrialKind is the rows of one kind of service.
type TrialKind struct {
	Kind  string  `json:"kind"`
	Rows  int     `json:"row_count"`
	Hurt  int     `json:"hurt_count"`
	Alone float64 `json:"gain_alone_ratio"` // mean gains; All is of those that have it
	All   float64 `json:"gain_all_ratio"`
	all   int
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
		at.Alone += (*r.GainLatency - at.Alone) / float64(at.Rows)
		if r.GainLatencyAll != nil {
			at.all++
			at.All += (*r.GainLatencyAll - at.All) / float64(at.all)
		}
		if max(*r.GainLatency, *r.GainLatencyAgain) < -hurtFrom {
			at.Hurt++
			s.Hurt++
		}
		s.square += float64((*r.GainLatency - *r.GainLatencyAgain) * (*r.GainLatency - *r.GainLatencyAgain))
	}
	s.Services = len(s.services)
	if s.Rows > 0 {
		s.Apart = known(math.Sqrt(s.square / float64(s.Rows)))
	}
}
