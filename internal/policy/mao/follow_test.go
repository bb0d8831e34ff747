// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"homenode/internal/action"
	"homenode/internal/profile"
	"homenode/internal/render/words"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/window/windowtest"
)

// pair is a bound victim and two neighbours on its node; /loud holds most of the caches.
// stall is the victim's stall cycles of 1,000.
type pair struct {
	h     *windowtest.Host
	cfg   Config
	st    State
	stall uint64
	gone  bool // the victim
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{h: &windowtest.Host{}, cfg: DefaultConfig(), stall: 200}
	p.h.Shape([]int{0, 1}, 8, 16*unit.GiB)
	p.cfg.MakeRoom = false
	for _, line := range []string{
		"workload /victim approved cpu=2 cpus=0-7 mems=0 ours=cpus,mems anon=1GiB local=1000000 remote=0 cycles=1000 llc=1MiB",
		"workload /loud cpu=2 on=2,0 anon=0,1GiB llc=8MiB", "workload /soft cpu=2 on=2,0 anon=0,1GiB llc=3MiB",
		"workload /far cpu=2 on=0,2 anon=0,1GiB llc=30MiB",
	} {
		if _, err := p.h.Line(line); err != nil {
			t.Fatal(err)
		}
	}
	p.h.Load("/victim").Waiting = unit.Measured(unit.Ratio(0), "test")
	p.st.Workloads = []Memory{{Workload: "/victim", Nodes: set.FromNodes(0)}}
	return p
}

// tick runs n windows, and returns the actions as text.
func (p *pair) tick(t *testing.T, n int) (said []string) {
	t.Helper()
	for range n {
		if !p.gone {
			p.h.Load("/victim").StallCycles = unit.Measured(p.stall, "test")
		}
		w := p.h.Window()
		next, actions, reasons := Step(p.h.Machine, p.cfg, p.st, w)
		for i, r := range reasons {
			if !words.Has(r.Rule) || r.Workload != w.Workloads[i].ID {
				t.Fatalf("no reason: %+v", r)
			}
		}
		for _, a := range action.Decided(actions) {
			text := string(a.Kind) + " " + a.Workload
			if a.Class != nil && !a.Class.None() {
				text += fmt.Sprintf(" %v/%v", a.Class.Cache, a.Class.Bandwidth)
			}
			if len(a.Reason.Numbers) == 0 && a.Kind != action.Unbind {
				t.Fatalf("%v has no numbers", a)
			}
			said = append(said, text)
		}
		p.st = roundTrip(t, next)
	}
	return said
}

func wantSaid(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("asked for %q, want %q", got, want)
	}
}

// The victim's working set fits the caches: it reads next to nothing from DRAM until a
// neighbour pollutes them. That time is its past all the same.
func TestIsolateForWhatFitsTheCaches(t *testing.T) {
	p := newPair(t)
	reads := func(local uint64) {
		p.h.Load("/victim").LocalLoads, p.h.Load("/victim").RemoteLoads = unit.Measured(local, "test"), unit.Measured(local/10, "test")
	}
	reads(p.cfg.MinLoads / 2)
	wantSaid(t, p.tick(t, 60))
	reads(1000 * p.cfg.MinLoads)
	p.stall = 800
	wantSaid(t, p.tick(t, 3), "isolate /loud 50.0%/70.0%")
	reads(p.cfg.MinLoads / 2)
	p.stall = 200
	wantSaid(t, p.tick(t, 300))
	if q := p.st.find("/victim").Quality; q == nil || !q.Held || q.Neighbour != "/loud" {
		t.Fatalf("what helped is not kept: %+v", q)
	}
}

// A walk through the caches stalls nearly always, polluted or not: 90 % of its cycles and then
// 98 % are five times the time.
func TestIsolateWhatStallsNearlyAlways(t *testing.T) {
	p := newPair(t)
	p.stall = 900
	wantSaid(t, p.tick(t, 60))
	p.stall = 910
	wantSaid(t, p.tick(t, 20))
	p.stall = 980
	wantSaid(t, p.tick(t, 3), "isolate /loud 50.0%/70.0%")
	p.stall = 1000
	p.tick(t, 1)
	if q := p.st.find("/victim").Quality; !(q.Ratio > 5 && q.Ratio < 1000) {
		t.Errorf("%+v", q)
	}
}

