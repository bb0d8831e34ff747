// SPDX-License-Identifier: Apache-2.0

package brm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// chaos is a host on which anything may happen between two windows.
type chaos struct {
	r     *rand.Rand
	host  *windowtest.Host
	blind bool // no counter is known, ever
}

func newChaos(seed uint64) *chaos {
	c := &chaos{r: rand.New(rand.NewPCG(seed, 9)), host: &windowtest.Host{Length: 10 * time.Millisecond}}
	ids := [][]int{{0}, {0, 1}, {0, 2, 5}, {0, 1, 2, 3}}[c.r.IntN(4)]
	c.host.Shape(ids, 1+c.r.IntN(4), unit.GiB)
	for i := range c.host.Machine.Distances {
		for j := range c.host.Machine.Distances[i] {
			if i != j {
				c.host.Machine.Distances[i][j] = unit.Some(16 + c.r.IntN(3))
			}
		}
	}
	for i := range 1 + c.r.IntN(4) {
		c.load(fmt.Sprintf("/w%d", i))
	}
	return c
}

func (c *chaos) load(id string) {
	l := c.host.Load(id)
	all := c.host.Machine.OnlineCPUs()
	l.Sensitive = [3]unit.Opt[bool]{unit.Some(true), unit.Some(false), unit.None[bool]()}[c.r.IntN(3)]
	if l.Binding.CPUs = all; c.r.IntN(3) == 0 {
		l.Binding.CPUs = c.some(all)
	}
	l.Threads = nil
	for k := range c.r.IntN(6) {
		t := window.Thread{ID: 10 * (k + 1), Allowed: l.Binding.CPUs}
		if c.r.IntN(4) == 0 {
			t.Allowed = c.some(all)
		}
		t.Pinned, t.Ours = c.r.IntN(6) == 0, c.r.IntN(12) == 0
		t.CPU = unit.Some(c.one(all))
		l.Threads = append(l.Threads, t)
	}
}

func (c *chaos) some(of set.CPUSet) (some set.CPUSet) {
	for cpu := range of.All() {
		if c.r.IntN(2) == 0 {
			some = some.With(cpu)
		}
	}
	return some
}

func (c *chaos) one(of set.CPUSet) int { ids := of.IDs(); return ids[c.r.IntN(len(ids))] }

// window disturbs the host, then counts: a thread's costs depend on its node and ID.
func (c *chaos) window() window.Window {
	if c.r.IntN(40) == 0 {
		c.load(fmt.Sprintf("/w%d", c.r.IntN(5)))
	}
	if c.r.IntN(60) == 0 {
		c.host.Remove(fmt.Sprintf("/w%d", c.r.IntN(5)))
	}
	w := c.host.Window()
	for i := range w.Workloads {
		wl := &w.Workloads[i]
		wl.Threads = slices.Clone(wl.Threads)
		if c.r.IntN(30) == 0 {
			wl.Threads = nil
		}
		for k := range wl.Threads {
			c.count(&wl.Threads[k])
		}
	}
	return w
}

func (c *chaos) count(t *window.Thread) {
	all := c.host.Machine.OnlineCPUs()
	if c.r.IntN(25) == 0 {
		t.CPU = unit.Some(c.one(all)) // moved by the kernel
	}
	none := unit.UnknownValue[uint64]("test")
	t.Cycles, t.UncoreRequests, t.UncoreWaits, t.Used = none, none, none, unit.UnknownValue[float64]("test")
	if c.r.IntN(20) == 0 {
		t.CPU = unit.None[int]()
	}
	if c.r.IntN(10) > 0 {
		t.Used = unit.Measured(c.r.Float64(), "test")
	}
	requests, noise, rare := 100+c.r.IntN(5000), c.r.IntN(10), c.r.IntN(15) == 0
	if rare {
		requests = c.r.IntN(3) * 40
	}
	if known := c.r.IntN(10) > 0; !known || c.blind {
		return
	}
	cpu, _ := t.CPU.Get()
	node, _ := c.host.Machine.NodeOf(cpu)
	penalty := 50 + 30*((7*t.ID/10+5*c.rank(node))%4) + noise
	t.Cycles, t.UncoreRequests, t.UncoreWaits = unit.Modelled(uint64(2e6), "test"), unit.Modelled(uint64(requests), "test"), unit.Modelled(uint64(requests*penalty), "test")
}

// rank is a node's position by its lowest CPU.
func (c *chaos) rank(id int) (rank int) {
	n, _ := c.host.Machine.Node(id)
	mine, _ := n.CPUs.First()
	for _, other := range c.host.Machine.Nodes {
		if first, ok := other.CPUs.First(); ok && first < mine {
			rank++
		}
	}
	return rank
}

