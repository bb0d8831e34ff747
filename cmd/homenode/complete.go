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

// flagValues are what flags may be, for a shell's completion: a flag means the same in
// every command.
var flagValues = map[string]cli.Values{
	"arms":         cli.Fixed("as-is", "nodes", "local", "interleave"),
	"cgroup":       workloads,
	"direct-owner": owners,
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

// Where workloads and nodes are looked for, and what an agent says; tests have their own.
var (
	completeAt    = kernel.At("/")
	completeState = agent.DefaultStateDir
)

func workloads() []string {
	ids, _ := kernel.Workloads(completeAt) // some are better than none
	return ids
}

// watched are the workloads that the agent tells of, and their services; without an
// agent all workloads are.
func watched() (names []string) {
	s, err := agent.ReadStatus(completeState)
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

func parts() []string { return strings.Split(partNames(profile.Parts()), ", ") }
