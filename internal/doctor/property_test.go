// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// everything is each scenario, then random snapshots.
func everything(random int) []snapshot.Snapshot {
	var all []snapshot.Snapshot
	for _, c := range scenarios {
		all = append(all, c.snapshot())
	}
	for seed := range random {
		all = append(all, randomSnapshot(rand.New(rand.NewPCG(uint64(seed), 7))))
	}
	return all
}

// Renumbering the nodes renumbers the answer: same rules, same costs, about the
// renumbered subjects.
func TestRenumbering(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	compared := 0
	for n, s := range everything(300) {
		to := make([]int, len(s.Machine.Nodes))
		for i, p := range r.Perm(20)[:len(to)] {
			to[i] = p // sparse, and in another order
		}
		want := keys(Examine(s, DefaultConfig()), func(id string) string {
			for i, node := range s.Machine.Nodes {
				if strconv.Itoa(node.ID) == id {
					return strconv.Itoa(to[i])
				}
			}
			return id
		})
		got := keys(Examine(renumber(s, to), DefaultConfig()), func(id string) string { return id })
		if !slices.Equal(got, want) {
			t.Fatalf("snapshot %d, nodes to %v:\n%s\nwant\n%s", n, to, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		compared += len(want) - 1
	}
	if compared < 200 {
		t.Errorf("only %d findings were compared", compared)
	}
}

func keys(r Report, node func(string) string) []string {
	out := []string{string(r.Verdict.Answer)}
	for _, f := range r.Findings {
		id := f.Subject.ID
		if f.Subject.Kind == SubjectNode {
			id = node(id)
		}
		out = append(out, fmt.Sprintf("%s %s %s %s cost %.9g %v, %d evidence, %d commands, %s", f.Rule, f.Subject.Kind, id, f.Subject.Workload, f.Cost.Or(-1), f.Decides, len(f.Evidence), len(f.Commands), f.Severity))
	}
	slices.Sort(out[1:])
	return out
}

// Invariants of every report.
func TestInvariants(t *testing.T) {
	total := 0
	for n, s := range everything(1000) {
		r := Examine(s, DefaultConfig())
		if again := Examine(s, DefaultConfig()); !reflect.DeepEqual(r, again) {
			t.Fatalf("snapshot %d: two answers", n)
		}
		if !slices.IsSortedFunc(r.Findings, before) {
			t.Errorf("snapshot %d: not in order", n)
		}
		judged := map[string]bool{}
		for _, f := range r.Findings {
			checkFinding(t, n, f)
			judged[f.Rule] = true
		}
		for _, k := range r.Skipped {
			judged[k.Rule] = true
			if k.Why == "" {
				t.Errorf("snapshot %d: %s was skipped, and does not say why", n, k.Rule)
			}
		}
		for _, q := range r.Quiet {
			if judged[q] {
				t.Errorf("snapshot %d: %s is quiet and is not", n, q)
			}
		}
		if r.Verdict.Why == "" || (r.Verdict.Answer == CannotTell) != (r.Verdict.Missing != "") {
			t.Errorf("snapshot %d: verdict %+v", n, r.Verdict)
		}
		checkAccount(t, n, r)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("snapshot %d: %v", n, err)
		}
		total += len(r.Findings)
	}
	if total < 500 {
		t.Errorf("only %d findings were looked at", total)
	}
}

// checkAccount: the costs of the findings add up to no more than the verdict's loss.
func checkAccount(t *testing.T, n int, r Report) {
	t.Helper()
	have, sum := 0.0, 0.0
	for _, number := range r.Verdict.Numbers {
		if number.Name == "lost" || number.Name == "lost_otherwise" {
			have += number.Value.Or(0)
		}
	}
	for _, f := range r.Findings {
		sum += f.Cost.Or(0)
	}
	if judged := len(r.Verdict.Numbers) > 1; judged && sum > have+1e-9 {
		t.Errorf("snapshot %d: the findings cost %v, and the verdict has %v: %+v", n, sum, have, r.Verdict)
	}
}

// Two processes on two nodes write one line, and hardly read memory: no finding is
// about remote memory, and the verdict has the cost of the line, once.
func TestStallsOfALineAreNotMemory(t *testing.T) {
	s := healthy(2)
	run(&s, 0, 0.5, 0.5)
	far(&s, 0, 50)
	base := view{s, DefaultConfig()}.lostCPUs(s.Window.Workloads[0]).cpus.Or(0)
	keep(&s, 0, 512*mib, 512*mib)
	hotLine(&s, []uint64{400, 400}, []uint64{200, 200})
	s.Samples.Places[0].Loads, s.Samples.Places[0].Stores = []uint64{425, 425}, []uint64{200, 200}
	s.Samples.Lines[0].Users = []snapshot.LineUser{{PID: 100, Workload: "/w0", Samples: 1200}}
	if got, want := (view{s, DefaultConfig()}).lostCPUs(s.Window.Workloads[0]).cpus.Or(0), base*0.04; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v lost to remote memory, want %v of %v", got, want, base)
	}
	r := Examine(s, DefaultConfig())
	if len(r.Findings) != 1 || r.Findings[0].Rule != sharedLineID || math.Abs(r.Findings[0].Cost.Or(0)-0.5*0.96) > 1e-9 {
		t.Errorf("%+v", r.Findings)
	}
	if !strings.Contains(r.Verdict.Why, "and to lines that several nodes write") {
		t.Errorf("%+v", r.Verdict)
	}
	checkAccount(t, 0, r)
}

