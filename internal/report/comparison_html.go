// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"html/template"
	"io"
	"strconv"

	"homenode/internal/experiment"
	"homenode/internal/render"
)

// comparison.tmpl is well-formed XML too: the test reads it as such.
//
//go:embed comparison.tmpl
var pageText string

var document = render.NewPage(pageText, "", template.FuncMap{
	"got": got, "verdict": metOrNot, "unknown": render.OrUnknown, "figure": figure, "each": eachFigure,
})

// ComparisonHTML writes one self-contained page: no scripts, nothing fetched.
func ComparisonHTML(w io.Writer, c experiment.Comparison) error {
	return document().Execute(w, newView(cleanComparison(c)))
}

// view is the data for the page's template; all of it is computed before.
type view struct {
	Comparison     experiment.Comparison
	Lead           string
	Sentences      []string
	Met, Targets   int
	Local          render.Panel
	Relative       []panel
	First          string
	Cycles         []panel
	Arms, Services grid
	Long           *grid // nil: none is stored
	Legend, Notes  []string
	Facts          []render.Fact
	Repeats        []repeatsRow
	Movers         []experiment.Arm
}

// panel is a service's chart, or says that there is none.
type panel struct {
	Service experiment.Service
	Chart   render.Panel
	OK      bool
}

// repeatsRow is the spread of one figure in one arm.
type repeatsRow struct {
	Arm, Figure string
	Spread      experiment.Summary
}

func newView(c experiment.Comparison) view {
	sentences := comparisonHeadline(c)
	v := view{
		Comparison: c, Lead: sentences[0], Sentences: sentences[1:], Targets: len(c.Targets), Local: localChart(c),
		Arms: armGrid(c), Services: serviceGrid(c), Legend: legend(c, "★"), Notes: comparisonNotes(c), Facts: facts(c),
		Repeats: repeatRows(c),
	}
	if l, ok := longer(c); ok {
		g := longGrid(l)
		v.Long = &g
	}
	for _, t := range c.Targets {
		if t.Met {
			v.Met++
		}
	}
	top := relativeTop(c)
	for i, s := range services(c) {
		relative, ok := relativeChart(c, s, "relative"+strconv.Itoa(i), top)
		v.Relative = append(v.Relative, panel{s, relative, ok})
		cycles, ok := cyclesChart(c, s, "cycles"+strconv.Itoa(i))
		v.Cycles = append(v.Cycles, panel{s, cycles, ok})
	}
	for i, a := range c.Arms {
		if i == 0 {
			v.First = a.Title
		}
		if len(a.Detail) > 0 {
			v.Movers = append(v.Movers, a)
		}
	}
	return v
}

// repeatRows has the repeats of every figure that has a spread, also of arms that are
// not applicable: their results are on record, but not compared.
func repeatRows(c experiment.Comparison) []repeatsRow {
	var out []repeatsRow
	for _, a := range c.Arms {
		title := a.Title
		if !a.Applicable {
			title += " (" + notApplicable + ")"
		}
		if a.LocalSpread.N > 0 {
			out = append(out, repeatsRow{title, "local access ratio", a.LocalSpread})
		}
		for _, s := range a.Services {
			if s.Spread.N > 0 {
				out = append(out, repeatsRow{title, s.Name + ": ops per model-s", s.Spread})
			}
		}
	}
	return out
}

// eachFigure prints the repeats in the order they were given.
func eachFigure(values []float64) string {
	text := ""
	for i, v := range values {
		if i > 0 {
			text += " · "
		}
		text += figure(v)
	}
	return text
}
