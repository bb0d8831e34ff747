// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strconv"
	"strings"

	"homenode/internal/agent"
	"homenode/internal/cli"
	"homenode/internal/kernel"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/profile"
	"homenode/lab/shapes"
)

// flagValues are the values of flags for a shell's completion. A flag means the same
// in every command.
var flagValues = map[string]cli.Values{
	"arms":         cli.Fixed("as-is", "nodes", "local", "interleave"),
	"cgroup":       workloads,
	"direct-owner": owners,
	"fail-on":      cli.Fixed("critical", "serious", "moderate", "minor", "unweighed"),
	"from":         nodes,
	"hint-faults":  cli.Fixed("auto", "always", "off"),
	"mode":         cli.Fixed(string(migration.Live), string(migration.Freeze), string(migration.Hot)),
	"nodes":        nodes,
	"only":         parts,
	"policy":       policies,
	"shape":        shapes.Names,
	"skip":         parts,
	"to":           nodes,
	"workload":     workloads,
}

// The sources of workloads, nodes and the agent's status; tests replace them.
var (
	completeAt    = kernel.At("/")
	completeState = agent.DefaultStateDir
)

func workloads() []string {
	ids, _ := kernel.Workloads(completeAt) // a part of the list is better than nothing
	return ids
}

// watched are the workloads of the agent's status, and their services. Without an
// agent they are all workloads.
func watched() (names []string) {
	s, err := agent.FindStatus(completeState)
	if err != nil {
		return workloads()
	}
	for _, w := range s.Workloads {
		names = append(names, w.ID)
		if w.Service != "" && !slices.Contains(names, w.Service) {
			names = append(names, w.Service)
		}
	}
	return names
}

func policies() (names []string) {
	for _, p := range unix.MemPolicies() {
		names = append(names, string(p))
	}
	return names
}

func nodes() (ids []string) {
	m, _ := kernel.ReadMachine(completeAt)
	for _, n := range m.Nodes {
		ids = append(ids, strconv.Itoa(n.ID))
	}
	return ids
}

func parts() []string { return strings.Split(profile.Names(profile.Parts()), ", ") }
