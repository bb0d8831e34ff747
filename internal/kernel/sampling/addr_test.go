// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/unix"
)

// fakeSampling serves rings whose content it is given when they are disabled.
type fakeSampling struct {
	next    int
	open    map[int]string
	refuse  func(attr *sys.PerfEventAttr, id int) error
	noRing  error
	noClock bool
	attrs   []sys.PerfEventAttr
	content func(fd int) []byte
	traced  func(fd int) (trace, ring []byte) // of a disabled event that writes a trace
	counted uint64
	rings   map[int]*fakeRing
}

type fakeRing struct {
	data, trace []byte
	taken       uint64
	noClock     bool
}

func (r *fakeRing) TakeTrace(into []byte) ([]byte, uint64) {
	at := r.taken
	into, r.taken, r.trace = append(into, r.trace...), at+uint64(len(r.trace)), nil
	return into, at
}

func (r *fakeRing) Clock() (unix.Clock, bool) {
	return unix.Clock{Shift: 4, Mult: 2 << 4, Mask: ^uint64(0)}, !r.noClock
}

func (r *fakeRing) Take(into []byte) []byte {
	into = append(into, r.data...)
	r.data = nil
	return into
}
func (r *fakeRing) Close() error { return nil }

func newFake() *fakeSampling {
	return &fakeSampling{next: 10, open: map[int]string{}, rings: map[int]*fakeRing{}}
}

func (f *fakeSampling) openOne(attr *sys.PerfEventAttr, id int, what string) (int, error) {
	if f.refuse != nil {
		if err := f.refuse(attr, id); err != nil {
			return 0, err
		}
	}
	f.next++
	f.open[f.next] = what
	f.attrs = append(f.attrs, *attr)
	return f.next, nil
}

func (f *fakeSampling) Open(attr *sys.PerfEventAttr, _, cpu, _ int) (int, error) {
	return f.openOne(attr, cpu, "cgroup")
}

func (f *fakeSampling) OpenTask(attr *sys.PerfEventAttr, pid, cpu, _ int) (int, error) {
	return f.openOne(attr, max(pid, cpu), "task")
}
func (f *fakeSampling) OpenDir(string) (int, error) {
	f.next++
	f.open[f.next] = "dir"
	return f.next, nil
}
func (f *fakeSampling) Close(fd int) {
	if _, open := f.open[fd]; !open {
		panic(fmt.Sprintf("descriptor %d is closed twice: it may be another file's by then", fd))
	}
	delete(f.open, fd)
}
func (f *fakeSampling) Read(fd int, w []uint64) (int, error) { w[0] = f.counted; return 1, nil }
func (f *fakeSampling) Enable(int) error                     { return nil }
func (f *fakeSampling) Disable(fd int) error {
	if f.content != nil {
		f.rings[fd].data = f.content(fd)
	}
	if f.traced != nil {
		f.rings[fd].trace, f.rings[fd].data = f.traced(fd)
	}
	return nil
}

// Trace has a clock of 2 ns for each step of the CPU's counter.
func (f *fakeSampling) Trace(fd, pages, _ int) (unix.Trace, error) {
	ring, err := f.Ring(fd, pages)
	if err != nil {
		return nil, err
	}
	ring.(*fakeRing).noClock = f.noClock
	return ring.(*fakeRing), nil
}

func (f *fakeSampling) Ring(fd, pages int) (unix.Ring, error) {
	if f.noRing != nil {
		return nil, f.noRing
	}
	f.rings[fd] = &fakeRing{}
	return f.rings[fd], nil
}

func record(typ uint32, misc uint16, words ...uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, typ)
	b = binary.LittleEndian.AppendUint16(b, misc)
	b = binary.LittleEndian.AppendUint16(b, uint16(headerBytes+8*len(words)))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// A remote load of the lab: PERF_MEM_OP_LOAD, LVL HIT|REM_RAM1, SNOOP NA,
// LVLNUM RAM, REMOTE.
const remoteLoad = 1<<1 | 1<<(5+1) | 1<<(5+8) | 1<<19 | 0xd<<33 | 1<<37

var (
	sampleBytes = record(sys.PERF_RECORD_SAMPLE, 2|0x4000, 0x401234, 148<<32|146, 5_000_000_000, 0x7f87b3d1b0c0, 3, 373, remoteLoad)
	wantSample  = Access{PID: 146, TID: 148, CPU: 3, Addr: 0x7f87b3d1b0c0, IP: 0x401234, Time: 5_000_000_000, Weight: 373, Level: RemoteDRAM}
)

