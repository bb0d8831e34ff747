// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"homenode/internal/papers"
)

func arenaNames() (names []string) {
	for _, e := range papers.Experiments() {
		names = append(names, e.Name)
	}
	return names
}

func arenaExperimentOf(name string) (papers.Experiment, error) {
	for _, e := range papers.Experiments() {
		if e.Name == name {
			return e, nil
		}
	}
	return papers.Experiment{}, fmt.Errorf("--experiment: unknown experiment %q: want one of %s", name, strings.Join(arenaNames(), ", "))
}

func arenaExperimentsText() string {
	var b strings.Builder
	b.WriteString("Experiments:\n")
	for _, e := range papers.Experiments() {
		fmt.Fprintf(&b, "  %-9s %s\n", e.Name, e.About)
	}
	return b.String()
}
