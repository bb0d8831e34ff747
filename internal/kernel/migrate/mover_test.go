// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/pagecache"
	"homenode/internal/kernel/unix"
	"homenode/internal/migration"
	"homenode/internal/set"
	"homenode/internal/unit"
)

var (
	toOne = set.FromNodes(1)
	all   = see{pagemap: true, frames: true}
)

func move(t *testing.T, m *Mover, req Request) migration.Result {
	t.Helper()
	if req.To.IsEmpty() {
		req.To = toOne
	}
	if req.Budget == 0 {
		req.Budget = NoBudget
	}
	r, err := m.Move(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMovesEverything(t *testing.T) {
	s := newSim()
	at := s.area(7, 4*hugePage, simArea{})
	s.fill(7, at, 700, 0)
	s.fill(7, at+1000*smallPage, 10, 1) // home already: must not be passed
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}})
	if r.Moved() != 700*smallPage || !r.Complete || s.on(1) != 710 || s.passed != 700 || r.Failed() != 0 || len(r.Problems) != 0 {
		t.Errorf("%+v, passed %d", r, s.passed)
	}
}

// One address moves a huge page. The other 511 must not be passed, whether the kernel
// shows which pages are huge or not.
func TestHugePagesByTheirHead(t *testing.T) {
	for _, show := range []see{all, {pagemap: true}, {}} {
		s := newSim()
		at := s.area(7, 4*hugePage, simArea{})
		for i := range uint64(3) {
			s.put(7, at+i*hugePage, s.frame(0, 512))
		}
		s.fill(7, at+3*hugePage, 512, 0)
		r := move(t, s.mover(t, show), Request{PIDs: []int{7}})
		if r.Of(migration.THP).Moved != 3*hugePage && (show.frames || r.Of(migration.THP).Moved != 3*hugePage+smallPage) ||
			r.Moved() != 4*hugePage || s.passed != 3+512 || s.on(1) != 2048 {
			t.Errorf("%+v: %+v, passed %d", show, r, s.passed)
		}
	}
}

func TestKinds(t *testing.T) {
	s := newSim()
	const pages = 10
	for i, a := range []simArea{
		{}, {path: "/tmp/x", ino: 5}, {path: "/dev/shm/y", ino: 6}, {path: "/lib/z", ino: 7, private: true}, {path: "/memfd:m (deleted)", ino: 9},
	} {
		at := s.area(7, hugePage, a)
		for n, f := range s.fill(7, at, pages, 0) {
			f.file = i > 0 && (i != 3 || n < 4) // of the library 6 pages are private copies
		}
	}
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}})
	want := map[migration.Kind]unit.Bytes{migration.Anon: 16, migration.Shmem: 30, migration.File: 4}
	for kind, n := range want {
		if r.Of(kind).Moved != n*smallPage {
			t.Errorf("%s: %v, want %d pages", kind, r.Of(kind).Moved, n)
		}
	}
}

func TestPoolOfHugePages(t *testing.T) {
	s := newSim()
	at := s.area(7, 4*hugePage, simArea{path: "/dev/hugepages/x", ino: 4, huge: true})
	for i := range uint64(4) {
		s.put(7, at+i*hugePage, s.frame(0, 512))
	}
	s.full = map[int]int{1: 3 * 512} // the kernel refuses what is beyond the pool
	m := s.mover(t, all)
	kerneltest.Write(t, m.root, kerneltest.Files{"/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages": "3\n"})
	r := move(t, m, Request{PIDs: []int{7}})
	k := *r.Of(migration.Hugetlb)
	if k.Moved != 3*hugePage || len(k.Failed) != 1 || k.Failed[0] != (migration.Failure{Reason: "no free huge page of 2 MiB on node 1", Bytes: hugePage}) || s.passed != 4 {
		t.Errorf("%+v, passed %d", r, s.passed)
	}
}

