// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"homenode/internal/golden"
	"homenode/internal/machine"
	"homenode/internal/machine/shapetest"
	"homenode/internal/set"
	"homenode/internal/unit"
)

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".golden"), got)
}

func shape(t *testing.T, name string) machine.Machine { return shapetest.Shape(t, name).Machine() }

// odd is a machine with some of everything: SMT, an offline CPU, an L2 and an LLC
// that are shared, a node without CPUs, one without memory, HMAT, tiers, devices,
// unknown and one-way distances.
func odd() machine.Machine {
	some := unit.Some[int]
	m := machine.Machine{
		Origin: "fake:odd", PageSize: unit.Some(4 * unit.KiB),
		Nodes: []machine.Node{
			{ID: 0, CPUs: set.FromCPUs(0, 1, 2, 3), Memory: unit.Some(3 * unit.GiB / 2), Tier: some(4),
				Access: []machine.Access{{Class: 0, Initiators: set.FromNodes(0), ReadLatency: some(80), ReadBandwidth: unit.Some(100 * unit.GiB)}}},
			{ID: 2, CPUs: set.FromCPUs(4), Memory: unit.Some(unit.Bytes(0)), SideCaches: []machine.SideCache{{Level: 1, Size: unit.Some(16 * unit.GiB)}}},
			{ID: 5, Memory: unit.Some(8 * unit.GiB), Tier: some(22),
				Access: []machine.Access{{Class: 1, Initiators: set.FromNodes(0, 2), WriteLatency: some(300)}}},
			{ID: 9},
		},
		Distances: [][]unit.Opt[int]{
			{some(10), some(21), some(17), {}}, {some(20), {}, some(28), some(255)}, {some(17), some(28), some(10), {}}, {{}, {}, {}, {}},
		},
		Packages: []set.CPUSet{set.FromCPUs(0, 1, 2, 3), set.FromCPUs(4)},
		Cores:    []set.CPUSet{set.FromCPUs(0, 1), set.FromCPUs(2, 3), set.FromCPUs(4)},
		L2s:      []machine.Cache{{Level: 2, CPUs: set.FromCPUs(0, 1, 2, 3), Size: unit.Some(2 * unit.MiB)}},
		LLCs:     []machine.Cache{{Level: 3, CPUs: set.FromCPUs(0, 1, 2, 3, 4)}},
		Devices: []machine.Device{
			{Address: "0000:00:02.0", Class: machine.GPU},
			{Address: "0000:3b:00.0", Class: machine.Network, Names: []string{"eth0", "mlx5_0"}, Vendor: 0x15b3, Model: 0x1017, Node: some(0), CPUs: set.FromCPUs(0, 1, 2, 3)},
		},
		Doubts: []string{"nodes 0 and 2 claim cpu 4"},
	}
	for id := range 6 {
		c := machine.CPU{ID: id, Node: some(0), Package: some(0), Core: some(min(id, 3) / 2), L2: some(0), LLC: some(0), Online: true}
		switch id {
		case 4:
			c.Node, c.Package, c.Core, c.L2 = some(2), some(1), some(2), unit.None[int]()
		case 5:
			c = machine.CPU{ID: 5, Node: some(0)}
		}
		m.CPUs = append(m.CPUs, c)
	}
	return m
}

func TestGolden(t *testing.T) {
	for name, m := range map[string]machine.Machine{"opteron": shape(t, "opteron"), "far": shape(t, "far"), "odd": odd()} {
		var text, doc, picture bytes.Buffer
		if err := errors.Join(Text(&text, m), JSON(&doc, m, []string{"read x: denied"}), SVG(&picture, m)); err != nil {
			t.Fatal(err)
		}
		checkGolden(t, name+".txt", text.Bytes())
		checkGolden(t, name+".json", doc.Bytes())
		checkGolden(t, name+".svg", picture.Bytes())
		checkSVG(t, name, m, picture.Bytes())
	}
}

