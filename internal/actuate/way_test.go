// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// The estimates compared with a simple twin that goes through the way in small steps of
// time.
func TestForecastAgainstTwin(t *testing.T) {
	chosen := map[Order]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		f := randomForecast(r)
		orders := f.orders()
		for _, e := range orders {
			least, below := twin(f, e.Order)
			if math.Abs(float64(e.Least)-least) > 0.01 {
				t.Fatalf("seed %d %s: least %v, want %v: %+v", seed, e.Order, float64(e.Least), least, f)
			}
			if got := e.Below.Seconds(); got < below-f.all()/1000 || got > below+2*f.window+f.all()/1000 {
				t.Fatalf("seed %d %s: worse for %v s, want %v: %+v", seed, e.Order, got, below, f)
			}
			if home := e.Home.Seconds(); home < f.all()-1e-6 || home > f.all()+f.window {
				t.Fatalf("seed %d: home in %v, want %v", seed, home, f.all())
			}
		}
		for _, measured := range []bool{false, true} {
			o := f.chosen(orders, measured, false)
			chosen[o]++
			if !measured && (o == NotAtAll || o == CPUsFirst && f.cpus.from < f.floor()) {
				t.Fatalf("seed %d: %s rests on a rate that was not measured: %+v", seed, o, f)
			}
			if o == CPUsFirst && orders[0].Below > 0 {
				t.Fatalf("seed %d: CPUs first is worse for %v: %+v", seed, orders[0].Below, f)
			}
		}
	}
	for _, o := range []Order{CPUsFirst, MemoryFirst, InSteps, NotAtAll} {
		if chosen[o] < 20 {
			t.Errorf("%s: chosen %d times, too few to have tested anything", o, chosen[o])
		}
	}
}

func randomForecast(r *rand.Rand) forecast {
	home, cpu := r.Float64(), r.Float64() // shares of memory and CPU time that are there
	f := forecast{cpus: ramp{home, 1}, memory: ramp{home*cpu + (1-home)*(1-cpu), cpu}, window: 10, horizon: 600}
	f.before = f.memory.from
	f.own = math.Exp(r.Float64()*10 - 1)
	if r.IntN(3) == 0 {
		f.wait = f.own * r.Float64()
	}
	return f
}

// twin is the lowest ratio and how long it is below the floor, second by second; the
// first window of CPUs first by its mean.
func twin(f forecast, o Order) (least, below float64) {
	const parts = 4000
	x := map[Order]float64{CPUsFirst: 0, MemoryFirst: 1, InSteps: f.crossing()}[o]
	at := func(s float64) float64 {
		done := max(0, min(1, (s-f.wait)/f.own))
		if done < x {
			return f.memory.at(done)
		}
		return f.cpus.at(done)
	}
	mean := 0.0
	for i := range parts {
		mean += at(f.window*(float64(i)+0.5)/parts) / parts
	}
	if o == CPUsFirst && mean >= f.floor() {
		return mean, 0
	}
	least = math.Inf(1)
	for i := range parts {
		v := at(f.all() * (float64(i) + 0.5) / parts)
		if least = min(least, v); v < f.floor() {
			below += f.all() / parts
		}
	}
	if o == CPUsFirst {
		least = mean
	}
	return least, below
}

