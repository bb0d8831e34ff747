// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/set"
	"homenode/internal/unit"
)

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// hmatTree is two nodes with CPUs, one without; HMAT, a side cache, tiers, devices.
func hmatTree() fstest.MapFS {
	pci := "sys/devices/pci0000:00/"
	tree := fstest.MapFS{
		cpuDir + "/online":                                    file("0-3"),
		nodeDir + "/node0/cpulist":                            file("0-1"),
		nodeDir + "/node1/cpulist":                            file("2-3"),
		nodeDir + "/node2/cpulist":                            file(""),
		tierDir + "/memory_tier4/nodelist":                    file("0-1\n"),
		tierDir + "/memory_tier22/nodelist":                   file("2\n"),
		nodeDir + "/node2/memory_side_cache/index1/size":      file("103079215104\n"),
		nodeDir + "/node2/memory_side_cache/index1/line_size": file("64\n"),
	}
	access := nodeDir + "/node2/access0/initiators/"
	for name, text := range map[string]string{"read_latency": "77", "write_latency": "0", "read_bandwidth": "78644", "node0/x": "", "node1/x": ""} {
		tree[access+name] = file(text + "\n")
	}
	for address, files := range map[string]map[string]string{
		"0000:00:00.0":           {"class": "0x060000"},
		"0000:02:00.0":           {"class": "0x020000", "vendor": "0x8086", "device": "0x1521", "numa_node": "1", "local_cpus": "c"},
		"0000:1f.2/0000:00:1f.2": {"class": "0x010601", "numa_node": "-1", "local_cpulist": "0-3"},
		"10000:01:00.0":          {"class": "0x010802", "numa_node": "7"},
		"0000:01.0/0000:0a:00.0": {"class": "0x0b4000"},
		"0000:00:03.0":           {"class": "0x03\x00"},
	} {
		name := address[strings.LastIndex(address, "/")+1:]
		tree[pciDir+"/"+name] = link("../../../devices/pci0000:00/" + address)
		for f, text := range files {
			tree[pci+address+"/"+f] = file(text + "\n")
		}
	}
	for name, target := range map[string]string{
		"net/eth0":        "../../devices/pci0000:00/0000:02:00.0/net/eth0",
		"net/lo":          "../../devices/virtual/net/lo",
		"block/sda":       "../../devices/pci0000:00/0000:1f.2/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda",
		"block/sda1":      "../../devices/pci0000:00/0000:1f.2/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block/sda/sda1",
		"block/nvme0n1":   "../../devices/pci0000:00/10000:01:00.0/nvme/nvme0/nvme0n1",
		"block/nvme0n1p1": "../../devices/pci0000:00/10000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p1",
		"nvme/nvme0":      "../../devices/pci0000:00/10000:01:00.0/nvme/nvme0",
	} {
		tree["sys/class/"+name] = link(target)
	}
	tree["sys/class/net/eth1/device"] = link("../../../devices/pci0000:00/0000:02:00.0") // as before 2.6.25
	return tree
}

func TestHMATAndDevices(t *testing.T) {
	m, err := ParseSysfs(hmatTree(), "fake:hmat")
	want := []Device{
		{Address: "0000:00:1f.2", Class: Storage, Names: []string{"sda"}, CPUs: set.FromCPUs(0, 1, 2, 3)},
		{Address: "0000:02:00.0", Class: Network, Names: []string{"eth0", "eth1"}, Vendor: 0x8086, Model: 0x1521, Node: unit.Some(1), CPUs: set.FromCPUs(2, 3)},
		{Address: "0000:0a:00.0", Class: Accelerator},
		{Address: "10000:01:00.0", Class: Storage, Names: []string{"nvme0n1"}},
	}
	if !reflect.DeepEqual(m.Devices, want) {
		t.Errorf("devices\n%+v, want\n%+v", m.Devices, want)
	}
	for _, text := range []string{
		`parse sys/bus/pci/devices/0000:00:03.0/class: malformed: line 1, field 1 "0x03": invalid syntax`,
		`parse sys/bus/pci/devices/10000:01:00.0/numa_node: malformed: line 1: there is no node 7`,
	} {
		if err == nil || !strings.Contains(err.Error(), text) || !errors.Is(err, ErrMalformed) {
			t.Errorf("missing %q in %v", text, err)
		}
	}
	n, _ := m.Node(2)
	access := []Access{{Initiators: set.FromNodes(0, 1), ReadLatency: unit.Some(77), ReadBandwidth: unit.Some(78644 * unit.MiB)}}
	if !reflect.DeepEqual(n.Access, access) || n.Tier != unit.Some(22) || m.Nodes[0].Tier != unit.Some(4) || m.Nodes[0].Access != nil {
		t.Errorf("node 2: %+v", n)
	}
	if !reflect.DeepEqual(n.SideCaches, []SideCache{{1, unit.Some(96 * unit.GiB), unit.Some(unit.Bytes(64))}}) {
		t.Errorf("side caches %+v", n.SideCaches)
	}
}

