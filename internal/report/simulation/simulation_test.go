// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	stdhtml "html"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"homenode/internal/golden"
	"homenode/internal/render"
	"homenode/internal/sim/scenario"
	"homenode/internal/unit"
)

func runTests(m *testing.M) int {
	flag.Parse()
	if golden.Update() {
		if err := writeFixture(); err != nil {
			panic(err)
		}
	}
	return m.Run()
}

func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", "scenario", name+".golden"), got)
}

func scenarioText(t *testing.T, r scenario.Result, o render.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Scenario(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDecisionScenarioText(t *testing.T) {
	for _, c := range []struct {
		name string
		r    scenario.Result
		o    render.TextOptions
	}{
		{"full-80", scenarioFixture(t), render.TextOptions{UTF8: true}},
		{"full-100-ascii", scenarioFixture(t), render.TextOptions{Width: 100}},
		{"full-140", scenarioFixture(t), render.TextOptions{Width: 140, UTF8: true}},
		{"empty-80", scenario.Result{}, render.TextOptions{UTF8: true}},
		{"hostile-80", hostileScenario(t), render.TextOptions{UTF8: true}},
		{"sparse-80", sparse(t), render.TextOptions{UTF8: true}},
	} {
		checkGolden(t, c.name+".txt", scenarioText(t, c.r, c.o))
	}
}

func TestDecisionScenarioHTML(t *testing.T) {
	checkGolden(t, "full.html", scenarioHTML(t, scenarioFixture(t)))
}

func scenarioHTML(t *testing.T, r scenario.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := ScenarioHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// scenarioFixtures are what every output must handle.
func scenarioFixtures(t *testing.T) map[string]scenario.Result {
	one := scenarioFixture(t)
	one.Arms = one.Arms[2:3]
	one.Against = ""
	seed := scenarioFixture(t)
	seed.Seeds = seed.Seeds[:1]
	for i := range seed.Arms {
		seed.Arms[i].Runs = seed.Arms[i].Runs[:1]
	}
	return map[string]scenario.Result{
		"full": scenarioFixture(t), "empty": {}, "no-runs": {How: modelled, Arms: []scenario.Outcome{{Name: "a"}}}, "one-arm": one, "one-seed": seed,
		"hostile": hostileScenario(t), "sparse": sparse(t), "many": many(t), "extreme": extreme(t),
	}
}

const evil = "\x1b[31m<script>alert(1)</script>\u202e \"&'\n"

// hostileScenario has names from an untrusted source.
func hostileScenario(t *testing.T) scenario.Result {
	r := scenarioFixture(t)
	r.Scenario, r.About, r.Digest, r.Machine, r.From, r.Against = evil, evil, evil, evil, evil, evil
	r.Arms[0].Name = evil
	r.Arms = r.Arms[:3]
	for i := range r.Arms {
		r.Arms[i].About, r.Arms[i].Policy = evil, evil
		for k := range r.Arms[i].Runs {
			r.Arms[i].Runs[k].Services[1].Name = evil + strings.Repeat("long", 30)
		}
	}
	r.Paper = r.Paper[:2]
	r.Paper[0] = scenario.Claim{Figure: evil, Service: evil, Arm: evil, Against: evil, Metric: evil, Note: evil}
	r.Paper[1].Against = evil
	return r
}

// sparse lacks what it can lack: samples, workloads, claims, a seed of an arm, a service of
// an arm, latency of the reference, and it has an arm without runs.
func sparse(t *testing.T) scenario.Result {
	r := scenarioFixture(t)
	r.Arms = append(r.Arms[:3], scenario.Outcome{Name: "never ran"})
	r.Paper, r.Machine, r.From, r.Digest, r.PeriodS, r.Seconds, r.Nodes = nil, "", "", "", 0, 0, 0
	for i := range r.Arms {
		for k := range r.Arms[i].Runs {
			r.Arms[i].Runs[k].Series, r.Arms[i].Runs[k].Workloads = nil, nil
		}
	}
	r.Arms[1].Runs = r.Arms[1].Runs[1:]
	for k := range r.Arms[2].Runs {
		r.Arms[2].Runs[k].Services = r.Arms[2].Runs[k].Services[:2]
	}
	for k := range r.Arms[0].Runs {
		r.Arms[0].Runs[k].Services[1].LatencyS = 0
	}
	return r
}

// many has more arms than there are colours, and more services than fit a sentence.
func many(t *testing.T) scenario.Result {
	r := scenarioFixture(t)
	for i := range 9 {
		a := r.Arms[i%3]
		a.Name = strings.Repeat("another ", i%4) + a.Name + string(rune('a'+i))
		a.Runs = slices.Clone(a.Runs)
		r.Arms = append(r.Arms, a)
	}
	for i := range r.Arms {
		for k := range r.Arms[i].Runs {
			s := slices.Clone(r.Arms[i].Runs[k].Services)
			for n := range 5 {
				more := s[2]
				more.Name = "service-" + string(rune('a'+n))
				s = append(s, more)
			}
			r.Arms[i].Runs[k].Services = s
		}
	}
	return r
}

// extreme has figures as large and as small as allowed.
func extreme(t *testing.T) scenario.Result {
	r := scenarioFixture(t)
	for i := range r.Arms {
		for k := range r.Arms[i].Runs {
			x := []float64{most, math.SmallestNonzeroFloat64, 1e15, 0}[(i+k)%4]
			run := &r.Arms[i].Runs[k]
			run.MovedB, run.CPUSeconds, run.Binds = x, x, most
			run.Services[1].LatencyS, run.Services[1].P99S, run.Services[1].IPC, run.Services[1].Ops = x, x, x, x
			run.Series[3].LatencyS, run.Series[3].Load, run.Series[4].Hour = x, x, x
		}
	}
	r.Paper[0].Value = unit.Some(float64(-most))
	r.Seconds, r.PeriodS, r.CPUs = math.SmallestNonzeroFloat64, most, most
	return r
}

// No line is wider than the terminal, no control sequence reaches it, and ASCII is ASCII.
func TestDecisionTextFits(t *testing.T) {
	for name, r := range scenarioFixtures(t) {
		for _, width := range []int{60, 80, 100, 140} {
			for _, utf8 := range []bool{true, false} {
				for line := range strings.Lines(scenarioText(t, r, render.TextOptions{Width: width, UTF8: utf8})) {
					line = strings.TrimSuffix(line, "\n")
					bad := func(r rune) bool { return !unicode.IsPrint(r) || !utf8 && (r > '~' || r == '?') }
					if render.Width(line) > width || strings.IndexFunc(strings.ReplaceAll(line, "\uFFFD", ""), bad) >= 0 && name != "hostile" {
						t.Errorf("%s at %d: %d columns: %q", name, width, render.Width(line), line)
					}
					if strings.ContainsAny(line, "\x1b\u202e") {
						t.Errorf("%s: a terminal would obey %q", name, line)
					}
				}
			}
		}
	}
}

func TestDecisionMarkupIsWellFormedAndSelfContained(t *testing.T) {
	remote := regexp.MustCompile(`(?i)url\(|@import|https?:|src=|href=|<link|<script|<iframe|<img|ZgotmplZ| on[a-z]+="|"[^"]*(?-i:NaN|[-+]Inf)`)
	for name, r := range scenarioFixtures(t) {
		page := scenarioHTML(t, r)
		bare := strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, "")
		if found := remote.FindString(bare); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		wellFormed(t, name, page)
		if n := strings.Count(page, "modelled"); n < 3 || strings.Contains(page, "unknown%") {
			t.Errorf("%s says %d times that it is modelled", name, n)
		}
	}
}

func wellFormed(t *testing.T, name, text string) {
	t.Helper()
	ids, refs, svgs, titles := map[string]int{}, []string{}, 0, 0
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("%s is not well-formed: %v", name, err)
			return
		}
		e, ok := token.(xml.StartElement)
		if ok && e.Name.Local == "svg" {
			svgs++
		}
		if ok && e.Name.Local == "title" {
			titles++
		}
		for _, a := range e.Attr {
			if ok && a.Name.Local == "id" {
				ids[a.Value]++
			}
			if ok && a.Name.Local == "aria-labelledby" {
				refs = append(refs, strings.Fields(a.Value)...)
			}
		}
	}
	if titles != svgs+1 {
		t.Errorf("%s: %d pictures have %d titles, with the page's", name, svgs, titles)
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%s: id %q appears %d times", name, id, n)
		}
	}
	for _, ref := range refs {
		if ids[ref] == 0 {
			t.Errorf("%s: nothing has the id %q", name, ref)
		}
	}
}