func (c *chaos) apply(actions []action.Action) {
	for _, a := range actions {
		step := action.Step{Kind: action.PinThread, Workload: a.Workload, Thread: a.Thread, CPUs: a.CPUs, Release: a.Release}
		if c.r.IntN(10) == 0 {
			c.host.Report(action.Outcome{Step: step, Status: action.Refused})
			continue
		}
		c.host.Report(action.Outcome{Step: step, Status: action.Done})
		pin(c.host, a)
	}
}

func randomConfig(r *rand.Rand) Config {
	c := DefaultConfig()
	c.Scope = []Scope{ScopeSystem, ScopeWorkload, ScopeThread}[r.IntN(3)]
	c.WhenFull = []Full{FullGo, FullStay, FullSwap}[r.IntN(3)]
	c.Hold, c.MaxMoves, c.Seed = r.IntN(4) == 0, r.IntN(3), r.Uint64()
	c.ExploreChance, c.ExploreEvery, c.InitialProb, c.ResetProb = 10+r.IntN(90), 0, r.IntN(50), r.IntN(50)
	c.Forget, c.TrialEvery, c.TrialLength = time.Second, time.Second, time.Second
	c.Rise, c.Fall, c.Settle, c.Samples, c.MinStall, c.Explorers = 1+r.IntN(60), r.IntN(60), r.IntN(3), 1+r.IntN(3), 0.01, 1
	return c
}

// These hold in any window, whatever happened before.
func TestAnyWindow(t *testing.T) {
	moves, swaps, releases, holds := 0, 0, 0, 0
	seeds := machinetest.Seeds(30, 150)
	for seed := range uint64(seeds) {
		c := newChaos(seed)
		c.blind = seed%10 == 9
		cfg, st := randomConfig(c.r), State{}
		for range 120 {
			w := c.window()
			before := jsonOf(t, st, w)
			next, actions, reasons := Step(c.host.Machine, cfg, st, w)
			again, actions2, reasons2 := Step(c.host.Machine, cfg, revive(t, st), w)
			if jsonOf(t, st, w) != before {
				t.Fatalf("seed %d window %d: not pure", seed, w.Seq)
			}
			if jsonOf(t, next, actions, reasons) != jsonOf(t, again, actions2, reasons2) {
				t.Fatalf("seed %d window %d: the same state and window, and another answer", seed, w.Seq)
			}
			checkReasons(t, w, reasons, actions)
			checkState(t, w, next)
			for _, a := range actions {
				checkAction(t, cfg, next, w, a, c.blind)
				if a.CPUs.IsEmpty() {
					releases++
				} else if !a.Release {
					holds++
				}
			}
			if len(actions) > 1 && actions[0].Reason.Rule == "brm.swap" {
				swaps++
			}
			moves += len(actions)
			c.apply(actions)
			st = next
		}
	}
	t.Logf("%d moves, %d that hold, %d releases, %d of others in a swap", moves, holds, releases, swaps)
	if 150*moves < 2000*seeds || 150*holds < 200*seeds || 150*releases < 20*seeds {
		t.Errorf("%d moves, %d that hold, %d releases: too little was tested", moves, holds, releases)
	}
}

