// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine/machinetest"
	"homenode/internal/migration"
	"homenode/internal/policy/mao"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

const random = 5 // workloads in random histories

func workload(i int) string { return fmt.Sprintf("/w%d", i) }

func newHost(nodes int) *windowtest.Host {
	h := &windowtest.Host{}
	ids := make([]int, nodes)
	for i := range ids {
		ids[i] = i
	}
	h.Shape(ids, 2, unit.GiB)
	for i := range random {
		line(h, "workload %s approved cpu=1 cpus=0-%d mems=0-%d anon=%dMiB local=25000 remote=75000", workload(i), 2*nodes-1, nodes-1, 20*(i+1))
	}
	return h
}

// line plays a script line; one that does not apply here is left out.
func line(h *windowtest.Host, format string, args ...any) {
	_, _ = h.Line(strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Thousands of seeded random windows with refusals, failures, lost outcomes,
// drift, hotplug and vanishing workloads: the invariants hold after each.
func TestInvariants(t *testing.T) {
	seen := map[action.StepKind]int{}
	seeds := machinetest.Seeds(80, 400)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, cfg, st := newHost(2+r.IntN(3)), randomConfig(r), State{}
		cpusDone := map[string]bool{}
		for range 40 {
			disturb(r, h)
			w := h.Window()
			wanted := randomActions(r)
			before := jsonOf(t, st, w, wanted)
			next, steps, outcomes := Step(h.Machine, cfg, st, wanted, w)
			again, steps2, told2 := Step(h.Machine, cfg, st, wanted, w)
			if jsonOf(t, st, w, wanted) != before || !reflect.DeepEqual([]any{next, steps, outcomes}, []any{again, steps2, told2}) {
				t.Fatalf("seed %d window %d: not pure", seed, w.Seq)
			}
			follow(w, cpusDone)
			if why := broken(cfg, w, wanted, st, next, steps, cpusDone); why != "" {
				t.Fatalf("seed %d window %d: %s\nbefore %+v\nsteps %v", seed, w.Seq, why, st.Jobs, steps)
			}
			if why := notRestorable(h, cfg, next, w); why != "" {
				t.Fatalf("seed %d window %d: %s", seed, w.Seq, why)
			}
			for _, s := range steps {
				seen[s.Kind]++
			}
			h.Apply(steps)
			h.Report(outcomes...)
			st = roundTrip(t, next)
		}
	}
	for _, k := range []action.StepKind{action.SetCPUs, action.MovePages, action.SetMems, action.Restore} {
		if 4*seen[k] < 5*seeds {
			t.Errorf("%s: only %d times, too few to have tested anything", k, seen[k])
		}
	}
}

func randomConfig(r *rand.Rand) Config {
	cfg := DefaultConfig()
	cfg.Rate = []unit.Bytes{0, 1, 8 * unit.MiB, 64 * unit.MiB}[r.IntN(4)]
	cfg.NoProgressWindows, cfg.RetryLimit, cfg.ForgetAfter = 1+r.IntN(3), r.IntN(3), r.IntN(3)
	cfg.Horizon = time.Duration(1+r.IntN(60)) * time.Second
	cfg.WhenUnknown = []WhenUnknown{MoveAnyway, WaitToKnow}[r.IntN(2)]
	cfg.PayRatio, cfg.PingPongDoublings = []float64{0.1, 1, 20}[r.IntN(3)], r.IntN(4)
	cfg.PageCache = r.IntN(2) == 0
	cfg.Way = []Choice{ByEstimate, ByEstimate, AlwaysCPUsFirst}[r.IntN(3)]
	cfg.Turn = []time.Duration{0, 250 * time.Millisecond, time.Minute}[r.IntN(3)]
	if r.IntN(4) == 0 {
		cfg.ReservedCPUs = set.FromCPUs(0, 2)
	}
	return cfg
}

func randomActions(r *rand.Rand) []action.Action {
	var wanted []action.Action
	for range r.IntN(3) {
		a := action.Action{Kind: action.Bind, Workload: workload(r.IntN(random)), Nodes: set.FromNodes(r.IntN(3), r.IntN(3)), CPUsOnly: r.IntN(8) == 0}
		if r.IntN(4) == 0 {
			a = action.Action{Kind: action.Unbind, Workload: a.Workload}
		} else if r.IntN(2) == 0 { // exact CPUs, not all of them its nodes'
			a.CPUs = set.FromCPUs(r.IntN(8), r.IntN(8), r.IntN(8))
		}
		wanted = append(wanted, a)
	}
	return wanted
}

func disturb(r *rand.Rand, h *windowtest.Host) {
	id, nodes := workload(r.IntN(random)), len(h.Machine.Nodes)
	switch r.IntN(12) {
	case 0:
		line(h, "fault %s %s %s", id, []string{"set-cpus", "set-mems", "move-pages", "restore"}[r.IntN(4)], []string{"refused", "failed", "gone", "drifted", "lost", "in-progress", "dry-run"}[r.IntN(7)])
	case 1:
		line(h, "workload %s anon=%dMiB,%dMiB", id, r.IntN(100), r.IntN(100))
	case 2:
		line(h, "workload %s file=%dMiB", id, r.IntN(100))
	case 3:
		line(h, "workload %s cpus=0-%d ours=", id, 2*nodes-1)
	case 4:
		line(h, "%s node=%d", []string{"offline", "online", "online"}[r.IntN(3)], r.IntN(nodes))
	case 5:
		line(h, "gone %s", id)
	case 6:
		line(h, "workload %s cpu=1 anon=50MiB", id)
	case 7:
		line(h, "workload %s anon=?", id)
	case 8:
		if r.IntN(6) == 0 {
			line(h, `workload %s pinned-mems="numa_maps"`, id)
		}
	case 9:
		line(h, "workload %s local=%d remote=%d", id, r.IntN(100000), r.IntN(100000)*r.IntN(2))
	case 10:
		line(h, "workload %s remote=?", id)
	}
}

// follow tracks, from outcomes alone, which workloads' CPUs were confirmed to be set.
func follow(w window.Window, cpusDone map[string]bool) {
	for _, o := range w.Outcomes {
		id := o.Step.Workload
		switch {
		case o.Status == action.Gone, o.Step.Kind == action.Restore && o.Status == action.Done:
			delete(cpusDone, id)
		case o.Step.Kind == action.SetCPUs && (o.Status == action.Done || o.Status == action.InProgress):
			cpusDone[id] = true
		}
	}
}

// broken names the first invariant that does not hold.
func broken(cfg Config, w window.Window, wanted []action.Action, old, st State, steps []action.Step, cpusDone map[string]bool) string {
	budget := unit.Bytes(0)
	last := map[string]action.StepKind{}
	for _, s := range steps {
		if prev, twice := last[s.Workload]; twice && (prev != action.SetCPUs || s.Kind != action.MovePages) {
			return fmt.Sprintf("%v after %s in one window", s, prev)
		}
		last[s.Workload] = s.Kind
		budget += s.Budget
		wl, here := w.Workload(s.Workload)
		job, ok := st.Job(s.Workload)
		switch {
		case !here || !ok:
			return fmt.Sprintf("%v: no such workload or job", s)
		case s.Kind == action.SetCPUs && (s.CPUs.IsEmpty() || s.CPUs.Overlaps(cfg.ReservedCPUs)):
			return fmt.Sprintf("%v: no CPUs, or reserved ones", s)
		case s.Kind == action.SetCPUs && !job.Wanted.IsEmpty() && !s.CPUs.SubsetOf(job.Wanted):
			return fmt.Sprintf("%v: CPUs that no action asked for: %v", s, job.Wanted)
		case s.Kind == action.SetCPUs && !job.May.IsEmpty() && !s.CPUs.SubsetOf(job.May):
			return fmt.Sprintf("%v: CPUs that it might not use: %v", s, job.May)
		case s.Kind == action.MovePages && (s.Budget <= 0 || s.From.IsEmpty() || s.From.Overlaps(s.Nodes)):
			return fmt.Sprintf("%v: moves nothing", s)
		case s.Kind == action.MovePages && unpaid(cfg, old, job, s) != "":
			return fmt.Sprintf("%v: %s", s, unpaid(cfg, old, job, s))
		case (s.Kind == action.SetCPUs || s.Kind == action.SetMems) && job.Stage == StageAhead:
			return fmt.Sprintf("%v: its memory goes first", s)
		case (s.Kind == action.MovePages || s.Kind == action.SetCPUs) && wl.Binding.OursMems && !s.Nodes.SubsetOf(wl.Binding.Mems):
			return fmt.Sprintf("%v: its mems are %v", s, wl.Binding.Mems)
		case s.Kind == action.SetMems && job.Stage == StageWiden:
			if !cpusDone[wl.ID] || !job.Nodes.SubsetOf(s.Nodes) || !wl.Binding.Mems.Intersect(job.MayMems).SubsetOf(s.Nodes) {
				return fmt.Sprintf("%v: removes nodes, or lacks wanted ones: its mems are %v", s, wl.Binding.Mems)
			}
		case s.Kind == action.SetMems:
			if why := badMems(cfg, w, wl, job, cpusDone); why != "" {
				return why
			}
		}
	}
	turn := w.Length
	if cfg.Turn > 0 {
		turn = min(turn, cfg.Turn)
	}
	if limit := unit.Bytes(float64(cfg.Rate) * turn.Seconds()); cfg.Rate > 0 && budget > limit {
		return fmt.Sprintf("the moves add up to %v, the limit is %v", budget, limit)
	}
	return ghosts(w, wanted, steps)
}

// unpaid: a move carries its sum and its bounds, and no move begins that does not pay.
func unpaid(cfg Config, old State, j Job, s action.Step) string {
	v, judged := j.Pays.Get()
	before, _ := old.Job(j.Workload)
	named := s.Reason.Cause != nil && reflect.DeepEqual(*s.Reason.Cause, v.Sum()) && slices.ContainsFunc(v.Numbers, func(n action.Number) bool { return n.Name == "move_gain" })
	switch {
	case !judged || !named:
		return "moves without a sum"
	case s.Rate != cfg.Rate || s.MaxStall != cfg.MaxStall || s.PageCache != cfg.PageCache || s.HotFirst != cfg.HotFirst:
		return "moves without its bounds"
	case before.Moving || v.Answer == migration.PaysYes || v.Answer == migration.PaysCannotTell && cfg.WhenUnknown == MoveAnyway:
		return ""
	}
	return "begins, and does not pay: " + words.Sentence(v.Sum())
}

// badMems: never before the CPUs, never against PinnedMems, and never with more remote
// anonymous memory than the threshold, or than the bound if nothing moves.
func badMems(cfg Config, w window.Window, wl window.Workload, j Job, cpusDone map[string]bool) string {
	var anon, total unit.Bytes
	for i, n := range w.Nodes {
		if i >= len(wl.AnonByNode) {
			break
		}
		a := wl.AnonByNode[i].Or(0)
		total += a + wl.FileByNode[i].Or(0)
		if !j.Nodes.Has(n.ID) {
			anon += a
		}
	}
	limit := max(unit.Bytes(float64(total)*float64(cfg.ResidualShare)), cfg.ResidualBytes)
	bound := unit.Bytes(float64(total) * float64(cfg.ResidualBound))
	switch {
	case !cpusDone[wl.ID]:
		return wl.ID + ": mems before CPUs"
	case wl.Binding.PinnedMems || j.CPUsOnly:
		return wl.ID + ": mems, though its memory is not to be moved"
	case anon > max(limit, bound):
		return fmt.Sprintf("%s: mems with %v of %v elsewhere", wl.ID, anon, total)
	case anon > limit && j.Failures == 0 && j.Why.Rule == "":
		return fmt.Sprintf("%s: mems with %v elsewhere and no report of it", wl.ID, anon)
	}
	return ""
}

// ghosts: after Gone no step follows, unless one is wanted.
func ghosts(w window.Window, wanted []action.Action, steps []action.Step) string {
	for _, o := range w.Outcomes {
		isWanted := slices.ContainsFunc(wanted, func(a action.Action) bool { return a.Workload == o.Step.Workload })
		asked := slices.ContainsFunc(steps, func(s action.Step) bool { return s.Workload == o.Step.Workload })
		if o.Status == action.Gone && asked && !isWanted {
			return o.Step.Workload + " is gone, but a step follows"
		}
	}
	return ""
}

// notRestorable: an Unbind leads to Restore from every state, in this very window or,
// if refused restores make it wait, as soon as that wait is over.
func notRestorable(h *windowtest.Host, cfg Config, st State, w window.Window) string {
	w.Outcomes = nil
	for _, j := range st.Jobs {
		if _, here := w.Workload(j.Workload); !here {
			continue
		}
		now, asked := st, false
		for range j.Wait + 1 {
			var steps []action.Step
			now, steps, _ = Step(h.Machine, cfg, now, []action.Action{{Kind: action.Unbind, Workload: j.Workload}}, w)
			asked = asked || slices.ContainsFunc(steps, func(s action.Step) bool {
				return s.Kind == action.Restore && s.Workload == j.Workload
			})
		}
		if !asked {
			return fmt.Sprintf("no way back from %+v", j)
		}
	}
	return ""
}

func jsonOf(t *testing.T, v ...any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func roundTrip(t *testing.T, st State) State {
	t.Helper()
	var back State
	if err := json.Unmarshal([]byte(jsonOf(t, st)[1:len(jsonOf(t, st))-1]), &back); err != nil {
		t.Fatal(err)
	}
	if jsonOf(t, back) != jsonOf(t, st) {
		t.Fatalf("the state changed on its way through JSON:\n%s\n%s", jsonOf(t, st), jsonOf(t, back))
	}
	return back
}

// MAO and actuate together, undisturbed: every approved service that has a node to
// itself ends up bound with all its pages there. With random failures in between, an
// end (all approvals withdrawn) always restores everything.
func TestClosedLoop(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		h, st, policy := newHost(random), State{}, mao.State{}
		cfg, maoCfg := DefaultConfig(), mao.DefaultConfig()
		maoCfg.BackoffCap = 8
		run := func(windows int, disturbed bool) {
			for range windows {
				if disturbed && r.IntN(3) == 0 {
					line(h, "fault %s %s %s", workload(r.IntN(random)), []string{"set-cpus", "set-mems", "restore"}[r.IntN(3)], []string{"refused", "failed", "lost"}[r.IntN(3)])
				}
				w := h.Window()
				var actions []action.Action
				policy, actions, _ = mao.Step(h.Machine, maoCfg, policy, w)
				next, steps, outcomes := Step(h.Machine, cfg, st, actions, w)
				st = next
				h.Apply(steps)
				h.Report(outcomes...)
			}
		}
		run(30, seed%2 == 1)
		if seed%2 == 0 {
			allLocal(t, h.Window(), st)
		}
		for i := range random {
			line(h, "workload %s approved=no", workload(i))
		}
		run(200, false)
		for _, wl := range h.Window().Workloads {
			if b := wl.Binding; b.OursCPUs || b.OursMems || b.CPUs.String() != "0-9" || b.Mems.String() != "0-4" {
				t.Fatalf("seed %d: %s stays bound: %+v", seed, wl.ID, b)
			}
		}
		if len(st.Jobs) > 0 {
			t.Fatalf("seed %d: jobs are left: %+v", seed, st.Jobs)
		}
	}
}

func allLocal(t *testing.T, w window.Window, st State) {
	t.Helper()
	var used set.NodeSet
	for _, wl := range w.Workloads {
		j, _ := st.Job(wl.ID)
		if j.Stage != StageBound || wl.Binding.Mems != j.Nodes || used.Overlaps(j.Nodes) || wl.RemoteLoads.Or(1) != 0 {
			t.Fatalf("%s is %s on %v with %v remote loads", wl.ID, j.Stage, wl.Binding.Mems, wl.RemoteLoads)
		}
		used = used.Union(j.Nodes)
	}
}

// A policy that binds to another node every few windows: within any horizon it makes
// the actuator begin few moves, of at most the workload's bytes each. After the first
// two, move number k waits NoProgressWindows × 2^(k-2) windows.
func TestPingPongIsBounded(t *testing.T) {
	most := 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		nodes := 2 + r.IntN(2)
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1, 2}[:nodes], 2, 4*unit.GiB)
		size := unit.Bytes(20+r.IntN(200)) * unit.MiB
		line(h, "workload /w0 cpu=1 cpus=0-%d mems=0-%d anon=%dMiB local=1000000 remote=1000000", 2*nodes-1, nodes-1, size/unit.MiB)
		cfg.NoProgressWindows = 1 + r.IntN(4)
		cfg.Horizon = time.Duration(20+r.IntN(100)) * time.Second // and windows of a second
		cfg.WhenUnknown = []WhenUnknown{MoveAnyway, WaitToKnow}[r.IntN(2)]
		every, home := 2+r.IntN(12), 0
		var moved []action.Outcome // one a window
		for n := range 400 {
			var wanted []action.Action
			switch n % every {
			case 0:
				wanted = append(wanted, action.Action{Kind: action.Unbind, Workload: "/w0"})
			case 1:
				home = (home + 1) % nodes
				wanted = append(wanted, action.Action{Kind: action.Bind, Workload: "/w0", Nodes: set.FromNodes(home)})
			}
			w := h.Window()
			sum := action.Outcome{}
			for _, o := range w.Outcomes {
				sum.Moved += o.Moved
			}
			moved = append(moved, sum)
			next, steps, outcomes := Step(h.Machine, cfg, st, wanted, w)
			h.Apply(steps)
			h.Report(outcomes...)
			st = next
		}
		windows := int(cfg.Horizon.Seconds())
		limit := unit.Bytes(2+math.Log2(float64(windows)/float64(cfg.NoProgressWindows)+2)) * size
		for i := range moved {
			within := unit.Bytes(0)
			for _, o := range moved[i:min(len(moved), i+windows)] {
				within += o.Moved
			}
			if within > limit {
				t.Fatalf("seed %d: flips every %d windows: %v of %v moved within %v, the limit is %v", seed, every, within, size, cfg.Horizon, limit)
			}
			most = max(most, int(within/size))
		}
	}
	if most < 3 {
		t.Errorf("never more than %d moves: the guard was not needed", most)
	}
}

