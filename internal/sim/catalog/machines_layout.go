// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// layout is a machine whose nodes are alike. CPUs are numbered as Linux does: the first
// threads of all cores, then the second ones.
type layout struct {
	name string
	// order says which node has the first block of cores, the second, …; nil: by id.
	order     []int
	cores     int // per node
	threads   int // per core
	packages  int // nodes per package
	shared    int // cores per L2
	llcs      int // per node; 0: one
	l2, llc   unit.Bytes
	memory    unit.Bytes // per node
	distances [][]int
}

func (l layout) machine() machine.Machine {
	n := len(l.distances)
	m := machine.Machine{Origin: "fake:" + l.name, PageSize: unit.Some(4 * unit.KiB), Nodes: make([]machine.Node, n)}
	for block := range n {
		id := block
		if l.order != nil {
			id = l.order[block]
		}
		cpus := l.cpus(block*l.cores, l.cores)
		m.Nodes[id] = machine.Node{ID: id, CPUs: cpus, Memory: unit.Some(l.memory)}
		for k := range l.groups() {
			m.LLCs = append(m.LLCs, machine.Cache{Level: 3, CPUs: l.cpus(block*l.cores+k*l.cores/l.groups(), l.cores/l.groups()), Size: unit.Some(l.llc)})
		}
	}
	all := n * l.cores
	for core := range all {
		m.Cores = append(m.Cores, l.cpus(core, 1))
	}
	for core := 0; core < all; core += l.shared {
		m.L2s = append(m.L2s, machine.Cache{Level: 2, CPUs: l.cpus(core, l.shared), Size: unit.Some(l.l2)})
	}
	for core := 0; core < all; core += l.packages * l.cores {
		m.Packages = append(m.Packages, l.cpus(core, l.packages*l.cores))
	}
	m.CPUs = l.each(m.Nodes)
	for _, row := range l.distances {
		var known []unit.Opt[int]
		for _, d := range row {
			known = append(known, unit.Some(d))
		}
		m.Distances = append(m.Distances, known)
	}
	return m
}

func (l layout) groups() int { return max(1, l.llcs) }

// cpus are the CPUs of n cores from the first on.
func (l layout) cpus(first, n int) set.CPUSet {
	var ids []int
	all := len(l.distances) * l.cores
	for thread := range l.threads {
		for core := first; core < first+n; core++ {
			ids = append(ids, core+thread*all)
		}
	}
	return set.FromCPUs(ids...)
}

// each lists the CPUs one by one.
func (l layout) each(nodes []machine.Node) (cpus []machine.CPU) {
	all := len(l.distances) * l.cores
	for id := range all * l.threads {
		core := id % all
		node := slices.IndexFunc(nodes, func(n machine.Node) bool { return n.CPUs.Has(id) })
		cpus = append(cpus, machine.CPU{
			ID: id, Node: unit.Some(node), Package: unit.Some(core / (l.packages * l.cores)),
			LLC: unit.Some(core / (l.cores / l.groups())), Core: unit.Some(core), L2: unit.Some(core / l.shared), Online: true,
		})
	}
	return cpus
}

// symmetric is a table in which all other nodes are equally far.
func symmetric(nodes, distance int) [][]int {
	rows := make([][]int, nodes)
	for i := range rows {
		rows[i] = slices.Repeat([]int{distance}, nodes)
		rows[i][i] = machine.LocalDistance
	}
	return rows
}
