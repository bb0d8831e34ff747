// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/control"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/render/words"
	"homenode/internal/window"
)

// Run loops until the context ends or the rounds are over, then restores everything. If a
// round fails, that is logged and the next one tries again. If a round hangs, Run still
// ends: see end.
func (a *Agent) Run(ctx context.Context) error {
	r := &running{ended: make(chan error, 1), back: make(chan struct{}), state: a.o.Config.StateDir}
	r.restore = a.restoreAnew
	if c := a.o.Config; r.restore == nil {
		r.restore = func(ctx context.Context) ([]journal.Restored, error) {
			return restoreSettings(ctx, c.StateDir, c.DirectOwners, c.Runtimes, cleanMonitors)
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
	a.o.Log.Info("watching", "period", a.o.Config.Period, "machine", a.status.Machine, "events", a.status.EventTable, "dry_run", a.o.DryRun, "mode", string(a.o.Config.Mode))
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
		if a.o.Play != nil { // as fast as possible
			continue
		}
		if !a.wait(ctx, timer, began) {
			return a.putBack(r)
		}
	}
}

// wait waits until the next round is due. It returns false if the context has ended. A new
// configuration or exclusion ends a calm period. A window is never shorter than the period,
// because its figures would mean little.
func (a *Agent) wait(ctx context.Context, timer *time.Timer, began time.Time) bool {
	for {
		timer.Reset(a.period() - time.Since(began))
		select {
		case <-ctx.Done():
			return false
		case <-a.wake:
			if a.leaving.Swap(false) { // between two rounds nothing is under way
				a.handOver(ctx) // it returns if that failed
			}
			a.quiet = 0
		case <-timer.C:
			return true
		}
	}
}

// period is how long until the next window: short while something is under way,
// longer after several windows without a step. A reading costs about the same
// whether anything happens or not.
func (a *Agent) period() time.Duration {
	if a.quiet >= calmAfter {
		return a.o.Config.CalmPeriod
	}
	return a.o.Config.Period
}

// calmAfter is how many windows without a step begin the calm period. Fewer
// save more CPU time; more react sooner to a change of load.
const calmAfter = 5

// round is one window of the loop (control.Loop), with its reports.
func (a *Agent) round(ctx context.Context) error {
	a.swap()
	start := time.Now()
	a.status.Rounds++
	a.totals.Rounds++
	a.arrange()
	r, err := a.control.Round(ctx)
	if err != nil {
		return err
	}
	a.endGone(ctx, r.Window)
	took := time.Since(start)
	a.totals.RoundTimes.observe(took)
	a.tell(r.Window, a.reasons, took)
	a.tellCounting(r.Window)
	a.offer(r.Window)
	a.saveHistory(r.Window.At, false)
	a.publish()
	a.writeStatus()
	a.forgetProgram()
	return nil
}

// arrange gives the loop its parts, according to the configuration of this
// round.
func (a *Agent) arrange() {
	l := &a.control
	l.World, l.Policy, l.Applier = host{a}, control.PolicyFunc(a.decide), a.applier()
	l.Actuate, l.Period = a.o.Config.Actuate, a.o.Config.Period
	l.Decided, l.Took = a.noteDecided, a.noteStep
}

// applier takes steps: on this host, one after the other. All page moves of a window together may take one and a half
// periods. At their rate they take one period, as actuate plans. The rest is for finding
// the pages, and for a machine that is slower than the rate. If they took longer, an
// unbind or a drift would wait for more than two periods.
func (a *Agent) applier() control.Applier {
	if played, ok := a.o.Play.(control.Applier); ok {
		return played
	}
	return control.InOrder{Take: a.apply.Apply, Now: time.Now, MoveLimit: a.o.Config.Period * 3 / 2}
}

// host is what the loop acts on.
type host struct{ *Agent }

func (h host) Machine() machine.Machine { return h.reader.Machine() }

// Read reads a window and names its workloads.
func (h host) Read(ctx context.Context) (window.Window, error) {
	var problem error
	if h.beside != nil {
		problem = h.beside.Look()
	}
	w, err := h.reader.Read(ctx)
	if err != nil {
		return window.Window{}, err
	}
	if problem != nil {
		w.Problems = append(w.Problems, problem.Error())
	}
	h.name(&w)
	return w, nil
}

// decide runs the loop's policy. It records the window first, as it was read and
// named.
func (a *Agent) decide(m machine.Machine, w window.Window) (actions []action.Action) {
	a.record(w)
	a.deciding = time.Now()
	before := a.policy
	a.policy, actions, a.reasons = mao.Step(m, a.o.Config.MAO, before, w)
	a.alarmed = a.policy.Alarmed(a.o.Config.MAO.Isolate, before, w.Seq)
	return actions
}

// noteDecided reports the decisions, before the first step is taken.
func (a *Agent) noteDecided(r control.Round) {
	a.totals.DecideTimes.observe(time.Since(a.deciding))
	a.remember(r.Window, r.Actions)
	if a.o.DryRun {
		a.sum.add(r.Window, r.Actions)
	}
	a.noteDecisions(r.Window, r.Actions, a.reasons)
	a.noteWays(r.Window, actuate.News(r.Before, r.After, r.Own))
	if a.quiet++; len(r.Steps)+len(action.Decided(r.Actions)) > 0 || r.After.Undecided() || a.alarmed {
		a.quiet = 0
	}
}

// noteStep reports a step that was taken or refused.
func (a *Agent) noteStep(o action.Outcome) {
	s := o.Step
	a.o.Log.Info("step", "workload", s.Workload, "step", string(s.Kind), "cpus", s.CPUs.String(), "nodes", s.Nodes.String(),
		"status", string(o.Status), "moved_bytes", int64(o.Moved), "detail", words.Became(o))
	a.totals.took(o)
}

// endGone ends the records of bound workloads that have ended.
func (a *Agent) endGone(ctx context.Context, w window.Window) {
	if a.journal == nil || ctx.Err() != nil {
		return
	}
	if err := EndGone(a.journal, a.owner, w); err != nil {
		a.o.Log.Warn("end the records of workloads that are gone", "error", err)
	}
}

// EndGone ends the records of workloads that are gone both from this window and from the
// host.
func EndGone(j *journal.Journal, owner journal.Owner, w window.Window) error {
	return j.EndGone(owner, func(workload string) bool {
		_, ok := w.WorkloadIndex(workload)
		return ok
	})
}

// remember keeps the decisions, for `homenode why`.
func (a *Agent) remember(w window.Window, actions []action.Action) {
	for _, x := range action.Decided(actions) {
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
	jobs := a.control.Jobs()
	for _, wl := range w.Workloads {
		s := WorkloadStatus{ID: wl.ID, Service: wl.Service, Labels: a.labels.Of(wl.ID, w.Seq), Features: window.FeaturesOf(wl, w.Length), Reason: why[wl.ID], Past: a.past[wl.ID]}
		if job, ok := jobs.Job(wl.ID); ok {
			s.Stage, s.Nodes, s.Note, s.Pays, s.Moving, s.Way = job.Stage, job.Nodes, job.Why, job.Pays, job.Moving, job.Way
		}
		a.status.Workloads = append(a.status.Workloads, s)
	}
	a.labels.Forget(w.Seq)
	a.tellProblems(w.Problems)
}
