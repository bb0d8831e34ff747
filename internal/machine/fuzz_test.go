// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"homenode/internal/unit"
)

func FuzzParseNodeDistance(f *testing.F) {
	for _, seed := range []string{"10 16 16 22", "", "10 x", "256", "10\x0020"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, err := parseNodeDistance(text)
		if err != nil && row != nil {
			t.Fatalf("error and value: %v", row)
		}
		again, err := parseNodeDistance(strings.Trim(fmt.Sprint(row), "[]"))
		if err != nil || !slices.Equal(again, row) {
			t.Fatalf("%v reads back as %v, %v", row, again, err)
		}
	})
}

func FuzzParseMemTotal(f *testing.F) {
	for _, seed := range []string{"Node 0 MemTotal:       131732940 kB\n", "MemTotal: 1 kB", "MemTotal: -1 kB", "Node 0 MemFree: 1 kB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := parseMemTotal(text)
		if err != nil && b != 0 || b < 0 {
			t.Fatalf("%d, %v", b, err)
		}
		if again, err := parseMemTotal(fmt.Sprintf("Node 3 MemTotal: %d kB", b/unit.KiB)); err != nil || again != b {
			t.Fatalf("%d reads back as %d, %v", b, again, err)
		}
	})
}

func FuzzParseCacheSize(f *testing.F) {
	for _, seed := range []string{"32K", "6144K", "K", "32", "9999999999999999999K"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := parseCacheSize(text)
		if err != nil && b != 0 || b < 0 {
			t.Fatalf("%d, %v", b, err)
		}
		if again, err := parseCacheSize(fmt.Sprintf("%dK", b/unit.KiB)); err != nil || again != b {
			t.Fatalf("%d reads back as %d, %v", b, again, err)
		}
	})
}

func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"0", "-1", "36", "+1", "99999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseID(text)
		if err != nil && id.Known() {
			t.Fatalf("error and value: %v", id)
		}
		if again, err := parseID(fmt.Sprint(id.Or(-1))); err != nil || again != id {
			t.Fatalf("%v reads back as %v, %v", id, again, err)
		}
	})
}

func FuzzParsePageSize(f *testing.F) {
	f.Add("OSName: Linux\nPageSize: 4096\n")
	f.Add("PageSize: 4095")
	f.Fuzz(func(t *testing.T, text string) {
		size, err := parsePageSize(text)
		if err != nil && size.Known() {
			t.Fatalf("error and value: %v", size)
		}
		b, ok := size.Get()
		if again, err := parsePageSize(fmt.Sprintf("PageSize: %d", b)); ok && (err != nil || again != size) {
			t.Fatalf("%v reads back as %v, %v", size, again, err)
		}
	})
}

// Whatever a tree holds: no panic, and the result is consistent.
func FuzzParseSysfs(f *testing.F) {
	f.Add("0-3", "0-1", "0000000c", "10 20", "Node 0 MemTotal: 1 kB", "0-1", "0")
	f.Add("0-9", "0-9", "ff", "0 9", "", "9", "-1")
	f.Fuzz(func(t *testing.T, online, list, mask, row, mem, siblings, id string) {
		m, err := ParseSysfs(fstest.MapFS{
			cpuDir + "/online":                         file(online),
			nodeDir + "/node0/cpulist":                 file(list),
			nodeDir + "/node2/cpumap":                  file(mask),
			nodeDir + "/node0/distance":                file(row),
			nodeDir + "/node2/distance":                file(row),
			nodeDir + "/node2/meminfo":                 file(mem),
			cpuPath(0, "topology/core_cpus_list"):      file(siblings),
			cpuPath(0, "topology/physical_package_id"): file(id),
			cpuPath(0, "topology/core_siblings"):       file(mask),
			cpuPath(1, "cache/index0/level"):           file(id),
			cpuPath(1, "cache/index0/type"):            file("Data"),
			cpuPath(1, "cache/index0/shared_cpu_list"): file(siblings),
		}, "fake:fuzz")
		if len(m.CPUs) == 0 && (err == nil || !reflect.DeepEqual(m, Machine{})) {
			t.Fatalf("no CPU, yet %+v, %v", m, err)
		}
		var seen = m.CPUsOf(m.NodeIDs())
		if !seen.SubsetOf(m.OnlineCPUs()) {
			t.Fatalf("nodes have CPUs %v, online are %v", seen, m.OnlineCPUs())
		}
	})
}

func FuzzParseShape(f *testing.F) {
	f.Add([]byte(plainShape))
	f.Add([]byte(plainShape + "model: {mhz: 100, dram_cycles: {10: 1, 21: 2}}\nlinks: [[1, 0]]\nhousekeeping: 3\n"))
	f.Add([]byte("name: &a x\nabout: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseShape(data, "fuzz.yaml")
		if err != nil {
			if !reflect.DeepEqual(s, Shape{}) {
				t.Fatalf("error and value: %+v", s)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		conf := s.ModelConf()
		if !strings.HasPrefix(conf, "homenode-lab 3\n") || !strings.HasSuffix(conf, "\nend\n") || len(s.Machine().CPUs) == 0 {
			t.Fatal(conf)
		}
	})
}

func FuzzParseHugePageSize(f *testing.F) {
	for _, seed := range []string{"hugepages-2048kB", "hugepages-3kB", "hugepages-kB", "hugepages-99999999999999999999kB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		size, err := parseHugePageSize(name)
		if err != nil && size != 0 || size < 0 || size > MaxMemory {
			t.Fatalf("%d, %v", size, err)
		}
		again, err2 := parseHugePageSize(fmt.Sprintf("hugepages-%dkB", size/unit.KiB))
		if err == nil && (err2 != nil || again != size) {
			t.Fatalf("%d reads back as %d, %v", size, again, err2)
		}
	})
}

func FuzzParseCXLSize(f *testing.F) {
	for _, seed := range []string{"0x4000000000", "0", "0x", "-1", "0xffffffffffffffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := parseCXLSize(text)
		if err != nil && size != 0 || size < 0 || size > MaxMemory {
			t.Fatalf("%d, %v", size, err)
		}
		if again, err := parseCXLSize(fmt.Sprintf("0x%x", int64(size))); err != nil || again != size {
			t.Fatalf("%d reads back as %d, %v", size, again, err)
		}
	})
}

func FuzzParseKFD(f *testing.F) {
	for _, seed := range []string{"domain 0\nlocation_id 49920\n", "type 11\n", "a b\n", "a 1 2\n", "\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseKFD(text)
		if err != nil && values != nil {
			t.Fatalf("error and value: %v", values)
		}
		var lines strings.Builder
		for name, n := range values {
			fmt.Fprintf(&lines, "%s %d\n", name, n)
		}
		if again, err := parseKFD(lines.String()); err == nil && len(again) != len(values) || err != nil {
			t.Fatalf("%v reads back as %v, %v", values, again, err)
		}
	})
}
