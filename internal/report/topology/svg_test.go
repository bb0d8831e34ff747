// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// square has nodes of 16 CPUs, each a package; of these, bare more without CPUs. The
// distance of two nodes is that of their numbers.
func square(nodes, bare int) machine.Machine {
	m := machine.Machine{Origin: "fake:square"}
	for i := range nodes + bare {
		n := machine.Node{ID: i, Memory: unit.Some(100*unit.GiB + unit.GiB/2)}
		row := make([]unit.Opt[int], nodes+bare)
		for j := range row {
			row[j] = unit.Some(10 + max(i-j, j-i)%nodes*2)
			if i != j && (i-j)%nodes == 0 {
				row[j] = unit.Some(11)
			}
		}
		for cpu := 16 * i; i < nodes && cpu < 16*i+16; cpu++ {
			n.CPUs = n.CPUs.With(cpu)
			m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Node: unit.Some(i), Package: unit.Some(i), Online: true})
		}
		if i < nodes {
			m.Packages = append(m.Packages, n.CPUs)
		}
		m.Nodes, m.Distances = append(m.Nodes, n), append(m.Distances, row)
	}
	return m
}

// drawn are the elements of a picture: name, class and place, with the text.
type drawn struct {
	name, class, anchor, text string
	x, y, w, h                float64
}

func elements(t *testing.T, m machine.Machine) (list []drawn) {
	t.Helper()
	var b bytes.Buffer
	if err := SVG(&b, m); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			at := attributes(t, e)
			el := drawn{name: e.Name.Local, class: at.class, x: at.x, y: at.y, w: at.w, h: at.h}
			for _, a := range e.Attr {
				if a.Name.Local == "text-anchor" {
					el.anchor = a.Value
				}
			}
			list = append(list, el)
		case xml.CharData:
			if len(list) > 0 {
				list[len(list)-1].text += strings.TrimSpace(string(e))
			}
		}
	}
}

// The texts in the first line of a node's box do not run into each other.
func TestNodeHeadsDoNotOverprint(t *testing.T) {
	fonts := map[string]float64{"name": 13, "small": 11, "size": 13}
	for _, n := range []int{2, 4, 8, 12, 13, 24, 64} {
		ends := map[float64]drawn{} // by line, the text that ends last
		packages := 0
		for _, e := range elements(t, square(n, 0)) {
			if e.name != "text" || fonts[e.class] == 0 {
				continue
			}
			if strings.HasPrefix(e.text, "package") {
				packages++
			}
			wide := render.TextWidth(e.text, fonts[e.class])
			left := e.x
			if e.anchor == "end" {
				left -= wide
			}
			if last := ends[e.y]; last.text != "" && left < last.x+last.w {
				t.Errorf("%d nodes: %q at %v begins before %q ends at %v", n, e.text, left, last.text, last.x+last.w)
			}
			ends[e.y] = drawn{text: e.text, x: left, w: wide}
		}
		if packages != n {
			t.Errorf("%d nodes: %d packages are named", n, packages)
		}
	}
}

// The distances of many nodes have numbers, and a scale; of even more a scale.
func TestHeatOfManyNodes(t *testing.T) {
	for n, want := range map[int]struct{ numbers, cells int }{
		8: {64, 64}, 64: {64*64 + 16, 64*64 + 16}, 100: {16, 100*100 + 16}, 256: {16, 256*256 + 16}, 257: {0, 0},
	} {
		numbers, cells := 0, 0
		for _, e := range elements(t, square(n, 0)) {
			if e.name == "text" && strings.HasPrefix(e.class, "num") {
				numbers++
			}
			if e.class == "cell" {
				cells++
			}
		}
		if n == 8 {
			numbers -= 8 // the graph's
		}
		if numbers != want.numbers || cells != want.cells {
			t.Errorf("%d nodes: %d numbers and %d cells, want %+v", n, numbers, cells, want)
		}
	}
}