func jsonOf(t *testing.T, values ...any) string {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// revive returns a state that was written and read.
func revive(t *testing.T, st State) (back State) {
	t.Helper()
	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func checkReasons(t *testing.T, w window.Window, reasons []action.Reason, actions []action.Action) {
	t.Helper()
	if len(reasons) != len(w.Workloads) {
		t.Fatalf("%d reasons for %d workloads", len(reasons), len(w.Workloads))
	}
	moved := map[string]int{}
	for _, a := range actions {
		if !a.CPUs.IsEmpty() {
			moved[a.Workload]++
		}
	}
	for i, r := range reasons {
		wl := &w.Workloads[i]
		if r.Workload != wl.ID || !strings.HasPrefix(r.Rule, "brm.") || !words.Has(r.Rule) || strings.ContainsAny(words.Sentence(r), "{}[]") {
			t.Fatalf("reason %d is %+v", i, r)
		}
		if (len(wl.Threads) == 0) != (r.Rule == "brm.no-threads") {
			t.Fatalf("%s has %d threads, and %v", wl.ID, len(wl.Threads), r)
		}
		if len(wl.Threads) > 0 && int(r.Numbers[len(r.Numbers)-1].Value.Or(-1)) != moved[wl.ID] {
			t.Fatalf("%s: %d are moved, and %v", wl.ID, moved[wl.ID], r)
		}
	}
}

// checkState: exactly the window's threads are remembered, with valid probabilities and
// nodes.
func checkState(t *testing.T, w window.Window, st State) {
	t.Helper()
	k := 0
	for _, wl := range w.Workloads {
		for _, th := range wl.Threads {
			got := st.Threads[k]
			if got.Workload != wl.ID || got.ID != th.ID || got.Prob < 0 || got.Prob > 100 {
				t.Fatalf("thread %d is remembered as %+v", th.ID, got)
			}
			for _, n := range []int{got.Node, got.Bias, got.Home} {
				if n < none || n >= len(st.Nodes) {
					t.Fatalf("%+v of %d nodes", got, len(st.Nodes))
				}
			}
			k++
		}
	}
	if k != len(st.Threads) || len(st.Visits) != k*len(st.Nodes) || len(st.Workloads) != len(w.Workloads) {
		t.Fatalf("%d threads, %d are remembered, with %d visits", k, len(st.Threads), len(st.Visits))
	}
}

func checkAction(t *testing.T, cfg Config, st State, w window.Window, a action.Action, blind bool) {
	t.Helper()
	wl, _ := w.Workload(a.Workload)
	i := slices.IndexFunc(wl.Threads, func(th window.Thread) bool { return th.ID == a.Thread })
	if a.Kind != action.Pin || i < 0 || a.Reason.Workload != a.Workload {
		t.Fatalf("%+v", a)
	}
	th := wl.Threads[i]
	if a.CPUs.IsEmpty() {
		if before, _, _ := st.Thread(wl.ID, th.ID); !th.Ours && !before.Held {
			t.Fatalf("%v of a thread that was not held", a)
		}
		return
	}
	switch may := mayUse(&wl, &th); {
	case blind:
		t.Fatalf("%v, of which nothing is known", a)
	case th.Pinned || !th.CPU.Known() || wl.Sensitive == unit.Some(false):
		t.Fatalf("%v, of %+v", a, th)
	case !a.CPUs.SubsetOf(may) || !wl.Binding.CPUs.IsEmpty() && !a.CPUs.SubsetOf(wl.Binding.CPUs) || !th.Ours && !th.Allowed.IsEmpty() && !a.CPUs.SubsetOf(th.Allowed):
		t.Fatalf("%v, which may use %v", a, may)
	case !a.Release && !cfg.Hold || a.Release && a.CPUs.Len() != 1:
		t.Fatalf("%v: hold is %v", a, cfg.Hold)
	}
}

// Renumbering the nodes renumbers the answer. CPUs keep their numbers, so all actions are
// the same.
func TestRenumbered(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		a, b := newChaos(seed), newChaos(seed)
		renumber(&b.host.Machine)
		cfg := randomConfig(a.r)
		randomConfig(b.r)
		var one, two State
		for range 80 {
			wa, wb := a.window(), b.window()
			for i := range wb.Nodes {
				wb.Nodes[i].ID = other(wb.Nodes[i].ID)
			}
			slices.SortFunc(wb.Nodes, func(x, y window.Node) int { return x.ID - y.ID })
			var doA, doB []action.Action
			var whyA, whyB []action.Reason
			one, doA, whyA = Step(a.host.Machine, cfg, one, wa)
			two, doB, whyB = Step(b.host.Machine, cfg, two, wb)
			if x, y := jsonOf(t, doA, whyA), jsonOf(t, doB, whyB); x != y {
				t.Fatalf("seed %d window %d:\n%s\n%s", seed, wa.Seq, x, y)
			}
			for i, id := range one.Nodes {
				if two.Nodes[i] != other(id) {
					t.Fatalf("nodes %v and %v", one.Nodes, two.Nodes)
				}
			}
			compared += len(doA)
			a.apply(doA)
			b.apply(doB)
		}
	}
	if compared < 500 {
		t.Errorf("only %d actions were compared", compared)
	}
}

func other(id int) int { return 9 - id }

// renumber reverses the order of nodes, and keeps CPUs.
func renumber(m *machine.Machine) {
	for i := range m.Nodes {
		m.Nodes[i].ID = other(m.Nodes[i].ID)
	}
	for i := range m.CPUs {
		m.CPUs[i].Node = unit.Some(other(m.CPUs[i].Node.Or(0)))
	}
	slices.Reverse(m.Nodes)
	slices.Reverse(m.Distances)
	for i := range m.Distances {
		slices.Reverse(m.Distances[i])
	}
}

// The brute-force twin of leastLoaded: it compares each CPU of the node with every other.
func TestLeastLoaded(t *testing.T) {
	ties := 0
	for seed := range uint64(3000) {
		c := newChaos(seed)
		m := c.host.Machine
		for i := range m.CPUs { // cores of two CPUs, except for an odd one at the end
			m.CPUs[i].Core = unit.Some(i / 2)
			if i%2 == 0 {
				m.Cores = append(m.Cores, set.CPUSet{})
			}
			m.Cores[i/2] = m.Cores[i/2].With(m.CPUs[i].ID)
		}
		w := c.window()
		r := newRound(m, DefaultConfig(), w)
		r.recall(State{})
		r.measure()
		for k := range r.nodes {
			may, d := c.some(m.OnlineCPUs()), draw(seed)
			got, _ := r.leastLoaded(k, may, &d)
			best := bestOf(m, w, r.nodes[k].id, may)
			if len(best) > 1 {
				ties++
			}
			if len(best) == 0 && got != none || len(best) > 0 && !slices.Contains(best, got) {
				t.Fatalf("seed %d node %d: CPU %d, want one of %v", seed, r.nodes[k].id, got, best)
			}
		}
	}
	if ties == 0 {
		t.Error("nothing was drawn")
	}
}

func bestOf(m machine.Machine, w window.Window, node int, may set.CPUSet) (best []int) {
	load := func(cpu int) (sum float64) {
		for _, wl := range w.Workloads {
			for _, th := range wl.Threads {
				if at, ok := th.CPU.Get(); ok && at == cpu {
					sum += th.Used.Or(1)
				}
			}
		}
		return sum
	}
	cost := func(cpu int) [2]float64 {
		c, _ := m.CPU(cpu)
		beside := 0.0
		for sibling := range m.Cores[c.Core.Or(0)].Without(cpu).All() {
			beside += load(sibling)
		}
		return [2]float64{rounded(load(cpu)), rounded(beside)}
	}
	n, _ := m.Node(node)
	for cpu := range n.CPUs.Intersect(may).All() {
		better := true
		for than := range n.CPUs.Intersect(may).All() {
			a, b := cost(cpu), cost(than)
			better = better && (a[0] < b[0] || a[0] == b[0] && a[1] <= b[1])
		}
		if better {
			best = append(best, cpu)
		}
	}
	return best
}

func rounded(load float64) float64 {
	if load < 0.1 {
		return 0
	}
	return float64(int(load*1e9+0.5)) / 1e9
}

// Of several idle CPUs each is taken about equally often.
func TestTiesAreDrawn(t *testing.T) {
	w := newToy(1, 2, 4)
	w.addLoad("/a", 1, 0, func(int) int { return 1 }, byDistance)
	taken := map[int]int{}
	for seed := range uint64(400) {
		cfg := DefaultConfig()
		cfg.Seed, cfg.ExploreChance = seed+1, 100
		w.loads[0].threads[0].cpu = 0
		w.run(t, cfg, 10, 0, func() bool { return true })
		taken[w.loads[0].threads[0].cpu]++
	}
	for cpu := 4; cpu < 8; cpu++ {
		if taken[cpu] < 60 {
			t.Errorf("CPU %d was taken %d of 400 times: %v", cpu, taken[cpu], taken)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"scope=all": `scope is "all": it must be system, workload or thread`, "when_full=wait": `when_full is "wait"`,
		"smoothing=0": "smoothing is 0", "smoothing=2": "smoothing is 2", "period_ns=10": "period is 10ns", "half_life_ns=0": "half_life is 0s",
		"forget_ns=-1": "forget is -1ns", "stale_ns=-1": "stale is -1ns", "explore_every_ns=-1": "explore_every", "trial_length_ns=-1": "trial_length",
		"trial_every_ns=-1": "trial_every", "refused_for_ns=-1": "refused_for", "initial_prob=101": "initial_prob is 101", "reset_prob=-1": "reset_prob is -1",
		"rise=0": "rise is 0: it must be between 1 and 100", "fall=-1": "fall is -1", "explore_chance=200": "explore_chance is 200",
		"settle=-1": "settle is -1", "samples=0": "samples is 0", "change_periods=0": "change_periods is 0", "explore_nodes=-1": "explore_nodes is -1",
		"max_moves=-1": "max_moves is -1", "infer_periods=0": "infer_periods is 0", "trial_threads=-1": "trial_threads is -1", "margin=-0.1": "margin is -0.1",
		"change=-1": "change is -1", "min_stall=1.5": "min_stall is 1.5", "explorers=2": "explorers is 2", "min_gain=-1": "min_gain is -1",
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

// A state from elsewhere causes no panic.
func TestForeignState(t *testing.T) {
	c := newChaos(11)
	for range 200 {
		w := c.window()
		st := State{Nodes: []int{7, 0}, Visits: make([]Visit, c.r.IntN(9))}
		for _, wl := range w.Workloads {
			for _, th := range wl.Threads {
				st.Threads = append(st.Threads, Thread{Workload: wl.ID, ID: th.ID, Node: c.r.IntN(9) - 4, Bias: c.r.IntN(9) - 4, Home: c.r.IntN(9) - 4, Prob: c.r.IntN(500) - 200, Changes: 99, Refused: -3})
			}
		}
		next, _, reasons := Step(c.host.Machine, DefaultConfig(), st, w)
		checkState(t, w, next)
		if len(reasons) != len(w.Workloads) {
			t.Fatal("reasons are missing")
		}
	}
}
