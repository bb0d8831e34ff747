// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/unit"
)

// Class is how an application behaves beside others in a cache (Xie and Loh's animals, as
// Lakew uses them). vmmap.ClassOf defines it by measurement.
type Class = vmmap.Class

// The classes.
const (
	Sheep  = vmmap.Sheep
	Rabbit = vmmap.Rabbit
	Devil  = vmmap.Devil
)

// App is an application of any size.
type App struct {
	Name, About string
	// From is the source of its figures, in words.
	From string
	// Class and Sensitive are its true class and sensitivity; ok only after Truth has run.
	Class     Class
	Sensitive bool
	// Spec is one instance of it with this many threads and this much memory; memory 0: its
	// default. It holds at least what it reads and writes.
	Spec func(name string, threads int, memory unit.Bytes) sim.Spec
}

// Apps are the applications of the papers, by kind, in the order of the papers' tables.
func Apps() []App {
	var all []App
	for _, r := range rows() {
		all = append(all, r.app())
	}
	return all
}

// AppNamed finds one of Apps.
func AppNamed(name string) (App, bool) {
	for _, r := range rows() {
		if r.name == name {
			return r.app(), true
		}
	}
	return App{}, false
}
