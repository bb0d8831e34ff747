// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

var nodes = []window.Node{{ID: 0, CPUs: set.FromCPUs(0, 1)}, {ID: 1, CPUs: set.FromCPUs(2, 3)}}

// world is reader, actor and clock in one: threads are where they were put.
type world struct {
	now     time.Time
	slow    time.Duration // duration of a read
	on      map[int]int   // CPU by thread
	allowed map[int]set.CPUSet
	pinned  map[int]bool
	ours    map[int]bool
	late    map[int]int // threads that appear with the n-th read
	reads   int
	ended   int // read from which on no thread is left; 0: never
	err     error

	starts  map[int]uint64
	watched bool  // there is also a thread that we may not move
	failing []int // reads that fail with err; empty: all fail

	dry       bool
	refuse    map[int]action.Outcome
	applied   []action.Step
	known     func(tid int, start uint64) bool
	given     map[set.CPUSet]bool
	passing   int   // looks that are to come
	lookErr   error // of the next look
	looks     int
	inherited []int
	tidied    int
	restored  []journal.Restored
	said      []string
}

func newWorld(tids ...int) *world {
	w := &world{now: time.Unix(1e6, 0), on: map[int]int{}, allowed: map[int]set.CPUSet{}, pinned: map[int]bool{}, ours: map[int]bool{}, late: map[int]int{}, refuse: map[int]action.Outcome{}, starts: map[int]uint64{}, given: map[set.CPUSet]bool{}}
	for _, t := range tids {
		w.on[t], w.allowed[t] = 0, set.FromCPUs(0, 1, 2, 3)
	}
	return w
}

func (w *world) Machine() machine.Machine { return machine.Machine{} }
func (w *world) EventTable() string       { return "fake" }
func (w *world) CPUTime() time.Duration   { return time.Duration(w.reads) * 50 * time.Microsecond }
func (w *world) Threads() int             { return len(w.on) }

// Read: on node 1 a thread waits 100 cycles per request and all its reads are local.
// On node 0 it waits 300 cycles and none is local.
func (w *world) Read(context.Context) (window.Window, error) {
	w.reads++
	w.now = w.now.Add(w.slow)
	for tid, n := range w.late {
		if n == w.reads {
			w.on[tid] = 2
		}
	}
	wl := window.Workload{ID: "pid:1", Sensitive: unit.Some(true), CPUByNode: make([]unit.Value[float64], 2)}
	waits, local, remote := 0, 0, 0
	by := []float64{0, 0}
	if w.ended > 0 && w.reads >= w.ended {
		clear(w.on)
	}
	for tid, cpu := range w.on {
		wl.Threads = append(wl.Threads, window.Thread{ID: tid, Start: w.starts[tid], CPU: unit.Some(cpu), Allowed: w.allowed[tid], Pinned: w.pinned[tid], Ours: w.ours[tid]})
		if by[cpu/2]++; cpu/2 == 1 {
			waits, local = waits+1000, local+10
		} else {
			waits, remote = waits+3000, remote+10
		}
	}
	slices.SortFunc(wl.Threads, func(a, b window.Thread) int { return a.ID - b.ID })
	for i := range by {
		wl.CPUByNode[i] = unit.Estimated(by[i], "test")
	}
	wl.UncoreRequests, wl.UncoreWaits = unit.Modelled(uint64(10*len(w.on)), "A"), unit.Modelled(uint64(waits), "W")
	wl.LocalLoads, wl.RemoteLoads = unit.Modelled(uint64(local), "L"), unit.Modelled(uint64(remote), "R")
	x := window.Window{Schema: 1, Length: 10 * time.Millisecond, At: w.now, Nodes: nodes, Workloads: []window.Workload{wl}}
	if w.watched {
		x.Workloads = append(x.Workloads, window.Workload{ID: "pid:2", Sensitive: unit.Some(false), Threads: []window.Thread{{ID: 99}}})
	}
	if w.failing != nil && !slices.Contains(w.failing, w.reads) {
		return x, nil
	}
	return x, w.err
}

