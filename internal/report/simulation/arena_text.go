// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"io"
	"strconv"
	"strings"

	"homenode/internal/render"
	"homenode/internal/sim/arena"
)

// Arena prints a result for a terminal.
func Arena(w io.Writer, r arena.Result, o render.TextOptions) error {
	v, err := newArenaView(r)
	if err != nil {
		return err
	}
	p := &arenaPrinter{o.Terminal()}
	for _, s := range v.answer {
		p.Wrapped("", s)
	}
	if len(v.sum.Rankings) > 1 {
		p.Section("ALL MACHINES")
		p.Table(v.rankTable(v.sum.Overall))
	}
	for _, k := range v.sum.Rankings {
		title := strings.ToUpper(k.Machine)
		if text := v.machineText(k.Machine); text != "" {
			title += " (" + text + ")"
		}
		p.Section(title)
		p.Table(v.rankTable(k))
		if mixes := v.mixesOn(k.Machine); len(mixes) > 1 {
			p.Line("")
			p.Wrapped("  ", "Speed by mix, × that of "+v.Against+":")
			p.Table(v.mixTable(k, mixes))
		}
	}
	p.rows(v.papers)
	p.List("HOW TO READ IT", v.notes)
	machines, mixes, policies := v.facts()
	p.facts("MACHINES", machines)
	p.facts("MIXES", mixes)
	p.facts("POLICIES", policies)
	p.Line("")
	p.Wrapped("", "All figures are modelled: they say how policies compare in the model, not what a real server will do.")
	return p.Flush(w, "result")
}

type arenaPrinter struct{ render.Terminal }

func (p *arenaPrinter) facts(title string, all []render.Fact) {
	if len(all) == 0 {
		return
	}
	p.Section(title)
	p.Facts(all, nameWidth)
}

// rows are printed one below the other: their texts are too long for columns.
func (p *arenaPrinter) rows(papers []paper) {
	if len(papers) == 0 {
		return
	}
	p.Section("THE PAPERS BESIDE US")
	p.Wrapped("", "The papers' figures were measured on their machines; ours are modelled.")
	for _, paper := range papers {
		for _, w := range paper.Rows {
			p.Line("")
			name := render.Clip(paper.Name, nameWidth)
			if w.Section != "" {
				name += ", " + render.Clip(w.Section, nameWidth)
			}
			p.Hanging("  "+name+": ", w.Statement)
			p.Hanging("    ", "theirs "+render.Or(w.Theirs, "–")+"; ours "+render.Or(w.Ours, "–")+"; "+strings.ToUpper(string(w.Verdict)))
			p.Hanging("    ", w.Sentence)
		}
	}
}

// nameWidth is the length to which a long name is cut.
const nameWidth = 18

func rankText(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// tableOf starts with the heads; the first keys columns are names.
func tableOf(keys int, heads ...string) render.Table {
	return render.TableOf(keys, nameWidth, nameWidth, heads...)
}

// rankTable has a line for each policy.
func (v arenaView) rankTable(k arena.Ranking) render.Table {
	t := tableOf(2, "rank", "policy", "speed", "interval", "p99", "variation", "moves", "moved", "faster", "slower", "worst", "CPU/op")
	for _, p := range k.Places {
		worst := "–"
		if p.Worst.Speed.N > 0 {
			worst = render.Change(p.Worst.Speed.Median - 1)
		}
		faster, slower := strconv.Itoa(p.Wins), strconv.Itoa(p.Losses)
		if p.Unknown > 0 {
			faster, slower = "?", "?"
		}
		t.Add(
			rankText(p.Rank), p.Policy, shown(p.Speed, render.Times), interval(p.Speed), shown(p.P99, render.Times), render.Show(p.Variation, render.Percent),
			shown(p.Moves, render.Whole), shown(p.MovedB, render.Bytes), faster, slower, worst, shown(p.CPUPerOp, render.Times),
		)
	}
	return t
}

// mixTable has the median speed under each mix.
func (v arenaView) mixTable(k arena.Ranking, mixes []string) render.Table {
	t := tableOf(1, append([]string{"policy"}, mixes...)...)
	for _, p := range k.Places {
		row := []string{p.Policy}
		for _, x := range mixes {
			l, ok := v.lineOf(p.Policy, k.Machine, x)
			if !ok {
				row = append(row, "–")
				continue
			}
			row = append(row, shown(l.Speed, render.Times))
		}
		t.Add(row...)
	}
	return t
}
