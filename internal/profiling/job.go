// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"homenode/internal/experiment"
	"homenode/internal/model"
	"homenode/internal/placement"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Job is what is measured, and how. A state belongs to one.
type Job struct {
	Machine  string   `json:"machine_type"` // type of machine (MachineType)
	Source   string   `json:"source"`       // Measured or Lab
	Workload string   `json:"workload,omitempty"`
	Command  []string `json:"argv,omitempty"`
	VCPUs    int      `json:"vcpus"`
	Links    string   `json:"links_from"` // where the interconnect's score comes from
	Metric   Metric   `json:"speed_metric"`
	// Warm is left out of each measurement, For is measured.
	Warm    time.Duration `json:"warm_up_ns"`
	For     time.Duration `json:"measure_ns"`
	Repeats int           `json:"repeats"`
	Seed    uint64        `json:"seed"`
	// MostLoss ends a trial: the share by which a workload may be slower while it is bound. 0: any.
	MostLoss float64 `json:"most_loss,omitempty"`
	// Placements are those that are measured.
	Placements []Candidate `json:"placements"`
}

// Candidate is a placement as a model names it.
type Candidate struct {
	Nodes  string `json:"nodes"`
	CPUs   string `json:"cpus"`
	Scores string `json:"scores_text"`
}

// CandidatesOf are those of a list.
func CandidatesOf(l placement.List) (all []Candidate) {
	for _, p := range model.PlacementsOf(l) {
		all = append(all, Candidate(p))
	}
	return all
}

// MachineType tells machines apart that are not alike: a model is of one type.
func MachineType(cpuModel string, nodes, cpus int) string {
	if cpuModel == "" {
		cpuModel = "unknown CPU"
	}
	return fmt.Sprintf("%s, %d %s, %d %s", cpuModel, nodes, render.Plural(nodes, "node"), cpus, render.Plural(cpus, "CPU"))
}

const (
	leastRepeats, mostRepeats = 2, 100
	mostFor                   = 24 * time.Hour
)

// Check refuses what cannot be measured.
func (j Job) Check() error {
	switch {
	case j.Repeats < leastRepeats || j.Repeats > mostRepeats:
		return fmt.Errorf("--repeats %d: want %d to %d: one measurement does not show its noise", j.Repeats, leastRepeats, mostRepeats)
	case j.Warm < 0 || j.Warm > mostFor:
		return fmt.Errorf("--warm-up %v: want 0 to %v", j.Warm, mostFor)
	case !(j.MostLoss >= 0 && j.MostLoss < 1):
		return fmt.Errorf("--most-loss %v: want 0, which is no limit, to below 1", j.MostLoss)
	case j.For <= 0 || j.For > mostFor:
		return fmt.Errorf("--for %v: want above 0, up to %v", j.For, mostFor)
	}
	return j.Metric.Check(j.Workload != "")
}

// Runs are the measurements, in their order: every repeat has each placement once, in an
// order drawn from the seed.
func (j Job) Runs() []experiment.Run {
	return experiment.Order(len(j.Placements), j.Repeats, j.Seed)
}

// Each is how long a measurement takes without moving the workload.
func (j Job) Each() time.Duration { return j.Warm + j.For }

// Same says that a state of the other job may be continued as this one.
func (j Job) Same(o Job) bool {
	return j.Machine == o.Machine && j.Source == o.Source && j.Workload == o.Workload && slices.Equal(j.Command, o.Command) && j.VCPUs == o.VCPUs && j.Links == o.Links &&
		j.Metric == o.Metric && j.Warm == o.Warm && j.For == o.For && j.Repeats == o.Repeats && j.Seed == o.Seed && j.MostLoss == o.MostLoss && slices.Equal(j.Placements, o.Placements)
}

// Sample is one measurement.
type Sample struct {
	Placement int      `json:"placement"` // index
	Repeat    int      `json:"repeat"`
	Speed     float64  `json:"speed_per_s"`
	Took      float64  `json:"took_s"` // moving and warm-up included
	Features  Features `json:"features"`
}

// State is what is done of a job. It is saved after each measurement.
type State struct {
	Schema int `json:"schema"`
	Job    Job `json:"job"`
	// Home are the nodes where the workload's memory was before.
	Home    set.NodeSet `json:"home"`
	Samples []Sample    `json:"samples"`
	// Before is a trial's look at the workload before anything was changed, and Spread how much of
	// its memory was on each node.
	Before *Look              `json:"look_before,omitempty"`
	Spread map[int]unit.Bytes `json:"memory_before,omitempty"`
	// Instance tells a trial's workload from a later one of the same name.
	Instance string `json:"instance,omitempty"`
}