// Both outputs give the same answer, the same figures and the same notes.
func TestParityFaces(t *testing.T) {
	for name, r := range scenarioFixtures(t) {
		v, err := newScenarioView(r)
		if err != nil {
			t.Fatal(err)
		}
		faces := map[string]string{"text": scenarioText(t, r, render.TextOptions{UTF8: true, Width: 4000}), "page": stdhtml.UnescapeString(scenarioHTML(t, r))}
		if name == "many" || name == "hostile" || name == "extreme" { // long cells are cut in a terminal
			delete(faces, "text")
		}
		want := slices.Concat(v.answer, v.notes)
		for _, t := range append(v.tables, v.arms) {
			for _, row := range t.Rows {
				for _, c := range row {
					want = append(want, c.Text, c.Small)
				}
			}
		}
		for _, c := range v.claims {
			want = append(want, c.what(), c.paper(), c.ours().Text, c.ours().Small, render.Or(c.Why, c.verdict()), c.Note)
		}
		for face, out := range faces {
			for _, w := range want {
				if !strings.Contains(out, w) {
					t.Errorf("%s: the %s lacks %q", name, face, w)
				}
			}
		}
	}
}

// Invalid figures are refused, and so is a result that claims to be measured.
func TestDecisionRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*scenario.Result)
		want   string
	}{
		{func(r *scenario.Result) { r.Arms[1].Runs[2].Services[0].LatencyS = math.NaN() }, "arms[1].runs[2].services[0].latency_s is NaN"},
		{func(r *scenario.Result) { r.Arms[0].Runs[0].Series[7].LocalRatio = math.Inf(1) }, "series[7].local_ratio is +Inf"},
		{func(r *scenario.Result) { r.Arms[0].Runs[0].MovedB = 1e300 }, "moved_bytes is 1e+300, above 1e+18"},
		{func(r *scenario.Result) { r.Arms[0].Runs[0].MovedB = -1 }, "moved_bytes is -1, below 0"},
		{func(r *scenario.Result) { r.Arms[0].Runs[0].Binds = -1 }, "binds is -1, below 0"},
		{func(r *scenario.Result) { r.Arms[0].Runs[0].UnbindRatio = 1.1 }, "unbind_ratio is 1.1, above 1"},
		{func(r *scenario.Result) { r.Paper[0].Value = unit.Some(-1e19) }, "paper_claims[0].value is -1e+19, above 1e+18"},
		{func(r *scenario.Result) { r.Schema = scenario.ResultSchema + 1 }, "schema 2 is newer than 1"},
		{func(r *scenario.Result) { r.How = "measured" }, `how is "measured"`},
		{func(r *scenario.Result) { r.Against = "gone\x1b" }, `no arm is called "gone`},
	} {
		r := scenarioFixture(t)
		c.change(&r)
		for _, err := range []error{Scenario(io.Discard, r, render.TextOptions{}), ScenarioHTML(io.Discard, r)} {
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v, want %q", err, c.want)
			}
		}
	}
}

