// SPDX-License-Identifier: Apache-2.0

package gain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/unit"
)

// Prediction is what binding would bring a service.
type Prediction struct {
	Gain      float64 // share of its mean latency that is saved; below 0: it gets slower
	Low, High float64 // with the manifest's confidence it is between them
	Parts     []Part  // what moved Gain away from the mean of all trials, the largest first
	Unknown   []string
	Outside   []string // features that are outside of what the model has seen
}

// Part is what one feature adds.
type Part struct {
	Feature string
	Value   unit.Opt[float64]
	Gain    float64
}

// Predict takes features by name; one that is not there, or not a number, is unknown.
func (m *Model) Predict(features map[string]float64) Prediction {
	x := make([]float32, len(m.Features))
	var p Prediction
	values := make([]unit.Opt[float64], len(x))
	for i, f := range m.Features {
		v, ok := features[f.Name]
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			x[i] = float32(math.NaN())
			p.Unknown = append(p.Unknown, f.Name)
			continue
		}
		x[i], values[i] = float32(v), unit.Some(v)
		if v < f.Low || v > f.High {
			p.Outside = append(p.Outside, f.Name)
		}
	}
	p.Gain = float64(m.booster.predict(x))
	scale := m.scaleOf(x)
	p.Low = p.Gain + float64(m.Interval.Low*scale) // converted: not fused
	p.High = p.Gain + float64(m.Interval.High*scale)
	for i, part := range m.booster.parts(x) {
		p.Parts = append(p.Parts, Part{m.Features[i].Name, values[i], part})
	}
	slices.SortStableFunc(p.Parts, func(a, b Part) int {
		switch d := math.Abs(b.Gain) - math.Abs(a.Gain); {
		case d > 0:
			return 1
		case d < 0:
			return -1
		}
		return 0
	})
	return p
}

func (m *Model) scaleOf(x []float32) float64 {
	if m.scale == nil {
		return 1
	}
	return max(float64(m.scale.predict(x)), m.Manifest.Scale.Floor)
}

// Enough says whether as much is known as in the trials: models are trained on rows without what is of
// the host, too, which is unknown where the use of one of its nodes is. With less they say anything.
func (p Prediction) Enough() bool {
	for _, name := range p.Unknown {
		if name != CPUOfNode && name != Busy && name != Idlest {
			return false
		}
	}
	return true
}

// words of features: what a value means.
var words = map[string]func(v float64) string{
	MBW:       func(v float64) string { return fmt.Sprintf("moves %.1f GB/s", v/1e9) },
	MSR:       func(v float64) string { return fmt.Sprintf("waits for memory in %.0f%% of its cycles", 100*v) },
	NPMR:      func(v float64) string { return fmt.Sprintf("has %.0f%% of its memory outside of files", 100*v) },
	RMBR:      func(v float64) string { return fmt.Sprintf("reads %.0f%% from other nodes", 100*v) },
	CPU:       func(v float64) string { return fmt.Sprintf("uses %.1f CPUs", v) },
	IPC:       func(v float64) string { return fmt.Sprintf("does %.2f instructions a cycle", v) },
	MPKI:      func(v float64) string { return fmt.Sprintf("reads memory %.1f times in 1,000 instructions", v) },
	CPUOfNode: func(v float64) string { return fmt.Sprintf("needs %.0f%% of a node's CPUs", 100*v) },
	Busy:      func(v float64) string { return fmt.Sprintf("is on servers that are %.0f%% busy", 100*v) },
	Idlest:    func(v float64) string { return fmt.Sprintf("finds nodes at least %.0f%% busy", 100*v) },
}

// Reason says in words what speaks for the gain, and what against it.
func (p Prediction) Reason() string {
	var all []string
	for _, part := range p.Parts {
		v, known := part.Value.Get()
		if len(all) == 3 || math.Abs(part.Gain) < 0.002 {
			break
		}
		what := "its " + part.Feature + " is unknown"
		if known {
			what = words[part.Feature](v)
		}
		all = append(all, fmt.Sprintf("%s (%+.1f points)", what, 100*part.Gain))
	}
	if len(all) == 0 {
		return "it is like the mean of all trials"
	}
	return strings.Join(all, ", ")
}
