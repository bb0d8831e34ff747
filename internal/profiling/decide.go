// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"fmt"

	"homenode/internal/model"
	"homenode/internal/placement"
)

// Verdict is whether a placement meets the goal.
type Verdict string

// The verdicts, at the model's confidence.
const (
	Meets  Verdict = "meets"
	Misses Verdict = "misses"
	Unsure Verdict = "unsure" // the interval straddles the target, or is not known
)

// Outlook is how fast a workload is expected to be in one placement. Speeds are relative to
// the first probe.
type Outlook struct {
	Number   int     `json:"number"` // as 'homenode placements' numbers it
	Nodes    string  `json:"nodes"`
	Speed    float64 `json:"relative_speed"`
	Low      float64 `json:"low"` // with the model's confidence between Low and High
	High     float64 `json:"high"`
	Bounded  bool    `json:"bounded"` // false: the model does not know how far off it is
	Measured bool    `json:"probed"`
	Verdict  Verdict `json:"meets_goal"`
}

// Choice is what follows from the outlooks.
type Choice struct {
	Target   float64 // speed relative to the first probe
	Outlooks []Outlook
	Chosen   int // index; -1: none meets the goal
	// Third: a placement of fewer nodes than the chosen one may meet the goal, and a further
	// probe may tell.
	Third bool
}

// Goal is the share of a placement's speed that is asked for.
type Goal struct {
	Share float64
	Of    int // index of the placement; -1: the fastest one
}

// Check refuses what is no goal.
func (g Goal) Check(l placement.List) error {
	switch {
	case !(g.Share > 0 && g.Share <= 100):
		return fmt.Errorf("--goal %v: want a share above 0, such as 0.9", g.Share)
	case g.Of < -1 || g.Of >= len(l.Placements):
		return fmt.Errorf("--goal-of %d: want the number of a placement, 1 to %d", g.Of+1, len(l.Placements))
	}
	return nil
}

// Decide chooses the fewest nodes that meet the goal.
//
//  1. What was measured replaces what was predicted: no interval.
//  2. The target is the goal's share of the named placement's speed, or of the fastest
//     one's, by the single best figures.
//  3. A placement meets the goal if all of its interval does.
//  4. Of those that do: the fewest nodes, and then the fastest. Placements come with the
//     fewest nodes first.
//  5. A third probe may pay where one of fewer nodes straddles the target; without a chosen
//     one, where any does.
func Decide(l placement.List, predicted []model.Prediction, measured map[int]float64, g Goal) Choice {
	c := Choice{Chosen: -1}
	for i, p := range l.Placements {
		o := Outlook{Number: i + 1, Nodes: p.Nodes.String(), Speed: predicted[i].Speed, Low: predicted[i].Low, High: predicted[i].High, Bounded: predicted[i].Known}
		if v, ok := measured[i]; ok { // 1
			o.Speed, o.Low, o.High, o.Bounded, o.Measured = v, v, v, true, true
		}
		c.Outlooks = append(c.Outlooks, o)
		if g.Of == i || g.Of < 0 && o.Speed > c.Target { // 2
			c.Target = o.Speed
		}
	}
	c.Target *= g.Share
	for i := range c.Outlooks {
		c.Outlooks[i].judge(c.Target)
	}
	c.choose(l)
	return c
}

// judge is number 3.
func (o *Outlook) judge(target float64) {
	switch {
	case !o.Bounded:
		o.Verdict = Unsure
	case o.Low >= target:
		o.Verdict = Meets
	case o.High < target:
		o.Verdict = Misses
	default:
		o.Verdict = Unsure
	}
}

// choose is numbers 4 and 5.
func (c *Choice) choose(l placement.List) {
	nodes := func(i int) int { return l.Placements[i].Nodes.Len() }
	for i, o := range c.Outlooks {
		if o.Verdict != Meets {
			continue
		}
		if c.Chosen < 0 || nodes(i) < nodes(c.Chosen) || nodes(i) == nodes(c.Chosen) && o.Speed > c.Outlooks[c.Chosen].Speed {
			c.Chosen = i
		}
	}
	for i, o := range c.Outlooks {
		if o.Verdict == Unsure && (c.Chosen < 0 || nodes(i) < nodes(c.Chosen)) {
			c.Third = true
		}
	}
}