// A busy thread uses a little less than a CPU in one window, and a little more in another: that
// is the same load.
func TestIsolateAtWholeCPUs(t *testing.T) {
	p := newPair(t)
	p.h.Load("/victim").CPU = unit.Measured(1.996, "test")
	wantSaid(t, p.tick(t, 60))
	p.stall = 400
	p.h.Load("/victim").CPU = unit.Measured(2.004, "test")
	wantSaid(t, p.tick(t, 3), "isolate /loud 50.0%/70.0%")
	for cpus := 1.0; cpus <= 64; cpus *= 2 {
		if a, b, c := loadOf(cpus*0.96), loadOf(cpus*1.04), loadOf(cpus*1.42); a != b || c != b+1 || loadOf(2*cpus) != b+2 {
			t.Errorf("%v CPUs: %d, %d, %d", cpus, a, b, c)
		}
	}
}

// While it is open whether a neighbour is to blame, or whether a step helps, the next window is
// wanted soon. Once that is known it is not, whatever the victim does then.
func TestAlarmed(t *testing.T) {
	p := newPair(t)
	windows := func(n int) (alarms int) {
		for range n {
			before := p.st
			p.tick(t, 1)
			if p.st.Alarmed(p.cfg.Isolate, before, p.h.Seq) {
				alarms++
			}
		}
		return alarms
	}
	if n := windows(40); n != 0 {
		t.Errorf("%d alarms while it does well", n)
	}
	p.stall = 400
	if n := windows(3); n != 3 {
		t.Errorf("%d alarms in 3 windows until the isolation", n)
	}
	p.stall = 200
	if n := windows(40); n < p.cfg.Isolate.Watch-1 || n > p.cfg.Isolate.Watch {
		t.Errorf("%d alarms while a step is watched for %d windows", n, p.cfg.Isolate.Watch)
	}
	p.h.Load("/victim").Waiting = unit.UnknownValue[unit.Ratio]("test")
	p.stall = 400
	if n := windows(40); n != 0 {
		t.Errorf("%d alarms for a victim that cannot be judged", n)
	}
	p.cfg.Isolate.Enabled = false
	if n := windows(1); n != 0 {
		t.Error("an alarm although isolation is off")
	}
}

// The victim does worse than its own past without lack of CPU. The loudest neighbour is
// isolated; this helps a little, so a tighter step follows; that helps, so it stays, and is
// given back after a while.
func TestIsolateHelps(t *testing.T) {
	p := newPair(t)
	wantSaid(t, p.tick(t, 60))
	p.stall = 400
	wantSaid(t, p.tick(t, 3), "isolate /loud 50.0%/70.0%")
	p.stall = 300
	wantSaid(t, p.tick(t, 6), "isolate /loud 25.0%/40.0%")
	p.stall = 200
	wantSaid(t, p.tick(t, 300))
	if q := p.st.find("/victim").Quality; q == nil || !q.Held || q.Neighbour != "/loud" {
		t.Fatalf("what helped is not kept: %+v", q)
	}
	wantSaid(t, p.tick(t, 100), "isolate /loud") // given back, to test the need
	wantSaid(t, p.tick(t, 50))
}

// Nothing helps: each neighbour is tried and given back. Then the contention is escalated,
// once, with what was tried.
func TestIsolateDoesNotHelp(t *testing.T) {
	p := newPair(t)
	p.tick(t, 60)
	p.stall = 400
	wantSaid(t, p.tick(t, 20), "isolate /loud 50.0%/70.0%", "isolate /loud", "isolate /soft 50.0%/70.0%", "isolate /soft", "escalate /victim")
	if q := p.st.find("/victim").Quality; q.Quiet == 0 {
		t.Fatalf("%+v", q)
	}
	said := p.tick(t, int(p.cfg.Isolate.Cooldown)+60)
	if len(said) > 0 {
		t.Errorf("after it was escalated, as slow as then is the way things are; but: %q", said)
	}
}

