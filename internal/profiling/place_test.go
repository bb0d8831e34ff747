// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"homenode/internal/migration"
	"homenode/internal/model"
	"homenode/internal/placement"
	"homenode/internal/unit"
)

func predictions(width float64, speeds ...float64) (all []model.Prediction) {
	for _, v := range speeds {
		all = append(all, model.Prediction{Speed: v, Low: v * (1 - width), High: v * (1 + width), Known: true})
	}
	return all
}

// The opteron's placements have 2, 4, 4 and 4 nodes.
func TestDecide(t *testing.T) {
	_, l := opteron(t)
	unknown := predictions(0.05, 1, 1, 1, 1)
	unknown[0].Known = false
	for _, c := range []struct {
		about     string
		predicted []model.Prediction
		measured  map[int]float64
		goal      Goal
		chosen    int
		third     bool
	}{
		{"fewer nodes are as fast", predictions(0.01, 1, 1, 1, 1), nil, Goal{0.9, -1}, 0, false},
		{"two nodes are too slow", predictions(0.01, 0.5, 1, 0.9, 0.8), nil, Goal{0.95, -1}, 1, false},
		{"of as many nodes the fastest", predictions(0.01, 0.5, 0.9, 1, 0.95), nil, Goal{0.8, -1}, 2, false},
		{"fewer nodes may do", predictions(0.1, 0.92, 1, 0.9, 0.8), nil, Goal{0.9, -1}, 1, true},
		{"measured, they do", predictions(0.1, 0.92, 1, 0.9, 0.8), map[int]float64{0: 0.92}, Goal{0.9, -1}, 0, false},
		{"nothing is sure", predictions(0.5, 1, 1, 1, 1), nil, Goal{0.9, -1}, -1, true},
		{"nothing is as fast", predictions(0.01, 1, 1, 1, 1), nil, Goal{1.5, -1}, -1, false},
		{"a share of a named one", predictions(0.01, 0.5, 1, 1, 1), nil, Goal{1, 0}, 1, true},
		{"an unknown interval is not trusted", unknown, nil, Goal{0.9, -1}, 1, true},
	} {
		got := Decide(l, c.predicted, c.measured, c.goal)
		if got.Chosen != c.chosen || got.Third != c.third {
			t.Errorf("%s: chosen %d, third %v: %+v", c.about, got.Chosen, got.Third, got.Outlooks)
		}
	}
}

// The chosen placement meets the goal, and none of fewer nodes does.
func TestDecideTwin(t *testing.T) {
	_, l := opteron(t)
	r := rand.New(rand.NewPCG(23, 1))
	chosen := 0
	for range 20_000 {
		var p []model.Prediction
		best := 0.0
		for range l.Placements {
			v := 0.3 + r.Float64()
			best = max(best, v)
			width := 0.2 * r.Float64()
			p = append(p, model.Prediction{Speed: v, Low: v * (1 - width), High: v * (1 + width), Known: r.IntN(10) > 0})
		}
		g := Goal{0.5 + 0.5*r.Float64(), -1}
		got := Decide(l, p, nil, g)
		want := -1
		for i := range p {
			if p[i].Known && p[i].Low >= g.Share*best && (want < 0 || l.Placements[i].Nodes.Len() < l.Placements[want].Nodes.Len() ||
				l.Placements[i].Nodes.Len() == l.Placements[want].Nodes.Len() && p[i].Speed > p[want].Speed) {
				want = i
			}
		}
		if got.Chosen != want {
			t.Fatalf("%+v, goal %v: %d, want %d", p, g, got.Chosen, want)
		}
		if want >= 0 {
			chosen++
		}
	}
	if chosen < 1000 {
		t.Errorf("only %d choices", chosen)
	}
}

// placed is a workload with a speed in each placement.
type placed struct {
	list    placement.List
	speeds  []float64 // by placement
	later   float64   // once it has settled; 0: as before
	fails   int       // the measurement that fails, from 1
	log     []string
	settled bool
	backs   int
	count   int
}

func (p *placed) index(at placement.Placement) int {
	for i := range p.list.Placements {
		if p.list.Placements[i].Nodes == at.Nodes {
			return i
		}
	}
	return -1
}

var errBroken = errors.New("broken")

func (p *placed) Measure(_ context.Context, at placement.Placement) (Figures, error) {
	p.log = append(p.log, "measure "+at.Nodes.String())
	if p.count++; p.count == p.fails {
		return Figures{}, errBroken
	}
	if p.settled && p.later > 0 {
		return Figures{Speed: p.later}, nil
	}
	return Figures{Speed: p.speeds[p.index(at)]}, nil
}

func (p *placed) Cost(_ context.Context, at placement.Placement) (migration.Estimate, error) {
	p.log = append(p.log, "cost "+at.Nodes.String())
	return migration.Estimate{Bytes: unit.GiB, Seconds: unit.Estimated(5.0, "x")}, nil
}

func (p *placed) Settle(_ context.Context, at placement.Placement) ([]string, error) {
	p.log, p.settled = append(p.log, "settle "+at.Nodes.String()), true
	return []string{"settled"}, nil
}

