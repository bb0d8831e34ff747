// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/event"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
)

// packets are bytes of a record, in the order that Neoverse writes them, padded to a line.
func packets(all ...[]byte) []byte {
	record := slices.Concat(all...)
	return append(record, make([]byte, (speLine-len(record)%speLine)%speLine)...)
}

func words8(header byte, payload uint64) []byte {
	return binary.LittleEndian.AppendUint64([]byte{header}, payload)
}

func words2(header byte, payload uint16) []byte {
	return binary.LittleEndian.AppendUint16([]byte{header}, payload)
}

// speRecord is a load or store as Neoverse N2 writes it.
func speRecord(store bool, addr uint64, latency uint16, source byte, counter uint64) []byte {
	class := byte(0)
	if store {
		class = 1
	}
	return packets(words8(0xb0, 1<<63|0x401000), []byte{0x49, class}, words2(0x98, latency), words2(0x99, 3),
		words8(0xb2, 0xa5<<56|addr), []byte{0x62, 0x16, 0, 0, 0}, []byte{0x43, source}, words8(0x71, counter))
}

func decoded(data []byte, at uint64) (all []operation, bad uint64) {
	bad = operations(data, at, func(op operation) { all = append(all, op) })
	return all, bad
}

func TestReadOperations(t *testing.T) {
	load := operation{memory: true, ip: 0x401000, addr: 0x7f0000001040, latency: 373, events: 0x16, source: 0xd, sourced: true, counter: 99}
	store := load
	store.store, store.latency, store.source, store.counter = true, 5, 0, 100
	kernel := operation{memory: true, kernel: true, ip: 0xffff800008001000, addr: 0xffff000012345678}
	for _, c := range []struct {
		about string
		data  []byte
		want  []operation
		bad   uint64
	}{
		{"nothing", nil, nil, 0},
		{"a load and a store", slices.Concat(speRecord(false, 0x7f0000001040, 373, 0xd, 99), speRecord(true, 0x7f0000001040, 5, 0, 100)), []operation{load, store}, 0},
		{"a branch", packets(words8(0xb0, 0x400000), []byte{0x4a, 0}, []byte{0x01}), []operation{{ip: 0x400000}}, 0},
		{"of the kernel, without a time", packets(words8(0xb0, 1<<63|1<<61|0xff800008001000), []byte{0x49, 0}, words8(0xb2, 0xff000012345678), []byte{0x01}), []operation{kernel}, 0},
		{"a context, a physical address, an index that only long headers have", packets([]byte{0x65, 1, 2, 3, 4}, words8(0xb3, 5), append([]byte{0x23}, words2(0x9f, 7)...), append([]byte{0x21}, words2(0x98, 7)...), append([]byte{0x21}, words8(0xb2, 7)...), []byte{0x01}), []operation{{}}, 0},
		{"filled up", slices.Concat([]byte{0x23, 0}, bytes.Repeat([]byte{0xee}, 14), []byte{0x01}), []operation{{}}, 0},
		{"one that makes no sense, and the next line", slices.Concat(packets([]byte{0x49, 1, 0xff, 0x71}), speRecord(true, 0x7f0000001040, 5, 0, 100)), []operation{store}, 1},
		{"the end is missing", speRecord(false, 1, 2, 3, 4)[:20], nil, 1},
		{"cut off between packets", speRecord(false, 1, 2, 3, 4)[:9], nil, 1},
		{"half of a long header", []byte{0x20}, nil, 1},
	} {
		got, bad := decoded(c.data, 128)
		if !reflect.DeepEqual(got, c.want) || bad != c.bad {
			t.Errorf("%s: %+v, %d bad, want %+v, %d", c.about, got, bad, c.want, c.bad)
		}
	}
	if got, bad := decoded(slices.Concat([]byte{0x23, 0, 0xee, 0xee, 0xee, 0xee, 0x01}), 10); len(got) != 1 || bad != 0 {
		t.Errorf("filled up to 16 from 10: %+v, %d", got, bad)
	}
}

