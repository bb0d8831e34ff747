// SPDX-License-Identifier: Apache-2.0

package arena

import (
	"io"
	"strconv"
	"strings"

	"homenode/internal/report"
	"homenode/internal/sim/arena"
)

// Text prints a result for a terminal.
func Text(w io.Writer, r arena.Result, o report.TextOptions) error {
	v, err := newView(r)
	if err != nil {
		return err
	}
	p := &printer{o.Terminal()}
	for _, s := range v.answer {
		p.Wrapped("", s)
	}
	if len(v.sum.Rankings) > 1 {
		p.section("ALL MACHINES")
		p.Columns(v.rankTable(v.sum.Overall))
	}
	for _, k := range v.sum.Rankings {
		title := strings.ToUpper(k.Machine)
		if text := v.machineText(k.Machine); text != "" {
			title += " (" + text + ")"
		}
		p.section(title)
		p.Columns(v.rankTable(k))
		if mixes := v.mixesOn(k.Machine); len(mixes) > 1 {
			p.Line("")
			p.Wrapped("  ", "Speed by mix, × that of "+v.Against+":")
			p.Columns(v.mixTable(k, mixes))
		}
	}
	p.rows(v.papers)
	p.list("HOW TO READ IT", v.notes)
	machines, mixes, policies := v.facts()
	p.facts("MACHINES", machines)
	p.facts("MIXES", mixes)
	p.facts("POLICIES", policies)
	p.Line("")
	p.Wrapped("", "All figures are modelled: they say how policies compare in the model, not what a real server will do.")
	return o.Print(w, &p.Terminal, "result")
}

type printer struct{ report.Terminal }

func (p *printer) section(title string) {
	p.Line("")
	p.Line(report.Clip(title, p.Width))
}

func (p *printer) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	p.section(title)
	for _, l := range lines {
		p.Wrapped("  ", l)
	}
}

func (p *printer) facts(title string, all []report.Fact) {
	if len(all) == 0 {
		return
	}
	p.section(title)
	p.Facts(all, nameWidth)
}

// rows stand one below the other: their words are too long for columns.
func (p *printer) rows(papers []paper) {
	if len(papers) == 0 {
		return
	}
	p.section("THE PAPERS BESIDE US")
	p.Wrapped("", "The papers' figures were measured on their machines; ours are modelled.")
	for _, paper := range papers {
		for _, w := range paper.Rows {
			p.Line("")
			name := report.Clip(paper.Name, nameWidth)
			if w.Section != "" {
				name += ", " + report.Clip(w.Section, nameWidth)
			}
			p.Hanging("  "+name+": ", w.Statement)
			p.Hanging("    ", "theirs "+orText(w.Theirs, "–")+"; ours "+orText(w.Ours, "–")+"; "+strings.ToUpper(string(w.Verdict)))
			p.Hanging("    ", w.Sentence)
		}
	}
}

// nameWidth is what is left of a long name.
const nameWidth = 18

func rankText(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// tableOf begins with the heads; the first keys columns are names.
func tableOf(keys int, heads ...string) report.Columns {
	return report.Columns{Keys: keys, Lines: [][]string{heads}, KeyWidth: nameWidth, CellWidth: nameWidth}
}

// rankTable has a line for each policy.
func (v view) rankTable(k arena.Ranking) report.Columns {
	t := tableOf(2, "rank", "policy", "speed", "interval", "p99", "variation", "moves", "moved", "faster", "slower", "worst", "CPU/op")
	for _, p := range k.Places {
		worst := "–"
		if p.Worst.Speed.N > 0 {
			worst = change(p.Worst.Speed.Median - 1)
		}
		faster, slower := strconv.Itoa(p.Wins), strconv.Itoa(p.Losses)
		if p.Unknown > 0 {
			faster, slower = "?", "?"
		}
		t.Lines = append(t.Lines, []string{
			rankText(p.Rank), p.Policy, shown(p.Speed, times), interval(p.Speed), shown(p.P99, times), shownOpt(p.Variation, percent),
			shown(p.Moves, counted), shown(p.MovedB, bytes), faster, slower, worst, shown(p.CPUPerOp, times),
		})
	}
	return t
}

// mixTable has the median speed under each mix.
func (v view) mixTable(k arena.Ranking, mixes []string) report.Columns {
	t := tableOf(1, append([]string{"policy"}, mixes...)...)
	for _, p := range k.Places {
		row := []string{p.Policy}
		for _, x := range mixes {
			l, ok := v.lineOf(p.Policy, k.Machine, x)
			if !ok {
				row = append(row, "–")
				continue
			}
			row = append(row, shown(l.Speed, times))
		}
		t.Lines = append(t.Lines, row)
	}
	return t
}