// What is unknown is null in JSON and never 0.
func TestUnknownIsNull(t *testing.T) {
	m := machine.Machine{Origin: "fake:bare", Nodes: []machine.Node{{ID: 0}, {ID: 1}}, CPUs: []machine.CPU{{ID: 0, Online: true}}}
	var b bytes.Buffer
	if err := JSON(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"core_count", "smt", "memory_bytes", "page_bytes"} {
		if v, ok := doc[key]; !ok || v != nil {
			t.Errorf("%s is %v", key, v)
		}
	}
	for _, key := range []string{"packages", "dies", "llcs", "l2s", "tiers", "access", "side_caches", "devices", "core_list", "doubts", "problems"} {
		if v, ok := doc[key].([]any); !ok || len(v) > 0 {
			t.Errorf("%s is %v", key, doc[key])
		}
	}
	node := doc["nodes"].([]any)[0].(map[string]any)
	if node["memory_bytes"] != nil || fmt.Sprint(node["distances"]) != "[10 <nil>]" || node["tier"] != nil {
		t.Errorf("node: %v", node)
	}
	var text bytes.Buffer
	if err := Text(&text, m); err != nil || !strings.Contains(text.String(), "1 CPU (SMT unknown) in an unknown number of packages and 2 nodes, 2 of them without CPUs, memory unknown;") {
		t.Errorf("%v\n%s", err, &text)
	}
}

func TestHeadline(t *testing.T) {
	one := shape(t, "two")
	one.Nodes, one.CPUs = one.Nodes[:1], one.CPUs[:2]
	one.Packages, one.Cores = one.Packages[:1], one.Cores[:2]
	flat := shape(t, "two")
	flat.Distances = [][]unit.Opt[int]{{unit.Some(10), unit.Some(10)}, {unit.Some(10), unit.Some(10)}}
	blind := shape(t, "two")
	blind.Distances = nil
	for want, m := range map[string]machine.Machine{
		"16 CPUs (no SMT) in 8 packages and 8 nodes, 2 GiB; farthest memory at 2.2 × the local distance":          shape(t, "opteron"),
		"2 CPUs (no SMT) in 1 package, 768 MiB; one node: every CPU is equally near to all memory":                one,
		"4 CPUs (no SMT) in 2 packages and 2 nodes, 1.5 GiB; all memory at the local distance, says the firmware": flat,
		"4 CPUs (no SMT) in 2 packages and 2 nodes, 1.5 GiB; distances between nodes are unknown":                 blind,
	} {
		if got := newFacts(m).headline(); got != want {
			t.Errorf("%s, want\n%s", got, want)
		}
	}
}

// Text of others reaches neither a terminal nor a browser as it is.
func TestHostile(t *testing.T) {
	m := odd()
	m.Origin = "recorded:\x1b[31m</title><script>alert(1)</script>\u202e"
	m.Doubts = []string{"\x1b]0;x\x07 & <b> " + strings.Repeat("long ", 500), "\xff\xfe"}
	m.Devices[1].Names = []string{"\x1b[2J<i>", strings.Repeat("x", 500)}
	m.Devices[0].Class = "\x00<evil>"
	var text, doc, picture bytes.Buffer
	if err := errors.Join(Text(&text, m), JSON(&doc, m, []string{"\x1b[1m"}), SVG(&picture, m)); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]*bytes.Buffer{"text": &text, "JSON": &doc, "SVG": &picture} {
		if strings.ContainsAny(b.String(), "\x1b\x00\x07\u202e") {
			t.Errorf("%s has control characters", what)
		}
	}
	if strings.Contains(picture.String(), "<script") || strings.Contains(picture.String(), "<i>") {
		t.Error("markup reached the picture")
	}
	checkSVG(t, "hostile", m, picture.Bytes())
}

// checkSVG says that a picture is XML, has every CPU and node once, and that
// nothing is outside of the page.
func checkSVG(t *testing.T, name string, m machine.Machine, data []byte) {
	t.Helper()
	var cpus, nodes []string
	var height float64
	class := ""
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			at := attributes(t, e)
			class = at.class
			if e.Name.Local == "svg" {
				height = at.h
			}
			if at.x < 0 || at.y < 0 || at.x+at.w > pageWidth+0.1 || at.y+at.h > height+0.1 {
				t.Fatalf("%s: outside of %v × %v: %+v", name, pageWidth, height, e)
			}
		case xml.CharData:
			switch text := string(e); {
			case class == "cpu" || class == "cpu off":
				cpus = append(cpus, text)
			case class == "name":
				nodes = append(nodes, text)
			}
			class = ""
		}
	}
	var wantCPUs, wantNodes []string
	for _, c := range m.CPUs {
		if _, known := c.Node.Get(); c.Online || known {
			wantCPUs = append(wantCPUs, strconv.Itoa(c.ID))
		}
	}
	for _, n := range m.Nodes {
		wantNodes = append(wantNodes, "node "+strconv.Itoa(n.ID))
	}
	for _, pair := range [][2][]string{{cpus, wantCPUs}, {nodes, wantNodes}} {
		slices.Sort(pair[0])
		slices.Sort(pair[1])
		if !slices.Equal(pair[0], pair[1]) {
			t.Fatalf("%s: the picture has %v, the machine %v", name, pair[0], pair[1])
		}
	}
}

