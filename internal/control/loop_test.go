// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// fake is the world, the policy and the applier in one. Steps are done, unless become has
// another outcome by workload and kind.
type fake struct {
	*windowtest.Host
	extra  []action.Outcome // outcomes of the world, in the next window
	ask    []action.Action  // actions of the policy, in the next window
	err    error            // error of the next reading
	become map[string]action.Outcome
	seen   []window.Window
	taken  []string
	calls  []string // all calls, in order
}

func newFake(t *testing.T, lines ...string) *fake {
	t.Helper()
	h := &windowtest.Host{Length: 10 * time.Second}
	for _, line := range append([]string{"machine nodes=2 cpus=2 mem=1GiB"}, lines...) {
		if _, err := h.Line(line); err != nil {
			t.Fatal(err)
		}
	}
	return &fake{Host: h, become: map[string]action.Outcome{}}
}

func (f *fake) loop() *Loop {
	return &Loop{
		World: fakeWorld{f}, Policy: f, Applier: InOrder{Take: f.take}, Actuate: actuate.DefaultConfig(), Period: 10 * time.Second,
		Decided: func(Round) { f.calls = append(f.calls, "decided") },
		Took:    func(o action.Outcome) { f.calls = append(f.calls, "took "+o.Step.Workload+" "+string(o.Status)) },
	}
}

type fakeWorld struct{ *fake }

func (f fakeWorld) Machine() machine.Machine { return f.Host.Machine }

func (f fakeWorld) Read(context.Context) (window.Window, error) {
	f.calls = append(f.calls, "read")
	if err := f.err; err != nil {
		f.fake.err = nil
		return window.Window{}, err
	}
	w := f.Host.Window()
	w.Outcomes, f.fake.extra = f.extra, nil
	return w, nil
}

func (f *fake) Step(_ machine.Machine, w window.Window) []action.Action {
	f.calls = append(f.calls, "decide")
	f.seen = append(f.seen, w)
	ask := f.ask
	f.ask = nil
	return ask
}

func (f *fake) take(_ context.Context, s action.Step) action.Outcome {
	f.calls = append(f.calls, "take")
	f.taken = append(f.taken, s.Workload+" "+string(s.Kind))
	if o, ok := f.become[s.Workload+" "+string(s.Kind)]; ok {
		o.Step = s
		return o
	}
	f.Host.Apply([]action.Step{s})
	w := f.Host.Window() // removes the outcome again
	f.Host.Seq--
	return w.Outcomes[len(w.Outcomes)-1]
}

func bind(id string, node int) action.Action {
	return action.Action{Kind: action.Bind, Workload: id, Nodes: set.FromNodes(node)}
}