func TestBudgetAndResume(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 4*hugePage, simArea{}), 700, 0)
	m := s.mover(t, all)
	for window, total := 1, unit.Bytes(0); ; window++ {
		r := move(t, m, Request{PIDs: []int{7}, Budget: 100 * smallPage})
		total += r.Moved()
		if r.Moved() > 100*smallPage || s.passed > int(total/smallPage) {
			t.Fatalf("window %d: %+v, passed %d", window, r, s.passed)
		}
		if r.Complete {
			if window != 8 && window != 7 || total != 700*smallPage {
				t.Errorf("%d windows, %v moved", window, total)
			}
			break
		}
		if r.Stopped != "the budget of 400 KiB is used up" {
			t.Fatal(r.Stopped)
		}
	}
	if r, err := m.Move(context.Background(), Request{PIDs: []int{7}, To: set.FromNodes(2)}); err != nil || r.Moved() != 0 || r.Complete {
		t.Errorf("without a budget: %+v, %v", r, err)
	}
}

// The nodes for which a pass was begun are part of it.
func TestOtherAimBeginsAnew(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, hugePage, simArea{}), 100, 0)
	m := s.mover(t, all)
	move(t, m, Request{PIDs: []int{7}, Budget: 50 * smallPage})
	r := move(t, m, Request{PIDs: []int{7}, To: set.FromNodes(2), From: set.FromNodes(1), Budget: NoBudget})
	if r.Moved() != 0 || s.on(1) != 50 { // numa_maps of the tree still has all on node 0
		t.Errorf("%+v, %d on node 1", r, s.on(1))
	}
}

func TestFailuresAreCounted(t *testing.T) {
	s := newSim()
	f := s.fill(7, s.area(7, hugePage, simArea{}), 100, 0)
	f[0].busy = 1       // yields to the second try
	f[1].busy = 1 << 20 // never
	f[2].errno = -int32(sys.EACCES)
	f[3].gone = true
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}})
	k := *r.Of(migration.Anon)
	if k.Moved != 97*smallPage || k.Gone != smallPage || r.Retried != 2 || !r.Complete || s.naps == 0 {
		t.Errorf("%+v", r)
	}
	if text := r.String(); !strings.Contains(text, "not moved: 4 KiB EACCES, 4 KiB EBUSY") {
		t.Error(text)
	}
}

// The kernel may give up midway and leave the remaining statuses unset.
func TestAbortedCalls(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 4*hugePage, simArea{}), 2000, 0)
	s.abort = 50
	if r := move(t, s.mover(t, all), Request{PIDs: []int{7}}); r.Moved() != 2000*smallPage || r.Failed() != 0 || s.on(1) != 2000 {
		t.Errorf("%+v", r)
	}
}

func TestFullNodes(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 8*hugePage, simArea{}), 4000, 0)
	s.full = map[int]int{1: 500, 2: 700}
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}, To: set.FromNodes(1, 2)})
	if k := *r.Of(migration.Anon); k.Moved != 1200*smallPage || len(k.Failed) != 1 || k.Failed[0] != (migration.Failure{Reason: "ENOMEM", Bytes: 2800 * smallPage}) {
		t.Errorf("%+v", r)
	}
	if got := strings.Join(r.Problems, "\n"); !strings.Contains(got, "node 1 has no room left for a page of 4 KiB") || len(r.Problems) != 2 {
		t.Errorf("problems: %s", got)
	}
}

func TestProcessThatEnds(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, hugePage, simArea{}), 100, 0)
	s.fill(8, s.area(8, hugePage, simArea{}), 100, 0)
	for _, errno := range []error{sys.ESRCH, sys.EINVAL} {
		s.whole[7] = errno
		r := move(t, s.mover(t, all), Request{PIDs: []int{7, 9, 8}})
		if want := "process 7 ended while it was moved\nprocess 9 ended while it was moved"; strings.Join(r.Problems, "\n") != want || s.on(1) != 100 || !r.Complete {
			t.Errorf("%+v", r)
		}
	}
	s.whole = map[int]error{}
	s.onCall = func() { s.whole[7] = sys.ESRCH } // midway
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}, MaxStall: time.Second})
	if got := countsOf(r); got.moved+got.gone != 100*smallPage || got.gone == 0 || len(r.Problems) != 1 {
		t.Errorf("midway: %+v", r)
	}
}

