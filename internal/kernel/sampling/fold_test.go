// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"homenode/internal/kernel/procfs"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// fakeSpaces has two processes that share a file, and one that is gone.
type fakeSpaces struct{}

func (fakeSpaces) Space(pid int) (Space, bool) {
	areas, err := procfs.ParseAreas([]byte(fmt.Sprintf(
		"00400000-00500000 r-xp 00001000 fe:00 7  /usr/bin/served\n00600000-00700000 rw-p 00000000 00:00 0  [heap]\n%x-%x rw-s 00002000 00:18 9  /dev/shm/table\n",
		0x10000000*pid, 0x10000000*pid+0x100000)))
	if err != nil {
		panic(err)
	}
	return Space{Name: "served", areas: areas, symbols: func(string) *symbolTable { return nil }}, pid < 10
}

func newFolder() *Folder { return NewFolder(fakeSpaces{}, 2, func(cpu int) int { return cpu / 2 }) }

func load(pid, cpu int, at uint64, level Level) Access {
	return Access{PID: pid, CPU: cpu, Addr: at, IP: 0x400010, Weight: 300, Level: level}
}

func store(pid, cpu int, at uint64) Access {
	return Access{PID: pid, TID: 10*pid + cpu, CPU: cpu, Addr: at, IP: 0x400020, Store: true}
}

func TestPlaces(t *testing.T) {
	f := newFolder()
	f.Add(load(1, 0, 0x600100, LocalDRAM))
	f.Add(load(1, 2, 0x600200, RemoteDRAM))
	f.Add(store(1, 3, 0x600300))
	f.Add(load(11, 0, 0x600100, LocalDRAM))                                                 // gone
	f.Add(Access{PID: 1, CPU: 0, Addr: 0xffff888000000000, Kernel: true, IP: 0xffffffff81}) // counts only
	s := f.Samples(unit.HowModelled, "test", 3)
	if s.Loads != 4 || s.Stores != 1 || s.Lost != 3 || len(s.Places) != 1 {
		t.Fatalf("%+v", s)
	}
	want := snapshot.Place{PID: 1, Name: "served", Mapping: "[heap]", Start: 0x600000, Loads: []uint64{1, 1}, Remote: []uint64{0, 1}, Stores: []uint64{0, 1},
		Latency: unit.Some(300.0), Functions: []snapshot.Function{{Name: "served+0x1010", Samples: 2}, {Name: "served+0x1020", Samples: 1, Writes: 1}}}
	if !reflect.DeepEqual(s.Places[0], want) {
		t.Errorf("\n got %+v\nwant %+v", s.Places[0], want)
	}
}

// The same offset of a shared file is one line, at any address.
func TestSharedLineOfTwoProcesses(t *testing.T) {
	f := newFolder()
	f.Add(store(1, 0, 0x10000040))
	taken := store(2, 2, 0x20000048)
	taken.Level, taken.Modified = RemoteCache, true
	f.Add(taken)
	f.Add(store(1, 0, 0x600000)) // its own
	f.Add(store(2, 2, 0x600000)) // another process's heap at the same address
	s := f.Samples(unit.HowModelled, "test", 0)
	if len(s.Lines) != 1 || s.Lines[0].Bytes != 64 || s.Lines[0].Mapping != "/dev/shm/table" || !slices.Equal(s.Lines[0].Stores, []uint64{1, 1}) || s.Lines[0].Writers != 2 || s.Lines[0].Modified != 1 {
		t.Fatalf("%+v", s.Lines)
	}
	if fn := s.Lines[0].Functions; len(fn) != 1 || fn[0].Name != "served+0x1020" || fn[0].Writes != 2 {
		t.Errorf("%+v", fn)
	}
}

// A page that two nodes write in different lines is named as a page.
func TestPageOfTwoNodes(t *testing.T) {
	f := newFolder()
	f.Add(store(1, 0, 0x600000))
	f.Add(store(1, 2, 0x600040))
	f.Add(load(1, 0, 0x601000, LocalDRAM)) // read only: not reported
	f.Add(load(1, 2, 0x601000, RemoteDRAM))
	s := f.Samples(unit.HowModelled, "test", 0)
	if len(s.Lines) != 1 || s.Lines[0].Bytes != 4096 || s.Lines[0].Addr != 0x600000 {
		t.Fatalf("%+v", s.Lines)
	}
}