func TestIsolateNeedsEvidence(t *testing.T) {
	for name, change := range map[string]func(p *pair){
		"no caches or traffic are known": func(p *pair) {
			for _, id := range []string{"/victim", "/loud", "/soft", "/far"} {
				p.h.Load(id).LLC = unit.UnknownValue[unit.Bytes]("no resctrl")
			}
		},
		"all are approved": func(p *pair) { p.h.Load("/loud").Approved, p.h.Load("/soft").Approved = true, true },
		"all are spared":   func(p *pair) { p.cfg.Isolate.Never = []string{"/loud", "/soft"} },
		"no steps":         func(p *pair) { p.cfg.Isolate.Steps = nil },
	} {
		p := newPair(t)
		change(p)
		p.tick(t, 60)
		p.stall = 400
		for _, said := range p.tick(t, 10) {
			if said != "escalate /victim" {
				t.Errorf("%s: %s", name, said)
			}
		}
	}
	for name, change := range map[string]func(p *pair){
		"it waits for CPU":        func(p *pair) { p.h.Load("/victim").Waiting = unit.Measured(unit.Ratio(0.5), "test") },
		"its waiting is unknown":  func(p *pair) { p.h.Load("/victim").Waiting = unit.UnknownValue[unit.Ratio]("no schedstat") },
		"its quota is used up":    func(p *pair) { p.h.Load("/victim").Throttled = unit.Measured(unit.Ratio(0.5), "test") },
		"its pages are elsewhere": func(p *pair) { _, _ = p.h.Line("workload /victim anon=0,1GiB local=0 remote=1000000") },
		"it is switched off":      func(p *pair) { p.cfg.Isolate.Enabled = false },
	} {
		p := newPair(t)
		p.tick(t, 60)
		change(p)
		p.stall = 400
		if said := p.tick(t, 20); len(said) > 0 {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// A victim or neighbour goes away, an approval or a refusal comes, isolation is switched
// off: nothing stays isolated. A workload that is gone makes no more requests.
func TestIsolateEnds(t *testing.T) {
	back := []string{"isolate /loud"}
	for name, c := range map[string]struct {
		change func(p *pair)
		want   []string
	}{
		"the victim is gone":       {func(p *pair) { p.gone = true; p.h.Remove("/victim") }, nil},
		"it is not approved":       {func(p *pair) { p.h.Load("/victim").Approved = false }, []string{"unbind /victim", "isolate /loud"}},
		"the neighbour is gone":    {func(p *pair) { p.h.Remove("/loud") }, []string{"isolate /soft 50.0%/70.0%"}},
		"the neighbour is one now": {func(p *pair) { p.h.Load("/loud").Approved = true }, []string{"bind /loud", "isolate /loud", "isolate /soft 50.0%/70.0%"}},
		"switched off":             {func(p *pair) { p.cfg.Isolate.Enabled = false }, back},
		"refused": {func(p *pair) {
			p.h.Report(action.Outcome{Step: action.Step{Kind: action.SetClass, Workload: "/loud"}, Status: action.Refused})
		}, []string{"isolate /soft 50.0%/70.0%"}},
	} {
		p := newPair(t)
		p.tick(t, 60)
		p.stall = 400
		p.tick(t, 4)
		c.change(p)
		said := p.tick(t, 2+p.cfg.ForgetAfter*b2i(name == "the neighbour is gone"))
		if !slices.Equal(said, c.want) && !(name == "it is not approved" && len(said) > 0 && slices.Contains(said, "isolate /loud")) {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}

// A service of three replicas is bound one after the other, or not at all.
func TestServiceIsBoundAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		uniform Uniform
		third   string
		want    int
	}{
		"all":                  {UniformBind, "", 3},
		"one is on target":     {UniformBind, "local=100000 remote=0", 3},
		"one is not approved":  {UniformBind, "approved=no", 0},
		"one does not fit":     {UniformBind, "cpu=7", 0},
		"one is pinned":        {UniformBind, "pinned-cpus=x", 2},
		"each for itself":      {UniformNone, "cpu=7", 2},
		"unknown":              {UniformBind, "anon=?", 0},
		"always, does not fit": {UniformAlways, "cpu=7", 0},
	} {
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1}, 4, 4*unit.GiB)
		for i := range 3 {
			extra := ""
			if i == 2 {
				extra = c.third
			}
			if _, err := h.Line(strings.TrimSpace(fmt.Sprintf("workload /r%d service=s approved cpu=1.5 anon=100MiB,100MiB local=50000 remote=50000 %s", i, extra))); err != nil {
				t.Fatal(err)
			}
		}
		cfg.Uniform = c.uniform
		for range 10 {
			st, _, _ = Step(h.Machine, cfg, st, h.Window())
		}
		bound := 0
		for _, m := range st.Workloads {
			bound += b2i(m.bound())
		}
		if bound != c.want {
			t.Errorf("%s: %d bound, want %d", name, bound, c.want)
		}
	}
}

// With always, after each window all replicas that homenode may place are bound, or none;
// except for UniformWindows while binding is under way.
func TestServiceStaysAlike(t *testing.T) {
	seen := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 12))
		h, cfg, st := randomHost(r), randomConfig(r), State{}
		cfg.Uniform, cfg.UniformWindows = UniformAlways, 3
		uneven := map[string]int{}
		for range 60 {
			mutate(r, h)
			for i := range 6 {
				h.Load(fmt.Sprintf("/w%d", i)).Service = fmt.Sprintf("s%d", i%2)
			}
			w := h.Window()
			st, _, _ = Step(h.Machine, cfg, st, w)
			for s := range 2 {
				name, bound, rest := fmt.Sprintf("s%d", s), 0, 0
				for _, wl := range w.Workloads {
					if m := st.find(wl.ID); wl.Service == name && (m.bound() || !wl.Binding.PinnedCPUs) {
						bound, rest = bound+b2i(m.bound()), rest+b2i(!m.bound())
					}
				}
				if uneven[name]++; bound == 0 || rest == 0 {
					uneven[name] = 0
				}
				seen += b2i(bound > 1 && rest == 0)
				if uneven[name] > 6*(cfg.UniformWindows+2) { // each bind starts the clock anew, and there are six
					t.Fatalf("seed %d: %s has been uneven for %d windows", seed, name, uneven[name])
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("a whole service was bound in %d windows only", seen)
	}
}

// However much a load flaps: in an hour of windows of 10 s no workload is bound, unbound or
// given other nodes more than 30 times. The default back-off is 8 windows, and only a
// binding of four times as many resets it. That is one cycle in 40 windows, with two
// changes each; the rest are the first changes and wider bindings.
func TestFlappingIsBounded(t *testing.T) {
	const hour, limit = 360, 30
	most := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 13))
		h, cfg, st := &windowtest.Host{}, DefaultConfig(), State{}
		h.Shape([]int{0, 1, 2}, 2, 2*unit.GiB)
		cfg.Strategy, cfg.MinHistory = []Strategy{StrategyA, StrategyB}[seed%2], 5
		asked := map[string][]int{}
		on, off := 1+r.IntN(60), 1+r.IntN(20)
		for n := range 2 * hour {
			for i := range 3 {
				cpu, busy := 1.0, 0.5
				if (n+i*7)%(on+off) >= on {
					cpu, busy = 2.0, 2.0
				}
				_, _ = h.Line(fmt.Sprintf("workload /w%d approved quota=1.2 cpu=%.2f anon=%dMiB local=50000 remote=50000", i, cpu, 100+r.IntN(400)*r.IntN(2)))
				if b := st.Bound(fmt.Sprintf("/w%d", i)); !b.IsEmpty() {
					l := h.Load(fmt.Sprintf("/w%d", i))
					l.Binding = window.Binding{CPUs: h.Machine.CPUsOf(b), Mems: b, OursCPUs: true, OursMems: true}
				} else {
					h.Load(fmt.Sprintf("/w%d", i)).Binding = window.Binding{}
				}
				_, _ = h.Line(fmt.Sprintf("node %d busy=%.2f", i, busy+r.Float64()/10))
			}
			next, actions, _ := Step(h.Machine, cfg, st, h.Window())
			for _, a := range actions {
				if a.Kind == action.Bind || a.Kind == action.Unbind {
					asked[a.Workload] = append(asked[a.Workload], n)
				}
			}
			st = next
		}
		for id, at := range asked {
			for i := range at {
				within := 0
				for within < len(at)-i && at[i+within] < at[i]+hour {
					within++
				}
				if most = max(most, within); within > limit {
					t.Fatalf("seed %d: %s was changed %d times within an hour (load on %d, off %d)", seed, id, within, on, off)
				}
			}
		}
	}
	if most < 6 {
		t.Errorf("never more than %d changes an hour: nothing flapped", most)
	}
	t.Logf("at most %d changes of a workload in an hour", most)
}

