// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"homenode/internal/sim/arena"
	"homenode/internal/sim/arena/lakew"
	"homenode/internal/sim/arena/rao"
)

// arenaExperiment is a plan that comes with homenode, and what it says of papers.
type arenaExperiment struct {
	name, about string
	plan        func() arena.Plan
	judge       func(arena.Result) []arena.Row // nil: nothing
}

func arenaExperiments() []arenaExperiment {
	return []arenaExperiment{
		{"quick", "a small machine under three mixes, about a minute", arena.Quick, arena.MAORows},
		{"all", "all policies on machines of 2 to 36 nodes under all mixes, half an hour on two CPUs", arena.Standard, judgeStandard},
		{"rao", "Rao et al.'s experiments, and what became of each statement", func() arena.Plan { return rao.Plan(true) }, rao.Judge},
		{"rao-large", "the same with 256 threads, in part", rao.Large, nil},
		{"lakew", "Lakew et al.'s experiments, and what became of each statement", func() arena.Plan { return lakew.Plan(true) }, lakew.Judge},
	}
}

// judgeStandard is MAO's statements, and what was to be reached.
func judgeStandard(r arena.Result) []arena.Row {
	return append(arena.MAORows(r), arena.TargetRows(r)...)
}

func arenaNames() (names []string) {
	for _, e := range arenaExperiments() {
		names = append(names, e.name)
	}
	return names
}

func arenaExperimentOf(name string) (arenaExperiment, error) {
	for _, e := range arenaExperiments() {
		if e.name == name {
			return e, nil
		}
	}
	return arenaExperiment{}, fmt.Errorf("--experiment: there is no %q: want one of %s", name, strings.Join(arenaNames(), ", "))
}

func arenaExperimentsText() string {
	var b strings.Builder
	b.WriteString("Experiments:\n")
	for _, e := range arenaExperiments() {
		fmt.Fprintf(&b, "  %-9s %s\n", e.name, e.about)
	}
	return b.String()
}
