// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/journal"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// world is a toy host in a bubble's time. Reading takes time, and so does moving.
type world struct {
	windowtest.Host
	speed   unit.Bytes    // most that the machine moves per second
	search  time.Duration // for pages, before the first is moved
	last    time.Time
	windows []window.Window
	steps   []taken
	loads   map[string]uint64 // per second

	approved atomic.Bool
	mu       sync.Mutex // of speed, windows and steps
}

type taken struct {
	action.Step
	at, took time.Duration // since the start
	moved    unit.Bytes
}

const readTime = 20 * time.Millisecond

func (w *world) Read(context.Context) (window.Window, error) {
	time.Sleep(readTime)
	for id, perSecond := range w.loads {
		l := w.Host.Load(id)
		l.Approved = w.approved.Load()
		l.LocalLoads = unit.Measured(uint64(0), "test")
		l.RemoteLoads = unit.Measured(uint64(float64(perSecond)*time.Since(w.last).Seconds()), "test")
		w.Host.Serve(l)
	}
	w.Host.Length = time.Since(w.last)
	win := w.Host.Window()
	win.At, w.last = time.Now(), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.windows = append(w.windows, win)
	return win, nil
}

func (w *world) Machine() machine.Machine { return w.Host.Machine }
func (w *world) EventTable() string       { return "test" }
func (w *world) Close()                   {}

// Apply takes time for a move: batches at the step's rate or the machine's, until the
// budget or the time is used up, but at least one.
func (w *world) Apply(ctx context.Context, s action.Step) action.Outcome {
	began, asked := time.Now(), s
	if s.Kind == action.MovePages {
		s.Budget = w.move(ctx, s)
	}
	w.Host.Apply([]action.Step{s})
	outcomes := w.Host.Window().Outcomes // removes it again
	w.Host.Seq--
	o := outcomes[len(outcomes)-1]
	o.Step = asked
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, taken{s, time.Since(start), time.Since(began), o.Moved})
	return o
}

// taken may be called while the loop runs.
func (w *world) taken() []taken {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.steps)
}

// seen returns how many windows there were. It may be called while the loop
// runs.
func (w *world) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.windows)
}

// slow makes the machine move at a tenth of its speed from now on.
func (w *world) slow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.speed /= 10
}

func (w *world) move(ctx context.Context, s action.Step) (moved unit.Bytes) {
	w.mu.Lock()
	speed := w.speed
	w.mu.Unlock()
	if s.Rate > 0 {
		speed = min(speed, s.Rate)
	}
	time.Sleep(w.search)
	batch := min(s.Budget, speed/20)
	for ok := true; ok; ok = ctx.Err() == nil && moved+batch <= s.Budget {
		time.Sleep(time.Duration(float64(batch) / float64(speed) * float64(time.Second)))
		moved += batch
	}
	return moved
}

// start is the bubble's start time, which all tests share.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

const testPeriod = 10 * time.Second

// newLoop returns an agent on a world of 4 nodes without approved workloads.
func newLoop(t *testing.T, n int, size unit.Bytes) (*Agent, *world) {
	w := &world{speed: unit.GiB, last: time.Now(), loads: map[string]uint64{}}
	w.Shape([]int{0, 1, 2, 3}, 2, unit.TiB)
	for i := range n {
		id := fmt.Sprintf("/w%d", i)
		if _, err := w.Line(fmt.Sprintf("workload %s approved=no cpu=1 cpus=0-7 mems=0-3 anon=%dMiB,%dMiB,%dMiB,%dMiB", id, size>>22, size>>22, size>>22, size>>22)); err != nil {
			t.Fatal(err)
		}
		w.loads[id] = 100e6
	}
	c := Config{Period: testPeriod, CalmPeriod: 10 * testPeriod, StateDir: t.TempDir(), MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig()}
	a := &Agent{o: Options{Config: c, Log: slog.New(slog.DiscardHandler)}, reader: w, apply: w, past: map[string][]Decision{}}
	return a, w
}

// approve takes effect from the next window on.
func (w *world) approve(yes bool) { w.approved.Store(yes) }

// run runs the agent for a duration, and returns when the agent had ended.
func run(t *testing.T, a *Agent, play ...func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	for _, f := range play {
		f()
		synctest.Wait()
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Pages begin to move after a window of the calm period. From then on the windows are
// short, whether the rate or the machine is the limit, for one workload or more. If the
// rate is the limit, they move as much as it allows. An unbind in the middle is acted
// upon within two periods.
func TestWindowsStayShortWhilePagesMove(t *testing.T) {
	for _, c := range []struct {
		name   string
		movers int
		size   unit.Bytes
		speed  unit.Bytes
		search time.Duration
	}{
		{"rate", 1, 320 * unit.GiB, unit.GiB, 100 * time.Millisecond},
		{"rate, four", 4, 320 * unit.GiB, unit.GiB, 300 * time.Millisecond},
		{"slow", 1, 4 * unit.GiB, 5 * unit.MiB, 100 * time.Millisecond},
		{"slow, four", 4, 4 * unit.GiB, 5 * unit.MiB, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, w := newLoop(t, c.movers, c.size)
				w.speed, w.search = c.speed, c.search
				var unbound time.Duration
				run(t, a,
					func() { time.Sleep(40 * testPeriod) },
					func() { w.approve(true) },
					func() { time.Sleep(60*testPeriod + 7*time.Second) },
					func() { w.approve(false); unbound = time.Since(start) },
					func() { time.Sleep(3 * testPeriod) })
				checkWindows(t, w)
				checkRestores(t, w, c.movers, unbound)
				checkMoved(t, w, c.movers, min(c.speed, a.o.Config.Actuate.Rate))
			})
		})
	}
}