func TestDecodeRecords(t *testing.T) {
	data := slices.Concat(
		record(3 /* COMM */, 0, 1, 2, 3),
		sampleBytes,
		record(sys.PERF_RECORD_LOST, 0, 77, 5),
		record(sys.PERF_RECORD_LOST_SAMPLES, 0, 2),
		record(sys.PERF_RECORD_THROTTLE, 0, 1, 2, 3),
		record(sys.PERF_RECORD_SAMPLE, 1, 0xffffffff81000000, 0, 1, 2, 0, 4, 1<<2|1<<(5+1)|1<<(5+3)|1<<(19+4)),
	)
	got, stats, err := decoder{}.parse(nil, data)
	want := []Access{wantSample, {Addr: 2, IP: 0xffffffff81000000, Time: 1, Weight: 4, Level: L1, Store: true, Kernel: true, Modified: true}}
	if err != nil || !reflect.DeepEqual(got, want) || stats != (Stats{Samples: 2, Lost: 7, Throttled: 1}) {
		t.Errorf("%+v, %+v, %v", got, stats, err)
	}
}

func TestDecodeRecordsRefuses(t *testing.T) {
	for about, data := range map[string][]byte{
		"half a header":     {9, 0, 0, 0},
		"size below header": record(9, 0)[:7:7],
		"size zero":         make([]byte, 8),
		"beyond the end":    sampleBytes[:len(sampleBytes)-1],
		"short sample":      record(sys.PERF_RECORD_SAMPLE, 0, 1, 2),
		"short lost":        record(sys.PERF_RECORD_LOST, 0, 1),
		"after a good one":  append(slices.Clone(sampleBytes), 1, 2, 3),
	} {
		before := []Access{{PID: 1}}
		got, stats, err := decoder{}.parse(before, data)
		if !errors.Is(err, unix.ErrMalformed) || len(got) != 1 || stats != (Stats{}) {
			t.Errorf("%s: %+v, %+v, %v", about, got, stats, err)
		}
	}
}

func TestDecodeLevel(t *testing.T) {
	hit := uint64(lvlHit)
	for _, c := range []struct {
		source uint64
		want   Level
	}{
		{hit | lvlL1, L1}, {hit | lvlLFB, FillBuffer}, {hit | lvlL2, L2}, {hit | lvlL3, LLC},
		{hit | lvlLocalRAM, LocalDRAM}, {hit | 1<<(5+9), RemoteDRAM}, {hit | 1<<(5+10), RemoteCache},
		{hit | lvlL3 | 1<<(5+10), RemoteCache},
		{lvlMiss | lvlL1, Unknown}, // an Intel store beyond L1
		{lvlMiss | lvlL1 | numberL1<<numberShift, Unknown},
		{0xd << numberShift, LocalDRAM}, {0xd<<numberShift | remoteBit, RemoteDRAM},
		{0xe << numberShift, LocalDRAM}, {3 << numberShift, LLC}, {0xb<<numberShift | remoteBit, RemoteCache},
		{1 << numberShift, L1}, {2 << numberShift, L2}, {0xc << numberShift, FillBuffer},
		{0xf << numberShift, Unknown}, {0, Unknown},
	} {
		if got := (decoder{}).level(c.source); got != c.want {
			t.Errorf("%#x: %v, want %v", c.source, got, c.want)
		}
	}
	if Level(99).String() != "unknown" || RemoteDRAM.String() != "remote-dram" {
		t.Error("names")
	}
}

// The lab PMU's data source of each kind of hit (data_source in lab/pmu/sampling.c):
// lines that another CPU had changed are distinguished from others, near and far.
func TestDecodeCoherence(t *testing.T) {
	const (
		snoopNone, snoopHit = 1 << (19 + 1), 1 << (19 + 2)
		store               = opStore
		load                = 1 << 1
	)
	for _, c := range []struct {
		about    string
		source   uint64
		level    Level
		modified bool
	}{
		{"own L1", load | lvlHit | lvlL1 | numberL1<<numberShift | snoopNone, L1, false},
		{"LLC", load | lvlHit | lvlL3 | numberL3<<numberShift | snoopNone, LLC, false},
		{"peer of the node", load | lvlHit | lvlL3 | numberL3<<numberShift | snoopModified, LLC, true},
		{"peer of another node", load | lvlHit | 1<<(5+10) | numberAnyCache<<numberShift | remoteBit | snoopModified, RemoteCache, true},
		{"a store's peer", store | lvlHit | 1<<(5+10) | numberAnyCache<<numberShift | remoteBit | snoopModified, RemoteCache, true},
		{"upgrade", store | lvlHit | lvlL2 | numberL2<<numberShift | snoopHit, L2, false},
		{"far DRAM", load | lvlHit | 1<<(5+8) | numberRAM<<numberShift | remoteBit | snoopNone, RemoteDRAM, false},
		{"Intel's far HITM", load | lvlHit | 1<<(5+10) | snoopModified, RemoteCache, true},
		{"a newer kernel, by number alone", load | numberAnyCache<<numberShift | remoteBit | snoopModified, RemoteCache, true},
	} {
		words := [sampleWords]uint64{wordDataSrc: c.source}
		a := decoder{}.access(func(i int) uint64 { return words[i] }, 0)
		if a.Level != c.level || a.Modified != c.modified || a.Store != (c.source&store != 0) {
			t.Errorf("%s, %#x: %+v, want %v, modified %v", c.about, c.source, a, c.level, c.modified)
		}
	}
}

