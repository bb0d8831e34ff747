// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
)

// steps parses "a:set-cpus=refused b:move-pages": the outcome of each step, done by
// default.
func stepsOf(text string) (steps []action.Step, become []action.Status) {
	for _, word := range strings.Fields(text) {
		name, status, _ := strings.Cut(word, "=")
		workload, kind, _ := strings.Cut(name, ":")
		if status == "" {
			status = string(action.Done)
		}
		steps = append(steps, action.Step{Workload: workload, Kind: action.StepKind(kind), Thread: len(steps) + 1})
		become = append(become, action.Status(status))
	}
	return steps, become
}

// takes is an InOrder with these outcomes; Thread is a step's number from 1.
func takes(become []action.Status, taken *[]int) InOrder {
	return InOrder{Take: func(_ context.Context, s action.Step) action.Outcome {
		*taken = append(*taken, s.Thread)
		if become[s.Thread-1] == "goes-on" {
			return action.Outcome{Step: s}
		}
		return action.Outcome{Step: s, Status: become[s.Thread-1]}
	}}
}

func TestInOrder(t *testing.T) {
	for _, c := range []struct{ name, steps, taken, told string }{
		{"all", "a:restore b:set-cpus a:set-mems b:move-pages", "1 2 3 4", "1 2 3 4"},
		{"a dry run goes on", "a:set-cpus=dry-run a:set-mems=dry-run a:move-pages=dry-run", "1 2 3", "1 2 3"},
		{"refused", "a:set-cpus=refused b:set-cpus a:set-mems b:set-mems a:move-pages b:move-pages", "1 2 4 6", "1 2 4 6"},
		{"failed", "a:set-cpus=failed a:set-mems", "1", "1"},
		{"drifted", "a:set-cpus=drifted a:set-mems", "1", "1"},
		{"gone", "a:set-cpus=gone a:set-mems", "1", "1"},
		{"in progress", "a:set-mems=in-progress a:move-pages", "1 2", "1 2"},
		{"a class that is refused", "a:set-cpus a:set-class=refused a:move-pages b:move-pages", "1 2 4", "1 2 4"},
		{"a thread stops nothing", "a:pin-thread=gone a:pin-thread a:set-class", "1 2 3", "1 2 3"},
		{"and is not stopped", "a:set-cpus=refused a:pin-thread a:move-pages", "1 2", "1 2"},
		{"what goes on is not told", "a:move-pages=goes-on a:move-pages b:move-pages", "1 2 3", "2 3"},
	} {
		steps, become := stepsOf(c.steps)
		var taken, told []int
		takes(become, &taken).Apply(t.Context(), steps, func(o action.Outcome) { told = append(told, o.Step.Thread) })
		if got := strings.Trim(fmt.Sprint(taken), "[]"); got != c.taken {
			t.Errorf("%s: took %s, want %s", c.name, got, c.taken)
		}
		if got := strings.Trim(fmt.Sprint(told), "[]"); got != c.told {
			t.Errorf("%s: told %s, want %s", c.name, got, c.told)
		}
	}
}

// A step is left out exactly when an earlier step of its workload was taken and not done.
// Threads are excepted.
func TestInOrderLeavesOut(t *testing.T) {
	kinds := []action.StepKind{action.Restore, action.SetCPUs, action.SetMems, action.PinThread, action.SetClass, action.MovePages}
	statuses := []action.Status{action.Done, action.InProgress, action.DryRun, action.Refused, action.Failed, action.Drifted, action.Gone, "goes-on"}
	left := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var steps []action.Step
		var become []action.Status
		for i := range r.IntN(12) {
			steps = append(steps, action.Step{Workload: string(rune('a' + r.IntN(3))), Kind: kinds[r.IntN(len(kinds))], Thread: i + 1})
			become = append(become, statuses[r.IntN(len(statuses))])
		}
		var taken []int
		takes(become, &taken).Apply(t.Context(), steps, func(action.Outcome) {})
		for i, s := range steps {
			stopped := s.Kind != action.PinThread && slices.ContainsFunc(taken, func(k int) bool {
				x := steps[k-1]
				return k <= i && x.Workload == s.Workload && x.Kind != action.PinThread && slices.Contains(statuses[3:7], become[k-1])
			})
			if slices.Contains(taken, i+1) == stopped {
				t.Fatalf("seed %d: step %d of %v, %v: took %v", seed, i+1, steps, become, taken)
			}
			if stopped {
				left++
			}
		}
		if !slices.IsSorted(taken) {
			t.Fatalf("seed %d: took %v", seed, taken)
		}
	}
	if left == 0 {
		t.Error("nothing was ever left out: nothing was tested")
	}
}

