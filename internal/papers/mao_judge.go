// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"fmt"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
)

// maoPaper names the source in rows.
const maoPaper = "MAO"

// machine resembles MAO's machines. Other machines say nothing about its figures.
const machine = "dual-skylake"

// MAO's figures (facts of the paper), as shares.
const (
	paperLocal = 0.5776 // of DRAM reads, fleet, under AutoNUMA
	near       = 0.05   // closer than this counts as alike: a choice, made before the first comparison
	versus     = "MAO with strategy B against NUMA balancing"
)

// judgeMAO returns a verdict for each of MAO's statements that an arena can test, on MAO's
// machine. The size of its gains, service by service, comes from scenarios made for that
// (sim/scenarios/mao-*.yaml, see Figures): the arena's loads are not MAO's.
func judgeMAO(r arena.Result) []arena.Row {
	return arena.Judge([]arena.Statement[arena.Result]{
		{Paper: maoPaper, Text: "Under NUMA balancing alone somewhat more than half of the DRAM reads are local.", Theirs: "57.76 % (fleet)", Judge: localUnder},
		{Paper: maoPaper, Text: "Binding by MAO makes more DRAM reads local than NUMA balancing does.", Theirs: "+17.26 % (Search)", Judge: localGain},
		{Paper: maoPaper, Text: "Binding by MAO lowers latency.", Theirs: "−12.1 % (Feed), −8.6 % (Search)", Judge: latency},
		{Paper: maoPaper, Text: "Binding by MAO lowers CPU time per operation.", Theirs: "−9.8 % (Feed), −6.7 % (Search)", Judge: cpu},
		{Paper: maoPaper, Text: "Strategy B unbinds less than strategy A.", Theirs: "–", Judge: unbinds},
	}, r)
}

// maoOf returns the cells of MAO's machine under a policy.
func maoOf(r arena.Result, policy string) (all []*arena.Cell) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Machine == machine && c.Policy == policy {
			all = append(all, c)
		}
	}
	return all
}

func missing(policy string) arena.Finding {
	return arena.Untested("The result has no run of %s on %s.", policy, machine)
}

func localUnder(r arena.Result) arena.Finding {
	cells := maoOf(r, runner.NUMABalancing)
	if len(cells) == 0 {
		return missing(runner.NUMABalancing)
	}
	v := arena.Mean(cells, localRatio)
	return arena.Found(v-paperLocal <= near && paperLocal-v <= near, fmt.Sprintf("%.1f %%", v*100), fmt.Sprintf("The mean over mixes and seeds of %s is %.1f %%: %s %.0f points of the paper's, which is of another fleet with other loads.", machine, v*100, within(v-paperLocal <= near && paperLocal-v <= near), near*100))
}

func localRatio(c *arena.Cell) float64 { return c.LocalRatio }

func within(yes bool) string {
	if yes {
		return "within"
	}
	return "not within"
}

// ranked is MAO's place, compared with NUMA balancing, on its machine.
func ranked(r arena.Result) (arena.Place, bool) {
	var own []arena.Line
	for _, l := range arena.Compare(r, runner.MAOB, runner.NUMABalancing) {
		if l.Machine == machine {
			own = append(own, l)
		}
	}
	if len(own) == 0 {
		return arena.Place{}, false
	}
	return r.PlaceOf(runner.MAOB, own), true
}

func localGain(r arena.Result) arena.Finding {
	ours, theirs := maoOf(r, runner.MAOB), maoOf(r, runner.NUMABalancing)
	if len(ours) == 0 || len(theirs) == 0 {
		return missing(runner.MAOB + " and " + runner.NUMABalancing)
	}
	a, b := arena.Mean(ours, localRatio), arena.Mean(theirs, localRatio)
	return arena.Found(a > b, fmt.Sprintf("%+.1f points", (a-b)*100), fmt.Sprintf("%s: %.1f %% against %.1f %%, means over mixes and seeds of %s.", versus, a*100, b*100, machine))
}

func latency(r arena.Result) arena.Finding {
	p, ok := ranked(r)
	return lower(ok, p.P99, "the 99th percentile of the time of an operation", "; the paper's is the mean latency of requests")
}

func cpu(r arena.Result) arena.Finding {
	p, ok := ranked(r)
	return lower(ok, p.CPUPerOp, "CPU time per operation", "")
}

// lower judges by the interval: all of it must be below 1.
func lower(ok bool, e arena.Estimate, what, but string) arena.Finding {
	change := func(ratio float64) string { return fmt.Sprintf("%+.1f", (ratio-1)*100) }
	switch {
	case !ok || e.N == 0:
		return missing(runner.MAOB + " and " + runner.NUMABalancing)
	case !e.CI.Known():
		return arena.Finding{Ours: change(e.Median) + " %", Sentence: fmt.Sprintf("%s: %s changed by %s %%, but %d seeds are too few for an interval%s.", versus, what, change(e.Median), e.N, but)}
	}
	return arena.Found(e.CI.High < 1, fmt.Sprintf("%s %% (%s to %s)", change(e.Median), change(e.CI.Low), change(e.CI.High)),
		fmt.Sprintf("%s on %s, all apps and mixes: %s changed by %s %%, interval %s to %s %%%s.", versus, machine, what, change(e.Median), change(e.CI.Low), change(e.CI.High), but))
}

func unbinds(r arena.Result) arena.Finding {
	a, b := 0, 0
	for i := range r.Cells {
		switch c := &r.Cells[i]; c.Policy {
		case runner.MAOA:
			a += c.Unbinds
		case runner.MAOB:
			b += c.Unbinds
		}
	}
	ours := fmt.Sprintf("A %d, B %d", a, b)
	if a == 0 && b == 0 {
		return arena.Finding{Ours: ours, Sentence: "Neither strategy unbound anything in these runs: nothing bound was short of CPU. sim/scenarios/mao-unbind.yaml is made for it."}
	}
	return arena.Found(b < a, ours, fmt.Sprintf("Unbinds of all machines, mixes and seeds together: A %d, B %d.", a, b))
}