type attribute struct {
	class      string
	x, y, w, h float64
}

func attributes(t *testing.T, e xml.StartElement) attribute {
	t.Helper()
	var a attribute
	for _, at := range e.Attr {
		number := map[string]*float64{"x": &a.x, "y": &a.y, "width": &a.w, "height": &a.h}[at.Name.Local]
		if at.Name.Local == "class" {
			a.class = at.Value
		}
		if number == nil {
			continue
		}
		v, err := strconv.ParseFloat(at.Value, 64)
		if err != nil {
			t.Fatalf("%s: %v", e.Name.Local, err)
		}
		*number = v
	}
	return a
}

// Machines as no firmware describes them are drawn too.
func TestRandomMachines(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		m := randomMachine(r)
		var text, doc, picture bytes.Buffer
		if err := errors.Join(Text(&text, m), JSON(&doc, m, nil), SVG(&picture, m)); err != nil {
			t.Fatal(err)
		}
		checkSVG(t, fmt.Sprint("random ", i), m, picture.Bytes())
		if !json.Valid(doc.Bytes()) {
			t.Fatalf("random %d: no JSON: %s", i, &doc)
		}
	}
}

func randomMachine(r *rand.Rand) machine.Machine {
	m := machine.Machine{Origin: "fake:random"}
	for id := 0; len(m.Nodes) < 1+r.IntN(r.IntN(70)+1); id += 1 + r.IntN(3) {
		m.Nodes = append(m.Nodes, machine.Node{ID: id, Memory: unit.OptOf(unit.Bytes(r.Int64N(1<<40)), r.IntN(5) > 0), Tier: unit.OptOf(r.IntN(9), r.IntN(3) == 0)})
	}
	opt := func(n int) unit.Opt[int] { return unit.OptOf(r.IntN(max(n, 1)), n > 0 && r.IntN(8) > 0) }
	packages, cores, llcs := r.IntN(8), r.IntN(40), r.IntN(20)
	for _, group := range []struct {
		n   int
		add func()
	}{{packages, func() { m.Packages = append(m.Packages, set.CPUSet{}) }}, {cores, func() { m.Cores = append(m.Cores, set.CPUSet{}) }},
		{llcs, func() {
			m.LLCs = append(m.LLCs, machine.Cache{Level: 3})
			m.L2s = append(m.L2s, machine.Cache{Level: 2})
		}}} {
		for range group.n {
			group.add()
		}
	}
	for id := 0; len(m.CPUs) < 1+r.IntN(120); id += 1 + r.IntN(40)/38 {
		c := machine.CPU{ID: id, Online: r.IntN(9) > 0}
		if at := r.IntN(len(m.Nodes)); r.IntN(9) > 0 {
			c.Node = unit.Some(m.Nodes[at].ID)
			if c.Online {
				m.Nodes[at].CPUs = m.Nodes[at].CPUs.With(id)
			}
		}
		if c.Online {
			c.Package, c.Core, c.L2, c.LLC = opt(packages), opt(cores), opt(llcs), opt(llcs)
			for _, in := range []struct {
				at  unit.Opt[int]
				set func(i int) *set.CPUSet
			}{{c.Package, func(i int) *set.CPUSet { return &m.Packages[i] }}, {c.Core, func(i int) *set.CPUSet { return &m.Cores[i] }},
				{c.L2, func(i int) *set.CPUSet { return &m.L2s[i].CPUs }}, {c.LLC, func(i int) *set.CPUSet { return &m.LLCs[i].CPUs }}} {
				if i, ok := in.at.Get(); ok {
					*in.set(i) = in.set(i).With(id)
				}
			}
		}
		m.CPUs = append(m.CPUs, c)
	}
	for range m.Nodes {
		var row []unit.Opt[int]
		for range m.Nodes {
			row = append(row, unit.OptOf(10+r.IntN(246), r.IntN(9) > 0))
		}
		m.Distances = append(m.Distances, row)
	}
	for i := range r.IntN(30) {
		m.Devices = append(m.Devices, machine.Device{Address: fmt.Sprintf("0000:%02x:00.0", i), Class: machine.Network, Node: opt(len(m.Nodes) * 2)})
	}
	return m
}
