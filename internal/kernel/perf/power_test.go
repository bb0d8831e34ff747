// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/unit"
)

// powerPMU keeps the rules by which Linux refuses groups on POWER9 and later
// (isa207_get_constraint and isa207_get_alternatives in arch/powerpc/perf/isa207-common.c,
// the tables of power9-pmu.c and power10-pmu.c).
type powerPMU struct{ power10, task bool }

// codes are those that the kernel may count an event by, its own first.
func (p powerPMU) codes(attr sys.PerfEventAttr) []uint64 {
	code := attr.Config
	if attr.Type == sys.PERF_TYPE_HARDWARE {
		code = map[uint64]uint64{sys.PERF_COUNT_HW_CPU_CYCLES: 0x1e, sys.PERF_COUNT_HW_INSTRUCTIONS: 0x2}[code]
		if p.power10 {
			code = map[uint64]uint64{0x1e: 0x600f4, 0x2: 0x500fa}[code]
		}
	}
	alternatives := map[uint64][]uint64{0x200f4: {0x200f4, 0x600f4}, 0x400fa: {0x400fa, 0x500fa}}
	if p.power10 {
		alternatives = map[uint64][]uint64{0x1e: {0x1e, 0x600f4}, 0x2: {0x2, 0x500fa}}
	} else if p.task { // PPMU_ONLY_COUNT_RUN
		alternatives[0x1e], alternatives[0x2] = []uint64{0x1e, 0x600f4}, []uint64{0x2, 0x500fa}
	}
	if all, ok := alternatives[code]; ok {
		return all
	}
	return []uint64{code}
}

// fits tries every choice of codes.
func (p powerPMU) fits(group []sys.PerfEventAttr, chosen []uint64) bool {
	if len(group) == 0 {
		return p.together(chosen)
	}
	for _, code := range p.codes(group[0]) {
		if p.fits(group[1:], append(chosen[:len(chosen):len(chosen)], code)) {
			return true
		}
	}
	return false
}

// together: each counter once, four of the first four, one cache_sel and one radix scope.
func (p powerPMU) together(codes []uint64) bool {
	valid, caches := uint64(1)<<52-1, uint64(0xf)
	if p.power10 {
		valid, caches = 1<<60-1, 3
	}
	used, general, shared := map[uint64]bool{}, 0, map[uint64]bool{}
	for _, c := range codes {
		pmc := c >> 16 & 0xf
		if c&^valid != 0 || pmc > 6 || pmc >= 5 && c != 0x500fa && c != 0x600f4 || pmc > 0 && used[pmc] {
			return false
		}
		used[pmc] = true
		if pmc >= 5 {
			continue
		}
		general++
		if unit := c >> 12 & 0xf; unit < 6 || unit > 9 {
			shared[c>>20&caches<<1|c>>9&1] = true
		}
	}
	return general <= 4 && len(shared) <= 1
}

// powerPerf refuses what that PMU does.
type powerPerf struct {
	*fakePerf
	pmu    powerPMU
	groups map[int][]sys.PerfEventAttr // by the leader
}

func newPower(power10, task bool) *powerPerf {
	return &powerPerf{newFake(), powerPMU{power10, task}, map[int][]sys.PerfEventAttr{}}
}

func (f *powerPerf) Open(attr *sys.PerfEventAttr, dir, cpu, group int) (int, error) {
	var all []sys.PerfEventAttr
	for _, a := range append(f.groups[group][:len(f.groups[group]):len(f.groups[group])], *attr) {
		if a.Type != sys.PERF_TYPE_SOFTWARE {
			all = append(all, a)
		}
	}
	if !f.pmu.fits(all, nil) {
		return 0, sys.EINVAL
	}
	fd, err := f.fakePerf.Open(attr, dir, cpu, group)
	if group < 0 {
		group = fd
	}
	f.groups[group] = append(f.groups[group], *attr)
	return fd, err
}

func (f *powerPerf) OpenInGroup(attr *sys.PerfEventAttr, _, group int) (int, error) {
	return f.Open(attr, -1, 0, group)
}

