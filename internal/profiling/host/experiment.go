// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/dataset"
	"homenode/internal/exit"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/model/gain"
	"homenode/internal/placement"
	"homenode/internal/policy/mao"
	"homenode/internal/profiling"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/window"
)

// Experiment binds and unbinds a workload by turns, and says what binding brings. The report is to
// be shown unless it has no outcome.
func Experiment(ctx context.Context, o Options, stderr io.Writer) (r profiling.TrialReport, err error) {
	t := trial{o: &o, stderr: stderr}
	r, err = t.run(ctx)
	if r.Outcome == "" {
		err = interrupted(ctx, err)
	}
	return r, err
}

// trial is one experiment.
type trial struct {
	o       *Options
	stderr  io.Writer
	machine machine.Machine
	w       *workload
	list    placement.List
	why     string // who chose the nodes
	notes   []string
	host    string // its name, for the row
}

// check refuses what does not go together.
func (t *trial) check() error {
	o := t.o
	if err := o.prepare(); err != nil {
		return err
	}
	switch {
	case o.Workload == "":
		return errors.New("--workload is missing: name the workload that is tried")
	case o.Repeats%2 != 0:
		return fmt.Errorf("--repeats %d: want an even number: two repeats are unbound, bound, bound, unbound", o.Repeats)
	case o.Rows != "" && o.Repeats%4 != 0:
		return fmt.Errorf("--repeats %d: want a multiple of 4 with --rows: the row has the gain of two halves alike", o.Repeats)
	case o.Saved == "" && !o.DryRun:
		return errors.New("--rows is missing: name a file for the row, or one for what is measured with --saved: it also has where the workload's memory was")
	}
	if err := t.measuring().Check(); err != nil || o.Rows == "" {
		return err
	}
	return cli.CanReplace("--rows", o.Rows)
}

// measuring is how it is measured, whatever the nodes.
func (t *trial) measuring() profiling.Job {
	o := t.o
	return profiling.Job{Workload: o.Workload, Metric: o.Metric, Warm: o.Warm, For: o.For, Repeats: o.Repeats, Seed: o.Seed, MostLoss: o.MostLoss}
}

func (t *trial) run(ctx context.Context) (r profiling.TrialReport, err error) {
	if err := t.check(); err != nil {
		return r, exit.BadInput(err)
	}
	if t.machine, _, err = source.Live(); err != nil {
		return r, err
	}
	s, err := t.saved()
	if err != nil {
		return r, exit.BadInput(err)
	}
	if t.w, err = openWorkload(ctx, t.o); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.w.close()) }()
	if t.host, err = os.Hostname(); err != nil {
		return r, err
	}
	if t.o.resumes {
		err = t.again(ctx, &s)
	} else {
		err = t.begin(ctx, &s)
	}
	if err != nil {
		return r, err
	}
	if t.o.DryRun {
		t.notes = append(t.notes, t.w.costs(ctx, placement.List{Placements: t.list.Placements[profiling.Bound:]})...)
		return t.report(s, "planned"), nil
	}
	if !t.o.resumes {
		if err := t.o.save(s); err != nil { // where its memory was is known before anything is moved
			return r, err
		}
		if err := t.w.begin(ctx, t.o); err != nil {
			return r, err
		}
	}
	s, err = t.o.measure(ctx, s, t.list, t.w, "workload "+t.w.id+", unbound and bound to nodes "+t.list.Placements[profiling.Bound].Nodes.String(), t.stderr)
	notes, bad := t.w.Back()
	t.notes = append(t.notes, notes...)
	return t.end(s, err, bad)
}

// job is what is measured, once the nodes are known.
func (t *trial) job() profiling.Job {
	o := t.o
	if o.Machine == "" {
		o.Machine = profiling.MachineType(source.LiveCPUModel(), len(t.machine.Nodes), t.machine.OnlineCPUs().Len())
	}
	j := t.measuring()
	j.Machine, j.Source, j.Links, j.Placements = o.Machine, sourceHere(), t.list.Links, profiling.CandidatesOf(t.list)
	return j
}

