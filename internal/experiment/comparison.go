// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"time"

	"homenode/internal/unit"
)

// Comparison is what came of running one load under several arms. It is what
// build/demo/demo.json holds and what a report shows.
type Comparison struct {
	Schema  int       `json:"schema"` // 1
	Name    string    `json:"name"`   // of the mix
	Machine string    `json:"machine"`
	How     string    `json:"how"` // "modelled (lab)": never shown as if from hardware
	Command string    `json:"command"`
	Commit  string    `json:"commit"`
	Date    time.Time `json:"date"`
	Seconds float64   `json:"seconds"` // it took
	Repeats int       `json:"repeats"`
	Seed    uint64    `json:"seed"`
	Order   []string  `json:"order"` // of the runs, by arm
	Arms    []Arm     `json:"arms"`
	Targets []Target  `json:"targets"`

	WarmupSeconds float64 `json:"warmup_model_s"` // of every run
	// Load is what ran, on what, as a sum: two comparisons with the same one may be
	// shown together. Warm-up and repeats are not in it.
	Load string `json:"load"`
	// Long is what peers came to that were given a longer warm-up, stored before.
	Long *Comparison `json:"long,omitempty"`
}

// Arm is one side of the comparison. Figures are medians over the repeats.
type Arm struct {
	Name             string            `json:"name"`
	Title            string            `json:"title"`
	Applicable       bool              `json:"applicable"`
	Why              string            `json:"why,omitempty"`      // it is not applicable
	LocalAccessRatio unit.Opt[float64] `json:"local_access_ratio"` // of the sensitive services together
	LocalSpread      Summary           `json:"local_access_ratio_spread"`
	Services         []Service         `json:"services"`
	PagesMoved       unit.Opt[float64] `json:"pages_moved"`
	MoverCPUSeconds  unit.Opt[float64] `json:"mover_cpu_s"`      // guest time, warm-up and measurement
	MoverCPUShare    unit.Opt[float64] `json:"mover_cpu_share"`  // of one CPU, while measuring
	Unsteady         int               `json:"unsteady"`         // repeats whose local access ratio still changed when the warm-up ended
	Detail           []string          `json:"detail,omitempty"` // what its mover said, by repeat
}

// Service is one workload in one arm.
type Service struct {
	Name             string            `json:"name"`
	Kind             string            `json:"kind"`
	OpsPerModelS     unit.Opt[float64] `json:"ops_per_model_s"`
	Spread           Summary           `json:"ops_per_model_s_spread"`
	CyclesPerOp      unit.Opt[float64] `json:"cycles_per_op"`
	LocalAccessRatio unit.Opt[float64] `json:"local_access_ratio"`
	CPUs             unit.Opt[float64] `json:"cpus"`
	LatencyP50us     unit.Opt[float64] `json:"latency_p50_us"` // model time; informative
	LatencyP99us     unit.Opt[float64] `json:"latency_p99_us"`
}

// Target is one figure that was promised, and what came of it.
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
