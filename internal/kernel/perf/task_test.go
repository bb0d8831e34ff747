// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"errors"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// fakeTasks is a PMU that holds groups of so many events and counts by their config.
type fakeTasks struct {
	most   int // events of a group; 0: no PMU at all
	refuse error
	next   int
	groups map[int][]uint64 // configs, by the leader
	times  [2]uint64        // enabled, running
	counts map[uint64]uint64
	isOpen map[int]bool
}

func newTasks(most int) *fakeTasks {
	return &fakeTasks{most: most, next: 100, groups: map[int][]uint64{}, counts: map[uint64]uint64{}, isOpen: map[int]bool{}}
}

func (f *fakeTasks) OpenInGroup(attr *sys.PerfEventAttr, tid, group int) (int, error) {
	if f.refuse != nil {
		return 0, f.refuse
	}
	if f.most == 0 {
		return 0, sys.ENOENT
	}
	if attr.Bits&sys.PerfBitInherit != 0 {
		return 0, errors.New("inherit is on")
	}
	f.next++
	if group < 0 {
		group = f.next
	}
	if len(f.groups[group]) == f.most {
		return 0, sys.EINVAL
	}
	f.groups[group] = append(f.groups[group], uint64(attr.Type)<<32|attr.Config)
	f.isOpen[f.next] = true
	return f.next, nil
}

func (f *fakeTasks) Read(fd int, words []uint64) (int, error) {
	configs := f.groups[fd]
	all := []uint64{uint64(len(configs)), f.times[0], f.times[1]}
	for _, c := range configs {
		all = append(all, f.counts[c])
	}
	return copy(words, all), nil
}

func (f *fakeTasks) Close(fd int) { delete(f.isOpen, fd) }

const rawEvent = uint64(sys.PERF_TYPE_RAW) << 32

func TestTaskCounts(t *testing.T) {
	f := newTasks(6)
	m := NewTaskMeter(f, Config{Table: Lab()}, 10000, 0)
	if err := m.Usable(); err != nil {
		t.Fatal(err)
	}
	g, err := m.Open(7)
	if err != nil || len(g.fds) != 6 {
		t.Fatalf("%+v, %v", g, err)
	}
	var s TaskSample
	if err := m.Read(g, &s); err != nil || s.OK {
		t.Errorf("the first is only a base: %+v, %v", s, err)
	}
	if v := m.Value(&s, Cycles); v.Known() || v.From == "" {
		t.Errorf("%v", v)
	}
	f.times = [2]uint64{4e6, 4e6}
	f.counts[rawEvent|0x80b0], f.counts[rawEvent|1<<24|0x0860], f.counts[sys.PERF_COUNT_HW_CPU_CYCLES], f.counts[rawEvent|0x02d3] = 10, 500, 9000, 8
	if err := m.Read(g, &s); err != nil || !s.OK || s.Time != 4*time.Millisecond {
		t.Errorf("%+v, %v", s, err)
	}
	for field, want := range map[Field]unit.Value[uint64]{
		Cycles: unit.Modelled(uint64(9000), "perf cycles (lab)"), UncoreRequests: unit.Modelled(uint64(10), "perf r80b0 (lab)"),
		UncoreWaits: unit.Modelled(uint64(500), "perf r1000860 (lab)"), LocalLoads: unit.Modelled(uint64(0), "perf r01d3 (lab)"),
		RemoteLoads: unit.Modelled(uint64(8), "perf r02d3 (lab)"),
	} {
		if got := m.Value(&s, field); got != want {
			t.Errorf("field %d: %v, want %v", field, got, want)
		}
	}
	f.times, f.counts[rawEvent|0x80b0] = [2]uint64{8e6, 6e6}, 30 // half of the time
	m.Read(g, &s)
	if v := m.Value(&s, UncoreRequests); v.V != unit.Some(uint64(40)) || v.How != unit.HowEstimated {
		t.Errorf("scaled: %v", v)
	}
	f.times = [2]uint64{12e6, 6e6} // none of it
	m.Read(g, &s)
	if v := m.Value(&s, UncoreRequests); v.Known() || s.Time != 4*time.Millisecond {
		t.Errorf("lost: %v", v)
	}
	m.Read(g, &s) // it did not run
	if v := m.Value(&s, UncoreRequests); v.V != unit.Some(uint64(0)) || s.Time != 0 {
		t.Errorf("idle: %v", v)
	}
	f.times = [2]uint64{0, 0} // reset
	if m.Read(g, &s); s.OK {
		t.Errorf("a counter that went back: %+v", s)
	}
	if n := testing.AllocsPerRun(100, func() { m.Read(g, &s) }); n > 1 { // the fake's own
		t.Logf("%v allocations with the fake", n)
	}
	m.Close(g)
	if len(f.isOpen) != 0 || m.open != 0 {
		t.Errorf("left open: %v", f.isOpen)
	}
}