func (p *placed) Back() ([]string, error) {
	p.log, p.backs = append(p.log, "back"), p.backs+1
	return []string{"back"}, nil
}

// toy is a model that predicts what its leaf says, whatever the probes were.
func toy(l placement.List, width float64, third bool, speeds ...float64) *model.Model {
	forest := func(probes ...int) model.Forest {
		f := model.Forest{Probes: probes, Confidence: 0.9, Trees: []model.Tree{{Feature: []int{-1}, Threshold: []float64{0}, Left: []int{0}, Right: []int{0}, Values: [][]float64{speeds}}}}
		for _, p := range probes[1:] {
			f.Features = append(f.Features, "speed["+string(rune('0'+p))+"]/speed["+string(rune('0'+probes[0]))+"]")
		}
		for range l.Placements {
			f.Interval = append(f.Interval, &width)
		}
		return f
	}
	m := &model.Model{Source: model.Measured, Placements: model.PlacementsOf(l), Forests: []model.Forest{forest(1, 3)}}
	if third {
		m.Forests = append(m.Forests, forest(1, 3, 0))
	}
	return m
}

func TestPlace(t *testing.T) {
	_, l := opteron(t)
	for _, c := range []struct {
		about    string
		model    *model.Model
		w        placed
		dry      bool
		outcome  string
		measured int
		backs    int
		err      error
	}{
		{"two nodes are enough", toy(l, 0.01, true, 0.99, 1, 1, 1), placed{speeds: []float64{99, 100, 101, 102}}, false, Stays, 3, 0, nil},
		{"a third probe decides", toy(l, 0.2, true, 0.95, 1, 1, 1), placed{speeds: []float64{95, 100, 99, 98}}, false, Stays, 4, 0, nil},
		{"no third probe in the model", toy(l, 0.2, false, 0.95, 1, 1, 1), placed{speeds: []float64{95, 100, 99, 98}}, false, Stays, 3, 0, nil},
		{"reality disagrees", toy(l, 0.01, true, 0.99, 1, 1, 1), placed{speeds: []float64{50, 100, 101, 102}}, false, PutBack, 3, 1, nil},
		{"slower once it has settled", toy(l, 0.01, true, 0.5, 1, 1, 1), placed{speeds: []float64{50, 100, 99, 98}, later: 60}, false, PutBack, 3, 1, nil},
		{"dry", toy(l, 0.01, true, 0.99, 1, 1, 1), placed{speeds: []float64{99, 100, 101, 102}}, true, Planned, 0, 0, nil},
		{"the second probe fails", toy(l, 0.01, true, 0.99, 1, 1, 1), placed{speeds: []float64{99, 100, 101, 102}, fails: 2}, false, Failed, 2, 1, errBroken},
		{"the check fails", toy(l, 0.01, true, 0.99, 1, 1, 1), placed{speeds: []float64{99, 100, 101, 102}, fails: 3}, false, Failed, 3, 1, errBroken},
		{"a constant metric", toy(l, 0.01, true, 0.99, 1, 1, 1), placed{speeds: []float64{7, 7, 7, 7}}, false, Failed, 2, 1, ErrConstant},
	} {
		w := c.w
		w.list = l
		shown := 0
		r, err := Place(context.Background(), Order{Workload: "/a", Goal: Goal{0.9, -1}, DryRun: c.dry}, c.model, l, &w, PlaceTools{
			Tell: func(string) {}, Costs: func(all []Cost) {
				if shown = len(all); w.count > 0 {
					t.Errorf("%s: costs were shown after it was moved", c.about)
				}
			},
		})
		if !errors.Is(err, c.err) || r.Outcome != c.outcome || w.count != c.measured || w.backs != c.backs || shown != len(c.model.Forests[len(c.model.Forests)-1].Probes) {
			t.Errorf("%s: %v, %q, %d measured, %d back, %d costs; %v", c.about, err, r.Outcome, w.count, w.backs, shown, w.log)
		}
	}
}

// No placement can be sure to meet the goal: nothing is settled.
func TestPlaceNone(t *testing.T) {
	_, l := opteron(t)
	w := &placed{list: l, speeds: []float64{90, 100, 99, 98}}
	r, err := Place(context.Background(), Order{Workload: "/a", Goal: Goal{2, -1}}, toy(l, 0.01, true, 1, 1, 1, 1), l, w, PlaceTools{Tell: func(string) {}, Costs: func([]Cost) {}})
	if err != nil || r.Outcome != None || w.settled || w.backs != 1 || r.Chosen != 0 {
		t.Errorf("%v, %+v, %v", err, r, w.log)
	}
	if !reflect.DeepEqual(r.Notes, []string{"back"}) {
		t.Errorf("notes %v", r.Notes)
	}
}

func TestGoalCheck(t *testing.T) {
	_, l := opteron(t)
	for g, ok := range map[Goal]bool{{0.9, -1}: true, {1.1, 3}: true, {0, -1}: false, {-1, -1}: false, {0.9, 4}: false, {0.9, -2}: false, {1e9, -1}: false} {
		if err := g.Check(l); (err == nil) != ok {
			t.Errorf("%+v: %v", g, err)
		}
	}
}
