// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// memoryTolerance is the part by which a node's memory may differ on the same machine:
// kernels reserve differently, from version to version and boot to boot.
const memoryTolerance = 0.01

// FingerprintOf distinguishes this machine from others. A node whose memory is not
// known has 0.
func FingerprintOf(m machine.Machine, cpuModel string) Fingerprint {
	f := Fingerprint{CPUModel: cpuModel, CPUs: m.OnlineCPUs().Len()}
	for _, from := range m.Nodes {
		f.Nodes = append(f.Nodes, from.ID)
		f.NodeCPUs = append(f.NodeCPUs, from.CPUs)
		f.Memory = append(f.Memory, from.Memory.Or(0))
		row := make([]unit.Opt[int], 0, len(m.Nodes))
		for _, to := range m.Nodes {
			row = append(row, m.Distance(from.ID, to.ID))
		}
		f.Distances = append(f.Distances, row)
	}
	return f
}

// Differs names the first difference from this machine, other, as one clause about f's:
// "it has 4 nodes, this machine has 2". "" is the same machine. A value that either
// does not know is no difference.
func (f Fingerprint) Differs(other Fingerprint) string {
	switch {
	case len(f.Nodes) != len(other.Nodes):
		return fmt.Sprintf("it has %s, this machine has %d", render.Count(len(f.Nodes), "node"), len(other.Nodes))
	case !slices.Equal(f.Nodes, other.Nodes):
		return fmt.Sprintf("its nodes are %v, this machine's %v", nodeSet(f.Nodes), nodeSet(other.Nodes))
	case f.CPUModel != other.CPUModel && f.CPUModel != "" && other.CPUModel != "":
		return fmt.Sprintf("its CPUs are %q, this machine's %q", f.CPUModel, other.CPUModel)
	case f.CPUs != other.CPUs:
		return fmt.Sprintf("it has %s online, this machine has %d", render.Count(f.CPUs, "CPU"), other.CPUs)
	}
	for i, id := range f.Nodes {
		if why := f.nodeDiffers(other, i, id); why != "" {
			return why
		}
	}
	return ""
}

func (f Fingerprint) nodeDiffers(other Fingerprint, i, id int) string {
	if a, b := at(f.NodeCPUs, i), at(other.NodeCPUs, i); !a.Equal(b) {
		return fmt.Sprintf("its node %d has CPUs %s, this machine's %s", id, orNone(a), orNone(b))
	}
	if a, b := at(f.Memory, i), at(other.Memory, i); a > 0 != (b > 0) || math.Abs(float64(a-b)) > memoryTolerance*float64(max(a, b)) {
		return fmt.Sprintf("its node %d has %v of memory, this machine's %v", id, a, b)
	}
	for j, to := range f.Nodes {
		a, ok1 := at(at(f.Distances, i), j).Get()
		b, ok2 := at(at(other.Distances, i), j).Get()
		if ok1 && ok2 && a != b {
			return fmt.Sprintf("its distance from node %d to node %d is %d, this machine's %d", id, to, a, b)
		}
	}
	return ""
}

// Only names what was used if that is not the whole machine: "CPUs 0-1 of 4 and nodes 0
// of 2 only"; "" is all of it.
func (p Profile) Only() string {
	var some []string
	if n := p.UsedCPUs.Len(); n > 0 && n < p.Machine.CPUs {
		some = append(some, fmt.Sprintf("CPUs %s of %d", p.UsedCPUs, p.Machine.CPUs))
	}
	if n := p.UsedNodes.Len(); n > 0 && n < len(p.Machine.Nodes) {
		some = append(some, fmt.Sprintf("nodes %s of %d", p.UsedNodes, len(p.Machine.Nodes)))
	}
	if len(some) == 0 {
		return ""
	}
	return strings.Join(some, " and ") + " only"
}

// at is element i, or the zero value without one.
func at[T any](s []T, i int) T {
	if i < len(s) {
		return s[i]
	}
	var zero T
	return zero
}

func orNone(s set.CPUSet) string {
	if s.IsEmpty() {
		return "none"
	}
	return s.String()
}

// nodeSet prints a list; ids that no set can hold are left out.
func nodeSet(ids []int) set.NodeSet {
	var s set.NodeSet
	for _, id := range ids {
		if id >= 0 && id <= set.MaxNode {
			s = s.With(id)
		}
	}
	return s
}