func (w *world) DryRun() bool { return w.dry }
func (w *world) Apply(_ context.Context, s action.Step) action.Outcome {
	w.applied = append(w.applied, s)
	if o, ok := w.refuse[s.Thread]; ok {
		o.Step = s
		return o
	}
	if w.dry {
		return Dry{}.Apply(context.Background(), s)
	}
	w.on[s.Thread], _ = s.CPUs.First()
	w.given[s.CPUs] = true
	if !s.Release {
		w.allowed[s.Thread], w.ours[s.Thread] = s.CPUs, true
	} else {
		w.passing = 2
	}
	return action.Outcome{Step: s, Status: action.Done}
}

func (w *world) Know(known func(int, uint64) bool) { w.known = known }
func (w *world) Passing() bool                     { return w.passing > 0 }

// GiveBack finds the threads that have an affinity given to another thread.
func (w *world) GiveBack() (all []journal.Restored, err error) {
	w.looks++
	if err, w.lookErr = w.lookErr, nil; err != nil {
		return nil, err
	}
	w.passing--
	for tid := range w.on {
		if w.pinned[tid] && w.given[w.allowed[tid]] && !w.known(tid, w.starts[tid]) {
			w.pinned[tid], w.allowed[tid] = false, set.FromCPUs(0, 1, 2, 3)
			w.inherited = append(w.inherited, tid)
			all = append(all, journal.Restored{Result: journal.PutBack})
		}
	}
	return all, nil
}
func (w *world) Tidy() error                                         { w.tidied++; return nil }
func (w *world) PutBack(context.Context) ([]journal.Restored, error) { return w.restored, nil }
func (w *world) PutBackWithout(context.Context, func() bool) ([]journal.Restored, bool, error) {
	return w.restored, true, nil
}

func (w *world) options(p Policy) Options {
	return Options{
		Reader: w, Policy: p, Actor: w, Period: 10 * time.Millisecond, For: 3 * time.Second,
		Say: func(line string) { w.said = append(w.said, line) },
		Now: func() time.Time { return w.now }, Sleep: func(_ context.Context, d time.Duration) { w.now = w.now.Add(d) },
	}
}

// once moves each thread that is not on CPU 2 there, in the given way, in the n-th
// window.
func once(n int, hold bool) Policy {
	i := 0
	return func(_ machine.Machine, w window.Window) (all []action.Action, _ []action.Reason) {
		if i++; i != n {
			return nil, nil
		}
		for _, t := range w.Workloads[0].Threads {
			all = append(all, action.Action{Kind: action.Pin, Workload: "pid:1", Thread: t.ID, CPUs: set.FromCPUs(2), Release: !hold})
		}
		return all, nil
	}
}

func TestRunTellsWhatCameOfIt(t *testing.T) {
	w := newWorld(5, 6)
	sum, err := Run(context.Background(), w.options(once(150, false)))
	if err != nil || sum.Windows != 300 || sum.Moves != 2 || sum.Late != 0 || len(sum.Processes) != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	p := sum.Processes[0]
	if p.First.Penalty != unit.Modelled(300.0, "W, A") || p.Last.Penalty != unit.Modelled(100.0, "W, A") || p.First.LocalAccessRatio.V != unit.Some(unit.Ratio(0)) || p.Last.LocalAccessRatio.V != unit.Some(unit.Ratio(1)) {
		t.Errorf("%+v", p)
	}
	for i, want := range []float64{2, 0, 0, 2} {
		part := p.First
		if i > 1 {
			part = p.Last
		}
		if v, ok := part.CPUByNode[i%2].Get(); !ok || math.Abs(v-want) > 1e-9 {
			t.Errorf("CPUs %d: %v, want %v", i, v, want)
		}
	}
	if p.Moves != 2 || p.Threads != 2 || sum.ReadCost.V != unit.Some(301*50*time.Microsecond/600) {
		t.Errorf("%+v, %v", p, sum.ReadCost)
	}
	if len(w.said) > 3 || !strings.Contains(w.said[0], "2 on node 0") || !strings.Contains(w.said[len(w.said)-1], "2 on node 1") {
		t.Errorf("%q", w.said)
	}
	if _, err := json.Marshal(sum); err != nil {
		t.Error(err)
	}
}