// Three findings about one workload share its loss; so does one about a workload in it.
func TestFindingsShareOneLoss(t *testing.T) {
	s := healthy(2)
	fill(&s, 0, 5*gib, 80*mib)
	keep(&s, 0, 256*mib, 768*mib)
	far(&s, 0, 75)
	s.Nodes[0].Numastat.Foreign = known[uint64](100000)
	loss := view{s, DefaultConfig()}.lostCPUs(s.Window.Workloads[0]).cpus.Or(0)
	sum := 0.0
	r := Examine(s, DefaultConfig())
	for _, f := range r.Findings {
		sum += f.Cost.Or(0)
		if !strings.Contains(f.Cost.From, "its part") {
			t.Errorf("%s costs %v: it does not say that it shares", f.Rule, f.Cost)
		}
	}
	if len(r.Findings) != 3 || math.Abs(sum-loss) > 1e-9 {
		t.Errorf("%d findings cost %v, want %v", len(r.Findings), sum, loss)
	}
}

func checkFinding(t *testing.T, n int, f Finding) {
	t.Helper()
	if f.Title == "" || f.Cause == "" || f.Remedy == "" || len(f.Evidence) == 0 || len(f.Commands) == 0 || f.Severity == "" {
		t.Errorf("snapshot %d: a part of %s is empty: %+v", n, f.Rule, f)
	}
	if c, ok := f.Cost.Get(); ok && c < 0 {
		t.Errorf("snapshot %d: %s costs %v", n, f.Rule, c)
	}
	if f.Cost.Known() && f.Cost.How == unit.HowUnknown || !f.Cost.Known() && f.Cost.From == "" {
		t.Errorf("snapshot %d: %s: cost %v does not say how, or why not", n, f.Rule, f.Cost)
	}
	all := strings.Join(f.Commands, "\n")
	if f.Subject.Kind != SubjectHost && !mentions(all, f) {
		t.Errorf("snapshot %d: no command of %s mentions %+v:\n%s", n, f.Rule, f.Subject, all)
	}
	if strings.Contains(all, "cmdline") || strings.Count(all, "COMMAND") > 1 {
		t.Errorf("snapshot %d: %s runs the text of a process, or two programs for one:\n%s", n, f.Rule, all)
	}
	if f.Afterwards == "" && (!slices.ContainsFunc(f.Commands, changes) || !f.Cost.Known() && !f.Decides) {
		t.Errorf("snapshot %d: %s promises a better verdict by %q, at a cost of %v", n, f.Rule, f.Commands, f.Cost)
	}
	for _, c := range f.Commands {
		if c == "" || strings.ContainsFunc(c, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("snapshot %d: command %q of %s", n, c, f.Rule)
		}
	}
}

