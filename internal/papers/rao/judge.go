// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/catalog"
	"homenode/internal/sim/runner"
)

// The limits of the verdicts, written down before the first comparison.
const (
	closeToHand = 0.05 // slower than hand-optimised, on the median mix
	fasterBy    = 0.25 // than the default, on some mix
	steady      = 0.02 // deviation of run times, the mean over mixes
	price       = 0.03 // most that an insensitive load may lose
	fairer      = 0.02 // the most that least / most CPU time may fall
)

const aim = arena.ToReach

// statements are judged by a result of Plan.
var statements = []arena.Statement[*figures]{
	{Paper: Paper, Text: "In parallel mixes with spinning barriers the uncore penalty tells run time, and IPC does not.", Theirs: "linear; not valid", Judge: (*figures).parallelIndexes},
	{Paper: Paper, Text: "In multiprogrammed mixes the uncore penalty tells run time, better than the LLC miss rate.", Theirs: "linear", Judge: (*figures).singleIndexes},
	{Paper: Paper, Text: "BRM is faster than the default scheduler, by up to a third.", Theirs: "up to 31.7 % faster", Judge: (*figures).faster},
	{Paper: Paper, Text: "BRM comes close to the placement that was optimised by hand.", Theirs: "close", Judge: (*figures).hand},
	{Paper: Paper, Text: "Under BRM run times hardly vary.", Theirs: "≤ 2 % on average", Judge: (*figures).steady},
	{Paper: Paper, Text: "Loads that do not care where they run lose a little.", Theirs: "a little", Judge: (*figures).insensitive},
	{Paper: Paper, Text: "BRM's overhead grows with the vCPUs and breaks it at 16; a relaxed global sum should mend that.", Theirs: "< 2 % for 2 and 4, 6.4 % for 8, breaks at 16", Judge: (*figures).scales},
	{Paper: Paper, Text: "BRM is not for short-lived jobs.", Theirs: "–", Judge: (*figures).shortJobs},
	{Paper: Paper, Text: "Fairness is left as it is.", Theirs: "unaffected", Judge: (*figures).fair},
	{Paper: aim, Text: "BRM is within 5 % of hand-optimised on the median mix.", Theirs: "≤ 5 %", Target: true, Judge: (*figures).hand},
	{Paper: aim, Text: "Run times vary by 2 % at most under BRM.", Theirs: "≤ 2 %", Target: true, Judge: (*figures).steady},
	{Paper: aim, Text: "BRM is at least 25 % faster than the default somewhere.", Theirs: "≥ 25 %", Target: true, Judge: (*figures).aimFaster},
	{Paper: aim, Text: "No load that does not care loses more than 3 %.", Theirs: "≤ 3 %", Target: true, Judge: (*figures).insensitive},
}

// Judge returns a verdict for each statement. It computes those that need no runs (the
// micro-benchmark); the rest come from a result of Plan.
func Judge(r arena.Result) []arena.Row {
	sys := arena.BuiltinMachine(catalog.DualE5620).System
	return append(judgeGrid(&sys), arena.Judge(statements, newFigures(&r))...)
}

// parallelIndexes compares runs of one workload, over policies and seeds.
func (f *figures) parallelIndexes() arena.Finding {
	return f.indexes(parallelFamilies, func(r correlation) bool { return r.penalty >= profile.RaoStrong && r.cpi < profile.RaoStrong })
}

func (f *figures) singleIndexes() arena.Finding {
	return f.indexes(multiFamilies, func(r correlation) bool { return r.penalty > r.miss && r.penalty >= profile.RaoStrong })
}

// indexes judges by runs in which each thread had a CPU of its own, as in the paper.
func (f *figures) indexes(families []Family, shown func(correlation) bool) (w arena.Finding) {
	list := f.samples(f.of(families...), true)
	r, t := correlationOf(list), predictedOf(list)
	if r.n < profile.RaoCells {
		return arena.NoRuns
	}
	all := correlationOf(f.samples(f.of(families...), false))
	w.Ours = fmt.Sprintf("r %.3f (penalty), %.3f (misses), %.3f (cycles an instruction)", r.penalty, r.miss, r.cpi)
	w.Verdict = arena.VerdictOf(shown(r))
	w.Sentence = fmt.Sprintf("Each workload's run time, penalty, DRAM reads an instruction and cycles an instruction against its own mean over policies and seeds, %d runs of workloads in which each thread had a CPU: r with run time is %.3f, %.3f and %.3f (logarithms; 0.9 is a correlation). Of %d pairs that differ by 5 %% the lower one is the faster in %.0f, %.0f and %.0f %%. Over all %d runs, those in which a policy put threads on one CPU too: %.3f, %.3f and %.3f. None of the three sees that a thread waits for a CPU.",
		r.n, r.penalty, r.miss, r.cpi, t.pairs, percent(t.penalty, t.pairs), percent(t.mpi, t.pairs), percent(t.cpi, t.pairs), all.n, all.penalty, all.miss, all.cpi)
	return w
}