func TestTroubleIsSaidOnce(t *testing.T) {
	w := newWorld(5, 6, 7, 8)
	w.pinned[6], w.allowed[6] = true, set.FromCPUs(0)
	w.refuse[7] = action.Outcome{Status: action.Drifted, Detail: "another process changed it"}
	w.refuse[8] = action.Outcome{Status: action.Gone, Detail: "ended"}
	every := func(m machine.Machine, x window.Window) ([]action.Action, []action.Reason) {
		return once(1, false)(m, x)
	}
	sum, err := Run(context.Background(), w.options(every))
	if err != nil || sum.Moves != 300 || sum.Refused != 300 || sum.Drifted != 300 || sum.Gone != 300 {
		t.Fatalf("%+v, %v", sum, err)
	}
	for _, s := range w.applied {
		if s.Thread == 6 {
			t.Fatal("a thread that another process pinned was moved")
		}
	}
	if len(sum.Problems) != 2 || !strings.Contains(sum.Problems[0], "another process has pinned it to CPUs 0") {
		t.Errorf("%q", sum.Problems)
	}
}

func TestJournalIsShortened(t *testing.T) {
	w := newWorld(5)
	o := w.options(func(m machine.Machine, x window.Window) ([]action.Action, []action.Reason) {
		return once(1, false)(m, x)
	})
	o.For = 50 * time.Second
	if _, err := Run(context.Background(), o); err != nil || w.tidied != 1 {
		t.Errorf("%d, %v", w.tidied, err)
	}
}

// A thread that a held thread starts has that thread's affinity, and gets its own
// back. This also holds if its parent is held elsewhere by then, or if its number was
// another thread's. A thread that was there before us, is pinned elsewhere, or pinned
// itself later belongs to another process.
func TestHeirsAreGivenBack(t *testing.T) {
	w := newWorld(5, 6, 7, 8)
	w.pinned[6], w.allowed[6] = true, set.FromCPUs(2)
	w.late[9], w.pinned[9], w.allowed[9] = 20, true, set.FromCPUs(2)
	w.late[10], w.pinned[10], w.allowed[10] = 30, true, set.FromCPUs(1)
	i := 0
	o := w.options(func(machine.Machine, window.Window) (all []action.Action, _ []action.Reason) {
		switch i++; i {
		case 3, 15:
			all = append(all, action.Action{Kind: action.Pin, Workload: "pid:1", Thread: 5, CPUs: set.FromCPUs(2 + i/15)})
		case 18:
			delete(w.on, 7)
			w.lookErr = errors.New("no search today") // the next search tries again
		case 40:
			w.on[7], w.starts[7], w.pinned[7], w.allowed[7] = 2, 77, true, set.FromCPUs(3) // the number is used again
			w.pinned[8], w.allowed[8] = true, set.FromCPUs(2)                              // pinned itself
		}
		return all, nil
	})
	o.Hold = true
	w.restored = []journal.Restored{{Result: journal.PutBack}, {Result: journal.Already}, {Result: journal.Left, Detail: "it is theirs"}}
	sum, err := Run(context.Background(), o)
	if err != nil || !slices.Equal(w.inherited, []int{9, 7}) || sum.Inherited != 2 || w.looks > 5 {
		t.Errorf("%v, %d looks, %v", w.inherited, w.looks, err)
	}
	if sum.PutBack != 1 || len(sum.Problems) != 2 || !strings.Contains(sum.Problems[1], "it is theirs") {
		t.Errorf("%+v", sum)
	}
}

