// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/migrate"
	"homenode/internal/migration"
	"homenode/internal/owner/cgroup"
	"homenode/internal/placement"
	"homenode/internal/profiling"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// workload is a subject that runs already. Only its CPUs are set while it is measured: a
// narrower cpuset.mems would change its own memory policies for good (mpol_rebind_nodemask
// in mm/mempolicy.c), and memory that is moved stays where its threads are.
type workload struct {
	id      string
	meter   *meter
	job     profiling.Job
	rate    unit.Bytes
	profile string
	home    set.NodeSet
	reader  reader
	journal *journal.Journal
	owner   journal.Link
	move    mover
	notes   []string
	// touched says that a setting was changed or memory was moved.
	touched bool
	// Of a trial: the CPUs it had, and how much of its memory was on each node; the last window.
	cpus   set.CPUSet
	spread map[int]unit.Bytes
	last   window.Window
	ours   func(id, file, value string) bool
	parent set.CPUSet // its parent's CPUs; empty: unknown, as an earlier run bound it
}

type reader interface {
	Read(ctx context.Context) (window.Window, error)
	Close()
}

type mover func(ctx context.Context, j migrate.Job) (migration.Report, error)

func moveLive(ctx context.Context, j migrate.Job) (migration.Report, error) {
	return migrate.New(j, migrate.Live(), io.Discard).Run(ctx)
}

// openWorkload finds a workload, and refuses one that another program has limited. It
// changes nothing.
func openWorkload(ctx context.Context, o *Options) (*workload, error) {
	id, err := kernel.FindWorkload(kernel.At("/"), o.Workload)
	if err != nil {
		return nil, exit.BadInput(err)
	}
	w := &workload{id: id, meter: newMeter(o.Metric, o.token), rate: o.Rate, profile: o.Profile, move: moveLive}
	w.meter.wait, w.meter.lookBack = w.wait, o.Warm
	beside := agent.Beside{Dir: o.State}
	if err := beside.Look(); err != nil {
		return nil, exit.Precondition(err)
	}
	w.ours = beside.Ours
	r, err := kernel.NewReader(kernel.Config{Roots: []string{kernel.Literal(id)}, Ours: w.ours})
	if err != nil {
		return nil, exit.Precondition(err)
	}
	w.reader = r
	win, seen, err := w.look(ctx)
	if !seen.Binding.OursCPUs {
		w.parent = seen.Binding.CPUs
	}
	if err = w.ended(ctx, err); err == nil {
		err = limited(seen.Binding, id, o.resumes)
	}
	var spread map[int]unit.Bytes
	if err == nil {
		spread, err = spreadOf(&win, &seen)
		w.home = homeOf(spread)
	}
	if err != nil {
		r.Close()
		return nil, exit.BadInput(err)
	}
	return w, nil
}

// limited refuses a workload that is placed already. ours: an earlier run, which is
// continued, may have left its CPUs.
func limited(b window.Binding, id string, ours bool) error {
	switch {
	case b.PinnedCPUs || b.PinnedMems:
		return fmt.Errorf("%s: another program has limited it: %s: that is respected: lift the limit, or leave the workload as it is", id, b.PinnedWhy)
	case (b.OursCPUs || b.OursMems) && !ours:
		return fmt.Errorf("%s: an earlier homenode bound it to CPUs %v, memory of nodes %v: 'homenode restore' puts it back", id, b.CPUs, b.Mems)
	}
	return nil
}

// allows refuses placements on CPUs that its parent does not have, before anything is changed.
func (w *workload) allows(l placement.List) error {
	for i, p := range l.Placements {
		if outside := p.CPUs.Minus(w.parent); !w.parent.IsEmpty() && !outside.IsEmpty() {
			return fmt.Errorf("%s may run on CPUs %s only, and placement %d needs CPUs %s: its parent's cpuset is respected: widen that, or leave the workload as it is", w.id, w.parent, i+1, outside)
		}
	}
	return nil
}

// look reads a window, and finds the workload in it.
func (w *workload) look(ctx context.Context) (window.Window, window.Workload, error) {
	win, err := w.reader.Read(ctx)
	if err != nil {
		return win, window.Workload{}, err
	}
	w.last = win
	one, ok := win.Workload(w.id)
	if !ok {
		err = kernel.ErrGone
	}
	return win, one, err
}

// homeShare is what part of its memory makes a node one of a workload's.
const homeShare = 0.02