// If any single file is missing, empty, cut, binary or NUL-padded, the rest is still
// read.
func TestBrokenFilesLeaveTheRest(t *testing.T) {
	for name, f := range hmatTree() {
		if f.Mode&fs.ModeSymlink != 0 {
			continue
		}
		for _, text := range []string{"", "\x7fELF\x02\x01\x00", string(f.Data) + "\x00\x00\x00", strings.TrimSuffix(string(f.Data), "\n") + "x", "-"} {
			tree := hmatTree()
			tree[name] = file(text)
			m, err := ParseSysfs(tree, "fake:broken")
			if len(m.CPUs) == 0 && name == cpuDir+"/online" {
				continue // nothing else names the CPUs
			}
			if len(m.CPUs) != 4 && name != cpuDir+"/online" || len(m.Nodes) != 3 {
				t.Errorf("%s = %q: %d CPUs, %d nodes, %v", name, text, len(m.CPUs), len(m.Nodes), err)
			}
			if err != nil && !strings.Contains(err.Error(), "line 1") && !strings.Contains(err.Error(), "field 1") && !strings.Contains(err.Error(), "group 1") {
				t.Errorf("%s = %q: %v: names no place", name, text, err)
			}
			checkInvariants(t, m)
		}
	}
}

func TestPCIAddress(t *testing.T) {
	for text, ok := range map[string]bool{"0000:3b:00.0": true, "10000:01:1f.7": true, "0000:3b:00": false, "0:3b:0.0": false,
		"0000:3b:20.0": false, "0000:3b:00.8": false, "pci0000:00": false, "": false, "0000:3B:00.0": false} {
		if a, got := parsePCIAddress(text); got != ok || ok && a.String() != text {
			t.Errorf("%q: %v, %v", text, a, got)
		}
	}
}

func FuzzPCI(f *testing.F) {
	for _, seed := range []string{"0x020000", "0x8086", "0000:3b:00.0", "10000:01:00.0", "0xfffffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parsePCINumber(text); err != nil && n != 0 {
			t.Fatalf("error and value: %x", n)
		}
		if a, ok := parsePCIAddress(text); ok && a.String() != text || !ok && a != (pciAddress{}) {
			t.Fatalf("%q is %v, %v", text, a, ok)
		}
	})
}

func FuzzParseAccess(f *testing.F) {
	for _, seed := range []string{"77", "0", "131072", "-1", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		latency, err := parseLatency(text)
		if err != nil && latency.Known() || latency.Or(1) <= 0 {
			t.Fatalf("%v, %v", latency, err)
		}
		bandwidth, err := parseBandwidth(text)
		if err != nil && bandwidth.Known() || bandwidth.Or(1) <= 0 {
			t.Fatalf("%v, %v", bandwidth, err)
		}
		size, err := parseSideCacheBytes(text)
		if err != nil && size.Known() || size.Or(1) <= 0 {
			t.Fatalf("%v, %v", size, err)
		}
		if on, err := parseOnline(text); err != nil && on {
			t.Fatal("error and value")
		}
	})
}

func FuzzParseCPUFamily(f *testing.F) {
	f.Add("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 21\n")
	f.Add("cpu family: x")
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := parseCPUFamily(text); err != nil && v != (cpuFamily{}) {
			t.Fatalf("error and value: %v", v)
		}
	})
}
