// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"homenode/internal/experiment"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// completeSlack is the share of a kind that a run may leave more than the best peer. A
// larger value tolerates busy pages, but makes a move that skips some look faster.
const completeSlack = 0.001

// counting are the runs of a contestant that count.
func (b benched) counting(name string) (some []sample) {
	for _, s := range b.Samples {
		if s.Contestant == name && !s.Warm && s.counts() {
			some = append(some, s)
		}
	}
	return some
}

// mine are homenode's contestants of one mode: "homenode live" also covers live at a
// rate.
func (b benched) mine(way string) (names []string) {
	for _, name := range b.Contestants {
		if strings.HasPrefix(name, way) {
			names = append(names, name)
		}
	}
	return names
}

// of are the runs of several contestants that count.
func (b benched) of(names []string) (some []sample) {
	for _, name := range names {
		some = append(some, b.counting(name)...)
	}
	return some
}

// values of the runs in which it is known.
func values(some []sample, of func(sample) unit.Opt[float64]) (known []float64) {
	for _, s := range some {
		if v, ok := of(s).Get(); ok {
			known = append(known, v)
		}
	}
	return known
}

func seconds(s sample) unit.Opt[float64]   { return s.Seconds }
func withStart(s sample) unit.Opt[float64] { return unit.Some(s.WithStart) }
func quietOf(s sample) unit.Opt[float64]   { return s.QuietMS }
func stepOf(s sample) unit.Opt[float64]    { return s.OfStep }
func stallOf(s sample) unit.Opt[float64]   { return s.StallMS }
func callOf(s sample) unit.Opt[float64]    { return s.CallMS }
func opsBefore(s sample) unit.Opt[float64] { return s.OpsBefore }
func opsDuring(s sample) unit.Opt[float64] { return s.OpsDuring }

// opsMean is the victim's mean rate if it got faster as evenly as all memory comes
// home.
func opsMean(s sample) unit.Opt[float64] {
	a, ok := s.OpsBefore.Get()
	b, too := s.OpsAfter.Get()
	return unit.OptOf((a+b)/2, ok && too)
}

// rateError is the distance of the rate from the requested one, as a share of
// it.
func rateError(s sample) unit.Opt[float64] {
	rate, ok := s.Rate.Get()
	return unit.OptOf(math.Abs(rate/float64(s.Asked)-1), ok && s.Asked > 0)
}

// moved is the share of a kind that moved; false: there was none to move.
func (s sample) moved(k migration.Kind) (share float64, ok bool) {
	row, _ := s.Before.Of(k)
	there := row.Elsewhere(set.NodeSet{}, set.FromNodes(0))
	if there == 0 {
		return 0, false
	}
	return 1 - float64(s.Left[k])/float64(there), true
}

// movedShare is the least share of a kind that moved in any run; false: there is none.
func movedShare(some []sample, k migration.Kind) (least float64, ok bool) {
	least = 1
	for _, s := range some {
		if share, there := s.moved(k); there {
			least, ok = min(least, share), true
		}
	}
	return least, ok
}

// toMove is the share of a kind that a run has to move: the most that a peer moved in any
// run, or all if there is no peer.
func (b benched) toMove(k migration.Kind) (share float64) {
	known := false
	for _, name := range b.Contestants {
		if strings.HasPrefix(name, "homenode") {
			continue
		}
		for _, s := range b.counting(name) {
			if m, ok := s.moved(k); ok {
				share, known = max(share, m), true
			}
		}
	}
	if !known {
		return 1
	}
	return share
}

// incomplete lists the runs that moved too little to be judged by their speed; "": none.
// This includes peers' runs: leaving pages behind is not speed.
func (b benched) incomplete(some []sample) string {
	for _, s := range some {
		any := false
		for _, k := range migration.Kinds() {
			share, ok := s.moved(k)
			any = any || ok
			if want := b.toMove(k); ok && share < want-completeSlack {
				return fmt.Sprintf("%s, repeat %d, moved %.4f of %s, %.4f is to be moved", s.Contestant, s.Repeat, share, k, want)
			}
		}
		if !any {
			return fmt.Sprintf("%s, repeat %d, had nothing to move", s.Contestant, s.Repeat)
		}
	}
	return ""
}

