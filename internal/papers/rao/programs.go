// SPDX-License-Identifier: Apache-2.0

package rao

import (
	"homenode/internal/set"
	"homenode/internal/sim"
	"homenode/internal/sim/catalog"
)

// The programs, by name (sim/catalog): NAS's parallel programs, whose threads spin at
// barriers; SPEC's programs of one thread; and programs of both suites that compute and
// hardly use memory.
var (
	parallel    = []string{"lu", "sp", "bt", "cg", "mg", "ft", "ua"}
	single      = []string{"mcf", "lbm", "milc", "soplex", "omnetpp", "libquantum", "gobmk", "sjeng"}
	insensitive = []string{"ep", "gamess", "povray"}
)

// specOf describes a program with that many threads. All threads are candidates: in Rao's
// experiments each vCPU was tagged. Memory is first touched where threads start; or all of
// it was placed before, as a VM's memory is where the hypervisor allocated it.
func specOf(program, name string, threads int, touch set.NodeSet) sim.Spec {
	app, ok := catalog.AppNamed(program)
	if !ok {
		panic("no application " + program) // the lists are above, and a test asks for all
	}
	yes := true
	s := app.Spec(name, threads, 0)
	s.Sensitive, s.Start.Touch = &yes, touch
	return s
}
