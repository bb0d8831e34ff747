// SPDX-License-Identifier: Apache-2.0

package profiling

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"homenode/internal/kernel"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/placement"
)

func opteron(t testing.TB) (machine.Machine, placement.List) {
	t.Helper()
	m := shapetest.Shape(t, "opteron").Machine()
	l, err := placement.Important(m, placement.Options{VCPUs: 4})
	if err != nil || len(l.Placements) != 4 {
		t.Fatalf("%d placements, %v", len(l.Placements), err)
	}
	return m, l
}

func job(l placement.List) Job {
	return Job{
		Machine: "fake, 8 nodes, 16 CPUs", Source: Measured, Workload: "/a", VCPUs: 4, Links: l.Links, Metric: Metric{Kind: File, Arg: "/x"},
		Warm: time.Second, For: 2 * time.Second, Repeats: 2, Seed: 7, Placements: CandidatesOf(l),
	}
}

// fake is a workload with a speed in each placement; each measurement takes longer than was
// asked for, as moving does.
type fake struct {
	speed  func(nodes string, n int) (float64, error)
	list   placement.List
	order  []string
	now    time.Duration
	saved  []State
	told   []Progress
	after  int // stop after so many
	cancel func()
}

func (f *fake) Measure(ctx context.Context, p placement.Placement) (Figures, error) {
	f.now += 5 * time.Second
	if f.order = append(f.order, p.Nodes.String()); f.after > 0 && len(f.order) > f.after {
		f.cancel()
		return Figures{}, context.Canceled
	}
	v, err := f.speed(p.Nodes.String(), len(f.order))
	return Figures{Speed: v}, err
}

func (f *fake) tools() Tools {
	return Tools{
		Save: func(s State) error { f.saved = append(f.saved, s); return nil },
		Now:  func() time.Duration { return f.now },
		Tell: func(p Progress) { f.told = append(f.told, p) },
	}
}

func noisy(nodes string, n int) (float64, error) { return float64(len(nodes)) + float64(n)/1000, nil }

func start(l placement.List) State { return State{Schema: StateSchema, Job: job(l)} }

// Every placement as often as asked for, in an order that the seed decides, saved after each
// measurement.
func TestRun(t *testing.T) {
	_, l := opteron(t)
	f := &fake{speed: noisy, list: l}
	s, err := Run(context.Background(), start(l), l, f, f.tools())
	if err != nil || len(s.Samples) != 8 || len(f.saved) != 8 || len(s.Open()) != 0 {
		t.Fatalf("%d samples, %d saved, %v", len(s.Samples), len(f.saved), err)
	}
	again := &fake{speed: noisy, list: l}
	if _, err := Run(context.Background(), start(l), l, again, again.tools()); err != nil || !reflect.DeepEqual(f.order, again.order) {
		t.Errorf("order %v, again %v", f.order, again.order)
	}
	other := start(l)
	other.Job.Seed, again = 8, &fake{speed: noisy, list: l}
	if _, err := Run(context.Background(), other, l, again, again.tools()); err != nil || reflect.DeepEqual(f.order, again.order) {
		t.Errorf("another seed has the same order %v", f.order)
	}
	// What was asked for, and then what runs took.
	if f.told[0].Left.Or(0) != 24*time.Second || f.told[1].Left.Or(0) != 35*time.Second || f.told[7].Left.Or(0) != 5*time.Second {
		t.Errorf("left: %v, %v, %v", f.told[0].Left, f.told[1].Left, f.told[7].Left)
	}
	rows := s.Rows(l, "app", "kind", "app.1")
	for i, r := range rows {
		if int(r.Placement) != i || r.Source != Measured || r.Nodes != l.Placements[i].Nodes.String() || !(r.Speed > 0) || !(r.SpeedAgain > 0) || r.SpeedTrue != nil {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	report := NewReport(s, l, "complete")
	if v, ok := report.Retest.Get(); !ok || !(v > 0 && v < 0.01) || report.Results[0].OfBest.Or(0) > 1 {
		t.Errorf("retest %v, %+v", report.Retest, report.Results[0])
	}
}

// A run that was interrupted at any point continues where it was, and ends with the same
// runs in the same order.
func TestContinues(t *testing.T) {
	_, l := opteron(t)
	whole := &fake{speed: noisy, list: l}
	if _, err := Run(context.Background(), start(l), l, whole, whole.tools()); err != nil {
		t.Fatal(err)
	}
	for after := 1; after < 8; after++ {
		ctx, cancel := context.WithCancel(context.Background())
		f := &fake{speed: noisy, list: l, after: after, cancel: cancel}
		_, err := Run(ctx, start(l), l, f, f.tools())
		if !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), fmt.Sprintf("%d of 8", after)) {
			t.Fatalf("after %d: %v", after, err)
		}
		data, err := f.saved[after-1].Encode()
		if err != nil {
			t.Fatal(err)
		}
		s, err := DecodeState(data)
		if err != nil || !s.Job.Same(job(l)) || len(s.Samples) != after {
			t.Fatalf("read back: %d samples, %v", len(s.Samples), err)
		}
		rest := &fake{speed: noisy, list: l}
		if s, err = Run(context.Background(), s, l, rest, rest.tools()); err != nil || len(s.Samples) != 8 {
			t.Fatalf("continued: %d samples, %v", len(s.Samples), err)
		}
		if got := append(f.order[:after], rest.order...); !reflect.DeepEqual(got, whole.order) {
			t.Errorf("after %d: order %v, want %v", after, got, whole.order)
		}
	}
}

