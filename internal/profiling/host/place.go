// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/model"
	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// Place puts a workload on the fewest nodes that meet a goal, by a model. The result is to
// be shown unless it has no outcome.
func Place(ctx context.Context, o Options, stderr io.Writer) (r profiling.Placed, err error) {
	m, err := source.Model(o.Model)
	if err != nil {
		return r, exit.BadInput(err)
	}
	o.VCPUs, o.Repeats = m.VCPUs, 2 // of a job; a placing measures once
	if err := o.check(); err != nil {
		return r, exit.BadInput(err)
	}
	_, l, job, err := o.place()
	if m.Machine != o.Machine { // the reason for what is wrong with the placements, too
		err = exit.BadInput(fmt.Errorf("%s: %w", o.Model, m.Fits(model.Use{Machine: o.Machine})))
	}
	if err != nil {
		return r, err
	}
	order := profiling.Order{Workload: o.Workload, Goal: profiling.Goal{Share: o.Goal, Of: o.GoalOf - 1}, DryRun: o.DryRun, How: profiling.How(job.Source)}
	if err := errors.Join(m.Fits(model.Use{Machine: o.Machine, List: l, Simulated: o.Simulated}), order.Goal.Check(l)); err != nil {
		return r, exit.BadInput(fmt.Errorf("%s: %w", o.Model, err))
	}
	w, err := openWorkload(ctx, &o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.allows(l); err != nil {
		return r, exit.BadInput(err)
	}
	if w.job = job; !o.DryRun {
		if err := w.begin(ctx, &o); err != nil {
			return r, err
		}
	}
	r, err = profiling.Place(ctx, order, &m, l, w, tools(stderr))
	if r.Outcome == profiling.Stays {
		r.Notes = append(r.Notes, w.notes...)
	}
	return r, ended(ctx, r, err)
}

func tools(stderr io.Writer) profiling.PlaceTools {
	tell := func(text string) { cli.Tell(stderr, []string{text}) }
	return profiling.PlaceTools{Tell: tell, Costs: func(all []profiling.Cost) {
		for _, c := range all {
			tell(fmt.Sprintf("a probe on nodes %s moves %v, %s", c.Nodes, c.Bytes, moveTime(c.Time)))
		}
	}}
}

// moveTime is how long a move is expected to take.
func moveTime(v unit.Value[float64]) string {
	seconds, ok := v.Get()
	if !ok {
		return "in an unknown time (" + v.From + ")"
	}
	return fmt.Sprintf("in about %s (%s)", render.Seconds(seconds), render.How(v.How))
}

// ended is the exit code of what is shown.
func ended(ctx context.Context, r profiling.Placed, err error) error {
	switch {
	case ctx.Err() != nil && r.Outcome == "":
		return interrupted(ctx, err)
	case ctx.Err() != nil:
		return exit.With(exit.Partly, errors.Join(errors.New("interrupted: the workload is back where it was"), ignoreCanceled(err)))
	case errors.Is(err, kernel.ErrGone), errors.Is(err, profiling.ErrConstant):
		return exit.BadInput(err)
	case err != nil:
		return exit.Precondition(err)
	case r.Outcome == profiling.None:
		return exit.With(exit.Nothing, nil)
	case r.Outcome == profiling.PutBack:
		return exit.With(exit.Partly, nil)
	}
	return nil
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
