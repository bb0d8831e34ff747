// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"homenode/internal/packing"
	"homenode/internal/sim/catalog"
	"homenode/internal/unit"
)

// PackResult is what came of the trials.
type PackResult struct {
	Schema       int        `json:"schema"` // 1
	How          string     `json:"how"`
	Machine      string     `json:"machine_name"`
	VCPUs        int        `json:"vcpus"`
	Seed         uint64     `json:"seed"`
	Generator    int        `json:"generator_version"`
	Applications int        `json:"applications"`
	Trials       int        `json:"trials"`
	Confidence   float64    `json:"confidence"` // of each bound of a prediction
	Tolerance    float64    `json:"tolerance"`  // by what share a goal is missed before it counts
	Third        float64    `json:"third_probe_ratio"`
	Policies     []PackLine `json:"policies"`
}

// PackLine is one policy over all trials. A goal is missed where a container is slower than it
// by more than the tolerance.
type PackLine struct {
	Policy string `json:"policy"`
	About  string `json:"about"`
	Wanted int    `json:"wanted"` // containers
	Packed int    `json:"packed"`
	Met    int    `json:"goals_met"` // containers that do not miss their goal
	// Missed is the share of trials in which a container misses its goal.
	Missed float64 `json:"trials_missed_ratio"`
	Worst  float64 `json:"worst_miss_ratio"` // the largest share by which a goal is missed
	Nodes  float64 `json:"mean_nodes"`       // in use
	Probes float64 `json:"mean_probes"`      // placements that were measured, a container
	// OfOptimum is Met / the optimum's containers, by true speeds alone.
	OfOptimum float64 `json:"met_of_optimum_ratio"`

	missed, nodes, probes int
}

func newPackResult(c PackConfig) *PackResult {
	r := &PackResult{
		Schema: 1, How: unit.HowModelled.String(), Machine: c.Name, VCPUs: c.VCPUs, Seed: c.Seed, Generator: catalog.SharersVersion,
		Applications: c.Applications, Confidence: c.Confidence, Tolerance: packing.DefaultTolerance,
	}
	for _, p := range packers {
		r.Policies = append(r.Policies, PackLine{Policy: p.name, About: p.about})
	}
	return r
}

func (r *PackResult) add(arms []outcome) {
	r.Trials++
	r.Third += (float64(arms[0].third)/float64(arms[0].wanted) - r.Third) / float64(r.Trials)
	for i, o := range arms {
		l := &r.Policies[i]
		l.Wanted, l.Packed, l.nodes, l.probes = l.Wanted+o.wanted, l.Packed+o.placed, l.nodes+o.nodes, l.probes+o.probes
		missed := 0
		for _, short := range o.short {
			l.Worst = max(l.Worst, short)
			if short > r.Tolerance {
				missed++
			}
		}
		l.Met += o.placed - missed
		if missed > 0 {
			l.missed++
		}
	}
}

func (r *PackResult) done() PackResult {
	best := 0
	for _, l := range r.Policies {
		if l.Policy == optimum {
			best = l.Packed
		}
	}
	for i := range r.Policies {
		l := &r.Policies[i]
		l.Missed, l.Nodes = float64(l.missed)/float64(max(1, r.Trials)), float64(l.nodes)/float64(max(1, r.Trials))
		l.Probes = float64(l.probes) / float64(max(1, l.Wanted))
		if best > 0 {
			l.OfOptimum = float64(l.Met) / float64(best)
		}
	}
	return *r
}