func FuzzDecodeRecords(f *testing.F) {
	f.Add(sampleBytes)
	f.Add(slices.Concat(record(2, 0, 1, 2), sampleBytes))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, stats, err := decoder{}.parse(nil, data)
		if err != nil && (len(got) != 0 || stats != (Stats{})) {
			t.Errorf("error with a value: %v, %v", got, stats)
		}
		if err == nil && stats.Samples != uint64(len(got)) {
			t.Errorf("%d samples counted, %d returned", stats.Samples, len(got))
		}
		picked, same, err2 := decoder{ops: true, loads: true, least: 100}.parse(nil, data)
		same.Loads = 0
		if (err == nil) != (err2 == nil) || same != stats || len(picked) > len(got) || slices.ContainsFunc(picked, func(a Access) bool { return a.Store || a.Addr == 0 || a.Weight < 100 }) {
			t.Errorf("of operations: %v of %v, %+v, %v", picked, got, same, err2)
		}
	})
}

func both() Config {
	return Config{Table: Lab(), Loads: true, Stores: true, Period: 1000, LatencyThreshold: 100, UserOnly: true}
}

func TestOpensWhatIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		about  string
		target Target
		what   string
		n      int
	}{
		{"all", Target{}, "task", 4}, {"a cgroup", Target{Cgroup: "/c"}, "cgroup", 4},
		{"threads", Target{TIDs: []int{7, 8, 9}}, "task", 6},
	} {
		f := newFake()
		s, err := Open(f, both(), c.target, []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range f.open {
			if what != c.what {
				t.Errorf("%s: %s is open", c.about, what)
			}
		}
		a := f.attrs[0]
		if len(f.open) != c.n || a.Config != 0x01cd || a.Ext1 != 100 || a.Sample != 1000 ||
			a.Bits&(sys.PerfBitPreciseIPBit1|sys.PerfBitPreciseIPBit2) != sys.PerfBitPreciseIPBit2 ||
			a.Bits&sys.PerfBitExcludeKernel == 0 || f.attrs[c.n/2].Config != 0x82d0 || f.attrs[c.n/2].Ext1 != 0 {
			t.Errorf("%s: %d open, %+v", c.about, len(f.open), f.attrs)
		}
		s.Close()
		if len(f.open) != 0 {
			t.Errorf("%s: %d still open", c.about, len(f.open))
		}
	}
}

func TestCollectsWhatComesWithDisable(t *testing.T) {
	f := newFake()
	f.content = func(int) []byte { return slices.Concat(sampleBytes, record(2, 0, 1, 3)) }
	f.counted = 4000
	s, err := Open(f, both(), Target{}, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []Access
	stats, err := s.Collect(context.Background(), time.Millisecond, func(a Access) { got = append(got, a) })
	if err != nil || stats != (Stats{Samples: 2, Qualified: 8000, Lost: 6}) || len(got) != 2 || got[0] != wantSample {
		t.Errorf("%+v, %+v, %v", got, stats, err)
	}
	f.content, f.counted = func(int) []byte { return sampleBytes[:20] }, 4100
	if stats, err := s.Collect(context.Background(), time.Millisecond, func(Access) {}); !errors.Is(err, unix.ErrMalformed) || stats.Qualified != 200 {
		t.Errorf("a broken ring: %+v, %v", stats, err)
	}
	f.content = nil
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Collect(ctx, time.Hour, func(Access) {}); err != nil {
		t.Errorf("ended early: %v", err)
	}
}

// 10,000 accesses at a period of 1,000 are ten samples.
func TestLossesAtTheEndAreFound(t *testing.T) {
	for _, c := range []struct{ in, want Stats }{
		{Stats{Samples: 10, Qualified: 10_999}, Stats{Samples: 10, Qualified: 10_999}},
		{Stats{Samples: 11, Qualified: 10_500}, Stats{Samples: 11, Qualified: 10_500}}, // the rest of a period before
		{Stats{Samples: 7, Lost: 3, Qualified: 10_000}, Stats{Samples: 7, Lost: 3, Qualified: 10_000}},
		{Stats{Samples: 7, Lost: 1, Qualified: 10_000}, Stats{Samples: 7, Lost: 3, Qualified: 10_000}},
	} {
		if got := c.in.settled(1000); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.in, got, c.want)
		}
	}
}

