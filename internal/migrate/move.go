// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"homenode/internal/cli"
	"homenode/internal/exit"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/migrate"
	"homenode/internal/machine"
	"homenode/internal/migration"
	owner "homenode/internal/owner/cgroup"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/source"
	"homenode/internal/unit"
)

// Move is one run of the command.
type Move struct {
	job     Job
	host    Host
	machine machine.Machine
	target  target
	mover   Mover
	clock   migrate.Clock
	hot     Heated // nil except in hot mode
	thawed  error  // why it may still be frozen
	// allEnded: when its memory was looked at again, no process was left.
	allEnded bool
	budget   unit.Bytes
	request  migrate.Request
	report   migration.Report
	stderr   io.Writer
}

// New is a Move of a job that was checked as far as that is possible without a machine.
func New(job Job, host Host, stderr io.Writer) *Move {
	return &Move{job: job, host: host, stderr: stderr, budget: migrate.NoBudget}
}

// Run finds what there is to move, moves it, and looks again. The report is to be shown
// even with an error, unless it has no outcome.
func (m *Move) Run(ctx context.Context) (migration.Report, error) {
	if err := m.prepare(ctx); err != nil {
		return migration.Report{}, stoppedEarly(ctx, m.job.Mode, err)
	}
	short := m.checkRoom()
	if short == nil {
		short = m.checkLimit()
	}
	var failed error
	switch {
	case m.report.Estimate.Bytes == 0 && m.report.Before.Unread > 0:
		return migration.Report{}, m.unseen()
	case m.report.Estimate.Bytes == 0:
		m.report.Outcome, short = migration.Nothing, nil
	case m.job.DryRun:
		m.report.Outcome = migration.Planned
	case short != nil:
		return migration.Report{}, short
	default:
		failed = m.carryOut(ctx)
		if !m.report.Result.Known() {
			return migration.Report{}, stoppedEarly(ctx, m.job.Mode, failed)
		}
	}
	return m.report, errors.Join(failed, short, m.ended(ctx, failed))
}

// unseen is the error when some processes could not be read, and the others have
// nothing to move.
func (m *Move) unseen() error {
	before := m.report.Before
	err := fmt.Errorf("%s: %d of its %d processes could not be read, and the others have nothing to move", m.target.name, before.Unread, before.Unread+before.Processes)
	if len(before.Problems) > 0 {
		err = fmt.Errorf("%w: %s", err, before.Problems[0])
	}
	return exit.BadInput(err)
}

// stoppedEarly says that nothing was moved because the user stopped it. The error of an
// interrupted freeze is kept: the target may still be frozen.
func stoppedEarly(ctx context.Context, mode migration.Mode, err error) error {
	if ctx.Err() == nil {
		return err
	}
	why := errors.New("interrupted before anything was moved")
	if mode == migration.Freeze || !errors.Is(err, context.Canceled) {
		why = errors.Join(why, err)
	}
	return exit.With(exit.Failed, why)
}

// ended is the exit code for what was printed; an error has its own.
func (m *Move) ended(ctx context.Context, failed error) error {
	switch {
	case failed != nil:
		return nil
	case m.report.Outcome == migration.Nothing:
		return exit.With(exit.Nothing, nil)
	case m.report.Outcome == migration.Partial && ctx.Err() != nil:
		return exit.With(exit.Partly, errors.New("interrupted: what was moved stays where it is now"))
	case m.report.Outcome == migration.Partial:
		return exit.With(exit.Partly, nil)
	}
	return nil
}

func (m *Move) note(format string, args ...any) {
	m.report.Notes = append(m.report.Notes, fmt.Sprintf(format, args...))
}

