// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// withoutRegisters is a hypervisor that hides OFFCORE_RSP: the kernel refuses events that
// need it (x86_pmu_extra_regs).
func withoutRegisters(attr *sys.PerfEventAttr, _ int) error {
	if attr.Type == sys.PERF_TYPE_RAW && attr.Ext1 != 0 {
		return sys.ENXIO
	}
	return nil
}

// The register's value reaches the kernel, for cgroups and for threads; a guest without
// the register counts retired loads instead, and its sources say so.
func TestReadsToCore(t *testing.T) {
	for _, c := range []struct {
		refuse        func(*sys.PerfEventAttr, int) error
		local, remote [2]uint64 // config, config1
		from          string
	}{
		{nil, [2]uint64{0x12a, 0x104004477}, [2]uint64{0x12a, 0x738004477}, "perf cpu/config=0x12a,config1=0x104004477/"},
		{withoutRegisters, [2]uint64{0x1d3, 0}, [2]uint64{0x2d3, 0}, "perf r01d3"},
	} {
		table := Detect(kerneltest.Tree(t, kerneltest.CPUTree("sapphire-rapids")))
		f := newFake()
		var attrs []sys.PerfEventAttr
		f.refuse = func(attr *sys.PerfEventAttr, cpu int) error {
			if c.refuse != nil && c.refuse(attr, cpu) != nil {
				attrs = nil // the whole group is closed again
				return c.refuse(attr, cpu)
			}
			attrs = append(attrs, *attr)
			return nil
		}
		g, err := NewMeter(f, Config{Table: table}, 4096).Open("/x", []int{0}, true)
		if err != nil || len(attrs) != 6 || len(f.open) != 6 {
			t.Fatalf("%v: %d events, %d open, %v", c.from, len(attrs), len(f.open), err)
		}
		if l, r := attrs[3], attrs[4]; [2]uint64{l.Config, l.Ext1} != c.local || [2]uint64{r.Config, r.Ext1} != c.remote {
			t.Errorf("%s: %#x %#x, %#x %#x", c.from, l.Config, l.Ext1, r.Config, r.Ext1)
		}
		if how, from := table.SourceOf(g.Events(), LocalLoads); how != unit.HowMeasured || from != c.from {
			t.Errorf("%v %q, want %q", how, from, c.from)
		}

		tasks := &registerTasks{newTasks(6), c.refuse}
		m := NewTaskMeter(tasks, Config{Table: table}, 10000, 0)
		if _, err := m.Open(1); err != nil || m.from[LocalLoads] != c.from || m.WhyNot(LocalLoads) != "" {
			t.Errorf("of a thread: %q, %v; want %q", m.from[LocalLoads], err, c.from)
		}
	}
}

