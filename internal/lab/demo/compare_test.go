// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"homenode/internal/lab"
	"homenode/internal/unit"
)

// fakeGuest is a lab in which a run is two steps and a result.
type fakeGuest struct {
	t      *testing.T
	plan   Plan
	ran    int
	closed int
	// during is called in the middle of each run, and may end it.
	during func(ctx context.Context, ran int) (lab.Result, error)
}

func (g *fakeGuest) Put(_ context.Context, path string, _ os.FileMode, data []byte) error {
	if path == planFile {
		return json.Unmarshal(data, &g.plan)
	}
	return nil
}

func (g *fakeGuest) RunLines(ctx context.Context, line func(string), argv ...string) (lab.Result, error) {
	if want := []string{"homenode-lab", "arm", planFile, resultFile}; !slices.Equal(argv, want) {
		g.t.Errorf("ran %q", argv)
	}
	g.ran++
	line(Step{Stage: StageLoad}.line())
	line("a word that is no step")
	line(Step{Stage: StageWarm, Of: g.plan.Mix.Warmup}.line())
	line(Step{Stage: StageWarm, Done: g.plan.Mix.Warmup, Of: g.plan.Mix.Warmup, Local: unit.Some(0.5)}.line())
	if g.during != nil {
		if r, err := g.during(ctx, g.ran); err != nil || r.Exit != 0 {
			return r, err
		}
	}
	line(Step{Stage: StageEnd}.line())
	return lab.Result{}, nil
}

func (g *fakeGuest) Fetch(_ context.Context, path string) ([]byte, error) {
	if path != resultFile {
		return nil, fmt.Errorf("fetched %s", path)
	}
	return json.Marshal(run(g.plan.Arm, g.plan.Repeat, 100, 0.9, 50, true))
}

func (g *fakeGuest) Close() { g.closed++ }

// reports is what a comparison reported.
type reports struct {
	mu       sync.Mutex
	kept     []RunResult
	progress []Progress
}

func compareFake(ctx context.Context, t *testing.T, g *fakeGuest) (*reports, error) {
	t.Helper()
	mix := judgeMix()
	mix.Warmup, mix.Measure, mix.Repeats = 10, 4, 2
	var seen reports
	g.t = t
	_, err := Compare(ctx, Options{
		Mix: mix, Arms: Arms,
		Progress: func(p Progress) {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.progress = append(seen.progress, p)
		},
		Keep: func(r RunResult) { seen.kept = append(seen.kept, r) },
		boot: func(context.Context) (guest, error) { return g, nil },
	})
	if g.closed != 1 {
		t.Errorf("the guest was closed %d times", g.closed)
	}
	return &seen, err
}

func TestDecisionCompareToItsEnd(t *testing.T) {
	var g fakeGuest
	seen, err := compareFake(t.Context(), t, &g)
	if err != nil || g.ran != 10 || len(seen.kept) != 10 {
		t.Fatalf("%d runs, %d kept, %v", g.ran, len(seen.kept), err)
	}
	for _, r := range seen.kept {
		if r.HostSeconds < r.HostAround || r.HostAround < 0 {
			t.Errorf("a run of %v s, of which %v s around it", r.HostSeconds, r.HostAround)
		}
	}
	first, last := seen.progress[0], seen.progress[len(seen.progress)-1]
	if first.Left.Known() || len(first.Now) != 0 || first.All != 10 {
		t.Errorf("at first: %+v", first)
	}
	if last.Done != 9 || len(last.Now) != 1 || last.Now[0].Step.Stage != StageEnd || !last.Left.Known() || last.Now[0].Arm == "" {
		t.Errorf("at last: %+v", last)
	}
}