// saved reads the state of an experiment that was interrupted; it may have none.
func (t *trial) saved() (s profiling.State, err error) {
	s = profiling.State{Schema: profiling.StateSchema, Samples: []profiling.Sample{}}
	old, there, err := t.o.readState()
	if err != nil || !there {
		return s, err
	}
	if old.Before == nil || len(old.Spread) == 0 || len(old.Job.Placements) != 2 {
		return s, fmt.Errorf("%s has no experiment: name another file with --saved", t.o.Saved)
	}
	bound := old.Job.Placements[profiling.Bound]
	nodes, err := set.ParseNodes(bound.Nodes)
	cpus, bad := set.ParseCPUs(bound.CPUs)
	if err = errors.Join(err, bad); err == nil && cpus.IsEmpty() {
		err = errors.New("it has no CPUs")
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w: name another file with --saved", t.o.Saved, err)
	}
	t.list = profiling.ArmsOn(nodes, cpus)
	asked := nodes
	if t.o.Nodes != "" {
		asked, err = source.NodesOf(t.machine, "nodes", t.o.Nodes)
	}
	if err == nil && (asked != nodes || !old.Job.Same(t.job())) {
		err = fmt.Errorf("%s has another experiment, of %s: name another file with --saved, or remove it", t.o.Saved, subjectOf(old.Job))
	}
	t.o.resumes, t.why = err == nil, "the experiment that is continued"
	return old, err
}

// again continues: what the last one left is put back first.
func (t *trial) again(ctx context.Context, s *profiling.State) error {
	t.w.job, t.w.spread, t.w.home = s.Job, s.Spread, s.Home
	if now, err := instance(t.w.id); err != nil || now != s.Instance {
		return exit.BadInput(errors.Join(err, fmt.Errorf("%s has an experiment with %w of %s: remove it, or name another file with --saved", t.o.Saved, errEarlier, t.w.id)))
	}
	if !t.o.DryRun {
		if err := t.w.begin(ctx, t.o); err != nil {
			return err
		}
		t.w.touched = true // its memory may be where the last one had it
	}
	_, one, err := t.w.look(ctx)
	t.w.cpus = one.Binding.CPUs
	return exit.BadInput(t.w.ended(ctx, err))
}

// begin looks at the workload as it is, and chooses the nodes.
func (t *trial) begin(ctx context.Context, s *profiling.State) error {
	o := t.o
	t.w.job = t.measuring()
	_, one, err := t.w.look(ctx)
	var all window.Window
	if err == nil {
		t.w.cpus = one.Binding.CPUs
		cli.Tell(t.stderr, []string{fmt.Sprintf("looking at %s as it is for %v", t.w.id, o.For)})
		all, err = t.look(ctx, s)
	}
	if err = t.w.ended(ctx, err); err != nil {
		return t.o.stopped(err)
	}
	if err := t.choose(all, t.w.id); err != nil {
		return exit.BadInput(err)
	}
	s.Job, s.Home, s.Spread = t.job(), t.w.home, t.w.spread
	t.w.job = s.Job
	s.Instance, err = instance(t.w.id)
	return err
}

// errEarlier is of a saved state whose workload is gone, and another has its name.
var errEarlier = errors.New("an earlier instance")

// instance tells a workload from another one that has its name: by this boot, and its cgroup.
func instance(id string) (string, error) {
	boot, err := kernel.BootID(kernel.At("/"))
	if err != nil {
		return "", err
	}
	inode, err := kernel.CgroupInode(kernel.At("/"), id)
	return fmt.Sprintf("%s %d", boot, inode), err
}