// What SPE says of the source, by CPU.
func TestLevelsOfSPE(t *testing.T) {
	arm := func(part int) speEncoding { return encodingOf(event.CPU{Implementer: 0x41, Part: part}) }
	if arm(0xd49) != speNeoverse || arm(0xd4f) != speNeoverse || arm(0xd05) != speByEvents || encodingOf(event.CPU{Implementer: 0xc0, Part: 0xac4}) != speAmpereOne || encodingOf(event.CPU{Implementer: 0x6d, Part: 0xd49}) != speNeoverse {
		t.Error("encodings of CPUs")
	}
	for _, c := range []struct {
		by   speEncoding
		op   operation
		want Level
	}{
		{speNeoverse, operation{sourced: true, source: 0}, L1}, {speNeoverse, operation{sourced: true, source: 8}, L2},
		{speNeoverse, operation{sourced: true, source: 0xc}, LLC}, {speNeoverse, operation{sourced: true, source: 0xd}, RemoteDRAM},
		{speNeoverse, operation{sourced: true, source: 0xd, events: speSnooped}, RemoteCache}, {speNeoverse, operation{sourced: true, source: 0xe}, LocalDRAM},
		{speNeoverse, operation{sourced: true, source: 0xff}, Unknown}, {speNeoverse, operation{store: true, sourced: true}, Unknown},
		{speNeoverse, operation{events: speL1Access}, L1},
		{speAmpereOne, operation{sourced: true, source: 0}, LLC}, {speAmpereOne, operation{sourced: true, source: 5}, RemoteCache}, {speAmpereOne, operation{sourced: true, source: 7}, LocalDRAM},
		{speByEvents, operation{sourced: true, source: 0xe, events: speL1Access | speL1Refill | speLLC}, LLC},
		{speByEvents, operation{events: speL1Access | speL1Refill | speLLC | speLLCMiss}, Unknown},
		{speByEvents, operation{events: speLLC | speLLCMiss | speRemote}, RemoteDRAM}, {speByEvents, operation{events: speRemote | speModified}, RemoteCache},
	} {
		if got := levelOfSPE(c.op, c.by); got != c.want {
			t.Errorf("%d, %+v: %v, want %v", c.by, c.op, got, c.want)
		}
	}
}

// Records are found again after any bytes, in as many steps as there are bytes.
func FuzzReadOperations(f *testing.F) {
	f.Add(speRecord(false, 0x1000, 300, 0xe, 9), uint16(0))
	f.Add([]byte{0x23, 0, 0x20}, uint16(15))
	f.Fuzz(func(t *testing.T, data []byte, at uint16) {
		n := 0
		bad := operations(data, uint64(at), func(operation) { n++ })
		if uint64(n)+bad > uint64(len(data))+1 {
			t.Errorf("%d records and %d bad pieces of %d bytes", n, bad, len(data))
		}
		good := speRecord(false, 0x1000, 300, 0xe, 9)
		padded := append(slices.Clone(data), make([]byte, (2*speLine-(int(at)+len(data))%speLine)%speLine)...)
		if _, lost := decoded(padded, uint64(at)); lost == 0 {
			if got, _ := decoded(append(padded, good...), uint64(at)); len(got) == 0 || got[len(got)-1].addr != 0x1000 {
				t.Errorf("the last record is not found: %+v", got)
			}
		}
	})
}

// The kernel's records beside a trace, with their sample_id.
func auxRecord(at, size, flags uint64, cpu, pid int, time uint64) []byte {
	return record(sys.PERF_RECORD_AUX, 2, at, size, flags, uint64(pid)|uint64(pid)<<32, time, uint64(cpu))
}

func switchRecord(misc uint16, pid, tid int, time uint64) []byte {
	return record(sys.PERF_RECORD_SWITCH_CPU_WIDE, misc, 1<<32|1, uint64(pid)|uint64(tid)<<32, time, 0)
}

func startRecord(pid, tid int) []byte {
	return record(sys.PERF_RECORD_ITRACE_START, 2, uint64(pid)|uint64(tid)<<32, 9, 9, 0)
}