func TestRefusalsLeaveNothingOpen(t *testing.T) {
	for _, c := range []struct {
		err, ring, want error
		text            string
	}{
		{err: sys.EOPNOTSUPP, want: unix.ErrNotSupported, text: "cannot sample addresses"},
		{err: sys.EINVAL, want: unix.ErrNotSupported, text: "cpu 1"},
		{err: sys.EACCES, want: unix.ErrNotPermitted, text: "CAP_PERFMON"},
		{ring: sys.EPERM, want: unix.ErrNotPermitted, text: "perf_event_mlock_kb"},
	} {
		f := newFake()
		f.noRing = c.ring
		f.refuse = func(_ *sys.PerfEventAttr, cpu int) error {
			if cpu == 1 {
				return c.err
			}
			return nil
		}
		_, err := Open(f, both(), Target{Cgroup: "/c"}, []int{0, 1})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || len(f.open) != 0 {
			t.Errorf("%v: %v, %d still open", c.err, err, len(f.open))
		}
	}
}

func TestGoneIsLeftOut(t *testing.T) {
	f := newFake()
	f.refuse = func(_ *sys.PerfEventAttr, id int) error {
		if id == 1 {
			return sys.ENODEV
		}
		return nil
	}
	if _, err := Open(f, both(), Target{}, []int{0, 1}); err != nil || len(f.open) != 2 {
		t.Errorf("an offline CPU: %v, %d open", err, len(f.open))
	}
	f.refuse = func(*sys.PerfEventAttr, int) error { return sys.ESRCH }
	if _, err := Open(f, both(), Target{TIDs: []int{5}}, nil); !errors.Is(err, unix.ErrGone) {
		t.Errorf("all threads ended: %v", err)
	}
}

func TestBadConfigIsRefused(t *testing.T) {
	for text, change := range map[string]func(*Config, *Target){
		"neither loads nor stores": func(c *Config, _ *Target) { c.Loads, c.Stores = false, false },
		"period is 0":              func(c *Config, _ *Target) { c.Period = 0 },
		"not within 0-65535":       func(c *Config, _ *Target) { c.LatencyThreshold = 1 << 16 },
		"choose one":               func(_ *Config, t *Target) { t.Cgroup, t.TIDs = "/c", []int{1} },
	} {
		cfg, target := both(), Target{}
		change(&cfg, &target)
		if _, err := Open(newFake(), cfg, target, []int{0}); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDecisionTable(t *testing.T) {
	for _, c := range []struct {
		cpu  event.CPU
		want string
		text string
	}{
		{event.CPU{Vendor: "GenuineIntel", Family: 6, Model: 0x55}, "intel-skx", ""},
		{event.CPU{Vendor: "GenuineIntel", Family: 6, Model: 0x8f}, "intel-spr", ""},
		{event.CPU{Vendor: "GenuineIntel", Family: 6, Model: 0xad}, "intel-gnr", ""},
		{event.CPU{PVR: 0x4e}, "", "marked events"},
		{event.CPU{}, "", "no event is known"},
	} {
		got, err := tableFor(c.cpu)
		if got.Name != c.want || c.text == "" && err != nil || c.text != "" && (!errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%+v: %q, %v", c.cpu, got.Name, err)
		}
	}
}

func TestDetectsTheLab(t *testing.T) {
	dir := t.TempDir()
	id := filepath.Join(dir, "sys/bus/event_source/devices/cpu/identifier")
	if err := os.MkdirAll(filepath.Dir(id), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Detect(unix.At(dir)); !errors.Is(err, unix.ErrGone) {
		t.Errorf("no cpuinfo: %v", err)
	}
	if err := os.WriteFile(id, []byte("homenode-lab\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Detect(unix.At(dir)); err != nil || got.Name != "lab" {
		t.Errorf("%q, %v", got.Name, err)
	}
}
