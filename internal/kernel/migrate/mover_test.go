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
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const base = 0x400000 // 2 MiB aligned

// fakePager is one process's pages, as do_pages_move treats them.
type fakePager struct {
	node   map[uintptr]int32 // by page; absent: not there
	huge   map[uintptr]bool  // by aligned 2 MiB: moves as a whole
	busy   map[uintptr]int   // refuses so many times
	errno  map[uintptr]int32 // refuses always
	abort  int               // gives up after so many pages of a call; 0: never
	whole  error
	passed int // pages passed to moving calls
	calls  int
	took   time.Duration
	clock  time.Time
}

func newPager() *fakePager {
	return &fakePager{node: map[uintptr]int32{}, huge: map[uintptr]bool{}, busy: map[uintptr]int{}, errno: map[uintptr]int32{}, clock: time.Unix(0, 0)}
}

func (f *fakePager) fill(from uintptr, pages int, node int32) {
	for i := range pages {
		f.node[from+uintptr(i)*4096] = node
	}
}

func (f *fakePager) MovePages(_ int, addrs []uintptr, nodes, status []int32, _ int) (int, error) {
	if f.whole != nil {
		return 0, f.whole
	}
	if nodes != nil {
		f.calls++
		f.passed += len(addrs)
		f.clock = f.clock.Add(f.took)
	}
	for i, a := range addrs {
		if nodes != nil && f.abort > 0 && i >= f.abort {
			return len(addrs) - i, nil
		}
		status[i] = f.one(a, nodes, i)
	}
	return 0, nil
}

func (f *fakePager) one(a uintptr, nodes []int32, i int) int32 {
	now, ok := f.node[a]
	switch {
	case !ok:
		return -int32(sys.ENOENT)
	case nodes == nil:
		return now
	case f.errno[a] != 0:
		return f.errno[a]
	case f.busy[a] > 0:
		f.busy[a]--
		return -int32(sys.EBUSY)
	}
	if start := a &^ (hugePage - 1); f.huge[start] {
		f.fill(start, 512, nodes[i])
	}
	f.node[a] = nodes[i]
	return nodes[i]
}

func (f *fakePager) on(node int32) (n int) {
	for _, at := range f.node {
		if at == node {
			n++
		}
	}
	return n
}

// mover moves process 7, which has one mapping of so many 2 MiB.
func mover(t *testing.T, f *fakePager, chunks int) *Mover {
	t.Helper()
	end := base + chunks*hugePage
	root := kerneltest.Tree(t, kerneltest.TwoNodes().With(kerneltest.Files{
		"/proc/7/stat":      "7 (x) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
		"/proc/7/maps":      fmt.Sprintf("%x-%x rw-p 0 0:0 0\n%x-%x rw-p 0 0:0 0\n", base, end, end, end+4096),
		"/proc/7/numa_maps": fmt.Sprintf("%x default anon=%d N0=%d kernelpagesize_kB=4\n%x default anon=1 N1=1\n", base, len(f.node), f.on(0), end),
	}))
	m := newMover(root, Config{Pager: f})
	m.now = func() time.Time { return f.clock }
	return m
}

