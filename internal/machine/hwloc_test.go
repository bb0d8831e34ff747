// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// What lstopo 2.9 wrote, shortened: two packages, sparse nodes, CPU 3 offline, and
// memory without CPUs that hwloc shows at its neighbours.
const hwlocText = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x00000007" complete_cpuset="0x0000000f" nodeset="0x00000101" gp_index="1">
    <info name="Backend" value="Linux"/>
    <object type="Package" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" gp_index="2">
      <object type="MemCache" cpuset="0x00000003" gp_index="3" cache_size="1024" depth="1" cache_linesize="64" cache_type="0">
        <object type="NUMANode" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" gp_index="4" local_memory="4096">
          <page_type size="2097152" count="0"/>
          <page_type size="4096" count="1"/>
        </object>
      </object>
      <object type="NUMANode" os_index="8" cpuset="0x00000003" gp_index="5" local_memory="8192"/>
      <object type="L3Cache" cpuset="0x00000003" gp_index="6" cache_size="6144" depth="3" cache_type="0">
        <object type="L1iCache" cpuset="0x00000003" gp_index="7" cache_size="64" depth="1" cache_type="2">
          <object type="Core" os_index="0" cpuset="0x00000003" gp_index="8">
            <object type="PU" os_index="0" cpuset="0x00000001" gp_index="9"/>
            <object type="PU" os_index="1" cpuset="0x00000002" gp_index="10"/>
          </object>
        </object>
      </object>
      <object type="Bridge" gp_index="11" bridge_type="0-1" depth="0" bridge_pci="0000:[00-06]">
        <object type="PCIDev" gp_index="12" pci_busid="0000:02:00.0" pci_type="0200 [8086:1521] [1028:0000] 01">
          <object type="OSDev" gp_index="13" name="eth0" osdev_type="2"><info name="Address" value="x"/></object>
          <object type="OSDev" gp_index="14" name="dma0chan0" osdev_type="4"/>
        </object>
        <object type="PCIDev" gp_index="15" pci_busid="0000:00:1f.0" pci_type="0601 [8086:1d41] [1028:0000] 05"/>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x00000004" complete_cpuset="0x0000000c" gp_index="16">
      <object type="NUMANode" os_index="2" cpuset="0x00000004" complete_cpuset="0x0000000c" gp_index="17"/>
      <object type="PU" os_index="2" cpuset="0x00000004" gp_index="18"/>
    </object>
  </object>
  <distances2 type="NUMANode" nbobjs="3" kind="5" name="NUMALatency" indexing="os">
    <indexes length="6">0 2 8 </indexes>
    <u64values length="12">10 20 17 20 </u64values>
    <u64values length="15">10 28 17 28 0 </u64values>
  </distances2>
  <support name="discovery.pu"/>
  <memattr name="ReadLatency" flags="6">
    <memattr_value target_obj_type="NUMANode" target_obj_gp_index="5" value="77" initiator_cpuset="0x00000003"/>
  </memattr>
