// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/trial"
	"homenode/internal/unit"
)

// names of the contestants that were measured, in the order of their first run.
func (b benched) names() (names []string) {
	for _, s := range b.Samples {
		if !slices.Contains(names, s.Contestant) {
			names = append(names, s.Contestant)
		}
	}
	return names
}

// counting are the runs of a contestant that count.
func (b benched) counting(name string) (some []sample) {
	for _, s := range b.Samples {
		if s.Contestant == name && !s.Warm && s.Problem == "" {
			some = append(some, s)
		}
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
func stallOf(s sample) unit.Opt[float64]   { return s.StallMS }
func callOf(s sample) unit.Opt[float64]    { return s.CallMS }
func opsBefore(s sample) unit.Opt[float64] { return s.OpsBefore }
func opsDuring(s sample) unit.Opt[float64] { return s.OpsDuring }

// opsMean is what the victim would do if it got faster as evenly as its memory comes home.
func opsMean(s sample) unit.Opt[float64] {
	a, ok := s.OpsBefore.Get()
	b, too := s.OpsAfter.Get()
	return unit.OptOf((a+b)/2, ok && too)
}

// rateError is how far the rate was from the one asked for, as a share of it.
func rateError(s sample) unit.Opt[float64] {
	rate, ok := s.Rate.Get()
	return unit.OptOf(math.Abs(rate/float64(s.Asked)-1), ok && s.Asked > 0)
}

// movedShare is the least share of a kind that moved in any run; false: there is none.
func movedShare(some []sample, k migration.Kind) (least float64, ok bool) {
	least = 1
	for _, s := range some {
		row, _ := s.Before.Of(k)
		there := row.Elsewhere(set.NodeSet{}, set.FromNodes(0))
		if there == 0 {
			continue
		}
		least, ok = min(least, 1-float64(s.Left[k])/float64(there)), true
	}
	return least, ok
}

func medianText(v []float64, format string) string {
	s, ok := trial.Summarise(v)
	if !ok {
		return "—"
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.Median, s.Min, s.Max)
}

func ratioText(values, base []float64) string {
	r, ok := trial.RatioOf(values, base)
	if !ok {
		return "—"
	}
	return fmt.Sprintf("%.3f (%.3f–%.3f)", r.Value, r.CI.Low, r.CI.High)
}

// table is a scenario for people: medians, least and most of the runs.
func (b benched) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, cgroup %s: %s\n", b.Name, b.Cgroup, b.About)
	for _, name := range b.names() {
		some := b.counting(name)
		fmt.Fprintf(&out, "  %-20s %d runs  move %s s, with the start of programs %s s, longest call %s ms", name, len(some), medianText(values(some, seconds), "%.2f"), medianText(values(some, withStart), "%.2f"), medianText(values(some, callOf), "%.1f"))
		if stalls := values(some, stallOf); len(stalls) > 0 {
			fmt.Fprintf(&out, "\n%24s victim: longest stall %s ms, ops during against before %s, against the mean of before and after %s", "", medianText(stalls, "%.1f"),
				ratioText(values(some, opsDuring), values(some, opsBefore)), ratioText(values(some, opsDuring), values(some, opsMean)))
		}
		if off := values(some, rateError); len(off) > 0 {
			fmt.Fprintf(&out, "\n%24s rate asked %v/s, off by at most %.1f %%", "", some[0].Asked, 100*slices.Max(off))
		}
		fmt.Fprintf(&out, "\n%24s moved:", "")
		for _, k := range migration.Kinds() {
			if share, ok := movedShare(some, k); ok {
				fmt.Fprintf(&out, " %s %.2f %%", k, 100*share)
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// judge finds a scenario that was measured.
func scenarioOf(all []benched, name, cgroup string) benched {
	for _, b := range all {
		if b.Name == name && b.Cgroup == cgroup {
			return b
		}
	}
	return benched{}
}

// judgeMigration says what came of each target, of those that could be tried.
func judgeMigration(all []benched) (targets []trial.Target) {
	for _, cgroup := range []string{"v2", "v1"} {
		targets = append(targets, judgeKinds(scenarioOf(all, kinds.name, cgroup))...)
	}
	targets = append(targets, judgeLive(all)...)
	for _, name := range []string{"many", "one", "small"} {
		targets = append(targets, judgeFreeze(scenarioOf(all, name, "v2"))...)
	}
	return targets
}

// least: met if the figure is known and at least the limit; atMost the other way.
func least(name, want string, got unit.Opt[float64], limit float64, note string) trial.Target {
	v, ok := got.Get()
	return trial.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v >= limit, Note: note}
}

func atMost(name, want string, got unit.Opt[float64], limit float64, note string) trial.Target {
	v, ok := got.Get()
	return trial.Target{Name: name, Want: want, Got: got, Limit: limit, Met: ok && v <= limit, Note: note}
}

func judgeKinds(b benched) (targets []trial.Target) {
	if len(b.Samples) == 0 {
		return nil
	}
	mine := b.counting(liveMax.name)
	for _, k := range migration.Kinds() {
		best, peer := 0.0, ""
		for _, name := range b.names() {
			if share, ok := movedShare(b.counting(name), k); ok && name != liveMax.name && share >= best {
				best, peer = share, name
			}
		}
		if peer == "" {
			continue
		}
		share, ok := movedShare(mine, k)
		limit, want := best-0.001, "as much as the best peer moves"
		if k == migration.Cache {
			limit, want = 0.99, "at least 99 % moved"
		}
		targets = append(targets, least(b.Cgroup+": "+string(k), want, unit.OptOf(share, ok), limit, fmt.Sprintf("%s: %.4f", peer, best)))
	}
	return targets
}

func judgeLive(all []benched) (targets []trial.Target) {
	var live []sample
	for _, b := range all {
		for _, name := range b.names() {
			if strings.HasPrefix(name, liveMax.name) && b.Name != kinds.name {
				live = append(live, b.counting(name)...)
			}
		}
	}
	if len(live) == 0 && len(all) > 0 && len(scenarioOf(all, "running", "v2").Samples) == 0 {
		return nil
	}
	most := func(of func(sample) unit.Opt[float64]) unit.Opt[float64] {
		v := values(live, of)
		if len(v) == 0 {
			return unit.None[float64]()
		}
		return unit.Some(slices.Max(v))
	}
	for _, name := range []string{"neutral", "running"} {
		half := scenarioOf(all, name, "v2").counting(live50)
		r, ok := trial.RatioOf(values(half, opsDuring), values(half, opsBefore))
		targets = append(targets, least("live, "+name, "at half the measured maximum, 94 % of the ops before", unit.OptOf(r.Value, ok), 0.94,
			fmt.Sprintf("%.3f–%.3f, %.0f %% of the time", r.CI.Low, r.CI.High, 100*r.CI.Coverage)))
	}
	return append(targets,
		atMost("live, longest call", "at most 20 ms of model time", most(callOf), 20, "of all runs"),
		atMost("live, rates", "within 10 % of the rate asked for", most(rateError), 0.10, "of all runs at 25, 50 and 75 % of the measured maximum"))
}

var live50 = live(0.5).name

func judgeFreeze(b benched) (targets []trial.Target) {
	if len(b.Samples) == 0 {
		return nil
	}
	mine, peer := values(b.counting(frozen.name), seconds), values(b.counting(migratesIt.name), seconds)
	faster, ok := trial.RatioOf(peer, mine)
	note := fmt.Sprintf("%.2f–%.2f, %.0f %% of the time", faster.CI.Low, faster.CI.High, 100*faster.CI.Coverage)
	if b.Name == "many" {
		targets = append(targets, least("freeze, "+b.Name, "1.5 times as fast as migrate_pages", unit.OptOf(faster.Value, ok), 1.5, note))
	}
	slower, ok := trial.RatioOf(mine, peer)
	return append(targets, atMost("freeze, "+b.Name, "never more than 1.1 times slower than migrate_pages", unit.OptOf(slower.Value, ok), 1.1,
		fmt.Sprintf("%.2f–%.2f, %.0f %% of the time", slower.CI.Low, slower.CI.High, 100*slower.CI.Coverage)))
}

func targetTable(targets []trial.Target) string {
	var out strings.Builder
	for _, t := range targets {
		word := "UNMET"
		if t.Met {
			word = "met"
		}
		got := "not measured"
		if v, ok := t.Got.Get(); ok {
			got = fmt.Sprintf("%.3f", v)
		}
		fmt.Fprintf(&out, "%-6s %-22s %s: %s (limit %.3g; %s)\n", word, t.Name, t.Want, got, t.Limit, t.Note)
	}
	return out.String()
}

func TestDecisionJudgeMigration(t *testing.T) {
	of := func(name string, seconds ...float64) (some []sample) {
		for _, v := range seconds {
			some = append(some, sample{Contestant: name, Seconds: unit.Some(v)})
		}
		return some
	}
	fast := benched{Name: "many", Cgroup: "v2", Samples: append(of(frozen.name, 3, 3.1, 3.2, 3.3, 3.1), of(migratesIt.name, 7, 7.2, 7.1, 7.5, 8)...)}
	slow := benched{Name: "small", Cgroup: "v2", Samples: append(of(frozen.name, 1.5, 1.6, 1.4), of(migratesIt.name, 1, 1.1, 1)...)}
	got := targetTable(judgeMigration([]benched{fast, slow}))
	want := []string{"met    freeze, many", "met    freeze, many", "UNMET  freeze, small"}
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d: %s\nall:\n%s", i, line, got)
		}
	}
	// A figure that nobody knows is not met.
	if x := least("x", "", unit.None[float64](), 0, ""); x.Met {
		t.Error("an unknown figure is met")
	}
	half := sample{Contestant: "m", Left: map[migration.Kind]unit.Bytes{migration.File: 50}}
	half.Before.Add(migration.File, 1, 100)
	if share, ok := movedShare([]sample{half}, migration.File); !ok || share != 0.5 {
		t.Errorf("moved %v, %v", share, ok)
	}
	if _, ok := movedShare([]sample{half}, migration.Cache); ok {
		t.Error("a share of nothing")
	}
}