// Renumbering the nodes renumbers the answer, and no page is lost or made.
func TestRenumbering(t *testing.T) {
	moves := 0
	for seed := range uint64(100) {
		cfg := DefaultConfig()
		cfg.Horizon = 10 * time.Second
		hosts, states := []*windowtest.Host{{}, {}}, make([]State, 2)
		ids := [][]int{{0, 1, 2}, {3, 5, 9}}
		for i, h := range hosts {
			h.Shape(ids[i], 2, unit.GiB)
			for k := range random {
				line(h, "workload %s cpu=1 cpus=0-5 anon=%dMiB,%dMiB,10MiB local=30000 remote=%d", workload(k), 30*(k+1), 10*k, 17000*k)
			}
		}
		draws := []*rand.Rand{rand.New(rand.NewPCG(seed, 4)), rand.New(rand.NewPCG(seed, 4))}
		for range 40 {
			var answers [2]string
			for i, h := range hosts {
				r := draws[i]
				id := workload(r.IntN(random))
				a := action.Action{Kind: action.Bind, Workload: id, Nodes: set.FromNodes(ids[i][r.IntN(3)])}
				if r.IntN(3) == 0 {
					a = action.Action{Kind: action.Unbind, Workload: id}
				}
				line(h, "workload %s local=%d remote=%d", workload(r.IntN(random)), r.IntN(50000), r.IntN(83000))
				w := h.Window()
				resident(t, w)
				next, steps, outcomes := Step(h.Machine, cfg, states[i], []action.Action{a}, w)
				states[i] = next
				h.Apply(steps)
				h.Report(outcomes...)
				answers[i] = renumbered(steps, next, ids[i])
				for _, s := range steps {
					if s.Kind == action.MovePages {
						moves++
					}
				}
			}
			if answers[0] != answers[1] {
				t.Fatalf("seed %d:\n%s\n%s", seed, answers[0], answers[1])
			}
		}
	}
	if moves < 400 {
		t.Errorf("only %d moves", moves)
	}
}

