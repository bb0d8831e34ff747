// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/unit"
)

// within fails when f does not end.
func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("did not end within %v", limit)
	}
}

// After the deadline, with nothing left to move but files to search.
func TestDeadlineEndsTheSearch(t *testing.T) {
	s := newSim()
	m, f := sharedFile(t, s)
	for _, p := range f.pages[f.files[0].ID] {
		p.node = 1
	}
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	within(t, 10*time.Second, func() {
		for turn := 1; ; turn++ {
			r, err := m.Move(late, Request{PIDs: []int{7}, To: toOne, Budget: unit.GiB, Cache: true, LeaveForeign: true})
			if err != nil || turn == 20 {
				t.Errorf("turn %d: %+v, %v", turn, r, err)
				return
			}
			if r.Complete {
				return
			}
		}
	})
}

// A view that makes no progress is not waited for.
func TestDeadlineEndsAStuckFile(t *testing.T) {
	s := newSim()
	m, f := sharedFile(t, s)
	m.finder = stuckFiles{f}
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	s.whole[7] = sys.ESRCH // nothing else to move
	within(t, 40*time.Second, func() {
		r, err := m.Move(late, Request{PIDs: []int{7}, To: toOne, Budget: unit.GiB, Cache: true})
		if err != nil || r.Stopped != "the time is over" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

type stuckFiles struct{ *simFiles }

type stuckView struct{ view }

func (f stuckFiles) open(c pagecache.File, from uint64, skip func(uint64) bool) (view, error) {
	v, err := f.simFiles.open(c, from, skip)
	return stuckView{v}, err
}

func (v stuckView) Next(context.Context) (pagecache.Part, error) {
	return pagecache.Part{}, context.DeadlineExceeded
}

// Two workers, pages that come back, and no node with room: no worker waits for ever.
func TestNoRoomWakesTheOthers(t *testing.T) {
	for seed := range 20 {
		s := newSim()
		s.full = map[int]int{1: 300 + seed}
		for pid := 7; pid < 10; pid++ {
			at := s.area(pid, 8*hugePage, simArea{})
			for i := range uint64(4) {
				s.fill(pid, at+2*i*hugePage, 512, 0) // look huge
			}
			shared := s.area(pid, hugePage, simArea{path: "/dev/shm/x", ino: 4})
			for _, f := range s.fill(pid, shared, 100, 0) {
				f.file, f.shared = true, true
			}
		}
		show := see{pagemap: true} // frames are hidden: the workers wait for shared pages
		within(t, 10*time.Second, func() {
			r := move(t, s.mover(t, show), Request{PIDs: []int{7, 8, 9}, Workers: 4})
			if !r.Complete {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A page mapped twice by one process is one page.
func TestMappedTwice(t *testing.T) {
	for _, show := range []see{all, {pagemap: true}} {
		for _, a := range []simArea{{path: "/dev/shm/x", ino: 4}, {}} {
			if a.ino == 0 && !show.frames {
				continue // nothing identifies the page
			}
			s := newSim()
			one, two := s.area(7, hugePage, a), s.area(7, hugePage, a)
			for i, f := range s.fill(7, one, 8, 0) {
				f.file, f.shared = a.ino != 0, true
				s.put(7, two+uint64(i)*smallPage, f)
			}
			if r := move(t, s.mover(t, show), Request{PIDs: []int{7}}); r.Moved() != 8*smallPage || r.Failed() != 0 {
				t.Errorf("%+v, %+v: %+v", show, a, r)
			}
		}
	}
}

// One process that may not be moved does not keep the others from being moved.
func TestOneRefuses(t *testing.T) {
	for _, workers := range []int{1, 3} {
		s := newSim()
		for pid := 7; pid < 10; pid++ {
			s.fill(pid, s.area(pid, 4*hugePage, simArea{}), 1000, 0)
		}
		s.whole[8] = sys.EACCES
		m := s.mover(t, all)
		r := move(t, m, Request{PIDs: []int{7, 8, 9}, Workers: workers})
		if k := r.Of(migration.Anon); r.Moved() != 2000*smallPage || len(k.Failed) != 1 || k.Failed[0] != (migration.Failure{Reason: "EACCES", Bytes: 1000 * smallPage}) || !r.Complete || len(r.Problems) != 1 {
			t.Errorf("%d workers: %+v", workers, r)
		}
		if r, err := m.Move(context.Background(), Request{PIDs: []int{8, 99}, To: toOne, Budget: NoBudget}); !errors.Is(err, unix.ErrNotPermitted) || r.Complete {
			t.Errorf("all of them refuse: %+v, %v", r, err)
		}
	}
}

// TestFilesGoOn: each call continues where the previous one stopped, with its list.
func TestFilesGoOn(t *testing.T) {
	s := newSim()
	m, f := sharedFile(t, s)
	total := unit.Bytes(0)
	for window := 1; ; window++ {
		r := move(t, m, Request{PIDs: []int{7}, Cache: true, LeaveForeign: true, Budget: 50 * smallPage})
		if total += r.Moved(); r.Complete || window == 20 {
			break
		}
	}
	if total != 400*smallPage || f.found != 1 || f.shown > 200+8*100 {
		t.Errorf("%v moved, listed %d times, %d pages shown", total, f.found, f.shown)
	}
}

// Files that are left to others are neither touched nor asked for.
func TestForeignFilesAreNotTouched(t *testing.T) {
	s := newSim()
	m, f := sharedFile(t, s)
	f.files[0].Outside = true
	asked := 0
	m.pager = pagerFunc(func(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
		asked += len(addrs)
		return s.MovePages(pid, addrs, nodes, status, flags)
	})
	move(t, m, Request{PIDs: []int{7}, Cache: true, LeaveForeign: true})
	if asked > 0 || f.shown > 0 {
		t.Errorf("%d pages asked for, %d touched", asked, f.shown)
	}
}

// TestProblemsAreGrouped: a sentence for each of thousands of files helps no reader.
func TestProblemsAreGrouped(t *testing.T) {
	s := newSim()
	m, f := sharedFile(t, s)
	for i := range 100 {
		f.files = append(f.files, pagecache.File{ID: fileID{Dev: 9, Ino: uint64(i)}, Name: "x", Kind: migration.File, PageSize: smallPage})
	}
	m.finder = closedFiles{f}
	r := move(t, m, Request{PIDs: []int{7}, Cache: true})
	if len(r.Problems) != mostAlike || !strings.HasSuffix(r.Problems[mostAlike-1], ", and 98 more like it") {
		t.Errorf("%d: %s", len(r.Problems), strings.Join(r.Problems, "\n"))
	}
}

type closedFiles struct{ *simFiles }

func (closedFiles) open(pagecache.File, uint64, func(uint64) bool) (view, error) {
	return nil, unix.Explain("open", "x", "", sys.EACCES)
}

// A huge page is split before its call: its first page does not stand for the rest.
func TestHugePageThatIsSplit(t *testing.T) {
	for _, errno := range []sys.Errno{sys.ENOENT, sys.EBUSY} {
		s := newSim()
		at := s.area(7, 2*hugePage, simArea{})
		huge := s.frame(0, 512)
		s.put(7, at, huge)
		m := s.mover(t, all)
		var small []*frame
		s.onCall = func() {
			if s.calls > 1 {
				return
			}
			for i := range uint64(512) {
				f := s.frame(0, 1)
				s.spaces[7][at+i*smallPage] = f
				small = append(small, f)
			}
			if small[0].busy = 1 << 20; errno == sys.ENOENT {
				delete(s.spaces[7], at)
			}
		}
		r := move(t, m, Request{PIDs: []int{7}})
		if r.Moved() != 511*smallPage || r.Failed()+countsOf(r).gone != smallPage {
			t.Errorf("%v: %+v", errno, r)
		}
	}
}

// The next workload's pages may cost more: its first call is small again.
func TestNextWorkloadBeginsSmall(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 64*hugePage, simArea{}), 30000, 0)
	s.fill(8, s.area(8, 8*hugePage, simArea{}), 3000, 0)
	s.took = func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	m := s.mover(t, all)
	move(t, m, Request{PIDs: []int{7}, MaxStall: 5 * time.Millisecond})
	s.took = func(n int) time.Duration { return time.Duration(n) * 200 * time.Microsecond }
	if r := move(t, m, Request{PIDs: []int{8}, MaxStall: 5 * time.Millisecond}); r.Longest > 5*time.Millisecond {
		t.Errorf("the longest call took %v", r.Longest)
	}
}

// A System V segment may have the id 0.
func TestSegmentZeroIsShared(t *testing.T) {
	r := newRun(context.Background(), newSim().mover(t, see{}), Request{PIDs: []int{7}, To: toOne})
	defer r.close()
	kerneltest.Write(t, r.m.root, kerneltest.Files{
		"/proc/7/numa_maps": "1000 default file=/SYSV00000000\\040(deleted) dirty=1 N0=1 kernelpagesize_kB=4\n",
		"/proc/7/maps":      "1000-2000 rw-s 00000000 00:01 0  /SYSV00000000 (deleted)\n",
	})
	areas, err := r.areas(7)
	if err != nil {
		t.Fatal(err)
	}
	if len(areas) != 1 || areas[0].kind != migration.Shmem || areas[0].file == (fileID{}) {
		t.Errorf("%+v", areas)
	}
}

// Beyond the pool, one page is tried: Linux may make it.
func TestPoolBeyondItsPages(t *testing.T) {
	s := newSim()
	at := s.area(7, 4*hugePage, simArea{path: "/dev/hugepages/x", ino: 4, huge: true})
	for i := range uint64(4) {
		s.put(7, at+i*hugePage, s.frame(0, 512))
	}
	if r := move(t, s.mover(t, all), Request{PIDs: []int{7}}); r.Of(migration.Hugetlb).Moved != 4*hugePage {
		t.Errorf("%+v", r)
	}
}

func TestFrameNodes(t *testing.T) {
	root := kerneltest.Tree(t, kerneltest.Files{
		"/sys/devices/system/memory/block_size_bytes":         "8000000\n",
		"/sys/devices/system/node/node0/memory0/state":        "online\n",
		"/sys/devices/system/node/node0/memory2/state":        "online\n",
		"/sys/devices/system/node/node3/memory1/state":        "online\n",
		"/sys/devices/system/node/node3/memory2/state":        "online\n",
		"/sys/devices/system/node/node3/memory_failure/total": "0\n",
	})
	f := readFrameNodes(root)
	const perBlock = 1 << 15
	for pfn, want := range map[uint64]int32{0: 0, perBlock - 1: 0, perBlock: 3, 2 * perBlock: -1, 9 * perBlock: -1, 1 << 50: -1} {
		if node, known := f.of(pfn); known != (want >= 0) || known && node != want {
			t.Errorf("frame %#x: %d, %v, want %d", pfn, node, known, want)
		}
	}
	if readFrameNodes(kerneltest.Tree(t, kerneltest.Files{"/x": ""})) != nil {
		t.Error("frames of a kernel that shows none")
	}
}