// tracing samples one CPU (or thread 7) whose trace and ring are these when it is disabled.
func tracing(t *testing.T, target Target, data, ring []byte, change func(*Config)) ([]Access, Stats, *fakeKernel) {
	t.Helper()
	k := newKernel(speRule)
	k.traced = func(int) ([]byte, []byte) { return data, ring }
	cfg := Config{Table: tableOfCPU(t, "neoverse-n2"), Loads: true, Stores: true, Period: 1000, LatencyThreshold: 100, UserOnly: true}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(k, cfg, target, []int{3})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var got []Access
	stats, err := s.Collect(context.Background(), time.Millisecond, func(a Access) { got = append(got, a) })
	if err != nil {
		t.Fatal(err)
	}
	return got, stats, k
}

// speRule is arm_spe_pmu_event_init.
func speRule(_ *fakeKernel, attr *sys.PerfEventAttr, _, _ int) error {
	const fields = 1 | 1<<16 | 7<<32
	switch {
	case attr.Type != 12:
		return sys.ENOENT
	case attr.Config&^fields != 0 || attr.Config&(3<<33) == 0 || attr.Ext1 != 0 || attr.Ext2 != 0 || attr.Bits&(sys.PerfBitFreq|sys.PerfBitUseClockID) != 0:
		return sys.EINVAL
	case attr.Bits&sys.PerfBitExcludeIdle != 0:
		return sys.EOPNOTSUPP
	}
	return nil
}

func access(pid, tid, cpu int, addr, time uint64) Access {
	return Access{PID: pid, TID: tid, CPU: cpu, Addr: addr, IP: 0x401000, Time: time, Weight: 300, Level: LocalDRAM}
}

// A sample is its task's by the switches beside it.
func TestTraceIsItsTasks(t *testing.T) {
	var data []byte
	for _, counter := range []uint64{50, 100, 149, 151, 250} { // times are twice that
		data = append(data, speRecord(false, 0x1000+counter, 300, 0xe, counter)...)
	}
	size := uint64(len(data))
	first, rest := uint64(2*speLine), size-2*speLine
	for _, c := range []struct {
		about string
		ring  []byte
		want  []Access
		stats Stats
	}{
		{"by switches", slices.Concat(startRecord(5, 6), switchRecord(switchedOut, 5, 6, 199), switchRecord(0, 7, 8, 200), auxRecord(0, first, 0, 3, 1, 220), switchRecord(0, 9, 9, 300), auxRecord(first, rest, 0, 3, 1, 600)),
			[]Access{access(5, 6, 3, 0x1000+50, 100), access(7, 8, 3, 0x1000+100, 200), access(7, 8, 3, 0x1000+149, 298), access(9, 9, 3, 0x1000+151, 302), access(9, 9, 3, 0x1000+250, 500)}, Stats{Samples: 5, Loads: 5}},
		{"no switch before the first", slices.Concat(switchRecord(0, 7, 8, 250), auxRecord(0, size, 0, 3, 1, 600)),
			[]Access{access(7, 8, 3, 0x1000+149, 298), access(7, 8, 3, 0x1000+151, 302), access(7, 8, 3, 0x1000+250, 500)}, Stats{Samples: 5, Lost: 2, Loads: 3}},
		{"switches were lost", slices.Concat(startRecord(5, 6), switchRecord(0, 7, 8, 150), record(sys.PERF_RECORD_LOST, 0, 1, 4, 9, 9, 0), switchRecord(0, 9, 9, 400), auxRecord(0, size, 0, 3, 1, 600)),
			[]Access{access(5, 6, 3, 0x1000+50, 100), access(9, 9, 3, 0x1000+250, 500)}, Stats{Samples: 5, Lost: 3, Loads: 2}},
		{"the records of pieces were lost", slices.Concat(startRecord(5, 6), switchRecord(0, 9, 9, 299)),
			[]Access{access(5, 6, 3, 0x1000+50, 100), access(5, 6, 3, 0x1000+100, 200), access(5, 6, 3, 0x1000+149, 298), access(9, 9, 3, 0x1000+151, 302), access(9, 9, 3, 0x1000+250, 500)}, Stats{Samples: 5, Loads: 5}},
		{"full, and the same task when it goes on", slices.Concat(startRecord(5, 6), auxRecord(0, first, traceCut, 3, 1, 230), record(sys.PERF_RECORD_ITRACE_START, 2, 5|6<<32, 9, 301, 0)),
			[]Access{access(5, 6, 3, 0x1000+50, 100), access(5, 6, 3, 0x1000+100, 200), access(5, 6, 3, 0x1000+151, 302), access(5, 6, 3, 0x1000+250, 500)}, Stats{Samples: 5, Lost: 1, Throttled: 1, Loads: 4}},
		{"full, and two at once", slices.Concat(startRecord(5, 6), auxRecord(0, first, traceCut, 3, 1, 230), switchRecord(0, 9, 9, 400), auxRecord(first, rest, traceClash, 3, 1, 600)),
			[]Access{access(5, 6, 3, 0x1000+50, 100), access(5, 6, 3, 0x1000+100, 200), access(9, 9, 3, 0x1000+250, 500)}, Stats{Samples: 5, Lost: 3, Throttled: 1, Loads: 3}},
	} {
		got, stats, _ := tracing(t, Target{}, data, c.ring, nil)
		c.stats.Qualified = (c.stats.Samples + c.stats.Lost) * leastOps
		if !reflect.DeepEqual(got, c.want) || stats != c.stats {
			t.Errorf("%s:\n%+v, %+v, want\n%+v, %+v", c.about, got, stats, c.want, c.stats)
		}
	}
}

