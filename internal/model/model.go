// SPDX-License-Identifier: Apache-2.0

package model

import (
	"errors"
	"fmt"
	"slices"

	"homenode/internal/placement"
	"homenode/internal/schema"
)

const (
	// Schema is the version of the file. A newer one is refused.
	Schema = 1
	kind   = "homenode-placements"
	// Where the rows of a model come from: simulated worlds, real programs on the lab's modelled memory
	// system, or hardware.
	Simulator = "simulator"
	Lab       = "modelled (lab)"
	Measured  = "measured"

	// MaxBytes bounds a file: one of 100 trees has some 2 MiB.
	MaxBytes = 64 << 20
	// Larger numbers are no model of ours.
	maxPlacements, maxForests, maxTrees, maxNodes = 1000, 4, 1000, 1 << 17
)

// Errors that Fits returns are one of these.
var (
	ErrOtherMachine = errors.New("the model is of another machine")
	ErrSimulated    = errors.New("the model was not trained on hardware")
)

// Model is a file of python/homenode_model (export.py).
type Model struct {
	Schema    int    `json:"schema"`
	Kind      string `json:"kind"`
	MadeBy    string `json:"made_by"`
	Source    string `json:"source"` // "simulator": trained on simulated workloads
	Commit    string `json:"commit"`
	Seed      string `json:"seed"`
	Generator string `json:"generator_version"`
	Data      string `json:"data_sha256"`
	Machine   string `json:"machine"` // type of machine
	VCPUs     int    `json:"vcpus"`
	Workloads int    `json:"workloads"` // learned from
	// Error is the mean relative error where a kind of workload was left out; nil: not
	// measured.
	Error *float64 `json:"error"`
	// LeftOut is the kind of workload that was left out, to judge the model on it; "": none.
	LeftOut    string      `json:"left_out,omitempty"`
	Placements []Placement `json:"placements"` // as placement.Important lists them
	Forests    []Forest    `json:"forests"`    // the one with the fewest probes first
}

// Placement identifies an important placement.
type Placement struct {
	Nodes  string `json:"nodes"`
	CPUs   string `json:"cpus"`
	Scores string `json:"scores"`
}

// Forest predicts from these probes.
type Forest struct {
	Probes     []int    `json:"probes"` // indexes of placements; the first is the baseline
	Features   []string `json:"features"`
	Confidence float64  `json:"confidence"`
	// Interval is by placement: with this confidence a speed is within the prediction
	// × (1 ± Interval). nil: there were too few workloads to know.
	Interval []*float64 `json:"interval"`
	// Ratios are measured / predicted speeds of the workloads that gave Interval, ascending, by
	// placement. Other confidences follow from them (At). Older files have none.
	Ratios [][]float64 `json:"ratios,omitempty"`
	Trees  []Tree      `json:"trees"`
}

// Tree has its nodes as columns, the root first. A leaf has feature -1, and its row of
// Values in Left.
type Tree struct {
	Feature   []int       `json:"feature"`
	Threshold []float64   `json:"threshold"`
	Left      []int       `json:"left"`
	Right     []int       `json:"right"`
	Values    [][]float64 `json:"values"`
}

// Decode reads a model, and refuses what it does not know.
func Decode(data []byte) (Model, error) { return schema.Decode[Model](data, "model", Schema) }

// Use is where a model is to be used.
type Use struct {
	Machine string // type of machine
	List    placement.List
	// Simulated allows models that were trained in the simulator or in the lab.
	Simulated bool
}

// Fits says why a model may not be used there.
func (m *Model) Fits(u Use) error {
	switch {
	case m.Machine != u.Machine:
		return fmt.Errorf("%w: of %q, this is %q: train one for it", ErrOtherMachine, m.Machine, u.Machine)
	case m.VCPUs != u.List.VCPUs:
		return fmt.Errorf("%w: of %d vCPUs, the workload has %d: train one for that number", ErrOtherMachine, m.VCPUs, u.List.VCPUs)
	case !slices.Equal(m.Placements, PlacementsOf(u.List)):
		return fmt.Errorf("%w: its %d important placements are not those of this one: train it with the same links", ErrOtherMachine, len(m.Placements))
	case m.Source != Measured && !u.Simulated:
		return fmt.Errorf("%w but on workloads of source %q: allow that explicitly, or train it with measured workloads", ErrSimulated, m.Source)
	}
	return nil
}

// PlacementsOf names the placements of a list as a model does.
func PlacementsOf(l placement.List) (all []Placement) {
	for _, p := range l.Placements {
		all = append(all, Placement{Nodes: p.Nodes.String(), CPUs: p.CPUs.String(), Scores: p.ScoreText()})
	}
	return all
}