func TestWholeCallFails(t *testing.T) {
	for errno, want := range map[error]string{sys.EACCES: "cpuset.mems", sys.EPERM: "CAP_SYS_NICE"} {
		s := newSim()
		s.fill(7, s.area(7, hugePage, simArea{}), 10, 0)
		s.whole[7] = errno
		r, err := s.mover(t, all).Move(context.Background(), Request{PIDs: []int{7}, To: toOne, Budget: NoBudget})
		if !errors.Is(err, unix.ErrNotPermitted) || !strings.Contains(err.Error(), want) || r.Complete {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if _, err := NewMover(unix.Live{}, Config{}); err == nil {
		t.Error("a mover without the running kernel")
	}
}

func TestForkedMeanwhile(t *testing.T) {
	s := newSim()
	for _, pid := range []int{7, 13, 14, 15} {
		s.fill(pid, s.area(pid, hugePage, simArea{}), 100, 0)
	}
	lists := [][]int{{7, 13}, {7, 13, 14, 15}}
	again := func() ([]int, error) {
		l := lists[0]
		lists = lists[min(1, len(lists)-1):]
		return l, nil
	}
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}, Again: again})
	if s.on(1) != 400 || strings.Join(r.Problems, "\n") != "process 13 was forked meanwhile: moved too\n2 processes were forked meanwhile: moved too" {
		t.Errorf("%+v", r)
	}
}

// shared is process 7 with a file of which it maps half, and all of which is cached.
func sharedFile(t *testing.T, s *sim) (*Mover, *simFiles) {
	at := s.area(7, hugePage, simArea{path: "/data", ino: 77})
	pages := map[uint64]*frame{}
	for i := range uint64(400) {
		f := s.frame(0, 1)
		f.file, f.shared = true, true
		pages[i*smallPage] = f
		if i < 200 {
			s.put(7, at+i*smallPage, f)
		}
	}
	m := s.mover(t, all)
	id := fileID{Dev: 1, Ino: 1}
	f := &simFiles{s: s, pages: map[fileID]map[uint64]*frame{id: pages}, files: []pagecache.File{{
		ID: id, Aliases: []fileID{{Dev: sys.Mkdev(0xfe, 0), Ino: 77}}, Name: "/data", Size: 400 * smallPage, Kind: migration.File, PageSize: smallPage,
	}}}
	m.finder = f
	return m, f
}

func TestPageCache(t *testing.T) {
	for _, workers := range []int{1, 4} {
		s := newSim()
		m, f := sharedFile(t, s)
		pages := f.pages[f.files[0].ID]
		pages[0].errno = -int32(sys.EACCES)             // stays: it must not be counted as page cache too
		pages[300*smallPage].errno = -int32(sys.EACCES) // stays
		r := move(t, m, Request{PIDs: []int{7}, Cache: true, Workers: workers})
		file, cache := *r.Of(migration.File), *r.Of(migration.Cache)
		if file.Moved != 199*smallPage || cache.Moved != 199*smallPage || r.Failed() != 2*smallPage || !r.Complete {
			t.Errorf("%d workers: %+v", workers, r)
		}
	}
	s := newSim()
	m, f := sharedFile(t, s)
	move(t, m, Request{PIDs: []int{7}, Cache: true, Hot: hotPages{}})
	if f.found != 0 || s.calls != 0 {
		t.Error("hot mode looked for page cache, or moved what is cold")
	}
}

func TestForeignFilesAreLeft(t *testing.T) {
	for _, cache := range []bool{true, false} {
		s := newSim()
		m, f := sharedFile(t, s)
		f.files[0].Outside = true
		r := move(t, m, Request{PIDs: []int{7}, Cache: cache, LeaveForeign: true})
		want := unit.Bytes(200 * smallPage)
		if cache {
			want *= 2
		}
		if r.Moved() != 0 || s.calls != 0 || r.Failed() != want || r.Failures()[0].Reason != LeftForeign {
			t.Errorf("cache %v: %+v", cache, r)
		}
	}
}

type hotPages map[uint64]bool

func (h hotPages) Hot(_ int, addr uint64) bool { return h[addr] }

