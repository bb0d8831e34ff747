// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/hot"
	"homenode/internal/kernel/migrate"
	"homenode/internal/machine"
	"homenode/internal/owner/cgroup"
	"homenode/internal/policy/mao"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// dryRunDir is where a dry run keeps its status, below the state directory.
const dryRunDir = "dry-run"

// Options of a run.
type Options struct {
	Config Config
	DryRun bool
	Rounds uint64 // stop after so many; 0: until told
	Log    *slog.Logger
	// Load reads the configuration again, for Reload; nil: there is none to read.
	Load func() (Config, error)
	// Relog changes how Log logs; nil: it stays as it is.
	Relog func(LogConfig)
	// Play, if there, is what is read instead of this host; nothing is acted upon.
	Play Reader
}

// applier is the journal, or a dry run.
type applier interface {
	Apply(ctx context.Context, step action.Step) action.Outcome
}

// Reader is kernel.Reader, a recording, or a fake.
type Reader interface {
	Read(ctx context.Context) (window.Window, error)
	Machine() machine.Machine
	EventTable() string
	Close()
}

// Agent runs the loop. It is not safe for concurrent use, but for View, Health, Config,
// Reload, Exclude and Include.
type Agent struct {
	o       Options
	reader  Reader
	owner   journal.Owner
	journal *journal.Journal // nil in a dry run
	apply   applier
	status  Status

	policy   mao.State
	jobs     actuate.State
	outcomes []action.Outcome
	quiet    int // windows in a row without a step
	past     map[string][]Decision

	restoreAnew func(context.Context) ([]journal.Restored, error) // nil: restoreSettings

	files   files
	readers int // the group that may read what the agent writes; 0: root alone
	totals  Totals
	near    []set.NodeSet // parallel to Config.Services
	latency latencies
	pulse   pulse
	told    map[string]bool // problems of the last window
	view    atomic.Pointer[View]
	wake    chan struct{} // something new waits

	mu       sync.Mutex
	pending  *Config // to be taken by the next round
	started  Config  // the last one that was taken, or waits
	excluded map[string]time.Time
	reloads  struct {
		done, failed uint64
		last         *Reloaded
	}
}

// New prepares an agent: it takes the journal's lock, puts back what a killed
// agent left, and opens the counters. Without what it needs it fails with an
// error that says what, where, and what to do.
func New(ctx context.Context, o Options) (*Agent, error) {
	a := &Agent{o: o, past: map[string][]Decision{}, wake: make(chan struct{}, 1)}
	if err := a.open(ctx); err != nil {
		a.close()
		return nil, err
	}
	a.status = Status{
		Schema: statusSchema, PID: os.Getpid(), DryRun: o.DryRun, Started: time.Now().Round(0), Period: o.Config.Period,
		Machine: a.reader.Machine().Origin, EventTable: a.reader.EventTable(), Recovered: a.status.Recovered,
	}
	a.started = a.o.Config
	a.pulse.begin(time.Now(), o.Config.Period, a.journal != nil || o.DryRun || o.Play != nil)
	a.openFiles()
	a.readHistory()
	a.resolveNear()
	return a, nil
}