// A thread's own trace needs no switches, and has its CPU with each piece.
func TestTraceOfAThread(t *testing.T) {
	one := speRecord(false, 0x1000, 300, 0xe, 9)
	got, stats, k := tracing(t, Target{TIDs: []int{7}}, slices.Concat(one, one), slices.Concat(auxRecord(0, speLine, 0, 1, 5, 10), auxRecord(speLine, speLine, 0, 2, 5, 20)), nil)
	want := []Access{access(5, 7, 1, 0x1000, 0), access(5, 7, 2, 0x1000, 0)}
	if !reflect.DeepEqual(got, want) || stats != (Stats{Samples: 2, Loads: 2, Qualified: 2 * leastOps}) {
		t.Errorf("%+v, %+v, want %+v", got, stats, want)
	}
	padding := make([]byte, 3*speLine)
	for about, c := range map[string]struct {
		data, ring []byte
		n          int
		lost       uint64
	}{
		"filled up between pieces":  {slices.Concat(one, padding, one), slices.Concat(auxRecord(0, speLine, 0, 1, 5, 10), auxRecord(4*speLine, speLine, 0, 2, 5, 20)), 2, 0},
		"a piece's record was lost": {slices.Concat(one, one), auxRecord(speLine, speLine, 0, 2, 5, 20), 1, 1},
		"all records were lost":     {slices.Concat(one, padding, one), nil, 0, 2},
	} {
		if got, stats, _ := tracing(t, Target{TIDs: []int{7}}, c.data, c.ring, nil); len(got) != c.n || stats.Lost != c.lost {
			t.Errorf("%s: %+v, %+v", about, got, stats)
		}
	}
	if a := k.attrs[0]; a.Bits&sys.PerfBitContextSwitch != 0 || a.Bits&sys.PerfBitSampleIDAll == 0 || a.Bits&sys.PerfBitExcludeKernel == 0 {
		t.Errorf("%+v", a)
	}
}

// What is not asked for is dropped, and not asked of the hardware.
func TestTraceIsPicked(t *testing.T) {
	data := slices.Concat(speRecord(false, 0x1000, 300, 0xe, 1), speRecord(false, 0x2000, 99, 0xe, 2), speRecord(true, 0x3000, 5, 0, 3), packets([]byte{0x4a, 0, 0x01}))
	ring := slices.Concat(startRecord(5, 6), auxRecord(0, uint64(len(data)), 0, 3, 1, 10))
	for _, c := range []struct {
		loads, stores bool
		config        uint64
		want          []uint64
	}{{true, false, speLoads, []uint64{0x1000}}, {false, true, speStores, []uint64{0x3000}}, {true, true, speLoads | speStores, []uint64{0x1000, 0x3000}}} {
		got, stats, k := tracing(t, Target{}, data, ring, func(cfg *Config) { cfg.Loads, cfg.Stores = c.loads, c.stores })
		var addrs []uint64
		for _, a := range got {
			addrs = append(addrs, a.Addr)
		}
		if !slices.Equal(addrs, c.want) || stats.Samples != 3 || len(k.attrs) != 1 || k.attrs[0].Config&(speLoads|speStores) != c.config || k.attrs[0].Sample != leastOps {
			t.Errorf("%+v: %#x, %+v, %+v", c, addrs, stats, k.attrs)
		}
	}
}