// renumbered prints steps and stages with nodes by their position.
func renumbered(steps []action.Step, st State, ids []int) string {
	at := func(s set.NodeSet) (text string) {
		for i, id := range ids {
			if s.Has(id) {
				text += fmt.Sprint(i)
			}
		}
		return text
	}
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "%s %s %v %s>%s %v; ", s.Kind, s.Workload, s.CPUs, at(s.From), at(s.Nodes), s.Budget)
	}
	for _, j := range st.Jobs {
		v, _ := j.Pays.Get()
		fmt.Fprintf(&out, "%s %s %s %s; ", j.Workload, j.Stage, at(j.Nodes), words.Sentence(v.Sum()))
	}
	return out.String()
}

// resident checks that every workload has as much as at its start.
func resident(t *testing.T, w window.Window) {
	t.Helper()
	for k := range random {
		wl, _ := w.Workload(workload(k))
		if sum, _ := window.SumBytes(wl.AnonByNode); sum != unit.Bytes(30*(k+1)+10*k+10)*unit.MiB {
			t.Fatalf("%s has %v", wl.ID, sum)
		}
	}
}

func TestUndecided(t *testing.T) {
	for j, want := range map[*Job]bool{
		{}: false, {Waiting: true}: false, {Waiting: true, Turn: 1}: true, {Grown: 1}: true, {Waiting: true, Grown: 3}: false,
	} {
		if got := (State{Jobs: []Job{{}, *j}}).Undecided(); got != want {
			t.Errorf("%+v: %v", *j, got)
		}
	}
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"rate=-1": "rate is -1", "residual_share=0.5": "ascend", "residual_bound=2": "between 0 and 1",
		"no_progress_windows=0": "at least 1", "retry_limit=-1": "retry_limit -1",
		"horizon=-1": "horizon is -1ns: it must be positive", "horizon=0": "horizon is 0s", "pay_ratio=0": "pay_ratio is 0", "pay_ratio=-2": "pay_ratio is -2",
		"when_unknown=perhaps": `when_unknown is "perhaps": want move or wait`, "ping_pong_doublings=-1": "ping_pong_doublings is -1",
		"ping_pong_doublings=17": "want 0 to 16", "way=there": `way is "there": want by-estimate or cpus-first`, "max_stall=-5": "max_stall is -5ns", "turn=-5": "turn is -5ns",
	} {
		cfg := DefaultConfig()
		if err := windowtest.Configure(&cfg, []string{word}); err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", word, err, want)
		}
	}
}
