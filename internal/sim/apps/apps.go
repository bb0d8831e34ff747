// SPDX-License-Identifier: Apache-2.0

package apps

import (
	"homenode/internal/policy/vmmap"
	"homenode/internal/sim"
	"homenode/internal/unit"
)

// Class is how an application behaves beside others in a cache (Xie and Loh's animals,
// as Lakew uses them). What it means by measurement: vmmap.ClassOf.
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
	// From is where its figures come from, in words.
	From string
	// Class and Sensitive are what it truly is; ok only where Truth has been run.
	Class     Class
	Sensitive bool
	// Spec is one instance of it with so many threads and so much memory; memory 0: what
	// it has by itself. What it reads and writes is at least what it has.
	Spec func(name string, threads int, memory unit.Bytes) sim.Spec
}

// All are the applications of the papers, by kind, in the order of their tables.
func All() []App {
	var all []App
	for _, r := range rows() {
		all = append(all, r.app())
	}
	return all
}

// Named finds one of All.
func Named(name string) (App, bool) {
	for _, r := range rows() {
		if r.name == name {
			return r.app(), true
		}
	}
	return App{}, false
}
