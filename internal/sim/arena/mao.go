// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"fmt"

	"homenode/internal/sim/arm"
)

// maoMachine is what MAO's machines are like: others say nothing of its figures.
const maoMachine = "dual-skylake"

// MAO's figures (facts of the paper), as shares.
const (
	maoLocal  = 0.5776 // of DRAM reads, fleet, under AutoNUMA
	maoNear   = 0.05   // that near is alike: a choice, made before the first comparison
	maoRunsBy = "MAO with strategy B against NUMA balancing"
)

// MAORows are MAO's statements that an arena can test, beside what came of them on MAO's
// machine. How large its gains are, service by service, is judged by scenarios made for
// it (sim/scenarios/mao-*.yaml): the loads here are others'.
func MAORows(r Result) []Row {
	rows := []Row{
		maoRow("Under NUMA balancing alone somewhat more than half of the DRAM reads are local.", "57.76 % (fleet)"),
		maoRow("Binding by MAO makes more DRAM reads local than NUMA balancing does.", "+17.26 % (Search)"),
		maoRow("Binding by MAO lowers latency.", "−12.1 % (Feed), −8.6 % (Search)"),
		maoRow("Binding by MAO lowers CPU time per operation.", "−9.8 % (Feed), −6.7 % (Search)"),
		maoRow("Strategy B unbinds less than strategy A.", "–"),
	}
	for i, judge := range []func(Result, *Row){maoLocalUnder, maoLocalGain, maoLatency, maoCPU, maoUnbinds} {
		judge(r, &rows[i])
	}
	return rows
}

func maoRow(statement, theirs string) Row {
	return Row{Paper: "MAO", Statement: statement, Theirs: theirs, Ours: "–", Verdict: CannotTest}
}

// of are cells of MAO's machine under a policy.
func (r Result) of(policy string) (all []*Cell) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Machine == maoMachine && c.Policy == policy {
			all = append(all, c)
		}
	}
	return all
}

func missing(policy string) string {
	return fmt.Sprintf("The result has no run of %s on %s.", policy, maoMachine)
}

func maoLocalUnder(r Result, w *Row) {
	cells := r.of(arm.NUMABalancing)
	if len(cells) == 0 {
		w.Sentence = missing(arm.NUMABalancing)
		return
	}
	v := mean(cells, func(c *Cell) float64 { return c.LocalRatio })
	w.Ours = fmt.Sprintf("%.1f %%", v*100)
	w.judge(v-maoLocal <= maoNear && maoLocal-v <= maoNear, fmt.Sprintf("The mean over mixes and seeds of %s is %.1f %%: %s %.0f points of the paper's, which is of another fleet with other loads.", maoMachine, v*100, within(v-maoLocal <= maoNear && maoLocal-v <= maoNear), maoNear*100))
}

func within(yes bool) string {
	if yes {
		return "within"
	}
	return "not within"
}

// ranked is MAO's place beside NUMA balancing, on its machine.
func (r Result) ranked() (Place, bool) {
	var own []Line
	for _, l := range Compare(r, arm.MAOB, arm.NUMABalancing) {
		if l.Machine == maoMachine {
			own = append(own, l)
		}
	}
	if len(own) == 0 {
		return Place{}, false
	}
	return r.place(arm.MAOB, own), true
}

func maoLocalGain(r Result, w *Row) {
	ours, theirs := r.of(arm.MAOB), r.of(arm.NUMABalancing)
	if len(ours) == 0 || len(theirs) == 0 {
		w.Sentence = missing(arm.MAOB + " and " + arm.NUMABalancing)
		return
	}
	of := func(c *Cell) float64 { return c.LocalRatio }
	a, b := mean(ours, of), mean(theirs, of)
	w.Ours = fmt.Sprintf("%+.1f points", (a-b)*100)
	w.judge(a > b, fmt.Sprintf("%s: %.1f %% against %.1f %%, means over mixes and seeds of %s.", maoRunsBy, a*100, b*100, maoMachine))
}

func maoLatency(r Result, w *Row) {
	p, ok := r.ranked()
	w.lower(ok, p.P99, "the 99th percentile of the time of an operation", "; the paper's is the mean latency of requests")
}

func maoCPU(r Result, w *Row) {
	p, ok := r.ranked()
	w.lower(ok, p.CPUPerOp, "CPU time per operation", "")
}

// lower judges by the interval: it must be wholly below 1.
func (w *Row) lower(ok bool, e Estimate, what, but string) {
	switch {
	case !ok || e.N == 0:
		w.Sentence = missing(arm.MAOB + " and " + arm.NUMABalancing)
		return
	case !e.CI.Known():
		w.Ours = fmt.Sprintf("%+.1f %%", (e.Median-1)*100)
		w.Sentence = fmt.Sprintf("%s: %s changed by %+.1f %%, but %d seeds are too few for an interval%s.", maoRunsBy, what, (e.Median-1)*100, e.N, but)
		return
	}
	w.Ours = fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", (e.Median-1)*100, (e.CI.Low-1)*100, (e.CI.High-1)*100)
	w.judge(e.CI.High < 1, fmt.Sprintf("%s on %s, all apps and mixes: %s changed by %+.1f %%, interval %+.1f to %+.1f %%%s.", maoRunsBy, maoMachine, what, (e.Median-1)*100, (e.CI.Low-1)*100, (e.CI.High-1)*100, but))
}

func (w *Row) judge(yes bool, sentence string) {
	if w.Verdict, w.Sentence = NotConfirmed, sentence; yes {
		w.Verdict = Confirmed
	}
}

func maoUnbinds(r Result, w *Row) {
	a, b := 0, 0
	for i := range r.Cells {
		switch c := &r.Cells[i]; c.Policy {
		case arm.MAOA:
			a += c.Unbinds
		case arm.MAOB:
			b += c.Unbinds
		}
	}
	w.Ours = fmt.Sprintf("A %d, B %d", a, b)
	if a == 0 && b == 0 {
		w.Sentence = "Neither strategy unbound anything in these runs: nothing bound was short of CPU. sim/scenarios/mao-unbind.yaml is made for it."
		return
	}
	w.judge(b < a, fmt.Sprintf("Unbinds of all machines, mixes and seeds together: A %d, B %d.", a, b))
}
