// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// fakePerf counts as the test says; leaders are read by (cpu).
type fakePerf struct {
	next    int
	open    map[int]int // fd → cpu
	leaders map[int]int // cpu → fd
	refuse  func(attr *sys.PerfEventAttr, cpu int) error
	now     map[int]reading // by cpu, in the table's order of fields
}

func newFake() *fakePerf {
	return &fakePerf{next: 10, open: map[int]int{}, leaders: map[int]int{}, now: map[int]reading{}}
}

func (f *fakePerf) OpenDir(string) (int, error) { f.next++; f.open[f.next] = -1; return f.next, nil }
func (f *fakePerf) Close(fd int)                { delete(f.open, fd) }

func (f *fakePerf) Open(attr *sys.PerfEventAttr, _, cpu, group int) (int, error) {
	if f.refuse != nil {
		if err := f.refuse(attr, cpu); err != nil {
			return 0, err
		}
	}
	f.next++
	f.open[f.next] = cpu
	if group < 0 {
		f.leaders[cpu] = f.next
	}
	return f.next, nil
}

func (f *fakePerf) Read(fd int, words []uint64) (int, error) {
	r := f.now[f.open[fd]]
	words[0], words[1], words[2] = uint64(len(words)-3), r.enabled, r.running
	copy(words[3:], r.value[:])
	return len(words), nil
}

const ms = uint64(time.Millisecond)