func TestHotPagesOnly(t *testing.T) {
	s := newSim()
	at := s.area(7, 2*hugePage, simArea{})
	s.put(7, at, s.frame(0, 512))
	s.fill(7, at+hugePage, 100, 0)
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}, Hot: hotPages{at: true, at + hugePage + smallPage: true}})
	if r.Moved() != hugePage+smallPage || !r.Complete {
		t.Errorf("%+v", r)
	}
}

func TestMaxStallOfARun(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 64*hugePage, simArea{}), 30000, 0)
	s.took = func(n int) time.Duration { return time.Millisecond + time.Duration(n)*10*time.Microsecond }
	r := move(t, s.mover(t, all), Request{PIDs: []int{7}, MaxStall: 5 * time.Millisecond})
	if r.Longest > 5*time.Millisecond || r.Over != 0 || r.OverWhy != "" || r.Moved() != 30000*smallPage || r.Calls > 300 || r.Batch < 80 {
		t.Errorf("%v, batch %d, %q", r, r.Batch, r.OverWhy)
	}
	s = newSim()
	s.fill(7, s.area(7, 64*hugePage, simArea{}), 30000, 0)
	s.took = func(n int) time.Duration { return 10*time.Millisecond + time.Duration(n)*10*time.Microsecond }
	r = move(t, s.mover(t, all), Request{PIDs: []int{7}, MaxStall: 5 * time.Millisecond})
	if r.Over != r.Calls || !strings.Contains(r.OverWhy, "5ms cannot be held") || r.Calls > 60 {
		t.Errorf("%v, batch %d, %q", r, r.Batch, r.OverWhy)
	}
}

// The rate is held by the clock, however long searches and calls take.
func TestRateIsHeld(t *testing.T) {
	for _, rate := range []unit.Bytes{10 * unit.MiB, 40 * unit.MiB, 100 * unit.MiB} {
		for _, workers := range []int{1, 3} {
			s := newSim()
			s.fill(7, s.area(7, 64*hugePage, simArea{}), 25600, 0)
			s.took = func(n int) time.Duration { return time.Millisecond + time.Duration(n)*20*time.Microsecond }
			r := move(t, s.mover(t, all), Request{PIDs: []int{7}, Rate: rate, MaxStall: 20 * time.Millisecond, Workers: workers})
			got, _ := r.Rate()
			if share := float64(got) / float64(rate); share < 0.9 || share > 1.1 || unit.Bytes(s.most)*smallPage > rate/batchShare {
				t.Errorf("%v, %d workers: %v a second, calls of %d pages", rate, workers, got, s.most)
			}
		}
	}
}

func TestCancel(t *testing.T) {
	for _, workers := range []int{1, 4} {
		s := newSim()
		s.fill(7, s.area(7, 16*hugePage, simArea{}), 8000, 0)
		ctx, cancel := context.WithCancelCause(context.Background())
		s.onCall = func() {
			if s.calls == 3 {
				cancel(errors.New("signal SIGINT"))
			}
		}
		m := s.mover(t, all)
		r, err := m.Move(ctx, Request{PIDs: []int{7}, To: toOne, Budget: NoBudget, Workers: workers, MaxStall: time.Second})
		if err != nil || r.Complete || r.Stopped != "it was cancelled: signal SIGINT" || int(r.Moved()/smallPage) != s.on(1) || s.on(1) == 0 || s.on(1) == 8000 {
			t.Errorf("%d workers: %+v, %v; %d on node 1", workers, r, err, s.on(1))
		}
		if r = move(t, m, Request{PIDs: []int{7}, Workers: workers, MaxStall: time.Second}); !r.Complete || s.on(1) != 8000 || s.passed != 8000 {
			t.Errorf("resumed: %+v", r)
		}
	}
}

func TestProgress(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 16*hugePage, simArea{}), 8000, 0)
	var reports []Progress
	move(t, s.mover(t, all), Request{PIDs: []int{7}, Workers: 4, Progress: func(p Progress) { reports = append(reports, p) }})
	if n := len(reports); n == 0 || n > 30 || reports[n-1].Moved != 8000*smallPage || reports[n-1].Kind != migration.Anon {
		t.Errorf("%d times: %+v", n, reports)
	}
}

