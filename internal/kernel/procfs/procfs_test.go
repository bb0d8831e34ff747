// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

func TestDecodeStat(t *testing.T) {
	got, err := ParseStat([]byte("cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 9 10\ncpu3 1 0 0 9 0 0 0\nintr 5\n"))
	want := []CPUTicks{{0, 19, 64}, {3, 1, 10}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, bad := range []string{"cpu0 1 2 3", "cpux 1 2 3 4 5 6 7", "cpu0 a 2 3 4 5 6 7", "cpu0 -1 2 3 4 5 6 7"} {
		if got, err := ParseStat([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != nil {
			t.Errorf("%q: got %v, %v", bad, got, err)
		}
	}
}

const statLine = "1234 (a (b) c) S 1 1234 1234 0 -1 4194304 100 0 0 0 7 3 0 0 20 0 1 0 99 8192 10 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 2 0 0 0 0 0\n"

func TestDecodeTaskStat(t *testing.T) {
	got, err := ParseTaskStat([]byte(statLine))
	if want := (TaskStat{Ticks: 10, Start: 99, CPU: 2, Parent: 1, Flags: 4194304, State: 'S'}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ParseTaskStat([]byte("1 (x) S 1")); err == nil || got != (TaskStat{}) {
		t.Errorf("short: %+v, %v", got, err)
	}
}

func TestDecodeNumaMaps(t *testing.T) {
	text := `559f03f63000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
7f3c40000000 bind=static:0-1 anon=512 dirty=512 N0=500 N1=12 kernelpagesize_kB=4
7f3c60000000 prefer (many):0-1 anon=1 dirty=1 N1=1 kernelpagesize_kB=2048
7f3c70000000 weighted interleave:0 anon=1 N1=1
7f3c80000000 local
`
	got, err := parseNumaMaps([]byte(text))
	if err != nil || len(got) != 5 {
		t.Fatalf("got %v, %v", got, err)
	}
	for i, want := range []struct {
		policy   string
		explicit bool
		pages    uint64
		size     uint64
	}{{"default", false, 2, 4096}, {"bind=static:0-1", true, 512, 4096}, {"prefer (many):0-1", true, 1, 2 << 20}, {"weighted interleave:0", true, 1, 4096}, {"local", false, 0, 4096}} {
		v := got[i]
		if v.Policy != want.policy || v.Explicit() != want.explicit || v.Pages() != want.pages || v.PageSize != want.size {
			t.Errorf("line %d: %+v, want %+v", i+1, v, want)
		}
	}
	if got[1].Anon != 512 || !reflect.DeepEqual(got[1].Nodes, []NodePages{{0, 500}, {1, 12}}) {
		t.Errorf("line 2: %+v", got[1])
	}
	for _, bad := range []string{"xyz default", "1000", "1000 default N0=x", "1000 default N5000=1", "1000 default kernelpagesize_kB=0"} {
		if got, err := parseNumaMaps([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != nil {
			t.Errorf("%q: got %v, %v", bad, got, err)
		}
	}
}

func TestDecodeMountinfo(t *testing.T) {
	got, err := ParseMountinfo([]byte("34 31 0:31 / /sys/fs/cgroup/cpu\\040set rw,relatime shared:9 master:1 - cgroup cgroup rw,cpuset\n"))
	want := []Mount{{ID: 34, Root: "/", Point: "/sys/fs/cgroup/cpu set", Type: "cgroup", Super: []string{"rw", "cpuset"}, Source: "cgroup", Dev: 31}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := ParseMountinfo([]byte("34 31\n")); !errors.Is(err, unix.ErrMalformed) {
		t.Errorf("short: %v", err)
	}
}

func TestDecodeOthers(t *testing.T) {
	m, err := ParseNodeMeminfo([]byte("Node 0 MemTotal:        4417748 kB\nNode 0 MemFree: 12 kB\nNode 0 Active(anon): 5 kB\n"))
	if err != nil || m.Total.Or(0) != 4417748*unit.KiB || m.Free.Or(0) != 12*unit.KiB || m.File.Known() {
		t.Errorf("meminfo: %+v, %v", m, err)
	}
	for text, want := range map[string]event.CPU{
		"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon\nstepping\t: 7\n\nprocessor\t: 1\nmodel\t: 3\n": {Vendor: "GenuineIntel", Family: 6, Model: 85, Stepping: 7},
		"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nstepping\t: unknown\n":                                             {Vendor: "GenuineIntel", Family: 6, Model: 85},
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nHardware : X\n":   {Implementer: 0x41, Part: 0xd0c},
		"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\nprocessor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n":                     {Implementer: 0x41, Part: 0xd0c, Mixed: true},
		"processor\t: 0\ncpu\t\t: POWER9 (architected), altivec supported\nclock\t\t: 2500.000000MHz\nrevision\t: 2.3 (pvr 004e 1203)\n\nprocessor\t: 1\ncpu\t\t: POWER9 (architected), altivec supported\nrevision\t: 2.3 (pvr 004e 1203)\n\ntimebase\t: 512000000\nplatform\t: pSeries\nmodel\t\t: IBM,9009-42A\nmachine\t\t: CHRP IBM,9009-42A\n": {PVR: 0x4e},
		"processor\t: 0\ncpu\t\t: POWER9, altivec supported\nrevision\t: 2.2 (pvr 004e 1202)\n\nprocessor\t: 1\ncpu\t\t: POWER10 (raw), altivec supported\nrevision\t: 2.0 (pvr 0080 0200)\n":                                                                                                                                                        {PVR: 0x4e, Mixed: true},
		"hart\t: 0\nisa\t: rv64\n":        {},
		"processor\t: 0\nrevision\t: 3\n": {},
	} {
		if cpu, err := ParseCPUInfo([]byte(text)); err != nil || cpu != want {
			t.Errorf("cpuinfo %q: %+v, %v", text, cpu, err)
		}
	}
	if _, err := ParseCPUInfo([]byte("CPU part\t: 0xz\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a part that is none: %v", err)
	}
	if _, err := ParseCPUInfo([]byte("revision\t: 2.2 (pvr zzzz 1202)\n")); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a PVR that is none: %v", err)
	}
	if m, err := ParseMIDR([]byte("0x00000000410fd0c1\n")); err != nil || m != (event.CPU{Implementer: 0x41, Part: 0xd0c}) {
		t.Errorf("MIDR: %+v, %v", m, err)
	}
	cg, err := ParsePIDCgroup([]byte("3:cpuset:/demo/a\n1:name=systemd:/\n0::/b:c\n"))
	if err != nil || !reflect.DeepEqual(cg, []Membership{{"cpuset", "/demo/a"}, {"name=systemd", "/"}, {"", "/b:c"}}) {
		t.Errorf("cgroup: %+v, %v", cg, err)
	}
	pids, err := AppendPIDs([]int{9}, []byte("1\n0\n22\n"))
	if err != nil || !reflect.DeepEqual(pids, []int{9, 1, 22}) {
		t.Errorf("pids: %v, %v", pids, err)
	}
	if pids, err := AppendPIDs([]int{9}, []byte("1\nx\n")); err == nil || len(pids) != 1 {
		t.Errorf("bad pids: %v, %v", pids, err)
	}
}

// Every parser: no panic, and an error comes with the zero value.
func FuzzParsers(f *testing.F) {
	for _, seed := range []string{statLine, "cpu0 1 2 3 40 5 6 7 8\n", "1000 prefer (many):0 N0=1 anon=1\n", "1000-2000 rw-p\n",
		"34 31 0:31 / /x rw - cgroup cgroup rw,cpuset\n", "Node 0 MemFree: 12 kB\n", "vendor_id : GenuineIntel\nmodel : 85\n", "CPU implementer : 0x41\nCPU part : 0xd0c\n", "revision\t: 2.2 (pvr 004e 1202)\n", "0x410fd0c1\n", "3:cpuset:/a\n", "1\n2\n",
		zoneinfo, interrupts, "numa_hit 5\nnuma_miss 0\n", "numa_hint_faults 3\n", "Cpus_allowed_list:\t0-3\nUid:\t0\t0\t0\t0\n", "SwapFree: 3 kB\n",
		"1183938 18217 12\n", smapsAreas, "cpu  1 2 3 4 5 6 7 8 9 0\n", "559f03f63000-559f03f65000 r--p 00001000 fe:00 247278   /usr/bin/head\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, "stat", ParseStat, data)
		check(t, "task stat", ParseTaskStat, data)
		check(t, "numa_maps", parseNumaMaps, data)
		check(t, "mountinfo", ParseMountinfo, data)
		check(t, "meminfo", ParseNodeMeminfo, data)
		check(t, "cpuinfo", ParseCPUInfo, data)
		check(t, "midr", ParseMIDR, data)
		check(t, "cgroup", ParsePIDCgroup, data)
		check(t, "areas", ParseAreas, data)
		check(t, "swap", ParseSwap, data)
		check(t, "mapped", func(d []byte) (uint64, error) { return 0, eachMapped(d, func(uint64, uint64, bool) {}) }, data)
		check(t, "vmstat", ParseVmstat, data)
		check(t, "numastat", ParseNumastat, data)
		check(t, "zoneinfo", ParseZoneinfo, data)
		check(t, "interrupts", ParseInterrupts, data)
		check(t, "status", ParseTaskStatus, data)
		check(t, "statm", ParseStatm, data)
		check(t, "schedstat", func(d []byte) ([2]time.Duration, error) {
			ran, waited, err := ParseSchedstat(d)
			return [2]time.Duration{ran, waited}, err
		}, data)
		check(t, "count", func(d []byte) (uint64, error) { return ParseCount("x", d) }, data)
		check(t, "stat's sum", ParseStatBusy, data)
		check(t, "smaps", parseSmaps, data)
		ParseModelName(data)
		ParseHypervisorFlag(data)
		TaskName(data)
		check(t, "pids", func(d []byte) ([]int, error) { return AppendPIDs(nil, d) }, data)
	})
}

func check[T any](t *testing.T, name string, parse func([]byte) (T, error), data []byte) {
	t.Helper()
	v, err := parse(data)
	if err == nil {
		return
	}
	if !errors.Is(err, unix.ErrMalformed) || !reflect.ValueOf(&v).Elem().IsZero() {
		t.Fatalf("%s of %q: %v, %v", name, data, v, err)
	}
}

const zoneinfo = `Node 0, zone      DMA
  per-node stats
      nr_inactive_anon 2012
  pages free     3840
        boost    0
        min      5
        low      10
        high     15
  pagesets
    cpu: 0
              count:    0
              high:     0
Node 1, zone   Normal
  pages free     1726313
        low      19810
Node 1, zone  Movable
        low      7
`

const interrupts = `           CPU0       CPU2
  1:          0          9   IO-APIC   1-edge      i8042
125:   12345678          0   IR-PCI-MSI 524288-edge      nvme0q0
NMI:          0          0   Non-maskable interrupts
ERR:          0
`

func TestDecodeZoneinfo(t *testing.T) {
	got, err := ParseZoneinfo([]byte(zoneinfo))
	if want := map[int]uint64{0: 10, 1: 19817}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"low 5\n", "Node x, zone DMA\n", "Node 0, zone DMA\n low -1\n", "Node 0"} {
		if got, err := ParseZoneinfo([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != nil {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

func TestDecodeStatBusy(t *testing.T) {
	for text, want := range map[string]uint64{"cpu  10 20 30 1000 500 1 2 4 9 9\ncpu0 1 1 1 1 1 1 1\n": 67, "cpu 1 1 1 1 1 1 1": 5} {
		if got, err := ParseStatBusy([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "cpu0 1 1 1 1 1 1 1\n", "cpu 1 1\n", "cpu 1 1 1 1 1 1 1 x\n"} {
		if got, err := ParseStatBusy([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != 0 {
			t.Errorf("%q: %d, %v", bad, got, err)
		}
	}
}

func TestDecodeModelName(t *testing.T) {
	if got := ParseModelName([]byte("processor\t: 0\nmodel\t\t: 85\nmodel name\t: Xeon(R) Gold 6148\n")); got != "Xeon(R) Gold 6148" {
		t.Errorf("%q", got)
	}
	if got := ParseModelName([]byte("processor\t: 0\nCPU implementer\t: 0x41\n")); got != "" {
		t.Errorf("arm: %q", got)
	}
}

func TestDecodeInterrupts(t *testing.T) {
	got, err := ParseInterrupts([]byte(interrupts))
	want := Interrupts{CPUs: []int{0, 2}, IRQs: []Interrupt{{"1", "IO-APIC 1-edge i8042", []uint64{0, 9}}, {"125", "IR-PCI-MSI 524288-edge nvme0q0", []uint64{12345678, 0}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"\n", "CPUx\n", " CPU0 CPU1\n 1: 5\n", " CPU0\n 1: x\n", " CPU0\n cut"} {
		if got, err := ParseInterrupts([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || !reflect.DeepEqual(got, Interrupts{}) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// All that a line can hold, and the line of a fold of a process with 500 lines.
func TestDecodeNumaLine(t *testing.T) {
	var l NumaLine
	line := "7f3c80000000 weighted interleave:0-1 file=/a\\040b\\040(deleted) huge anon=1 dirty=2 mapped=3 mapmax=4 swapcache=5 active=0 writeback=1 N0=1 N31=2 kernelpagesize_kB=1048576"
	line = strings.ReplaceAll(line, `\\`, `\`)
	if err := l.Parse(1, []byte(line)); err != nil {
		t.Fatal(err)
	}
	if l.Start != 0x7f3c80000000 || string(l.Policy) != "weighted interleave:0-1" || l.Path() != "/a b (deleted)" || !l.Huge || l.Heap || l.Stack ||
		l.PageSize != 1<<30 || l.Anon != 1 || l.Dirty != 2 || l.MapMax != 4 || !reflect.DeepEqual(l.Nodes, []NodePages{{0, 1}, {31, 2}}) {
		t.Errorf("%+v", l)
	}
	if err := l.Parse(2, []byte("1000 default heap")); err != nil || !l.Heap || l.File != nil || len(l.Nodes) != 0 || l.PageSize != 4096 {
		t.Errorf("the next line: %+v, %v", l, err)
	}
	for _, bad := range []string{"", " ", "1000", "1000 ", "x default", "1000 default anon=", "1000 default anon=1x", "1000 default N0", "1000 default N=1", "1000 default N0=",
		"1000 default N0=1=2", "1000 default N99999=1", "1000 default N0=99999999999999", "1000 default kernelpagesize_kB=0", "11112222333344445 default"} {
		if err := l.Parse(7, []byte(bad)); !errors.Is(err, unix.ErrMalformed) || !reflect.DeepEqual(l, NumaLine{}) || !strings.Contains(err.Error(), "line 7") {
			t.Errorf("%q: %+v, %v", bad, l, err)
		}
	}
}

// The kernel's own file is read without an error.
func TestNumaMapsLive(t *testing.T) {
	data, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		t.Skipf("this kernel has no numa_maps: %v", err)
	}
	all, err := parseNumaMaps(data)
	pages := uint64(0)
	for _, v := range all {
		pages += v.Pages()
	}
	if err != nil || pages == 0 {
		t.Errorf("%d mappings, %d pages, %v", len(all), pages, err)
	}
}

func TestDecodeStatus(t *testing.T) {
	s, err := ParseTaskStatus([]byte("Name:\tx y\nTgid:\t41\nUid:\t1000\t1001\t0\t0\nVmSwap:\t      12 kB\nCapEff:\t0000000000880000\nCpus_allowed_list:\t0-1,4\nMems_allowed_list:\t0\n"))
	if err != nil || s.Process.Or(0) != 41 || s.Caps.Or(0) != CapNice|CapPtrace || s.CPUs.String() != "0-1,4" || s.Mems.String() != "0" || s.UID.Or(-1) != 1001 || s.Swap.Or(0) != 12*unit.KiB {
		t.Errorf("%+v, %v", s, err)
	}
	if n, err := ParseStatm([]byte("1234 560 400 10 0 200 0\n")); err != nil || n != 560 {
		t.Errorf("statm: %d, %v", n, err)
	}
	if !ParseHypervisorFlag([]byte("processor\t: 0\nflags\t\t: fpu hypervisor\n")).Or(false) || ParseHypervisorFlag([]byte("flags : fpu vmx\n")).Or(true) ||
		ParseHypervisorFlag([]byte("Features : fp asimd\n")).Known() {
		t.Error("hypervisor flag")
	}
}

func TestSchedstatAndAreas(t *testing.T) {
	if ran, waited, err := ParseSchedstat([]byte("1183938 18217 12\n")); err != nil || ran != 1183938 || waited != 18217 {
		t.Errorf("%v, %v, %v", ran, waited, err)
	}
	if _, _, err := ParseSchedstat([]byte("1183938\n")); !errors.Is(err, unix.ErrMalformed) {
		t.Errorf("one field: %v", err)
	}
	got, err := ParseAreas([]byte("559f03f63000-559f03f65000 r--p 00001000 fe:00 247278   /usr/bin/a\\040b (deleted)\n7f0000000000-7f0000001000 rw-s 00000000 00:00 0 \n"))
	want := []Area{
		{Range{0x559f03f63000, 0x559f03f65000}, "r--p", 0x1000, 0xfe00, 247278, "/usr/bin/a\\040b (deleted)"},
		{Range{0x7f0000000000, 0x7f0000001000}, "rw-s", 0, 0, 0, ""},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"1000-2000 r--p 0 fe00 1\n", "1000-2000 r--p 0 fe:x 1\n", "1000-2000 r--p 0 fe:00 18446744073709551616\n", "1000-2000 r--p 0 fe:00\n", "2000-1000 r--p 0 fe:00 1\n"} {
		if got, err := ParseAreas([]byte(bad)); !errors.Is(err, unix.ErrMalformed) || got != nil {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// eachMapped, parseNumaMaps and parseSmaps are ReadMapped, ReadNumaMaps and ReadSmaps of a
// text.
func eachMapped(data []byte, each func(dev, inode uint64, sysV bool)) error {
	for n, line := range lines(data) {
		if err := mapped(n, line, each); err != nil {
			return err
		}
	}
	return nil
}

func parseNumaMaps(data []byte) (all []VMA, err error) {
	var l NumaLine
	for n, line := range lines(data) {
		if err := l.Parse(n, line); err != nil {
			return nil, err
		}
		v := l.VMA()
		v.Nodes = slices.Clone(v.Nodes)
		all = append(all, v)
	}
	return all, nil
}

func parseSmaps(data []byte) ([]SmapsArea, error) {
	var p smapsParser
	for n, line := range lines(data) {
		if err := p.line(n, line); err != nil {
			return nil, err
		}
	}
	return p.end()
}

func TestEachMapped(t *testing.T) {
	var got []uint64
	err := eachMapped([]byte("559f03f63000-559f03f65000 r--p 00001000 fe:00 247278   /usr/bin/a\\040b (deleted)\n7f0000000000-7f0000001000 rw-s 00000000 00:00 0 \n"+
		"7f0000001000-7f0000002000 rw-s 00000000 103:1ab 18446744073709551615 \n"+
		"7f0000002000-7f0000003000 rw-s 00000000 00:01 0                          /SYSV00000000 (deleted)\n"), func(dev, inode uint64, sysV bool) {
		if got = append(got, dev, inode); sysV {
			got = append(got, 7777)
		}
	})
	if want := []uint64{0xfe00, 247278, 0x1103ab, 1<<64 - 1, 1, 0, 7777}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%#x, %v", got, err)
	}
}
