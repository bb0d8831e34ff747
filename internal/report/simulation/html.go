// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	_ "embed"
	"fmt"
	"io"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// scenario.tmpl is also well-formed XML: the test reads it as such.
//
//go:embed scenario.tmpl
var scenarioPage string

var scenarioDocument = render.NewPage(scenarioPage, render.PictureStyle+scenarioStyle, nil)

// section is one part of the page.
type section struct {
	ID, Title, Sub string
	Panels         []panel
	Tables         []render.Grid
	Folded         []render.Grid
	Names          []render.Fact // explanation of names in the tables
}

// ScenarioHTML writes one self-contained page: no scripts, nothing fetched.
func ScenarioHTML(w io.Writer, r scenario.Result) error {
	v, err := newScenarioView(r)
	if err != nil {
		return err
	}
	data := struct {
		Scenario string
		Lead     string
		Answer   []string
		Badges   []string
		Sections []section
		Notes    []string
		Facts    []render.Fact
		Modelled string
	}{render.Or(v.Scenario, unknown), v.answer[0], v.answer[1:], v.badges(), v.sections(), v.notes, v.facts, v.facts[0].Text}
	if err := scenarioDocument().Execute(w, data); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func (v scenarioView) badges() []string {
	out := []string{render.Or(v.Machine, "machine "+unknown)}
	if len(v.Arms) > 0 {
		out = append(out, render.Count(len(v.Arms), "arm"), render.Count(len(v.Arms[v.base].Runs), "seed"))
	}
	if v.Seconds > 0 {
		out = append(out, render.Took(v.Seconds)+" each")
	}
	return out
}

func (v scenarioView) sections() (out []section) {
	if len(v.Arms) == 0 {
		return nil
	}
	out = append(out, section{ID: "arms", Title: "The arms", Sub: "Bars are medians of the seeds; whiskers go from the lowest to the highest.", Panels: v.armPanels(), Tables: []render.Grid{v.arms}, Names: v.armsAbout()})
	if len(v.services) > 0 {
		out = append(out, section{ID: "services", Title: "What services gain", Sub: "All arms of a seed had the same demand: figures are compared seed by seed.", Panels: v.changePanels(), Tables: v.ratioTables(), Folded: []render.Grid{v.absoluteTable()}})
	}
	if panels := v.timePanels(); len(panels) > 0 {
		out = append(out, section{ID: "time", Title: "Over time", Sub: "Lines are medians of the seeds; bands go from the lowest to the highest. Arms that are alike cover each other.", Panels: panels})
	}
	s := section{ID: "spread", Title: "When it pays, and for which workloads"}
	for _, make := range []func() (panel, bool){v.gainPanel, v.spreadPanel} {
		if p, ok := make(); ok {
			s.Panels = append(s.Panels, p)
		}
	}
	if t, ok := v.gainTable(); ok {
		s.Tables = append(s.Tables, t)
	}
	if len(s.Panels) > 0 {
		out = append(out, s)
	}
	if len(v.claims) > 0 {
		out = append(out, section{ID: "paper", Title: "The paper's figures beside ours", Sub: "The paper's were measured on its machines; ours are modelled.", Tables: []render.Grid{v.claimTable()}})
	}
	return out
}

// ratioTables are the services' tables, with a caption that explains ×.
func (v scenarioView) ratioTables() []render.Grid {
	var out []render.Grid
	for _, t := range v.tables {
		t.Caption += ": figures of " + v.Arms[v.base].Name + ", of the others × that"
		out = append(out, t)
	}
	return out
}
