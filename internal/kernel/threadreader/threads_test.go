// SPDX-License-Identifier: Apache-2.0

package threadreader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// host is a fake one with two nodes, whose threads do what a test says.
type host struct {
	t        *testing.T
	root     unix.Root
	now      time.Time
	fds      map[int]int // thread of a leader
	members  map[int]int // events of a leader
	next     int
	at       map[int][8]uint64 // enabled, running, values, by thread
	affinity map[int]set.CPUSet
	refuse   error
	most     int // events that can be open; 0: any number
	inUse    int
}

func newHost(t *testing.T, lab bool) *host {
	f := kerneltest.TwoNodes()
	f["/proc/self/mountinfo"] = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	f["/sys/fs/cgroup/cgroup.controllers"] = "cpuset cpu\n"
	f["/sys/fs/cgroup/cpuset.cpus.effective"] = "0-3\n"
	f["/sys/fs/cgroup/cpuset.mems.effective"] = "0-1\n"
	f["/sys/fs/cgroup/demo/cpuset.cpus.effective"] = "0-2\n"
	f["/sys/fs/cgroup/demo/cpuset.mems.effective"] = "0-1\n"
	if lab {
		f["/sys/bus/event_source/devices/cpu/identifier"] = "homenode-lab\n"
	}
	h := &host{t: t, root: kerneltest.Tree(t, f), now: time.Unix(1000, 0), next: 10,
		fds: map[int]int{}, members: map[int]int{}, at: map[int][8]uint64{}, affinity: map[int]set.CPUSet{}}
	return h
}

// start makes a thread, or changes where it was last.
func (h *host) start(pid, tid, cpu int, start uint64) {
	stat := fmt.Sprintf("%d (a (b) c) S 1 1 1 0 -1 0 0 0 0 0 7 3 0 0 20 0 1 0 %d %s17 %d 0 0 0 0 0\n", tid, start, strings.Repeat("0 ", 15), cpu)
	files := kerneltest.Files{
		fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid): stat,
		fmt.Sprintf("/proc/%d/cgroup", tid):            "0::/demo\n",
	}
	if tid == pid {
		files[fmt.Sprintf("/proc/%d/stat", pid)] = stat
		files[fmt.Sprintf("/proc/%d/status", pid)] = fmt.Sprintf("Name:\ta\nTgid:\t%d\nUid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n", pid)
		files[fmt.Sprintf("/proc/%d/cgroup", pid)] = "0::/demo\n"
	}
	kerneltest.Write(h.t, h.root, files)
	if h.affinity[tid].IsEmpty() {
		h.affinity[tid] = set.FromCPUs(0, 1, 2)
	}
}

// run lets a thread run, and counts.
func (h *host) run(tid int, ran time.Duration, requests, waits uint64) {
	a := h.at[tid]
	a[0], a[1] = a[0]+uint64(ran), a[1]+uint64(ran)
	a[2], a[3], a[4], a[5] = a[2]+1000, a[3]+500, a[4]+requests, a[5]+waits
	a[6], a[7] = a[6]+30, a[7]+10
	h.at[tid] = a
}

func (h *host) OpenInGroup(_ *sys.PerfEventAttr, tid, group int) (int, error) {
	if h.refuse != nil {
		return 0, h.refuse
	}
	if h.most > 0 && h.inUse == h.most {
		return 0, sys.EMFILE
	}
	h.inUse++
	h.next++
	if group < 0 {
		h.fds[h.next], group = tid, h.next
	}
	h.members[group]++
	return h.next, nil
}

func (h *host) Read(fd int, words []uint64) (int, error) {
	a := h.at[h.fds[fd]]
	words[0] = uint64(h.members[fd])
	copy(words[1:], a[:2+h.members[fd]])
	return 3 + h.members[fd], nil
}

func (h *host) Close(int) { h.inUse-- }

func (h *host) Affinity(tid int, mask *unix.CPUWords) (int, error) {
	cpus, ok := h.affinity[tid]
	if !ok {
		return 0, sys.ESRCH
	}
	clear(mask[:])
	for cpu := range 4 {
		if cpus.Has(cpu) {
			mask[0] |= 1 << cpu
		}
	}
	return 1, nil
}