func (a *Agent) open(ctx context.Context) error {
	if a.o.Play != nil {
		a.reader, a.apply = a.o.Play, asIfDone{}
		a.o.Config = playConfig(a.o.Config)
		return os.MkdirAll(a.o.Config.StateDir, 0o755)
	}
	mover, err := a.mover()
	if err != nil {
		return err
	}
	a.owner, err = OwnersWith(cgroup.Config{DirectOwners: a.o.Config.DirectOwners, Mover: mover, Hot: a.hotPages}, a.o.Config.Runtimes)
	if err != nil {
		return err
	}
	if kernel.ReadOnlyCgroups(kernel.Live().Root()) {
		a.o.Log.Warn("cgroups are mounted read-only: only what systemd, Docker or containerd manage can be bound")
	}
	rc := kernel.Config{Roots: a.o.Config.Cgroups, UserOnly: a.o.Config.UserOnly, Events: a.o.Config.Events, Ticks: a.o.Config.Ticks, Hints: a.o.Config.Hints, Watched: a.watched}
	rc.Resctrl.Service = a.serviceOf
	if a.o.DryRun {
		running, err := oursOf(a.o.Config.StateDir)
		if err != nil {
			return err
		}
		// A dry run beside a real agent must not write over its status.
		a.o.Config.StateDir = filepath.Join(a.o.Config.StateDir, dryRunDir)
		if err := os.MkdirAll(a.o.Config.StateDir, 0o755); err != nil {
			return fmt.Errorf("make state directory: %w", err)
		}
		a.o.Config = dryConfig(a.o.Config, a.o.Config.StateDir)
		a.apply = journal.DryRun{Owner: a.owner}
		rc.Ours = running
	} else {
		if a.journal, err = journal.Open(a.o.Config.StateDir); err != nil {
			return err
		}
		if err := a.recover(ctx); err != nil {
			return err
		}
		a.apply = a.journal.Wrap(a.owner)
		rc.Ours, rc.Resctrl.Live = a.journal.Ours, kernel.Live() // we hold the lock: groups are ours to make
	}
	reader, err := kernel.NewReader(rc)
	if err != nil {
		return err
	}
	a.reader = reader
	return nil
}

// watched says whose events are counted first where not all can be: who may be bound, or
// is. The reader asks in a round.
func (a *Agent) watched(id string) bool {
	_, approved := a.serviceOf(id)
	_, bound := a.jobs.Job(id)
	return approved || bound
}

// mover asks for all pages only where that is allowed: else the kernel refuses each
// call, and nothing would move (kernel_move_pages in mm/migrate.c).
func (a *Agent) mover() (*migrate.Mover, error) {
	powers, err := kernel.ReadPowers(kernel.Live().Root())
	if err != nil {
		return nil, err
	}
	if !powers.Nice() {
		a.o.Log.Warn("pages that several processes map stay where they are: that needs CAP_SYS_NICE")
	}
	return migrate.NewMover(kernel.Live(), migrate.Config{Shared: powers.Nice()})
}

// hotGrain is that of transparent huge pages. Half a second finds some thousand
// places: with it, most of a working set of some GB.
const hotGrain = 2 * unit.MiB

// hotPages looks which pages are accessed, for a quarter of the period and at most
// half a second: moving waits for it. PMU samples alone: all other ways change what
// the kernel goes by itself, or take longer.
func (a *Agent) hotPages(ctx context.Context, pids []int) (migrate.Hot, error) {
	look := hot.Config{For: min(a.o.Config.Period/4, 500*time.Millisecond), Sources: []string{hot.Samples}, Grain: hotGrain}
	pages, err := hot.Find(ctx, kernel.Live(), pids, look)
	if err != nil {
		a.o.Log.Debug("which pages are hot is not known: they move in the order of their addresses", "error", err)
		return nil, err
	}
	a.o.Log.Info("hot pages move first", "processes", len(pids), "bytes", pages.Heat().Bytes)
	return pages, nil
}

// oursOf says what an agent that runs beside this dry run has set: that is not
// somebody else's restriction.
func oursOf(stateDir string) (func(id, file, value string) bool, error) {
	boot, err := kernel.BootID(kernel.Root{})
	if err != nil {
		return nil, err
	}
	entries, err := journal.Peek(stateDir, boot)
	if err != nil && !errors.Is(err, journal.ErrDamaged) { // the running agent says so
		return nil, err
	}
	return func(id, file, value string) bool {
		return slices.ContainsFunc(entries, func(e journal.Entry) bool {
			return e.Sets(id, file, value)
		})
	}, nil
}