// homeOf finds the nodes where its memory is.
func homeOf(spread map[int]unit.Bytes) (home set.NodeSet) {
	all := float64(sum(spread))
	for n, b := range spread {
		if float64(b) > homeShare*all {
			home = home.With(n)
		}
	}
	return home
}

// begin opens the journal: from here on it may act. What a killed run left of this workload
// is put back first.
func (w *workload) begin(ctx context.Context, o *Options) (err error) {
	if w.owner, err = agent.OwnersWith(cgroup.Config{DirectOwners: o.DirectOwners}, o.Runtimes); err != nil {
		return exit.Precondition(err)
	}
	if w.journal, err = journal.Open(o.State); err != nil {
		return exit.Precondition(err)
	}
	if err = w.journal.Damage(); err == nil && o.resumes {
		_, err = w.journal.RestoreWorkload(ctx, w.owner, w.id)
	}
	return err
}

// apply takes one step, on record before.
func (w *workload) apply(ctx context.Context, s action.Step) error {
	s.Workload = w.id
	switch o := w.journal.Wrap(w.owner).Apply(ctx, s); o.Status {
	case action.Done:
		return nil
	case action.Gone:
		return fmt.Errorf("%s (%w)", o.Detail, kernel.ErrGone)
	case action.Refused:
		return exit.BadInput(errors.New(o.Detail))
	default:
		return errors.New(o.Detail)
	}
}

func (w *workload) migration(to set.NodeSet) migrate.Job {
	return migrate.Job{Cgroup: w.id, Mode: migration.Live, To: to, Rate: w.rate, MaxStall: 20 * time.Millisecond, Cache: true, LeaveShared: true, Profile: w.profile}
}

// onlyCode is nil for a move that has an exit code and no error: nothing to move, or part of it stayed.
func onlyCode(err error) error {
	var code exit.Error
	if errors.As(err, &code) && err.Error() == "" {
		return nil
	}
	return err
}

// bring moves its memory there. Part of it may stay: a note says how much.
func (w *workload) bring(ctx context.Context, to set.NodeSet) error {
	r, err := w.move(ctx, w.migration(to))
	err = onlyCode(err)
	if after, ok := r.After.Get(); ok && r.Outcome == migration.Partial && err == nil {
		w.note(fmt.Sprintf("%v of its memory stayed elsewhere when it was moved to nodes %s", after.Elsewhere(set.NodeSet{}, to), to))
	}
	return err
}

