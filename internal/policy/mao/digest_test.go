// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// The decisions of Step in some four thousand random windows: a digest of the states,
// actions and rules of each run. `go test -run TestDigests -digests` writes them anew. A
// change of a digest is a change of decisions, and must be explained.
var writeDigests = flag.Bool("digests", false, "write testdata/digests.sha256 anew")

const digestsPath = "testdata/digests.sha256"

func TestDigests(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the windows are made by arithmetic that other compilers fuse")
	}
	rules := map[string]int{}
	var got strings.Builder
	for seed := range uint64(120) {
		fmt.Fprintf(&got, "random %d %s\n", seed, digestRandom(t, seed, rules))
	}
	for seed := range uint64(6) {
		fmt.Fprintf(&got, "rounds %d %s\n", seed, digestRounds(t, seed, rules))
	}
	for _, rule := range []string{
		"mao.bind", "mao.unbind.A", "mao.unbind.B", "mao.unbind.service", "mao.unbind.orphan", "mao.unbind.node-gone", "mao.widen", "mao.room", "mao.isolate",
		"mao.isolate.over", "mao.escalate", "mao.keep.bound", "mao.keep.below-target", "mao.skip.cpu", "mao.skip.memory", "mao.skip.service",
		"mao.skip.no-gain", "mao.skip.limit", "mao.skip.bandwidth", "mao.drifted", "mao.refused",
	} {
		if rules[rule] < 2 {
			t.Errorf("rule %s fired %d times: too few to have tested anything", rule, rules[rule])
		}
	}
	if *writeDigests {
		if err := os.WriteFile(digestsPath, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(digestsPath)
	if err != nil {
		t.Fatal(err)
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("line %d: was %q, is %q", i+1, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		t.Fatalf("%d lines, were %d", len(b), len(a))
	}
}

// digester sums up all decisions of a run's rounds.
type digester struct {
	t     *testing.T
	enc   *json.Encoder
	rules map[string]int
}

func (d *digester) round(m machine.Machine, cfg Config, st State, w window.Window) State {
	d.t.Helper()
	next, actions, reasons := Step(m, cfg, st, w)
	for _, r := range reasons {
		d.rules[r.Rule]++
		if says := words.Sentence(r); !words.Has(r.Rule) || strings.ContainsAny(says, "{}[]") {
			d.t.Fatalf("%s lacks a figure of its sentence: %q", r.Rule, says)
		}
		checkDeciding(d.t, r)
	}
	if err := d.enc.Encode(decidedBy(next, actions, reasons)); err != nil {
		d.t.Fatal(err)
	}
	return next
}

// checkDeciding: a binding that stays, or ends, names the one condition that did not hold,
// or none. A condition whose figure is beyond its limit did hold, except a quota that is
// exactly met.
func checkDeciding(t *testing.T, r action.Reason) {
	t.Helper()
	var deciding []action.Number
	for _, n := range r.Numbers {
		if n.Decides {
			deciding = append(deciding, n)
		}
	}
	must := 0
	if strings.HasPrefix(r.Rule, "mao.keep.b") {
		must = 1
	}
	if len(deciding) > 1 || (r.Rule == "mao.unbind.A" || r.Rule == "mao.unbind.B") && len(deciding) > 0 || len(deciding) < must && knownAll(r.Numbers) {
		t.Fatalf("%s: %d conditions decided: %v", r.Rule, len(deciding), r.Numbers)
	}
	for _, n := range deciding {
		if limit, ok := n.Limit.Get(); ok && n.Value.Or(limit) > limit+rounding {
			t.Fatalf("%s: %v decided, and it is beyond its limit", r.Rule, n)
		}
	}
}

func knownAll(numbers []action.Number) bool {
	for _, n := range numbers {
		if !n.Value.Known() {
			return false
		}
	}
	return true
}

// decided is what a round decided: the state, the actions with their rules and choices, and
// each workload's rule. Figures and sentences are held by the goldens.
type decided struct {
	State   State
	Actions []string
	Rules   []string
}

func decidedBy(next State, actions []action.Action, reasons []action.Reason) decided {
	d := decided{State: next}
	for _, a := range actions {
		var chosen []string
		for _, alt := range a.Reason.Alternatives {
			chosen = append(chosen, fmt.Sprintf("%v %s %v", alt.Nodes, alt.Code, alt.Chosen))
		}
		d.Actions = append(d.Actions, fmt.Sprintf("%v %v %s %s %q", a, a.Renew, a.Reason.Rule, a.Reason.Workload, chosen))
	}
	for _, why := range reasons {
		d.Rules = append(d.Rules, why.Rule+" "+why.Workload)
	}
	return d
}

func digestRandom(t *testing.T, seed uint64, rules map[string]int) string {
	r := rand.New(rand.NewPCG(seed, 21))
	sum := sha256.New()
	d := digester{t: t, enc: json.NewEncoder(sum), rules: rules}
	h, cfg, st := randomHost(r), randomConfig(r), State{}
	cfg.Uniform = []Uniform{UniformNone, UniformBind, UniformAlways}[r.IntN(3)]
	cfg.UniformWindows, cfg.RequireNear = 3, r.IntN(6) == 0
	cfg.Isolate.MinPast, cfg.Isolate.After, cfg.Isolate.Watch, cfg.Isolate.Hold, cfg.Isolate.Cooldown = 1+r.IntN(3), 1, 2, 6, 8
	cfg.Isolate.Enabled = r.IntN(8) != 0
	for range 30 {
		mutate(r, h)
		sense(r, h)
		w := h.Window()
		st = d.round(h.Machine, cfg, st, w)
		for i := range st.Workloads { // most actions are carried out
			obey(r, h, &st.Workloads[i])
		}
		if r.IntN(4) == 0 {
			st = roundTrip(t, st)
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// sense sets figures that scripts cannot express.
func sense(r *rand.Rand, h *windowtest.Host) {
	for i := range 6 {
		l := h.Load(fmt.Sprintf("/w%d", i))
		l.Service = []string{"", "", "web", "web", "db", "db"}[i]
		if r.IntN(3) > 0 {
			continue
		}
		l.Waiting = unit.Measured(unit.Ratio(0.001), "cpu.pressure")
		l.Cycles, l.StallCycles = unit.Measured(uint64(1e9), "perf cycles"), unit.Measured(uint64(1e8*(1+r.IntN(9))), "perf stalls")
		l.Instructions = unit.Measured(uint64(1e9), "perf instructions")
		l.LLC = unit.Measured(unit.Bytes(r.IntN(1<<24)), "llc_occupancy")
		switch r.IntN(8) {
		case 0:
			l.Traffic = unit.Measured(unit.Bytes(r.IntN(1<<30)), "mbm_total_bytes")
		case 1:
			l.Near = set.FromNodes(r.IntN(3))
		case 2:
			l.MemoryLimit = unit.Measured(unit.Bytes(300<<20), "memory.max")
		case 3:
			l.Latency = unit.Measured(float64(1+r.IntN(9))/1000, "file")
		}
	}
}

// obey does what an actuator would have done by the next window.
func obey(r *rand.Rand, h *windowtest.Host, m *Memory) {
	l := h.Load(m.Workload)
	if m.Nodes.IsEmpty() {
		if l.Binding.OursCPUs && r.IntN(4) > 0 {
			l.Binding = window.Binding{}
		}
		return
	}
	l.Binding.CPUs, l.Binding.Mems, l.Binding.OursCPUs, l.Binding.OursMems = h.Machine.CPUsOf(m.Nodes), m.Nodes, true, true
	if r.IntN(2) > 0 || len(l.AnonByNode) == 0 || !l.AnonByNode[0].Known() {
		return
	}
	var sum unit.Bytes
	for j := range l.AnonByNode {
		sum += l.AnonByNode[j].Or(0)
		l.AnonByNode[j] = unit.Measured(unit.Bytes(0), "obey")
	}
	for j := range h.Machine.Nodes {
		if m.Nodes.Has(h.Machine.Nodes[j].ID) && j < len(l.AnonByNode) {
			l.AnonByNode[j] = unit.Measured(sum, "obey")
			break
		}
	}
}

// digestRounds is 200 workloads on 8 nodes, one of which is overloaded now and then.
func digestRounds(t *testing.T, seed uint64, rules map[string]int) string {
	b, st, cfg := newRounds(100+seed), State{}, DefaultConfig()
	sum := sha256.New()
	d := digester{t: t, enc: json.NewEncoder(sum), rules: rules}
	cfg.MaxBindsPerWindow = 1 + int(seed)*10
	cfg.Uniform = []Uniform{UniformNone, UniformBind, UniformAlways}[seed%3]
	cfg.Isolate.MinPast = 5
	for n := range 60 {
		hot := -1
		if n >= 30 && n%7 == 0 {
			hot = n % roundNodes
		}
		w := b.window(st, hot)
		if n%5 == 4 { // one does worse
			w.Workloads[n%roundLoads].StallCycles = unit.Measured(uint64(2e9), "perf stalls")
		}
		if n%9 == 8 {
			w.Outcomes = []action.Outcome{{Step: action.Step{Kind: action.SetCPUs, Workload: w.Workloads[n].ID}, Status: action.Drifted}}
		}
		st = d.round(b.h.Machine, cfg, st, w)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
