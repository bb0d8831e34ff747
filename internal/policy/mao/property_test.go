// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/machine/machinetest"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// Thousands of seeded random windows; the invariants hold after each step.
func TestInvariants(t *testing.T) {
	binds, unbinds, seeds := 0, 0, machinetest.Seeds(60, 300)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, cfg, st := randomHost(r), randomConfig(r), State{}
		for range 20 {
			mutate(r, h)
			w := h.Window()
			before := print(t, st, w)
			next, actions, reasons := Step(h.Machine, cfg, st, w)
			if print(t, st, w) != before {
				t.Fatalf("seed %d window %d: Step changed its arguments", seed, w.Seq)
			}
			again, actions2, reasons2 := Step(h.Machine, cfg, st, w)
			if !reflect.DeepEqual([]any{next, actions, reasons}, []any{again, actions2, reasons2}) {
				t.Fatalf("seed %d window %d: the same input gave another answer", seed, w.Seq)
			}
			if why := broken(h, cfg, st, next, w, actions, reasons); why != "" {
				t.Fatalf("seed %d window %d: %s\n%v", seed, w.Seq, why, actions)
			}
			for _, a := range actions {
				if a.Kind == action.Bind {
					binds++
				} else {
					unbinds++
				}
			}
			st = roundTrip(t, next)
		}
	}
	if 3*binds < seeds || 3*unbinds < seeds {
		t.Errorf("%d binds and %d unbinds: too few to have tested anything", binds, unbinds)
	}
}

func print(t *testing.T, st State, w window.Window) string {
	t.Helper()
	a, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	return string(a) + string(b)
}

func roundTrip(t *testing.T, st State) State {
	t.Helper()
	line, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	var back State
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	if line2, _ := json.Marshal(back); !bytes.Equal(line, line2) {
		t.Fatalf("the state changed on its way through JSON:\n%s\n%s", line, line2)
	}
	return back
}

// broken names the first invariant that does not hold.
func broken(h *windowtest.Host, cfg Config, old, st State, w window.Window, actions []action.Action, reasons []action.Reason) string {
	if len(reasons) != len(w.Workloads) {
		return fmt.Sprintf("%d reasons for %d workloads", len(reasons), len(w.Workloads))
	}
	for i, r := range reasons {
		if r.Workload != w.Workloads[i].ID || !words.Has(r.Rule) {
			return fmt.Sprintf("workload %s has the reason %+v", w.Workloads[i].ID, r)
		}
	}
	seen := map[string]bool{}
	binds := 0
	for _, a := range actions {
		if seen[a.Workload] {
			return a.Workload + " is asked for twice"
		}
		seen[a.Workload] = true
		if a.Kind == action.Unbind && !st.Bound(a.Workload).IsEmpty() {
			return a.Workload + " is unbound, but its binding is remembered"
		}
		if a.Kind != action.Bind {
			continue
		}
		if a.Reason.Rule == "mao.room" {
			if why := badRoom(h, cfg, old, st, w, a); why != "" {
				return why
			}
			continue
		}
		binds++
		if why := badBind(h, cfg, old, st, w, a); why != "" {
			return why
		}
	}
	if binds > cfg.MaxBindsPerWindow {
		return fmt.Sprintf("%d binds", binds)
	}
	return overfull(h.Machine, cfg, st, w, actions)
}

// badRoom: only workloads that are neither bound nor pinned make room, with their CPUs
// alone, on nodes without bindings.
func badRoom(h *windowtest.Host, cfg Config, old, st State, w window.Window, a action.Action) string {
	wl, _ := w.Workload(a.Workload)
	for _, m := range st.Workloads {
		if m.Nodes.Overlaps(a.Nodes) {
			return fmt.Sprintf("%v: %s is bound there", a, m.Workload)
		}
	}
	for id := range a.Nodes.All() {
		n, known := h.Machine.Node(id)
		if i, ok := w.NodeIndex(id); !ok || !known || w.Nodes[i].CPUs.Intersect(n.CPUs).Minus(cfg.ReservedCPUs).IsEmpty() {
			return fmt.Sprintf("%v: node %d has no CPUs", a, id)
		}
	}
	switch {
	case a.Nodes.IsEmpty() || !a.CPUsOnly || st.find(a.Workload).Aside != a.Nodes:
		return fmt.Sprintf("%v: remembered are %v", a, st.find(a.Workload).Aside)
	case wl.Approved || wl.Binding.PinnedCPUs || !old.Bound(a.Workload).IsEmpty() || !old.find(a.Workload).Aside.IsEmpty():
		return fmt.Sprintf("%v: it is approved, pinned or placed already", a)
	}
	return ""
}