// Devices: of equal nodes the one with the card is chosen, unless it is full; with
// require_near no other is. A refusal has its numbers.
func TestDevices(t *testing.T) {
	for name, c := range map[string]struct {
		near    set.NodeSet
		full    int // node whose CPUs another workload has; −1: none
		require bool
		weight  float64
		want    string // nodes, or the rule
	}{
		"no devices":           {set.NodeSet{}, -1, true, 0.5, "0"},
		"the card's node":      {set.FromNodes(2), -1, false, 0.5, "2"},
		"no weight":            {set.FromNodes(2), -1, false, 0, "0"},
		"it is full: nearest":  {set.FromNodes(2), 2, false, 0.5, "3"},
		"it is full: required": {set.FromNodes(2), 2, true, 0.5, "mao.skip.device"},
		"one of two":           {set.FromNodes(2, 1), 2, true, 0.5, "1"},
	} {
		h, cfg := &windowtest.Host{}, DefaultConfig()
		cfg.RequireNear, cfg.DeviceWeight, cfg.MoveWeight, cfg.MaxNodes = c.require, c.weight, 0, 1
		lines := []string{
			"machine nodes=4 cpus=4 mem=4GiB", "distances 10,16,22,22 16,10,22,22 22,22,10,16 22,22,16,10",
			"workload /a approved cpu=2 anon=25MiB,25MiB,25MiB,25MiB local=10000 remote=30000",
		}
		if c.full >= 0 {
			lines = append(lines, fmt.Sprintf("workload /other cpu=4 cpus=%d-%d pinned-cpus=x", 4*c.full, 4*c.full+3))
		}
		for _, line := range lines {
			if _, err := h.Line(line); err != nil {
				t.Fatal(err)
			}
		}
		h.Load("/a").Near = c.near
		st, _, reasons := Step(h.Machine, cfg, State{}, h.Window())
		got := st.Bound("/a").String()
		if got == "" {
			got = reasons[0].Rule
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %v", name, got, c.want, reasons[0])
		}
	}
}

