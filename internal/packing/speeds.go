// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"fmt"
	"math"

	"homenode/internal/model"
	"homenode/internal/unit"
)

// DefaultConfidence is that of each bound of a prediction by itself. The more, the fewer goals
// are missed and the fewer containers are packed.
const DefaultConfidence = 0.95

// Predicted are speeds from a model and the speeds of its probes, in any unit and in the order
// of model.Forest.Probes. A probed placement's speed is the measured one. The others are
// estimated where the model was trained on hardware, else modelled.
func Predicted(m *model.Model, probes []float64, confidence float64) ([]Speed, error) {
	f, err := forestOf(m, len(probes))
	if err != nil {
		return nil, err
	}
	all, err := f.Predict(probes)
	if err == nil {
		all, err = f.At(all, confidence)
	}
	if err != nil {
		return nil, err
	}
	how := unit.HowModelled
	if m.Source == model.Measured {
		how = unit.HowEstimated
	}
	speeds := make([]Speed, len(all))
	for i, p := range all {
		if !p.Known {
			return nil, fmt.Errorf("confidence %v is more than the model knows: give at most %.3g, or train it with more workloads", confidence, math.Floor(1000*f.MostConfidence())/1000)
		}
		speeds[i] = Speed{p.Speed, p.Low, p.High, how}
	}
	for k, at := range f.Probes {
		v := probes[k] / probes[0]
		speeds[at] = Speed{v, v, v, unit.HowMeasured}
	}
	return speeds, nil
}

func forestOf(m *model.Model, probes int) (*model.Forest, error) {
	for i := range m.Forests {
		if len(m.Forests[i].Probes) == probes {
			return &m.Forests[i], nil
		}
	}
	text := ""
	for i := range m.Forests {
		if i > 0 {
			text += " or "
		}
		text += fmt.Sprint(len(m.Forests[i].Probes))
	}
	return nil, fmt.Errorf("%d speeds of probes: the model takes %s", probes, text)
}

// Measured are speeds that were measured in every placement, in any unit; baseline is the
// index of the placement that goals are relative to.
func Measured(speeds []float64, baseline int) ([]Speed, error) {
	if baseline < 0 || baseline >= len(speeds) {
		return nil, fmt.Errorf("baseline %d: want a placement, 1 to %d", baseline+1, len(speeds))
	}
	all := make([]Speed, len(speeds))
	for i, s := range speeds {
		if !(s > 0) || math.IsInf(s, 1) {
			return nil, fmt.Errorf("the speed in placement %d is %v: it must be a number above 0: measure it again", i+1, s)
		}
		v := s / speeds[baseline]
		all[i] = Speed{v, v, v, unit.HowMeasured}
	}
	return all, nil
}

// Undecided is the first placement on fewer nodes than the fewest that meet the container's
// goal that may meet it too, by its interval: a run there would tell. false: there is none.
func (p *Problem) Undecided(c Container) (placement int, ok bool) {
	list := p.List(c.VCPUs).Placements
	fewest := math.MaxInt
	for i, s := range c.Speeds {
		if p.Meets(s, c.Goal) {
			fewest = min(fewest, list[i].Nodes.Len())
		}
	}
	for i, s := range c.Speeds {
		if list[i].Nodes.Len() < fewest && s.High >= c.Goal && !p.Meets(s, c.Goal) {
			return i, true
		}
	}
	return 0, false
}
