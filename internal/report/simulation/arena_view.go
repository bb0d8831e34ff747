// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/runner"
)

// arenaView is what both outputs show; all of it was cleaned.
type arenaView struct {
	arena.Result
	sum    arena.Summary
	papers []paper
	answer []string // the first is the answer
	notes  []string
}

// paper is the statements of one paper, in the result's order.
type paper struct {
	Name string
	Rows []arena.Row
}

// newArenaView refuses what cannot be shown honestly.
func newArenaView(r arena.Result) (arenaView, error) {
	if err := r.Validate(); err != nil {
		return arenaView{}, fmt.Errorf("show result: %w", err)
	}
	v := arenaView{Result: render.Cleaned(r), sum: render.Cleaned(arena.Summarise(r))}
	v.Mixes = v.tried()
	for _, w := range v.Rows {
		i := slices.IndexFunc(v.papers, func(p paper) bool { return p.Name == w.Paper })
		if i < 0 {
			i = len(v.papers)
			v.papers = append(v.papers, paper{Name: w.Paper})
		}
		v.papers[i].Rows = append(v.papers[i].Rows, w)
	}
	v.answer, v.notes = v.sentences(), v.notesOf()
	return v, nil
}

// sentences are the answer, and the most important remarks.
func (v arenaView) sentences() []string {
	out := []string{"Modelled: there is nothing to show: the result has no runs."}
	if places := v.sum.Overall.Places; len(places) > 0 {
		out = append([]string{v.lead(places)}, v.others(places)...)
	} else if len(v.Rows) > 0 {
		out = []string{"Modelled: verdicts on " + render.Count(len(v.Rows), "statement") + " of papers."}
	}
	if len(v.Rows) > 0 {
		n := map[arena.Verdict]int{}
		for _, w := range v.Rows {
			n[w.Verdict]++
		}
		out = append(out, fmt.Sprintf("Of %s of papers %d confirmed, %d not confirmed, %d that cannot be tested here.", render.Count(len(v.Rows), "statement"), n[arena.Confirmed], n[arena.NotConfirmed], n[arena.CannotTest]))
	}
	return out
}

// lead names the fastest policy, and those that cannot be distinguished from it.
func (v arenaView) lead(places []arena.Place) string {
	where := "on " + render.Count(len(v.sum.Rankings), "machine") + " under " + render.Count(len(v.Mixes), "mix")
	if len(v.sum.Rankings) == 1 {
		where = "on " + v.sum.Rankings[0].Machine + " under " + render.Count(len(v.Mixes), "mix")
	}
	first := places[0]
	text := "Modelled: of " + render.Count(len(places), "policy") + " " + where + ", " + first.Policy + " was the fastest"
	if v.onlyOne(places) {
		text = "Modelled: " + first.Policy + " alone, " + where
	} else {
		text += ", " + render.Times(first.Speed.Median) + " of " + v.Against + rangeOfEstimate(first.Speed)
	}
	var ties []string
	for _, p := range places[1:] {
		if p.Rank == 1 {
			ties = append(ties, p.Policy)
		}
	}
	switch {
	case first.Rank == 0 && !v.onlyOne(places):
		text += "; there are too few seeds to tell it from others"
	case len(ties) > 0:
		text += "; " + render.List(ties) + " cannot be told from it"
	}
	return text + "."
}

func (v arenaView) onlyOne(places []arena.Place) bool { return len(places) == 1 }

func rangeOfEstimate(e arena.Estimate) string {
	if !e.CI.Known() {
		return ""
	}
	return " (" + interval(e) + ")"
}

// others are the best policy that needs no oracle, and the policies that lose somewhere.
func (v arenaView) others(places []arena.Place) (out []string) {
	if i := slices.IndexFunc(places, func(p arena.Place) bool { return !oracle(p.Policy) }); i > 0 && places[i].Policy != v.Against {
		p := places[i]
		out = append(out, "Of those that do not know what is coming, "+p.Policy+" was the fastest: "+render.Times(p.Speed.Median)+rangeOfEstimate(p.Speed)+".")
	}
	var worst []string
	for _, p := range places {
		if p.Policy != v.Against && p.Worst.Speed.N > 0 && p.Worst.Speed.Median < 1-arena.Noticeable {
			worst = append(worst, p.Policy+" "+render.Change(p.Worst.Speed.Median-1)+" ("+p.Worst.Mix+" on "+p.Worst.Machine+")")
		}
	}
	if len(worst) > 0 {
		out = append(out, "Slower than "+v.Against+" somewhere, at their worst: "+render.List(worst)+".")
	}
	return out
}

