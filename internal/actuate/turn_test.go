// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// A machine that moves little in a turn, however much may be moved: the first takes the
// turn, and the moves of the others have no outcome. All come home, each in one move;
// none is given up for waiting; none waits for longer than the others may be first.
func TestSlowMachine(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 5))
		h, cfg, st := newHost(2), DefaultConfig(), State{}
		cfg.Rate, cfg.Turn = []unit.Bytes{0, 256 * unit.MiB}[r.IntN(2)], time.Second
		speed := unit.Bytes(1+r.IntN(8)) * unit.MiB // a turn
		var wanted []action.Action
		for i := range random {
			wanted = append(wanted, action.Action{Kind: action.Bind, Workload: workload(i), Nodes: set.FromNodes(1)})
		}
		waited, home := map[string]int{}, map[string]int{}
		n := 0
		for ; len(home) < random && n < 1000; n++ {
			w := h.Window()
			var steps []action.Step
			st, steps, _ = Step(h.Machine, cfg, st, wanted, w)
			wanted = nil
			h.Apply(slowly(steps, speed, waited))
			for _, j := range st.Jobs {
				if waited[j.Workload] > (random-1)*firstFor || j.Stage == StageCPUsOnly {
					t.Fatalf("seed %d window %d: %s waited %d windows, is %s %s", seed, n, j.Workload, waited[j.Workload], j.Stage, said(j.Why))
				}
				if j.Stage == StageBound && home[j.Workload] == 0 {
					home[j.Workload] = n
				}
			}
		}
		if len(home) < random || home[workload(0)] > n/3 {
			t.Fatalf("seed %d: at home after %v of %d windows", seed, home, n)
		}
		for _, p := range st.Past {
			if len(p.Moves) != 1 {
				t.Fatalf("seed %d: %s was moved %d times: %v", seed, p.Workload, len(p.Moves), p.Moves)
			}
		}
	}
}

// slowly is the part of these steps that is done: all but the moves after the first,
// whose workloads wait.
func slowly(steps []action.Step, speed unit.Bytes, waited map[string]int) (taken []action.Step) {
	first := true
	for _, s := range steps {
		switch {
		case s.Kind != action.MovePages:
			taken = append(taken, s)
		case first:
			first, waited[s.Workload] = false, 0
			s.Budget = min(s.Budget, speed)
			taken = append(taken, s)
		default:
			waited[s.Workload]++
		}
	}
	return taken
}

// A workload whose moves are tried and bring nothing is still given up, though it is
// first: with its CPUs if those were set before, else with nothing, and its policy gets
// an outcome.
func TestFirstThatGetsNowhere(t *testing.T) {
	j, _ := getsNowhere(AlwaysCPUsFirst)
	if j.Stage != StageCPUsOnly {
		t.Errorf("%+v", j)
	}
	j, outcomes := getsNowhere(ByEstimate)
	if j.Stage != stageDone || len(outcomes) != 1 || outcomes[0].Status != action.Refused || !strings.Contains(words.Became(outcomes[0]), "no page moved in 3 windows") {
		t.Errorf("%+v %+v", j, outcomes)
	}
}

func getsNowhere(way Choice) (Job, []action.Outcome) {
	h, cfg, st := newHost(2), DefaultConfig(), State{}
	cfg.Way = way
	var all []action.Outcome
	wanted := []action.Action{{Kind: action.Bind, Workload: workload(0), Nodes: set.FromNodes(1)}}
	for range 6 {
		var steps []action.Step
		line(h, "fault %s move-pages in-progress", workload(0))
		var outcomes []action.Outcome
		st, steps, outcomes = Step(h.Machine, cfg, st, wanted, h.Window())
		wanted, all = nil, append(all, outcomes...)
		h.Apply(steps)
	}
	j, _ := st.Job(workload(0))
	return j, all
}

