// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// fakeKernel is perf_event_open with the rules of one CPU's PMUs. What breaks a rule is
// refused as the kernel does it.
type fakeKernel struct {
	*fakeSampling
	rule   func(k *fakeKernel, attr *sys.PerfEventAttr, pid, group int) error
	opened map[int]sys.PerfEventAttr
	groups map[int]int // event → leader
	on     map[int]bool
}

func newKernel(rule func(*fakeKernel, *sys.PerfEventAttr, int, int) error) *fakeKernel {
	return &fakeKernel{fakeSampling: newFake(), rule: rule, opened: map[int]sys.PerfEventAttr{}, groups: map[int]int{}, on: map[int]bool{}}
}

const aCgroup = -2

func (k *fakeKernel) open1(attr *sys.PerfEventAttr, pid, cpu, group int) (int, error) {
	if leader, ok := k.opened[group]; group >= 0 && (!ok || leader.Clockid != attr.Clockid || (leader.Bits^attr.Bits)&sys.PerfBitUseClockID != 0) {
		return 0, sys.EINVAL // perf_event_open: a group has one clock
	}
	if err := k.rule(k, attr, pid, group); err != nil {
		return 0, err
	}
	fd, err := k.openOne(attr, cpu, "task")
	if err == nil {
		k.opened[fd], k.groups[fd], k.on[fd] = *attr, group, attr.Bits&sys.PerfBitDisabled == 0
	}
	return fd, err
}

func (k *fakeKernel) OpenTask(attr *sys.PerfEventAttr, pid, cpu, group int) (int, error) {
	return k.open1(attr, pid, cpu, group)
}

func (k *fakeKernel) Open(attr *sys.PerfEventAttr, _, cpu, group int) (int, error) {
	return k.open1(attr, aCgroup, cpu, group)
}

// Enable and Disable keep to themselves: an event runs while it and its leader are on.
func (k *fakeKernel) Enable(fd int) error { k.on[fd] = true; return nil }
func (k *fakeKernel) Disable(fd int) error {
	for event, ring := range k.rings {
		if event == fd || k.groups[event] == fd {
			if k.content != nil && k.on[event] && (k.groups[event] < 0 || k.on[k.groups[event]]) {
				ring.data = k.content(event)
			}
			if k.traced != nil && k.on[event] {
				ring.trace, ring.data = k.traced(event)
			}
		}
	}
	k.on[fd] = false
	return nil
}

const (
	memLoads, memLoadsAux = 0x1cd, 0x8203
	precise               = sys.PerfBitPreciseIPBit1 | sys.PerfBitPreciseIPBit2
)

// sapphireRule is intel_pmu_hw_config of a CPU with PMU_FL_MEM_LOADS_AUX: loads with their
// source need a group with the auxiliary event.
func sapphireRule(k *fakeKernel, attr *sys.PerfEventAttr, _, group int) error {
	leader := k.opened[group]
	switch {
	case attr.Type != sys.PERF_TYPE_RAW:
		return sys.ENOENT
	case attr.Config == memLoads && attr.Sample_type&sys.PERF_SAMPLE_DATA_SRC != 0 && leader.Config != memLoadsAux:
		return sys.ENODATA
	case attr.Sample != 0 && attr.Bits&precise == 0:
		return sys.EOPNOTSUPP
	}
	return nil
}

// graniteRule takes loads as they are.
func graniteRule(_ *fakeKernel, attr *sys.PerfEventAttr, _, _ int) error {
	if attr.Type != sys.PERF_TYPE_RAW || attr.Sample != 0 && attr.Bits&precise == 0 {
		return sys.EOPNOTSUPP
	}
	return nil
}

// ibsRule is perf_ibs_init of a PMU of this type; before Linux 6.2 nothing but CPUs is
// sampled.
func ibsRule(perTask bool) func(*fakeKernel, *sys.PerfEventAttr, int, int) error {
	return func(_ *fakeKernel, attr *sys.PerfEventAttr, pid, _ int) error {
		const excluded = sys.PerfBitExcludeKernel | sys.PerfBitExcludeUser | sys.PerfBitExcludeHv | sys.PerfBitExcludeIdle
		switch {
		case attr.Type != 11:
			return sys.ENOENT
		case attr.Config&^(1<<19|1<<16) != 0 || attr.Ext1 != 0 || attr.Sample&0xf != 0 || attr.Sample < 0x90:
			return sys.EINVAL
		case attr.Bits&excluded != 0:
			return sys.EINVAL
		case pid != -1 && !perTask:
			return sys.EINVAL
		}
		return nil
	}
}