// recover puts back what an agent that was killed left behind, what was left frozen
// first.
func (a *Agent) recover(ctx context.Context) error {
	thawed, err := cgroup.ThawLeft(ctx, kernel.Live(), a.o.Config.StateDir)
	a.recovered(thawed)
	if err != nil { // the loop does not depend on it, and the next start tries again
		a.o.Log.Error("thaw what an earlier homenode left frozen", "error", err)
	}
	if n, err := hot.CleanLeft(kernel.Live()); err != nil {
		a.o.Log.Error("switch off what a search for hot pages left on", "error", err)
	} else if n > 0 {
		a.o.Log.Info("switched off what a search for hot pages left on", "kdamonds", n)
	}
	restored, err := a.journal.Restore(ctx, a.owner)
	a.recovered(restored)
	if damage := a.journal.Damage(); damage != nil { // the loop goes on: what is left looks like another's
		a.o.Log.Error("journal", "error", damage)
		a.status.Recovered = append(a.status.Recovered, damage.Error())
		a.tellSuspects(ctx)
	}
	if err != nil {
		return fmt.Errorf("put back what an earlier agent left: %w", err)
	}
	return nil
}

func (a *Agent) recovered(restored []journal.Restored) {
	for _, r := range restored {
		a.logRestored("left by an earlier homenode: ", r)
		a.status.Recovered = append(a.status.Recovered, r.String())
	}
}

// became says what became of a setting that was to be put back.
var became = map[journal.Result]string{
	journal.PutBack: "put back", journal.Already: "it was as before", journal.Equivalent: "put back to what means the same",
	journal.Left: "left to who changed it since", journal.Vanished: "gone, with what it was set for",
	journal.Kept: "kept for now", journal.NotDone: "not put back",
}

// logRestored warns of what is still outstanding.
func (a *Agent) logRestored(whose string, r journal.Restored) {
	level := slog.LevelInfo
	if r.Result == journal.Kept || r.Result == journal.NotDone {
		level = slog.LevelWarn
	}
	a.o.Log.Log(context.Background(), level, whose+became[r.Result], "setting", r.Setting.String(), "result", string(r.Result), "detail", r.Detail)
}

func (a *Agent) close() {
	a.closeFiles()
	if a.reader != nil {
		a.reader.Close()
	}
	if a.journal != nil {
		_ = a.journal.Close() // everything in it was fsynced when it was written
	}
}

// Close lets go of what New opened, where Run is not to come.
func (a *Agent) Close() { a.close() }

// Run loops until the context ends or the rounds are over, then puts everything
// back. Trouble in one round is logged; the next one tries again. A round that hangs does
// not keep it: see end.
func (a *Agent) Run(ctx context.Context) error {
	r := &running{ended: make(chan error, 1), back: make(chan struct{}), state: a.o.Config.StateDir}
	r.restore = a.restoreAnew
	if c := a.o.Config; r.restore == nil {
		r.restore = func(ctx context.Context) ([]journal.Restored, error) {
			return restoreSettings(ctx, c.StateDir, c.DirectOwners, c.Runtimes)
		}
	}
	go func() { r.ended <- a.loop(ctx, r) }()
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
		return a.end(r)
	}
}

func (a *Agent) loop(ctx context.Context, r *running) error {
	defer a.close()
	a.o.Log.Info("watching", "period", a.o.Config.Period, "machine", a.status.Machine, "events", a.status.EventTable, "dry_run", a.o.DryRun)
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		began := time.Now()
		err := a.round(ctx)
		if err != nil && ctx.Err() == nil {
			a.totals.FailedRounds++
			a.o.Log.Error("round", "error", err)
			a.publishTotals()
		}
		a.pulse.beat(time.Now(), a.period(), err)
		if ctx.Err() != nil || (a.o.Rounds > 0 && a.status.Rounds >= a.o.Rounds) {
			return a.putBack(r)
		}
		if a.o.Play != nil { // as fast as it goes
			continue
		}
		if !a.wait(ctx, timer, began) {
			return a.putBack(r)
		}
	}
}

// wait until the next round is due; false: told to end. Something new that waits ends a
// calm period, but a window is never shorter than the period: its figures would mean little.
func (a *Agent) wait(ctx context.Context, timer *time.Timer, began time.Time) bool {
	for {
		timer.Reset(a.period() - time.Since(began))
		select {
		case <-ctx.Done():
			return false
		case <-a.wake:
			a.quiet = 0
		case <-timer.C:
			return true
		}
	}
}

// period is how long until the next window: short while something is under way,
// longer once nothing was to be done for a while. A reading costs about the same
// whether anything happens or not.
func (a *Agent) period() time.Duration {
	if a.quiet >= calmAfter {
		return a.o.Config.CalmPeriod
	}
	return a.o.Config.Period
}