func TestOrder(t *testing.T) {
	move := func(id string) action.Step { return action.Step{Kind: action.MovePages, Workload: id} }
	for _, c := range []struct {
		first   string
		windows int
		want    string
	}{
		{"", 0, "a 1 [a b c]"},
		{"b", 1, "b 2 [b c a]"},
		{"b", firstFor, "c 1 [c a b]"},
		{"c", firstFor, "a 1 [a b c]"},
		{"bb", 3, "c 1 [c a b]"}, // ended
		{"d", 3, "a 1 [a b c]"},
	} {
		r := &round{jobs: []Job{{Workload: "a"}, {Workload: "b"}, {Workload: "bb"}, {Workload: "c"}}}
		r.steps = []action.Step{{Kind: action.SetMems, Workload: "bb"}, move("a"), move("b"), move("c")}
		first, windows := r.order(c.first, c.windows)
		var ids []string
		for _, s := range r.steps[1:] {
			ids = append(ids, s.Workload)
		}
		if got := fmt.Sprint(first, " ", windows, " ", ids); got != c.want || r.steps[0].Kind != action.SetMems || r.jobs[2].Asked || !r.jobs[3].Asked {
			t.Errorf("%s for %d: %s, want %s", c.first, c.windows, got, c.want)
		}
	}
}

// A workload that is busy now and then moves if that pays on average, or in as many
// windows in a row as it must.
func TestWeigh(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		h := newHost(2)
		line(h, "workload /w0 local=100 remote=0 anon=200MiB")
		cfg, st := DefaultConfig(), State{}
		busy, of := 1+r.IntN(4), 4
		wanted := []action.Action{{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(1)}}
		times := []int{1, 3, 100}[r.IntN(3)]
		moved := false
		for n := range 60 {
			rate := 0
			if n%of >= of-busy {
				rate = times * 5000 // about the cost of its pages
			}
			line(h, "workload /w0 local=100 remote=%d", rate)
			w := h.Window()
			var steps []action.Step
			st, steps, _ = Step(h.Machine, cfg, st, wanted, w)
			wanted = nil
			moved = moved || moves(steps)
			h.Apply(steps)
			if j, _ := st.Job("/w0"); j.Credit < 0 || j.Credit > cfg.Horizon.Seconds() || (j.Waiting && j.Turn > 0) != (j.Waiting && j.Credit > 0) {
				t.Fatalf("seed %d: %+v", seed, j)
			}
		}
		if pays := busy*times > of || busy >= cfg.NoProgressWindows; moved != pays {
			t.Errorf("busy in %d of %d windows at %d times the cost: moved %v", busy, of, times, moved)
		}
	}
}

func moves(steps []action.Step) bool {
	for _, s := range steps {
		if s.Kind == action.MovePages {
			return true
		}
	}
	return false
}

// The hot pages of all workloads come before any other pages, whichever workload is
// first.
func TestHotPagesComeFirst(t *testing.T) {
	move := func(id string) action.Step { return action.Step{Kind: action.MovePages, Workload: id} }
	for _, c := range []struct {
		home  string // whose hot pages are there
		first string
		want  string
	}{
		{"", "b", "b [b c a]"},
		{"b", "b", "c [c a b]"},
		{"bc", "c", "a [a b c]"},
		{"abc", "b", "b [b c a]"},
	} {
		r := &round{cfg: Config{HotFirst: true}, steps: []action.Step{move("a"), move("b"), move("c")}}
		for _, id := range []string{"a", "b", "c"} {
			r.jobs = append(r.jobs, Job{Workload: id, HotHome: strings.Contains(c.home, id)})
		}
		first, _ := r.order(c.first, 1)
		var ids []string
		for _, s := range r.steps {
			ids = append(ids, s.Workload)
		}
		if got := fmt.Sprint(first, " ", ids); got != c.want {
			t.Errorf("home %q, first %s: %s, want %s", c.home, c.first, got, c.want)
		}
	}
}