// A mover that falls to a tenth at any time undoes the bind, reports it with its
// figures, and the earlier settings are restored. Two binds are never undone without a
// wait between them, which doubles; a bind whose mover keeps its rate is never undone.
func TestSlowMoverUndoes(t *testing.T) {
	undone := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 8))
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1}, 2, 8*unit.GiB)
		line(h, "workload /w0 cpu=1 cpus=0-3 mems=0-1 anon=4GiB local=1000000 remote=1000000")
		slow := r.IntN(2) == 0
		when := 2 + r.IntN(10)
		last, ends := -1, 0
		for n := range 120 {
			if slow && n == when {
				h.Mover = cfg.Rate / 10
			}
			w := h.Window()
			wanted := []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(1)}}
			next, steps, outcomes := Step(h.Machine, cfg, st, wanted, w)
			for _, o := range outcomes {
				if !strings.HasPrefix(o.Step.Reason.Rule, "actuate.undone") {
					continue
				}
				undone++
				if least := undoneWait << min(ends, longestWait); last >= 0 && n-last <= least {
					t.Fatalf("seed %d: undone in windows %d and %d, the wait is %d", seed, last, n, least)
				}
				last, ends = n, ends+1
				named := slices.ContainsFunc(o.Step.Reason.Numbers, func(x action.Number) bool { return x.Name == "rate_lately" })
				restores := slices.ContainsFunc(steps, func(s action.Step) bool { return s.Kind == action.Restore })
				if o.Status != action.Refused || !o.Undone || !named || !restores || !slow || n <= when {
					t.Fatalf("seed %d window %d (slow from %d: %v): %+v, steps %v", seed, n, when, slow, o, steps)
				}
			}
			h.Apply(steps)
			h.Report(outcomes...)
			st = next
		}
		if slow && ends == 0 {
			t.Fatalf("seed %d: slow from window %d on and never undone", seed, when)
		}
		if j, _ := st.Job("/w0"); !slow && (j.Stage != StageBound || !j.Way.Over || j.Way.Moved != 4*unit.GiB) {
			t.Fatalf("seed %d: %s %+v", seed, j.Stage, j.Way)
		}
	}
	if undone < 50 {
		t.Errorf("only %d were undone", undone)
	}
}

// In a world that behaves as estimated no window is worse than the one before the bind
// for longer than expected, and except for one window no bind is undone.
func TestNoWindowIsWorse(t *testing.T) {
	orders, worse := map[Order]int{}, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 9))
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		nodes := 2 + r.IntN(3)
		h.Shape([]int{0, 1, 2, 3}[:nodes], 2, 8*unit.GiB)
		cfg.Rate = unit.Bytes(16<<r.IntN(5)) * unit.MiB
		line(h, "workload /w0 cpu=1 cpus=0-%d mems=0-%d on=%d,%d anon=%dMiB,%dMiB local=1000000 remote=1000000",
			2*nodes-1, nodes-1, 1+r.IntN(3), r.IntN(3), 1+r.IntN(900), r.IntN(900))
		h.Serve(h.Load("/w0"))
		before, below := -1.0, 0
		for n := range 150 {
			w := h.Window()
			wl, _ := w.Workload("/w0")
			ratio := float64(window.LocalAccess(&wl).Or(-1))
			var wanted []action.Action
			if n == 2 {
				before = ratio
				wanted = []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(r.IntN(nodes))}}
			}
			next, steps, outcomes := Step(h.Machine, cfg, st, wanted, w)
			for _, o := range outcomes {
				if o.Step.Reason.Rule != "actuate.way.none" {
					t.Fatalf("seed %d window %d: %+v", seed, n, o)
				}
				orders[NotAtAll]++
			}
			j, _ := next.Job("/w0")
			if below++; before < 0 || ratio >= before*(1-tolerated)-1e-6 || !j.onWay() {
				below = 0
			}
			if below > 0 {
				worse++
			}
			if time.Duration(below)*h.Length > j.Way.allowed()+h.Length {
				t.Fatalf("seed %d window %d: below %v for %d windows, %v was expected: %s", seed, n, before, below, j.Way.allowed(), words.Sentence(j.Way.Reason("", j.Nodes)))
			}
			if j.Way.Over && n > 3 {
				orders[j.Way.Order]++
			}
			h.Apply(steps)
			h.Report(outcomes...)
			st = next
		}
	}
	for _, o := range []Order{CPUsFirst, InSteps} {
		if orders[o] == 0 {
			t.Errorf("%s: never", o)
		}
	}
	if worse == 0 {
		t.Error("no window was ever worse: nothing was tested")
	}
}

// Memory that grows elsewhere as fast as it is moved never lets the CPUs be set: that
// is undone, too, after three times the expected time.
func TestMemoryThatNeverComes(t *testing.T) {
	h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
	h.Shape([]int{0, 1}, 2, 64*unit.GiB)
	cfg.Rate = 64 * unit.MiB
	wanted := []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(1)}}
	for n := range 60 {
		line(h, "workload /w0 cpu=1 cpus=0-3 mems=0-1 anon=%dMiB,%dMiB local=1000000 remote=1000000", 512-n, 4)
		next, steps, outcomes := Step(h.Machine, cfg, st, wanted, h.Window())
		wanted, st = nil, next
		if slices.ContainsFunc(steps, func(s action.Step) bool { return s.Kind == action.SetCPUs }) {
			t.Fatalf("window %d: %v", n, steps)
		}
		if len(outcomes) > 0 {
			if outcomes[0].Step.Reason.Rule != "actuate.undone.late" || n < 3*8 {
				t.Errorf("window %d: %+v", n, outcomes[0])
			}
			return
		}
		h.Apply(steps)
	}
	t.Errorf("never undone: %+v", st.Jobs)
}