// A released thread may have started others while it was held. As long as that is
// possible they are looked for, and not more often than needed.
func TestReleasedMayHaveHeirs(t *testing.T) {
	w := newWorld(5)
	o := w.options(once(3, false))
	if _, err := Run(context.Background(), o); err != nil || w.looks != 2 {
		t.Errorf("%d searches for one move, %v", w.looks, err)
	}
	w = newWorld(5)
	o = w.options(func(m machine.Machine, x window.Window) ([]action.Action, []action.Reason) {
		return once(1, false)(m, x)
	})
	if _, err := Run(context.Background(), o); err != nil || w.looks < 25 || w.looks > 31 {
		t.Errorf("%d searches in 3 s, %v", w.looks, err)
	}
}

// A step names the start time of the thread that was seen.
func TestStepsNameTheStart(t *testing.T) {
	w := newWorld(5)
	w.starts[5] = 555
	if _, err := Run(context.Background(), w.options(once(3, false))); err != nil || len(w.applied) != 1 || w.applied[0].Start != 555 {
		t.Errorf("%+v, %v", w.applied, err)
	}
}

// A window that cannot be read is reported; many in a row end the run.
func TestReadsMayFail(t *testing.T) {
	w := newWorld(5)
	w.err, w.failing = errors.New("CPUs come and go"), []int{7, 8, 9, 30}
	sum, err := Run(context.Background(), w.options(once(0, false)))
	if err != nil || sum.Windows != 296 || !slices.Equal(sum.Problems, []string{"CPUs come and go"}) {
		t.Errorf("%+v, %v", sum, err)
	}
	w = newWorld(5)
	w.err, w.failing = errors.New("for good"), []int{1 << 20}
	o := w.options(func(machine.Machine, window.Window) ([]action.Action, []action.Reason) {
		w.failing = nil
		return nil, nil
	})
	if sum, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "10 windows in a row: for good") || sum.Windows != 1 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// No window is shorter than a period, although sleeps end late.
func TestWindowsAreNotShort(t *testing.T) {
	w := newWorld(5)
	o := w.options(nil)
	var last time.Time
	o.Policy = func(_ machine.Machine, x window.Window) ([]action.Action, []action.Reason) {
		if !last.IsZero() && x.At.Sub(last) < o.Period {
			t.Fatalf("a window of %v", x.At.Sub(last))
		}
		last = x.At
		return nil, nil
	}
	n := 0
	o.Sleep = func(_ context.Context, d time.Duration) {
		w.now = w.now.Add(d)
		switch n++; {
		case n%50 == 0:
			w.now = w.now.Add(11 * time.Millisecond)
		case n%10 == 0:
			w.now = w.now.Add(6 * time.Millisecond)
		}
	}
	if sum, err := Run(context.Background(), o); err != nil || sum.Late != 5 || sum.Stretched {
		t.Errorf("%d late of %d, %v", sum.Late, sum.Windows, err)
	}
}

func TestDryRun(t *testing.T) {
	w := newWorld(5)
	w.dry = true
	sum, err := Run(context.Background(), w.options(once(3, false)))
	if err != nil || sum.Moves != 1 || !sum.DryRun || w.on[5] != 0 || !strings.Contains(strings.Join(w.said, "\n"), "would put thread 5 of pid:1 on CPUs 2") {
		t.Errorf("%+v, %v, %q", sum, err, w.said)
	}
	w = newWorld(5)
	w.dry = true
	i := 0
	again := func(machine.Machine, window.Window) (all []action.Action, _ []action.Reason) {
		i++ // either CPU of node 1, and at the end a CPU of node 0
		return append(all, action.Action{Kind: action.Pin, Workload: "pid:1", Thread: 5, CPUs: set.FromCPUs([]int{2, 3, 1}[i%2*(1-i/250)+i/250*2]), Release: true}), nil
	}
	if sum, err := Run(context.Background(), w.options(again)); err != nil || sum.Moves != 2 || strings.Count(strings.Join(w.said, "\n"), "would put") != 2 {
		t.Errorf("%+v, %v, %q", sum, err, w.said)
	}
}