// A table that all threads read is common to them; parts of their own are not, even
// within one mapping and with threads that move between nodes.
func TestCommon(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for name, c := range map[string]struct {
		at   func(tid int) uint64
		want float64
	}{
		"table": {func(int) uint64 { return uint64(rng.IntN(1 << 20)) }, 0.9},
		"parts": {func(tid int) uint64 { return uint64(tid<<18 + rng.IntN(1<<18)) }, 0},
	} {
		f := newFolder()
		for range 4000 {
			a := load(1, rng.IntN(4), 0, LocalDRAM)
			a.TID = rng.IntN(4)
			a.Addr = 0x600000 + c.at(a.TID)%0x100000
			f.Add(a)
		}
		got, ok := f.Samples(unit.HowModelled, "test", 0).Places[0].Common.Get()
		if !ok || float64(got) < c.want-0.05 || float64(got) > c.want+0.15 {
			t.Errorf("%s: %v, want about %v", name, got, c.want)
		}
	}
}

// The kernel joins a thread's stack with a table beside it: what is written on the stack is no
// change of the table, and one store in the table is.
func TestStackBesideTable(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const stack, table = 0x600000, 0x603000
	f := newFolder()
	for range 4000 {
		a := load(1, rng.IntN(4), table+uint64(rng.IntN(0x80000)), RemoteDRAM)
		a.TID = rng.IntN(4)
		f.Add(a)
	}
	for i := range 30 { // one thread's, of which 1,000 loads are in the table
		a := load(1, 1, stack+uint64(100*i), LocalDRAM)
		a.TID = 1
		f.Add(a)
		a.Store = true
		f.Add(a)
	}
	of := func() snapshot.Place { return f.Samples(unit.HowModelled, "test", 0).Places[0] }
	if p := of(); p.Changes != 0 || p.Written != 0 || p.Pages < 100 || p.Pages > 128 || p.Stores[0] != 30 {
		t.Errorf("%d changes on %d of %d pages of %v stores", p.Changes, p.Written, p.Pages, p.Stores)
	}
	f.Add(store(1, 2, table+0x40000))
	if p := of(); p.Changes != 1 || p.Written != 1 {
		t.Errorf("%d changes on %d pages, of one store in the table", p.Changes, p.Written)
	}
	f.kept = maxKept
	f.Add(store(1, 2, stack-0x1000+0x90000)) // a page for which there is no room may be anywhere
	if p := of(); p.Changes != 2 || p.Written != 2 {
		t.Errorf("%d changes on %d pages, one of which was not kept", p.Changes, p.Written)
	}
}

// Memory is bounded; everything is counted.
func TestFoldIsBounded(t *testing.T) {
	f := newFolder()
	const n = maxAddrs + 1000
	for i := range n {
		f.Add(load(1, 0, 0x600000+uint64(i), LocalDRAM))
	}
	f.kept = maxKept
	f.Add(load(1, 1, 0x680000, LocalDRAM))
	for _, p := range f.places {
		if len(p.loadsBy[0]) != maxAddrs || len(p.pages) != 2 || p.Loads[0] != n+1 {
			t.Errorf("%d addresses, %d pages, %d loads", len(p.loadsBy[0]), len(p.pages), p.Loads[0])
		}
	}
	for _, l := range f.lines {
		if l.ips != nil || l.writers != nil {
			t.Fatal("a line without a store has a list of writers")
		}
	}
}

// The order of accesses does not matter, and nothing is counted twice.
func TestFoldIsSymmetric(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var all []Access
	for range 5000 {
		a := load(1+rng.IntN(2), rng.IntN(4), 0x600000+uint64(rng.IntN(1<<16)), Level(rng.IntN(int(Levels))))
		if a.Store = rng.IntN(2) == 0; rng.IntN(3) == 0 {
			a.Addr = uint64(0x10000000*a.PID + rng.IntN(1<<12))
		}
		all = append(all, a)
	}
	fold := func() snapshot.Samples {
		f := newFolder()
		for _, a := range all {
			f.Add(a)
		}
		return f.Samples(unit.HowModelled, "test", 0)
	}
	first := fold()
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	second := fold()
	for _, s := range []*snapshot.Samples{&first, &second} {
		for i := range s.Lines { // which process a shared line was first seen in is chance
			s.Lines[i].PID, s.Lines[i].Addr = 0, s.Lines[i].Addr&0xfff
		}
		slices.SortFunc(s.Lines, func(a, b snapshot.Line) int { return int(a.Addr) - int(b.Addr) })
	}
	var in, out uint64
	for _, p := range first.Places {
		out += sum(p.Loads) + sum(p.Stores)
	}
	if in = uint64(len(all)); in != out {
		t.Errorf("%d accesses in, %d in places", in, out)
	}
	if !reflect.DeepEqual(first.Places, second.Places) || first.Loads != second.Loads || len(first.Lines) != len(second.Lines) {
		t.Error("another order, another result")
	}
}