</topology>
`

func TestDecodeHwloc(t *testing.T) {
	m, err := ParseHwloc([]byte(hwlocText), "hwloc:x")
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, m)
	want := []Node{
		{ID: 0, CPUs: set.FromCPUs(0, 1), Memory: unit.Some(4 * unit.KiB), SideCaches: []SideCache{{1, unit.Some(unit.KiB), unit.Some(unit.Bytes(64))}}, HugePages: []HugePages{{2 * unit.MiB, unit.Some(0)}}},
		{ID: 2, CPUs: set.FromCPUs(2)},
		{ID: 8, Memory: unit.Some(8 * unit.KiB), Near: set.FromCPUs(0, 1), Access: []Access{{Class: 1, Initiators: set.FromNodes(0), ReadLatency: unit.Some(77)}}},
	}
	if !reflect.DeepEqual(m.Nodes, want) {
		t.Errorf("nodes\n%+v, want\n%+v", m.Nodes, want)
	}
	if node, ok := m.NodeOf(3); len(m.CPUs) != 4 || m.CPUs[3].Online || !ok || node != 2 {
		t.Errorf("CPUs %+v", m.CPUs)
	}
	device := Device{Address: "0000:02:00.0", Class: Network, Names: []string{"eth0"}, Vendor: 0x8086, Model: 0x1521, Node: unit.Some(0), CPUs: set.FromCPUs(0, 1)}
	if !reflect.DeepEqual(m.Devices, []Device{device}) {
		t.Errorf("devices %+v", m.Devices)
	}
	if m.Distance(2, 8) != unit.Some(28) || m.Distance(8, 8) != unit.Some(LocalDistance) || m.PageSize != unit.Some(4*unit.KiB) {
		t.Errorf("distances %v, page %v", m.Distances, m.PageSize)
	}
	if len(m.Packages) != 2 || len(m.Cores) != 1 || len(m.L2s) != 0 || len(m.LLCs) != 1 || m.LLCs[0].Size != unit.Some(6*unit.KiB) {
		t.Errorf("got %+v", m)
	}
}

// hwloc 1 has nodes among the other objects, sockets, and scaled distances.
func TestDecodeHwloc1(t *testing.T) {
	m, err := ParseHwloc([]byte(`<topology>
<object type="Machine" os_index="0" cpuset="0x0000000f" complete_cpuset="0x0000000f" local_memory="7">
 <distances nbobjs="2" relative_depth="1" latency_base="10.0">
  <latency value="1.0"/><latency value="2.1"/><latency value="2.1"/><latency value="1.0"/>
 </distances>
 <object type="NUMANode" os_index="0" cpuset="0x00000003" local_memory="4096">
  <object type="Socket" os_index="0" cpuset="0x00000003"><object type="Cache" cpuset="0x00000003" cache_size="1024" depth="2" cache_type="0">
   <object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/></object></object>
 </object>
 <object type="NUMANode" os_index="4" cpuset="0x0000000c" local_memory="8192">
   <object type="PU" os_index="2" cpuset="0x4"/><object type="PU" os_index="3" cpuset="0x8"/>
 </object>
