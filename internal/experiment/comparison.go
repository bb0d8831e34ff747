// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	"homenode/internal/unit"
)

// Comparison is the result of running one load under several arms. It is the
// content of build/demo/demo.json, and what a report shows.
type Comparison struct {
	Schema  int       `json:"schema"` // 1
	Name    string    `json:"name"`   // name of the mix
	Machine string    `json:"machine_name"`
	How     string    `json:"how"` // "modelled (lab)": never shown as if from hardware
	Command string    `json:"command"`
	Commit  string    `json:"commit"`
	Date    time.Time `json:"date"`
	Seconds float64   `json:"seconds"` // duration of the comparison
	Repeats int       `json:"repeats"`
	Seed    uint64    `json:"seed"`
	Order   []string  `json:"run_order"` // order of the runs, by arm
	Arms    []Arm     `json:"arms"`
	Targets []Target  `json:"targets"`

	WarmupSeconds float64 `json:"warmup_model_s"` // warm-up of every run
	// Load is a checksum of what ran, and on which machine: two comparisons with
	// the same one may be shown together. It does not cover warm-up and repeats.
	Load string `json:"load_text"`
	// Long is the stored result of peers with a longer warm-up.
	Long *Comparison `json:"long,omitempty"`
}

// Arm is one side of the comparison. Figures are medians of the repeats.
type Arm struct {
	Name             string            `json:"name"`
	Title            string            `json:"title"`
	Applicable       bool              `json:"applicable"`
	Why              string            `json:"why,omitempty"`      // why it is not applicable
	LocalAccessRatio unit.Opt[float64] `json:"local_access_ratio"` // of the sensitive services together
	LocalSpread      Summary           `json:"local_access_ratio_spread"`
	Services         []Service         `json:"services"`
	PagesMoved       unit.Opt[float64] `json:"pages_moved"`
	MoverCPUSeconds  unit.Opt[float64] `json:"mover_cpu_s"`       // guest time, warm-up and measurement
	MoverCPUShare    unit.Opt[float64] `json:"mover_cpu_share"`   // of one CPU, while measuring
	Unsteady         int               `json:"unsteady"`          // repeats whose local access ratio still changed when the warm-up ended
	Detail           []string          `json:"details,omitempty"` // messages of its mover, by repeat
}

// Service is one workload in one arm.
type Service struct {
	Name             string            `json:"name"`
	Kind             string            `json:"kind"`
	OpsPerModelS     unit.Opt[float64] `json:"ops_per_model_s"`
	Spread           Summary           `json:"ops_per_model_s_spread"`
	CyclesPerOp      unit.Opt[float64] `json:"cycles_per_op"`
	LocalAccessRatio unit.Opt[float64] `json:"local_access_ratio"`
	CPUs             unit.Opt[float64] `json:"busy_cpus"`
	LatencyP50us     unit.Opt[float64] `json:"latency_p50_us"` // model time; informative
	LatencyP99us     unit.Opt[float64] `json:"latency_p99_us"`
}

// Target is one promised figure, and the result.
type Target struct {
	Name  string            `json:"name"`
	Want  string            `json:"want"` // in words
	Got   unit.Opt[float64] `json:"got"`
	Limit float64           `json:"limit"`
	Met   bool              `json:"met"`
	Note  string            `json:"note,omitempty"`
}

// Arm returns the arm of that name.
func (c Comparison) Arm(name string) (Arm, bool) {
	for _, a := range c.Arms {
		if a.Name == name {
			return a, true
		}
	}
	return Arm{}, false
}

// Service returns the workload of that name.
func (a Arm) Service(name string) (Service, bool) {
	for _, s := range a.Services {
		if s.Name == name {
			return s, true
		}
	}
	return Service{}, false
}