// oracle reports that a policy knows what no policy can.
func oracle(policy string) bool {
	name, _, _ := strings.Cut(policy, ":")
	return strings.HasPrefix(name, runner.Hand)
}

// notesOf explains how to read it.
func (v arenaView) notesOf() (out []string) {
	if len(v.Cells) == 0 {
		return nil
	}
	if text := v.SeedsText(); text != "" {
		out = append(out, strings.ToUpper(text[:1])+text[1:]+". Then no policy is ranked.")
	}
	return append(out,
		"Speed is operations a second against those under "+v.Against+" with the same seed, the geometric mean over applications; where requests come at a rate, operations a CPU second. More is better.",
		"p99 is the 99th percentile of the time of an operation, CPU/op CPU time of an operation, both as times those under "+v.Against+". Less is better.",
		"Variation is sigma / mean of each application's speed over the seeds that have the same workloads, then the mean over applications.",
		fmt.Sprintf("Policies share a rank where their intervals (95 %%, of the median over seeds) overlap that of the first of them. Faster and slower are lines (a machine and a mix) whose whole interval is more than %s beside 1.", render.Percent(arena.Noticeable)),
		"Moves are threads put on another node, and bindings of workloads; with the bytes they are a run's, warm-up included.",
		"What a policy itself costs to run is not simulated; what moving memory costs is.",
	)
}

// machineText describes a machine in a few words.
func (v arenaView) machineText(name string) string {
	for _, m := range v.Machines {
		if m.Name == name && m.Nodes > 0 {
			return render.Count(m.Nodes, "node") + ", " + render.Count(m.CPUs, "CPU")
		}
	}
	return ""
}

// facts describes machines, mixes and policies, and the sources of their figures.
func (v arenaView) facts() (machines, mixes, policies []render.Fact) {
	for _, m := range v.Machines {
		text := m.About
		if m.From != "" {
			text += " Figures: " + m.From + "."
		}
		machines = append(machines, render.Fact{Name: m.Name, Text: strings.TrimSpace(text)})
	}
	for _, x := range v.Mixes {
		text := x.About
		if x.LastsS > 0 {
			text += " " + render.Took(x.LastsS) + " of model time"
			if x.WarmupS > 0 {
				text += ", the first " + render.Took(x.WarmupS) + " in no figure"
			}
			if x.StepS > 0 {
				text += ", in steps of " + render.Took(x.StepS)
			}
			text += "."
		}
		mixes = append(mixes, render.Fact{Name: x.Name, Text: strings.TrimSpace(text)})
	}
	for _, p := range v.Policies {
		text := p.About
		if p.PeriodS > 0 {
			text += " Acts every " + render.Took(p.PeriodS) + "."
		}
		if p.Name == v.Against {
			text += " The others are compared with it."
		}
		policies = append(policies, render.Fact{Name: p.Name, Text: strings.TrimSpace(text)})
	}
	return machines, mixes, policies
}

// lineOf is a policy's line on a machine under a mix.
func (v arenaView) lineOf(policy, machine, mix string) (arena.Line, bool) {
	for _, l := range v.sum.Lines {
		if l.Policy == policy && l.Machine == machine && l.Mix == mix {
			return l, true
		}
	}
	return arena.Line{}, false
}

// tried are the mixes that fitted a machine of the result; the plan's other mixes are in no
// figure. A result without runs has all of them.
func (v arenaView) tried() []arena.Named {
	tried := slices.DeleteFunc(slices.Clone(v.Mixes), func(x arena.Named) bool {
		return !slices.ContainsFunc(v.sum.Lines, func(l arena.Line) bool { return l.Mix == x.Name })
	})
	if len(tried) == 0 {
		return v.Mixes
	}
	return tried
}

// mixesOn are the mixes that fit a machine, in order.
func (v arenaView) mixesOn(machine string) (all []string) {
	for _, x := range v.Mixes {
		if slices.ContainsFunc(v.sum.Lines, func(l arena.Line) bool { return l.Machine == machine && l.Mix == x.Name }) {
			all = append(all, x.Name)
		}
	}
	return all
}