func move(t *testing.T, m *Mover, budget unit.Bytes) Result {
	t.Helper()
	r, err := m.Move(context.Background(), Request{PIDs: []int{7, 8}, To: set.FromNodes(1), Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMovesEverything(t *testing.T) {
	f := newPager()
	f.fill(base, 700, 0)
	f.fill(base+1000*4096, 10, 1) // home already: must not be passed
	r := move(t, mover(t, f, 4), unit.GiB)
	if r.Moved != 700*4096 || r.Remaining != 0 || !r.Complete || f.on(1) != 710 || f.passed != 700 || len(r.Failed) != 0 {
		t.Errorf("%+v, passed %d", r, f.passed)
	}
}

// One address moves a huge page: the other 511 must not be passed.
func TestHugePagesByTheirHead(t *testing.T) {
	f := newPager()
	f.fill(base, 2048, 0)
	f.huge[base], f.huge[base+hugePage], f.huge[base+2*hugePage] = true, true, true // the fourth is small pages
	r := move(t, mover(t, f, 4), unit.GiB)
	if r.Moved != 4*hugePage || f.on(1) != 2048 || f.passed != 3+512 {
		t.Errorf("%+v, passed %d", r, f.passed)
	}
}

func TestBudgetAndResume(t *testing.T) {
	f := newPager()
	f.fill(base, 700, 0)
	m := mover(t, f, 4)
	total := unit.Bytes(0)
	for window := 1; ; window++ {
		r := move(t, m, 100*4096)
		total += r.Moved
		if r.Moved > 100*4096 || f.passed > int(total/4096) {
			t.Fatalf("window %d: %+v, passed %d", window, r, f.passed)
		}
		if r.Complete {
			if window != 8 && window != 7 || total != 700*4096 {
				t.Errorf("%d windows, %v moved", window, total)
			}
			break
		}
		if r.Remaining != 700*4096-total {
			t.Fatalf("window %d: %+v", window, r)
		}
	}
	if r := move(t, m, 0); r.Moved != 0 || r.Complete {
		t.Errorf("without a budget: %+v", r)
	}
}

func TestFailuresAreCounted(t *testing.T) {
	f := newPager()
	f.fill(base, 100, 0)
	f.busy[base] = 1            // yields to the second try
	f.busy[base+4096] = 1 << 20 // never
	f.errno[base+2*4096] = -int32(sys.EACCES)
	r := move(t, mover(t, f, 1), unit.GiB)
	if r.Moved != 98*4096 || r.Failed["EBUSY"] != 4096 || r.Failed["EACCES"] != 4096 || r.Remaining != 2*4096 || !r.Complete {
		t.Errorf("%+v", r)
	}
	if s := r.String(); !strings.Contains(s, "4KiB EACCES, 4KiB EBUSY") {
		t.Error(s)
	}
}

// The kernel may give up midway and leave the statuses after that unset.
func TestAbortedCalls(t *testing.T) {
	f := newPager()
	f.fill(base, 300, 0)
	f.abort = 100
	if r := move(t, mover(t, f, 1), unit.GiB); r.Moved != 300*4096 || len(r.Failed) != 0 || f.on(1) != 300 {
		t.Errorf("%+v", r)
	}
}

// perPage and perCall are two kernels: one whose calls are as long as they have
// pages, one whose calls cost the same whatever they do (lru_add_drain_all).
func TestBatchAdapts(t *testing.T) {
	for _, c := range []struct {
		name             string
		perCall, perPage time.Duration
		low, high        int
	}{
		{"fast", 0, time.Microsecond, 512, 512},
		{"slow pages", 0, 200 * time.Microsecond, 16, 64},
		{"slow calls", 40 * time.Millisecond, 10 * time.Microsecond, 256, 512},
		{"as in the lab", 20 * time.Millisecond, 250 * time.Microsecond, 64, 512},
		{"hopeless", 0, 5 * time.Millisecond, 8, 16},
	} {
		b := newBatch()
		for range 100 {
			b.observe(b.pages, c.perCall+time.Duration(b.pages)*c.perPage)
		}
		if b.pages < c.low || b.pages > c.high {
			t.Errorf("%s: %d pages, want %d to %d", c.name, b.pages, c.low, c.high)
		}
	}
}

func TestLongestCall(t *testing.T) {
	f := newPager()
	f.fill(base, 512, 0)
	f.node[base+5*4096] = 1 // no huge page
	f.took = 20 * time.Millisecond
	r := move(t, mover(t, f, 1), unit.GiB)
	if r.LongestCall != f.took || r.Moved != 511*4096 {
		t.Errorf("%+v", r)
	}
}

func TestWholeCallFails(t *testing.T) {
	for errno, want := range map[error]string{sys.EACCES: "cpuset.mems", sys.EPERM: "CAP_SYS_NICE"} {
		f := newPager()
		f.fill(base, 10, 0)
		f.whole = errno
		_, err := mover(t, f, 1).Move(context.Background(), Request{PIDs: []int{7}, To: set.FromNodes(1), Budget: 1 << 30})
		if !errors.Is(err, unix.ErrNotPermitted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", errno, err)
		}
	}
	f := newPager()
	f.fill(base, 10, 0)
	f.whole = sys.ESRCH
	if r := move(t, mover(t, f, 1), unit.GiB); !r.Complete || r.Moved != 0 {
		t.Errorf("a process that ended: %+v", r)
	}
	if _, err := NewMover(unix.Live{}, Config{}); err == nil {
		t.Error("a mover without the running kernel")
	}
}

func TestTargetsTakeTurns(t *testing.T) {
	m := &Mover{req: Request{To: set.FromNodes(1, 3)}, free: map[int]unit.Bytes{1: 10, 3: 9}}
	var got []int32
	for range 4 {
		got = append(got, m.target(2))
	}
	if fmt.Sprint(got) != "[1 3 1 3]" {
		t.Errorf("targets %v", got)
	}
}

// TestLive moves a real process's pages to node 0. Where that is the only node
// nothing is to do, and exactly that must come out.
func TestLive(t *testing.T) {
	m, err := NewMover(unix.NewLive(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	sleep := exec.Command("sleep", "10")
	if err := sleep.Start(); err != nil {
		t.Skipf("no process: %v", err)
	}
	defer func() { sleep.Process.Kill(); sleep.Wait() }()
	time.Sleep(50 * time.Millisecond)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/numa_maps", sleep.Process.Pid)); err != nil {
		t.Skipf("no numa_maps: %v", err)
	}
	r, err := m.Move(context.Background(), Request{PIDs: []int{2, sleep.Process.Pid}, To: set.FromNodes(0), Budget: unit.GiB})
	if err != nil || !r.Complete {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := os.Stat("/sys/devices/system/node/node1"); err != nil && (r.Moved != 0 || r.Remaining != 0 || r.Calls != 0) {
		t.Errorf("on one node: %+v", r)
	}
	where := []int32{-1}
	page := uintptr(m.firstPage(t, sleep.Process.Pid))
	if _, err := m.pager.MovePages(sleep.Process.Pid, []uintptr{page}, nil, where, 0); err != nil || where[0] < 0 && where[0] != -int32(sys.ENOENT) {
		t.Errorf("asking: %v, %v", where, err)
	}
	left, status, err := m.call(sleep.Process.Pid, []uintptr{page}, 0)
	if err != nil || left != 0 || status[0] == unset {
		t.Errorf("moving home: %d left, %v, %v", left, status, err)
	}
}

func (m *Mover) firstPage(t *testing.T, pid int) uint64 {
	t.Helper()
	m.req.To = set.FromNodes(9)
	all, err := m.areas(pid)
	if err != nil || len(all) == 0 {
		t.Fatalf("areas %v, %v", all, err)
	}
	return all[0].next
}

// Workloads take turns, and each turn may be over before it has begun: every
// call still gets somewhere, and none starts another's pass anew.
func TestTurnsThatAreTooShort(t *testing.T) {
	f := newPager()
	f.fill(base, 4*512, 0)
	m := mover(t, f, 4)
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	for turn := 1; ; turn++ {
		r, err := m.Move(late, Request{PIDs: []int{7}, To: set.FromNodes(1), Budget: unit.GiB})
		if err != nil {
			t.Fatal(err)
		}
		if r.Moved == 0 {
			t.Fatalf("turn %d moved nothing", turn)
		}
		if f.on(1) == 4*512 {
			return
		}
		if turn == 8 {
			t.Fatalf("%d of %d pages after %d turns", f.on(1), 4*512, turn)
		}
		if _, err := m.Move(late, Request{PIDs: []int{8}, To: set.FromNodes(1), Budget: unit.GiB}); err != nil {
			t.Fatal(err) // another workload's turn; its process is gone
		}
	}
}