// changing matches the commands that change something; the others only show more.
var changing = regexp.MustCompile(`^(echo |sync; echo |for i in |sysctl \S+=|migratepages |numactl -.*COMMAND|taskset -a?cp \S+ \d|docker update |systemctl set-property |homenode migrate )`)

func changes(command string) bool { return changing.MatchString(command) }

func mentions(commands string, f Finding) bool {
	id := f.Subject.ID
	switch f.Subject.Kind {
	case SubjectWorkload:
		id = strings.Trim(quote(path.Base(id)), "$'")
	case SubjectNode:
		id = strings.TrimSpace(id)
		if w := f.Subject.Workload; w != "" && strings.Contains(commands, strings.Trim(quote(path.Base(w)), "$'")) {
			return true
		}
	case SubjectDevice:
		id = remark(id)[4:]
	}
	return strings.Contains(commands, id)
}

// The rules accept snapshots that no reader would make: slices too short, ids twice.
func TestNoPanicOnBroken(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range 1000 {
		s := randomSnapshot(r)
		for _, cut := range []func(){
			func() { s.Nodes = s.Nodes[:r.IntN(len(s.Nodes)+1)] },
			func() { s.Window.Nodes = nil },
			func() { s.Groups = nil },
			func() { s.Machine.Distances = nil },
			func() { s.Machine.CPUs = nil },
			func() { s.Length = 0 },
			func() { s.Machine.Nodes = append(s.Machine.Nodes, s.Machine.Nodes...) },
			func() { s.Machine.Nodes = nil },
			func() {
				for i := range s.Window.Workloads {
					s.Window.Workloads[i].CPUByNode = s.Window.Workloads[i].CPUByNode[:1]
				}
			},
		} {
			if r.IntN(3) == 0 {
				cut()
			}
		}
		Examine(s, DefaultConfig())
	}
	Examine(snapshot.Snapshot{}, DefaultConfig())
	Examine(healthy(2), Config{})
}

