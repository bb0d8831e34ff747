// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"slices"
)

// Validate says what cannot be. A model that passes can be evaluated with any speeds.
func (m Model) Validate() error {
	switch {
	case m.Schema < 1:
		return fmt.Errorf("schema %d: want at least 1", m.Schema)
	case m.Kind != kind:
		return fmt.Errorf("kind %.40q: want %q", m.Kind, kind)
	case m.Source == "" || m.Machine == "":
		return fmt.Errorf("source %.40q, machine %.40q: want both", m.Source, m.Machine)
	case m.VCPUs < 1 || m.Workloads < 1:
		return fmt.Errorf("%d vCPUs, %d workloads: want 1 or more", m.VCPUs, m.Workloads)
	case len(m.Placements) < 2 || len(m.Placements) > maxPlacements:
		return fmt.Errorf("%d placements: want 2 to %d", len(m.Placements), maxPlacements)
	case len(m.Forests) < 1 || len(m.Forests) > maxForests:
		return fmt.Errorf("%d forests: want 1 to %d", len(m.Forests), maxForests)
	case m.Error != nil && !(*m.Error >= 0):
		return fmt.Errorf("error %v: want 0 or more", *m.Error)
	}
	for i := range m.Forests {
		if err := m.Forests[i].validate(len(m.Placements)); err != nil {
			return fmt.Errorf("forests[%d]: %w", i, err)
		}
		if i > 0 && len(m.Forests[i].Probes) <= len(m.Forests[i-1].Probes) {
			return fmt.Errorf("forests[%d] has %d probes: want more than the one before", i, len(m.Forests[i].Probes))
		}
	}
	return nil
}

func (f *Forest) validate(placements int) error {
	if len(f.Probes) < 2 || len(f.Probes) > placements {
		return fmt.Errorf("%d probes: want 2 to %d", len(f.Probes), placements)
	}
	for i, p := range f.Probes {
		if p < 0 || p >= placements || slices.Contains(f.Probes[:i], p) {
			return fmt.Errorf("probe %d: want different placements, 0 to %d", p, placements-1)
		}
	}
	if want := features(f.Probes); !slices.Equal(f.Features, want) {
		return fmt.Errorf("features %.200q: want %q, in this order", f.Features, want)
	}
	if !(f.Confidence > 0 && f.Confidence < 1) {
		return fmt.Errorf("confidence %v: want between 0 and 1", f.Confidence)
	}
	if len(f.Interval) != placements {
		return fmt.Errorf("%d intervals: want one for each of %d placements", len(f.Interval), placements)
	}
	for _, width := range f.Interval {
		if width != nil && !(*width >= 0) {
			return fmt.Errorf("interval %v: want 0 or more", *width)
		}
	}
	if err := f.validateRatios(placements); err != nil {
		return err
	}
	if len(f.Trees) < 1 || len(f.Trees) > maxTrees {
		return fmt.Errorf("%d trees: want 1 to %d", len(f.Trees), maxTrees)
	}
	for i := range f.Trees {
		if err := f.Trees[i].validate(len(f.Features), placements); err != nil {
			return fmt.Errorf("trees[%d]: %w", i, err)
		}
	}
	return nil
}

func (f *Forest) validateRatios(placements int) error {
	if len(f.Ratios) == 0 {
		return nil
	}
	if len(f.Ratios) != placements {
		return fmt.Errorf("%d lists of ratios: want one for each of %d placements", len(f.Ratios), placements)
	}
	for i, list := range f.Ratios {
		if len(list) != len(f.Ratios[0]) {
			return fmt.Errorf("ratios[%d]: %d values: want %d, as in the others", i, len(list), len(f.Ratios[0]))
		}
		for k, v := range list {
			if !(v > 0 && v <= 1e6) || k > 0 && v < list[k-1] {
				return fmt.Errorf("ratios[%d]: %v: want numbers above 0, ascending", i, v)
			}
		}
	}
	return nil
}

// features are the names of what a forest takes, as the trainer orders them.
func features(probes []int) (names []string) {
	for _, p := range probes[1:] {
		names = append(names, fmt.Sprintf("speed[%d]/speed[%d]", p, probes[0]))
	}
	return names
}

// validate also proves that every way through a tree ends: children come after their
// parent.
func (t *Tree) validate(features, placements int) error {
	n := len(t.Feature)
	if n < 1 || n > maxNodes || len(t.Threshold) != n || len(t.Left) != n || len(t.Right) != n {
		return fmt.Errorf("%d features, %d thresholds, %d and %d children: want as many of each, 1 to %d", n, len(t.Threshold), len(t.Left), len(t.Right), maxNodes)
	}
	for i, feature := range t.Feature {
		switch {
		case feature == -1:
			if t.Left[i] < 0 || t.Left[i] >= len(t.Values) {
				return fmt.Errorf("leaf %d: row %d of %d", i, t.Left[i], len(t.Values))
			}
		case feature < 0 || feature >= features:
			return fmt.Errorf("node %d: feature %d of %d", i, feature, features)
		case t.Left[i] <= i || t.Left[i] >= n || t.Right[i] <= i || t.Right[i] >= n:
			return fmt.Errorf("node %d: children %d and %d: want later nodes, up to %d", i, t.Left[i], t.Right[i], n-1)
		case math.IsNaN(t.Threshold[i]) || math.IsInf(t.Threshold[i], 0):
			return fmt.Errorf("node %d: threshold %v", i, t.Threshold[i])
		}
	}
	for i, row := range t.Values {
		if len(row) != placements {
			return fmt.Errorf("values[%d]: %d values: want one for each of %d placements", i, len(row), placements)
		}
		for _, v := range row {
			if !(v >= 0 && v <= 1e6) {
				return fmt.Errorf("values[%d]: %v is no relative speed", i, v)
			}
		}
	}
	return nil
}