func open(t *testing.T, f *fakePerf) *Group {
	t.Helper()
	g, err := NewMeter(f, Config{Table: Lab()}, 4096).Open("/x", []int{0, 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func sample(t *testing.T, g *Group, at time.Duration) Sample {
	t.Helper()
	s, err := g.Read(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The first time_enabled is up to the uptime: the first sample is a base, and a later
// jump (a cgroup that first runs on a CPU then) scales nothing.
func TestGarbageTimeEnabled(t *testing.T) {
	f := newFake()
	g := open(t, f)
	f.now[0] = reading{enabled: 1e15, running: 5, value: [nFields]uint64{7, 7}}
	if s := sample(t, g, 0); s.OK {
		t.Errorf("the first sample counts: %+v", s)
	}
	f.now[0] = reading{enabled: 1e15 + 10*ms, running: 5 + 10*ms, value: [nFields]uint64{107, 57}}
	f.now[1] = reading{enabled: 1e15, running: 20 * ms, value: [nFields]uint64{1000, 500, 0, 0, 0, 20 * ms}}
	s := sample(t, g, 100*time.Millisecond)
	if !s.OK || s.Total[Cycles] != 1100 || s.Total[Instructions] != 550 || s.Scaled != 1 || s.Doubt {
		t.Errorf("got %+v", s)
	}
	if len(s.ByCPU) != 2 || s.ByCPU[1] != (CPUClock{1, 20 * time.Millisecond}) {
		t.Errorf("clocks %v", s.ByCPU)
	}
	f.now[0] = reading{enabled: 3e15, running: 5 + 20*ms, value: [nFields]uint64{207, 57}}
	if s := sample(t, g, 200*time.Millisecond); !s.Doubt || s.Total[Cycles] != 100 {
		t.Errorf("without any believable time: %+v", s)
	}
}

func TestScaledByDeltas(t *testing.T) {
	f := newFake()
	g := open(t, f)
	f.now[0] = reading{enabled: 100 * ms, running: 100 * ms, value: [nFields]uint64{1000}}
	sample(t, g, 0)
	f.now[0] = reading{enabled: 180 * ms, running: 120 * ms, value: [nFields]uint64{1100}}
	s := sample(t, g, 100*time.Millisecond)
	if s.Total[Cycles] != 400 || s.Scaled != 4 || s.Lost != 0 {
		t.Errorf("got %+v", s)
	}
	f.now[1] = reading{enabled: 80 * ms}
	if s := sample(t, g, 200*time.Millisecond); s.Lost != 1 {
		t.Errorf("no room on the PMU: %+v", s)
	}
}

func TestFallsBackToWhatOpens(t *testing.T) {
	f := newFake()
	f.refuse = func(a *sys.PerfEventAttr, _ int) error {
		if a.Type == sys.PERF_TYPE_RAW {
			return sys.ENOENT
		}
		return nil
	}
	if g := open(t, f); g.Has(LocalLoads) || !g.Has(Cycles) || len(f.open) != 6 {
		t.Errorf("generic: %d open, %+v", len(f.open), g.events)
	}
	f = newFake()
	f.refuse = func(a *sys.PerfEventAttr, _ int) error {
		if a.Type != sys.PERF_TYPE_SOFTWARE {
			return sys.EOPNOTSUPP
		}
		return nil
	}
	if g := open(t, f); g.Has(Cycles) || !g.Has(Clock) || len(f.open) != 2 {
		t.Errorf("clock only: %d open", len(f.open))
	}
}

func TestRefusalsLeaveNothingOpen(t *testing.T) {
	for _, c := range []struct {
		err  error
		want error
		text string
	}{{sys.EACCES, unix.ErrNotPermitted, "CAP_PERFMON"}, {sys.EMFILE, sys.EMFILE, "cycles"}, {sys.ENOENT, sys.ENOENT, "task-clock"}} {
		f := newFake()
		f.refuse = func(_ *sys.PerfEventAttr, cpu int) error {
			if cpu == 1 {
				return c.err
			}
			return nil
		}
		_, err := NewMeter(f, Config{Table: Lab()}, 4096).Open("/x", []int{0, 1}, true)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || len(f.open) != 0 {
			t.Errorf("%v: %v, %d still open", c.err, err, len(f.open))
		}
	}
}

func TestBudgetOfDescriptors(t *testing.T) {
	f := newFake()
	m := NewMeter(f, Config{Table: Lab()}, spareFiles+12)
	g, err := m.Open("/x", []int{0, 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Open("/y", []int{0, 1}, true); !errors.Is(err, sys.EMFILE) || !strings.Contains(err.Error(), "LimitNOFILE") {
		t.Errorf("got %v", err)
	}
	g.Close()
	if _, err := m.Open("/y", []int{0, 1}, true); err != nil {
		t.Errorf("after closing: %v", err)
	}
}

func TestOfflineCPUIsLeftOut(t *testing.T) {
	f := newFake()
	f.refuse = func(_ *sys.PerfEventAttr, cpu int) error {
		if cpu == 1 {
			return sys.ENODEV
		}
		return nil
	}
	if g := open(t, f); len(g.cpus) != 1 {
		t.Errorf("%d CPUs", len(g.cpus))
	}
}

var intelSKX, intelSPR = Named("intel-skx"), Named("intel-spr")

const (
	identifier = "/sys/bus/event_source/devices/cpu/identifier"
	midrOf     = "/sys/devices/system/cpu/cpu%d/regs/identification/midr_el1"
	xeon       = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: %d\nmodel name\t: Xeon\nstepping\t: %d\n\nprocessor\t: 1\n"
	epyc       = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: EPYC\nstepping\t: 1\n"
	armCPU     = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: %#x\nCPU revision\t: 1\n\n"
)

// Every kind of CPU selects its table, from what its system shows.
func TestDetect(t *testing.T) {
	for _, c := range []struct {
		want  string
		files kerneltest.Files
	}{
		{"lab", kerneltest.Files{identifier: "homenode-lab v1\n", "/proc/cpuinfo": fmt.Sprintf(xeon, 0x8f, 8)}},
		{"intel-skx", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(xeon, 85, 4)}},
		{"intel-clx", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(xeon, 85, 7)}},
		{"intel-emr", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(xeon, 207, 2)}},
		{"amd-zen2", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(epyc, 23, 49)}},
		{"amd-zen4", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(epyc, 25, 17)}},
		{"arm-neoverse-n1", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(armCPU+armCPU, 0xd0c, 0xd0c)}},
		{"arm-neoverse-v2", kerneltest.Files{"/proc/cpuinfo": "processor\t: 0\n", fmt.Sprintf(midrOf, 0): "0x00000000410fd4f0\n", fmt.Sprintf(midrOf, 11): "0x00000000410fd4f0\n"}},
		{"arm-neoverse-n2", kerneltest.Files{fmt.Sprintf(midrOf, 0): "0x00000000410fd493\n"}},
		{"power9", kerneltest.CPUTree("power9")}, {"power10", kerneltest.CPUTree("power10")},
		{"amd-zen1", kerneltest.Files{"/proc/cpuinfo": strings.Replace(fmt.Sprintf(epyc, 24, 1), "AuthenticAMD", "HygonGenuine", 1)}},

		{"generic", kerneltest.Files{fmt.Sprintf(midrOf, 0): "0x00000000410fd493\n", fmt.Sprintf(midrOf, 1): "0x00000000410fd0c1\n"}},
		{"generic", kerneltest.Files{fmt.Sprintf(midrOf, 0): "0x00000000410fd493\n", fmt.Sprintf(midrOf, 1): "what\n"}},
		{"generic", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(armCPU+armCPU, 0xd0c, 0xd05)}},
		{"generic", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(xeon, 0xb7, 1)}},
		{"generic", kerneltest.Files{"/proc/cpuinfo": fmt.Sprintf(epyc, 25, 0x21)}},
		{"generic", kerneltest.Files{"/proc/cpuinfo": "vendor_id\t: GenuineIntel\ncpu family\t: six\n"}},
		{"generic", kerneltest.Files{}},
	} {
		if got := Detect(kerneltest.Tree(t, c.files)); got.Name != c.want {
			t.Errorf("%v: %s, want %s", c.files, got.Name, c.want)
		}
	}
}

