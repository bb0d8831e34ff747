// SPDX-License-Identifier: Apache-2.0

package placements

import (
	"homenode/internal/sim/catalog"
	"homenode/internal/unit"
)

// Summary counts which placements are the fastest, and how far they are apart.
type Summary struct {
	Schema     int        `json:"schema"` // 1
	How        string     `json:"how"`
	Machine    string     `json:"machine_name"`
	VCPUs      int        `json:"vcpus"`
	Seed       uint64     `json:"seed"`
	Generator  int        `json:"generator_version"`
	Workloads  int        `json:"workload_count"`
	Placements []Standing `json:"placements"`
}

// Standing is one placement beside the others, by speeds without noise.
type Standing struct {
	Nodes   string `json:"nodes"`
	Scores  string `json:"scores_text"`
	Fastest int    `json:"fastest_workloads"` // workloads
	// Speed / the workload's best.
	Mean  float64 `json:"mean_of_best"`
	Least float64 `json:"least_of_best"`
}

// NewSummary is of no workload yet.
func NewSummary(c Config) *Summary {
	return &Summary{
		Schema: 1, How: unit.HowModelled.String(), Machine: c.Name, VCPUs: c.VCPUs, Seed: c.Seed, Generator: catalog.SharersVersion,
		Placements: make([]Standing, len(c.list.Placements)),
	}
}

// Add counts the rows of one workload.
func (s *Summary) Add(rows []Row) {
	best := 0
	for i, r := range rows {
		if *r.SpeedTrue > *rows[best].SpeedTrue {
			best = i
		}
	}
	s.Workloads++
	s.Placements[best].Fastest++
	for i, r := range rows {
		p, part := &s.Placements[i], *r.SpeedTrue / *rows[best].SpeedTrue
		if p.Nodes, p.Scores = r.Nodes, r.Scores; s.Workloads == 1 {
			p.Least = part
		}
		p.Mean += (part - p.Mean) / float64(s.Workloads)
		p.Least = min(p.Least, part)
	}
}
