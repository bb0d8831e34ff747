// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"homenode/internal/cli"
	"homenode/internal/dataset"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/kernel/launch"
	"homenode/internal/placement"
	"homenode/internal/profiling"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Profile measures a command or a workload in every important placement. The report is to
// be shown unless it has no outcome.
func Profile(ctx context.Context, o Options, stderr io.Writer) (profiling.Report, error) {
	r, err := profileOf(ctx, o, stderr)
	if r.Outcome == "" {
		err = interrupted(ctx, err)
	}
	return r, err
}

// interrupted says that nothing was done yet when it was stopped.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return exit.With(exit.Failed, errors.New("interrupted before anything was changed"))
}

func profileOf(ctx context.Context, o Options, stderr io.Writer) (r profiling.Report, err error) {
	if err := o.check(); err != nil {
		return r, exit.BadInput(err)
	}
	_, l, job, err := o.place()
	if err != nil {
		return r, err
	}
	s, err := o.openState(job)
	if err == nil && o.Rows != "" {
		err = cli.CanReplace("--rows", o.Rows)
	}
	if err != nil {
		return r, exit.BadInput(err)
	}
	p := profile{o: &o, list: l, stderr: stderr}
	if o.Workload != "" {
		return p.ofWorkload(ctx, s)
	}
	return p.ofCommand(ctx, s)
}

type profile struct {
	o      *Options
	list   placement.List
	stderr io.Writer
	notes  []string
}

func (p *profile) ofCommand(ctx context.Context, s profiling.State) (r profiling.Report, err error) {
	limits, err := launch.ReadLimits(kernel.At("/"))
	if err == nil {
		err = allowed(p.list, limits)
	}
	if err != nil {
		return r, exit.BadInput(err)
	}
	if p.o.DryRun {
		return p.report(s, "planned"), nil
	}
	c := &command{argv: p.o.Command, meter: newMeter(s.Job.Metric, p.o.token), job: s.Job, timeout: p.o.Timeout, start: startLive}
	c.meter.lookBack = p.o.Warm
	s, err = p.o.measure(ctx, s, p.list, c, subjectOf(s.Job), p.stderr)
	return p.end(s, err)
}