func randomSnapshot(r *rand.Rand) snapshot.Snapshot {
	s := healthy(1 + r.IntN(4))
	n := len(s.Machine.Nodes)
	amounts := func() []unit.Bytes {
		return each(make([]int, n), func(int) unit.Bytes { return unit.Bytes(r.IntN(4)) * unit.Bytes(r.IntN(1024)) * mib })
	}
	counts := func() []uint64 {
		return each(make([]int, n), func(int) uint64 { return uint64(r.IntN(3)) * uint64(r.IntN(300)) })
	}
	for i := range n {
		node := &s.Nodes[i]
		node.LowFree = maybe(r, unit.Bytes(r.IntN(200))*mib)
		node.Memory.File, node.Memory.Free = maybe(r, unit.Bytes(r.IntN(6))*gib), maybe(r, unit.Bytes(r.IntN(2)*r.IntN(4000))*mib)
		node.Numastat.Foreign, node.Traffic.Busy = maybe(r, uint64(r.IntN(2)*r.IntN(1e6))), maybe(r, unit.Ratio(r.Float64()))
		node.Pools[0].Total, node.Pools[0].Free = maybe(r, uint64(r.IntN(2)*r.IntN(100))), maybe(r, uint64(r.IntN(3)))
		s.Window.Nodes[i].CPUBusy = maybe(r, 4*r.Float64())
		s.Window.Nodes[i].Free, s.Window.Nodes[i].File = gone[unit.Bytes](), gone[unit.Bytes]()
		s.IRQs[i].Counts = each(counts(), func(c uint64) uint64 { return c * 1000 })
		for j := range n {
			if i != j {
				s.Machine.Distances[i][j] = unit.Some(10 + r.IntN(12))
			}
		}
	}
	for k := range s.Window.Workloads {
		w, p := &s.Window.Workloads[k], &s.Processes[k]
		run(&s, k, each(make([]int, n), func(int) float64 { return float64(r.IntN(3)) * r.Float64() * 2 })...)
		keep(&s, k, amounts()...)
		far(&s, k, uint64(r.IntN(101)))
		w.RemoteLoads, w.StallCycles = maybe(r, w.RemoteLoads.Or(0)), maybe(r, w.StallCycles.Or(0))
		w.Quota, w.Owner = maybe(r, float64(r.IntN(10))), []string{"none", "systemd", "docker", "kubelet", ""}[r.IntN(5)]
		if r.IntN(2) == 0 {
			bound(&s, k, nodeCPUs(&s, r.IntN(n)), r.IntN(n))
		}
		s.Groups[k].MemoryLimit, s.Groups[k].OOMKills = maybe(r, unit.Bytes(r.IntN(3))*gib), maybe(r, uint64(r.IntN(2)*r.IntN(2)))
		p.Mappings[0].Policy = []string{"default", "bind:" + strconv.Itoa(r.IntN(n)), "interleave:0", ""}[r.IntN(4)]
		for i := range p.Threads {
			p.Threads[i].CPU, p.Threads[i].Waited, p.Threads[i].CPUTime = r.IntN(4*n), maybe(r, r.Float64()), maybe(r, r.Float64())
			if r.IntN(3) == 0 {
				p.Threads[i].Allowed = set.FromCPUs(p.Threads[i].CPU)
			}
		}
		if r.IntN(3) == 0 {
			p.Guest = &snapshot.Guest{VCPUs: 2, Nodes: maybe(r, 1+r.IntN(2)), VCPUThreads: []int{p.Threads[0].TID, p.Threads[1].TID}}
		}
		s.Samples.Places[k].Loads, s.Samples.Places[k].Remote, s.Samples.Places[k].Stores = counts(), counts(), each(counts(), func(c uint64) uint64 { return c * uint64(r.IntN(2)) })
		line := snapshot.Line{PID: p.PID, Workload: p.Workload, Bytes: 64 << (6 * r.IntN(2)), Loads: counts(), Stores: counts(), Writers: r.IntN(4)}
		if other := s.Processes[r.IntN(len(s.Processes))]; other.PID != p.PID {
			part := uint64(r.IntN(1 + int(total(line.Loads))))
			line.Users = []snapshot.LineUser{{PID: p.PID, Workload: p.Workload, Samples: total(line.Loads) + total(line.Stores) - part}, {PID: other.PID, Workload: other.Workload, Samples: part}}
		}
		s.Samples.Lines = append(s.Samples.Lines, line)
	}
	b := &s.Balancing
	b.Mode, b.HintFaults, b.HintLocal = maybe(r, r.IntN(2)), maybe(r, uint64(r.IntN(1e6))), maybe(r, uint64(r.IntN(1e6)))
	b.PagesMigrated, b.MigrateFailed = maybe(r, uint64(r.IntN(1e6))), maybe(r, uint64(r.IntN(1e5)))
	s.Settings.ZoneReclaim, s.Hypervisor = maybe(r, r.IntN(8)*r.IntN(2)), maybe(r, []string{"", "kvm"}[r.IntN(2)])
	s.Swapping.Out = maybe(r, uint64(r.IntN(2)*r.IntN(1e5)))
	if r.IntN(4) == 0 { // one in another
		k := r.IntN(len(s.Window.Workloads))
		inner := "/w0/inner"
		s.Window.Workloads[k].ID, s.Groups[k].ID, s.Processes[k].Workload, s.Samples.Places[k].Workload = inner, inner, inner, inner
		s.Samples.Lines[k].Workload, s.Samples.Lines[k].Users = inner, nil
	}
	if r.IntN(5) == 0 {
		s.Machine.Doubts = []string{"a doubt"}
	}
	if r.IntN(5) == 0 {
		s.Samples = snapshot.Samples{Why: "no PMU"}
	}
	return s
}

func maybe[T any](r *rand.Rand, v T) unit.Value[T] {
	if r.IntN(8) == 0 {
		return gone[T]()
	}
	return known(v)
}