func (h *host) SetAffinity(int, []uint64) error { return errors.New("a reader sets nothing") }

func (h *host) open(cfg Config) *Reader {
	h.t.Helper()
	cfg.Root, cfg.Perf, cfg.Affinity = h.root, h, h
	cfg.Now = func() time.Time { return h.now }
	r, err := NewReader(cfg)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(r.Close)
	return r
}

func (h *host) read(r *Reader) window.Window {
	h.t.Helper()
	h.now = h.now.Add(10 * time.Millisecond)
	w, err := r.Read(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

func TestThreadsOfProcesses(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	h.start(10, 11, 2, 101)
	h.start(20, 20, 1, 102)
	h.affinity[11] = set.FromCPUs(1)
	ours := func(tid int, start uint64, cpus set.CPUSet) bool {
		return tid == 20 && start == 102 && cpus == set.FromCPUs(0)
	}
	h.affinity[20] = set.FromCPUs(0)
	r := h.open(Config{PIDs: []int{10}, Watched: []int{20}, Ours: ours, Discover: time.Hour})
	if err := r.Usable(); err != nil || r.EventTable() != "lab" {
		t.Errorf("%v, %q", err, r.EventTable())
	}
	w := h.read(r)
	if len(w.Workloads) != 2 || w.Workloads[0].ID != "pid:10" || w.Workloads[1].ID != "pid:20" || len(w.Nodes) != 2 || w.Nodes[1].CPUs != set.FromCPUs(2, 3) {
		t.Fatalf("%+v", w)
	}
	if th := w.Workloads[0].Threads[0]; th.Used.Known() || th.UncoreWaits.Known() || th.UncoreWaits.From == "" || w.Length != 0 {
		t.Errorf("the first window knows something: %+v", th)
	}
	if w.Workloads[0].Sensitive != unit.Some(true) || w.Workloads[1].Sensitive != unit.Some(false) {
		t.Errorf("tags %v, %v", w.Workloads[0].Sensitive, w.Workloads[1].Sensitive)
	}
	h.run(10, 10*time.Millisecond, 10, 1000)
	h.start(10, 10, 3, 100) // it moved
	h.start(20, 20, 3, 102) // its file says so, but it did not run
	w = h.read(r)
	a, b := w.Workloads[0].Threads[0], w.Workloads[0].Threads[1]
	if a.ID != 10 || a.CPU != unit.Some(3) || a.Used != unit.Measured(1.0, byTaskClock) || a.UncoreWaits != unit.Modelled(uint64(1000), "perf r1000860 (lab)") || a.Pinned || a.Ours {
		t.Errorf("%+v", a)
	}
	if b.ID != 11 || b.Used.V != unit.Some(0.0) || b.UncoreRequests.V != unit.Some(uint64(0)) || !b.Pinned || b.Allowed != set.FromCPUs(1) || b.CPU != unit.Some(2) {
		t.Errorf("%+v", b)
	}
	if c := w.Workloads[1].Threads[0]; !c.Ours || c.Pinned || c.CPU != unit.Some(1) {
		t.Errorf("%+v", c)
	}
	wl := w.Workloads[0]
	if wl.UncoreRequests.V != unit.Some(uint64(10)) || wl.LocalLoads.V != unit.Some(uint64(30)) || wl.Tasks.V != unit.Some(2) || wl.CPU.V != unit.Some(1.0) ||
		wl.CPUByNode[1].V != unit.Some(1.0) || wl.CPUByNode[0].V != unit.Some(0.0) || wl.CPUByNode[1].How != unit.HowEstimated {
		t.Errorf("%+v", wl)
	}
	if v, ok := window.LocalAccessRatio(&wl).Get(); !ok || v != 0.75 {
		t.Errorf("local %v", v)
	}
}

// Threads come and go; a later one with the same number is another thread.
func TestThreadsComeAndGo(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	r := h.open(Config{PIDs: []int{10}, Discover: 25 * time.Millisecond})
	h.read(r)
	h.start(10, 12, 1, 200)
	if w := h.read(r); len(w.Workloads[0].Threads) != 1 {
		t.Errorf("looked for threads too soon: %+v", w.Workloads[0].Threads)
	}
	if w := h.read(r); len(w.Workloads[0].Threads) != 2 || w.Workloads[0].Threads[1].Used.Known() {
		t.Errorf("%+v", w.Workloads[0].Threads)
	}
	h.run(12, time.Millisecond, 1, 10)
	h.start(10, 12, 1, 300) // the number was used again
	if w := h.read(r); len(w.Workloads[0].Threads) != 1 || r.Threads() != 1 {
		t.Errorf("%+v", w.Workloads[0].Threads)
	}
	h.read(r)
	if w := h.read(r); len(w.Workloads[0].Threads) != 2 || w.Workloads[0].Threads[1].Used.Known() {
		t.Errorf("%+v", w.Workloads[0].Threads)
	}
	delete(h.affinity, 12) // ended between two looks
	if w := h.read(r); len(w.Workloads[0].Threads) != 1 || w.Workloads[0].Threads[0].ID != 10 {
		t.Errorf("%+v", w.Workloads[0].Threads)
	}
	kerneltest.Remove(t, h.root, "/proc/10")
	delete(h.affinity, 10)
	var reported []string
	for range 5 {
		w := h.read(r)
		reported = append(reported, w.Problems...)
	}
	if r.Threads() != 0 || !slices.Equal(reported, []string{"pid:10 has ended"}) {
		t.Errorf("%d threads, %q", r.Threads(), reported)
	}
}

// Threads have ended only if they are gone: if they cannot be listed, all are still
// there.
func TestListingFails(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	h.start(10, 11, 1, 101)
	r := h.open(Config{PIDs: []int{10}})
	h.read(r)
	kerneltest.Remove(t, h.root, "/proc/10/task")
	kerneltest.Write(t, h.root, kerneltest.Files{"/proc/10/task": "x"}) // any error except that it does not exist
	for range 3 {
		h.run(10, time.Millisecond, 1, 10)
		w := h.read(r)
		if r.Threads() != 2 || len(w.Workloads) != 1 || len(w.Workloads[0].Threads) != 2 {
			t.Fatalf("%d threads: %+v", r.Threads(), w.Workloads)
		}
		if len(w.Problems) != 1 || !strings.Contains(w.Problems[0], "/proc/10/task: not a directory") {
			t.Errorf("%q", w.Problems)
		}
	}
}

// A cgroup that a search does not find is checked itself.
func TestCgroupIsHidden(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	const dir = "/sys/fs/cgroup/demo/"
	kerneltest.Write(t, h.root, kerneltest.Files{dir + "cgroup.procs": "10\n", dir + "cgroup.threads": "10\n", dir + "cgroup.events": "populated 1\n"})
	r := h.open(Config{Cgroups: []string{"/demo"}})
	h.read(r)
	kerneltest.Write(t, h.root, kerneltest.Files{dir + "cgroup.events": "?", dir + "cgroup.procs": ""})
	if w := h.read(r); r.Threads() != 1 || len(w.Problems) != 0 {
		t.Errorf("%d threads, %q", r.Threads(), w.Problems)
	}
	kerneltest.Remove(t, h.root, "/sys/fs/cgroup/demo")
	if w := h.read(r); r.Threads() != 0 || !slices.Equal(w.Problems, []string{"/demo has ended"}) {
		t.Errorf("%d threads, %q", r.Threads(), w.Problems)
	}
}

// Threads that are not counted for lack of descriptors are read, reported once, and counted
// when others have ended.
func TestFilesRunOut(t *testing.T) {
	h := newHost(t, true)
	for tid := 10; tid < 30; tid++ {
		h.start(10, tid, 0, 100)
	}
	h.most = 6 * 15
	r := h.open(Config{PIDs: []int{10}})
	var reported []string
	for range 4 {
		w := h.read(r)
		if reported = append(reported, w.Problems...); len(w.Workloads[0].Threads) != 20 {
			t.Errorf("%d threads", len(w.Workloads[0].Threads))
		}
	}
	if len(reported) != 1 || !strings.HasPrefix(reported[0], "5 of 20 threads are not counted: ") || !strings.Contains(reported[0], "too many open files") {
		t.Errorf("%q", reported)
	}
	if r.opened != 15 || r.Usable() != nil {
		t.Errorf("%d are counted; %v", r.opened, r.Usable())
	}
	for tid := 10; tid < 20; tid++ {
		delete(h.affinity, tid)
		kerneltest.Remove(t, h.root, fmt.Sprintf("/proc/10/task/%d", tid))
	}
	h.read(r)
	if h.read(r); r.opened != 10 || r.Threads() != 10 {
		t.Errorf("%d of %d are counted", r.opened, r.Threads())
	}
}

// If the cpuset cannot be read, no thread counts as pinned because of that; one that is
// narrower than the others still does.
func TestCpusetIsUnknown(t *testing.T) {
	h := newHost(t, true)
	held := map[int]bool{}
	for tid := 10; tid < 13; tid++ {
		h.start(10, tid, 0, 100)
		kerneltest.Write(t, h.root, kerneltest.Files{fmt.Sprintf("/proc/%d/cgroup", tid): "0::/../outside\n"})
	}
	h.affinity[12] = set.FromCPUs(1)
	r := h.open(Config{PIDs: []int{10}, Ours: func(tid int, _ uint64, cpus set.CPUSet) bool { return held[tid] }})
	check := func(when string, problems int) {
		t.Helper()
		w := h.read(r)
		wl := w.Workloads[0]
		if wl.Threads[0].Pinned || wl.Threads[1].Pinned || !wl.Threads[2].Pinned || wl.Binding.CPUs != set.FromCPUs(0, 1, 2) {
			t.Errorf("%s: %+v", when, wl)
		}
		if len(w.Problems) != problems || problems > 0 && !strings.Contains(w.Problems[0], "the cpuset of pid:10 is not known") {
			t.Errorf("%s: %q", when, w.Problems)
		}
	}
	check("at first", 1)
	held[10], held[11] = true, true
	h.affinity[10], h.affinity[11] = set.FromCPUs(2), set.FromCPUs(2)
	check("held", 0)
	check("held on", 0)
}

func TestThreadsOfCgroups(t *testing.T) {
	h := newHost(t, true)
	for _, tid := range []int{10, 11, 30} {
		h.start(tid, tid, 0, 100)
	}
	kerneltest.Write(t, h.root, kerneltest.Files{
		"/sys/fs/cgroup/demo/cgroup.procs": "10\n30\n", "/sys/fs/cgroup/demo/cgroup.threads": "30\n10\n11\n",
		"/sys/fs/cgroup/demo/cgroup.events": "populated 1\n",
	})
	r := h.open(Config{PIDs: []int{30}, Cgroups: []string{"/demo"}, Infer: true})
	w := h.read(r)
	if len(w.Workloads) != 2 || w.Workloads[0].ID != "/demo" || len(w.Workloads[0].Threads) != 2 || w.Workloads[0].Threads[0].ID != 10 || len(w.Workloads[1].Threads) != 1 {
		t.Errorf("%+v", w.Workloads)
	}
	if w.Workloads[0].Sensitive.Known() {
		t.Error("to be inferred, and tagged")
	}
	if b := w.Workloads[0].Binding; b.CPUs != set.FromCPUs(0, 1, 2) {
		t.Errorf("the cpuset is %v", b.CPUs)
	}
}

// Without counters time is known from schedstat, and the rest is unknown, with the
// reason.
func TestThreadsWithoutCounters(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	h.refuse = sys.ENOENT
	r := h.open(Config{PIDs: []int{10}})
	if err := r.Usable(); !errors.Is(err, kernel.ErrNotSupported) || !strings.Contains(err.Error(), "OFFCORE_REQUESTS") {
		t.Errorf("%v", err)
	}
	sched := func(ns int) {
		kerneltest.Write(t, h.root, kerneltest.Files{"/proc/10/task/10/schedstat": fmt.Sprintf("%d 1 2\n", ns)})
	}
	sched(1e6)
	h.read(r)
	sched(6e6)
	th := h.read(r).Workloads[0].Threads[0]
	if th.Used != unit.Estimated(0.5, bySchedstat) || th.UncoreRequests.Known() || !strings.Contains(th.UncoreRequests.From, "no such counter") {
		t.Errorf("%+v", th)
	}
	h = newHost(t, false)
	h.start(10, 10, 0, 100)
	if err := h.open(Config{PIDs: []int{10}}).Usable(); !errors.Is(err, kernel.ErrNotSupported) || !strings.Contains(err.Error(), "generic") {
		t.Errorf("%v", err)
	}
}

func TestWhoIsRefused(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	if _, err := NewReader(Config{Root: h.root, Perf: h, Affinity: h, PIDs: []int{11}}); !errors.Is(err, kernel.ErrGone) {
		t.Errorf("%v", err)
	}
}

// Nothing is allocated for a thread that was there before.
func TestReadAllocatesNothing(t *testing.T) {
	allocs := func(threads int) float64 {
		h := newHost(t, true)
		for i := range threads {
			h.start(10, 10+i, i%4, 100)
		}
		r := h.open(Config{PIDs: []int{10}, Discover: time.Hour})
		h.read(r)
		return testing.AllocsPerRun(20, func() {
			for i := range threads {
				h.run(10+i, time.Millisecond, 1, 2)
			}
			h.read(r)
		})
	}
	if few, many := allocs(1), allocs(200); many > few+1 {
		t.Errorf("%v allocations for 1 thread, %v for 200", few, many)
	}
}

// Whether an affinity is ours may change while the affinity does not.
func TestOursIsAskedAnew(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	h.affinity[10] = set.FromCPUs(0)
	ours := false
	r := h.open(Config{PIDs: []int{10}, Discover: time.Hour, Ours: func(int, uint64, set.CPUSet) bool { return ours }})
	for range 4 {
		th := h.read(r).Workloads[0].Threads[0]
		if th.Ours != ours || th.Pinned == ours || th.Start != 100 {
			t.Errorf("ours %v: %+v", ours, th)
		}
		ours = !ours
	}
}

// A thread that stands still may have ended, and its number may belong to another
// thread.
func TestIdleNumbersAreUsedAgain(t *testing.T) {
	h := newHost(t, true)
	h.start(10, 10, 0, 100)
	h.start(10, 12, 1, 200)
	r := h.open(Config{PIDs: []int{10}, Discover: 25 * time.Millisecond})
	h.read(r)
	h.start(10, 12, 1, 300) // its counters stand still
	for range 8 {
		h.read(r)
	}
	if th := h.read(r).Workloads[0].Threads; len(th) != 2 || th[1].Start != 300 {
		t.Errorf("%+v", th)
	}
}

// A CPU that comes back while the machine is read again is in the next window at the
// latest.
func TestHotplugWhileMachineIsRead(t *testing.T) {
	some := kerneltest.Files{"/sys/devices/system/cpu/online": "0-2\n", "/sys/devices/system/node/node1/cpulist": "2\n"}
	all := kerneltest.Files{"/sys/devices/system/cpu/online": "0-3\n", "/sys/devices/system/node/node1/cpulist": "2-3\n"}
	t.Cleanup(func() { unix.Interfere = nil })
	for n, last := 1, false; !last; n++ {
		h := newHost(t, true)
		h.start(10, 10, 0, 100)
		r := h.open(Config{PIDs: []int{10}})
		kerneltest.Write(t, h.root, some)
		call := 0
		last = true
		unix.Interfere = func(string) {
			if call++; call == n {
				last = false
				kerneltest.Write(t, h.root, all)
			}
		}
		h.read(r)
		unix.Interfere = nil
		if last {
			kerneltest.Write(t, h.root, all)
		}
		if w := h.read(r); w.Nodes[1].CPUs != set.FromCPUs(2, 3) {
			t.Fatalf("back before call %d: node 1 has CPUs %v", n, w.Nodes[1].CPUs)
		}
		r.Close()
	}
}
