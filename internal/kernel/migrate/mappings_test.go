// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
)

// joined prints the result of join: "1000-4000 sure 3, 5000-6000 ? 0", pages on node 0.
func joined(t *testing.T, numaMaps, maps string) string {
	t.Helper()
	var lines []procfs.VMA
	for i, line := range strings.Split(strings.TrimSuffix(numaMaps, "\n"), "\n") {
		var l procfs.NumaLine
		if line == "" {
			continue
		}
		if err := l.Parse(i+1, []byte(line)); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l.VMA())
	}
	areas, err := procfs.ParseAreas([]byte(maps))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range joinMappings(lines, areas) {
		how := "?"
		switch {
		case m.sure:
			how = "sure"
		case m.unsized:
			how = "unsized"
		}
		out = append(out, fmt.Sprintf("%x-%x %s %d", m.Start, m.End, how, m.pages.Pages()))
	}
	return strings.Join(out, ", ")
}

// A stable mapping of 4 pages at 0x5000 changes its neighbours between the two readings.
func TestDecisionJoin(t *testing.T) {
	const (
		stable = "5000 default anon=4 dirty=4 N0=4 kernelpagesize_kB=4\n"
		anon   = " rw-p 00000000 00:00 0\n"
	)
	for _, c := range []struct{ name, numaMaps, maps, want string }{
		{"as it was", stable, "5000-9000" + anon, "5000-9000 sure 4"},
		{"merged with a new one below", stable, "4000-9000" + anon, "4000-9000 ? 4"},
		{"the one below went away", "4000 default anon=4 N0=4\n", "5000-9000" + anon, "5000-9000 ? 4"},
		{"two became one", stable + "7000 default anon=2 N0=2\n", "5000-9000" + anon, "5000-9000 ? 6"},
		{"one became two", stable, "5000-6000" + anon + "7000-9000" + anon, "5000-6000 sure 4, 7000-9000 ? 0"},
		{"grew upwards", stable, "5000-b000" + anon, "5000-b000 sure 4"},
		{"one ended, another begins after it", "1000 default anon=9 N0=9\n" + stable, "5000-9000" + anon, "5000-9000 sure 4"},
		{"one is new", stable, "2000-3000" + anon + "5000-9000" + anon, "2000-3000 ? 0, 5000-9000 sure 4"},
		{"printed twice by numa_maps", "4000 default anon=1 N0=1\n" + stable + "4000 default anon=5 N0=5\n", "4000-9000" + anon, "4000-9000 sure 5"},
		{"printed twice by maps", stable, "5000-9000" + anon + "8000-a000" + anon, "5000-8000 sure 4, 8000-a000 ? 0"},
		{"the kernel's own page", stable, "5000-9000" + anon + "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n", "5000-9000 sure 4"},
		{"huge pages of the pool were cut", "400000 default file=/h/x huge dirty=2 N0=2 kernelpagesize_kB=2048\n",
			"400000-600000 rw-s 00000000 00:0f 9 /h/x\n800000-a00000 rw-s 00400000 00:0f 9 /h/x\n", "400000-600000 sure 2, 800000-a00000 unsized 0"},
		{"a file of small pages was cut", "400000 default file=/x dirty=2 N0=2 kernelpagesize_kB=4\n",
			"400000-600000 rw-s 00000000 00:0f 9 /x\n800000-a00000 rw-s 00400000 00:0f 9 /x\n", "400000-600000 sure 2, 800000-a00000 ? 0"},
		{"it ended", stable, "", ""},
		{"it began", "", "5000-9000" + anon, "5000-9000 ? 0"},
	} {
		if got := joined(t, c.numaMaps, c.maps); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// space is an address space of 64 pages: the mapping of each, 0 for none. The pages of a
// mapping are all present, on node 0 if the mapping's number is odd.
type space [64]int

func (s space) each(f func(from, to, of int)) {
	for at := 0; at < len(s); {
		to := at + 1
		for to < len(s) && s[to] == s[at] {
			to++
		}
		if s[at] != 0 {
			f(at, to, s[at])
		}
		at = to
	}
}

func (s space) numaMaps() (lines []procfs.VMA) {
	s.each(func(from, to, of int) {
		lines = append(lines, procfs.VMA{Start: uint64(from) * smallPage, PageSize: smallPage, Nodes: []procfs.NodePages{{Node: 1 - of%2, Pages: uint64(to - from)}}})
	})
	return lines
}

func (s space) maps() (areas []procfs.Area) {
	s.each(func(from, to, _ int) {
		areas = append(areas, procfs.Area{Range: procfs.Range{Start: uint64(from) * smallPage, End: uint64(to) * smallPage}, Access: "rw-p"})
	})
	return areas
}

// change maps, unmaps, splits and merges at random.
func (s *space) change(r *rand.Rand) {
	for range r.IntN(6) {
		from := r.IntN(len(s))
		to := min(len(s), from+1+r.IntN(12))
		of := r.IntN(5)
		if from > 0 && r.IntN(2) == 0 {
			of = s[from-1] // merges with what is below
		}
		for at := from; at < to; at++ {
			s[at] = of
		}
	}
}

// TestPropertyNoPageIsSkipped: whatever a process does to its mappings between the two
// readings, a page that was on node 0 all the time is in a mapping that is searched.
func TestPropertyNoPageIsSkipped(t *testing.T) {
	sure := 0
	for seed := range uint64(20000) {
		r := rand.New(rand.NewPCG(seed, 9))
		var before space
		before.change(r)
		before.change(r)
		after := before
		after.change(r)
		all := joinMappings(before.numaMaps(), after.maps())
		if !slices.EqualFunc(all, after.maps(), func(m mapping, a procfs.Area) bool { return m.Area == a }) {
			t.Fatalf("seed %d: %v of %v", seed, all, after.maps())
		}
		total := uint64(0)
		for _, m := range all {
			total += m.pages.Pages()
			if !m.sure || slices.ContainsFunc(m.pages.Nodes, func(n procfs.NodePages) bool { return n.Node == 0 }) {
				continue
			}
			sure++
			for at := m.Start / smallPage; at < m.End/smallPage; at++ {
				if before[at]%2 == 1 && before[at] == after[at] {
					t.Fatalf("seed %d: page %d is skipped: %v, then %v", seed, at, before, after)
				}
			}
		}
		for _, v := range before.numaMaps() {
			total -= min(total, v.Pages())
		}
		if total > 0 {
			t.Fatalf("seed %d: %d pages are counted twice", seed, total)
		}
	}
	if sure < 1000 {
		t.Errorf("only %d mappings were skipped: nothing was compared", sure)
	}
}

// A process maps and unmaps next to a stable mapping each time that it is read. All of
// the stable mapping is moved, whatever can be seen.
func TestMergedBetweenReadings(t *testing.T) {
	for _, show := range []see{all, {pagemap: true}, {}} {
		s := newSim()
		at := s.area(7, 4*hugePage, simArea{})
		s.fill(7, at, 700, 0)
		m := s.mover(t, show)
		kerneltest.Write(t, m.root, kerneltest.Files{"/proc/7/maps": fmt.Sprintf("%x-%x rw-p 0 00:00 0 \n", at-8*smallPage, at+4*hugePage)})
		r := move(t, m, Request{PIDs: []int{7}})
		if r.Moved() != 700*smallPage || !r.Complete || s.on(1) != 700 {
			t.Errorf("%+v: %+v, %d pages at home", show, r, s.on(1))
		}
	}
}

// churn maps and unmaps next to a stable mapping, as fast as it can, until it is killed.
// Nothing else maps there: the hole was cut out of the mapping.
func churn(mem []byte) {
	const hole = 8 * smallPage
	start := at(mem)
	if _, _, errno := sys.Syscall(sys.SYS_MUNMAP, uintptr(start), hole, 0); errno != 0 {
		return
	}
	go func() {
		for {
			got, _, errno := sys.Syscall6(sys.SYS_MMAP, uintptr(start), hole, sys.PROT_READ|sys.PROT_WRITE,
				sys.MAP_PRIVATE|sys.MAP_ANON|sys.MAP_NORESERVE|sys.MAP_FIXED_NOREPLACE, ^uintptr(0), 0)
			if errno == 0 {
				sys.Syscall(sys.SYS_MUNMAP, got, hole, 0)
			}
		}
	}()
}

// TestLiveChurn is the same with a real process: a single reading has all of the stable
// mapping, or knows that it does not. On a machine with one node, its pages are searched
// as if node 9 were their target.
func TestLiveChurn(t *testing.T) {
	const size, hole = 40 << 20, 8 * smallPage
	h := holds(t, nil, fmt.Sprintf("churn:%d", size))
	start, changed, n := h.addrs[0], 0, 0
	for until := time.Now().Add(3 * time.Second); changed < 30 && time.Now().Before(until); n++ {
		lines, err1 := procfs.ReadNumaMaps(&unix.Buffer{}, fmt.Sprintf("/proc/%d/numa_maps", h.pid), nil)
		areas, err2 := procfs.ReadAreas(&unix.Buffer{}, fmt.Sprintf("/proc/%d/maps", h.pid), nil)
		if err := errors.Join(err1, err2); err != nil {
			t.Skip(err)
		}
		for _, m := range joinMappings(lines, areas) {
			inside := m.Start < start+size && m.End > start+hole
			if inside && m.sure && m.pages.Pages() < (size-hole)/smallPage {
				t.Fatalf("reading %d: %#x-%#x is sure of %d pages", n, m.Start, m.End, m.pages.Pages())
			}
			if inside && !m.sure {
				changed++
			}
		}
	}
	t.Logf("in %d of %d readings it had changed", changed, n)
	r := liveRun(t, h.pid)
	areas, err := r.areas(h.pid)
	if err != nil {
		t.Fatal(err)
	}
	covered := uint64(0)
	for _, a := range areas {
		if from, to := max(a.start, start+hole), min(a.end, start+size); from < to {
			covered += to - from
		}
	}
	if covered != size-hole {
		t.Errorf("%d of %d bytes are gone through", covered, size-hole)
	}
	c, err := liveCensus(h.pid)
	if err != nil || c < size-8*smallPage {
		t.Errorf("census: %v, %v", c, err)
	}
}

func liveCensus(pid int) (unit.Bytes, error) {
	m, err := NewMover(unix.NewLive(), Config{})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := m.Census(ctx, CensusRequest{PIDs: []int{pid}})
	return c.Total(), err
}