func badBind(h *windowtest.Host, cfg Config, old, st State, w window.Window, a action.Action) string {
	if a.Nodes.IsEmpty() || st.Bound(a.Workload) != a.Nodes || !old.Bound(a.Workload).IsEmpty() {
		return fmt.Sprintf("%v: before %v, now %v", a, old.Bound(a.Workload), st.Bound(a.Workload))
	}
	for id := range a.Nodes.All() {
		i, ok := w.NodeIndex(id)
		n, known := h.Machine.Node(id)
		if !ok || !known || w.Nodes[i].CPUs.Intersect(n.CPUs).Minus(cfg.ReservedCPUs).IsEmpty() || w.Nodes[i].Memory.Or(0) == 0 {
			return fmt.Sprintf("%v: node %d lacks CPUs or memory", a, id)
		}
	}
	wl, _ := w.Workload(a.Workload)
	chosen := slices.ContainsFunc(a.Reason.Alternatives, func(alt action.Alternative) bool {
		return alt.Chosen && alt.Code == "" && alt.Nodes == a.Nodes
	})
	switch {
	case !chosen:
		return fmt.Sprintf("%v: the alternatives do not name it", a)
	case !wl.Approved || wl.Binding.PinnedCPUs:
		return fmt.Sprintf("%v: not approved, or pinned", a)
	case a.CPUsOnly != wl.Binding.PinnedMems:
		return fmt.Sprintf("%v: its memory is pinned: %v", a, wl.Binding.PinnedMems)
	}
	return ""
}

// overfull compares what this window's and older binds take with each node that something
// was bound to: Σ CPU use ≤ CPUs, for one-node bindings.
func overfull(m machine.Machine, cfg Config, st State, w window.Window, actions []action.Action) string {
	for _, a := range actions {
		if a.Kind != action.Bind || a.Nodes.Len() != 1 {
			continue
		}
		sum := 0.0
		for _, mem := range st.Workloads {
			if mem.Nodes == a.Nodes {
				use := mem.Demand.Or(0) * cfg.HeadroomFactor
				wl, _ := w.Workload(mem.Workload)
				sum += min(use, wl.Quota.Or(use))
			}
		}
		if cpus := float64(m.CPUsOf(a.Nodes).Minus(cfg.ReservedCPUs).Len()); sum > cpus+1e-6 {
			return fmt.Sprintf("%v: %.2f CPUs are used there, there are %.0f", a, sum, cpus)
		}
	}
	return ""
}

func randomConfig(r *rand.Rand) Config {
	cfg := DefaultConfig()
	cfg.Strategy = []Strategy{StrategyA, StrategyB}[r.IntN(2)]
	cfg.MaxBindsPerWindow = 1 + r.IntN(4)
	cfg.MinHistory, cfg.HistoryWindows = 1+r.IntN(3), 4+r.IntN(4)
	cfg.BindAfter = 1 + r.IntN(2)
	cfg.BackoffWindows, cfg.BackoffCap = 1, 4
	cfg.MaxNodes = r.IntN(3)
	if r.IntN(4) == 0 {
		cfg.ReservedCPUs = set.FromCPUs(0)
	}
	if r.IntN(4) == 0 {
		cfg.NodeBandwidth = map[int]unit.Bytes{0: 1 * unit.MiB, 1: 64 * unit.MiB}
	}
	return cfg
}

func randomHost(r *rand.Rand) *windowtest.Host {
	h := &windowtest.Host{}
	var ids []int
	for id := range 1 + r.IntN(5) {
		ids = append(ids, id*(1+r.IntN(2)))
	}
	slices.Sort(ids)
	h.Shape(slices.Compact(ids), 1+r.IntN(4), 512*unit.MiB)
	return h
}