// An unknown figure is never taken for zero: when the figures are hidden one by one, no
// finding appears that was not there before.
func TestUnknownIsNoZero(t *testing.T) {
	hidden := 0
	for _, c := range scenarios {
		s := c.snapshot()
		have := map[string]bool{}
		for _, f := range Examine(s, DefaultConfig()).Findings {
			have[f.Rule+f.Subject.ID] = true
		}
		for _, v := range figures(reflect.ValueOf(&s).Elem()) {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			v.SetZero()
			v.FieldByName("From").SetString("hidden")
			hidden++
			for _, f := range Examine(s, DefaultConfig()).Findings {
				if !have[f.Rule+f.Subject.ID] && !mayAppear[f.Rule] {
					t.Errorf("%s/%s: with %v hidden: %s: %s", c.rule, c.name, old, f.Rule, f.Title)
				}
			}
			v.Set(old)
		}
	}
	if hidden < 1000 {
		t.Errorf("only %d figures were hidden", hidden)
	}
}

// mayAppear are the rules that fall back to an estimate when the figure that spoke
// against them is hidden: pages for the counters, the load of the CPU for the waiting.
// The general finding is among them: the finding that knew the cause may be gone.
var mayAppear = map[string]bool{"remote-workload": true, "wider-than-node": true, "pinned-to-busy-cpu": true}

// figures are the known values in a snapshot.
func figures(v reflect.Value) (all []reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if how := v.FieldByName("How"); how.IsValid() && v.NumField() == 3 && v.Type().Field(0).Name == "V" {
			if how.Uint() != 0 {
				all = append(all, v)
			}
			return all
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				all = append(all, figures(f)...)
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			all = append(all, figures(v.Index(i))...)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			all = figures(v.Elem())
		}
	}
	return all
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		make  func(s *snapshot.Snapshot)
		want  Answer
		how   unit.Source
		why   string
	}{
		{"healthy", 2, func(*snapshot.Snapshot) {}, No, unit.HowMeasured, "about 0.00"},
		{"one node", 1, func(*snapshot.Snapshot) {}, No, unit.HowMeasured, "one node"},
		{"a guest whose one node is a lie", 1, func(s *snapshot.Snapshot) { s.Hypervisor = known("kvm"); far(s, 0, 30) }, CannotTell, 0, "flat or wrong"},
		{"no nodes", 2, func(s *snapshot.Snapshot) { s.Machine.Nodes = nil }, CannotTell, 0, "no nodes"},
		{"idle", 2, func(s *snapshot.Snapshot) { run(s, 0, 0, 0); run(s, 1, 0, 0.05) }, CannotTell, 0, "nothing ran"},
		{"CPU time unknown", 2, func(s *snapshot.Snapshot) { s.Window.Nodes[0].CPUBusy = gone[float64]() }, CannotTell, 0, "unknown"},
		{"half remote", 2, func(s *snapshot.Snapshot) { far(s, 0, 50) }, Yes, unit.HowMeasured, "are lost"},
		{"a little", 2, func(s *snapshot.Snapshot) { far(s, 0, 15) }, No, unit.HowMeasured, "but not nothing"},
		{"modelled", 2, func(s *snapshot.Snapshot) {
			far(s, 0, 50)
			s.Window.Workloads[0].RemoteLoads = unit.Modelled[uint64](50e6, "lab")
		}, Yes, unit.HowModelled, "by a model"},
		{"no counters, pages are local", 2, func(s *snapshot.Snapshot) { blind(s) }, No, unit.HowUnknown, "lost"},
		{"no counters, pages are remote", 2, func(s *snapshot.Snapshot) { blind(s); keep(s, 0, 0, 1*gib) }, CannotTell, 0, "between 0% and 17.3%"},
		{"no counters of reads, stalls counted, pages remote", 2, func(s *snapshot.Snapshot) {
			keep(s, 0, 0, 1*gib)
			s.Window.Workloads[0].RemoteLoads = gone[uint64]()
		}, Yes, unit.HowEstimated, "estimated from pages"},
		{"most of the time belongs to no workload", 2, func(s *snapshot.Snapshot) { s.Window.Nodes[0].CPUBusy = known(3.9) }, CannotTell, 0, "between"},
		{"no reads at all", 2, func(s *snapshot.Snapshot) {
			for k := range s.Window.Workloads {
				s.Window.Workloads[k].LocalLoads, s.Window.Workloads[k].RemoteLoads = known[uint64](0), known[uint64](0)
				keep(s, k, 512*mib, 512*mib)
			}
		}, No, unit.HowMeasured, "about 0 "},
		{"one node's bandwidth decides", 2, func(s *snapshot.Snapshot) { busy(s, 0.92, 0.1) }, Yes, unit.HowMeasured, "saturated"},
		{"out of memory beside free memory decides", 2, func(s *snapshot.Snapshot) {
			bound(s, 0, nodeCPUs(s, 0), 0)
			fill(s, 0, 100*mib, 100*mib)
		}, Yes, unit.HowMeasured, "tight"},
	} {
		s := healthy(c.nodes)
		c.make(&s)
		v := Examine(s, DefaultConfig()).Verdict
		if v.Answer != c.want || c.how != v.How && c.how != 0 || !strings.Contains(v.Why, c.why) {
			t.Errorf("%s: %+v, want %s (%v) %q", c.name, v, c.want, c.how, c.why)
		}
	}
}