// A window's events fit the counters of POWER9 and POWER10 together, also those of a
// thread; what does not fit is left out, reads by node last.
func TestPowerGroups(t *testing.T) {
	for _, c := range []struct {
		cpu    string
		fields []Field
		opens  []uint64 // configs
	}{
		{"power9", nil, []uint64{0x200f4, 0x400fa, 0x2c048, 0x3c04a, 0x4c04c}},
		{"power9", append([]Field{L2Misses}, WindowFields...), []uint64{0x1c04e, 0x200f4, 0x400fa, 0x2c048, 0x3c04a, 0x4c04c}},
		{"power9", append([]Field{LLCMisses}, WindowFields...), []uint64{0x200f4, 0x400fa, 0x2c048, 0x3c04a, 0x4c04c}},
		{"power10", nil, []uint64{0, 1, 0x2c018, 0x94040000000c040, 0xd4040000000c040, 0xf4040000000c040}},
		{"power10", append([]Field{LLCMisses}, WindowFields...), []uint64{0, 1, 0x2c018, 0x94040000000c040, 0xd4040000000c040, 0xf4040000000c040}},
	} {
		table := Detect(kerneltest.Tree(t, kerneltest.CPUTree(c.cpu)))
		f := newPower(c.cpu == "power10", false)
		g, err := NewMeter(f, Config{Table: table, Fields: c.fields}, 4096).Open("/x", []int{0}, true)
		if err != nil {
			t.Errorf("%s: %v", c.cpu, err)
			continue
		}
		var got []uint64
		for _, e := range g.Events()[:len(g.Events())-1] { // the last is the kernel's clock
			got = append(got, e.Config)
		}
		if !slices.Equal(got, c.opens) {
			t.Errorf("%s, fields %v: %#x, want %#x", c.cpu, c.fields, got, c.opens)
		}
		tasks := newPower(c.cpu == "power10", true)
		m := NewTaskMeter(tasks, Config{Table: table}, 10000, 0)
		if one, err := m.Open(7); err != nil || m.WhyNot(RemoteLoads) != "" || len(one.fds) != 5 {
			t.Errorf("%s, a thread: %+v, %v", c.cpu, one, err)
		}
	}
}

// The rules themselves: what the tables' notes say does not fit.
func TestPowerRules(t *testing.T) {
	raw := func(codes ...uint64) (group []sys.PerfEventAttr) {
		for _, c := range codes {
			group = append(group, sys.PerfEventAttr{Type: sys.PERF_TYPE_RAW, Config: c})
		}
		return group
	}
	cycles := []sys.PerfEventAttr{{Type: sys.PERF_TYPE_HARDWARE, Config: 0}, {Type: sys.PERF_TYPE_HARDWARE, Config: 1}}
	nine, ten := powerPMU{}, powerPMU{power10: true}
	for what, c := range map[string]struct {
		pmu   powerPMU
		group []sys.PerfEventAttr
		want  bool
	}{
		"stalls beside reads on POWER9":         {nine, raw(0x4c01a, 0x2c048, 0x3c04a, 0x4c04c), false},
		"the kernel's cycles beside reads":      {nine, append(raw(0x2c048, 0x3c04a, 0x4c04c), cycles...), false},
		"the same of a thread":                  {powerPMU{task: true}, append(raw(0x2c048, 0x3c04a, 0x4c04c), cycles...), true},
		"LLC misses beside remote reads":        {nine, raw(0x300fe, 0x3c04a), false},
		"POWER10's codes on POWER9":             {nine, raw(0x94040000000c040), false},
		"reads with prefetches, and stalls":     {ten, raw(0x94040000020c040, 0x2c018), false},
		"reads with prefetches, without":        {ten, append(raw(0x94040000020c040, 0xd4040000020c040, 0xf4040000020c040), cycles...), true},
		"five events of general counters":       {ten, raw(0x2c018, 0x94040000000c040, 0xd4040000000c040, 0xf4040000000c040, 0x7c0000000c040), false},
		"an event of counter 5 that is no such": {ten, raw(0x5c040), false},
	} {
		if got := c.pmu.fits(c.group, nil); got != c.want {
			t.Errorf("%s: fits %v", what, got)
		}
	}
}

// Lines of POWER have 128 bytes: a window has two of 64 for each, and says so.
func TestPowerLines(t *testing.T) {
	table := Named("power9")
	if how, from := table.Source(RemoteLoads); how != unit.HowMeasured || from != "2 × (perf r3c04a + perf r4c04c)" {
		t.Errorf("%v %q", how, from)
	}
	if how, why := table.Source(StallCycles); how != unit.HowUnknown || !strings.Contains(why, "counter 1 has no event") {
		t.Errorf("%v %q", how, why)
	}
	if table.Lines(LocalLoads, 10) != 20 || table.Lines(LLCMisses, 10) != 10 || table.Lines(Clock, 10) != 10 || Lab().Lines(LocalLoads, 10) != 10 || (Table{}).Lines(LocalLoads, 10) != 10 {
		t.Error("lines of a count")
	}
	for name, doubt := range map[string]bool{"power9": true, "power10": true} {
		if _, from := Named(name).On(clustered()).Source(LocalLoads); strings.Contains(from, event.NearPackage.Doubt()) != doubt {
			t.Errorf("%s: %q", name, from)
		}
	}

	f := newTasks(8)
	m := NewTaskMeter(f, Config{Table: table}, 10000, 0)
	g, err := m.Open(7)
	if err != nil {
		t.Fatal(err)
	}
	var s TaskSample
	m.Read(g, &s)
	f.times = [2]uint64{uint64(time.Millisecond), uint64(time.Millisecond)}
	f.counts[rawEvent|0x2c048], f.counts[rawEvent|0x3c04a], f.counts[rawEvent|0x4c04c] = 7, 3, 1
	if err := m.Read(g, &s); err != nil {
		t.Fatal(err)
	}
	if local, remote := m.Value(&s, LocalLoads), m.Value(&s, RemoteLoads); local.V != unit.Some(uint64(14)) || remote.V != unit.Some(uint64(8)) || local.From != "2 × perf r2c048" {
		t.Errorf("%v, %v", local, remote)
	}
}