// A missing figure is "none", and never 0.
func TestDecisionNone(t *testing.T) {
	v, err := newScenarioView(scenarioFixture(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range v.tables[0].Rows { // batch
		if row[1].Text != none || row[2].Text != none || row[3].Text == none {
			t.Errorf("%v", row)
		}
	}
	if !slices.Contains(v.notes, "batch has no requests, so it has no latency.") {
		t.Errorf("%q", v.notes)
	}
	out := scenarioText(t, scenarioFixtures(t)["one-seed"], render.TextOptions{Width: 300})
	for _, want := range []string{"(one seed)", "mao-b has one seed: how far figures vary is unknown."} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q", want)
		}
	}
}

// Ratios are within a seed: differences between seeds are not the arm's.
func TestDecisionPairedBySeed(t *testing.T) {
	run := func(seed uint64, latency float64) scenario.Run {
		return scenario.Run{Seed: seed, LocalRatio: 0.5, Services: []scenario.Service{{Name: "a", Ops: 1, LatencyS: latency}, {Name: "b", Ops: 1, LatencyS: 1}, {Name: "c", Ops: 1}}}
	}
	base := scenario.Outcome{Name: "base", Runs: []scenario.Run{run(1, 10), run(2, 20), run(3, 40)}}
	arm := scenario.Outcome{Name: "arm", Runs: []scenario.Run{run(3, 36), run(1, 8), run(2, 17), run(4, 1)}}
	m, _ := scenario.MetricOf(scenario.Latency)
	if s := m.Against(arm, base, "a"); s.N != 3 || s.Median != 0.85 || s.Min != 0.8 || s.Max != 0.9 {
		t.Errorf("%+v", s)
	}
	if s := m.Against(arm, base, ""); s.N != 3 || s.Median != 18.0/21 { // (17 + 1) / (20 + 1)
		t.Errorf("all services: %+v", s)
	}
	if all, _ := scenario.MetricOf(scenario.Throughput); all.Over(base, "") != (scenario.Spread{Median: 3, Min: 3, Max: 3, N: 3}) {
		t.Errorf("throughput of all services: %+v", all.Over(base, ""))
	}
	if s := m.Against(arm, base, "c"); s.N != 0 {
		t.Errorf("without latency: %+v", s)
	}
	v, err := newScenarioView(scenario.Result{How: modelled, Arms: []scenario.Outcome{base, arm}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "latency of a 15.0% lower (10.0–20.0% over 3 seeds) and b the same"; !strings.Contains(v.answer[0], want) {
		t.Errorf("%q, want %q", v.answer[0], want)
	}
}

// Every claim says what it covers, the paper's figure, ours, and how they compare. A figure
// that is missing on either side is named, and not judged.
func TestDecisionClaims(t *testing.T) {
	some := unit.Some[float64]
	arm := func(name string) scenario.Outcome {
		o := scenario.Outcome{Name: name}
		for i, f := range []float64{1, 1.1, 0.9} {
			o.Runs = append(o.Runs, scenario.Run{Seed: uint64(i), LocalRatio: 0.5 * f, Services: []scenario.Service{{Name: "a", Ops: 1, LatencyS: f}, {Name: "c", Ops: 1}}})
		}
		return o
	}
	base, other := arm("base"), arm("arm")
	for i := range other.Runs {
		other.Runs[i].Services[0].LatencyS = base.Runs[i].Services[0].LatencyS * []float64{0.8, 0.85, 0.9}[i]
	}
	of := func(c scenario.Claim) scenario.Claim {
		c.Arm, c.Service, c.Metric = "arm", "a", scenario.Latency
		return c
	}
	for _, c := range []struct {
		claim        scenario.Claim
		what, beside string
	}{
		{of(scenario.Claim{Against: "base", Value: some(-0.12)}), "latency of a: arm against base", "paper −12.0%, ours −15.0% (−20.0% to −10.0%): alike: the paper's is in our range"},
		{of(scenario.Claim{Against: "base", Value: some(-0.3)}), "", "paper −30.0%, ours −15.0% (−20.0% to −10.0%): less, the same way"},
		{of(scenario.Claim{Against: "base", Value: some(-0.05)}), "", "paper −5.0%, ours −15.0% (−20.0% to −10.0%): more, the same way"},
		{of(scenario.Claim{Against: "base", Value: some(0.05)}), "", "paper +5.0%, ours −15.0% (−20.0% to −10.0%): the other way round"},
		{of(scenario.Claim{Against: "base"}), "", "paper: no figure in our text, ours −15.0% (−20.0% to −10.0%)"},
		{of(scenario.Claim{Value: some(1)}), "latency of a: arm", "paper 1 s, ours 810 ms (800–935 ms): lower than the paper's"},
		{scenario.Claim{Arm: "base", Metric: scenario.LocalRatio, Value: some(0.578)}, "local ratio: base", "paper 0.578, ours 0.500 (0.450–0.550): lower than the paper's"},
		{scenario.Claim{Arm: "base", Metric: scenario.LocalRatio, Value: some(0)}, "", "paper 0.000, ours 0.500 (0.450–0.550): higher than the paper's"},
		{scenario.Claim{Arm: "base", Metric: scenario.LocalRatio}, "", "paper: no figure in our text, ours 0.500 (0.450–0.550)"},
		{scenario.Claim{Arm: "arm", Against: "base", Metric: scenario.Throughput, Value: some(0.2)}, "throughput of all services: arm against base", "paper +20.0%, ours 0%: not clearly a change"},
		{scenario.Claim{Arm: "arm", Against: "base", Metric: scenario.Latency, Service: "c", Value: some(-0.1)}, "", "paper −10.0%, ours none: there is nothing to compare with"},
		{scenario.Claim{Arm: "arm", Against: "base", Metric: "moved_bytes"}, "moved, whole run: arm against base", "paper: no figure in our text, ours none: there is nothing to compare with"},
		{scenario.Claim{Arm: "arm", Metric: "binds", Value: some(3)}, "binds, whole run: arm", "paper 3, ours 0: lower than the paper's"},
		{scenario.Claim{Arm: "arm", Metric: "beauty", Service: "a"}, "beauty of a: arm", "paper: no figure in our text, ours none: this result has no such figure"},
		{scenario.Claim{Arm: "base", Against: "base", Metric: scenario.Latency}, "", "paper: no figure in our text, ours none: the arm is compared with itself"},
		{scenario.Claim{Metric: scenario.Latency}, "latency of all services: unknown", `paper: no figure in our text, ours none: no arm of this result is called ""`},
		{scenario.Claim{Arm: "arm", Against: "gone", Metric: scenario.Latency}, "", `paper: no figure in our text, ours none: no arm of this result is called "gone"`},
	} {
		v, err := newScenarioView(scenario.Result{How: modelled, Arms: []scenario.Outcome{base, other}, Paper: []scenario.Claim{c.claim}})
		if err != nil {
			t.Fatal(err)
		}
		if got := v.claims[0]; got.beside() != c.beside || c.what != "" && got.what() != c.what {
			t.Errorf("%+v:\n%s: %s, want\n%s: %s", c.claim, got.what(), got.beside(), c.what, c.beside)
		}
	}
}

// Only a paper's change relative to the reference arm is a diamond.
func TestDecisionDiamonds(t *testing.T) {
	claim := scenario.Claim{Arm: "mao-b", Against: "numa-balancing", Service: "feed", Metric: scenario.Latency}
	for _, c := range []struct {
		change func(*scenario.Claim)
		want   bool
	}{
		{func(c *scenario.Claim) { c.Value = unit.Some(-0.1) }, true},
		{func(c *scenario.Claim) { c.Value = unit.Some(0.0) }, true},
		{func(c *scenario.Claim) {}, false},
		{func(c *scenario.Claim) { c.Value, c.Against = unit.Some(0.1), "" }, false},
		{func(c *scenario.Claim) { c.Value, c.Against = unit.Some(-0.1), "mao-a" }, false},
	} {
		r := scenarioFixture(t)
		r.Paper = []scenario.Claim{claim}
		c.change(&r.Paper[0])
		page := scenarioHTML(t, r)
		if got := strings.Contains(page, `class="paper"`); got != c.want || strings.Contains(page, "A diamond is") != c.want {
			t.Errorf("%+v: a diamond %v, want %v", r.Paper[0], got, c.want)
		}
	}
}

// A figure is not shown by its name in a file.
func TestEveryMetricHasWords(t *testing.T) {
	for _, m := range scenario.Metrics() {
		if f := figureOf(m, 1); f.title == m.Name && strings.Contains(m.Name, "_") {
			t.Errorf("%s has no words", m.Name)
		}
	}
}

// The gain by load uses pairs of one hour and seed.
func TestDecisionGainByLoad(t *testing.T) {
	base := scenario.Outcome{Runs: []scenario.Run{{Seed: 1, Series: []scenario.Sample{{Hour: 1, Load: 0.15, LatencyS: 1}, {Hour: 2, Load: 0.19, LatencyS: 1}, {Hour: 3, Load: 0.9, LatencyS: 2}, {Hour: 4, Load: 0.95}}}}}
	arm := scenario.Outcome{Runs: []scenario.Run{{Seed: 1, Series: []scenario.Sample{{Hour: 1, Load: 0.5, LatencyS: 0.9}, {Hour: 2, LatencyS: 0.7}, {Hour: 2.5, LatencyS: 9}, {Hour: 3, LatencyS: 1}, {Hour: 4, LatencyS: 1}}}}}
	for _, c := range []struct {
		from, want float64
		n          int
	}{{0.1, 0.2, 2}, {0.5, 0, 0}, {0.9, 0.5, 1}} {
		if s, n := gainIn(arm, base, c.from, 0.1); n != c.n || math.Abs(s.Median-c.want) > 1e-12 {
			t.Errorf("from %v: %+v of %d, want %v of %d", c.from, s, n, c.want, c.n)
		}
	}
}

func TestDecisionBest(t *testing.T) {
	of := func(values ...float64) (all []scenario.Spread) {
		for _, v := range values {
			if math.IsNaN(v) { // no figure
				all = append(all, scenario.Spread{})
				continue
			}
			all = append(all, scenario.SpreadOf([]float64{v}))
		}
		return all
	}
	for _, c := range []struct {
		values []float64
		less   bool
		want   string
	}{
		{[]float64{1, 0.9, 1.1}, true, "[false true false]"}, {[]float64{1, 0.9, 1.1}, false, "[false false true]"}, {[]float64{1, 1.0001, 0.5}, false, "[true true false]"},
		{[]float64{1, 1}, false, "[false false]"}, {nil, true, "[]"}, {[]float64{math.NaN(), 2, 3}, true, "[false true false]"}, {[]float64{7}, true, "[false]"},
	} {
		if got := fmt.Sprint(best(of(c.values...), c.less)); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	for got, want := range map[string]string{perSecond(7200, 3600): "2.00/s", perSecond(7200, 0): "7,200", perSecond(25e6, 0): "25.0 M"} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCleanLeavesTheCallersScenario(t *testing.T) {
	r := hostileScenario(t)
	if _, err := newScenarioView(r); err != nil {
		t.Fatal(err)
	}
	if r.Arms[0].Name != evil || r.Paper[0].Against != evil {
		t.Error("the caller's result was changed")
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestDecisionScenarioFullDisk(t *testing.T) {
	for _, err := range []error{Scenario(full{}, scenarioFixture(t), render.TextOptions{}), ScenarioHTML(full{}, scenarioFixture(t))} {
		if !errors.Is(err, errFull) {
			t.Errorf("a full disk: %v", err)
		}
	}
}

// TestScenarioPictures writes pages for a person to look at: PICTURES=folder.
func TestScenarioPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("PICTURES names no folder")
	}
	for name, r := range scenarioFixtures(t) {
		if err := os.WriteFile(filepath.Join(dir, name+".html"), []byte(scenarioHTML(t, r)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