// blind takes the counters away.
func blind(s *snapshot.Snapshot) {
	for k := range s.Window.Workloads {
		w := &s.Window.Workloads[k]
		w.LocalLoads, w.RemoteLoads, w.Cycles, w.StallCycles = gone[uint64](), gone[uint64](), gone[uint64](), gone[uint64]()
	}
}

// The cost: by hand, its bounds, and that it grows with what it should grow with.
func TestLostCPUs(t *testing.T) {
	s := healthy(2)
	far(&s, 0, 50)
	l := view{s, DefaultConfig()}
	w := s.Window.Workloads[0]
	lost := func(change func(w *window.Workload)) float64 {
		v := w
		change(&v)
		got, ok := l.lostCPUs(v).cpus.Get()
		if !ok {
			t.Fatal(l.lostCPUs(v).cpus)
		}
		return got
	}
	// 1 CPU × 1/2 stalled × excess 0.5 × 0.66 / (0.5 + 0.5 × 1.66)
	if got, want := lost(func(*window.Workload) {}), 0.5*0.33/1.33; got < want*0.999 || got > want*1.001 {
		t.Errorf("%v, want %v", got, want)
	}
	base := lost(func(*window.Workload) {})
	if lost(func(w *window.Workload) { w.RemoteLoads = known[uint64](90e6) }) <= base {
		t.Error("more remote reads cost no more")
	}
	if lost(func(w *window.Workload) { w.StallCycles = known[uint64](19e9) }) <= base {
		t.Error("more stalls cost no more")
	}
	if got := lost(func(w *window.Workload) { w.RemoteLoads = known[uint64](0) }); got != 0 {
		t.Errorf("no remote reads cost %v", got)
	}
	none := w
	none.CPU = gone[float64]()
	if v := l.lostCPUs(none).cpus; v.Known() || v.From == "" {
		t.Errorf("unknown CPU time: %v", v)
	}
}

// HMAT's latencies take precedence over SLIT, and bound the loss: reads that cannot
// have waited that long did not.
func TestLostCPUsByHMAT(t *testing.T) {
	s := healthy(2)
	far(&s, 0, 50)
	both := set.FromNodes(0, 1)
	s.Machine.Nodes[0].Access = []machine.Access{{Class: 1, Initiators: both, ReadLatency: unit.Some(80)}}
	s.Machine.Nodes[1].Access = []machine.Access{{Class: 1, Initiators: both, ReadLatency: unit.Some(160)}}
	l := view{s, DefaultConfig()}
	if k, ok := l.ratio(0, 1); !ok || k != 2 {
		t.Errorf("ratio %v %v, want 160/80", k, ok)
	}
	if k, ok := l.ratio(1, 0); !ok || k != 1 {
		t.Errorf("ratio %v %v, want no less than 1", k, ok)
	}
	s.Length = 10 * time.Second
	s.Window.Workloads[0].RemoteLoads, s.Window.Workloads[0].LocalLoads = known[uint64](1000), known[uint64](1000)
	lost := view{s, DefaultConfig()}.lostCPUs(s.Window.Workloads[0]).cpus.Or(1)
	if lost > 1000*160e-9/10 { // a thousand reads
		t.Errorf("%v CPUs are lost to 1000 reads", lost)
	}
}