// However the trace is cut into pieces and rounds, the accesses are the same.
func TestPropertyTraceInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := rng.IntN(40)
		tr := &trace{ring: &fakeRing{}, clock: unix.Clock{Shift: 0, Mult: 1, Mask: ^uint64(0)}, cpu: 3, encoding: speNeoverse}
		ring := tr.ring.(*fakeRing)
		d := decoder{ops: true, loads: true, stores: true}
		ring.data = startRecord(1, 1)
		var got []Access
		var total Stats
		take := func() {
			all, stats, err := tr.take(nil, d)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, all...)
			total.add(stats)
		}
		written, said := uint64(0), uint64(0)
		for i := range n {
			ring.data = append(ring.data, switchRecord(0, i+2, i+2, uint64(10*i+5))...)
			ring.trace = append(ring.trace, speRecord(false, uint64(i+1)<<12, 300, 0xe, uint64(10*i+7))...)
			written += speLine
			if rng.IntN(3) == 0 {
				ring.data = append(ring.data, auxRecord(said, written-said, 0, 3, 0, uint64(10*i+8))...)
				said = written
			}
			if rng.IntN(4) == 0 {
				take()
			}
		}
		if written > said {
			ring.data = append(ring.data, auxRecord(said, written-said, 0, 3, 0, 1<<40)...)
		}
		take()
		if lost := tr.settle(); len(got) != n || lost != 0 || total != (Stats{Samples: uint64(n), Loads: uint64(n)}) {
			t.Fatalf("%d of %d accesses, %d lost, %+v", len(got), n, lost, total)
		}
		for i, a := range got {
			if a.TID != i+2 || a.Addr != uint64(i+1)<<12 {
				t.Fatalf("access %d: %+v", i, a)
			}
		}
	}
}

// The same of a thread, whose CPU is that of each piece, with lines between them that are filled up.
func TestPropertyTraceOfAThreadInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		ring := &fakeRing{}
		tr := &trace{ring: ring, tid: 7, encoding: speNeoverse}
		var got []Access
		var lost uint64
		take := func() {
			all, stats, err := tr.take(nil, decoder{ops: true, loads: true, stores: true})
			if err != nil {
				t.Fatal(err)
			}
			got, lost = append(got, all...), lost+stats.Lost
		}
		var cpus []int
		for at := uint64(0); len(cpus) < 40; {
			lines, gap, cpu := rng.IntN(4), uint64(rng.IntN(3))*speLine, rng.IntN(9)
			ring.trace = append(ring.trace, make([]byte, gap)...)
			for range lines {
				ring.trace = append(ring.trace, speRecord(false, uint64(len(cpus)+1)<<12, 300, 0xe, 9)...)
				cpus = append(cpus, cpu)
			}
			size := uint64(lines) * speLine
			ring.data = append(ring.data, auxRecord(at+gap, size, 0, cpu, 5, 1)...)
			if at += gap + size; rng.IntN(3) == 0 {
				take()
			}
		}
		take()
		if len(got) != len(cpus) || lost != 0 || tr.settle() != 0 {
			t.Fatalf("%d of %d accesses, %d lost", len(got), len(cpus), lost)
		}
		for i, a := range got {
			if a.CPU != cpus[i] || a.PID != 5 || a.TID != 7 || a.Addr != uint64(i+1)<<12 {
				t.Fatalf("access %d: %+v, want CPU %d", i, a, cpus[i])
			}
		}
	}
}

// A record without a time has no task, and does not make the trace forget who ran.
func TestTraceWithoutTimes(t *testing.T) {
	data := slices.Concat(packets(words8(0xb0, 1<<63|0x401000), []byte{0x49, 0}, words2(0x98, 300), words8(0xb2, 0x5000), []byte{0x01}), speRecord(false, 0x1000, 300, 0xe, 50))
	got, stats, _ := tracing(t, Target{}, data, slices.Concat(startRecord(5, 6), switchRecord(0, 9, 9, 400)), nil)
	if want := []Access{access(5, 6, 3, 0x1000, 100)}; !reflect.DeepEqual(got, want) || stats.Lost != 1 {
		t.Errorf("%+v, %+v", got, stats)
	}
}

