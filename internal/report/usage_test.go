// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"homenode/internal/golden"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

func known[T any](v T) unit.Value[T] { return unit.Measured(v, "a test") }

func counted(n uint64) unit.Value[uint64] { return known(n) }

// fake is a machine with nodes of 4 CPUs and 64 GiB, watched for 2 s.
func fake(nodes int) snapshot.Snapshot {
	s := snapshot.Snapshot{Schema: snapshot.Schema, Length: 2 * time.Second, Hypervisor: known("")}
	s.Window.Length = s.Length
	for i := range nodes {
		cpus := set.FromCPUs(4*i, 4*i+1, 4*i+2, 4*i+3)
		s.Machine.Nodes = append(s.Machine.Nodes, machine.Node{ID: i, CPUs: cpus})
		for cpu := range cpus.All() {
			s.Machine.CPUs = append(s.Machine.CPUs, machine.CPU{ID: cpu, Online: true, Node: unit.Some(i)})
		}
		s.Window.Nodes = append(s.Window.Nodes, window.Node{ID: i, CPUs: cpus, CPUBusy: known(1.25 * float64(i))})
		s.Nodes = append(s.Nodes, fakeNode(i))
	}
	s.Balancing = snapshot.Balancing{Mode: known(1), PTEUpdates: counted(9), HintFaults: counted(2468), HintLocal: counted(1234), PagesMigrated: counted(25), MigrateFailed: counted(0)}
	s.Settings = snapshot.Settings{ZoneReclaim: known(0), THP: known("madvise"), SwapTotal: known(8 * unit.GiB), SwapFree: known(8 * unit.GiB)}
	s.Window.Workloads = []window.Workload{fakeWorkload(nodes, "/demo/a", 1), fakeWorkload(nodes, "/system.slice/a-service-with-a-rather-long-name@instance-1.service", 9), {ID: "/new", Owner: "none"}}
	for i, wl := range s.Window.Workloads {
		s.Groups = append(s.Groups, fakeGroup(nodes, wl, i == 0))
	}
	return s
}

func fakeNode(i int) snapshot.Node {
	g := func(mib int) unit.Value[unit.Bytes] { return known(unit.Bytes(mib) * unit.MiB) }
	n := snapshot.Node{ID: i, Memory: snapshot.Kinds{Total: g(65536), Free: g(10240), Anon: g(30720), File: g(20480), Shmem: g(512), Slab: g(1024), Kernel: g(96),
		Huge: g(2048 * i), Other: g(416), AnonHuge: g(10240), Dirty: g(3)}}
	n.Numastat = snapshot.Numastat{Hit: counted(1234567), Miss: counted(uint64(i) * 3), Foreign: counted(0), InterleaveHit: counted(1), LocalNode: counted(1234560), OtherNode: counted(7)}
	if i == 1 {
		n.Pools = []snapshot.HugePool{{PageSize: 2 * unit.MiB, Total: counted(1024), Free: counted(1000), Surplus: counted(0)}, {PageSize: unit.GiB, Total: counted(0), Free: counted(0), Surplus: counted(0)}}
		n.Memory.Kernel, n.Memory.Other = unit.UnknownValue[unit.Bytes]("x"), unit.UnknownValue[unit.Bytes]("x")
		n.Numastat.OtherNode = unit.UnknownValue[uint64]("x")
	}
	return n
}

func fakeWorkload(nodes int, id string, n int) window.Workload {
	wl := window.Workload{ID: id, Owner: "none", Tasks: known(12), CPU: known(2.5), Quota: unit.UnknownValue[float64]("no limit is set")}
	for i := range nodes {
		wl.CPUByNode = append(wl.CPUByNode, unit.Estimated(float64((i+n)%3), "threads"))
		wl.AnonByNode = append(wl.AnonByNode, known(unit.Bytes((i+n)%3*100)*unit.MiB))
		wl.FileByNode = append(wl.FileByNode, known(unit.Bytes(n)*unit.MiB))
	}
	wl.Binding = window.Binding{CPUs: set.FromCPUs(0, 1, 2, 3), Mems: set.FromNodes(0), PinnedCPUs: n == 1, PinnedWhy: "its own cpuset.cpus is 0-3"}
	return wl
}

