// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/machine"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/sim/catalog"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// A workload wider than a node, on machines that are not uniform: MAO's node set is as
// small as any that has the CPUs and the memory, and no set of that size is closer
// together. The brute-force twin tries every subset. Other workloads hold CPUs of some
// nodes, and memory of others.
func TestWideBindingsAreAdjacent(t *testing.T) {
	for _, name := range []string{catalog.Opteron, catalog.Kunpeng} {
		b, _ := catalog.MachineNamed(name)
		m, _ := b.Make()
		sizes := map[int]int{}
		refused := 0
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 21))
			w, need, left := wide(r, m)
			_, actions, reasons := mao.Step(m, mao.DefaultConfig(), mao.State{}, w)
			got := set.NodeSet{}
			if len(actions) == 1 && actions[0].Kind == action.Bind {
				got = actions[0].Nodes
			}
			size, least := twinSet(m, w, need, left)
			switch {
			case got.IsEmpty() && size == 0:
				refused++
			case got.Len() != size || inside(m, got) != least:
				t.Fatalf("%s, seed %d: nodes %v, distance %d inside; the twin has %d nodes, %d: %v", name, seed, got, inside(m, got), size, least, reasons)
			}
			sizes[got.Len()]++
		}
		if sizes[2] < 20 || sizes[3] < 20 || refused < 3 {
			t.Errorf("%s: %v sizes, %d refused: too little was compared", name, sizes, refused)
		}
		t.Logf("%s: by size %v, %d refused", name, sizes, refused)
	}
}

// wide is a window in which /w wants need CPUs and 1 GiB, and what is left by node.
func wide(r *rand.Rand, m machine.Machine) (w window.Window, need float64, left []float64) {
	w = window.Window{Schema: window.Schema, Seq: 1, Length: 10 * time.Second}
	n := len(m.Nodes)
	per := float64(m.Nodes[0].CPUs.Len())
	need = per * (1.05 + 0.65*float64(n)*r.Float64())
	wl := window.Workload{ID: "/w", Approved: true, CPU: unit.Measured(need, "test"), LocalLoads: unit.Measured(uint64(1e6), "test"), RemoteLoads: unit.Measured(uint64(1e8), "test")}
	for i, node := range m.Nodes {
		taken := 0.0
		if r.IntN(2) == 0 {
			taken = per * r.Float64()
		}
		free := node.Memory.Or(0)
		if r.IntN(6) == 0 {
			free = node.Memory.Or(0) / 20 // the part that must stay free
		}
		w.Nodes = append(w.Nodes, window.Node{
			ID: node.ID, CPUs: node.CPUs, CPUBusy: unit.Measured(taken, "test"), Memory: unit.Measured(node.Memory.Or(0), "test"),
			Free: unit.Measured(free, "test"), File: unit.Measured(unit.Bytes(0), "test"),
		})
		left = append(left, float64(node.CPUs.Len())-taken)
		wl.CPUByNode = append(wl.CPUByNode, unit.Measured(need/float64(n), "test"))
		wl.AnonByNode = append(wl.AnonByNode, unit.Measured(unit.Bytes(0), "test"))
		wl.FileByNode = append(wl.FileByNode, unit.Measured(unit.Bytes(0), "test"))
		other := window.Workload{ID: fmt.Sprintf("/other-%02d", i), CPU: unit.Measured(taken, "test"), Binding: window.Binding{PinnedCPUs: true}}
		for k := range m.Nodes {
			cpu := 0.0
			if k == i {
				cpu = taken
			}
			other.CPUByNode = append(other.CPUByNode, unit.Measured(cpu, "test"))
			other.AnonByNode = append(other.AnonByNode, unit.Measured(unit.Bytes(0), "test"))
			other.FileByNode = append(other.FileByNode, unit.Measured(unit.Bytes(0), "test"))
		}
		w.Workloads = append(w.Workloads, other)
	}
	wl.AnonByNode[r.IntN(n)] = unit.Measured(unit.GiB, "test")
	w.Workloads = append(w.Workloads, wl)
	return w, need, left
}

// twinSet is the size of the smallest sets that fit, and the least distance inside one of
// them; 0 where only all nodes together fit.
func twinSet(m machine.Machine, w window.Window, need float64, left []float64) (size, least int) {
	wl := w.Workloads[len(w.Workloads)-1]
	for mask := 1; mask < 1<<len(m.Nodes)-1; mask++ {
		var nodes set.NodeSet
		cpus, memory := 0.0, 0.0
		for i, n := range w.Nodes {
			if mask&(1<<i) != 0 {
				nodes = nodes.With(n.ID)
				cpus += left[i]
				memory += max(0, float64(n.Free.Or(0)+wl.AnonByNode[i].Or(0))-0.05*float64(n.Memory.Or(0)))
			}
		}
		if cpus < need || memory < float64(unit.GiB)*(1-1e-6) || size > 0 && nodes.Len() > size {
			continue
		}
		if d := inside(m, nodes); size == 0 || nodes.Len() < size || d < least {
			size, least = nodes.Len(), d
		}
	}
	return size, least
}

// inside is the sum of the distances between different nodes of a set, both ways.
func inside(m machine.Machine, nodes set.NodeSet) (sum int) {
	for a := range nodes.All() {
		for b := range nodes.All() {
			if a != b {
				sum += m.Distance(a, b).Or(0)
			}
		}
	}
	return sum
}