var mutations = []string{
	"approved", "approved", "approved=no", "cpu=?", "cpu=0.01", "cpu=0.5", "cpu=1", "cpu=2.5", "quota=?", "quota=0.5", "quota=2",
	"anon=?", "anon=64MiB", "anon=1GiB", "anon=8MiB", "file=16MiB", "local=?", "local=0 remote=0", "local=100 remote=1000000",
	"local=2000000 remote=1000000", "local=1000000 remote=1", "cpus=0", "cpus=", "mems=0", "mems=", "ours=", "ours=cpus", "target=0.5",
}

// mutate changes a few things, as a script would. Lines that do not apply to this host
// (node 3 of 2) fail, and that is fine.
func mutate(r *rand.Rand, h *windowtest.Host) {
	for range 1 + r.IntN(4) {
		id := fmt.Sprintf("/w%d", r.IntN(6))
		word := mutations[r.IntN(len(mutations))]
		line := fmt.Sprintf("workload %s %s", id, word)
		switch r.IntN(12) {
		case 0:
			line = fmt.Sprintf("outcome %s %s %s", id, []string{"set-cpus", "set-mems", "move-pages"}[r.IntN(3)], []string{"refused", "drifted", "gone", "failed", "done"}[r.IntN(5)])
		case 1:
			line = fmt.Sprintf("%s node=%d", []string{"offline", "online", "online"}[r.IntN(3)], r.IntN(5))
		case 2:
			line = fmt.Sprintf("node %d busy=%v", r.IntN(5), r.Float64()*4)
		case 3:
			line = "gone " + id
		case 4, 5, 6, 7: // all that a candidate needs
			line = fmt.Sprintf("workload %s approved cpu=%.2f anon=%dMiB local=%d remote=%d", id, r.Float64()*3, r.IntN(300), r.IntN(100000), r.IntN(100000))
		}
		_, _ = h.Line(strings.TrimSpace(line))
	}
}

// Renumbering the nodes renumbers the answer. Figures are random, so no choice depends on a
// tie, which goes to the lowest ids.
func TestRenumbering(t *testing.T) {
	compared := 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		m, w := randomWindow(r, 4, 3)
		cfg := DefaultConfig()
		cfg.MaxBindsPerWindow = 3
		_, want, _ := Step(m, cfg, State{}, w)
		perm := r.Perm(len(w.Nodes))
		m2, w2 := renumber(m, w, perm)
		_, got, _ := Step(m2, cfg, State{}, w2)
		if len(got) != len(want) {
			t.Fatalf("seed %d: %v became %v", seed, want, got)
		}
		for i := range want {
			var ids []int
			for id := range want[i].Nodes.All() {
				ids = append(ids, perm[id])
			}
			if got[i].Workload != want[i].Workload || got[i].Nodes != set.FromNodes(ids...) {
				t.Fatalf("seed %d: %v became %v under %v", seed, want[i], got[i], perm)
			}
			compared++
		}
	}
	if compared < 500 {
		t.Errorf("only %d answers compared", compared)
	}
}

// randomWindow is a machine and a window with figures that never tie.
func randomWindow(r *rand.Rand, nodes, loads int) (machine.Machine, window.Window) {
	h := &windowtest.Host{}
	h.Shape(rangeOf(nodes), 2, 512*unit.MiB)
	for i := range h.Machine.Distances {
		for j := range i {
			d := unit.Some(11 + r.IntN(200))
			h.Machine.Distances[i][j], h.Machine.Distances[j][i] = d, d
		}
	}
	for i := range loads {
		l := h.Load(fmt.Sprintf("/w%d", i))
		l.Approved = i != 0
		sum := 0.0
		for j := range nodes {
			cpu := r.Float64()
			sum += cpu
			l.CPUByNode[j] = unit.Measured(cpu, "random")
			l.AnonByNode[j] = unit.Measured(unit.Bytes(r.IntN(1<<25)), "random")
		}
		l.CPU = unit.Measured(sum, "random")
		l.LocalLoads = unit.Measured(uint64(r.IntN(100000)), "random")
		l.RemoteLoads = unit.Measured(uint64(100000+r.IntN(100000)), "random")
	}
	return h.Machine, h.Window()
}