// Once the context has ended no step begins, not even the first move, which is otherwise
// taken in any case.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	for _, text := range []string{"a:move-pages", "a:set-cpus b:set-cpus", "a:pin-thread"} {
		steps, become := stepsOf(text)
		var taken []int
		o := takes(become, &taken)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.Now, o.MoveLimit = time.Now, time.Hour
		o.Apply(ctx, steps, func(action.Outcome) { t.Error("told") })
		o.Later = func(context.Context, []action.Step) { t.Error("handed on") }
		o.Apply(ctx, steps, func(action.Outcome) { t.Error("told") })
		if len(taken) != 0 {
			t.Errorf("%s: took %v", text, taken)
		}
	}
	steps, become := stepsOf("a:set-cpus b:set-cpus c:move-pages")
	var taken []int
	ctx, cancel := context.WithCancel(t.Context())
	o := takes(become, &taken)
	o.Later = func(context.Context, []action.Step) { t.Error("handed on") }
	o.Apply(ctx, steps, func(action.Outcome) { cancel() })
	if !slices.Equal(taken, []int{1}) {
		t.Errorf("the context ended within the first step, and it took %v", taken)
	}
}

// The moves of a window share a time limit. The first is taken however late it is, and
// its deadline is the rest of that time; moves that come too late are left for the next
// window. Other steps are not limited.
func TestMovesHaveALimit(t *testing.T) {
	steps, _ := stepsOf("a:set-cpus a:move-pages b:move-pages c:move-pages d:move-pages")
	now := time.Now().Add(time.Hour)
	began := now
	var taken []int
	o := InOrder{Now: func() time.Time { return now }, MoveLimit: 15 * time.Second}
	o.Take = func(ctx context.Context, s action.Step) action.Outcome {
		taken = append(taken, s.Thread)
		end, limited := ctx.Deadline()
		if limited != (s.Kind == action.MovePages) || limited && !end.Equal(began.Add(10*time.Second+15*time.Second)) {
			t.Errorf("step %d: deadline %v, %v", s.Thread, limited, end.Sub(began))
		}
		now = now.Add(10 * time.Second)
		return action.Outcome{Step: s, Status: action.InProgress}
	}
	o.Apply(t.Context(), steps, func(o action.Outcome) {
		if o.Took != 10*time.Second {
			t.Errorf("step %d took %v", o.Step.Thread, o.Took)
		}
	})
	if !slices.Equal(taken, []int{1, 2, 3}) {
		t.Errorf("took %v", taken)
	}
	taken, o.MoveLimit = nil, 1 // the shortest limit
	began = now.Add(-25*time.Second + 1)
	o.Apply(t.Context(), steps[1:], func(action.Outcome) {})
	if !slices.Equal(taken, []int{2}) {
		t.Errorf("a short limit: took %v", taken)
	}
}

// Moves for Later are passed on together, without those of workloads that stopped.
func TestLaterMoves(t *testing.T) {
	steps, become := stepsOf("a:set-cpus=refused b:set-cpus a:move-pages b:move-pages c:move-pages")
	var taken, later []int
	o := takes(become, &taken)
	o.Later = func(_ context.Context, moves []action.Step) {
		for _, s := range moves {
			later = append(later, s.Thread)
		}
	}
	o.Apply(t.Context(), steps, func(action.Outcome) {})
	if !slices.Equal(taken, []int{1, 2}) || !slices.Equal(later, []int{4, 5}) {
		t.Errorf("took %v, later %v", taken, later)
	}
}