func fakeGroup(nodes int, wl window.Workload, v2 bool) snapshot.Group {
	g := snapshot.Group{ID: wl.ID, MemoryLimit: unit.UnknownValue[unit.Bytes]("no limit is set"), MemoryUsed: known(300 * unit.MiB), OOMKills: counted(0)}
	for i := range min(nodes, len(wl.AnonByNode)) {
		m := snapshot.GroupMemory{Anon: wl.AnonByNode[i], File: wl.FileByNode[i]}
		if v2 {
			m.Shmem, m.Slab, m.Kernel, m.Huge = known(unit.MiB), known(unit.Bytes(0)), known(64*unit.KiB), known(24*unit.MiB)
			g.MemoryLimit = unit.Measured(unit.GiB, "/demo/memory.max")
		}
		g.Memory = append(g.Memory, m)
	}
	return g
}

func fakeProcess(nodes, pid int, name string, scale unit.Bytes) snapshot.Process {
	p := snapshot.Process{PID: pid, Name: name, Resident: 1234}
	for k := range p.ByKind {
		p.ByKind[k] = make([]unit.Bytes, nodes)
		p.ByKind[k][k%nodes] = scale * unit.Bytes(k+1) * unit.MiB
	}
	p.ByKind[snapshot.Stack] = make([]unit.Bytes, nodes)
	p.ByKind[snapshot.Heap][nodes-1] += 20 * unit.KiB
	by := make([]unit.Bytes, nodes)
	by[0] = 5 * unit.MiB
	p.Mappings = []snapshot.Mapping{
		{Start: 0x55d000, Kind: snapshot.Heap, Policy: "default", ByNode: p.ByKind[snapshot.Heap]},
		{Start: 0x7f3c80000000, Kind: snapshot.Huge, Policy: "weighted interleave:0-1", ByNode: p.ByKind[snapshot.Huge]},
		{Start: 0x7f3c90000000, Kind: snapshot.File, Path: "/usr/lib/some/very/long/path/to/a/library/that/does/not/fit/libevil\x1b[31m.so", Policy: "default", ByNode: by, Mappers: 18},
	}
	return p
}

func processes(nodes int, all ...snapshot.Process) snapshot.Snapshot {
	s := fake(nodes)
	s.Processes = all
	return s
}