// Workloads take turns, and each turn may be over before it has begun. Every call still
// makes progress, and none restarts another workload's pass.
func TestTurnsThatAreTooShort(t *testing.T) {
	s := newSim()
	s.fill(7, s.area(7, 4*hugePage, simArea{}), 2047, 0)
	s.took = func(n int) time.Duration { return time.Duration(n) * 10 * time.Microsecond }
	m := s.mover(t, see{})
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	for turn, on := 1, 0; s.on(1) < 2047; turn++ {
		r, err := m.Move(late, Request{PIDs: []int{7}, To: toOne, Budget: unit.GiB, MaxStall: 10 * time.Millisecond})
		if err != nil || r.Moved() == 0 || s.on(1) == on || turn == 20 {
			t.Fatalf("turn %d: %+v, %v; %d pages", turn, r, err, s.on(1))
		}
		on = s.on(1)
		if _, err := m.Move(late, Request{PIDs: []int{8}, To: toOne, Budget: unit.GiB, MaxStall: 10 * time.Millisecond}); err != nil {
			t.Fatal(err) // another workload's turn; its process is gone
		}
	}
}

// TestSparseMapping is 1 GiB of address space with 3 pages in it: missing pages must not
// be asked for one by one.
func TestSparseMapping(t *testing.T) {
	s := newSim()
	at := s.area(7, 1<<30, simArea{})
	for _, off := range []uint64{0, 1 << 29, 1<<30 - smallPage} {
		s.fill(7, at+off, 1, 0)
	}
	asked := 0
	m := s.mover(t, all)
	m.pager = pagerFunc(func(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
		asked += len(addrs)
		return s.MovePages(pid, addrs, nodes, status, flags)
	})
	if r := move(t, m, Request{PIDs: []int{7}}); r.Moved() != 3*smallPage || asked > 10 {
		t.Errorf("%+v, asked for %d pages", r, asked)
	}
}

type pagerFunc func(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error)

func (f pagerFunc) MovePages(pid int, addrs []uintptr, nodes, status []int32, flags int) (int, error) {
	return f(pid, addrs, nodes, status, flags)
}

// TestLive moves a real process's pages to node 0. Where that is the only node there is
// nothing to do, and the result must say exactly that.
func TestLive(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Skipf("no process: %v", err)
	}
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	pid := sleep.Process.Pid
	waitAsleep(t, pid)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/numa_maps", pid)); err != nil {
		t.Skipf("no numa_maps: %v", err)
	}
	for _, workers := range []int{1, 2} {
		m, err := NewMover(unix.NewLive(), Config{})
		if err != nil {
			t.Fatal(err)
		}
		r := move(t, m, Request{PIDs: []int{2, pid}, To: set.FromNodes(0), Workers: workers, CPUs: set.FromCPUs(0)})
		if _, err := os.Stat("/sys/devices/system/node/node1"); !r.Complete || err != nil && (r.Moved() != 0 || r.Calls != 0) {
			t.Errorf("%+v", r)
		}
	}
	liveCalls(t, pid)
}

// liveCalls finds the process's pages, as if node 9 were their target, and moves them to
// the node where they are.
func liveCalls(t *testing.T, pid int) {
	m, _ := NewMover(unix.NewLive(), Config{})
	r := newRun(context.Background(), m, Request{PIDs: []int{pid}, To: set.FromNodes(9), Budget: NoBudget})
	defer r.close()
	s, err := r.newProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	f, err := s.scan(mostPages)
	if err != nil || len(f.pages) < 10 {
		t.Fatalf("%d pages, %v", len(f.pages), err)
	}
	kinds := map[migration.Kind]int{}
	for _, p := range f.pages {
		kinds[p.kind]++
	}
	if kinds[migration.Anon] == 0 || kinds[migration.File] == 0 {
		t.Errorf("kinds %v", kinds)
	}
	r.aimAt(set.NodeSet{}, set.FromNodes(0))
	o := (&worker{r: r}).move(&batch{pid: pid, class: f.pages[0].class(), pages: f.pages, node: 0})
	if n := len(o.moved) + len(o.stayed); o.err != nil || n != len(f.pages) {
		t.Errorf("%d of %d pages: %+v", n, len(f.pages), o)
	}
}