// verdict is the result for a target. A target without a run is neither met nor unmet.
type verdict struct {
	experiment.Target
	NotAsked bool `json:"not_asked,omitempty"`
}

// scenarioOf finds the requested scenario.
func scenarioOf(all []*benched, name, cgroup string) (benched, bool) {
	for _, b := range all {
		if b.Name == name && b.Cgroup == cgroup {
			return *b, true
		}
	}
	return benched{Name: name, Cgroup: cgroup}, false
}

// bounded are the scenarios in which a call may take 20 ms at most. The one of huge pages
// is not among them: a huge page takes longer, and cannot be moved in parts.
func bounded(all []*benched) (some []benched) {
	for _, b := range all {
		if slices.Contains([]string{"neutral", "running", "rates"}, b.Name) {
			some = append(some, *b)
		}
	}
	return some
}

// judgeMigration gives the verdict for each target.
func judgeMigration(all []*benched) (vs []verdict) {
	for _, b := range all {
		vs = append(vs, judgeRuns(*b))
	}
	for _, cgroup := range []string{"v2", "v1"} {
		vs = append(vs, judgeKinds(scenarioOf(all, kinds.name, cgroup))...)
	}
	vs = append(vs, judgeSpeed(scenarioOf(all, "neutral", "v2")))
	for _, at := range [][2]string{{"neutral", "v2"}, {"running", "v2"}, {"running", "v1"}} {
		vs = append(vs, judgeStall(scenarioOf(all, at[0], at[1])))
	}
	vs = append(vs, judgeCalls(bounded(all)), judgeRates(bounded(all)))
	for _, name := range []string{"many", "one", "small"} {
		vs = append(vs, judgeFreeze(scenarioOf(all, name, "v2"))...)
	}
	return vs
}

func unmet(vs []verdict) (n int) {
	for _, v := range vs {
		if !v.Met && !v.NotAsked {
			n++
		}
	}
	return n
}

func notAsked(name string) verdict {
	return verdict{Target: experiment.Target{Name: name}, NotAsked: true}
}

// least: met if the figure is known and at least the limit; atMost the other way.
func least(name, want string, got unit.Opt[float64], limit float64, note string) verdict {
	v, ok := got.Get()
	return verdict{Target: experiment.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v >= limit, Note: note}}
}

func atMost(name, want string, got unit.Opt[float64], limit float64, note string) verdict {
	v, ok := got.Get()
	return verdict{Target: experiment.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v <= limit, Note: note}}
}

// unless makes the target unmet for that reason; "": unchanged.
func (v verdict) unless(why string) verdict {
	if why != "" {
		v.Met, v.Note = false, v.Note+"; "+why
	}
	return v
}

// judgeRuns: each contestant has the requested number of counted runs, and none
// failed.
func judgeRuns(b benched) verdict {
	fewest := unit.None[float64]()
	var failed []string
	for _, name := range b.Contestants {
		n := float64(len(b.counting(name)))
		fewest = unit.Some(min(n, fewest.Or(n)))
	}
	for _, s := range b.Samples {
		if s.Failure != "" {
			failed = append(failed, s.Contestant)
		}
	}
	why := ""
	if len(failed) > 0 {
		why = fmt.Sprintf("%d failed: %s", len(failed), strings.Join(slices.Compact(failed), ", "))
	}
	return least("runs, "+b.Name+" "+b.Cgroup, "all that are to be run count", fewest, float64(b.Repeats), "of the contestant with the fewest").unless(why)
}