// What is counted beside a window's fields stays where only the register is missing, and
// goes first where there is no room.
func TestFewerWithoutRegisters(t *testing.T) {
	table := Named("intel-icx").WithPenalty()
	var got []string
	for _, list := range table.Fewer() {
		names := ""
		for _, e := range list {
			names += fmt.Sprintf("%d:%x ", e.Field, e.Config)
		}
		got = append(got, strings.TrimSpace(names))
	}
	want := []string{
		"0:0 1:1 2:140014a3 3:1b7 4:1b7 8:8b0 10:1000860", "0:0 1:1 2:140014a3 3:1d3 4:2d3 8:8b0 10:1000860",
		"0:0 1:1 2:140014a3 3:1b7 4:1b7", "0:0 1:1 2:140014a3 3:1d3 4:2d3", "0:0 1:1", "",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if lists := Lab().Fewer(); len(lists) != 3 {
		t.Errorf("the lab's: %v", lists)
	}
}

type registerTasks struct {
	*fakeTasks
	also func(*sys.PerfEventAttr, int) error
}

func (f *registerTasks) OpenInGroup(attr *sys.PerfEventAttr, tid, group int) (int, error) {
	if f.also != nil {
		if err := f.also(attr, tid); err != nil {
			return 0, err
		}
	}
	return f.fakeTasks.OpenInGroup(attr, tid, group)
}

// clustered is twoPackages with two nodes in each package.
func clustered() machine.Machine {
	m := twoPackages()
	m.Nodes = nil
	for n := range 4 {
		m.Nodes = append(m.Nodes, machine.Node{ID: n, CPUs: set.FromCPUs(n), Memory: unit.Some(unit.GiB)})
		m.CPUs[n].Node = unit.Some(n)
	}
	return m
}

// Where a package has several nodes, a ratio that is of the package, or may be, says so.
func TestSubNUMAClustering(t *testing.T) {
	for _, c := range []struct {
		table string
		plain bool
		doubt string
	}{
		{"intel-skx", false, "is not known"}, {"intel-icx", false, ""}, {"intel-icx", true, "is not known"},
		{"intel-gnr", false, ""}, {"intel-gnr", true, "the package here, not the node"}, {"amd-zen2", false, "is not known"}, {"amd-zen4", false, ""}, {"lab", false, ""},
	} {
		for _, m := range []machine.Machine{twoPackages(), clustered()} {
			table := Named(c.table).On(m)
			table.plain = c.plain
			table = table.With(WindowFields)
			for _, f := range []Field{LocalLoads, RemoteLoads} {
				_, from := table.Source(f)
				doubted := strings.Contains(from, "(") && !strings.Contains(from, "(lab)")
				if want := c.doubt != "" && len(m.Nodes) == 4; doubted != want || want && !strings.Contains(from, c.doubt) {
					t.Errorf("%s, plain %v, %d nodes: %q", c.table, c.plain, len(m.Nodes), from)
				}
			}
			if _, from := table.Source(Cycles); strings.Contains(from, "node") {
				t.Errorf("cycles: %q", from)
			}
		}
	}
}

// fill gives every opened event of a kind of attr a count.
func fill(f *fakeUncore, counts map[uint64]uint64) {
	for config, n := range counts {
		f.count[config] = [3]uint64{n, 10, 10}
	}
}

// Every CPU's memory controllers, by the codes of its table: also those that sysfs names
// only in part, or not at all.
func TestControllersOfCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		counts map[uint64]uint64 // by config, of each controller
		want   ControllerSums    // of each node
		from   string
	}{
		"ice-lake":        {map[uint64]uint64{0x0f04: 100, 0x3004: 30}, ControllerSums{Reads: 200, Writes: 60, KnownReads: true, KnownWrites: true}, "perf uncore_imc/cas_count_read/"},
		"sapphire-rapids": {map[uint64]uint64{0xcf05: 100, 0xf005: 30}, ControllerSums{Reads: 200, Writes: 60, KnownReads: true, KnownWrites: true}, "perf uncore_imc/UNC_M_CAS_COUNT.RD/"},
		"emerald-rapids":  {map[uint64]uint64{0xcf05: 100, 0xf005: 30}, ControllerSums{Reads: 100, Writes: 30, KnownReads: true, KnownWrites: true}, "perf uncore_imc/UNC_M_CAS_COUNT.RD/"},
		"granite-rapids":  {map[uint64]uint64{0xcf05: 100, 0xcf06: 7, 0xf005: 30, 0xf006: 5}, ControllerSums{Reads: 214, Writes: 70, KnownReads: true, KnownWrites: true}, "perf uncore_imc/UNC_M_CAS_COUNT_SCH0.RD + UNC_M_CAS_COUNT_SCH1.RD/"},
		"zen-4":           {map[uint64]uint64{0x010a: 100, 0x020a: 30}, ControllerSums{Reads: 100, Writes: 30, KnownReads: true, KnownWrites: true}, "perf amd_umc/umc_cas_cmd.rd/"},
		"neoverse-n2":     {map[uint64]uint64{0xd0005: 100}, ControllerSums{All: 100, KnownAll: true}, "perf arm_cmn/hnf_mc_reqs/"},
		"grace":           {map[uint64]uint64{0x1a5: 100, 0x1db: 6400}, ControllerSums{Reads: 50, Writes: 100, KnownReads: true, KnownWrites: true}, "perf nvidia_scf_pmu/cmem_rd_data/"},
	} {
		f := newUncore()
		fill(f, map[uint64]uint64{0: 9}) // clockticks
		fill(f, c.counts)
		m, err := OpenControllers(f, kerneltest.Tree(t, kerneltest.CPUTree(name)), twoPackages())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := m.Read(2)
		if err != nil || len(got) != 2 {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		got[0].Ticks, got[1].Ticks = 0, 0
		if got[0] != c.want || got[1] != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		kind := ControllerReads
		if c.want.KnownAll {
			kind = ControllerAll
		}
		if from := m.From(kind); from != c.from {
			t.Errorf("%s: %q, want %q", name, from, c.from)
		}
		for _, attr := range f.attrs {
			if attr.Type == 40 {
				t.Errorf("%s: a free-running counter was opened: %+v", name, attr)
			}
		}
	}
}

// The data fabric of Zen 2 has eight channels and four counters: what shared one is
// scaled, and reads are not told from writes.
func TestDataFabric(t *testing.T) {
	f := newUncore()
	for channel := range uint64(8) {
		event := 0x07 + channel<<6
		f.count[event&0xff|0x38<<8|event>>8<<32] = [3]uint64{10, 10, 5}
	}
	m, err := OpenControllers(f, kerneltest.Tree(t, kerneltest.CPUTree("zen-2")), twoPackages())
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Read(2)
	if want := (ControllerSums{All: 160, KnownAll: true}); err != nil || got[0] != want || got[1] != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

// A mesh whose place the firmware does not tell names CPU 0: all of it would be node 0's.
func TestControllersWithoutAPlace(t *testing.T) {
	f := newUncore()
	_, err := OpenControllers(f, kerneltest.Tree(t, kerneltest.CPUTree("neoverse-n2-unplaced")), twoPackages())
	if !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "node 1") || len(f.open) != 0 {
		t.Errorf("%v, open %v", err, f.open)
	}
	_, err = OpenControllers(newUncore(), kerneltest.Tree(t, kerneltest.CPUTree("zen-4-guest")), twoPackages())
	if !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "no amd_umc PMU") {
		t.Errorf("a guest: %v", err)
	}
}