// Look is a measurement of a workload as it was found.
type Look struct {
	Speed    float64  `json:"speed_per_s"`
	Features Features `json:"features"`
	// CPUOfNode is what it uses of a node's CPUs, the fewest of a node; Busy what is used of the
	// host's, Idlest of those of the node that is used least.
	CPUOfNode  *float64 `json:"cpu_of_node_ratio,omitempty"`
	Busy       *float64 `json:"server_busy_ratio,omitempty"`
	Idlest     *float64 `json:"idlest_node_busy_ratio,omitempty"`
	Neighbours int      `json:"neighbours"` // other workloads of the host
}

// StateSchema is the version of State. A newer one is refused.
const StateSchema = 1

// MaxState bounds a file of a state, bytes.
const MaxState = 64 << 20

// DecodeState reads a state.
func DecodeState(data []byte) (State, error) {
	return schema.Decode[State](data, "state of a profile", StateSchema)
}

// Encode writes a state.
func (s State) Encode() ([]byte, error) { return schema.Encode(s, "state of a profile") }

// Validate says what cannot be.
func (s State) Validate() error {
	if s.Schema < 1 {
		return fmt.Errorf("schema %d: want at least 1", s.Schema)
	}
	if err := s.Job.Check(); err != nil {
		return err
	}
	if len(s.Job.Placements) < 2 || len(s.Job.Placements) > 10_000 {
		return fmt.Errorf("%d placements: want 2 to 10000", len(s.Job.Placements))
	}
	if s.Before != nil && !(s.Before.Speed > 0) {
		return fmt.Errorf("look_before: speed %v: want a number above 0", s.Before.Speed)
	}
	for n, b := range s.Spread {
		if n < 0 || b < 0 {
			return fmt.Errorf("memory_before: %d bytes on node %d: neither can be negative", b, n)
		}
	}
	seen := map[[2]int]bool{}
	for i, x := range s.Samples {
		key := [2]int{x.Placement, x.Repeat}
		switch {
		case x.Placement < 0 || x.Placement >= len(s.Job.Placements) || x.Repeat < 0 || x.Repeat >= s.Job.Repeats:
			return fmt.Errorf("samples[%d]: placement %d, repeat %d: there is none", i, x.Placement, x.Repeat)
		case seen[key]:
			return fmt.Errorf("samples[%d]: placement %d, repeat %d is there twice", i, x.Placement, x.Repeat)
		case !(x.Speed > 0) || !(x.Took >= 0):
			return fmt.Errorf("samples[%d]: speed %v, took %v: want numbers above 0", i, x.Speed, x.Took)
		}
		seen[key] = true
	}
	return nil
}

// Open are the runs that are still to be done.
func (s State) Open() (open []experiment.Run) {
	done := map[[2]int]bool{}
	for _, x := range s.Samples {
		done[[2]int{x.Placement, x.Repeat}] = true
	}
	for _, r := range s.Job.Runs() {
		if !done[[2]int{r.Arm, r.Repeat}] {
			open = append(open, r)
		}
	}
	return open
}

// Left estimates the time of the runs that are still to be done: what a run in the same
// placement took; else the mean of all; before the first, what was asked for. Nothing is
// known of a program that ends by itself before it ran.
func (s State) Left() (left time.Duration, known bool) {
	sum, by, count := 0.0, map[int]float64{}, map[int]int{}
	for _, x := range s.Samples {
		sum += x.Took
		by[x.Placement] += x.Took
		count[x.Placement]++
	}
	if len(s.Samples) == 0 && s.Job.Metric.Ends() {
		return 0, false
	}
	seconds := 0.0
	for _, r := range s.Open() {
		switch {
		case count[r.Arm] > 0:
			seconds += by[r.Arm] / float64(count[r.Arm])
		case len(s.Samples) > 0:
			seconds += sum / float64(len(s.Samples))
		default:
			seconds += s.Job.Each().Seconds()
		}
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// ErrConstant: the metric does not depend on the workload.
var ErrConstant = errors.New("the metric is constant")

// enough equal values in different placements are no accident.
const enough = 3

// constant says that a metric measures nothing.
func (s State) constant() error {
	placements := map[int]bool{}
	for _, x := range s.Samples {
		if x.Speed != s.Samples[0].Speed {
			return nil
		}
		placements[x.Placement] = true
	}
	if len(s.Samples) < enough || len(placements) < 2 {
		return nil
	}
	return fmt.Errorf("%w: %s was %v in all %d measurements: name a number that says how fast the workload is", ErrConstant, s.Job.Metric, s.Samples[0].Speed, len(s.Samples))
}