func judgeKinds(b benched, asked bool) (vs []verdict) {
	if !asked {
		return []verdict{notAsked(b.Cgroup + ": kinds of memory")}
	}
	mine := b.counting(liveMax.name)
	for _, k := range migration.Kinds() {
		best, peer := 0.0, ""
		for _, name := range b.Contestants {
			if share, ok := movedShare(b.counting(name), k); ok && name != liveMax.name && share >= best {
				best, peer = share, name
			}
		}
		if peer == "" {
			continue
		}
		share, ok := movedShare(mine, k)
		limit, want := best-completeSlack, "as much as the best peer moves"
		if k == migration.Cache {
			limit, want = 0.99, "at least 99 % moved"
		}
		vs = append(vs, least(b.Cgroup+": "+string(k), want, unit.OptOf(share, ok), limit, fmt.Sprintf("%s: %.4f", peer, best)))
	}
	if len(vs) == 0 {
		return []verdict{least(b.Cgroup+": kinds of memory", "as much as the best peer moves", unit.None[float64](), 1, "no peer moved any")}
	}
	return vs
}

var live50 = live(0.5).name

func judgeSpeed(b benched, asked bool) verdict {
	const name = "live, neutral"
	if !asked {
		return notAsked(name)
	}
	half := b.counting(live50)
	r, ok := experiment.RatioOf(values(half, opsDuring), values(half, opsBefore))
	return least(name, "at half the measured maximum, 94 % of the ops before", unit.OptOf(r.Value, ok), 0.94, interval(r)).unless(b.incomplete(half))
}

func most(of []float64) unit.Opt[float64] {
	if len(of) == 0 {
		return unit.None[float64]()
	}
	return unit.Some(slices.Max(of))
}

// judgeStall: the victim's stalls by its own clock; homenode itself reports the length
// of a call. Now and then an operation is longer although nothing moves.
func judgeStall(b benched, asked bool) verdict {
	name := "stall, " + b.Name + " " + b.Cgroup
	if !asked {
		return notAsked(name)
	}
	some := b.of(b.mine(liveMax.name))
	quiet, ok := most(values(b.of(b.Contestants), quietOf)).Get()
	v := atMost(name, "a victim's op takes at most 20 ms more than its longest without a mover", most(values(some, stallOf)), 20+quiet,
		fmt.Sprintf("of all live runs; without a mover %.1f ms", quiet)).unless(b.incomplete(some))
	if !ok {
		return v.unless("no op without a mover was measured")
	}
	return v
}

// allOf is the largest value of a figure in all of homenode's live runs, and why it is
// invalid.
func allOf(some []benched, of func(sample) unit.Opt[float64]) (figure unit.Opt[float64], why string) {
	var all []float64
	for _, b := range some {
		runs := b.of(b.mine(liveMax.name))
		all = append(all, values(runs, of)...)
		if why == "" {
			why = b.incomplete(runs)
		}
	}
	return most(all), why
}

func judgeCalls(some []benched) verdict {
	const name = "live, longest call"
	if len(some) == 0 {
		return notAsked(name)
	}
	figure, why := allOf(some, callOf)
	return atMost(name, "at most 20 ms of model time", figure, 20, "of all live runs, small pages").unless(why)
}

func judgeRates(some []benched) verdict {
	const name = "live, rates"
	shares := []string{}
	for _, b := range some {
		for _, name := range b.mine(liveMax.name + " ") {
			shares = append(shares, fmt.Sprintf("%s %s%s", b.Name, b.Cgroup, strings.TrimPrefix(name, liveMax.name)))
		}
	}
	if len(shares) == 0 {
		return notAsked(name)
	}
	figure, why := allOf(some, rateError)
	return atMost(name, "within 10 % of the rate asked for", figure, 0.10, "of all runs: "+strings.Join(shares, ", ")).unless(why)
}

func interval(r experiment.Ratio) string {
	if r.CI == (experiment.Interval{}) {
		return "too few runs for an interval"
	}
	return fmt.Sprintf("%.3f–%.3f, %.0f %% of the time", r.CI.Low, r.CI.High, 100*r.CI.Coverage)
}