// A PMU with fewer counters does without DRAM reads first, then without the penalty.
func TestTaskChoices(t *testing.T) {
	for _, c := range []struct {
		most   int
		table  Table
		fds    int
		usable bool
	}{{6, Lab(), 6, true}, {4, Lab(), 4, true}, {6, Named("amd-zen4"), 4, false}, {6, Named("arm-neoverse-v2"), 2, false}, {5, intelSPR, 4, true}, {3, intelSKX, 2, false}, {4, Generic(), 2, false}} {
		f := newTasks(c.most)
		m := NewTaskMeter(f, Config{Table: c.table}, 10000, 0)
		g, err := m.Open(1)
		if err != nil || len(g.fds) != c.fds || len(f.isOpen) != c.fds {
			t.Errorf("%s with %d: %v, %v; open %v", c.table.Name, c.most, g, err, f.isOpen)
			continue
		}
		if err := m.Usable(); (err == nil) != c.usable || err != nil && (!strings.Contains(err.Error(), "OFFCORE_REQUESTS") || !errors.Is(err, unix.ErrNotSupported)) {
			t.Errorf("%s with %d: usable: %v", c.table.Name, c.most, err)
		}
		first := m.first
		if g, err := m.Open(2); err != nil || len(g.fds) != c.fds || m.first != first {
			t.Errorf("the second: %v", err)
		}
	}
}

func TestTaskRefusals(t *testing.T) {
	m := NewTaskMeter(newTasks(0), Config{Table: Lab()}, 10000, 0)
	if _, err := m.Open(1); !errors.Is(err, unix.ErrNotSupported) {
		t.Errorf("no PMU: %v", err)
	}
	f := newTasks(6)
	f.refuse = sys.EACCES
	m = NewTaskMeter(f, Config{Table: Lab()}, 10000, 0)
	if _, err := m.Open(1); !errors.Is(err, unix.ErrNotPermitted) || !strings.Contains(err.Error(), "CAP_PERFMON") {
		t.Errorf("not allowed: %v", err)
	}
	f.refuse = sys.ESRCH
	if _, err := m.Open(1); !errors.Is(err, unix.ErrGone) {
		t.Errorf("gone: %v", err)
	}
	m = NewTaskMeter(newTasks(6), Config{Table: Lab()}, spareFiles+5, 0)
	if _, err := m.Open(1); err == nil || !strings.Contains(err.Error(), "LimitNOFILE") {
		t.Errorf("descriptors: %v", err)
	}
}

// The files that the reader keeps open for each thread count against the same limit, and
// are given back with the thread.
func TestTaskFiles(t *testing.T) {
	m := NewTaskMeter(newTasks(6), Config{Table: Lab()}, spareFiles+20, 1)
	a, err1 := m.Open(1)
	_, err2 := m.Open(2)
	if err := errors.Join(err1, err2); err != nil || m.open != 14 {
		t.Fatalf("%d open, %v", m.open, err)
	}
	if _, err := m.Open(3); !errors.Is(err, sys.EMFILE) || m.open != 14 {
		t.Errorf("a third of 7 files within 20: %v, %d open", err, m.open)
	}
	m.Close(a)
	m.Close(a)
	if _, err := m.Open(3); err != nil || m.open != 14 {
		t.Errorf("after one was closed: %v, %d open", err, m.open)
	}
}

func TestTaskEventsFit(t *testing.T) {
	for _, table := range event.All() {
		if n := len(taskEvents(tableOf(table))); n > maxTaskEvents {
			t.Errorf("%s: %d events, and room for %d", table.Name, n, maxTaskEvents)
		}
	}
	n1 := NewTaskMeter(newTasks(6), Config{Table: Named("arm-neoverse-n1")}, 10000, 0)
	if err := n1.Usable(); err == nil || !strings.Contains(err.Error(), "no event counts cycles with a request outstanding") {
		t.Errorf("%v", err)
	}
}