// Memory of Grace's GPUs is on nodes without CPUs, and the fabric does not count it: the
// other nodes' counts are theirs all the same.
func TestFabricBesideOtherMemory(t *testing.T) {
	far := twoPackages()
	far.Nodes = append(far.Nodes, machine.Node{ID: 2, Memory: unit.Some(unit.GiB)})
	f := newUncore()
	fill(f, map[uint64]uint64{0x1a5: 100, 0x1db: 6400})
	m, err := OpenControllers(f, kerneltest.Tree(t, kerneltest.CPUTree("grace")), far)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Read(3)
	if err != nil || !got[0].KnownReads || !got[1].KnownReads || got[2] != (ControllerSums{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// One of a controller's two subchannels that found no counter makes its sum unknown.
func TestHalfOfAController(t *testing.T) {
	f := newUncore()
	fill(f, map[uint64]uint64{0xcf05: 100, 0xf005: 30, 0xf006: 5})
	f.count[0xcf06] = [3]uint64{0, 10, 0}
	m, err := OpenControllers(f, kerneltest.Tree(t, kerneltest.CPUTree("granite-rapids")), twoPackages())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Read(2); err != nil || got[0].KnownReads || got[0].Why == nil || !strings.Contains(got[0].Why.Error(), "SCH1") {
		t.Errorf("%+v, %v", got, err)
	}
}

// inClusters has two packages of so many nodes; one CPU each.
func inClusters(nodes int) machine.Machine {
	m := machine.Machine{Packages: make([]set.CPUSet, 2)}
	for i := range 2 * nodes {
		// CPUs 0 and 2 are those that the PMUs' cpumask names.
		p := i % 2
		cpu := 2*p + i/2*4
		m.Packages[p] = m.Packages[p].With(cpu)
		m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Online: true, Package: unit.Some(p)})
		m.Nodes = append(m.Nodes, machine.Node{ID: p*nodes + i/2, CPUs: set.FromCPUs(cpu), Memory: unit.Some(unit.GiB)})
	}
	slices.SortFunc(m.CPUs, func(a, b machine.CPU) int { return a.ID - b.ID })
	slices.SortFunc(m.Nodes, func(a, b machine.Node) int { return a.ID - b.ID })
	return m
}

// With sub-NUMA clustering, each node has the controllers that Linux's perf says are its own;
// another number of controllers than that mapping knows is refused.
func TestControllersOfClusters(t *testing.T) {
	for _, c := range []struct {
		cpu   string
		nodes int
		of    []int // 0: unknown
	}{
		{"granite-rapids-8", 2, []int{1, 1, 0, 0, 1, 1, 0, 0}},
		{"granite-rapids-12", 3, []int{1, 1, 0, 0, 2, 2, 1, 1, 0, 0, 2, 2}},
		{"granite-rapids-12", 1, make([]int, 12)},
		{"granite-rapids-12", 2, nil}, {"granite-rapids-8", 3, nil}, {"granite-rapids-8", 4, nil}, {"sapphire-rapids", 2, nil},
	} {
		f, m := newUncore(), inClusters(c.nodes)
		opened := map[int]int{} // by the index of the node
		got, err := OpenControllers(f, kerneltest.Tree(t, kerneltest.CPUTree(c.cpu)), m)
		if c.of == nil {
			if !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "several nodes") {
				t.Errorf("%s, %d nodes: %v", c.cpu, c.nodes, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s, %d nodes: %v", c.cpu, c.nodes, err)
			continue
		}
		want := map[int]int{}
		for _, cluster := range c.of {
			want[cluster]++
			want[c.nodes+cluster]++
		}
		for node, n := range got.units {
			opened[node] = n
		}
		if !maps.Equal(opened, want) {
			t.Errorf("%s, %d nodes: controllers by node %v, want %v", c.cpu, c.nodes, opened, want)
		}
		for number, cluster := range c.of {
			if at, err := got.nodeOf(m, 2, fmt.Sprintf("uncore_imc_%d", number), len(c.of)); err != nil || at != c.nodes+cluster {
				t.Errorf("%s, %d nodes: controller %d of package 1 is of node %d, want %d (%v)", c.cpu, c.nodes, number, at, c.nodes+cluster, err)
			}
		}
	}
}
