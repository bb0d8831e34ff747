// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"homenode/internal/migration"
	"homenode/internal/model"
	"homenode/internal/placement"
	"homenode/internal/unit"
)

// Placing is a workload that can be probed and placed.
type Placing interface {
	Subject
	// Cost estimates what moving its memory there takes from where it is now.
	Cost(ctx context.Context, p placement.Placement) (migration.Estimate, error)
	// Settle keeps it there: memory nodes included.
	Settle(ctx context.Context, p placement.Placement) ([]string, error)
	// Back leaves it where it was before.
	Back() ([]string, error)
}

// Order is what 'homenode place' is asked for.
type Order struct {
	Workload string
	Goal     Goal
	DryRun   bool
	How      unit.Source // of what is measured
}

// PlaceSchema is the version of Placed.
const PlaceSchema = 1

// The outcomes of placing.
const (
	Planned = "planned"
	Stays   = "placed"
	PutBack = "put-back" // it was slower than the goal
	None    = "none"     // no placement meets the goal
	Failed  = "failed"   // it is back where it was, or the notes say what is not
)

// Placed is what came of placing.
type Placed struct {
	Schema     int         `json:"schema"`
	Outcome    string      `json:"outcome"`
	Workload   string      `json:"workload"`
	How        unit.Source `json:"how"`          // of what was measured
	Source     string      `json:"model_source"` // where the model's workloads were measured
	Goal       float64     `json:"goal"`
	GoalOf     int         `json:"goal_of"` // number of the placement; 0: the fastest
	Confidence float64     `json:"confidence"`
	Costs      []Cost      `json:"costs"`
	Probes     []Probe     `json:"probes"`
	Outlooks   []Outlook   `json:"outlooks"`
	Target     float64     `json:"target_speed"`  // relative to the first probe
	Chosen     int         `json:"chosen_number"` // number of the placement; 0: none
	// Reached is the speed after the move, relative to the first probe.
	Reached unit.Opt[float64] `json:"reached_speed"`
	Notes   []string          `json:"notes"`
}

// Cost is what moving to a placement takes.
type Cost struct {
	Number int                 `json:"number"`
	Nodes  string              `json:"nodes"`
	Bytes  unit.Bytes          `json:"bytes"`
	Time   unit.Value[float64] `json:"move_s"`
}

// Probe is a placement that was measured.
type Probe struct {
	Number int     `json:"number"`
	Nodes  string  `json:"nodes"`
	Speed  float64 `json:"speed_per_s"`
}

// PlaceTools tell what happens, and show the costs before anything is moved.
type PlaceTools struct {
	Tell  func(text string)
	Costs func([]Cost)
}

// Place probes a workload, predicts, moves it, and looks whether it was right.
//
//  1. What moving to each probe costs, shown before anything is moved.
//  2. Two probes; a third where the model has one and the intervals leave it open.
//  3. No placement meets the goal: back.
//  4. It settles, and is measured again. Slower than the goal: back.
func Place(ctx context.Context, o Order, m *model.Model, l placement.List, w Placing, tools PlaceTools) (Placed, error) {
	r := run{Order: o, model: m, list: l, subject: w, tools: tools, measured: map[int]float64{}}
	r.out = Placed{
		Schema: PlaceSchema, Outcome: Planned, Workload: o.Workload, How: o.How, Source: m.Source, Goal: o.Goal.Share, GoalOf: o.Goal.Of + 1,
		Confidence: m.Forests[0].Confidence, Costs: []Cost{}, Probes: []Probe{}, Outlooks: []Outlook{}, Notes: []string{},
	}
	if err := r.costs(ctx, m.Forests[len(m.Forests)-1].Probes); err != nil { // 1
		return Placed{}, err
	}
	if o.DryRun {
		return r.out, nil
	}
	err := r.place(ctx)
	if err != nil {
		r.out.Outcome = Failed
	}
	if r.out.Outcome != Stays {
		notes, bad := w.Back()
		r.out.Notes = append(r.out.Notes, notes...)
		err = errors.Join(err, bad)
	}
	return r.out, err
}

type run struct {
	Order
	model    *model.Model
	list     placement.List
	subject  Placing
	tools    PlaceTools
	measured map[int]float64 // speeds by placement
	out      Placed
}

func (r *run) costs(ctx context.Context, placements []int) error {
	for _, i := range placements {
		e, err := r.subject.Cost(ctx, r.list.Placements[i])
		if err != nil {
			return err
		}
		r.out.Costs = append(r.out.Costs, Cost{Number: i + 1, Nodes: r.list.Placements[i].Nodes.String(), Bytes: e.Bytes, Time: e.Seconds})
	}
	r.tools.Costs(r.out.Costs)
	return nil
}

func (r *run) place(ctx context.Context) error {
	c, err := r.probe(ctx, &r.model.Forests[0]) // 2
	if err == nil && c.Third && len(r.model.Forests) > 1 {
		r.tools.Tell("fewer nodes may do: a third probe tells")
		c, err = r.probe(ctx, &r.model.Forests[1])
	}
	if err != nil {
		return err
	}
	r.out.Outlooks, r.out.Target, r.out.Chosen = c.Outlooks, c.Target, c.Chosen+1
	if c.Chosen < 0 { // 3
		r.out.Outcome = None
		return nil
	}
	p := r.list.Placements[c.Chosen] // 4
	r.tools.Tell(fmt.Sprintf("placing it on nodes %s", p.Nodes))
	notes, err := r.subject.Settle(ctx, p)
	r.out.Notes = append(r.out.Notes, notes...)
	if err != nil {
		return err
	}
	f, err := r.subject.Measure(ctx, p)
	if err != nil {
		return fmt.Errorf("measure it after the move: %w", err)
	}
	reached := f.Speed / r.measured[r.model.Forests[0].Probes[0]]
	r.out.Reached = unit.Some(reached)
	if r.out.Outcome = Stays; reached < c.Target {
		r.out.Outcome = PutBack
	}
	return nil
}

// probe measures a forest's probes, except those that were measured already, and decides.
func (r *run) probe(ctx context.Context, f *model.Forest) (Choice, error) {
	for _, i := range f.Probes {
		if _, done := r.measured[i]; done {
			continue
		}
		p := r.list.Placements[i]
		r.tools.Tell(fmt.Sprintf("probing it on nodes %s", p.Nodes))
		figures, err := r.subject.Measure(ctx, p)
		if err != nil {
			return Choice{}, fmt.Errorf("probe it on nodes %s: %w", p.Nodes, err)
		}
		r.measured[i] = figures.Speed
		r.out.Probes = append(r.out.Probes, Probe{Number: i + 1, Nodes: p.Nodes.String(), Speed: figures.Speed})
	}
	if err := r.constant(); err != nil {
		return Choice{}, err
	}
	var speeds []float64
	for _, i := range f.Probes {
		speeds = append(speeds, r.measured[i])
	}
	predicted, err := f.Predict(speeds)
	if err != nil {
		return Choice{}, err
	}
	relative := map[int]float64{}
	for i, v := range r.measured {
		relative[i] = v / speeds[0]
	}
	return Decide(r.list, predicted, relative, r.Goal), nil
}

// constant: two measurements of a real workload are never equal to the last bit.
func (r *run) constant() error {
	all := slices.Collect(maps.Values(r.measured))
	if len(all) > 1 && slices.Min(all) == slices.Max(all) {
		return fmt.Errorf("%w: it was %v in each of %d placements: name a number that says how fast the workload is", ErrConstant, all[0], len(all))
	}
	return nil
}
