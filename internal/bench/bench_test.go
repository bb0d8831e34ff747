// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func near(t *testing.T, what string, f profile.Figure, want, tolerance float64) {
	t.Helper()
	got, ok := f.Median.Get()
	if !ok || math.Abs(got-want) > tolerance*want {
		t.Errorf("%s: %v (%s), want %g", what, f.Median, f.Why, want)
	}
}

// valid: the measured profile can be written.
func valid(t *testing.T, p profile.Profile) {
	t.Helper()
	data, err := profile.Encode(p)
	if err == nil {
		_, err = profile.Decode(data)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Every part finds the fake machine's figures, within its noise.
func TestEveryPartRecovers(t *testing.T) {
	f := newFake()
	f.noise = 0.01
	p, err := Measure(t.Context(), f, f.options(), profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, p)
	if !slices.Equal(p.Done, profile.Parts()) || len(p.Skipped) != 0 {
		t.Errorf("done %v, skipped %+v", p.Done, p.Skipped)
	}
	checkMemory(t, f, p)
	checkCaches(t, f, p)
	checkPages(t, p)
	checkRao(t, p)
	if p.Seconds <= 0 || p.How != unit.HowMeasured || p.Clock != "fake clock" || p.Origin != "fake:bench" || len(p.Caveats) != 0 {
		t.Errorf("seconds %g, how %v, clock %q, origin %q, caveats %+v", p.Seconds, p.How, p.Clock, p.Origin, p.Caveats)
	}
}

func checkMemory(t *testing.T, f *fake, p profile.Profile) {
	if len(p.Latency) != 9 || len(p.Bandwidth) != 9 || len(p.Peak) != 3 {
		t.Errorf("%d latencies, %d bandwidths, %d peaks, want 3 × 3 and 3", len(p.Latency), len(p.Bandwidth), len(p.Peak))
	}
	for _, l := range p.Latency {
		want := fakeLatency[f.m.Distance(l.From, l.To).Or(0)]
		near(t, fmt.Sprintf("latency %d to %d", l.From, l.To), l.Figure, want, 0.02)
		near(t, "its cycles", profile.FigureOf([]float64{l.Cycles.Or(0)}), want*fakeCycles, 0.03)
		if l.N != 3 {
			t.Errorf("%d repeats", l.N)
		}
	}
	for _, b := range p.Bandwidth {
		want := min(fakeController, 4*fakeStream)
		if b.From == 7 {
			want = 2 * fakeStream
		}
		if b.From != b.To {
			want = fakeLink
		}
		near(t, fmt.Sprintf("bandwidth %d to %d", b.From, b.To), b.Figure, want, 0.02)
	}
	near(t, "peak of node 5", p.Peak[2].Figure, fakeController, 0.02) // three links
	for _, m := range p.Mixes {
		// Nodes 0 and 2 their own, node 7 over a link to the nearest with memory, 0.
		if got := m.Median.Or(0); got < 39e9 || got > 48e9 {
			t.Errorf("mix %d:%d %g", m.Reads, m.Writes, got)
		}
	}
	names := ""
	for _, c := range p.Loaded {
		names += c.Name + "; "
		first, last := c.Points[0], c.Points[len(c.Points)-1]
		if c.From != c.To { // a slow link keeps the memory behind it idle
			continue
		}
		if len(c.Points) != len(pauses) || last.Latency.Median.Or(0) < 1.2*first.Latency.Median.Or(0) || last.Bandwidth.Median.Or(0) < 5*first.Bandwidth.Median.Or(0) {
			t.Errorf("curve %s does not bend: %+v", c.Name, c.Points)
		}
	}
	want := regexp.MustCompile("^node 0, local; node 2, local; whole machine, all local; node (2 to node 5|7 to node 2|7 to node 5); $") // the same distance
	if !want.MatchString(names) {
		t.Errorf("curves %q, want %s", names, want)
	}
}

func checkCaches(t *testing.T, f *fake, p profile.Profile) {
	var sizes []unit.Bytes
	for _, c := range p.Caches {
		sizes = append(sizes, c.Size.Or(0))
	}
	if !slices.Equal(sizes, []unit.Bytes{fakeL1, fakeL2, fakeLLC}) {
		t.Errorf("caches %v", sizes)
	}
	if fw, ok := p.Caches[2].Firmware.Get(); !ok || fw != fakeLLC {
		t.Errorf("firmware's size %v", p.Caches[2].Firmware)
	}
	near(t, "a hit of level 2", p.Caches[1].Latency, 5, 0.03)
	if largest := p.WorkingSets[len(p.WorkingSets)-2].Bytes; largest > 8*fakeLLC {
		t.Errorf("the scan went on to %v", largest)
	}
	for _, s := range p.CacheSharing {
		if want := s.Level != profile.Between; s.Shared != unit.Some(want) {
			t.Errorf("CPUs %v (%s): shared %v", s.CPUs, s.Level, s.Shared)
		}
	}
	levels := map[profile.Level]int{}
	for _, c := range p.CoreToCore {
		near(t, fmt.Sprintf("CPUs %v", c.CPUs), c.Figure, fakeTransfer(apart{c.Level, c.Distance}), 0.03)
		levels[c.Level]++
	}
	if levels[profile.SameCore] != 4 || levels[profile.SameLLC] != 4 || levels[profile.Between] != 8 { // distances 21, 31
		t.Errorf("core to core by level: %v", levels)
	}
}

func checkPages(t *testing.T, p profile.Profile) {
	if len(p.Migration) != 12 { // 3 nodes with memory, two sizes
		t.Errorf("%d cases of migration", len(p.Migration))
	}
	for _, m := range p.Migration {
		near(t, "a page", m.PerPage, float64(fakePage), 0.01)
		near(t, "migration", m.Rate, float64(m.PageSize)/fakePage.Seconds(), 0.01)
	}
	rows := map[string]profile.PolicyRow{}
	for _, r := range p.Policies {
		rows[r.Policy+" "+r.Work] = r
	}
	near(t, "local chase", rows["local chase"].Figure, 80, 0.02)
	near(t, "bind 2 chase", rows["bind 2 chase"].Figure, 140, 0.02)
	near(t, "interleave chase", rows["interleave 0,2,5 chase"].Figure, (80+140+150)/3.0, 0.02)
	if a := rows["bind 2 chase"].Against.Or(0); math.Abs(a-80.0/140) > 0.03 {
		t.Errorf("bind 2 chase against local: %g", a)
	}
	if a := rows["local read"].Against.Or(0); a != 1 {
		t.Errorf("local against local: %g", a)
	}
	if r := rows["weighted-interleave 0,2,5 read"]; r.Known() || !strings.Contains(r.Why, "older than 6.9") {
		t.Errorf("a policy that the kernel has not: %+v", r)
	}
	if len(p.Policies) != 7*len(works) {
		t.Errorf("%d rows of policies", len(p.Policies))
	}
}

func checkRao(t *testing.T, p profile.Profile) {
	if n := len(p.Rao); n < 50 || n > 80 {
		t.Errorf("%d cells", n)
	}
	for _, c := range p.Rao {
		if c.WS == fakeLLC*8 && c.Sharing == 0 && c.Threads == 2 {
			want := map[string]float64{"local": 80, "remote": 140}[c.Memory]
			near(t, fmt.Sprintf("%s %s", c.Spread, c.Memory), c.PerOp, want, 0.02)
			near(t, "its penalty", c.Penalty, want*fakeCycles, 0.02)
		}
		near(t, "miss rate", c.MissRate, 0.5, 0.01)
	}
}

// Killed at any save, and continued: the same pieces, and none that was saved is
// measured again.
func TestResumeAtEverySave(t *testing.T) {
	full := newFake()
	saves := 0
	o := full.options()
	o.Repeats = 2
	o.Save = func(profile.Profile) error { saves++; return nil }
	want, err := Measure(t.Context(), full, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	counts := countOf(full.jobs)
	compared := 0
	for k := 1; k <= saves; k++ {
		f, kept := newFake(), []byte(nil)
		o, n := f.options(), 0
		o.Repeats = 2
		o.Save = func(p profile.Profile) (err error) {
			if n++; n == k {
				kept, err = profile.Encode(p)
				return errors.Join(err, errStop)
			}
			return nil
		}
		if _, err := Measure(t.Context(), f, o, profile.Profile{}); !errors.Is(err, errStop) {
			t.Fatalf("save %d: %v", k, err)
		}
		first := countOf(f.jobs)
		f.jobs = nil
		prior, err := profile.Decode(kept)
		if err != nil {
			t.Fatal(err)
		}
		o.Save = nil
		got, err := Measure(t.Context(), f, o, prior)
		if err != nil {
			t.Fatal(err)
		}
		for job, n := range countOf(f.jobs) {
			if n > counts[job] || first[job] >= counts[job] {
				t.Errorf("save %d: run again %d times: %s", k, n, job)
			}
			compared++
		}
		if a, b := pieces(t, want), pieces(t, got); !bytes.Equal(a, b) {
			i := 0
			for i < len(a) && i < len(b) && a[i] == b[i] {
				i++
			}
			t.Fatalf("save %d: other pieces: %.200s, want %.200s", k, b[i:], a[i:])
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

var errStop = errors.New("stop")

func countOf(jobs []string) map[string]int {
	n := map[string]int{}
	for _, j := range jobs {
		n[j]++
	}
	return n
}

// pieces are a profile without the facts about how it was made.
func pieces(t *testing.T, p profile.Profile) []byte {
	t.Helper()
	p.Seconds, p.Date = 0, time.Time{}
	data, err := profile.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A budget is kept except for the job that is running; fewer repeats come before fewer
// parts.
func TestBudget(t *testing.T) {
	free := newFake()
	if _, err := Measure(t.Context(), free, free.options(), profile.Profile{}); err != nil {
		t.Fatal(err)
	}
	whole := free.now.Sub(newFake().now)
	for _, share := range []float64{0.02, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.2} {
		f := newFake()
		o := f.options()
		o.Budget = time.Duration(share * float64(whole))
		begin := f.now
		p, err := Measure(t.Context(), f, o, profile.Profile{})
		if err != nil {
			t.Fatalf("%.2f of the time: %v", share, err)
		}
		valid(t, p)
		if took := f.now.Sub(begin); took > o.Budget+f.longest {
			t.Errorf("%.2f of the time: took %v of %v, one job at most %v", share, took, o.Budget, f.longest)
		}
		least := 3
		for _, l := range p.Latency {
			least = min(least, l.N)
		}
		late := OutOfTime(p)
		for _, part := range profile.Parts() {
			if !slices.Contains(p.Done, part) && !slices.ContainsFunc(p.Skipped, func(s profile.Skipped) bool { return s.Part == part }) {
				t.Errorf("%.2f of the time: %s is not mentioned", share, part)
			}
		}
		if share <= 0.2 && len(late) == 0 || share > 1 && (len(late) > 0 || least < 3) || share == 0.5 && len(late) > 0 {
			t.Errorf("%.2f of the time: late %v, %d repeats", share, late, least)
		}
		o.Budget = 0
		if p, err = Measure(t.Context(), f, o, p); err != nil || len(p.Done) != len(profile.Parts()) || len(p.Skipped) > 0 {
			t.Errorf("%.2f of the time, continued: %v, done %v, skipped %v", share, err, p.Done, p.Skipped)
		}
	}
}

// A cancelled measurement returns whole pieces.
func TestCancel(t *testing.T) {
	for _, n := range []int{1, 5, 70, 100, 200} {
		f := newFake()
		ctx, cancel := context.WithCancel(t.Context())
		f.after = func(jobs int) {
			if jobs == n {
				cancel()
			}
		}
		p, err := Measure(ctx, f, f.options(), profile.Profile{})
		if !errors.Is(err, context.Canceled) || len(f.jobs) != n {
			t.Errorf("after %d jobs: %v, %d were run", n, err, len(f.jobs))
		}
		valid(t, p)
		for _, l := range p.Latency {
			if l.N != 3 {
				t.Errorf("after %d jobs: a figure of %d repeats", n, l.N)
			}
		}
	}
}

func TestRefusesWhatIsNotItsOwn(t *testing.T) {
	f := newFake()
	o := f.options()
	o.Parts = []profile.Part{profile.Latency}
	good, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*fake, *Options){
		"another machine: its CPUs are": func(f *fake, o *Options) { f.cond.CPUModel = "Fake 2" },
		"of homenode test, this is new": func(f *fake, o *Options) { o.Version = "new" },
		"times are measured, now":       func(f *fake, o *Options) { f.how = unit.HowModelled },
	} {
		f, o := newFake(), o
		change(f, &o)
		if _, err := Measure(t.Context(), f, o, good); !errors.Is(err, ErrOtherProfile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A node without room is reported with the shortfall; where nothing is left, that is
// the error.
func TestNoRoom(t *testing.T) {
	f := newFake()
	f.free = map[int]unit.Bytes{5: 3 * unit.MiB}
	o := f.options()
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, p)
	if _, ok := p.LatencyBetween(0, 5); ok || len(p.Latency) != 6 {
		t.Errorf("latencies %+v", p.Latency)
	}
	i := slices.IndexFunc(p.Skipped, func(s profile.Skipped) bool { return s.Part == profile.Latency && s.What == "node 0 to node 5" })
	if i < 0 || p.Skipped[i].Why != "node 5 has 3 MiB of free memory, 5 MiB short of the 8 MiB that this needs" {
		t.Errorf("skipped %+v", p.Skipped)
	}
	f.free = map[int]unit.Bytes{0: 0, 2: 0, 5: 0}
	if _, err := Measure(t.Context(), f, o, profile.Profile{}); !errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), "node 0 has 0 B of free memory") {
		t.Error(err)
	}
}

// One node: parts that need two say so.
func TestOneNode(t *testing.T) {
	f := newFake()
	f.m.Nodes, f.m.CPUs, f.m.LLCs = f.m.Nodes[:1], f.m.CPUs[:4], f.m.LLCs[:1]
	f.m.Distances = [][]unit.Opt[int]{{unit.Some(machine.LocalDistance)}}
	p, err := Measure(t.Context(), f, f.options(), profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, p)
	if len(p.Skipped) != 2 || p.Skipped[0].Part != profile.Migrating || p.Skipped[1].Part != profile.Rao || len(OutOfTime(p)) != 0 {
		t.Errorf("skipped %+v", p.Skipped)
	}
}

// Only the requested nodes and CPUs are used.
func TestOnlyWhatIsAsked(t *testing.T) {
	f := newFake()
	o := f.options()
	o.Nodes, o.CPUs = set.FromNodes(0, 5), set.FromCPUs(2, 3, 4)
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Latency) != 2 || len(p.Peak) != 2 || len(p.CoreToCore) != 1 || p.CoreToCore[0].CPUs != [2]int{2, 3} {
		t.Errorf("%+v, %+v, %+v", p.Latency, p.Peak, p.CoreToCore)
	}
	cpu4 := regexp.MustCompile(`\{4 [a-z]`) // a thread; "{4 KiB" is a buffer
	for _, j := range f.jobs {
		if strings.Contains(j, "{0 chase") || cpu4.MatchString(j) {
			t.Errorf("a CPU that may not be used: %s", j)
		}
	}
}

func TestCaveats(t *testing.T) {
	for want, change := range map[string]func(*fake){
		"":                func(*fake) {},
		"virtual-machine": func(f *fake) { f.cond.Hypervisor = "kvm" },
		"other-load":      func(f *fake) { f.others = 0.5 },
		"governor":        func(f *fake) { f.cond.Governor = "powersave" },
		"balancing":       func(f *fake) { f.cond.Balancing = unit.Some(true) },
		"small-pages":     func(f *fake) { f.cond.HugeAllowed = unit.Some(false) },
		"modelled":        func(f *fake) { f.how = unit.HowModelled },
		"no-cycles":       func(f *fake) { f.noCounters = true },
		"spread":          func(f *fake) { f.noise = 0.1 },
		"thermal":         func(f *fake) { f.after = func(n int) { f.cond.Throttled = unit.Some(uint64(n)) } },
	} {
		f := newFake()
		change(f)
		o := f.options()
		o.Parts = []profile.Part{profile.Latency}
		p, err := Measure(t.Context(), f, o, profile.Profile{})
		if err != nil {
			t.Fatal(err)
		}
		var codes []string
		for _, c := range p.Caveats {
			codes = append(codes, c.Code)
		}
		if strings.Join(codes, ",") != want {
			t.Errorf("caveats %v, want %q", p.Caveats, want)
		}
	}
}

func TestProgress(t *testing.T) {
	f := newFake()
	o := f.options()
	last := Progress{}
	o.Progress = func(p Progress) {
		if p.Done > p.Total || p.Part == last.Part && (p.Done < last.Done || p.Elapsed < last.Elapsed) {
			t.Errorf("%+v after %+v", p, last)
		}
		last = p
	}
	if _, err := Measure(t.Context(), f, o, profile.Profile{}); err != nil {
		t.Fatal(err)
	}
	if last.Part != profile.Rao || last.Done != last.Total || last.Total == 0 || last.Remaining != 0 {
		t.Errorf("%+v", last)
	}
}

// A measurement with some of the CPUs cannot be continued with others, and the error
// says so.
func TestRestrictedIsTold(t *testing.T) {
	f := newFake()
	o := f.options()
	o.Parts, o.CPUs = []profile.Part{profile.Bandwidth}, set.FromCPUs(0, 1, 4)
	some, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	valid(t, some)
	if len(some.Caveats) != 1 || some.Caveats[0].Code != "restricted" || !strings.Contains(some.Caveats[0].Text, "CPUs 0-1,4 of 10 only") {
		t.Errorf("caveats %+v", some.Caveats)
	}
	if _, err := Measure(t.Context(), f, o, some); err != nil {
		t.Errorf("the same again: %v", err)
	}
	for want, change := range map[string]func(*Options){
		"with CPUs 0-1,4, now it would be with 0-9": func(o *Options) { o.CPUs = set.CPUSet{} },
		"with CPUs 0-1,4, now it would be with 0-1": func(o *Options) { o.Nodes = set.FromNodes(0) },
		"of nodes 0,2,5,7, now it would be of 0,2":  func(o *Options) { o.Nodes = set.FromNodes(0, 2) },
	} {
		o := o
		change(&o)
		if _, err := Measure(t.Context(), f, o, some); !errors.Is(err, ErrOtherProfile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A cpuset may allow CPUs of a node, but not its memory.
func TestMemoryThatMayBeUsed(t *testing.T) {
	f := newFake()
	o := f.options()
	o.Parts, o.Memory = []profile.Part{profile.Latency, profile.Policies, profile.Rao}, set.FromNodes(0, 5)
	p, err := Measure(t.Context(), f, o, profile.Profile{})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range f.jobs {
		if strings.Contains(j, " bind 2 ") {
			t.Errorf("memory of node 2: %s", j)
		}
	}
	if len(p.Latency) != 6 || p.Latency[2].From != 2 || p.Only() != "nodes 0,5,7 of 4 only" {
		t.Errorf("%+v, %s", p.Latency, p.Only())
	}
}

// A save that fails ends the measurement, and is reported once.
func TestFailingSave(t *testing.T) {
	f := newFake()
	o := f.options()
	calls := 0
	o.Save = func(profile.Profile) error { calls++; return errStop }
	_, err := Measure(t.Context(), f, o, profile.Profile{})
	if !errors.Is(err, errStop) || err.Error() != "save profile: stop" || calls != 1 {
		t.Errorf("%q after %d calls", err, calls)
	}
}

// A kernel with larger pages: moves are reported with its pages, and continued.
func TestPagesOf64KiB(t *testing.T) {
	for _, known := range []bool{true, false} {
		f := newFake()
		f.m.PageSize = unit.Some(64 * unit.KiB)
		o := f.options()
		o.Parts = []profile.Part{profile.Migrating}
		if !known {
			o.Machine.PageSize = unit.None[unit.Bytes]()
			f.cond.HugeAllowed = unit.Some(false)
		}
		p, err := Measure(t.Context(), f, o, profile.Profile{})
		if err != nil {
			t.Fatal(err)
		}
		valid(t, p)
		if len(p.Migration) != 6 {
			t.Errorf("%d cases", len(p.Migration))
		}
		for _, m := range p.Migration {
			if m.PageSize != 64*unit.KiB {
				t.Errorf("a page of %v", m.PageSize)
			}
			near(t, "a page", m.PerPage, float64(fakePage), 0.01)
		}
		p.Done, f.jobs = nil, nil
		if p, err = Measure(t.Context(), f, o, p); err != nil || len(f.jobs) != 0 || len(p.Done) != 1 {
			t.Errorf("gone on with: %v, %d jobs", err, len(f.jobs))
		}
	}
}
