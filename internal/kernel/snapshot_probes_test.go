// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/sampling"
	"homenode/internal/kernel/unix"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// fakeSampling has loads and no stores, or the other way round: at each read of the
// events qualified more have qualified, and each ring brings one sample.
type fakeSampling struct {
	unix.Sampling        // what is not asked of it
	refused       uint64 // config
	next          atomic.Int64
	qualified     func(read int64) uint64
	reads         atomic.Int64
	rings         atomic.Int64 // one of each look
}

func (f *fakeSampling) Open(*sys.PerfEventAttr, int, int, int) (int, error) { return 0, sys.EINVAL }
func (f *fakeSampling) OpenDir(string) (int, error)                         { return 0, sys.EINVAL }
func (f *fakeSampling) Close(int)                                           {}
func (f *fakeSampling) Enable(int) error                                    { return nil }
func (f *fakeSampling) Disable(int) error                                   { return nil }

func (f *fakeSampling) Ring(int, int) (unix.Ring, error) {
	f.rings.Add(1)
	return &oneSample{}, nil
}

func (f *fakeSampling) OpenTask(attr *sys.PerfEventAttr, _, cpu, _ int) (int, error) {
	if attr.Config == f.refused {
		return 0, sys.EOPNOTSUPP
	}
	if cpu != 0 {
		return 0, sys.ENODEV
	}
	return int(f.next.Add(1)), nil
}

func (f *fakeSampling) Read(_ int, words []uint64) (int, error) {
	words[0] = f.qualified(f.reads.Add(1))
	return 1, nil
}

type oneSample struct{ given bool }

func (r *oneSample) Close() error { return nil }
func (r *oneSample) Take(into []byte) []byte {
	if r.given {
		return into
	}
	r.given = true
	words := []uint64{0x1000, 10<<32 | 10, 1, 0x3000, 0, 300, 1<<1 | 1<<(5+1) | 1<<(5+8)}
	into = binary.LittleEndian.AppendUint32(into, sys.PERF_RECORD_SAMPLE)
	into = binary.LittleEndian.AppendUint16(into, 2)
	into = binary.LittleEndian.AppendUint16(into, uint16(8+8*len(words)))
	for _, w := range words {
		into = binary.LittleEndian.AppendUint64(into, w)
	}
	return into
}

// sampled is stopped when this many looks have begun.
func sampled(t *testing.T, f *fakeSampling, looks int64) (snapshot.Samples, error) {
	t.Helper()
	return sampledOn(t, f, looks, kerneltest.Files{"/sys/bus/event_source/devices/cpu/identifier": "homenode-lab\n"})
}

func sampledOn(t *testing.T, f *fakeSampling, looks int64, cpu kerneltest.Files) (snapshot.Samples, error) {
	t.Helper()
	root := fakeSnapshot(t)
	kerneltest.Write(t, root, cpu)
	m, err := ReadMachine(root)
	if err != nil {
		t.Fatal(err)
	}
	p := &samplingProbe{calls: f, root: root}
	if err := p.Start(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); f.rings.Load() < looks; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d of %d looks have begun after a minute", f.rings.Load(), looks)
			break
		}
	}
	p.Stop()
	var s snapshot.Snapshot
	err = p.Finish(&s)
	return s.Samples, err
}

// A PMU that samples only one kind of access still gives that one.
func TestOneKindOfSamples(t *testing.T) {
	for _, c := range []struct {
		refused uint64
		from    string
	}{{sampling.Lab().Stores.Config, "one load in 101 of at least 96 cycles, no store"}, {sampling.Lab().Loads.Config, "no load of at least 96 cycles, one store in 10007"}} {
		f := &fakeSampling{refused: c.refused, qualified: func(int64) uint64 { return 0 }}
		s, err := sampled(t, f, 2)
		if s.Why != "" || s.Loads+s.Stores == 0 || !strings.Contains(s.From, c.from) || !errors.Is(err, ErrNotSupported) {
			t.Errorf("%+v, %v; want %q", s, err, c.from)
		}
	}
}

// AMD's samples are of operations, at a period of its own: the source says so.
func TestSamplesOfOperations(t *testing.T) {
	f := &fakeSampling{refused: 1, qualified: func(int64) uint64 { return 0 }}
	s, err := sampledOn(t, f, 4, kerneltest.CPUTree("zen-4"))
	const from = "perf samples (amd-ibs): one operation in 262144: loads of at least 96 cycles, and stores"
	if err != nil || s.Why != "" || s.Loads == 0 || s.Stores != 0 || s.From != from {
		t.Errorf("%+v, %v; want %q", s, err, from)
	}
}

// countingSampling has all events, which count to the same figure.
type countingSampling struct{ fakeSampling }

func (f *countingSampling) OpenTask(*sys.PerfEventAttr, int, int, int) (int, error) {
	return int(f.next.Add(1)), nil
}

func (f *countingSampling) Read(_ int, words []uint64) (int, error) {
	return copy(words, []uint64{640, 10, 10}), nil
}

// What a CPU's memory controllers tell reaches the nodes, with the events' names; reads and
// writes that are not told apart are neither.
func TestTrafficOfCPUs(t *testing.T) {
	for cpu, want := range map[string]snapshot.Traffic{
		"granite-rapids": {Reads: unit.Measured(uint64(2560), "perf uncore_imc/UNC_M_CAS_COUNT_SCH0.RD + UNC_M_CAS_COUNT_SCH1.RD/"), Writes: unit.Measured(uint64(2560), "perf uncore_imc/UNC_M_CAS_COUNT_SCH0.WR + UNC_M_CAS_COUNT_SCH1.WR/")},
		"neoverse-n2":    {All: unit.Measured(uint64(640), "perf arm_cmn/hnf_mc_reqs/")},
		"zen-4-guest":    {},
	} {
		root := fakeSnapshot(t)
		kerneltest.Write(t, root, kerneltest.CPUTree(cpu))
		m, err := ReadMachine(root)
		if err != nil {
			t.Fatal(err)
		}
		p := &controllerProbe{calls: &countingSampling{}, root: root}
		if err := p.Start(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		p.Stop()
		s := snapshot.Snapshot{Nodes: make([]snapshot.Node, 2)}
		if err := p.Finish(&s); err != nil {
			t.Fatal(err)
		}
		for _, n := range s.Nodes {
			got := n.Traffic
			if got.Reads.V != want.Reads.V || got.Writes.V != want.Writes.V || got.All != want.All || got.Busy.Known() ||
				want.Reads.Known() && got.Reads.From != want.Reads.From || got.Reads.From == "" {
				t.Errorf("%s: %+v, want %+v", cpu, got, want)
			}
		}
	}
}

// Work that starts after the first look raises the period.
func TestPeriodRises(t *testing.T) {
	f := &fakeSampling{refused: sampling.Lab().Stores.Config, qualified: func(read int64) uint64 {
		if read == 1 {
			return 0
		}
		return 10_000_000 // 20 million a second
	}}
	s, _ := sampled(t, f, 3)
	if want := "one load in 101 (later in 10000) of"; !strings.Contains(s.From, want) {
		t.Errorf("%q, want %q", s.From, want)
	}
}

func TestPeriodFor(t *testing.T) {
	for _, c := range []struct{ qualified, want uint64 }{{0, 101}, {400_000_000, 200_000 * 5}, {1 << 60, mostPeriod}} {
		if got := periodFor(c.qualified, firstLook, leastLoads); got != c.want {
			t.Errorf("%d accesses: period %d, want %d", c.qualified, got, c.want)
		}
	}
}