// calmAfter is how many windows without a step make it calm. Fewer save more;
// more follow a change of load sooner.
const calmAfter = 5

// round is one window: read, decide, act, tell.
func (a *Agent) round(ctx context.Context) error {
	a.swap()
	start := time.Now()
	a.status.Rounds++
	a.totals.Rounds++
	w, err := a.reader.Read(ctx)
	if err != nil {
		return err
	}
	a.name(&w)
	w.Outcomes, a.outcomes = a.outcomes, nil
	a.record(w)
	m := a.reader.Machine()
	decide := time.Now()
	next, wishes, reasons := mao.Step(m, a.o.Config.MAO, a.policy, w)
	a.policy = next
	var steps []action.Step
	cfg := a.o.Config.Actuate
	cfg.Turn = a.o.Config.Period
	before := a.jobs
	a.jobs, steps, a.outcomes = actuate.Step(m, cfg, a.jobs, wishes, w)
	a.totals.DecideTimes.add(time.Since(decide))
	a.remember(w, wishes)
	a.noteDecisions(w, wishes, reasons)
	a.noteWays(w, actuate.News(before, a.jobs, a.outcomes))
	if a.quiet++; len(steps)+len(action.Decided(wishes)) > 0 || a.jobs.Undecided() {
		a.quiet = 0
	}
	a.outcomes = append(a.outcomes, a.take(ctx, steps)...)
	a.endGone(ctx, w)
	a.totals.RoundTimes.add(time.Since(start))
	a.tell(w, reasons, time.Since(start))
	a.saveHistory(w.At, false)
	a.publish()
	a.writeStatus()
	a.forgetProgram()
	return nil
}

// take applies the steps in order; after one that was not done, the same
// workload's further steps wait for the next window, as do moves for which no time
// is left.
func (a *Agent) take(ctx context.Context, steps []action.Step) []action.Outcome {
	var outcomes []action.Outcome
	stopped := map[string]bool{}
	var end time.Time // of this window's moves
	for _, s := range steps {
		if stopped[s.Workload] || ctx.Err() != nil {
			continue
		}
		if s.Kind == action.MovePages && end.IsZero() {
			end = time.Now().Add(a.moveLimit())
		} else if s.Kind == action.MovePages && !time.Now().Before(end) {
			continue
		}
		began := time.Now()
		o := a.applyUntil(ctx, s, end)
		o.Took = time.Since(began)
		stopped[s.Workload] = o.Status != action.Done && o.Status != action.InProgress && o.Status != action.DryRun
		a.o.Log.Info("step", "workload", s.Workload, "step", string(s.Kind), "cpus", s.CPUs.String(), "nodes", s.Nodes.String(),
			"status", string(o.Status), "moved_bytes", int64(o.Moved), "detail", words.Became(o))
		a.totals.took(o)
		outcomes = append(outcomes, o)
	}
	return outcomes
}

// endGone ends the records of workloads that were bound when they ended.
func (a *Agent) endGone(ctx context.Context, w window.Window) {
	if a.journal == nil || ctx.Err() != nil {
		return
	}
	seen := func(workload string) bool {
		_, ok := w.WorkloadIndex(workload)
		return ok
	}
	if err := a.journal.EndGone(a.owner, seen); err != nil {
		a.o.Log.Warn("end the records of what is gone", "error", err)
	}
}

// moveLimit is how long all page moves of a window may take together before the loop
// goes on. At their rate they take a period, actuate's turn; the rest is for looking
// for pages, and for a machine that is slower than the rate. Longer, and an unbind or
// a drift would wait for more than two periods.
func (a *Agent) moveLimit() time.Duration { return a.o.Config.Period * 3 / 2 }

// applyUntil bounds page moves: what is left goes on in the next window.
func (a *Agent) applyUntil(ctx context.Context, s action.Step, end time.Time) action.Outcome {
	if s.Kind != action.MovePages {
		return a.apply.Apply(ctx, s)
	}
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	return a.apply.Apply(ctx, s)
}

