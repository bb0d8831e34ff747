// SPDX-License-Identifier: Apache-2.0

package papers

import (
	"slices"

	"homenode/internal/papers/lakew"
	"homenode/internal/papers/rao"
	"homenode/internal/sim/arena"
	"homenode/internal/sim/scenario"
)

// Experiment is a plan that comes with homenode, and the function that judges papers by its
// result.
type Experiment struct {
	Name, About string
	Plan        func() arena.Plan
	Judge       func(arena.Result) []arena.Row // nil: nothing
}

// Experiments lists all experiments, in the order in which they are shown.
func Experiments() []Experiment {
	return []Experiment{
		{"quick", "a small machine under three mixes, about a minute", arena.Quick, judgeMAO},
		{"all", "all policies on machines of 2 to 36 nodes under all mixes, half an hour on two CPUs", arena.Standard, judgeStandard},
		{"rao", "Rao et al.'s experiments, and what became of each statement", func() arena.Plan { return rao.Plan(true) }, rao.Judge},
		{"rao-large", "the same with 256 threads, in part", rao.Large, nil},
		{"lakew", "Lakew et al.'s experiments, and what became of each statement", func() arena.Plan { return lakew.Plan(true) }, lakew.Judge},
	}
}

// judgeStandard returns MAO's statements and the targets of the standard arena.
func judgeStandard(r arena.Result) []arena.Row { return append(judgeMAO(r), Targets(r)...) }

// Statements makes one table of all papers' statements. The results say what was measured.
// A paper without statements in any arena's result is judged without runs: some of its
// statements need none, and the others cannot be tested.
func Statements(arenas []arena.Result, scenarios []scenario.Result) []arena.Row {
	var given []arena.Row
	for _, r := range arenas {
		given = append(given, r.Rows...)
	}
	var all []arena.Row
	for _, p := range []struct {
		name, section string
		judge         func(arena.Result) []arena.Row
	}{{maoPaper, "", judgeMAO}, {rao.Paper, "slides", rao.Judge}, {lakew.Paper, "", lakew.Judge}, {arena.ToReach, "", judgeStandard}} {
		rows := of(p.name, given)
		if len(rows) == 0 {
			rows = of(p.name, p.judge(arena.Result{}))
		}
		for _, w := range rows {
			w.Section = p.section
			all = append(all, w)
		}
		if p.name == maoPaper {
			all = append(all, maoFigures(scenarios)...)
		}
	}
	return all
}

// of returns the rows of one paper.
func of(paper string, rows []arena.Row) []arena.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(w arena.Row) bool { return w.Paper != paper })
}