// versus compares BRM with another policy on mixes, and says how the remaining policies
// compare there.
func (f *figures) versus(than string, families ...Family) (c compared, others string) {
	names := f.of(families...)
	c = f.compare(names, runner.BRM, than)
	var parts []string
	for _, p := range f.r.Policies {
		if o := f.compare(names, p.Name, than); p.Name != runner.BRM && p.Name != than && len(o.ratios) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", p.Name, signed(medianOf(o.ratios)-1)))
		}
	}
	return c, strings.Join(parts, ", ")
}

func signed(share float64) string { return fmt.Sprintf("%+.1f %%", 100*share) }

func (f *figures) faster() (w arena.Finding) {
	c, others := f.versus(runner.None, sensitive...)
	if len(c.ratios) == 0 {
		return arena.NoRuns
	}
	mix, best := c.least()
	worst, loses := c.most()
	w.Ours = fmt.Sprintf("up to %.1f %% faster", 100*(1-best))
	w.Verdict = arena.VerdictOf(1-best >= fasterBy && medianOf(c.ratios) < 1)
	w.Sentence = fmt.Sprintf("Run time against the default: %s on %s at best, %s on the median of %d mixes, %s on %s at worst. Others, median: %s.",
		signed(best-1), mix, signed(medianOf(c.ratios)-1), len(c.ratios), signed(loses-1), worst, others)
	if hand := f.compare(f.of(sensitive...), runner.HandThreads, runner.None); len(hand.ratios) > 0 {
		mix, most := hand.least()
		w.Sentence += fmt.Sprintf(" Placement by hand: %s at best (%s), which is what these loads can gain without moving memory.", signed(most-1), mix)
	}
	return w
}

func (f *figures) hand() (w arena.Finding) {
	c, others := f.versus(runner.HandThreads, sensitive...)
	if len(c.ratios) == 0 {
		return arena.NoRuns
	}
	best, least := c.least()
	worst, most := c.most()
	w.Ours = signed(medianOf(c.ratios)-1) + " on the median mix"
	w.Verdict = arena.VerdictOf(medianOf(c.ratios) <= 1+closeToHand)
	w.Sentence = fmt.Sprintf("Run time against the threads pinned by hand: %s on the median of %d mixes, %s (%s) to %s (%s); by family: %s. Others, median: %s. Placement by hand is a search by the memory model, and no ceiling.",
		signed(medianOf(c.ratios)-1), len(c.ratios), signed(least-1), best, signed(most-1), worst, f.byFamily(runner.BRM, runner.HandThreads), others)
	return w
}

// byFamily is the median of each family.
func (f *figures) byFamily(policy, than string) string {
	var parts []string
	for _, family := range sensitive {
		if c := f.compare(f.of(family), policy, than); len(c.ratios) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", family, signed(medianOf(c.ratios)-1)))
		}
	}
	return strings.Join(parts, ", ")
}

func (f *figures) steady() (w arena.Finding) {
	names := f.of(sensitive...)
	all := f.variations(names, runner.BRM)
	if len(all) == 0 {
		return arena.NoRuns
	}
	w.Ours = fmt.Sprintf("%.1f %% on average", 100*meanOf(all))
	w.Verdict = arena.VerdictOf(meanOf(all) <= steady)
	var parts []string
	for _, p := range f.r.Policies {
		if v := f.variations(names, p.Name); p.Name != runner.BRM && len(v) > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", p.Name, 100*meanOf(v)))
		}
	}
	w.Sentence = fmt.Sprintf("Deviation of a workload's run time over %d seeds as a share of its mean: %.2f %% in the mean of %d mixes, %.1f %% in the worst. Others, mean: %s.",
		len(f.r.Seeds), 100*meanOf(all), len(all), 100*slices.Max(all), strings.Join(parts, ", "))
	return w
}

func (f *figures) insensitive() (w arena.Finding) {
	c, others := f.versus(runner.None, Insensitive)
	if len(c.ratios) == 0 {
		return arena.NoRuns
	}
	mix, most := c.most()
	w.Ours = signed(most-1) + " at most"
	w.Verdict = arena.VerdictOf(most <= 1+price)
	w.Sentence = fmt.Sprintf("Run time against the default on %d mixes of programs whose data fit L2, tagged all the same: %s on %s at worst, %s on the median. Others, median: %s. The policy's own CPU time is not simulated.",
		len(c.ratios), signed(most-1), mix, signed(medianOf(c.ratios)-1), others)
	return w
}