func (w *workload) note(text string) {
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// Measure puts the workload there, memory included, and measures it.
func (w *workload) Measure(ctx context.Context, p placement.Placement) (f profiling.Figures, err error) {
	w.touched = true
	defer func() { err = w.ended(ctx, err) }()
	if p.CPUs.IsEmpty() {
		return w.unbound(ctx)
	}
	if err = w.apply(ctx, action.Step{Kind: action.SetCPUs, CPUs: p.CPUs}); err != nil {
		return f, err
	}
	if err = w.bring(ctx, p.Nodes); err == nil {
		f, err = w.settled(ctx, p.CPUs)
	}
	return f, err
}

// settled measures the workload after the warm-up.
func (w *workload) settled(ctx context.Context, cpus set.CPUSet) (f profiling.Figures, err error) {
	if err = w.wait(ctx, w.job.Warm); err == nil {
		f, err = w.figures(ctx, cpus)
	}
	return f, err
}

// ended says that the workload has ended, if that is the reason.
func (w *workload) ended(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil || !errors.Is(err, kernel.ErrGone) && !w.gone() {
		return err
	}
	return fmt.Errorf("workload %s has ended: %w", w.id, err)
}

// gone says that the workload has ended.
func (w *workload) gone() bool {
	found, err := kernel.WorkloadsIn(kernel.At("/"), []string{kernel.Literal(w.id)})
	return err == nil && !slices.Contains(found, w.id)
}

// wait lets time pass, and notices when the workload ends meanwhile.
func (w *workload) wait(ctx context.Context, d time.Duration) error {
	for until := time.Now().Add(d); ; {
		left := time.Until(until)
		if err := unix.Sleep(ctx, min(left, gap)); err != nil || left <= gap {
			return err
		}
		if w.gone() {
			return kernel.ErrGone
		}
	}
}

// windowTries is how many windows may lack the counts: where groups of events take turns, a
// short one may end before each had its own.
const windowTries = 3

var errNotCounted = fmt.Errorf("not in %d windows: try a longer --for", windowTries)

// figures measures the workload where it is, with the features of a window as long.
func (w *workload) figures(ctx context.Context, cpus set.CPUSet) (f profiling.Figures, err error) {
	if _, _, err = w.look(ctx); err != nil {
		return f, err
	}
	for range windowTries {
		if f, err = w.window(ctx, cpus); !errors.Is(err, errNotCounted) {
			break
		}
	}
	return f, err
}

// window measures it once, since the look before.
func (w *workload) window(ctx context.Context, cpus set.CPUSet) (f profiling.Figures, err error) {
	if w.meter.Kind == profiling.IPC {
		err = w.wait(ctx, w.job.For)
	} else {
		f.Speed, err = w.meter.over(ctx, w.job.For)
	}
	if err != nil {
		return f, err
	}
	win, one, err := w.look(ctx)
	if err != nil {
		return f, err
	}
	if now := one.Binding.CPUs; now != cpus {
		return f, fmt.Errorf("%s was measured on CPUs %s, not on %s: another process changed its cpuset meanwhile", w.id, now, cpus)
	}
	f.Features = profiling.Observe(&one, win.Length)
	if w.meter.Kind != profiling.IPC {
		return f, nil
	}
	if f.Features.IPC == nil || !(*f.Features.IPC > 0) {
		return f, fmt.Errorf("metric ipc: the events of %s are not counted: %s: %w", w.id, one.Instructions.From, errNotCounted)
	}
	f.Speed = *f.Features.IPC
	return f, nil
}

// Cost estimates moving its memory there, and moves nothing.
func (w *workload) Cost(ctx context.Context, p placement.Placement) (migration.Estimate, error) {
	j := w.migration(p.Nodes)
	j.DryRun = true
	r, err := w.move(ctx, j)
	if r.Outcome != "" {
		return r.Estimate, nil
	}
	return r.Estimate, err
}

// Settle keeps the workload there: its CPUs, its memory, and then where new memory goes.
func (w *workload) Settle(ctx context.Context, p placement.Placement) (notes []string, err error) {
	w.touched = true
	defer func() { err = w.ended(ctx, err) }()
	if err := w.apply(ctx, action.Step{Kind: action.SetCPUs, CPUs: p.CPUs}); err != nil {
		return nil, err
	}
	if err := w.bring(ctx, p.Nodes); err != nil {
		return nil, err
	}
	if err := w.apply(ctx, action.Step{Kind: action.SetMems, Nodes: p.Nodes}); err != nil {
		if errors.Is(err, kernel.ErrGone) || ctx.Err() != nil {
			return nil, err
		}
		return []string{"its memory nodes are not set: " + err.Error()}, nil
	}
	return nil, nil
}

// backLimit is how long putting back may take, without the memory; homeLimit is the
// memory's.
const (
	backLimit = time.Minute
	homeLimit = 10 * time.Minute
)

// Back puts the CPUs back, and the memory on the nodes where it was, also after an
// interrupt.
func (w *workload) Back() (notes []string, err error) {
	if !w.touched {
		return w.notes, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), backLimit)
	defer cancel()
	all, err := w.putBackTold(ctx)
	if w.gone() {
		return w.notes, err
	}
	if w.spread != nil {
		if !all && err == nil {
			err = errors.New("its settings are not as they were: see the notes")
		}
		return w.notes, errors.Join(err, w.backUnbound())
	}
	home, cancel := context.WithTimeout(context.Background(), homeLimit)
	defer cancel()
	if bad := w.bring(home, w.home); bad != nil {
		w.note(fmt.Sprintf("its memory is not back on nodes %s: %v", w.home, bad))
	}
	return w.notes, err
}

// putBackTold is putBack; a note says what is not as it was. all: everything is.
func (w *workload) putBackTold(ctx context.Context) (all bool, err error) {
	restored, err := w.putBack(ctx)
	all = err == nil
	for _, r := range restored {
		if r.Result != journal.PutBack && r.Result != journal.Already && r.Result != journal.Equivalent {
			w.note(r.String())
			all = false
		}
	}
	return all, err
}

// putBack restores this workload's settings; the controllers that were switched on for it
// only where no other workload is on record.
func (w *workload) putBack(ctx context.Context) ([]journal.Restored, error) {
	if !slices.ContainsFunc(w.journal.Outstanding(), func(e journal.Entry) bool { return e.Workload != w.id }) {
		return w.journal.Restore(ctx, w.owner)
	}
	return w.journal.RestoreWorkload(ctx, w.owner, w.id)
}

// close releases the journal. What 'homenode place' leaves stays on record.
func (w *workload) close() error {
	w.reader.Close()
	if w.journal == nil {
		return nil
	}
	return errors.Join(w.journal.Compact(), w.journal.Close())
}