// Two guests do every second run each, both at a time, and the results are in the plan's
// order, whichever was faster.
func TestDecisionCompareWithTwoGuests(t *testing.T) {
	var mu sync.Mutex
	var guests []*fakeGuest
	both, slow := make(chan struct{}), make(chan struct{})
	mix := judgeMix()
	mix.Warmup, mix.Measure, mix.Repeats = 10, 4, 2
	most := 0
	c, err := Compare(t.Context(), Options{
		Mix: mix, Arms: Arms, Guests: 2,
		Progress: func(p Progress) { most = max(most, len(p.Now)) },
		boot: func(context.Context) (guest, error) {
			mu.Lock()
			defer mu.Unlock()
			g := &fakeGuest{t: t}
			first := len(guests) == 0
			g.during = func(_ context.Context, ran int) (lab.Result, error) {
				switch { // the first guest waits in its first run until the second has done all
				case first && ran == 1:
					close(both)
					<-slow
				case !first && ran == 1:
					<-both
				case !first && ran == 5:
					close(slow)
				}
				return lab.Result{}, nil
			}
			guests = append(guests, g)
			return g, nil
		},
	})
	if err != nil || len(guests) != 2 || most != 2 {
		t.Fatalf("%d guests, at most %d at a time, %v", len(guests), most, err)
	}
	for _, g := range guests {
		if g.ran != 5 || g.closed != 1 {
			t.Errorf("a guest did %d runs, and was closed %d times", g.ran, g.closed)
		}
	}
	if len(c.Order) != 10 || len(c.Arms) != len(Arms) {
		t.Errorf("order %v, %d arms", c.Order, len(c.Arms))
	}
	for _, a := range c.Arms {
		if a.LocalSpread.N != 2 || a.Unsteady != 1 { // only the fake's first repeats are steady
			t.Errorf("arm %s has the results of other runs: %+v", a.Name, a)
		}
	}
}

// A guest that does not boot ends the other, too.
func TestDecisionCompareWithAGuestThatDoesNotBoot(t *testing.T) {
	mix := judgeMix()
	mix.Repeats = 2
	g, booted := &fakeGuest{t: t}, make(chan bool, 2)
	booted <- true
	booted <- false
	running := make(chan struct{})
	g.during = func(ctx context.Context, _ int) (lab.Result, error) {
		close(running)
		<-ctx.Done()
		return lab.Result{}, ctx.Err()
	}
	_, err := Compare(t.Context(), Options{
		Mix: mix, Arms: Arms, Guests: 2, Progress: func(Progress) {},
		boot: func(context.Context) (guest, error) {
			if <-booted {
				return g, nil
			}
			<-running
			return nil, errors.New("no lab")
		},
	})
	if err == nil || err.Error() != "no lab" || g.closed != 1 {
		t.Errorf("%v; the other guest was closed %d times", err, g.closed)
	}
}

// Ctrl-C in the third run: the guest is gone, and two runs are kept.
func TestDecisionCompareInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	g := fakeGuest{during: func(ctx context.Context, ran int) (lab.Result, error) {
		if ran < 3 {
			return lab.Result{}, nil
		}
		stop()
		<-ctx.Done()
		return lab.Result{}, fmt.Errorf("run in the lab: %w", ctx.Err())
	}}
	seen, err := compareFake(ctx, t, &g)
	if !errors.Is(err, context.Canceled) || len(seen.kept) != 2 || g.ran != 3 {
		t.Errorf("%d runs, %d kept, %v", g.ran, len(seen.kept), err)
	}
}

// A run that fails ends the comparison with the run's last message, and is not
// repeated.
func TestDecisionCompareFails(t *testing.T) {
	for said, want := range map[string]string{
		"homenode-lab: arm numad: no /var/run/numad.pid\n": "no /var/run/numad.pid",
		"": "ended with code 1",
	} {
		g := fakeGuest{during: func(_ context.Context, ran int) (lab.Result, error) {
			if ran < 2 {
				return lab.Result{}, nil
			}
			return lab.Result{Exit: 1, Stderr: said + Step{Stage: StageWarm, Done: 2}.line() + "\n"}, nil
		}}
		seen, err := compareFake(t.Context(), t, &g)
		if err == nil || !strings.Contains(err.Error(), want) || g.ran != 2 || len(seen.kept) != 1 {
			t.Errorf("%d runs, %d kept, %v", g.ran, len(seen.kept), err)
		}
	}
}
