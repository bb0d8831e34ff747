// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"io"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// Scenario prints a result for a terminal.
func Scenario(w io.Writer, r scenario.Result, o render.TextOptions) error {
	v, err := newScenarioView(r)
	if err != nil {
		return err
	}
	p := &scenarioPrinter{o.Terminal()}
	for _, s := range v.answer {
		p.Wrapped("", s)
	}
	if len(v.Arms) > 0 {
		p.section("ARMS", "Median of the seeds; lowest–highest below, where they differ. * is the largest share of local reads.")
		p.Facts(v.armsAbout(), keyWidth)
		p.Line("")
		p.Table(v.arms.Table(keyWidth, cellWidth))
	}
	if len(v.tables) > 0 {
		p.section("SERVICES", "Of "+v.Arms[v.base].Name+" the figures; of the others × that, seed by seed: median, and lowest–highest below, where they differ. * is the best median.")
	}
	for _, t := range v.tables {
		p.Line("")
		p.Wrapped("  ", t.Caption)
		p.Table(t.Table(keyWidth, cellWidth))
	}
	p.claims(v.claims)
	p.List("NOT TO BE COMPARED, AND HOW TO READ IT", v.notes)
	p.section("HOW", "")
	p.Facts(v.facts, keyWidth)
	return p.Flush(w, "result")
}

type scenarioPrinter struct{ render.Terminal }

func (p *scenarioPrinter) section(title, sub string) {
	p.Line("")
	p.Line(title)
	if sub != "" {
		p.Wrapped("", sub)
	}
}

// claims are printed one below the other: their texts are too long for columns.
func (p *scenarioPrinter) claims(all []claimed) {
	if len(all) == 0 {
		return
	}
	p.section("THE PAPER'S FIGURES BESIDE OURS", "Changes against the arm that is named; of an arm alone, its own figure. The paper's were measured on its machines, ours are modelled.")
	for _, c := range all {
		p.Wrapped("  ", render.Or(c.Figure, unknown)+": "+c.what())
		p.Hanging("    ", c.beside())
		if c.Note != "" {
			p.Hanging("    note: ", c.Note)
		}
	}
}

// beside says "paper −12.1%, ours −9.7% (−11.2% to −8.1%): less, the same way"; without a
// figure of the paper there is nothing to judge.
func (c claimed) beside() string {
	paper, ours := c.paper(), c.ours()
	if !c.Value.Known() {
		paper = ": " + paper
	} else {
		paper = " " + paper
	}
	text := "paper" + paper + ", ours " + ours.Text
	if ours.Small != "" {
		text += " (" + ours.Small + ")"
	}
	if why := render.Or(c.Why, c.verdict()); why != "" {
		text += ": " + why
	}
	return text
}

// keyWidth and cellWidth are the lengths to which long names are cut: a key and a cell fit
// the narrowest terminal.
const (
	keyWidth  = 24
	cellWidth = 21
)