func (p *profile) ofWorkload(ctx context.Context, s profiling.State) (r profiling.Report, err error) {
	w, err := openWorkload(ctx, p.o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.allows(p.list); err != nil {
		return r, exit.BadInput(err)
	}
	if w.job = s.Job; s.Home == (set.NodeSet{}) {
		s.Home = w.home
	}
	if w.home = s.Home; p.o.DryRun {
		p.notes = append(p.notes, w.costs(ctx, p.list)...)
		return p.report(s, "planned"), nil
	}
	if err := w.begin(ctx, p.o); err != nil {
		return r, err
	}
	if err := p.o.save(s); err != nil { // where its memory was is known before anything is moved
		return r, err
	}
	s, err = p.o.measure(ctx, s, p.list, w, subjectOf(s.Job), p.stderr)
	notes, bad := w.Back()
	p.notes = append(p.notes, notes...)
	return p.end(s, errors.Join(err, bad))
}

// costs says what moving the memory to each placement takes.
func (w *workload) costs(ctx context.Context, l placement.List) (notes []string) {
	for _, p := range l.Placements {
		e, err := w.Cost(ctx, p)
		if err != nil {
			notes = append(notes, fmt.Sprintf("moving its memory to nodes %s: %v", p.Nodes, err))
			continue
		}
		notes = append(notes, fmt.Sprintf("moving its memory to nodes %s: %v from where it is now, %s", p.Nodes, e.Bytes, moveTime(e.Seconds)))
	}
	return notes
}

// measure measures what is still to be done of a state, with progress.
func (o *Options) measure(ctx context.Context, s profiling.State, l placement.List, subject profiling.Subject, what string, stderr io.Writer) (profiling.State, error) {
	line := cli.NewStatusLine(stderr)
	defer line.Clear()
	cli.Tell(stderr, []string{fmt.Sprintf("%s of %s, in an order by --seed %d%s", render.Count(len(s.Open()), "measurement"), what, s.Job.Seed, leftText(unit.OptOf(s.Left())))})
	began := time.Now()
	return profiling.Run(ctx, s, l, subject, profiling.Tools{
		Save: o.save, Now: func() time.Duration { return time.Since(began) },
		Tell: func(g profiling.Progress) {
			text := fmt.Sprintf("[%d/%d] %s%s", g.Done+1, g.All, profiling.Where(g.Next), leftText(g.Left))
			line.ShowBar(cli.Bar{Head: "measure ", Share: float64(g.Done) / float64(g.All), Tail: " " + text}, strconv.Itoa(g.Done), "homenode: "+text)
		},
	})
}

// leftText is ", about 12 s left".
func leftText(left unit.Opt[time.Duration]) string {
	d, known := left.Get()
	if !known {
		return ""
	}
	return ", about " + render.Span(d.Round(time.Second)) + " left"
}

func (o *Options) save(s profiling.State) error {
	if o.Saved == "" {
		return nil
	}
	data, err := s.Encode()
	if err != nil {
		return err
	}
	return cli.ReplaceFile(o.Saved, data, 0o644)
}

// end writes the rows of a finished profile; its state is not needed any more.
func (p *profile) end(s profiling.State, err error) (profiling.Report, error) {
	if err == nil && len(s.Open()) == 0 {
		if err = p.write(s); err == nil {
			err = p.o.forget()
		}
		return p.report(s, "complete"), err
	}
	return p.report(s, "unfinished"), p.o.stopped(err)
}

// stopped is the exit code of what ended early.
func (o *Options) stopped(err error) error {
	switch {
	case errors.Is(err, profiling.ErrUnfinished):
		if o.Saved != "" {
			err = fmt.Errorf("%w: the same command continues from %s", err, o.Saved)
		}
		return exit.With(exit.Partly, err)
	case errors.Is(err, kernel.ErrGone), errors.Is(err, profiling.ErrConstant), errors.Is(err, profiling.ErrJumped):
		return exit.BadInput(err)
	}
	return exit.Precondition(err)
}

func (p *profile) report(s profiling.State, outcome string) profiling.Report {
	r := profiling.NewReport(s, p.list, outcome)
	r.Notes = append(r.Notes, p.notes...)
	return r
}

// write writes the rows.
func (p *profile) write(s profiling.State) error {
	if p.o.Rows == "" {
		return nil
	}
	j, app := s.Job, p.o.application()
	return cli.WriteTo(nil, p.o.Rows, func(w io.Writer) error {
		return dataset.Write(w, []dataset.KeyValue{
			{Key: profiling.KeySchema, Value: strconv.Itoa(profiling.RowSchema)},
			{Key: profiling.KeySource, Value: j.Source},
			{Key: profiling.KeyCommit, Value: p.o.Version},
			{Key: profiling.KeyCommand, Value: p.o.CommandLine},
			{Key: profiling.KeyGenerator, Value: "none"},
			{Key: profiling.KeySeed, Value: strconv.FormatUint(j.Seed, 10)},
			{Key: profiling.KeyMachine, Value: j.Machine},
			{Key: profiling.KeyVCPUs, Value: strconv.Itoa(j.VCPUs)},
			{Key: profiling.KeyPlacements, Value: strconv.Itoa(len(j.Placements))},
			{Key: profiling.KeyLinks, Value: j.Links},
			{Key: profiling.KeyHow, Value: profiling.How(j.Source).String()},
			{Key: profiling.KeyMetric, Value: j.Metric.String()},
		}, s.Rows(p.list, app, p.o.kind(), app))
	})
}

// kind is the application's, if none is named: kinds are left out as a whole when a model is
// judged.
func (o *Options) kind() string {
	if o.Kind != "" {
		return o.Kind
	}
	return o.application()
}