func judgeFreeze(b benched, asked bool) (vs []verdict) {
	if !asked {
		return []verdict{notAsked("freeze, " + b.Name)}
	}
	of, by := b.counting(frozen.name), b.counting(migratesIt.name)
	mine, peer, why := values(of, seconds), values(by, seconds), b.incomplete(append(of, by...))
	if b.Name == "many" {
		faster, ok := experiment.RatioOf(peer, mine)
		vs = append(vs, least("freeze, "+b.Name, "1.5 times as fast as migrate_pages of one process after the other", unit.OptOf(faster.Value, ok), 1.5, interval(faster)).unless(why))
	}
	slower, ok := experiment.RatioOf(mine, peer)
	return append(vs, atMost("freeze, "+b.Name, "never more than 1.1 times slower than migrate_pages", unit.OptOf(slower.Value, ok), 1.1, interval(slower)).unless(why))
}

func targetTable(vs []verdict) string {
	var out strings.Builder
	for _, v := range vs {
		word, got := "UNMET", "not measured"
		switch {
		case v.NotAsked:
			fmt.Fprintf(&out, "not asked  %s\n", v.Name)
			continue
		case v.Met:
			word = "met"
		}
		if x, ok := v.Got.Get(); ok {
			got = fmt.Sprintf("%.3f", x)
		}
		fmt.Fprintf(&out, "%-10s %-22s %s: %s (limit %.3g; %s)\n", word, v.Name, v.Want, got, v.Limit, v.Note)
	}
	return out.String()
}

// aRun moved 1000 bytes, except left of them.
func aRun(name string, seconds float64, left unit.Bytes) sample {
	s := sample{Contestant: name, Seconds: unit.Some(seconds), Left: map[migration.Kind]unit.Bytes{migration.File: left}}
	s.Before.Add(migration.File, 1, 1000)
	return s
}

// freezing is homenode against migrate_pages, complete.
func freezing(name string, mine, peer []float64) *benched {
	b := &benched{Name: name, Cgroup: "v2", Repeats: len(mine), Contestants: []string{frozen.name, migratesIt.name}}
	for i := range mine {
		b.Samples = append(b.Samples, aRun(frozen.name, mine[i], 0), aRun(migratesIt.name, peer[i], 0))
	}
	return b
}

// judged compares all lines of the requested targets by their beginnings.
func judged(t *testing.T, what string, all []*benched, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(targetTable(judgeMigration(all))) {
		if !strings.HasPrefix(line, "not asked") {
			got = append(got, line)
		}
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, ""), strings.Join(want, "\n"))
	}
}

const metRuns = "met        runs, "

func TestDecisionJudgeFreeze(t *testing.T) {
	many := func() *benched {
		return freezing("many", []float64{3, 3.1, 3.2, 3.3, 3.1}, []float64{7, 7.2, 7.1, 7.5, 8})
	}
	slow := freezing("small", []float64{1.5, 1.6, 1.4}, []float64{1, 1.1, 1})
	judged(t, "two", []*benched{many(), slow}, metRuns+"many", metRuns+"small", "met        freeze, many", "met        freeze, many", "UNMET      freeze, small")
	left := many()
	left.Samples[4].Left[migration.File] = 2
	judged(t, "incomplete", []*benched{left}, metRuns, "UNMET      freeze, many", "UNMET      freeze, many")
	left.Samples[4].Left[migration.File] = 1
	judged(t, "almost complete", []*benched{left}, metRuns, "met        freeze, many", "met        freeze, many")
	left.Samples[5].Left[migration.File] = 2
	judged(t, "a peer that is incomplete", []*benched{left}, metRuns, "UNMET      freeze, many", "UNMET      freeze, many")
	failed := many()
	failed.Samples[0].Failure = "failed: exit 1"
	judged(t, "one failed", []*benched{failed}, "UNMET      runs, many", "met        freeze, many", "met        freeze, many")
	short := many()
	short.Samples = slices.Delete(short.Samples, 1, 2)
	judged(t, "one is missing", []*benched{short}, "UNMET      runs, many", "met        freeze, many", "met        freeze, many")
	judged(t, "none ran", []*benched{{Name: "one", Cgroup: "v2", Repeats: 5, Contestants: many().Contestants}}, "UNMET      runs, one", "UNMET      freeze, one")
	judged(t, "none asked for", nil)
}