func TestEnds(t *testing.T) {
	w := newWorld(5)
	w.ended = 10
	if sum, err := Run(context.Background(), w.options(once(0, false))); err != nil || sum.Windows != 9 {
		t.Errorf("no thread is left: %+v, %v", sum, err)
	}
	w = newWorld(5)
	w.ended, w.watched = 10, true
	if sum, err := Run(context.Background(), w.options(once(0, false))); err != nil || sum.Windows != 9 {
		t.Errorf("no thread is left that may be moved: %+v, %v", sum, err)
	}
	w = newWorld(5)
	w.ended = 10
	o := w.options(once(0, false))
	o.Stay = true
	if sum, err := Run(context.Background(), o); err != nil || sum.Windows != 300 {
		t.Errorf("no thread is left for now: %+v, %v", sum, err)
	}
	w = newWorld(5)
	w.slow = 25 * time.Millisecond
	if sum, err := Run(context.Background(), w.options(once(0, false))); err != nil || !sum.Stretched || sum.Late < 50 || sum.Windows > 66 || len(sum.Problems) != 1 {
		t.Errorf("slow: %+v, %v", sum, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w = newWorld(5)
	o = w.options(once(0, false))
	sleep := o.Sleep
	o.Sleep = func(ctx context.Context, d time.Duration) {
		if sleep(ctx, d); w.reads == 5 {
			cancel()
		}
	}
	if sum, err := Run(ctx, o); err != nil || sum.Windows != 4 {
		t.Errorf("cancelled: %+v, %v", sum, err)
	}
	w = newWorld(5)
	w.err = errors.New("no machine")
	if _, err := Run(context.Background(), w.options(once(0, false))); err == nil {
		t.Error("a window that cannot be read gave no error")
	}
	for _, p := range []time.Duration{0, 9 * time.Millisecond, time.Hour + 1} {
		if CheckPeriod(p) == nil {
			t.Errorf("period %v", p)
		}
	}
}

// However long a run is, its first and last tenths are of its beginning and its
// end.
func TestTenths(t *testing.T) {
	for _, n := range []int{1, 9, 255, 256, 257, 1000, 12345} {
		var s series
		for i := range n {
			wl := window.Workload{CPUByNode: []unit.Value[float64]{unit.Estimated(float64(i), "test")},
				UncoreWaits: unit.Modelled(uint64(i), "W"), UncoreRequests: unit.Modelled(uint64(1), "A")}
			if i%2 == 1 {
				wl.UncoreWaits = unit.UnknownValue[uint64]("lost")
			}
			s.addWindow(&wl, time.Second)
		}
		if len(s.buckets) > mostBuckets {
			t.Errorf("%d: %d buckets", n, len(s.buckets))
		}
		first, last := s.tenth(false), s.tenth(true)
		a, ok1 := first.CPUByNode[0].Get()
		b, ok2 := last.CPUByNode[0].Get()
		want := float64(n) / 20
		slack := float64(n)/50 + 1
		if !ok1 || !ok2 || math.Abs(a-want) > slack || math.Abs(float64(n)-b-want) > slack {
			t.Errorf("%d: first %v, last %v", n, a, b)
		}
		if p, ok := last.Penalty.Get(); ok && math.Abs(p-b) > slack {
			t.Errorf("%d: penalty %v beside %v", n, p, b)
		}
	}
	var none series
	none.addWindow(&window.Workload{CPUByNode: []unit.Value[float64]{{}}, UncoreWaits: unit.UnknownValue[uint64]("no counters")}, time.Second)
	if p := none.tenth(true); p.Penalty.Known() || p.Penalty.From != "no counters" || p.CPUByNode[0].Known() || p.LocalAccessRatio.Known() {
		t.Errorf("%+v", p)
	}
}