func TestTables(t *testing.T) {
	if how, from := Lab().Source(LocalLoads); how != unit.HowModelled || from != "perf r01d3 (lab)" {
		t.Errorf("%v %s", how, from)
	}
	if how, _ := Lab().Source(Clock); how != unit.HowMeasured {
		t.Errorf("the guest kernel's clock is %v", how)
	}
	if e := intelSKX.Events[2]; e.Config != 0x140014a3 || !strings.Contains(e.Doc, "STALLS_MEM_ANY: intel/perfmon SKX") {
		t.Errorf("stalls %x, %s", e.Config, e.Doc)
	}
	if how, why := Generic().Source(LocalLoads); how != unit.HowUnknown || why != "no such event in the generic table" {
		t.Errorf("%v %s", how, why)
	}
	if how, why := Named("arm-neoverse-n1").Source(LocalLoads); how != unit.HowUnknown || !strings.Contains(why, "REMOTE_ACCESS") {
		t.Errorf("%v %s", how, why)
	}
	for _, known := range event.All() { // nothing is counted that was not requested
		for i, e := range tableOf(known).Events {
			if e.Field > RemoteLoads || i > 0 && e.Field < tableOf(known).Events[i-1].Field {
				t.Errorf("%s: event %d is of field %d", known.Name, i, e.Field)
			}
		}
	}
}

// The counted fields can be chosen; a field can be the sum of several events.
func TestChosenFields(t *testing.T) {
	f := newFake()
	m := NewMeter(f, Config{Table: Named("amd-zen2"), Fields: []Field{Cycles, UncoreRequests, UncoreWaits}}, 4096)
	g, err := m.Open("/x", []int{0}, true)
	if err != nil || len(g.events) != 5 || !g.Has(UncoreRequests) || g.Has(UncoreWaits) || g.Has(LocalLoads) {
		t.Fatalf("%+v, %v", g, err)
	}
	if how, from := m.Table().Source(UncoreRequests); how != unit.HowMeasured || from != "perf r0964 + perf rff71 + perf rff72" {
		t.Errorf("%v %s", how, from)
	}
	sample(t, g, 0)
	f.now[0] = reading{enabled: 10 * ms, running: 10 * ms, value: [nFields]uint64{900, 1, 20, 300, 10 * ms}} // in the order of events
	if s := sample(t, g, 100*time.Millisecond); s.Total[UncoreRequests] != 321 || s.Total[Cycles] != 900 || s.Total[Clock] != 10*ms {
		t.Errorf("%+v", s)
	}
	if got := NewMeter(f, Config{Table: Lab(), Fields: []Field{UncoreRequests, UncoreWaits}}, 4096).Table().Events; len(got) != 2 || got[1].Config != 0x1000860 {
		t.Errorf("%+v", got)
	}
}
