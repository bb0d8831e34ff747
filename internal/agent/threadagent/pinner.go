// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/control"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/render/words"
	"homenode/internal/window"
)

// The shortest period: reading takes some 20 µs per running thread, and a shorter
// window tells little. The longest: counts of hours say nothing about now.
const (
	MinPeriod = 10 * time.Millisecond
	MaxPeriod = time.Hour
)

// CheckPeriod returns an error if a period is out of range.
func CheckPeriod(p time.Duration) error {
	if p < MinPeriod || p > MaxPeriod {
		return fmt.Errorf("period %v: want %v to %v", p, MinPeriod, MaxPeriod)
	}
	return nil
}

// Reader is kernel.ThreadReader, or a fake.
type Reader interface {
	Read(ctx context.Context) (window.Window, error)
	Machine() machine.Machine
	EventTable() string
	CPUTime() time.Duration
	Threads() int
}

// Policy decides. It keeps its own state.
type Policy func(m machine.Machine, w window.Window) ([]action.Action, []action.Reason)

// Options are the options of a run.
type Options struct {
	Reader Reader
	Policy Policy
	Actor  Actor
	Period time.Duration
	For    time.Duration // 0: until the context ends
	Hold   bool          // the policy keeps threads pinned where it put them
	// Stay continues when no thread is left: a service that restarts may start more.
	Stay bool
	Say  func(line string)
	// Now and Sleep are the clock; nil: the machine's.
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// run is the state of one Run.
type run struct {
	o         Options
	sum       Summary
	control   control.Loop
	window    window.Window // this round's
	reasons   []action.Reason
	strangers int // new threads in it that are pinned
	series    map[string]*series
	known     map[int]uint64      // starts of the threads that inherited nothing of ours
	searched  time.Time           // when threads that inherited were looked for
	planned   map[int]plannedMove // only of a dry run
	failed    int                 // windows in a row that could not be read
	left      bool                // there is a thread that may be moved
	lasted    time.Duration       // the last round
	slow      int                 // rounds in a row that took longer than a period
	said      time.Time
	line      string
	steps     int
	back      chan struct{} // closed: the loop is over, and puts back
}

// Run loops until the context ends, the time is over, or no thread is left. Then it
// restores what it holds. If a window fails, that is reported and the next one tries
// again, up to mostFailed in a row.
func Run(ctx context.Context, o Options) (Summary, error) {
	if err := CheckPeriod(o.Period); err != nil {
		return Summary{}, err
	}
	if o.Now == nil {
		o.Now, o.Sleep = time.Now, sleep
	}
	r := &run{o: o, back: make(chan struct{}), series: map[string]*series{}, known: map[int]uint64{}, planned: map[int]plannedMove{}}
	r.control = control.Loop{
		World: host{r}, Policy: control.PolicyFunc(r.decide), Applier: control.InOrder{Take: r.apply, Now: o.Now},
		Actuate: actuate.DefaultConfig(), Period: o.Period, Took: r.took,
	}
	r.sum = Summary{Schema: schema, Period: o.Period, Hold: o.Hold, DryRun: o.Actor.DryRun(), Events: o.Reader.EventTable(), Processes: []Process{}, Problems: []string{}}
	o.Actor.Know(r.isKnown)
	return r.watched(ctx)
}

// whole is a run from its first window until everything is restored.
func (r *run) whole(ctx context.Context) error {
	cpu := kernel.ProcessCPU()
	err := r.loop(ctx)
	r.sum.CPUSeconds = (kernel.ProcessCPU() - cpu).Seconds()
	close(r.back)
	return errors.Join(err, r.putBack())
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// mostFailed is how many windows in a row may fail. One fails when CPUs go online or
// offline.
const mostFailed = 10

// mostSlow is how many rounds in a row may be slow before it is more than a short load
// of other processes.
const mostSlow = 10

// loop begins a window each period. One that begins late delays all that follow,
// because a window must not be shorter than a period.
func (r *run) loop(ctx context.Context) error {
	w, err := r.o.Reader.Read(ctx) // the first read only sets the baseline
	if err != nil {
		return err
	}
	r.meet(w, true)
	began := r.o.Now()
	for last := began; ; {
		if d := last.Add(r.pause()).Sub(r.o.Now()); d > 0 {
			r.o.Sleep(ctx, d)
		}
		if ctx.Err() != nil {
			break
		}
		now := r.o.Now()
		if now.Sub(last) > 2*r.o.Period {
			r.sum.Late++
		}
		last = now
		err := r.round(ctx)
		r.lasted = r.o.Now().Sub(now)
		if err = r.tolerate(ctx, err); err != nil {
			return err
		}
		if r.sum.Ran = r.o.Now().Sub(began); r.o.For > 0 && r.sum.Ran >= r.o.For {
			break
		}
		if r.failed == 0 && !r.left && !r.o.Stay {
			r.o.Say("all processes have ended: there is no thread left to move")
			break
		}
	}
	r.sum.Ran = r.o.Now().Sub(began)
	return nil
}

// pause is the time from the beginning of a window to that of the next: a period,
// or, if mostSlow rounds in a row take longer, twice what they take. That leaves
// half of a CPU's time free.
func (r *run) pause() time.Duration {
	if r.slow++; r.lasted <= r.o.Period {
		r.slow = 0
	}
	if r.slow < mostSlow {
		return r.o.Period
	}
	if !r.sum.Stretched {
		r.sum.Stretched = true
		r.problem(fmt.Sprintf("the period of %s is too short for %s: a window took %s; periods are stretched as needed", render.Span(r.o.Period), render.Count(r.o.Reader.Threads(), "thread"), render.Span(r.lasted)))
	}
	return 2 * r.lasted
}

// tolerate reports what went wrong in a window. It returns an error if that
// happened too often.
func (r *run) tolerate(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		r.failed = 0
		return nil
	}
	r.problem(err.Error())
	if r.failed++; r.failed < mostFailed {
		return nil
	}
	return fmt.Errorf("%d windows in a row: %w", r.failed, err)
}

// round is one window of the loop (control.Loop), with its sums.
func (r *run) round(ctx context.Context) error {
	if _, err := r.control.Round(ctx); err != nil {
		return err
	}
	r.giveBack(r.window, r.strangers)
	r.remember(r.window, r.reasons)
	return nil
}

// host is what the loop acts on.
type host struct{ *run }

func (h host) Machine() machine.Machine { return h.o.Reader.Machine() }

func (h host) Read(ctx context.Context) (window.Window, error) {
	w, err := h.o.Reader.Read(ctx)
	if err != nil {
		return w, err
	}
	h.sum.Windows++
	h.sum.threadWindows += uint64(h.o.Reader.Threads())
	h.left = candidates(w)
	for _, p := range w.Problems {
		h.problem(p)
	}
	h.window, h.strangers = w, h.meet(w, false)
	return w, nil
}

// decide runs the loop's policy.
func (r *run) decide(m machine.Machine, w window.Window) (actions []action.Action) {
	actions, r.reasons = r.o.Policy(m, w)
	return actions
}

// candidates says whether there is a thread that may be moved.
func candidates(w window.Window) bool {
	return slices.ContainsFunc(w.Workloads, func(wl window.Workload) bool {
		return wl.Sensitive.Or(true) && len(wl.Threads) > 0
	})
}

// tidyAfter is how many steps are taken before the journal is shortened. A step
// takes a few hundred bytes in it.
const tidyAfter = 4096

// apply takes one step.
func (r *run) apply(ctx context.Context, s action.Step) action.Outcome {
	if s.Kind != action.PinThread {
		return action.Outcome{Step: s, Status: action.Refused, Detail: "only threads are moved here"}
	}
	return r.o.Actor.Apply(ctx, s)
}

// took counts an outcome, and shortens the journal from time to time.
func (r *run) took(o action.Outcome) {
	r.count(o)
	if r.steps++; r.steps%tidyAfter == 0 {
		if err := r.o.Actor.Tidy(); err != nil {
			r.problem(err.Error())
		}
	}
}

// count adds an outcome to the sums.
func (r *run) count(o action.Outcome) {
	switch o.Status {
	case action.DryRun:
		if !r.isNewMove(o.Step) {
			return
		}
		r.o.Say(fmt.Sprintf("would put thread %d of %s on CPUs %s: %s", o.Step.Thread, o.Step.Workload, o.Step.CPUs, words.Sentence(o.Step.Reason)))
		fallthrough
	case action.Done:
		r.sum.Moves++
		r.of(o.Step.Workload).moves++
		return
	case action.Drifted:
		r.sum.Drifted++
	case action.Gone:
		r.sum.Gone++
	default:
		r.sum.Refused++
	}
	if o.Status != action.Gone {
		r.problem(o.Detail)
	}
}

// problem keeps each sentence once, and a limited number of them: the others are
// counted.
func (r *run) problem(text string) {
	const most = 100
	switch {
	case slices.Contains(r.sum.Problems, text):
	case len(r.sum.Problems) < most:
		r.sum.Problems = append(r.sum.Problems, text)
		r.o.Say(text)
	default:
		if r.sum.MoreProblems++; r.sum.MoreProblems == 1 {
			r.o.Say("more problems are only counted from now on")
		}
	}
}

// putBackLimit is how long an ending run tries to restore.
const putBackLimit = 30 * time.Second

// putBack restores what is held, and what was inherited of it. What fails stays in the journal for `homenode
// restore`.
func (r *run) putBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), putBackLimit)
	defer cancel()
	restored, err := r.o.Actor.PutBack(ctx)
	for _, x := range restored {
		switch x.Result {
		case journal.PutBack:
			r.sum.PutBack++
		case journal.Already, journal.Vanished:
		default:
			r.problem(x.String())
		}
	}
	return err
}

// lineEvery is the shortest time between two lines.
const lineEvery = time.Second

// tell reports where all threads are, when that changed.
func (r *run) tell(parts []string) {
	now := r.o.Now()
	line := strings.Join(parts, "; ")
	if line == r.line || now.Sub(r.said) < lineEvery {
		return
	}
	r.said, r.line = now, line
	r.o.Say(line)
}
