// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math/rand/v2"
	"testing"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// torus is six servers of four nodes: 16 and 22 in a server, 160 and 200 between.
func torus() Machine {
	const servers, nodes = 6, 4
	m := Machine{Origin: "fake:torus"}
	for i := range servers * nodes {
		m.Nodes = append(m.Nodes, Node{ID: i})
		row := make([]unit.Opt[int], servers*nodes)
		for j := range row {
			d := []int{10, 16, 22, 16}[(i-j+24)%nodes]
			if i/nodes != j/nodes {
				d = 160 + 40*((i/nodes+j/nodes)%2)
			}
			row[j] = unit.Some(d)
		}
		m.Distances = append(m.Distances, row)
	}
	return m
}

func TestLevelsOfTorus(t *testing.T) {
	l := torus().Levels()
	if len(l.Servers) != 6 || l.Cut != 160 || l.Servers[1].String() != "4-7" {
		t.Errorf("%+v", l)
	}
	for _, c := range []struct {
		a, b int
		want Level
	}{{0, 0, SameNode}, {0, 2, SameServer}, {3, 4, Beyond}, {0, 99, Beyond}} {
		if got := l.Between(c.a, c.b); got != c.want {
			t.Errorf("%d and %d: %v, want %v", c.a, c.b, got, c.want)
		}
	}
	for nodes, want := range map[string]Level{"5": SameNode, "4-7": SameServer, "3-4": Beyond, "": SameNode} {
		s, _ := set.ParseNodes(nodes)
		if got := l.Span(s); got != want {
			t.Errorf("nodes %s span %v, want %v", nodes, got, want)
		}
	}
}

// Shapes of the lab and recorded machines are one server each, whatever their SLIT.
func TestLevelsOfOneServer(t *testing.T) {
	for _, name := range shapeNames(t) {
		oneServer(t, loadShape(t, name).Machine())
	}
	for _, r := range recordedMachines {
		t.Run(r.archive, func(t *testing.T) {
			m, _ := ParseSysfs(unpack(t, r.archive), "recorded:"+r.archive)
			oneServer(t, m)
		})
	}
	oneServer(t, Machine{})
}

func oneServer(t *testing.T, m Machine) {
	t.Helper()
	if l := m.Levels(); len(l.Servers) != 1 || l.Servers[0] != m.NodeIDs() || l.Cut != 0 {
		t.Errorf("%s: %+v", m.Origin, l)
	}
}

// Unknown distances, and "no way", neither make servers nor break them.
func TestLevelsOfTheUnknown(t *testing.T) {
	m := torus()
	for j := range m.Nodes { // node 23: nothing is known
		m.Distances[23][j], m.Distances[j][23] = unit.None[int](), unit.None[int]()
	}
	m.Distances[0][1], m.Distances[1][0] = unit.None[int](), unit.Some(16) // one direction is enough
	m.Distances[2][20], m.Distances[20][2] = unit.Some(255), unit.Some(255)
	l := m.Levels()
	if len(l.Servers) != 6 || l.Servers[0].String() != "0-3,23" {
		t.Errorf("%+v", l)
	}
}

// Renumbering the nodes renumbers the servers.
func TestLevelsRenumbered(t *testing.T) {
	a := torus()
	for seed := range uint64(100) {
		to := rand.New(rand.NewPCG(seed, 1)).Perm(len(a.Nodes))
		b := torus()
		for i := range a.Nodes {
			for j := range a.Nodes {
				b.Distances[to[i]][to[j]] = a.Distances[i][j]
			}
		}
		one, two := a.Levels(), b.Levels()
		for i := range a.Nodes {
			for j := range a.Nodes {
				if one.Between(i, j) != two.Between(to[i], to[j]) {
					t.Fatalf("seed %d: %d and %d", seed, i, j)
				}
			}
		}
	}
}