// calm has a victim, and a mover at half its rate; every figure is good.
func calm(name string) *benched {
	b := &benched{Name: name, Cgroup: "v2", Repeats: 2, Contestants: []string{live50}}
	for range 2 {
		s := aRun(live50, 5, 0)
		s.Asked, s.Rate, s.CallMS = 1000, unit.Some(1010.0), unit.Some(19.0)
		s.OpsBefore, s.OpsDuring, s.StallMS, s.QuietMS = unit.Some(100.0), unit.Some(95.0), unit.Some(24.0), unit.Some(5.0)
		b.Samples = append(b.Samples, s)
	}
	return b
}

func TestDecisionJudgeLive(t *testing.T) {
	lines := []string{metRuns + "neutral", "met        live, neutral", "met        stall, neutral v2", "met        live, longest call", "met        live, rates"}
	judged(t, "as it should be", []*benched{calm("neutral")}, lines...)
	judged(t, "running is no measure of speed", []*benched{calm("running")}, metRuns, "met        stall, running v2", lines[3], lines[4])
	for _, c := range []struct {
		what   string
		change func(s *sample)
		unmet  []int
	}{
		{"slow", func(s *sample) { s.OpsDuring = unit.Some(80.0) }, []int{1}},
		{"stalls", func(s *sample) { s.StallMS = unit.Some(25.1) }, []int{2}},
		{"a long call", func(s *sample) { s.CallMS = unit.Some(20.1) }, []int{3}},
		{"a wrong rate", func(s *sample) { s.Rate = unit.Some(880.0) }, []int{4}},
		{"pages stay", func(s *sample) { s.Left[migration.File] = 2 }, []int{1, 2, 3, 4}},
		{"nothing to move", func(s *sample) { s.Before = migration.Census{} }, []int{1, 2, 3, 4}},
		{"nothing is known", func(s *sample) {
			s.OpsDuring, s.StallMS, s.CallMS, s.Rate = unit.None[float64](), unit.None[float64](), unit.None[float64](), unit.None[float64]()
		}, []int{1, 2, 3, 4}},
	} {
		b, want := calm("neutral"), slices.Clone(lines)
		for i := range b.Samples {
			c.change(&b.Samples[i])
		}
		for _, i := range c.unmet {
			want[i] = strings.Replace(want[i], "met  ", "UNMET", 1)
		}
		judged(t, c.what, []*benched{b}, want...)
	}
	thp := calm("thp")
	thp.Samples[0].CallMS = unit.Some(400.0)
	judged(t, "huge pages have no bound", []*benched{thp}, metRuns+"thp")
}

func TestDecisionToBench(t *testing.T) {
	all, err := toBench("", 5)
	if few, e := toBench("kinds,running", 5); err != nil || e != nil || len(few) != 4 || len(all) != len(scenarios())+2 || few[0].Repeats != 5 || few[2].Repeats != 2 {
		t.Errorf("%d, %d: %v, %v", len(all), len(few), err, e)
	}
	if _, err := toBench("kinds,nothing", 5); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("an unknown scenario: %v", err)
	}
}

func TestDecisionMovedShare(t *testing.T) {
	half := aRun("m", 1, 500)
	if share, ok := movedShare([]sample{half}, migration.File); !ok || share != 0.5 {
		t.Errorf("moved %v, %v", share, ok)
	}
	if _, ok := movedShare([]sample{half}, migration.Cache); ok {
		t.Error("a share of zero bytes")
	}
	// homenode need not move what no peer moves; without a peer it must.
	b := benched{Contestants: []string{liveMax.name, "m"}, Samples: []sample{half}}
	if got := [2]float64{b.toMove(migration.File), b.toMove(migration.Cache)}; got != [2]float64{0.5, 1} {
		t.Errorf("to be moved: %v", got)
	}
}
