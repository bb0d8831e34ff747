// SPDX-License-Identifier: Apache-2.0

package scenario

// ResultSchema is the version of a result's wire form. Readers refuse a newer one.
const ResultSchema = 1

// Result is the result of a scenario. All of its figures are modelled.
type Result struct {
	Schema   int       `json:"schema"`
	How      string    `json:"how"` // always "modelled"
	Scenario string    `json:"scenario"`
	About    string    `json:"about"`
	Digest   string    `json:"digest"`       // SHA-256 of the scenario's text
	Machine  string    `json:"machine_name"` // its origin
	From     string    `json:"from"`         // source of its figures
	Nodes    int       `json:"node_count"`
	CPUs     int       `json:"cpu_count"`
	PeriodS  float64   `json:"period_s"`
	Seconds  float64   `json:"seconds"` // measured seconds: without the warm-up
	Seeds    []uint64  `json:"seeds"`
	Against  string    `json:"against"`
	Arms     []Outcome `json:"arms"`
	Paper    []Claim   `json:"paper_claims,omitempty"`
}

// Outcome is the outcome of one arm.
type Outcome struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Policy string `json:"policy"`
	Runs   []Run  `json:"runs"` // one per seed, in order
}

// Run is one seed of an arm.
type Run struct {
	Seed      uint64     `json:"seed"`
	Services  []Service  `json:"services"`  // by name
	Workloads []Workload `json:"workloads"` // by ID
	Series    []Sample   `json:"series"`    // at most MaxSamples, evenly over the time
	// Binds to MovedB cover the whole run, warm-up included, as most of it happens there.
	// All else covers the time after it.
	Binds   int     `json:"binds"`
	Unbinds int     `json:"unbinds"`
	Refused int     `json:"refused"` // steps
	MovedB  float64 `json:"moved_bytes"`
	// UnbindRatio is unbound instance-time / all instance-time, for approved workloads
	// (MAO, Fig. 6).
	UnbindRatio float64 `json:"unbind_ratio"`
	LocalRatio  float64 `json:"local_ratio"` // local share of the DRAM reads of all workloads
	CPUSeconds  float64 `json:"cpu_seconds"`
}

// Service is all replicas of a service together.
type Service struct {
	Name       string  `json:"name"`
	Replicas   int     `json:"replicas"`
	Ops        float64 `json:"ops"`
	Asked      float64 `json:"asked"`
	Dropped    float64 `json:"dropped"`
	LatencyS   float64 `json:"latency_s"` // mean; 0 without requests
	P99S       float64 `json:"p99_s"`     // mean over periods and replicas of their estimates
	CPUPerOp   float64 `json:"cpu_s_per_op"`
	LocalRatio float64 `json:"local_ratio"`
	IPC        float64 `json:"ipc"`
	StalledS   float64 `json:"stalled_s"`
}

// Workload is the figures of one workload.
type Workload struct {
	ID         string  `json:"id"`
	Service    string  `json:"service"`
	LocalRatio float64 `json:"local_ratio"`
	LatencyS   float64 `json:"latency_s"`
	CPUPerOp   float64 `json:"cpu_s_per_op"`
	BoundShare float64 `json:"bound_share"` // share of its time
}

// Sample is the means since the sample before.
type Sample struct {
	Hour       float64 `json:"hour"`       // since the start
	Load       float64 `json:"busy_share"` // CPUs in use / all
	LatencyS   float64 `json:"latency_s"`
	LocalRatio float64 `json:"local_ratio"`
	Unbound    float64 `json:"unbound"` // share of approved workloads that are not bound
}

// MaxSamples is the length of a series.
const MaxSamples = 288