// Every pair of nodes has a line, and every distance is named.
func TestAllLinksAreDrawn(t *testing.T) {
	for _, n := range []int{4, 8, 24} {
		lines, named := map[string]int{}, ""
		for _, e := range elements(t, square(n, 0)) {
			if e.name == "line" {
				lines[e.class]++
			}
			if strings.HasPrefix(e.text, "thick: ") {
				named = e.text
			}
		}
		if lines["near"] != n-1 || lines["next"] != n-2 || lines["near"]+lines["next"]+lines["far"] != n*(n-1)/2 || !strings.Contains(named, fmt.Sprint(10+2*(n-1))) {
			t.Errorf("%d nodes: lines %v, %q", n, lines, named)
		}
	}
}

// A node without CPUs is a small box below the node that it is next to, not an empty one
// beside it.
func TestNodesWithoutCPUsAreNotEmptyBoxes(t *testing.T) {
	var tops []drawn
	bare := 0
	for _, e := range elements(t, square(4, 4)) {
		switch e.class {
		case "node":
			tops = append(tops, e)
		case "node bare":
			if e.w == 24 { // the legend's
				continue
			}
			bare++
			below := false
			for _, top := range tops {
				below = below || top.x == e.x && top.w == e.w && e.y == top.y+top.h+stackGap
			}
			if !below || e.h > 80 {
				t.Errorf("%+v is not below one of %+v", e, tops)
			}
		}
	}
	if len(tops) != 4 || bare != 4 {
		t.Errorf("%d nodes with CPUs, %d without", len(tops), bare)
	}
}

// What lstopo shows of a machine besides: kinds, huge pages, dax, CXL, bridges, links.
func TestExtras(t *testing.T) {
	m := square(2, 1)
	m.Nodes[0].HugePages = []machine.HugePages{{Size: 2 * unit.MiB, Count: unit.Some(7)}}
	m.Kinds = []machine.CPUKind{{Name: "core", CPUs: set.FromCPUs(0, 1)}, {Name: "atom", CPUs: set.FromCPUs(2), Capacity: unit.Some(446)}}
	m.DAX = []machine.DAX{{Name: "dax0.0", Size: unit.Some(unit.GiB), Node: unit.Some(2), Driver: "kmem"}}
	m.Inner = []machine.Cache{{Level: 1, CPUs: set.FromCPUs(0), Size: unit.Some(32 * unit.KiB)}, {Level: 1, Instr: true, CPUs: set.FromCPUs(0), Size: unit.Some(64 * unit.KiB)}}
	m.Devices = []machine.Device{{Address: "0000:35:00.0", Class: machine.CXLMemory, Names: []string{"mem0"}, Bridges: []string{"0000:34:01.0"}, Memory: unit.Some(256 * unit.GiB), Node: unit.Some(1)}}
	m.Links = []machine.Links{{Name: "NVLinkBandwidth", Devices: []string{"nvml0", "nvml1"}, Values: [][]unit.Opt[int]{{{}, unit.Some(25000)}, {unit.Some(50000), {}}}}}
	var text, doc, picture bytes.Buffer
	if err := errors.Join(Text(&text, m), JSON(&doc, m, nil), SVG(&picture, m)); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		got  string
		want []string
	}{
		"text": {text.String(), []string{"1 × L1d 32 KiB", "1 × L1i 64 KiB", "node 2: next to node 0 (CPUs 0-15), by SLIT", "atom, capacity 446 of 1024: CPUs 2", "node 0: 7 × 2 MiB",
			"mem0 256 GiB", "0000:34:01.0", "dax0.0", "Links: NVLinkBandwidth", "25000"}},
		"JSON": {doc.String(), []string{`"near_how": "SLIT"`, `"near_cpus": "0-15"`, `"type": "instruction"`, `"name": "atom"`, `"driver": "kmem"`, `"memory_bytes": 274877906944`, `"bridges"`, `"NVLinkBandwidth"`, `"page_bytes": 2097152`}},
		"SVG":  {picture.String(), []string{"7 huge pages of 2 MiB", "kind: atom, capacity 446 of 1024", "dax0.0", ">CXL<", "NVLinkBandwidth", "no CPUs; next to node 0"}},
	} {
		for _, want := range c.want {
			if !strings.Contains(c.got, want) {
				t.Errorf("%s lacks %q:\n%s", what, want, c.got)
			}
		}
	}
}