// Who ran is remembered within bounds, whatever switches there are.
func TestSwitchesAreBounded(t *testing.T) {
	tr := &trace{}
	for i := range 3 * maxRan {
		tr.runs(ran{uint64(i), i, i})
	}
	if pid, _ := tr.who(1 << 60); len(tr.ran) > maxRan || pid != 3*maxRan-1 {
		t.Errorf("%d are remembered, the last is %d", len(tr.ran), pid)
	}
}

func TestRefusalsOfSPE(t *testing.T) {
	with := func(more kerneltest.Files) kerneltest.Files {
		tree := kerneltest.CPUTree("neoverse-n2")
		maps.Copy(tree, more)
		return tree
	}
	const devices = "/sys/bus/event_source/devices/"
	for text, tree := range map[string]kerneltest.Files{
		"no PMU arm_spe_0":  kerneltest.CPUTree("grace"),
		"CPUs 2-3 have no":  with(kerneltest.Files{"/sys/devices/system/cpu/online": "0-3\n", devices + "arm_spe_0/cpumask": "0-1\n"}),
		"CPUs of two kinds": with(kerneltest.Files{devices + "arm_spe_1/type": "13\n"}),
		"not a number":      with(kerneltest.Files{devices + "arm_spe_0/type": "twelve\n"}),
	} {
		want := unix.ErrNotSupported
		if text == "not a number" {
			want = unix.ErrMalformed
		}
		if _, err := Detect(kerneltest.Tree(t, tree)); !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	k := newKernel(speRule)
	k.noClock = true
	cfg := Config{Table: tableOfCPU(t, "neoverse-n2"), Loads: true, Period: 1000}
	if _, err := Open(k, cfg, Target{}, []int{0}); !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "does not publish its clock") || len(k.open) != 0 {
		t.Errorf("without a clock: %v, left open %v", err, k.open)
	}
	if s, err := Open(k, cfg, Target{TIDs: []int{7}}, nil); err != nil {
		t.Errorf("a thread needs no clock: %v", err)
	} else {
		s.Close()
	}
	busy := newKernel(func(*fakeKernel, *sys.PerfEventAttr, int, int) error { return sys.EBUSY })
	if _, err := Open(busy, cfg, Target{}, []int{0}); !errors.Is(err, unix.ErrNotSupported) || !strings.Contains(err.Error(), "another program samples by it") {
		t.Errorf("the unit is taken: %v", err)
	}
	k.noRing = sys.EPERM
	if _, err := Open(k, cfg, Target{TIDs: []int{7}}, nil); !errors.Is(err, unix.ErrNotPermitted) || len(k.open) != 0 {
		t.Errorf("no ring: %v, left open %v", err, k.open)
	}
}

// Words that make no sense are refused, not read beyond their end.
func TestTraceRefuses(t *testing.T) {
	for about, ring := range map[string][]byte{
		"a short record":       record(sys.PERF_RECORD_AUX, 0, 1, 2, 3),
		"half a header":        {11, 0, 0},
		"pieces that go back":  slices.Concat(auxRecord(64, 64, 0, 0, 0, 1), auxRecord(0, 64, 0, 0, 0, 2)),
		"a piece without end":  auxRecord(0, 1<<63, 0, 0, 0, 1),
		"a piece beyond words": auxRecord(^uint64(0), 64, 0, 0, 0, 1),
	} {
		tr := &trace{tid: 7, ring: &fakeRing{data: ring, trace: slices.Concat(speRecord(false, 1, 2, 3, 4), speRecord(false, 1, 2, 3, 4))}}
		got, _, err := tr.take(nil, decoder{})
		if err == nil && (len(got) != 0 || tr.settle() == 0) || err != nil && !errors.Is(err, unix.ErrMalformed) {
			t.Errorf("%s: %+v, %v", about, got, err)
		}
	}
}