// prepare does everything that comes before moving and changes nothing. It checks in
// the order in which a person wants to learn what is wrong.
func (m *Move) prepare(ctx context.Context) error {
	p, err := m.check()
	if err != nil {
		return err
	}
	clock, note, err := m.host.Clock()
	if err != nil {
		return exit.Precondition(err)
	}
	if m.clock = clock; note != "" {
		m.note("%s", note)
	}
	if m.mover, err = m.host.Mover(clock, m.nice()); err != nil {
		return exit.Precondition(err)
	}
	j := m.job
	m.request = migrate.Request{
		PIDs: m.target.pids, Again: m.target.again, From: j.From, To: j.To, Cache: j.Cache, LeaveForeign: j.LeaveShared,
		Rate: j.Rate, MaxStall: j.MaxStall, Workers: j.Workers, CPUs: j.cpus,
	}
	m.report = migration.Report{
		Schema: migration.Schema, Target: m.target.name, Mode: j.Mode, From: j.From, To: j.To, Rate: j.Rate, MaxStall: j.MaxStall, LeaveShared: j.LeaveShared,
		Clock: clock.Name(), How: clock.How(), Notes: m.report.Notes,
	}
	if m.report.Before, err = m.mover.Census(ctx, m.request); err != nil {
		return notThere(err)
	}
	m.report.Estimate = migration.EstimateOf(m.report.Task(), p, m.machine, j.From, j.To, j.Mode, j.Rate)
	if clock.How() == unit.HowModelled {
		m.report.Estimate = m.report.Estimate.BesideModel()
	}
	if j.Mode == migration.Hot && m.report.Estimate.Bytes > 0 {
		return m.findHot(ctx)
	}
	return nil
}

// notThere gives exit code 2 also to processes that ended before anything was moved.
func notThere(err error) error {
	if errors.Is(err, kernel.ErrGone) {
		return exit.BadInput(err)
	}
	return exit.Precondition(err)
}

// check finds the target, and refuses what is impossible or not allowed.
func (m *Move) check() (p *profile.Profile, err error) {
	if m.machine, err = m.host.machine(); err != nil {
		return nil, exit.Precondition(err)
	}
	if err := m.checkNodes(); err != nil {
		return nil, exit.BadInput(err)
	}
	if m.job.Profile != "" {
		read, err := source.Profile(m.job.Profile, m.machine, source.LiveCPUModel())
		if err != nil {
			return nil, err
		}
		p = &read
	}
	if m.target, err = m.host.find(m.job); err != nil {
		return nil, exit.BadInput(err)
	}
	if err := m.checkTarget(); err != nil {
		return nil, exit.BadInput(err)
	}
	m.job.fillWorkers(m.machine, m.host.allowedCPUs())
	return p, nil
}

// findHot watches the workload. Accesses at home look the same as accesses
// elsewhere, so the estimate is an upper bound.
func (m *Move) findHot(ctx context.Context) (err error) {
	cli.Tell(m.stderr, []string{fmt.Sprintf("watching for %v which pages are accessed", m.job.HotFor)})
	if m.hot, err = m.host.Hot(ctx, m.target.pids, m.job.HotFor); err != nil {
		return notThere(err)
	}
	h := m.hot.Heat()
	m.report.Heat = unit.Some(h)
	m.report.Notes = append(m.report.Notes, m.hot.Notes()...)
	if all := m.report.Estimate.Bytes; h.Bytes < all {
		m.report.Estimate = m.report.Estimate.Part(h.Bytes)
		m.note("accessed pages may be at home already: at most %v have to move", h.Bytes)
	}
	m.request.Hot = m.hot
	return nil
}

// carryOut moves, and looks again. An error means that it ended early; the report has
// what was moved until then.
func (m *Move) carryOut(ctx context.Context) error {
	bar := newBar(m.stderr, m.report.Estimate.Bytes)
	m.request.Budget, m.request.Progress = m.budget, bar.show
	res, moved, err := m.moveStill(ctx)
	bar.end()
	if !moved {
		return refused(err)
	}
	if err != nil || ctx.Err() != nil {
		res.Complete = false
		if res.Stopped == "" {
			res.Stopped = whyStopped(ctx, err)
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) || errors.Is(err, kernel.ErrGone) {
		err = nil // that was wanted; or no process is left
	}
	m.lookAgain()
	account := m.settle(&res)
	m.report.Result = unit.Some(res)
	m.report.Outcome = m.outcome(res, account)
	return exit.Precondition(errors.Join(err, m.thawed))
}

// refused is the error for a freeze that did not happen.
func refused(err error) error {
	if errors.Is(err, journal.ErrRefused) {
		return exit.BadInput(err)
	}
	return exit.Precondition(err)
}

func whyStopped(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "interrupted"
	}
	return err.Error()
}