// look measures the workload as it is; features are those before any change. The window has
// all workloads of the host, whose events are not counted.
func (t *trial) look(ctx context.Context, s *profiling.State) (all window.Window, err error) {
	r, err := kernel.NewReader(kernel.Config{Events: kernel.EventsOff, Ours: t.w.ours})
	if err != nil {
		return all, err
	}
	defer r.Close()
	if _, err = r.Read(ctx); err != nil {
		return all, err
	}
	f, err := t.w.figures(ctx, t.w.cpus)
	if err == nil {
		all, err = r.Read(ctx)
	}
	if err != nil {
		return all, err
	}
	one, ok := t.w.last.Workload(t.w.id)
	if !ok {
		return all, kernel.ErrGone
	}
	for i := range all.Workloads {
		if all.Workloads[i].ID == one.ID {
			all.Workloads[i] = one // with its events
		}
	}
	t.w.spread, err = spreadOf(&t.w.last, &one)
	l := profiling.LookAt(t.machine, &all, f)
	s.Before = &l
	return all, err
}

// choose takes the nodes that are asked for, or those to which an agent would bind it.
func (t *trial) choose(w window.Window, id string) (err error) {
	var nodes set.NodeSet
	if t.o.Nodes != "" {
		nodes, err = source.NodesOf(t.machine, "nodes", t.o.Nodes)
		t.why = "--nodes"
	} else {
		c := mao.DefaultConfig()
		if t.o.MAO != nil {
			c = *t.o.MAO
		}
		near, problems := agent.NearNodes(t.machine, t.o.Near)
		t.notes = append(t.notes, problems...)
		nodes, t.why, err = whereTo(c, t.machine, w, id, near)
	}
	if err == nil {
		t.list, err = profiling.Arms(t.machine, nodes, t.w.parent, t.o.Reserved)
	}
	return err
}

// errNotBack is wrapped where a workload is not as it was.
var errNotBack = errors.New("the workload is not as it was")

// end writes the row of a finished experiment; its state is not needed any more, unless the workload
// is not back (bad).
func (t *trial) end(s profiling.State, err, bad error) (profiling.TrialReport, error) {
	outcome := "unfinished"
	switch {
	case bad != nil:
		err = t.o.stopped(errors.Join(err, fmt.Errorf("%w: %w", errNotBack, bad)))
	case errors.Is(err, profiling.ErrHurt):
		t.notes = append(t.notes, err.Error()+": the experiment ended there")
		outcome, err = "stopped", exit.With(exit.Partly, t.o.forget())
	case err == nil && len(s.Open()) == 0:
		outcome = "complete"
		if err = t.write(s); err == nil {
			err = t.o.forget()
		}
	default:
		err = t.o.stopped(err)
	}
	return t.report(s, outcome), err
}

func (t *trial) report(s profiling.State, outcome string) profiling.TrialReport {
	r := profiling.NewTrialReport(s, outcome, t.why)
	r.Notes = append(r.Notes, t.notes...)
	return r
}

// write writes the row.
func (t *trial) write(s profiling.State) error {
	if t.o.Rows == "" {
		return nil
	}
	row, ok := profiling.TrialRow(s, profiling.TrialNames{Host: t.host, Workload: t.w.id, Application: t.o.application(), Kind: t.o.Kind})
	if !ok {
		t.notes = append(t.notes, "no row was written")
		return nil
	}
	return cli.WriteTo(nil, t.o.Rows, func(w io.Writer) error {
		return gain.WriteRows(w, []gain.Row{row}, []dataset.KeyValue{
			{Key: profiling.KeySource, Value: s.Job.Source},
			{Key: profiling.KeyCommit, Value: t.o.Version},
			{Key: profiling.KeyCommand, Value: t.o.CommandLine},
			{Key: profiling.KeyMachine, Value: s.Job.Machine},
			{Key: profiling.KeyHow, Value: profiling.How(s.Job.Source).String()},
			{Key: profiling.KeyMetric, Value: string(s.Job.Metric.Kind)},
		})
	})
}