</object></topology>`), "hwloc:1")
	if err != nil {
		t.Fatal(err)
	}
	checkInvariants(t, m)
	if m.Distance(0, 4) != unit.Some(21) || m.NodeIDs().String() != "0,4" || len(m.Packages) != 1 || len(m.L2s) != 1 || len(m.LLCs) != 1 {
		t.Errorf("got %+v", m)
	}
}

func TestHwlocRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "line 1: no <topology> with an <object>",
		"garbage":                     "line 1: no <topology> with an <object>",
		"<html/>":                     `line 1: element "html": want one <topology>`,
		hwlocText[:len(hwlocText)/2]:  "line 21: unexpected EOF",
		"\x00\x01\x02":                "line 1: illegal character code U+0000",
		"<topology>\n<object></topo>": "line 2: element <object> closed by </topo>",
		"<topology>\n<object type='Machine'/></topology>":                                             "line 2: a topology without a PU",
		"<topology><object type='PU'/></topology>":                                                    "line 1: PU without os_index",
		"<topology><object type='PU' os_index='-1'/></topology>":                                      `line 1: os_index "-1" of "PU": want a number up to 8191`,
		"<topology>\n<object type='PU' os_index='0' cpuset='0xf...f'/></topology>":                    `line 2: cpuset of "PU": "0xf...f" has no end`,
		"<topology><object type='PU' os_index='0' cpuset='7'/></topology>":                            `line 1: cpuset of "PU": group 1 "7": want 0x`,
		"<topology><object type='PU' os_index='0' cpuset='0x1,xyz'/></topology>":                      `group 2 "xyz"`,
		strings.Replace(hwlocText, `name="ReadLatency"`, `name="Read`, 1):                             "line 41: ",
		strings.Replace(hwlocText, `os_index="1" cpuset="0x00000002"`, `os_index="0"`, 1):             "line 18: a second PU 0",
		strings.Replace(hwlocText, `type="NUMANode" os_index="8"`, `type="NUMANode" os_index="0"`, 1): "a second node 0",
		strings.Replace(hwlocText, "[8086:1521]", "[80:zz]", 1):                                       `line 23: pci_type`,
		strings.Replace(hwlocText, "0 2 8 ", "0 2 9 ", 1):                                             `line 35: distances of an object "9" that is not there`,
		strings.Replace(hwlocText, "10 20 17 20 ", "10 20 17 ", 1):                                    `line 35: 8 distances between 3 objects`,
		strings.Replace(hwlocText, "0 2 8 ", "0 2 ", 1):                                               `line 35: 9 distances between 2 objects: want "3" objects`,
		strings.Replace(hwlocText, "10 20 17 20 ", "10 -20 17 20 ", 1):                                `line 35: distance "-20" from node 0 to node 2: want 10 to 255`,
		strings.Replace(hwlocText, "10 20 17 20 ", "10 2000 17 20 ", 1):                               `distance "2000" from node 0 to node 2`,
		strings.Replace(hwlocText, "10 20 17 20 ", "10 20 18446744073709551615 20 ", 1):               `distance "18446744073709551615" from node 0 to node 8`,
		strings.Replace(hwlocText, "10 20 17 20 ", "10 20 NaN 20 ", 1):                                `distance "NaN" from node 0 to node 8`,
		strings.Replace(hwlocText, "10 20 17 20 ", strings.Repeat("10 ", 1<<20+1), 1):                 "a matrix of more than 1024 objects",
		strings.Replace(hwlocText, `version="2.0"`, `version="99"`, 1):                                `line 3: version "99": want 1.0 to 3.x`,
		strings.Replace(hwlocText, `version="2.0"`, `version="-2.0"`, 1):                              `line 3: version "-2.0"`,
		strings.Replace(hwlocText, `version="2.0"`, `version=""`, 1):                                  `line 3: version ""`,
		strings.Replace(hwlocText, `local_memory="8192"`, `local_memory="9223372036854774784"`, 1):    `line 13: local_memory "9223372036854774784" of "NUMANode": want a number up to 4503599627370496`,
	} {
		m, err := ParseHwloc([]byte(text), "x")
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(m, Machine{}) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// randomHwloc is a random machine with all that a document keeps.
func randomHwloc(r *rand.Rand) Machine {
	m := randomMachine(r)
	m.PageSize = unit.Some(64 * unit.KiB)
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if r.IntN(3) == 0 {
			n.SideCaches = []SideCache{{Level: 1, Size: unit.Some(unit.MiB), Line: unit.Some(unit.Bytes(64))}, {Level: 2, Size: unit.Some(unit.GiB)}}
		}
		if r.IntN(3) == 0 {
			n.HugePages = []HugePages{{2 * unit.MiB, unit.Some(r.IntN(3))}, {unit.GiB, unit.Some(0)}}
		}
	}
	if r.IntN(2) == 0 {
		m.Devices = []Device{{Address: "0000:3b:00.0", Class: Storage, Names: []string{`n<"&>`, "nvme0n1"}, Vendor: 1, Model: 0xffff, CPUs: m.OnlineCPUs()}}
		m.Links = []Links{{Name: "XGMIHops", Devices: []string{"nvme0n1", "0000:3b:00.0"}, Values: [][]unit.Opt[int]{{unit.Some(0), unit.Some(7)}, {unit.Some(9), unit.Some(0)}}}}
	}
	if r.IntN(2) == 0 {
		all := m.OnlineCPUs()
		m.Devices = append(m.Devices, // by address
			Device{Address: "0001:03:00.0", Class: Network, Names: []string{"eth0"}, Bridges: []string{"0001:00:01.0"}, CPUs: all},
			Device{Address: "0001:05:00.0", Class: CXLMemory, Names: []string{"mem0"}, Bridges: []string{"0001:00:02.0", "0001:04:00.0"}, Memory: unit.Some(256 * unit.GiB), CPUs: all},
			Device{Address: "0001:05:00.1", Class: GPU, Bridges: []string{"0001:00:02.0", "0001:04:00.0"}, CPUs: all},
			Device{Address: "0001:81:00.0", Class: GPU, Names: []string{"card0"}, Bridges: []string{"0001:80:01.0"}, CPUs: all})
		m.DAX = []DAX{{Name: "dax0.0", Size: unit.Some(2 * unit.MiB), Node: unit.Some(m.Nodes[r.IntN(len(m.Nodes))].ID), Driver: "kmem"}, {Name: "dax1.0"}}
	}
	if online := m.OnlineCPUs(); r.IntN(2) == 0 && online.Len() > 1 {
		first := set.FromCPUs(lowest(online))
		m.Kinds = []CPUKind{{Name: "core", CPUs: first, Capacity: unit.Some(1024)}, {Name: "atom", CPUs: online.Minus(first)}}
	}
	return m
}