func rangeOf(n int) []int {
	ids := make([]int, n)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

// renumber makes node i node perm[i]. CPUs keep their numbers.
func renumber(m machine.Machine, w window.Window, perm []int) (machine.Machine, window.Window) {
	m2 := m
	m2.Nodes = make([]machine.Node, len(perm))
	m2.Distances = make([][]unit.Opt[int], len(perm))
	w2 := w
	w2.Nodes = make([]window.Node, len(perm))
	for i, p := range perm {
		m2.Nodes[p], w2.Nodes[p] = m.Nodes[i], w.Nodes[i]
		m2.Nodes[p].ID, w2.Nodes[p].ID = p, p
		m2.Distances[p] = make([]unit.Opt[int], len(perm))
		for j, q := range perm {
			m2.Distances[p][q] = m.Distances[i][j]
		}
	}
	w2.Workloads = slices.Clone(w.Workloads)
	for k := range w2.Workloads {
		wl := &w2.Workloads[k]
		wl.CPUByNode = permute(wl.CPUByNode, perm)
		wl.AnonByNode = permute(wl.AnonByNode, perm)
		wl.FileByNode = permute(wl.FileByNode, perm)
	}
	return m2, w2
}

func permute[T any](by []T, perm []int) []T {
	out := make([]T, len(by))
	for i, p := range perm {
		out[p] = by[i]
	}
	return out
}

// The brute-force twin of the node-set choice: every subset of the machine, judged by the
// same rules written down once more, without sizes, pruning or ledger.
func TestNodeSetTwin(t *testing.T) {
	placed, refused := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 3))
		nodes := 2 + r.IntN(4)
		m, w := randomWindow(r, nodes, 2) // /w0 is not approved, /w1 is placed
		wl := &w.Workloads[1]
		if r.IntN(3) == 0 {
			wl.Quota = unit.Measured(r.Float64()*4, "random")
		}
		for j := range w.Nodes {
			w.Nodes[j].Free = unit.Measured(unit.Bytes(r.IntN(1<<27)), "random")
		}
		cfg := DefaultConfig()
		cfg.MinGain, cfg.MinCPU, cfg.MaxNodes = 0, 0, r.IntN(nodes)
		wl.LocalLoads, wl.RemoteLoads = unit.Measured(uint64(1), "x"), unit.Measured(uint64(1000000), "x")
		_, actions, reasons := Step(m, cfg, State{}, w)
		var got set.NodeSet
		if len(actions) == 1 {
			got = actions[0].Nodes
		}
		if want := twin(m, cfg, w); got != want {
			t.Fatalf("seed %d: got nodes %q, the twin says %q: %v %v", seed, got, want, reasons[1], reasons[1].Alternatives)
		}
		if got.IsEmpty() {
			refused++
		} else {
			placed++
		}
	}
	if placed < 300 || refused < 50 {
		t.Errorf("%d placed, %d refused: too few of one kind", placed, refused)
	}
}

