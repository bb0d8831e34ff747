// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"homenode/internal/sim"
	"homenode/internal/sim/runner"
	"homenode/internal/sim/threadworld"
)

func run(t *testing.T, p Plan, workers int) Result {
	t.Helper()
	r, err := Run(context.Background(), p, workers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encode(t *testing.T, r Result) []byte {
	t.Helper()
	data, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Each is run with all others, in order; figures are after the warm-up.
func TestDecisionRun(t *testing.T) {
	r := run(t, toyPlan(), 2)
	if len(r.Cells) != 2*2*4*3 {
		t.Fatalf("%d cells", len(r.Cells))
	}
	c := r.Cells[2] // seed 3 of the first policy
	if c.name() != (&Cell{Machine: "one", Mix: "loops", Policy: runner.None, Seed: 3}).name() || len(c.Apps) != 2 {
		t.Fatalf("%+v", c)
	}
	a, b := c.Apps[0], c.Apps[1]
	if a.ID != "/a" || math.Abs(a.Ops-103) > 1e-9 || a.IPC != 2 || math.Abs(a.MPI-1.0/3) > 1e-12 || a.LocalRatio != 0.75 || a.Penalty != 30 || a.Fairness != 1 {
		t.Errorf("%+v", a)
	}
	if b.ID != "/b" || b.Threads != 2 || math.Abs(b.Fairness-0.5) > 1e-12 || math.Abs(b.P99S-2/103.0) > 1e-9 || math.Abs(b.CPUPerOp-2/103.0) > 1e-9 {
		t.Errorf("%+v", b)
	}
	if r.Policies[0].PeriodS != 0 || r.Policies[2].PeriodS != 3 || r.Policies[3].PeriodS != 5 || r.Machines[0].CPUs != 112 || r.Mixes[0].WarmupS != 2 {
		t.Errorf("%+v %+v %+v", r.Policies, r.Machines, r.Mixes)
	}
}

// The same plan is the same bytes, whatever the number of workers.
func TestRunIsTheSameWithAnyNumberOfWorkers(t *testing.T) {
	p := toyPlan()
	p.Mixes[1].Lasts = 30 * time.Second // another order of work
	one, again := encode(t, run(t, p, 1)), encode(t, run(t, p, 7))
	if !bytes.Equal(one, again) {
		t.Errorf("%s\n%s", one, again)
	}
	back, err := Decode(one)
	if err != nil || !reflect.DeepEqual(back, run(t, p, 2)) {
		t.Errorf("%v: what was written is not what is read", err)
	}
}

// A real policy also runs in the world of amounts.
func TestRunInTheWorldOfAmounts(t *testing.T) {
	p := toyPlan()
	p.Machines, p.Mixes, p.Seeds, p.Policies = p.Machines[:1], p.Mixes[:1], []uint64{1}, []string{runner.None, runner.Hand}
	p.Mixes[0].Specs = func(*Machine, uint64) []sim.Spec {
		return []sim.Spec{{
			Name: "a", Threads: 8, Memory: sim.MemorySpec{Private: 8 << 30},
			Work: sim.WorkSpec{Cycles: 1e5, Instructions: 1e5, Regions: []sim.RegionSpec{{Size: 1 << 30, Accesses: 2000, Parallelism: 1}}},
		}}
	}
	p.Mixes[0].Step = 100 * time.Millisecond
	p.World = func(c sim.Config) (World, error) { return sim.NewWorld(c) }
	r := run(t, p, 2)
	if len(r.Cells) != 2 || !(r.Cells[0].Apps[0].Ops > 0) || r.Cells[1].Binds != 1 || r.Cells[1].Moves != 1 || !(r.Cells[0].Apps[0].P99S > 0) {
		t.Errorf("%+v", r.Cells)
	}
}

func TestDecisionLeavesOutWhatDoesNotFit(t *testing.T) {
	p := toyPlan()
	p.Mixes[0].Fits = func(m *Machine) bool { return m.Name == "two" }
	r := run(t, p, 2)
	if len(r.Cells) != 3*4*3 || r.Cells[0].Mix != "more" || r.Validate() != nil {
		t.Errorf("%d cells, %v", len(r.Cells), r.Validate())
	}
}

// A cell that fails is named, and ends the others.
func TestDecisionRunNamesWhatFailed(t *testing.T) {
	p := toyPlan()
	p.Mixes[1].Specs = func(*Machine, uint64) []sim.Spec { return []sim.Spec{{Name: "bad"}} }
	_, err := Run(context.Background(), p, 2, nil)
	if err == nil || !strings.Contains(err.Error(), "machine one, mix more, policy") || !strings.Contains(err.Error(), `workload "bad" has no threads`) {
		t.Errorf("%v", err)
	}
}

func TestDecisionRunEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := toyPlan()
	make := p.World
	var once sync.Once
	p.World = func(c sim.Config) (World, error) {
		w, err := make(c)
		w.(toyThreads).wait = func() { once.Do(cancel) }
		return w, err
	}
	if r, err := Run(ctx, p, 2, nil); !errors.Is(err, context.Canceled) || len(r.Cells) != 0 {
		t.Errorf("%v, %d cells", err, len(r.Cells))
	}
}

// Progress ascends to 1.
func TestRunTellsHowFarItIs(t *testing.T) {
	last := 0.0
	var lock sync.Mutex
	_, err := Run(context.Background(), toyPlan(), 3, func(share float64) {
		lock.Lock()
		defer lock.Unlock()
		if share < last-1e-9 {
			t.Errorf("%v after %v", share, last)
		}
		last = share
	})
	if err != nil || math.Abs(last-1) > 1e-9 {
		t.Errorf("%v, %v", err, last)
	}
}

func TestDecisionBadPlans(t *testing.T) {
	for _, c := range []struct {
		change func(*Plan)
		want   string
	}{
		{func(p *Plan) { p.Seeds = nil }, "0 seeds"},
		{func(p *Plan) { p.Against = "hand" }, `compared with "hand"`},
		{func(p *Plan) { p.Policies = append(p.Policies, "luck") }, `no policy "luck"`},
		{func(p *Plan) { p.Policies = append(p.Policies, runner.None) }, "twice"},
		{func(p *Plan) { p.Mixes[0].Specs = nil }, "no workloads"},
		{func(p *Plan) { p.Mixes[0].Period = 0 }, "want a period"},
	} {
		p := toyPlan()
		c.change(&p)
		if _, err := Run(context.Background(), p, 1, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// A thread that does nothing for a while waits for its operation all that time.
func TestDecisionPercentileOfStarvedThreads(t *testing.T) {
	b := newBook([]sim.Spec{{Name: "a", Threads: 1}}, 0)
	ops := []float64{10, 10, 10, 14}
	for i, o := range ops {
		b.lookAtThreads([]threadworld.ThreadTruth{{Workload: "/a", ID: 1, Ops: o}}, time.Duration(i+1)*time.Second, true)
		b.seen = time.Duration(i+1) * time.Second
	}
	if each := b.apps["/a"].each; len(each) != 2 || each[0] != 0.1 || each[1] != 0.75 {
		t.Errorf("%v", each)
	}
}

func TestDecisionPercentile99(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(100-i))
	}
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {hundred, 99}, {append(hundred, 1000), 100}, {hundred[:50], 100}} {
		if got := percentile99(c.of); got != c.want {
			t.Errorf("%d values: %v, want %v", len(c.of), got, c.want)
		}
	}
}