// Measured latencies take precedence over the firmware's tables, if the profile has all
// pairs.
func TestLostCPUsByProfile(t *testing.T) {
	s := healthy(2)
	far(&s, 0, 50)
	run(&s, 0, 1, 0)
	keep(&s, 0, 0, 1*gib)
	pair := func(from, to int, ns float64) profile.PairFigure {
		return profile.PairFigure{From: from, To: to, Figure: profile.FigureOf([]float64{ns})}
	}
	examine := func(p *profile.Profile) (view, loss) {
		c := DefaultConfig()
		c.Profile = p
		l := view{s, c}
		return l, l.lostCPUs(s.Window.Workloads[0])
	}
	_, without := examine(nil)
	slow := &profile.Profile{How: unit.HowModelled, Latency: []profile.PairFigure{pair(0, 0, 100), pair(0, 1, 300), pair(1, 0, 100), pair(1, 1, 100)}}
	l, with := examine(slow)
	if math.Abs(with.slower.Or(0)-3) > 1e-9 || math.Abs(without.slower.Or(0)-(1+1.1*l.c.SLITExcess)) > 1e-9 {
		t.Errorf("k is %v with 300/100 ns, %v without", with.slower, without.slower)
	}
	if k, ok := l.ratio(0, 1); !ok || k != 3 {
		t.Errorf("ratio %v %v, want 300/100", k, ok)
	}
	partial := &profile.Profile{How: unit.HowMeasured, Latency: slow.Latency[:2]}
	if l, lost := examine(partial); l.mustRatio(t, 0, 1) != 1+1.1*l.c.SLITExcess || lost.slower.Or(0) != without.slower.Or(0) || strings.Contains(lost.slower.From, "profile") {
		t.Errorf("k is %v by a profile of one node of two, %v without", lost.slower, without.slower)
	}
	if with.cpus.Or(0) <= without.cpus.Or(0) || !strings.Contains(with.slower.From, "profile (latencies modelled)") {
		t.Errorf("lost %v with the profile, %v without", with.cpus, without.cpus)
	}
	s.Machine.Nodes[0].Access = []machine.Access{{Class: 1, Initiators: set.FromNodes(0, 1), ReadLatency: unit.Some(80)}}
	s.Machine.Nodes[1].Access = []machine.Access{{Class: 1, Initiators: set.FromNodes(0, 1), ReadLatency: unit.Some(160)}}
	if l, _ := examine(slow); l.mustRatio(t, 0, 1) != 3 {
		t.Error("HMAT takes precedence over measured latencies")
	}
	half := &profile.Profile{Latency: []profile.PairFigure{pair(0, 1, 300), {From: 0, To: 0}}}
	if l, _ := examine(half); l.mustRatio(t, 0, 1) != 2 {
		t.Error("a measured latency was compared with the firmware's")
	}
	if l, lost := examine(partial); lost.slower.Or(0) != 2 || !strings.HasPrefix(lost.slower.From, "HMAT,") {
		t.Errorf("k is %v, want HMAT's", lost.slower)
	} else if ns, ok := l.localLatency(); !ok || ns != 120 {
		t.Errorf("local latency %g, want the mean of the firmware's 80 and 160", ns)
	}
	if l, _ := examine(slow); l.profileSource() != "profile (latencies modelled)" {
		t.Error(l.profileSource())
	} else if ns, ok := l.localLatency(); !ok || ns != 100 {
		t.Errorf("local latency %g, want the profile's", ns)
	}
}

func (l view) mustRatio(t *testing.T, from, to int) float64 {
	t.Helper()
	k, ok := l.ratio(from, to)
	if !ok {
		t.Fatalf("no ratio from %d to %d", from, to)
	}
	return k
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/a/b.service": "/a/b.service", "": "''", "a b": "'a b'", "a'b": `'a'\''b'`, "$(x)": "'$(x)'",
		"a\nb": `$'a\x0ab'`, "é": "'é'", "\u202e": `$'\xe2\x80\xae'`, "\xff'": `$'\xff\''`, "-n": "-n",
	} {
		if got := quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