// A metric that never changes is found out early, a workload that ends is named, and what
// was measured before stays.
func TestRunRefuses(t *testing.T) {
	_, l := opteron(t)
	f := &fake{speed: func(string, int) (float64, error) { return 5, nil }, list: l}
	if s, err := Run(context.Background(), start(l), l, f, f.tools()); !errors.Is(err, ErrConstant) || len(f.order) != enough || len(s.Samples) != enough-1 {
		t.Errorf("constant: %v after %d", err, len(f.order))
	}
	f = &fake{list: l, speed: func(nodes string, n int) (float64, error) {
		if n == 3 {
			return 0, fmt.Errorf("workload /a has ended (%w)", kernel.ErrGone)
		}
		return noisy(nodes, n)
	}}
	if s, err := Run(context.Background(), start(l), l, f, f.tools()); !errors.Is(err, kernel.ErrGone) || !strings.Contains(err.Error(), "after 2 of 8 measurements") || len(s.Samples) != 2 {
		t.Errorf("ended: %v", err)
	}
	full := errors.New("no space")
	f = &fake{speed: noisy, list: l}
	tools := f.tools()
	tools.Save = func(State) error { return full }
	if s, err := Run(context.Background(), start(l), l, f, tools); !errors.Is(err, full) || len(s.Samples) != 0 {
		t.Errorf("not saved: %v", err)
	}
}

func TestJobCheck(t *testing.T) {
	_, l := opteron(t)
	for want, change := range map[string]func(*Job){
		"--repeats 1": func(j *Job) { j.Repeats = 1 }, "--repeats 101": func(j *Job) { j.Repeats = 101 }, "--warm-up": func(j *Job) { j.Warm = -1 },
		"--for 0s": func(j *Job) { j.For = 0 }, "--for 25h": func(j *Job) { j.For = 25 * time.Hour }, "--metric time": func(j *Job) { j.Metric = Metric{Kind: Time} },
	} {
		j := job(l)
		if change(&j); j.Check() == nil || !strings.Contains(j.Check().Error(), want) {
			t.Errorf("%s: %v", want, j.Check())
		}
		if j.Same(job(l)) {
			t.Errorf("%s: the state of another job would be continued", want)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	_, l := opteron(f)
	s := start(l)
	s.Samples = []Sample{{Placement: 1, Repeat: 1, Speed: 2, Took: 3}}
	data, err := s.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"schema":2}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := DecodeState(data)
		if err != nil {
			if !reflect.DeepEqual(s, State{}) {
				t.Error("error with a value")
			}
			return
		}
		s.Open()
		s.Left()
		again, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := DecodeState(again); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%v: %+v, was %+v", err, back, s)
		}
	})
}

// How long a program takes that ends by itself is unknown before it ran.
func TestLeftOfPrograms(t *testing.T) {
	_, l := opteron(t)
	s := start(l)
	s.Job.Workload, s.Job.Command, s.Job.Metric = "", []string{"a"}, Metric{Kind: Time}
	if left, known := s.Left(); known || NewReport(s, l, "planned").Left.Known() {
		t.Errorf("%v left", left)
	}
	s.Samples = []Sample{{Speed: 1, Took: 3}}
	if left, known := s.Left(); !known || left != 21*time.Second {
		t.Errorf("%v left, %v", left, known)
	}
}

// The time left never counts a run that is done.
func TestLeftOfAnyState(t *testing.T) {
	_, l := opteron(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		s := start(l)
		for _, run := range s.Job.Runs() {
			if r.IntN(2) == 0 {
				s.Samples = append(s.Samples, Sample{Placement: run.Arm, Repeat: run.Repeat, Speed: 1, Took: 4})
			}
		}
		want := time.Duration(len(s.Open())) * 4 * time.Second
		if len(s.Samples) == 0 {
			want = time.Duration(len(s.Open())) * s.Job.Each()
		}
		if got, known := s.Left(); got != want || !known || len(s.Open())+len(s.Samples) != 8 {
			t.Fatalf("%d done: %v left, want %v", len(s.Samples), got, want)
		}
	}
}