// remember keeps the decisions, for `homenode why`.
func (a *Agent) remember(w window.Window, wishes []action.Action) {
	for _, x := range action.Decided(wishes) {
		a.o.Log.Info("decided", "action", x.String(), "why", words.Full(x.Reason))
		a.keep(w, x.String(), x.Reason)
	}
	for id := range a.past {
		if _, ok := w.Workload(id); !ok {
			delete(a.past, id)
		}
	}
}

func (a *Agent) keep(w window.Window, did string, why action.Reason) {
	past := append(a.past[why.Workload], Decision{At: w.At, Seq: w.Seq, Action: did, Reason: brief(why)})
	a.past[why.Workload] = past[max(0, len(past)-pastLength):]
}

func (a *Agent) tell(w window.Window, reasons []action.Reason, took time.Duration) {
	why := map[string]action.Reason{}
	for _, r := range reasons {
		why[r.Workload] = r
	}
	a.status.Window, a.status.Problems, a.status.Workloads, a.status.RoundTime = fewProblems(w), len(w.Problems), nil, took
	a.status.CPUSeconds = kernel.ProcessCPU().Seconds()
	for _, wl := range w.Workloads {
		s := WorkloadStatus{ID: wl.ID, Service: wl.Service, Features: window.FeaturesOf(wl, w.Length), Reason: why[wl.ID], Past: a.past[wl.ID]}
		if job, ok := a.jobs.Job(wl.ID); ok {
			s.Stage, s.Nodes, s.Note, s.Pays, s.Moving, s.Way = job.Stage, job.Nodes, job.Why, job.Pays, job.Moving, job.Way
		}
		a.status.Workloads = append(a.status.Workloads, s)
	}
	a.tellProblems(w.Problems)
}

// putBackLimit is how long an ending agent tries; a write to cpuset.mems waits
// for the pages it migrates.
const putBackLimit = 60 * time.Second

// putBack undoes everything this agent set. What fails stays in the journal for
// `homenode restore` or the next start.
func (a *Agent) putBack(r *running) error {
	close(r.back)
	a.pulse.end()
	err := a.putSettingsBack()
	a.saveHistory(a.status.Window.At, true)
	_ = os.Remove(filepath.Join(r.state, statusName))
	return err
}

func (a *Agent) putSettingsBack() error {
	if a.journal == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), putBackLimit)
	defer cancel()
	restored, err := a.journal.Restore(ctx, a.owner)
	for _, r := range restored {
		a.logRestored("", r)
	}
	return errors.Join(err, a.journal.Compact())
}

// Restore puts back what a killed agent left, without starting one, thaws what a
// killed homenode left frozen, which does not wait for the rest to be possible, and
// switches off what a killed search for hot pages left on. A
// running agent holds the lock: the error names it.
func Restore(ctx context.Context, stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	thawed, err := cgroup.ThawLeft(ctx, kernel.Live(), stateDir)
	_, err1 := hot.CleanLeft(kernel.Live())
	restored, err2 := restoreSettings(ctx, stateDir, directOwners, runtimes)
	return append(thawed, restored...), errors.Join(err, err1, err2)
}

// Foresee says what Restore would do, and changes nothing. What a killed search for hot
// pages left on is not told.
func Foresee(stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	thaw, err := cgroup.ForeseeThaw(kernel.Live(), stateDir)
	boot, err1 := kernel.BootID(kernel.Root{})
	owner, err2 := Owners(directOwners, runtimes)
	if bad := errors.Join(err1, err2); bad != nil {
		return thaw, errors.Join(err, bad)
	}
	settings, err1 := journal.Foresee(stateDir, boot, owner)
	return append(thaw, settings...), errors.Join(err, err1)
}

// restoreSettings puts threads back also where no cgroup can be.
func restoreSettings(ctx context.Context, stateDir string, directOwners []string, runtimes Runtimes) ([]journal.Restored, error) {
	owner, err := Owners(directOwners, runtimes)
	if err != nil {
		return nil, err
	}
	j, err := journal.Open(stateDir)
	if err != nil {
		return nil, err
	}
	restored, err := j.Restore(ctx, owner)
	return restored, errors.Join(err, j.Compact(), j.Damage(), j.Close())
}
