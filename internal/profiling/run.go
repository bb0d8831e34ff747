// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"homenode/internal/placement"
	"homenode/internal/unit"
)

// Figures are what was measured in one placement.
type Figures struct {
	Speed    float64
	Features Features
}

// Subject is a workload that can be measured in a placement.
type Subject interface {
	// Measure puts it there, lets it warm up, and measures it.
	Measure(ctx context.Context, p placement.Placement) (Figures, error)
}

// Tools are what a run needs of the outside.
type Tools struct {
	Save func(State) error // whole or not at all
	Now  func() time.Duration
	Tell func(Progress)
}

// Progress is told before each measurement.
type Progress struct {
	Done, All int
	Next      placement.Placement
	Left      unit.Opt[time.Duration] // by what the runs so far took
}

// ErrUnfinished: the state has what was measured, and the same command continues.
var ErrUnfinished = errors.New("not all is measured")

// Run measures what is still to be done of a state, and saves after each measurement. The
// state that it returns is the last that was saved.
func Run(ctx context.Context, s State, l placement.List, subject Subject, tools Tools) (State, error) {
	all := len(s.Job.Runs())
	if s.Job.MostLoss > 0 && len(s.Samples) > 0 { // it ended there, and was continued
		if err := s.hurt(); err != nil {
			return s, err
		}
	}
	for _, r := range s.Open() {
		p := l.Placements[r.Arm]
		tools.Tell(Progress{Done: len(s.Samples), All: all, Next: p, Left: unit.OptOf(s.Left())})
		began := tools.Now()
		f, err := subject.Measure(ctx, p)
		if err != nil {
			return s, s.unfinished(ctx, p, err)
		}
		next := s
		next.Samples = append(s.Samples[:len(s.Samples):len(s.Samples)], Sample{
			Placement: r.Arm, Repeat: r.Repeat, Speed: f.Speed, Took: (tools.Now() - began).Seconds(), Features: f.Features,
		})
		if err := errors.Join(next.constant(), next.jumped()); err != nil {
			return s, err
		}
		if err := tools.Save(next); err != nil {
			return s, err
		}
		if s = next; s.Job.MostLoss > 0 {
			if err := s.hurt(); err != nil {
				return s, err
			}
		}
	}
	return s, nil
}

// unfinished says how far it came. An interrupt is no failure of the workload.
func (s State) unfinished(ctx context.Context, p placement.Placement, err error) error {
	all := len(s.Job.Runs())
	if ctx.Err() != nil {
		return fmt.Errorf("%w: stopped after %d of %d measurements", ErrUnfinished, len(s.Samples), all)
	}
	return fmt.Errorf("measure %s, after %d of %d measurements: %w", Where(p), len(s.Samples), all, err)
}

// Where is "on nodes 0-1", or "unbound".
func Where(p placement.Placement) string {
	if p.Nodes.IsEmpty() {
		return "unbound"
	}
	return "on nodes " + p.Nodes.String()
}

// Rows are those of a finished state, a placement each. With more than two repeats they are
// the means of every second one.
func (s State) Rows(l placement.List, application, kind, name string) []Row {
	var rows []Row
	for i, p := range l.Placements {
		row := Row{
			Application: application, Kind: kind, Workload: name, Source: s.Job.Source, Placement: int32(i),
			Nodes: p.Nodes.String(), CPUs: p.CPUs.String(), NodeCount: int32(p.Nodes.Len()), Scores: p.ScoreText(),
		}
		var sum [2]float64
		var count [2]int
		for _, x := range s.Samples {
			if x.Placement == i {
				sum[x.Repeat%2] += x.Speed
				count[x.Repeat%2]++
				row.set(x.Features)
			}
		}
		row.Speed, row.SpeedAgain = sum[0]/float64(count[0]), sum[1]/float64(count[1])
		rows = append(rows, row)
	}
	return rows
}