// A workload that moves its memory first, and then has none any more or may no longer
// be moved, gets its CPUs.
func TestNothingLeftToGoAhead(t *testing.T) {
	for _, change := range []string{"anon=0,0", `pinned-mems="numa_maps"`} {
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1}, 2, 8*unit.GiB)
		line(h, "workload /w0 cpu=1 cpus=0-3 mems=0-1 anon=2GiB local=1000000 remote=1000000")
		wanted := []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(1)}}
		asked := 0
		for n := range 8 {
			if n == 2 {
				line(h, "workload /w0 %s", change)
			}
			next, steps, outcomes := Step(h.Machine, cfg, st, wanted, h.Window())
			wanted, st = nil, next
			for _, s := range steps {
				if s.Kind == action.SetCPUs {
					asked++
				}
			}
			if len(outcomes) > 0 {
				t.Errorf("%s: %+v", change, outcomes)
			}
			h.Apply(steps)
		}
		if j, _ := st.Job("/w0"); asked != 1 || j.Stage != StageBound && j.Stage != StageCPUsOnly {
			t.Errorf("%s: CPUs were asked for %d times, %s", change, asked, j.Stage)
		}
	}
}

// Instructions a cycle count where no thread can spin for another: with one task.
func TestWorkPerCycle(t *testing.T) {
	for tasks, undone := range map[int]bool{1: true, 2: false} {
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1}, 2, 8*unit.GiB)
		line(h, "workload /w0 tasks=%d cpu=1 cpus=0-3 mems=0-1 anon=1GiB,3GiB local=1000000 remote=1000000 cycles=1000000 instructions=800000", tasks)
		wanted := []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(1)}}
		var all []action.Outcome
		for n := range 6 {
			if n == 1 {
				line(h, "workload /w0 instructions=700000")
			}
			next, steps, outcomes := Step(h.Machine, cfg, st, wanted, h.Window())
			wanted, all = nil, append(all, outcomes...)
			h.Apply(steps)
			st = next
		}
		if got := len(all) == 1 && strings.Contains(words.Became(all[0]), "work per cycle"); got != undone {
			t.Errorf("%d tasks: %v", tasks, all)
		}
	}
}

// afterMove is the state after one move of a workload.
func afterMove(moved unit.Bytes, status action.Status, took time.Duration) State {
	h, cfg := newHost(2), DefaultConfig()
	w := h.Window()
	w.Outcomes = []action.Outcome{{
		Step:   action.Step{Kind: action.MovePages, Workload: workload(0), Nodes: set.FromNodes(1), Budget: 64 * unit.MiB},
		Status: status, Moved: moved, Took: took,
	}}
	next, _, _ := Step(h.Machine, cfg, State{Jobs: []Job{{Workload: workload(0), Stage: StageRestoring}}}, nil, w)
	return next
}

// Steps that moved enough show the rate, whether their budget ended them or not.
func TestPace(t *testing.T) {
	next := afterMove(64*unit.MiB, action.Done, 500*time.Millisecond)
	if rate := next.Pace.rate().Or(0); rate != float64(128*unit.MiB) {
		t.Errorf("%v a second", unit.Bytes(rate))
	}
}

// A workload that had a single page to move, which took a second of looking for it, says
// nothing about how fast others' memory would follow. With that rate no other workload
// was ever bound.
func TestFewPagesShowNoRate(t *testing.T) {
	for _, status := range []action.Status{action.Done, action.InProgress} {
		if rate, known := afterMove(4*unit.KiB, status, time.Second).Pace.rate().Get(); known {
			t.Errorf("%v: %v a second", status, unit.Bytes(rate))
		}
	}
}