// Round trip on random machines: sparse ids, nodes without CPUs, SMT, CPUs offline.
func TestHwlocReadsBack(t *testing.T) {
	for seed := range uint64(300) {
		want := randomHwloc(rand.New(rand.NewPCG(seed, 1)))
		var text bytes.Buffer
		if err := WriteHwloc(&text, want); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got, err := ParseHwloc(text.Bytes(), want.Origin)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkInvariants(t, got)
		for i := range got.CPUs { // an offline CPU's node is kept only where the node has CPUs
			if n, _ := want.Node(want.CPUs[i].Node.Or(-1)); !want.CPUs[i].Online && n.CPUs.IsEmpty() {
				want.CPUs[i].Node = got.CPUs[i].Node
			}
		}
		for i, n := range got.Nodes { // what is next to a node without CPUs is found again, or nothing
			if near, _ := want.NearCPUs(n.ID); n.CPUs.IsEmpty() && !n.Near.IsEmpty() && n.Near != near {
				t.Errorf("seed %d: node %d is next to %v, want %v", seed, n.ID, n.Near, near)
			}
			want.Nodes[i].Near = n.Near
		}
		for i := range min(len(got.Devices), len(want.Devices)) {
			if len(want.Nodes) > 1 && got.Devices[i].CPUs == want.Devices[i].CPUs {
				got.Devices[i].Node = want.Devices[i].Node // one node has all CPUs
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d:\n got %+v\nwant %+v\n%s", seed, got, want, text.String())
		}
	}
}

func TestHwlocOfCrossingGroups(t *testing.T) {
	m := Machine{Packages: []set.CPUSet{set.FromCPUs(0, 1), set.FromCPUs(2, 3)}, LLCs: []Cache{{Level: 3, CPUs: set.FromCPUs(1, 2)}}}
	m.Nodes = []Node{{ID: 0, CPUs: set.FromCPUs(0, 1, 2, 3)}, {ID: 3}}
	for id := range 4 {
		m.CPUs = append(m.CPUs, CPU{ID: id, Online: true, Node: unit.Some(0)})
	}
	var text bytes.Buffer
	err := WriteHwloc(&text, m)
	if !errors.Is(err, ErrNotNested) || !strings.Contains(err.Error(), "left out L3Cache 1-2") {
		t.Errorf("got %v", err)
	}
	got, err := ParseHwloc(text.Bytes(), "x")
	if err != nil || len(got.Packages) != 2 || len(got.LLCs) != 0 || !reflect.DeepEqual(got.Nodes, m.Nodes) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A document that would take minutes to make sense of is refused at a bound.
func TestHwlocIsBounded(t *testing.T) {
	const head = `<topology><object type="Machine" cpuset="0x1"><object type="NUMANode" os_index="0" gp_index="7" cpuset="0x1"/><object type="PU" os_index="0" cpuset="0x1"/>`
	value := func(i int) string {
		return fmt.Sprintf(`<memattr_value target_obj_type="NUMANode" target_obj_gp_index="7" value="1" initiator_cpuset="0x%x"/>`, i+1)
	}
	repeat := func(n int, of func(int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(of(i))
		}
		return b.String()
	}
	plain := func(text string) func(int) string { return func(int) string { return text } }
	for want, text := range map[string]string{
		"more than 131072 memory attributes":              head + `</object><memattr name="ReadLatency">` + repeat(maxHwlocAttrs+1, plain(value(0))) + `</memattr></topology>`,
		"memory attributes of more than 2048 cpusets":     head + `</object><memattr name="ReadLatency">` + repeat(maxInitiators+1, value) + `</memattr></topology>`,
		"more than 64 matrices of distances":              head + `</object>` + repeat(maxHwlocMatrices+1, plain(`<distances2/>`)) + `</topology>`,
		"more than 64 kinds of CPUs":                      head + `</object>` + repeat(maxHwlocMatrices+1, plain(`<cpukind cpuset="0x1"/>`)) + `</topology>`,
		"is longer than a set of 8192 CPUs":               `<topology><object type="PU" os_index="0" cpuset="` + repeat(300, plain("0x00000001,")) + `0x1"/></topology>`,
		"more objects than a machine can have":            head + repeat(maxHwlocObjects+1, plain(`<object/>`)) + `</object></topology>`,
		`a second node 0`:                                 head + repeat(3, plain(`<object type="NUMANode" os_index="0"/>`)) + `</object></topology>`,
		`os_index "1024" of "NUMANode": want a number up`: head + `<object type="NUMANode" os_index="1024"/></object></topology>`,
	} {
		if m, err := ParseHwloc([]byte(text), "x"); err == nil || !strings.Contains(err.Error(), want) || !reflect.DeepEqual(m, Machine{}) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// Within the bounds, what is looked up is not searched for: attributes × objects took
	// minutes for 14 MB.
	text := head + repeat(200_000, plain(`<object type="Misc"/>`)) + `</object><memattr name="ReadLatency">` + repeat(maxHwlocAttrs, plain(value(0))) + `</memattr></topology>`
	if m, err := ParseHwloc([]byte(text), "x"); err != nil || len(m.Nodes[0].Access) != 1 {
		t.Errorf("%d initiators, %v", len(m.Nodes[0].Access), err)
	}
}

// Kinds, links and bridges of hwloc's form.
func TestDecodeHwlocExtras(t *testing.T) {
	m, err := ParseHwloc([]byte(`<topology version="3.0"><object type="Machine" cpuset="0x7">
<object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/><object type="PU" os_index="2" cpuset="0x4"/>
<object type="OSDev" gp_index="48" name="dax0.0" subtype="SPM" osdev_type="0"><info name="DAXType" value="SPM"/><info name="Size" value="1024KiB"/></object>
<object type="Bridge" gp_index="1" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">
 <object type="Bridge" gp_index="2" bridge_type="1-1" pci_busid="0000:00:01.0">
  <object type="PCIDev" gp_index="3" pci_busid="0000:04:00.0" pci_type="0302 [10de:20b0] [0000:0000] a1"><object type="OSDev" gp_index="4" name="nvml0" osdev_type="1"/></object>
  <object type="PCIDev" gp_index="5" pci_busid="0000:05:00.0" pci_type="0502 [8086:0001] [0000:0000] a1"><object type="OSDev" gp_index="6" name="mem0" osdev_type="0" subtype="CXLMem"><info name="CXLRAMSize" value="262144KiB"/></object></object>
 </object></object></object>
 <distances2hetero nbobjs="2" kind="25" name="NVLinkBandwidth"><indexes length="1">OSDev:4 PCIDev:5 </indexes><u64values length="1">1000 25000 25000 1000 </u64values></distances2hetero>
 <cpukind cpuset="0x4" forced_efficiency="0"><info name="CoreType" value="IntelAtom"/></cpukind>
 <cpukind cpuset="0x3" forced_efficiency="1"><info name="CoreType" value="IntelCore"/><info name="LinuxCapacity" value="1024"/></cpukind>
</topology>`), "x")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.Kinds); got != "[{core 0-1 1024} {atom 2 unknown}]" {
		t.Errorf("kinds %s", got)
	}
	if want := []DAX{{Name: "dax0.0", Size: unit.Some(unit.MiB)}}; !reflect.DeepEqual(m.DAX, want) {
		t.Errorf("dax %v, want %v", m.DAX, want)
	}
	if got := fmt.Sprint(m.Links); got != "[{NVLinkBandwidth [nvml0 0000:05:00.0] [[1000 25000] [25000 1000]]}]" {
		t.Errorf("links %s", got)
	}
	if d := m.Devices; len(d) != 2 || fmt.Sprint(d[0].Bridges) != "[0000:00:01.0]" || d[1].Class != CXLMemory || d[1].Memory != unit.Some(256*unit.MiB) {
		t.Errorf("devices %+v", d)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteHwlocReportsTheWriter(t *testing.T) {
	if err := WriteHwloc(brokenPipe{}, randomMachine(rand.New(rand.NewPCG(1, 1)))); err == nil || err.Error() != "write hwloc XML: no space left" {
		t.Errorf("got %v", err)
	}
}

// Seeds are short: Go minimises each new input by as many runs as the square of its length,
// and with seeds of some KiB a fresh corpus got three runs in 15 s.
func FuzzParseHwloc(f *testing.F) {
	for _, objects := range []string{
		`<object type="Machine" cpuset="0x3"><object type="PU" os_index="1"/></object>`,
		`<object type="Machine"><object type="NUMANode" os_index="8" cpuset="0x1" gp_index="4" local_memory="9"/><object type="PU" os_index="0" cpuset="0x1"/></object>`,
		`<object type="Machine"><object type="L3Cache" cpuset="0x3" cache_size="6" depth="3" cache_type="0"><object type="Core" os_index="0"><object type="PU" os_index="1"/></object></object></object>`,
		`<object type="Machine"><object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0200 [8086:1521] [1028:0000] 01"><object type="OSDev" name="eth0" osdev_type="2"/></object></object>`,
		`<distances2 type="NUMANode" nbobjs="2" kind="5" name="NUMALatency" indexing="os"><indexes length="4">0 2 </indexes><u64values length="12">10 20 20 10 </u64values></distances2>`,
		`<memattr name="ReadLatency" flags="6"><memattr_value target_obj_type="NUMANode" target_obj_gp_index="5" value="77" initiator_cpuset="0x3"/></memattr>`,
		`<object type="Machine" local_memory="7"><distances nbobjs="1" relative_depth="1" latency_base="10.0"><latency value="1.0"/></distances></object>`,
	} {
		f.Add([]byte(`<topology>` + objects + `</topology>`))
	}
	f.Fuzz(func(t *testing.T, data []byte) { readsBackHwloc(t, data) })
}

// What lstopo wrote is read, written and read again.
func TestHwlocTextReadsBack(t *testing.T) { readsBackHwloc(t, []byte(hwlocText)) }

func readsBackHwloc(t *testing.T, data []byte) {
	m, err := ParseHwloc(data, "fuzz")
	if err != nil {
		if !reflect.DeepEqual(m, Machine{}) {
			t.Fatalf("error and value: %+v", m)
		}
		return
	}
	checkInvariants(t, m)
	var text bytes.Buffer
	_ = WriteHwloc(&text, m) // what crosses is left out
	again, err := ParseHwloc(text.Bytes(), "fuzz")
	if err != nil || again.NodeIDs() != m.NodeIDs() || again.OnlineCPUs() != m.OnlineCPUs() {
		t.Fatalf("%v\n%+v\nreads back as\n%+v\n%s", err, m, again, text.String())
	}
}