// moveStill moves. In freeze mode the target stands still meanwhile, and is thawed
// whatever happens, a panic included. Without moved, the move never began.
func (m *Move) moveStill(ctx context.Context) (res migration.Result, moved bool, err error) {
	if m.job.Mode != migration.Freeze {
		res, err = m.mover.Move(ctx, m.request)
		return res, true, err
	}
	still, err := m.host.Freeze(ctx, m.target.id, owner.FreezeConfig{StateDir: m.job.State, DirectOwners: m.job.DirectOwners, Limit: m.job.FreezeLimit})
	if err != nil {
		return res, false, err
	}
	began := m.clock.Now() // not before: starting the guard stops no task
	defer func() {
		m.thawed = still.Thaw()
		if still.Already() {
			m.note("another process had frozen it: %s", m.stillFrozen())
			return
		}
		m.report.Frozen = unit.Some((m.clock.Now() - began).Seconds())
	}()
	ctx, unwatch := guarded(ctx, still.Lost())
	defer unwatch()
	res, err = m.mover.Move(ctx, m.request)
	if cause := context.Cause(ctx); errors.Is(cause, errGuardLost) {
		err = cause
	}
	return res, true, err
}

func (m *Move) stillFrozen() string {
	switch frozen, err := m.host.IsFrozen(m.target.id); {
	case err != nil:
		return fmt.Sprintf("whether it is still frozen could not be read: %v", err)
	case !frozen:
		return "it is not frozen any more, and may have run while it was moved"
	}
	return "it still is"
}

var errGuardLost = errors.New("the guard that thaws it ended, or its time was up")

// guarded ends when the guard is lost. Without the guard, a crash leaves the target
// frozen.
func guarded(ctx context.Context, lost <-chan struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lost:
			cancel(errGuardLost)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// lookAgain takes the census after the move, also after an interrupt: with its own
// context, and for no longer than a person waits.
func (m *Move) lookAgain() {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req := m.request
	if req.Again != nil {
		if pids, err := req.Again(); err == nil && len(pids) > 0 {
			req.PIDs = pids
		}
	}
	after, err := m.mover.Census(ctx, req)
	if errors.Is(err, kernel.ErrGone) {
		m.note("its processes have ended since")
		after, err, m.allEnded = migration.Census{}, nil, true
	}
	if err != nil {
		m.note("where its memory is now is unknown: %v", err)
		return
	}
	m.report.After = unit.Some(after)
}

// Memory that is elsewhere afterwards and that the mover never tried was allocated
// meanwhile, or was not seen. A running program allocates, so below this share of the
// task it is not reported. A smaller share would make almost every live move partial.
const (
	someBytes = unit.MiB
	someShare = 100 // 1/100 of the task
)

func (m *Move) some(a migration.Account) unit.Bytes { return max(someBytes, a.Task/someShare) }

// settle accounts for every byte of the task. In hot mode the task is not known, and
// without a second census the outcome is not.
func (m *Move) settle(res *migration.Result) (a migration.Account) {
	after, known := m.report.After.Get()
	if !known || m.job.Mode == migration.Hot {
		return a
	}
	counted := res.Gone()
	a = m.report.Settle(res, after, leftOnPurpose)
	if a.Gone-counted > m.some(a) {
		m.note("%v were not moved and are no longer elsewhere: they were freed, or their process ended", a.Gone-counted)
	}
	if m.allEnded && a.Gone > m.some(a) {
		res.Complete, res.Stopped = false, "its processes have ended"
	}
	return a
}

// outcome: pages left on purpose do not make it partial; pages that the kernel did not
// move do, and so do pages that were not tried.
func (m *Move) outcome(res migration.Result, a migration.Account) migration.Outcome {
	failed := notMoved(res)
	after, known := m.report.After.Get()
	unread := max(m.report.Before.Unread, after.Unread)
	if unread > 0 {
		m.note("%d of its processes could not be read: their memory may be elsewhere", unread)
	}
	if a.Stayed > 0 && res.Complete && m.budget == migrate.NoBudget {
		m.note("%v are elsewhere and were not tried: they were allocated meanwhile, or not seen before", a.Stayed)
	}
	short := m.job.Mode != migration.Hot && (a.Stayed > m.some(a) || m.budget < migrate.NoBudget)
	if failed > 0 || !res.Complete || !known || unread > 0 || short {
		return migration.Partial
	}
	return migration.Complete
}

// NodesText prints "node 1", "nodes 0-2".
func NodesText(s set.NodeSet) string {
	if s.Len() == 1 {
		return "node " + s.String()
	}
	return "nodes " + s.String()
}
