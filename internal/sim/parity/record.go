// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"homenode/internal/unit"
)

// RecordSchema is the version of a record's wire form.
const RecordSchema = 2

// Record is what was measured in the lab: of a model, by the model's counters.
type Record struct {
	Schema       int         `json:"schema"`
	How          string      `json:"how"` // always "modelled (lab)"
	Scenarios    []Measured  `json:"scenarios"`
	Convergences []Converged `json:"convergences"`
}

// Origin says what was used for a measurement, and when.
type Origin struct {
	Commit string `json:"commit"`
	Date   string `json:"date"`
	QEMU   string `json:"qemu"`
	Kernel string `json:"kernel"`
}

// Measured is one scenario.
type Measured struct {
	Scenario string         `json:"scenario"`
	Shape    string         `json:"shape"`
	Origin   Origin         `json:"origin"`
	Loads    []MeasuredLoad `json:"loads"`
}

// MeasuredLoad is one of its processes.
type MeasuredLoad struct {
	Name       string `json:"name"`
	Args       string `json:"args"`
	Interleave string `json:"interleave,omitempty"`
	Threads    int    `json:"threads"`
	Runs       []Run  `json:"runs"` // each in a fresh process
}

// Run is what a load did in some model-seconds. Counts are for user mode, on the CPUs that
// its threads were tied to, per operation.
type Run struct {
	Cycles       float64 `json:"cycles_per_op"`
	Instructions float64 `json:"instructions_per_op"`
	OpsPerSecond float64 `json:"ops_per_model_s"` // all its threads; includes the kernel's time
	// LocalRatio is the local share of DRAM reads; unknown where there were none.
	LocalRatio unit.Opt[float64] `json:"local_ratio"`
	DRAM       float64           `json:"dram_per_op"`
	L2Misses   float64           `json:"l2_misses_per_op"`
	Stall      float64           `json:"stall_cycles_per_op"`
	Transfers  float64           `json:"transfers_per_op"`
	Writebacks float64           `json:"writebacks_per_op"`
	UserShare  float64           `json:"user_share"` // of its CPUs' time
}

// Converged is one case of NUMA balancing.
type Converged struct {
	Case   string            `json:"case"`
	Shape  string            `json:"shape"`
	Args   string            `json:"args"`
	Origin Origin            `json:"origin"`
	Scan   map[string]string `json:"scan"` // /sys/kernel/debug/sched/numa_balancing
	Runs   []ConvergedRun    `json:"runs"`
}

// ConvergedRun is one process. Time counts from its start, or from when balancing was
// switched on, until 90 % of the pages were at home.
type ConvergedRun struct {
	ModelSeconds float64       `json:"model_s"`
	Curve        []CurveSample `json:"curve"`
}

// CurveSample is the share of pages at home at a time.
type CurveSample struct {
	ModelSeconds float64 `json:"model_s"`
	Local        float64 `json:"local"`
}

// DecodeRecord reads a record. An error says what is wrong with it.
func DecodeRecord(data []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("read record: %w", err)
	}
	if r.Schema != RecordSchema {
		return Record{}, fmt.Errorf("read record: schema %d, want %d", r.Schema, RecordSchema)
	}
	return r, nil
}

// Of returns the measurement of a scenario, if it was measured in its present form.
func (r *Record) Of(s Scenario) (Measured, bool) {
	for _, m := range r.Scenarios {
		same := func(a MeasuredLoad, b Load) bool {
			return a.Name == b.Name && a.Args == b.Args && a.Interleave == b.Interleave
		}
		if m.Scenario == s.Name && slices.EqualFunc(m.Loads, s.Loads, same) {
			return m, true
		}
	}
	return Measured{}, false
}

// Case returns the measurement of a case of NUMA balancing in its present form.
func (r *Record) Case(c Convergence) (Converged, bool) {
	for _, m := range r.Convergences {
		if m.Case == c.Name && m.Args == c.Args {
			return m, true
		}
	}
	return Converged{}, false
}

// Median of a figure over the runs of a load, and its spread: (largest − smallest) /
// median. It is unknown without runs.
func (m MeasuredLoad) Median(of func(Run) float64) (median, spread float64, ok bool) {
	if len(m.Runs) == 0 {
		return 0, 0, false
	}
	v := make([]float64, len(m.Runs))
	for i, r := range m.Runs {
		v[i] = of(r)
	}
	median = middle(v)
	if median != 0 {
		spread = (v[len(v)-1] - v[0]) / median
	}
	return median, spread, true
}

// middle sorts v, which has at least one value.
func middle(v []float64) float64 {
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Settle sets the time at which a share of the pages had come home, between the two samples
// around it.
func (r *ConvergedRun) Settle(share float64) error {
	for i := 1; i < len(r.Curve); i++ {
		a, b := r.Curve[i-1], r.Curve[i]
		if b.Local < share {
			continue
		}
		at := (share - a.Local) / (b.Local - a.Local)
		r.ModelSeconds = a.ModelSeconds + at*(b.ModelSeconds-a.ModelSeconds)
		return nil
	}
	return fmt.Errorf("find when %.2f of the pages are at home: they never are", share)
}