func round(t *testing.T, l *Loop) Round {
	t.Helper()
	r, err := l.Round(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// said is an outcome in a short form.
func said(all []action.Outcome) (short []string) {
	for _, o := range all {
		short = append(short, o.Step.Workload+" "+string(o.Step.Kind)+" "+string(o.Status))
	}
	return short
}

// A window gets actuate's outcomes of the last one, then those of the steps in the
// order in which they were taken, then the world's: each once, in the next window.
func TestOrderOfOutcomes(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,1MiB mems=0-1", "workload /b cpu=1 anon=0,1MiB mems=0-1")
	l := f.loop()
	f.ask = []action.Action{bind("/b", 1), bind("/gone", 1), bind("/a", 1)}
	round(t, l)
	f.extra = []action.Outcome{{Step: action.Step{Workload: "/world", Kind: action.MovePages}, Status: action.Done}}
	round(t, l)
	want := []string{"/gone set-cpus gone", "/a set-cpus done", "/b set-cpus done", "/world move-pages done"}
	if got := said(f.seen[1].Outcomes); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	round(t, l)
	for _, o := range f.seen[2].Outcomes {
		if o.Step.Kind == action.SetCPUs || o.Step.Workload == "/world" {
			t.Errorf("reported again: %v", o)
		}
	}
	if got, want := f.calls[:6], []string{"read", "decide", "decided", "take", "took /a done", "take"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// If a window cannot be read, nothing is decided and no step is taken. The outcomes of the
// last steps wait for the next window that can be read.
func TestOutcomesOutliveAFailedReading(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,1MiB mems=0-1")
	l := f.loop()
	f.ask = []action.Action{bind("/a", 1)}
	round(t, l)
	before, calls := l.Jobs(), len(f.calls)
	f.err = errors.New("too many open files")
	if _, err := l.Round(t.Context()); err == nil || len(f.calls) != calls+1 || !reflect.DeepEqual(l.Jobs(), before) {
		t.Errorf("%v, %q", err, f.calls[calls:])
	}
	round(t, l)
	if got := said(f.seen[1].Outcomes); !slices.Equal(got, []string{"/a set-cpus done"}) {
		t.Errorf("%q", got)
	}
}

// A binding continues from window to window until its memory is set, and an unbind
// returns the workload to its state before.
func TestStateIsCarriedOver(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,100MiB cpus=0-3 mems=0-1")
	l := f.loop()
	before := f.Load("/a").Binding
	f.ask = []action.Action{bind("/a", 1)}
	for range 10 {
		round(t, l)
	}
	job, ok := l.Jobs().Job("/a")
	if b := f.Load("/a").Binding; !ok || job.Stage != actuate.StageBound || !b.Mems.Equal(set.FromNodes(1)) || len(f.taken) < 2 {
		t.Errorf("%+v, %+v, %q", job, b, f.taken)
	}
	f.ask = []action.Action{{Kind: action.Unbind, Workload: "/a"}}
	for range 2 {
		round(t, l)
	}
	if b := f.Load("/a").Binding; b.CPUs != before.CPUs || !b.Mems.Equal(before.Mems) || len(l.Jobs().Jobs) != 0 {
		t.Errorf("after the unbind: %+v, was %+v, %+v", b, before, l.Jobs())
	}
}

// What an earlier run has bound is restored although this loop has no binding of it.
func TestUnbindOfAnEarlierRun(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,1MiB mems=0-1")
	l := f.loop()
	f.ask = []action.Action{{Kind: action.Unbind, Workload: "/a"}}
	round(t, l)
	round(t, l)
	if !slices.Equal(f.taken, []string{"/a restore"}) || len(l.Jobs().Jobs) != 0 {
		t.Errorf("%q, %+v", f.taken, l.Jobs())
	}
}

// A refused step ends the binding: what may have been done of it is undone, and the policy
// sees the refusal. A failed step is tried again.
func TestRefusedAndFailed(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,1MiB mems=0-1", "workload /b cpu=1 anon=0,1MiB mems=0-1")
	l := f.loop()
	f.become["/a set-cpus"] = action.Outcome{Status: action.Refused, Detail: "EBUSY"}
	f.become["/b set-cpus"] = action.Outcome{Status: action.Failed, Detail: "EIO"}
	f.ask = []action.Action{bind("/a", 1), bind("/b", 1)}
	round(t, l)
	delete(f.become, "/b set-cpus")
	round(t, l)
	if got := said(f.seen[1].Outcomes); !slices.Equal(got, []string{"/a set-cpus refused", "/b set-cpus failed"}) {
		t.Errorf("%q", got)
	}
	if want := []string{"/a set-cpus", "/b set-cpus", "/a restore", "/b set-cpus"}; !slices.Equal(f.taken, want) {
		t.Errorf("%q, want %q", f.taken, want)
	}
}

// A dry run decides and reports each step once, and nothing is bound.
func TestDryRun(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,100MiB mems=0-1")
	l := f.loop()
	for _, kind := range []string{"set-cpus", "set-mems", "move-pages", "restore"} {
		f.become["/a "+kind] = action.Outcome{Status: action.DryRun}
	}
	before := f.Load("/a").Binding
	f.ask = []action.Action{bind("/a", 1)}
	for range 5 {
		round(t, l)
	}
	job, _ := l.Jobs().Job("/a")
	if !slices.Equal(f.taken, []string{"/a set-cpus"}) || job.Stage != actuate.StageDry || f.Load("/a").Binding != before {
		t.Errorf("%q, %+v", f.taken, job)
	}
}

// Plan is what the next round would do, and changes nothing.
func TestPlanChangesNothing(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,1MiB mems=0-1")
	l := f.loop()
	w := round(t, l).Window
	before := l.Jobs()
	r := l.Plan(w, []action.Action{bind("/a", 1)})
	if len(r.Steps) != 1 || len(f.taken) != 0 || !reflect.DeepEqual(l.Jobs(), before) {
		t.Errorf("%+v, %q", r, f.taken)
	}
	f.ask = r.Actions
	if did := round(t, l); !reflect.DeepEqual(did.Steps, r.Steps) || len(f.taken) != 1 {
		t.Errorf("planned %v, did %v", r.Steps, did.Steps)
	}
}

// A thread that another process has pinned is not moved, nor is a thread that was not
// seen. A step names the start time of the thread that was seen.
func TestGuardOfThreads(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=0,1MiB mems=0-1")
	f.Load("/a").Threads = []window.Thread{{ID: 5, Start: 55}, {ID: 6, Start: 66, Pinned: true, Allowed: set.FromCPUs(0)}, {ID: 8, Start: 88}}
	l := f.loop()
	var starts []uint64
	l.Applier = InOrder{Take: func(_ context.Context, s action.Step) action.Outcome {
		starts = append(starts, s.Start)
		return action.Outcome{Step: s, Status: action.Done}
	}}
	for _, tid := range []int{7, 6, 5, 8} {
		f.ask = append(f.ask, action.Action{Kind: action.Pin, Workload: "/a", Thread: tid, CPUs: set.FromCPUs(1)})
	}
	f.ask = append(f.ask, action.Action{Kind: action.Pin, Workload: "/b", Thread: 5, CPUs: set.FromCPUs(1)})
	round(t, l)
	round(t, l)
	want := []string{"/a pin-thread gone", "/a pin-thread refused", "/b pin-thread gone", "/a pin-thread done", "/a pin-thread done"}
	out := f.seen[1].Outcomes
	if got := said(out); !slices.Equal(got, want) || !slices.Equal(starts, []uint64{55, 88}) {
		t.Fatalf("%q, starts %v", got, starts)
	}
	if !strings.Contains(out[1].Detail, "thread 6 of /a: another process has pinned it to CPUs 0") || !strings.Contains(out[0].Detail, "thread 7 of /a is not in this window") {
		t.Errorf("%q, %q", out[0].Detail, out[1].Detail)
	}
}

// The period is the loop's: a move's budget is for one period.
func TestMovesArePlannedForThePeriod(t *testing.T) {
	f := newFake(t, "workload /a cpu=1 anon=900MiB,0 mems=0-1")
	budgets := map[time.Duration]unit.Bytes{}
	for _, period := range []time.Duration{time.Second, 2 * time.Second} {
		l := f.loop()
		l.Actuate.Rate, l.Actuate.PayRatio, l.Actuate.WhenUnknown, l.Actuate.Way = 64*unit.MiB, 1e-9, actuate.MoveAnyway, actuate.AlwaysCPUsFirst
		l.Period = period
		r := l.Plan(f.Host.Window(), []action.Action{bind("/a", 1)})
		l.jobs = r.After
		w := f.Host.Window()
		w.Outcomes = []action.Outcome{{Step: r.Steps[0], Status: action.Done}}
		for _, s := range l.Plan(w, nil).Steps {
			budgets[period] = s.Budget
		}
	}
	if budgets[time.Second] != 64*unit.MiB || budgets[2*time.Second] != 128*unit.MiB {
		t.Errorf("%v", budgets)
	}
}