func tableOfCPU(t *testing.T, name string) Table {
	t.Helper()
	table, err := Detect(kerneltest.Tree(t, kerneltest.CPUTree(name)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return table
}

// On every CPU whose loads can be sampled the events open, in the form that its kernel
// wants, for all, a cgroup and threads; samples come from the event, and nothing is left.
func TestSamplesOfCPUs(t *testing.T) {
	for _, c := range []struct {
		cpu   string
		rule  func(*fakeKernel, *sys.PerfEventAttr, int, int) error
		files int // of each CPU: events, leaders included
		rings int
	}{
		{"ice-lake", graniteRule, 2, 2}, {"sapphire-rapids", sapphireRule, 3, 2}, {"emerald-rapids", sapphireRule, 3, 2}, {"granite-rapids", graniteRule, 2, 2},
		{"zen-2", ibsRule(true), 1, 1}, {"zen-4", ibsRule(true), 1, 1},
	} {
		for name, target := range map[string]Target{"all": {}, "a cgroup": {Cgroup: "/c"}, "threads": {TIDs: []int{7, 8}}} {
			k := newKernel(c.rule)
			k.content = func(int) []byte { return sampleBytes }
			cfg := both()
			cfg.Table = tableOfCPU(t, c.cpu)
			s, err := Open(k, cfg, target, []int{0, 1})
			if err != nil || len(k.opened) != 2*c.files || len(k.rings) != 2*c.rings {
				t.Errorf("%s, %s: %d events, %d rings, %v", c.cpu, name, len(k.opened), len(k.rings), err)
				continue
			}
			n := 0
			stats, err := s.Collect(context.Background(), time.Millisecond, func(Access) { n++ })
			if err != nil || n != 2*c.rings || stats.Samples != uint64(n) {
				t.Errorf("%s, %s: %d accesses, %+v, %v", c.cpu, name, n, stats, err)
			}
			if s.Close(); len(k.open) != 0 {
				t.Errorf("%s, %s: left open %v", c.cpu, name, k.open)
			}
		}
	}
}

// The group of Sapphire Rapids: the leader counts and is switched, the event samples.
func TestAuxiliaryLeader(t *testing.T) {
	k := newKernel(sapphireRule)
	cfg := both()
	cfg.Table, cfg.Stores = tableOfCPU(t, "sapphire-rapids"), false
	s, err := Open(k, cfg, Target{}, []int{0})
	if err != nil || len(s.streams) != 1 {
		t.Fatal(err)
	}
	one := s.streams[0]
	leader, event := k.opened[one.leader], k.opened[one.fd]
	if leader.Config != memLoadsAux || leader.Sample != 0 || leader.Sample_type != 0 || leader.Bits&precise != 0 || k.groups[one.leader] != -1 {
		t.Errorf("leader %+v", leader)
	}
	if event.Config != memLoads || event.Ext1 != 100 || event.Sample != 1000 || bits.OnesCount64(event.Bits&precise) != 1 || k.groups[one.fd] != one.leader {
		t.Errorf("event %+v", event)
	}
	if k.on[one.leader] || !k.on[one.fd] {
		t.Error("the leader begins disabled, its event enabled")
	}
	if err := s.Start(); err != nil || !k.on[one.leader] {
		t.Errorf("not started: %v", err)
	}
	s.Close()

	k.noRing = sys.EPERM // leader and event are closed again
	if _, err := Open(k, cfg, Target{}, []int{0}); !errors.Is(err, unix.ErrNotPermitted) || len(k.open) != 0 {
		t.Errorf("%v, left open %v", err, k.open)
	}
	k = newKernel(func(k *fakeKernel, attr *sys.PerfEventAttr, pid, group int) error {
		if group >= 0 {
			return sys.EINVAL
		}
		return sapphireRule(k, attr, pid, group)
	})
	if _, err := Open(k, cfg, Target{}, []int{0}); !errors.Is(err, unix.ErrNotSupported) || len(k.open) != 0 {
		t.Errorf("%v, left open %v", err, k.open)
	}
	without := cfg
	without.Table.Loads.Leader = 0
	if _, err := Open(newKernel(sapphireRule), without, Target{}, []int{0}); !errors.Is(err, sys.ENODATA) || !errors.Is(err, unix.ErrNotSupported) {
		t.Errorf("without a leader: %v", err)
	}
}

const (
	hitLoad  = opLoad | lvlHit
	opNone   = 1 // PERF_MEM_OP_NA
	storeHit = opStore | lvlHit | lvlL1
)

// ibsRecord is a sample with these address, latency and source.
func ibsRecord(misc uint16, addr, weight, source uint64) []byte {
	return record(sys.PERF_RECORD_SAMPLE, misc, 0x401000, 7<<32|7, 5, addr, 0, weight, source)
}

// IBS tags operations of any kind: what is not a load or a store, not slow enough, of the
// kernel, or without an address, is dropped; all count as samples, so that losses are
// found.
func TestOperationsArePicked(t *testing.T) {
	all := slices.Concat(
		ibsRecord(2, 0, 0, opNone),                          // a branch
		ibsRecord(2, 0x1000, 300, hitLoad|lvlLocalRAM),      // a slow load
		ibsRecord(2, 0x2000, 0, hitLoad|lvlL1),              // a fast one
		ibsRecord(2, 0x3000, 0, storeHit),                   // a store
		ibsRecord(1, 0x4000, 300, hitLoad|1<<(5+8)),         // the kernel's
		ibsRecord(2, 0, 300, hitLoad|lvlL3),                 // without an address
		ibsRecord(2, 0x5000, 101, hitLoad|lvlL3|lvlNearCCE), // Zen 2 and 3: the own L3, or the one next to it
	)
	for _, c := range []struct {
		about         string
		loads, stores bool
		least         int
		want          []uint64
	}{
		{"loads", true, false, 100, []uint64{0x1000, 0x5000}}, {"slow loads", true, false, 200, []uint64{0x1000}}, {"all loads", true, false, 0, []uint64{0x1000, 0x2000, 0x5000}}, {"loads of 3 cycles", true, false, 3, []uint64{0x1000, 0x2000, 0x5000}},
		{"stores", false, true, 100, []uint64{0x3000}}, {"both", true, true, 100, []uint64{0x1000, 0x3000, 0x5000}},
	} {
		k := newKernel(ibsRule(true))
		k.content, k.counted = func(int) []byte { return all }, 8*leastOps
		cfg := Config{Table: tableOfCPU(t, "zen-4"), Loads: c.loads, Stores: c.stores, Period: 10007, LatencyThreshold: c.least, UserOnly: true}
		s, err := Open(k, cfg, Target{}, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		stats, err := s.Collect(context.Background(), time.Millisecond, func(a Access) { got = append(got, a.Addr) })
		if err != nil || !slices.Equal(got, c.want) || stats.Samples != 7 || stats.Lost != 1 || stats.Qualified != 8*leastOps {
			t.Errorf("%s: %#x, want %#x; %+v, %v", c.about, got, c.want, stats, err)
		}
		s.Close()
	}
}

// The sources that AMD's kernel gives (perf_ibs_get_mem_lvl): a hop is another complex of
// the node, two are another node's.
func TestDecodeLevelOfIBS(t *testing.T) {
	d := decoder{ops: true}
	for _, c := range []struct {
		source uint64
		want   Level
	}{
		{hitLoad | lvlL1, L1}, {hitLoad | lvlL2, L2}, {hitLoad | lvlL3, LLC}, {hitLoad | lvlL3 | lvlNearCCE, LLC}, {hitLoad | lvlNearCCE, LLC},
		{hitLoad | 1<<(5+11), RemoteCache}, {hitLoad | lvlLocalRAM, LocalDRAM}, {hitLoad | 1<<(5+8), RemoteDRAM}, {hitLoad | lvlLFB, FillBuffer},
		{opLoad | 1<<5, Unknown}, {opLoad | numberCXL<<numberShift, LocalDRAM}, {opLoad | numberCXL<<numberShift | remoteBit, RemoteDRAM}, {opLoad | 0xa<<numberShift, Unknown},
	} {
		if got := d.level(c.source); got != c.want {
			t.Errorf("%#x: %v, want %v", c.source, got, c.want)
		}
	}
	if got := (decoder{}).level(hitLoad | lvlL3 | lvlNearCCE); got != RemoteCache {
		t.Errorf("Intel's hop is another package: %v", got)
	}
}

// The period of operations is a multiple of 16, and bounded from below.
func TestPeriodOfOperations(t *testing.T) {
	amd, intel := tableOfCPU(t, "zen-4"), tableOfCPU(t, "ice-lake")
	for asked, want := range map[uint64]uint64{1: leastOps, 10007: leastOps, leastOps + 1: leastOps + 16, 50_000_000: 50_000_000} {
		if got := amd.Period(asked); got != want || got%16 != 0 {
			t.Errorf("%d: %d, want %d", asked, got, want)
		}
		if got := intel.Period(asked); got != asked {
			t.Errorf("Intel's: %d for %d", got, asked)
		}
	}
}

// Refusals name what would do.
func TestRefusalsOfIBS(t *testing.T) {
	cfg := both()
	cfg.Table = tableOfCPU(t, "zen-4")
	for name, target := range map[string]Target{"threads": {TIDs: []int{7}}, "a cgroup": {Cgroup: "/c"}} {
		k := newKernel(ibsRule(false))
		if _, err := Open(k, cfg, target, []int{0}); !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "before Linux 6.2") || len(k.open) != 0 {
			t.Errorf("%s: %v, left open %v", name, err, k.open)
		}
	}
	if _, err := Open(newKernel(ibsRule(false)), cfg, Target{}, []int{0}); err != nil {
		t.Errorf("all CPUs: %v", err)
	}
	if _, err := Detect(kerneltest.Tree(t, kerneltest.CPUTree("zen-4-guest"))); !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "ibs_op") {
		t.Errorf("a guest: %v", err)
	}
	bad := kerneltest.CPUTree("zen-4")
	bad["/sys/bus/event_source/devices/ibs_op/type"] = "eleven\n"
	if _, err := Detect(kerneltest.Tree(t, bad)); !errors.Is(err, unix.ErrMalformed) {
		t.Errorf("a type that is no number: %v", err)
	}
	for _, cpu := range slices.Sorted(maps.Keys(kerneltest.CPUs)) {
		if _, err := Detect(kerneltest.Tree(t, kerneltest.CPUTree(cpu))); err != nil && !errors.Is(err, unix.ErrNotSupported) {
			t.Error(fmt.Errorf("%s: %w", cpu, err))
		}
	}
}