// The goldens are what a person sees: on a narrow and on a usual terminal, with and
// without block characters, on two nodes, one and many.
func TestUsageGolden(t *testing.T) {
	running := fakeProcess(2, 7, "qemu-system-x86", 3)
	running.CPUByNode = []unit.Value[float64]{unit.Estimated(0.5, "x"), unit.Estimated(1.5, "x")}
	running.Threads, running.Allowed, running.Mems = make([]snapshot.Thread, 3), set.FromCPUs(0, 1), set.FromNodes(0)
	running.Workload, running.Guest = "/machine/vm", &snapshot.Guest{VCPUs: 2, Nodes: known(1)}
	hidden := snapshot.Process{PID: 9, Name: "secret", MemoryHow: "process 9 (secret) belongs to root"}
	long := processes(2, fakeProcess(2, 12, "db", 1), hidden, fakeProcess(2, 345678, "a-name-of-15-ch", 999))
	long.Problems = []string{"process 9 (secret) belongs to root: reading its memory map needs CAP_SYS_PTRACE or that user"}
	for _, c := range []struct {
		name   string
		screen render.TextOptions
		print  func(io.Writer, render.TextOptions) error
	}{
		{"host-2-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error { return Host(w, fake(2), s) }},
		{"host-2-120", render.TextOptions{Width: 120, UTF8: true}, func(w io.Writer, s render.TextOptions) error { return Host(w, fake(2), s) }},
		{"host-1-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error { return Host(w, oneReading(fake(1)), s) }},
		{"host-8-80", render.TextOptions{Width: 80}, func(w io.Writer, s render.TextOptions) error { return Host(w, fake(8), s) }},
		{"workload-2-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error { return Workload(w, fake(2), "/demo/a", s) }},
		{"workload-v1-2-120", render.TextOptions{Width: 120, UTF8: true}, func(w io.Writer, s render.TextOptions) error {
			f := fake(2)
			return Workload(w, f, f.Window.Workloads[1].ID, s)
		}},
		{"process-2-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error { return Processes(w, processes(2, running), s) }},
		{"processes-2-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error { return Processes(w, long, s) }},
		{"processes-8-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error {
			return Processes(w, processes(8, fakeProcess(8, 12, "db", 1), fakeProcess(8, 13, "web", 2)), s)
		}},
		{"maps-2-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error {
			return Maps(w, processes(2, fakeProcess(2, 12, "db", 1)), 2, s)
		}},
		{"maps-2-120", render.TextOptions{Width: 120, UTF8: true}, func(w io.Writer, s render.TextOptions) error {
			return Maps(w, processes(2, fakeProcess(2, 12, "db", 1)), 10, s)
		}},
		{"maps-2-80-ascii", render.TextOptions{Width: 80}, func(w io.Writer, s render.TextOptions) error {
			return Maps(w, processes(2, fakeProcess(2, 12, "db", 1)), 10, s)
		}},
		{"maps-8-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error {
			return Maps(w, processes(8, fakeProcess(8, 12, "db", 1)), 10, s)
		}},
		{"maps-1-80", render.TextOptions{Width: 80, UTF8: true}, func(w io.Writer, s render.TextOptions) error {
			return Maps(w, processes(1, fakeProcess(1, 12, "db", 1)), 10, s)
		}},
	} {
		var out bytes.Buffer
		if err := c.print(&out, c.screen); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		checkUsage(t, c.name, out.Bytes())
		for line := range strings.Lines(out.String()) {
			if n := render.Width(strings.TrimSuffix(line, "\n")); n > c.screen.Width {
				t.Errorf("%s: %d columns: %s", c.name, n, line)
			}
			if strings.ContainsRune(line, '\x1b') || !c.screen.UTF8 && strings.IndexFunc(line, func(r rune) bool { return r > 126 }) >= 0 {
				t.Errorf("%s: not fit for this screen: %q", c.name, line)
			}
		}
	}
}

func oneReading(s snapshot.Snapshot) snapshot.Snapshot {
	s.Length, s.Window.Length, s.Window.Workloads, s.Groups = 0, 0, nil, nil
	s.Balancing = snapshot.Balancing{Mode: unit.UnknownValue[int]("read /proc/sys/kernel/numa_balancing: no such file")}
	s.Hypervisor = known("QEMU")
	return s
}

func checkUsage(t *testing.T, name string, got []byte) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", "usage", name+".golden"), got)
}

// A bar of a small amount is visible, and no bar is longer than its room.
func TestBar(t *testing.T) {
	for _, ascii := range []bool{false, true} {
		p := newUsagePage(render.TextOptions{UTF8: !ascii})
		last := 0
		for part := range 101 {
			text := p.Bar(float64(part), 100, 10)
			n := render.Width(text)
			if (part == 0) != (n == 0) || n > 10 || n < last {
				t.Errorf("%d %%: %q", part, text)
			}
			last = n
		}
		if last != 10 {
			t.Errorf("the whole is %d columns", last)
		}
	}
}

// Unknown is never printed as a number.
func TestUnknownIsSaid(t *testing.T) {
	s := snapshot.Snapshot{Length: time.Second, Machine: machine.Machine{Nodes: make([]machine.Node, 2)}, Nodes: make([]snapshot.Node, 2)}
	var out bytes.Buffer
	if err := Host(&out, s, render.TextOptions{Width: 200, UTF8: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), unknown); n < 2*(11+6) {
		t.Errorf("unknown is said %d times in\n%s", n, out.String())
	}
	if err := Workload(io.Discard, s, "/x", render.TextOptions{}); err == nil || !strings.Contains(fmt.Sprint(err), "/x") {
		t.Errorf("a workload that is not there: %v", err)
	}
}