// aimFaster covers all mixes, including those on larger machines.
func (f *figures) aimFaster() (w arena.Finding) {
	c, _ := f.versus(runner.None, append(slices.Clone(sensitive), Scale, VMScale)...)
	if len(c.ratios) == 0 {
		return arena.NoRuns
	}
	mix, best := c.least()
	w.Ours, w.Verdict = fmt.Sprintf("up to %.1f %% faster", 100*(1-best)), arena.VerdictOf(1-best >= fasterBy)
	w.Sentence = fmt.Sprintf("Run time against the default: %s on %s, the best of %d mixes, those on larger machines too.", signed(best-1), mix, len(c.ratios))
	return w
}

// scales judges throughput by number of threads. The cost of a step is real time, so a
// benchmark measures it (BenchmarkStep of policy/brm).
func (f *figures) scales() (w arena.Finding) {
	yes, seen := true, false
	text := ""
	for _, family := range []Family{Scale, VMScale} {
		var parts []string
		for _, s := range scales {
			part, loses, ok := f.scale(fmt.Sprintf("%s-%d", family, s.threads))
			if !ok {
				continue
			}
			parts = append(parts, fmt.Sprintf("%d: %s", s.threads, part))
			if s.threads >= 16 {
				seen = true
				yes = yes && !loses
			}
		}
		text += fmt.Sprintf(" %s: %s.", family, strings.Join(parts, "; "))
	}
	if !seen {
		return arena.NoRuns
	}
	w.Ours, w.Verdict = "no loss from 16 threads on", arena.VerdictOf(yes)
	if !yes {
		w.Ours = "loses from 16 threads on"
	}
	w.Sentence = "Throughput against the default, and against by hand, by threads (in brackets the slides' algorithm to the letter against the default)." + text +
		" From 16 on BRM must lose no more than 3 % to the default. The CPU time of a step is not simulated: BenchmarkStep of policy/brm measures it (docs/decisions/0024-rao-again.md)."
	return w
}

func (f *figures) scale(mix string) (text string, loses, ok bool) {
	against, ok := f.slower(mix, runner.BRM, runner.None)
	hand, ok2 := f.slower(mix, runner.BRM, runner.HandThreads)
	if !ok || !ok2 {
		return "", false, false
	}
	text = fmt.Sprintf("%s, %s", signed(1/against-1), signed(1/hand-1))
	if v, ok := f.slower(mix, Literal, runner.None); ok {
		text += fmt.Sprintf(" (%s)", signed(1/v-1))
	}
	return text, against > 1+price, true
}

// shortJobs compares BRM's gain where jobs are short with its gain where the same programs
// stay.
func (f *figures) shortJobs() (w arena.Finding) {
	c, others := f.versus(runner.None, Short)
	long, _ := f.versus(runner.None, Multi)
	if len(c.ratios) == 0 || len(long.ratios) == 0 {
		return arena.NoRuns
	}
	short := medianOf(c.ratios)
	w.Ours = signed(short-1) + " run time"
	// Shown if it gains less than half of what it gains otherwise, or loses.
	w.Verdict = arena.VerdictOf(1-short <= max(0, 1-medianOf(long.ratios))/2)
	w.Sentence = fmt.Sprintf("Jobs of %v, of the programs of one thread, one after the other: run time %s against the default, where the same programs stay %s (median of %d mixes). Others: %s.",
		jobLasts, signed(short-1), signed(medianOf(long.ratios)-1), len(long.ratios), others)
	return w
}

func (f *figures) fair() (w arena.Finding) {
	with, n := f.fairness(f.of(parallelFamilies...), runner.BRM)
	without, _ := f.fairness(f.of(parallelFamilies...), runner.None)
	apps, k := f.fairnessOfApps(f.of(multiFamilies...), runner.BRM)
	before, _ := f.fairnessOfApps(f.of(multiFamilies...), runner.None)
	if n == 0 || k == 0 {
		return arena.NoRuns
	}
	w.Ours = fmt.Sprintf("%.3f and %.3f; default %.3f and %.3f", with, apps, without, before)
	w.Verdict = arena.VerdictOf(with >= without-fairer && apps >= before-fairer)
	w.Sentence = fmt.Sprintf("Least / most CPU time, means: of the threads of a parallel program %.3f under BRM, %.3f by default (n = %d); of eight programs of one thread %.3f and %.3f (n = %d). It may fall by 0.02.",
		with, without, n, apps, before, k)
	return w
}