// checkWindows: the window before the first move is long, and none after it is.
func checkWindows(t *testing.T, w *world) {
	t.Helper()
	move := slices.IndexFunc(w.steps, func(s taken) bool { return s.Kind == action.MovePages })
	if move < 0 {
		t.Fatal("nothing was moved")
	}
	before, after := time.Duration(0), 0
	for _, win := range w.windows {
		if at := win.At.Sub(start); at < w.steps[move].at {
			before = win.Length
		} else if after++; win.Length > 2*testPeriod {
			t.Errorf("a window of %v, %v after the move began", win.Length, at-w.steps[move].at)
		}
	}
	if before < 9*testPeriod || after < 30 {
		t.Errorf("the move came after a window of %v, %d followed: nothing was tested", before, after)
	}
}

func checkRestores(t *testing.T, w *world, n int, after time.Duration) {
	t.Helper()
	restored := 0
	for _, s := range w.steps {
		if s.Kind != action.Restore {
			continue
		}
		if restored++; s.at-after > 2*testPeriod {
			t.Errorf("%v came %v after it was asked for", s.Step, s.at-after)
		}
	}
	if restored != n {
		t.Errorf("%d of %d were restored", restored, n)
	}
}

// checkMoved: the loop's own time costs little of the rate, and no workload waits for
// ever.
func checkMoved(t *testing.T, w *world, n int, rate unit.Bytes) {
	t.Helper()
	sum, by := unit.Bytes(0), map[string]unit.Bytes{}
	var first, last time.Duration
	for _, s := range w.steps {
		if s.Kind == action.MovePages {
			if first == 0 {
				first = s.at - s.took
			}
			last = s.at
			sum += s.moved
			by[s.Workload] += s.moved
		}
	}
	share := float64(sum) / float64(rate) / (last - first).Seconds()
	if len(by) != n || share < 0.8 || share > 1.01 {
		t.Errorf("%v moved %v: %.2f of what the rate allows", by, sum, share)
	}
}

// In each window a dry run knows what the running agent has set until then.
func TestDryRunLooksBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := newLoop(t, 1, unit.GiB)
		a.beside = &Beside{Dir: t.TempDir()}
		run(t, a,
			func() { time.Sleep(3 * testPeriod) },
			func() {
				j, err := journal.Open(a.beside.Dir)
				if err != nil {
					t.Fatal(err)
				}
				o := j.Wrap(newCpusets()).Apply(t.Context(), bind("/demo/a"))
				if err := j.Close(); err != nil || o.Status != action.Done {
					t.Errorf("%v, %v", o, err)
				}
			},
			func() { time.Sleep(2 * testPeriod) },
			func() {
				if !a.beside.Ours("/demo/a", "cpuset.cpus", "2-3") {
					t.Error("what the agent has set since is taken for another program's")
				}
			})
	})
}

// The log says what became of each setting.
func TestLogRestored(t *testing.T) {
	var out bytes.Buffer
	a := &Agent{o: Options{Log: slog.New(slog.NewTextHandler(&out, nil))}}
	s := journal.Setting{Cgroup: "/a", File: "cpuset.cpus"}
	for _, r := range []journal.Result{journal.PutBack, journal.Already, journal.Equivalent, journal.Left, journal.Vanished, journal.Kept, journal.NotDone} {
		out.Reset()
		a.recovered([]journal.Restored{{Setting: s, Result: r}})
		text := out.String()
		done := r == journal.PutBack || r == journal.Equivalent
		open := r == journal.Kept || r == journal.NotDone
		if became(r) == "" || !strings.Contains(text, became(r)) || strings.Contains(text, ": put back") != done || strings.Contains(text, "level=WARN") != open {
			t.Errorf("%s: %s", r, text)
		}
	}
	if len(a.status.Recovered) != 7 {
		t.Errorf("%q", a.status.Recovered)
	}
}

// The status and the decisions hold what is expected of a binding while its memory
// follows, and what it took. They also say that the binding was undone, if the machine's
// speed fell to a tenth.
func TestWayIsTold(t *testing.T) {
	for _, slows := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a, w := newLoop(t, 1, 128*unit.GiB)
			w.speed = 200 * unit.MiB
			var decided []Decision
			var status WorkloadStatus
			run(t, a,
				func() { w.approve(true) },
				func() { time.Sleep(25*testPeriod + testPeriod/2) },
				func() {
					if slows {
						w.slow()
					}
				},
				func() { time.Sleep(80 * testPeriod) },
				func() { decided, status = slices.Clone(a.past["/w0"]), a.status.Workloads[0] })
			rules := map[string]int{}
			for _, d := range decided {
				rules[d.Reason.Rule]++
			}
			if rules["actuate.way"] == 0 || (rules["actuate.undone.slow"] > 0) != slows || (rules["actuate.way.home"] > 0) == slows {
				t.Errorf("slows: %v: %v", slows, rules)
			}
			if !slows && (!status.Way.Over || status.Way.Rate.How != unit.HowMeasured || status.Way.Took <= 0 || status.Way.Moved <= 0) {
				t.Errorf("%+v", status.Way)
			}
		})
	}
}
