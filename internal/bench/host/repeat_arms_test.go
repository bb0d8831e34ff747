// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"strings"
	"testing"

	"homenode/internal/kernel/launch"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// Eight nodes, one without CPUs, with two distances.
func TestRepeatArms(t *testing.T) {
	m := machine.Machine{Distances: make([][]unit.Opt[int], 8)}
	var limits launch.Limits
	for i := range 8 {
		n := machine.Node{ID: i, CPUs: set.FromCPUs(i), Memory: unit.Some(unit.GiB)}
		if i == 7 {
			n.CPUs = set.CPUSet{}
		}
		m.Nodes, limits.CPUs, limits.Mems = append(m.Nodes, n), limits.CPUs.Union(n.CPUs), limits.Mems.With(i)
		for j := range 8 {
			d := 20
			switch {
			case i == j:
				d = 10
			case i/4 == j/4:
				d = 16
			}
			m.Distances[i] = append(m.Distances[i], unit.Some(d))
		}
	}
	names := func(f RepeatOptions) (out []string, notes string) {
		arms, said, err := f.choose(m, limits)
		if err != nil {
			t.Errorf("%+v: %v", f, err)
		}
		for _, a := range arms {
			out = append(out, a.name)
		}
		return out, strings.Join(said, "|")
	}
	usual := []string{"as-is", "nodes", "local", "interleave"}
	got, notes := names(RepeatOptions{Nodes: "all", Arms: usual})
	if !slices.Equal(got, []string{"as-is", "node-0", "node-1", "node-2", "node-4", "local", "interleave"}) ||
		!strings.Contains(notes, "binds to nodes 7: none of their CPUs") || !strings.Contains(notes, "Of 7 nodes, 0-2,4 were tried: '--arms as-is,node-3' tries another") {
		t.Errorf("%v, %s", got, notes)
	}
	if got, notes = names(RepeatOptions{Nodes: "1", Arms: usual}); !slices.Equal(got, []string{"as-is", "node-1", "local"}) || !strings.Contains(notes, "No interleave arm") {
		t.Errorf("%v, %s", got, notes)
	}
	if got, _ = names(RepeatOptions{Nodes: "all", Arms: []string{"node-5", "default", "node-5"}}); !slices.Equal(got, []string{"node-5", "as-is"}) {
		t.Errorf("%v", got)
	}
	arms, _, _ := RepeatOptions{Nodes: "2-3", Arms: []string{"interleave"}}.choose(m, limits)
	if len(arms) != 1 || strings.Join(arms[0].run, " ") != "--nodes 2-3 --policy interleave" || !arms[0].placement.CPUs.IsEmpty() {
		t.Errorf("%+v", arms)
	}
	m.Nodes = m.Nodes[:1]
	if got, notes = names(RepeatOptions{Nodes: "0", Arms: usual}); !slices.Equal(got, []string{"as-is"}) || !strings.Contains(notes, "one node") {
		t.Errorf("%v, %s", got, notes)
	}
}