func twin(m machine.Machine, cfg Config, w window.Window) set.NodeSet {
	other, wl := w.Workloads[0], w.Workloads[1]
	most := cfg.MaxNodes
	if most == 0 {
		most = len(w.Nodes) - 1
	}
	pagesOf := func(wl window.Workload, j int) float64 {
		return float64(wl.AnonByNode[j].Or(0) + wl.FileByNode[j].Or(0))
	}
	var total, otherTotal float64
	for j := range w.Nodes {
		total += pagesOf(wl, j)
		otherTotal += pagesOf(other, j)
	}
	need := wl.CPU.Or(0)
	quota, hasQuota := wl.Quota.Get()
	if hasQuota {
		need = min(need, quota)
	}
	loads := func(wl window.Workload) float64 { return float64(wl.LocalLoads.Or(0) + wl.RemoteLoads.Or(0)) }
	var best set.NodeSet
	var bestKey []float64
	for mask := 1; mask < 1<<len(w.Nodes); mask++ {
		var cpus, memory, own, traffic, use, distance float64
		var ids []int
		for j, n := range w.Nodes {
			if mask&(1<<j) == 0 {
				continue
			}
			for _, id := range ids {
				distance += 2 * float64(m.Distance(id, n.ID).Or(0))
			}
			ids = append(ids, n.ID)
			cpus += float64(n.CPUs.Len())
			room := float64(n.Free.Or(0)) + pagesOf(wl, j) + float64(n.File.Or(0)-wl.FileByNode[j].Or(0))*0.5 - 0.05*float64(n.Memory.Or(0))
			memory += max(0, room)
			own += pagesOf(wl, j)
			traffic += loads(other) * pagesOf(other, j) / otherTotal
			use += other.CPUByNode[j].Or(0) * cfg.UnboundCost
		}
		if len(ids) > most || need > cpus || total > memory {
			continue
		}
		short := 0.0
		if hasQuota && min(quota, cpus) > cpus {
			short = 1
		}
		cost := cfg.MoveWeight*(total-own)/total + cfg.BandwidthWeight*traffic/(loads(other)+loads(wl)) + cfg.CPUWeight*min(1, use/cpus)
		key := []float64{float64(len(ids)), short, distance, cost}
		if bestKey == nil || slices.Compare(key, bestKey) < 0 {
			best, bestKey = set.FromNodes(ids...), key
		}
	}
	return best
}

func TestEachSet(t *testing.T) {
	for n := range 9 {
		for k := 1; k <= n; k++ {
			count, last := 0, []int(nil)
			eachSet(rangeOf(n), k, func(at []int) {
				if len(at) != k || !slices.IsSorted(at) || last != nil && slices.Compare(last, at) >= 0 {
					t.Fatalf("%d of %d: %v after %v", k, n, at, last)
				}
				count, last = count+1, at
			})
			if want := binomial(n, k); count != want {
				t.Fatalf("%d of %d: %d sets, want %d", k, n, count, want)
			}
		}
	}
}

func binomial(n, k int) int {
	c := 1
	for i := range k {
		c = c * (n - i) / (i + 1)
	}
	return c
}

func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		"strategy=C": `strategy is "C": it must be A or B`, "target=1.5": "target is 1.5: it must be between 0 and 1",
		"bind_after=0": "bind_after is 0: it must be at least 1", "min_history=999": "must not exceed history_windows, 512",
		"backoff_cap=1": "backoff_windows is 8 and backoff_cap 1", "smoothing=0": "smoothing is 0: it must be between 0.001 and 1",
		"quota_tolerance=0.5": "quota_tolerance is 0.5", `node_bandwidth={"1":0}`: "node_bandwidth.1 is 0", "max_nodes=-1": "max_nodes is -1",
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

// P95 by nearest rank: of 1…100 it is 95.
func TestP95(t *testing.T) {
	for _, c := range []struct {
		n    int
		want float64
	}{{1, 1}, {19, 19}, {20, 19}, {21, 20}, {100, 95}, {512, 487}} {
		h := History{}
		for i := range c.n {
			h.Utilisation = append(h.Utilisation, float64((i*7919)%c.n)+1) // 7919 is prime: all of 1…n
		}
		if got, ok := h.p95(1).Get(); !ok || got != c.want {
			t.Errorf("P95 of 1…%d is %v, %v; want %v", c.n, got, ok, c.want)
		}
	}
	if (History{Utilisation: []float64{1}}).p95(2).Known() {
		t.Error("a history that is too short has a P95")
	}
}

// A round on 64 workloads × 8 nodes; MAO's takes less than 1 ms.
func BenchmarkStep(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 4))
	m, w := randomWindow(r, 8, 64)
	cfg, st := DefaultConfig(), State{}
	for i := range w.Workloads { // half of them bound, nodes with a long past
		w.Workloads[i].CPU = unit.Measured(0.2, "bench")
	}
	for range 600 {
		w.Seq++
		st, _, _ = Step(m, cfg, st, w)
	}
	st.Workloads = slices.Clone(st.Workloads)
	for i := 1; i < len(st.Workloads); i += 2 {
		st.Workloads[i].Nodes = set.NodeSet{}
	}
	for b.Loop() {
		Step(m, cfg, st, w)
	}
}