// Bandwidth is judged by measurements of the nodes and the workload, where there are any.
func TestMeasuredBandwidth(t *testing.T) {
	for name, c := range map[string]struct {
		node, own unit.Value[unit.Bytes]
		want      string
	}{
		"nothing measured": {unit.UnknownValue[unit.Bytes]("x"), unit.UnknownValue[unit.Bytes]("x"), "0"},
		"the node is full": {unit.Measured(900*unit.MiB, "imc"), unit.Measured(300*unit.MiB, "mbm"), "1"},
		"its own part":     {unit.Measured(900*unit.MiB, "imc"), unit.Measured(50*unit.MiB, "mbm"), "0"},
		"it is too much":   {unit.Measured(0*unit.MiB, "imc"), unit.Measured(2000*unit.MiB, "mbm"), "mao.skip.bandwidth"},
	} {
		h, cfg := &windowtest.Host{}, DefaultConfig()
		cfg.NodeBandwidth, cfg.MaxNodes = map[int]unit.Bytes{0: 1000 * unit.MiB, 1: 1000 * unit.MiB}, 1
		for _, line := range []string{"machine nodes=2 cpus=4 mem=4GiB", "workload /a approved cpu=2 anon=60MiB,40MiB local=10000 remote=30000"} {
			if _, err := h.Line(line); err != nil {
				t.Fatal(err)
			}
		}
		h.Load("/a").Traffic = c.own
		w := h.Window()
		w.Nodes[0].Traffic = c.node
		st, _, reasons := Step(h.Machine, cfg, State{}, w)
		got := st.Bound("/a").String()
		if got == "" {
			got = reasons[0].Rule
			if !strings.Contains(words.Sentence(reasons[0]), "come closest") || reasons[0].Numbers[len(reasons[0].Numbers)-1].Name != "bandwidth_needed" {
				t.Errorf("%s: a refusal without its numbers: %v", name, reasons[0])
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %v", name, got, c.want, reasons[0])
		}
	}
}

// What a profile measured is the limit of nodes that the configuration does not name.
func TestWithProfile(t *testing.T) {
	p := &profile.Profile{
		Bandwidth: []profile.PairFigure{{From: 0, To: 0, Figure: profile.FigureOf([]float64{5e9})}, {From: 0, To: 1, Figure: profile.FigureOf([]float64{2e9})}, {From: 1, To: 1, Figure: profile.FigureOf([]float64{6e9})}},
		Peak:      []profile.NodeFigure{{Node: 0, Figure: profile.FigureOf([]float64{9e9})}},
	}
	cfg := DefaultConfig()
	cfg.NodeBandwidth = map[int]unit.Bytes{1: 7}
	if got := cfg.WithProfile(p).NodeBandwidth; !reflect.DeepEqual(got, map[int]unit.Bytes{0: 9e9, 1: 7}) || len(cfg.NodeBandwidth) != 1 {
		t.Errorf("%v", got)
	}
	p.Bandwidth[1].Figure, p.Peak = profile.FigureOf([]float64{8e9}), nil // more than node 0 reads of its own
	if got := cfg.WithProfile(p).NodeBandwidth; p.BandwidthDoubt() == "" || !reflect.DeepEqual(got, map[int]unit.Bytes{1: 7}) {
		t.Errorf("a profile that contradicts itself gives limits: %v", got)
	}
	if got := DefaultConfig().WithProfile(&profile.Profile{}); got.NodeBandwidth != nil {
		t.Errorf("%v", got.NodeBandwidth)
	}
}
