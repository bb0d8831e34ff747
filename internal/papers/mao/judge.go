// SPDX-License-Identifier: Apache-2.0

package mao

import (
	"fmt"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/arm"
)

// Paper names the source in rows.
const Paper = "MAO"

// machine is what MAO's machines are like: others say nothing of its figures.
const machine = "dual-skylake"

// MAO's figures (facts of the paper), as shares.
const (
	paperLocal = 0.5776 // of DRAM reads, fleet, under AutoNUMA
	near       = 0.05   // that near is alike: a choice, made before the first comparison
	versus     = "MAO with strategy B against NUMA balancing"
)

// Judge is what became of MAO's statements that an arena can test, on MAO's machine. How
// large its gains are, service by service, is for scenarios made for it
// (sim/scenarios/mao-*.yaml, see Figures): the loads here are others'.
func Judge(r arena.Result) []arena.Row {
	rows := []arena.Row{
		row("Under NUMA balancing alone somewhat more than half of the DRAM reads are local.", "57.76 % (fleet)"),
		row("Binding by MAO makes more DRAM reads local than NUMA balancing does.", "+17.26 % (Search)"),
		row("Binding by MAO lowers latency.", "−12.1 % (Feed), −8.6 % (Search)"),
		row("Binding by MAO lowers CPU time per operation.", "−9.8 % (Feed), −6.7 % (Search)"),
		row("Strategy B unbinds less than strategy A.", "–"),
	}
	for i, judge := range []func(arena.Result, *arena.Row){localUnder, localGain, latency, cpu, unbinds} {
		judge(r, &rows[i])
	}
	return rows
}

func row(statement, theirs string) arena.Row {
	return arena.Row{Paper: Paper, Statement: statement, Theirs: theirs, Ours: "–", Verdict: arena.CannotTest}
}

// of are cells of MAO's machine under a policy.
func of(r arena.Result, policy string) (all []*arena.Cell) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Machine == machine && c.Policy == policy {
			all = append(all, c)
		}
	}
	return all
}

func missing(policy string) string {
	return fmt.Sprintf("The result has no run of %s on %s.", policy, machine)
}

func localUnder(r arena.Result, w *arena.Row) {
	cells := of(r, arm.NUMABalancing)
	if len(cells) == 0 {
		w.Sentence = missing(arm.NUMABalancing)
		return
	}
	v := arena.Mean(cells, localRatio)
	w.Ours = fmt.Sprintf("%.1f %%", v*100)
	w.Judge(v-paperLocal <= near && paperLocal-v <= near, fmt.Sprintf("The mean over mixes and seeds of %s is %.1f %%: %s %.0f points of the paper's, which is of another fleet with other loads.", machine, v*100, within(v-paperLocal <= near && paperLocal-v <= near), near*100))
}

func localRatio(c *arena.Cell) float64 { return c.LocalRatio }

func within(yes bool) string {
	if yes {
		return "within"
	}
	return "not within"
}

// ranked is MAO's place beside NUMA balancing, on its machine.
func ranked(r arena.Result) (arena.Place, bool) {
	var own []arena.Line
	for _, l := range arena.Compare(r, arm.MAOB, arm.NUMABalancing) {
		if l.Machine == machine {
			own = append(own, l)
		}
	}
	if len(own) == 0 {
		return arena.Place{}, false
	}
	return r.PlaceOf(arm.MAOB, own), true
}

func localGain(r arena.Result, w *arena.Row) {
	ours, theirs := of(r, arm.MAOB), of(r, arm.NUMABalancing)
	if len(ours) == 0 || len(theirs) == 0 {
		w.Sentence = missing(arm.MAOB + " and " + arm.NUMABalancing)
		return
	}
	a, b := arena.Mean(ours, localRatio), arena.Mean(theirs, localRatio)
	w.Ours = fmt.Sprintf("%+.1f points", (a-b)*100)
	w.Judge(a > b, fmt.Sprintf("%s: %.1f %% against %.1f %%, means over mixes and seeds of %s.", versus, a*100, b*100, machine))
}

func latency(r arena.Result, w *arena.Row) {
	p, ok := ranked(r)
	lower(w, ok, p.P99, "the 99th percentile of the time of an operation", "; the paper's is the mean latency of requests")
}

func cpu(r arena.Result, w *arena.Row) {
	p, ok := ranked(r)
	lower(w, ok, p.CPUPerOp, "CPU time per operation", "")
}

// lower judges by the interval: it must be wholly below 1.
func lower(w *arena.Row, ok bool, e arena.Estimate, what, but string) {
	switch {
	case !ok || e.N == 0:
		w.Sentence = missing(arm.MAOB + " and " + arm.NUMABalancing)
		return
	case !e.CI.Known():
		w.Ours = fmt.Sprintf("%+.1f %%", (e.Median-1)*100)
		w.Sentence = fmt.Sprintf("%s: %s changed by %+.1f %%, but %d seeds are too few for an interval%s.", versus, what, (e.Median-1)*100, e.N, but)
		return
	}
	w.Ours = fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", (e.Median-1)*100, (e.CI.Low-1)*100, (e.CI.High-1)*100)
	w.Judge(e.CI.High < 1, fmt.Sprintf("%s on %s, all apps and mixes: %s changed by %+.1f %%, interval %+.1f to %+.1f %%%s.", versus, machine, what, (e.Median-1)*100, (e.CI.Low-1)*100, (e.CI.High-1)*100, but))
}

func unbinds(r arena.Result, w *arena.Row) {
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
	w.Judge(b < a, fmt.Sprintf("Unbinds of all machines, mixes and seeds together: A %d, B %d.", a, b))
}
