// SPDX-License-Identifier: Apache-2.0

package bpfcount

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/perf"
	"homenode/internal/kernel/unix"
)

// TestMain plays the workload when the environment asks for it.
func TestMain(m *testing.M) {
	switch os.Getenv("HOMENODE_CHILD") {
	case "ping":
		ping()
		return
	case "pong":
		pong()
		return
	case "spin":
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		}
		return
	}
	os.Exit(m.Run())
}

// v2 is where a cgroup of version 2 can be made.
func v2(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		var fs sys.Statfs_t
		if sys.Statfs(dir, &fs) == nil && fs.Type == sys.CGROUP2_SUPER_MAGIC {
			return dir
		}
	}
	t.Skip("no cgroup v2 here")
	return ""
}

func newCgroup(t *testing.T, top, name string) string {
	t.Helper()
	dir := filepath.Join(top, "homenode-test-"+strconv.Itoa(os.Getpid())+name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no cgroup can be made: %v", err)
	}
	t.Cleanup(func() {
		for range 100 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return dir
}

// spin runs 300 ms of work in the cgroup and returns the CPU time it took.
func spin(t *testing.T, dir string) time.Duration {
	t.Helper()
	fd, err := sys.Open(dir, sys.O_RDONLY|sys.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(fd)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOMENODE_CHILD=spin", "GOMAXPROCS=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// software stands in for the events of a machine without a PMU. Clocks do not belong in a
// group of these: Linux 6.18 then counts nothing in it.
var software = []perf.Event{
	{Field: perf.Cycles, Type: sys.PERF_TYPE_SOFTWARE, Config: sys.PERF_COUNT_SW_PAGE_FAULTS},
	{Field: perf.Instructions, Type: sys.PERF_TYPE_SOFTWARE, Config: sys.PERF_COUNT_SW_PAGE_FAULTS_MIN},
}

func start(t *testing.T, slots int) *Counter {
	t.Helper()
	var cpus []int
	for i := range runtime.NumCPU() {
		cpus = append(cpus, i)
	}
	c, err := New(Config{Events: software, CPUs: cpus, Slots: slots})
	if errors.Is(err, unix.ErrNotPermitted) || errors.Is(err, unix.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestLiveCounts(t *testing.T) {
	c := start(t, 4)
	top := v2(t)
	a, b := newCgroup(t, top, "a"), newCgroup(t, top, "b")
	read := func(s Slot, at time.Duration) perf.Sample {
		t.Helper()
		if err := c.Update(); err != nil {
			t.Fatal(err)
		}
		got, err := c.Read(s, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	ia, _ := unix.Inode(a)
	ib, _ := unix.Inode(b)
	sa, err := c.Add(ia)
	if err != nil {
		t.Fatal(err)
	}
	sb, _ := c.Add(ib)
	if s := read(sa, 0); s.OK {
		t.Error("the first sample counts")
	}
	read(sb, 0)
	used, s, clock := time.Duration(0), perf.Sample{}, time.Duration(0)
	for try := 1; ; try++ { // time that the host steals counts in one of the two figures only
		used, s = spin(t, a), read(sa, time.Duration(try)*time.Second)
		clock = time.Duration(s.Total[perf.Clock])
		if s.OK && clock >= used*8/10 && clock <= used*13/10+20*time.Millisecond {
			break
		}
		if t.Logf("clock %v, the process used %v", clock, used); try == 3 {
			t.Fatal("the clock is not the process's, three times")
		}
	}
	if n := s.Total[perf.Cycles]; n < 100 || s.Total[perf.Instructions] > n || s.Scaled != 1 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	if s := read(sb, 4*time.Second); s.Total != (perf.Sample{}).Total {
		t.Errorf("a cgroup that did nothing: %+v", s)
	}
	c.Remove(sa)
	spin(t, a)
	if s := read(sa, 5*time.Second); s.Total[perf.Clock] != 0 {
		t.Errorf("removed: %+v", s)
	}
	t.Logf("clock %v, used %v, page faults %d, %d files", clock, used, s.Total[perf.Cycles], c.Files())
}

// A task that runs and does not leave its CPU is seen, too: this very thread.
func TestLiveWithoutSwitch(t *testing.T) {
	c := start(t, 1)
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip(err)
	}
	top := v2(t)
	_, path, _ := strings.Cut("\n"+string(self), "\n0::")
	path, _, _ = strings.Cut(path, "\n")
	id, err := unix.Inode(filepath.Join(top, path))
	if err != nil || id == rootID {
		t.Skipf("this process is in no cgroup of its own (%v)", err)
	}
	slot, err := c.Add(id)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = c.Update()
	_, _ = c.Read(slot, 0, nil)
	before := unix.ThreadCPU()
	for unix.ThreadCPU()-before < 50*time.Millisecond {
	}
	_ = c.Update()
	s, _ := c.Read(slot, time.Second, nil)
	if got := time.Duration(s.Total[perf.Clock]); got < 45*time.Millisecond {
		t.Errorf("clock %v of more than 50 ms", got)
	}
}

func TestLiveFull(t *testing.T) {
	c := start(t, 1)
	s, err := c.Add(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Add(1<<40 + 1); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	c.Remove(s)
	if _, err := c.Add(1<<40 + 1); err != nil {
		t.Errorf("after removing: %v", err)
	}
}

// Cgroups that come and go below a slot's own leave nothing behind: there is room for as
// many as exist at once, however many there have been.
func TestLiveChurn(t *testing.T) {
	c := start(t, 1) // room for four ids
	const own = 1 << 40
	s, err := c.Add(own)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		if err := c.Replace(s, own, own+2*i+1, own+2*i+2); err != nil {
			t.Fatalf("after %d that are gone: %v", 2*i, err)
		}
	}
	if len(c.slotOf) != 3 {
		t.Errorf("%d ids are kept", len(c.slotOf))
	}
	if err := c.Replace(s, own, own+1, own+2, own+3, own+4); !errors.Is(err, ErrFull) {
		t.Errorf("five: %v", err)
	}
	c.Remove(s)
	if _, err = c.Add(own, own+1, own+2, own+3); err != nil {
		t.Errorf("after removing: %v", err)
	}
	if _, err := c.Add(own); !errors.Is(err, ErrFull) {
		t.Errorf("without a slot: %v", err)
	}
}

// What another slot took stays with that one.
func TestLiveTaken(t *testing.T) {
	c := start(t, 2)
	upper, err := c.Add(1<<40, 1<<40+1)
	if err != nil {
		t.Fatal(err)
	}
	lower, err := c.Add(1<<40 + 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Replace(upper, 1<<40); err != nil || c.slotOf[1<<40+1] != uint32(lower) {
		t.Errorf("%v, %v", c.slotOf, err)
	}
	c.Remove(upper)
	if len(c.slotOf) != 1 {
		t.Errorf("%v", c.slotOf)
	}
}

// The ledger does not grow without end, and reports that.
func TestLiveMostSlots(t *testing.T) {
	if c := start(t, 4); c.Slots() != 4 {
		t.Errorf("%d slots of 4", c.Slots())
	}
	c := start(t, 1<<22)
	if bytes := (c.Slots() + 1) * c.cpus * c.stride * word; c.Slots() < 1 || bytes > MostLedger {
		t.Errorf("%d slots take %d bytes", c.Slots(), bytes)
	}
}

// A base takes room for the CPUs that its slot ran on, not for all.
func TestBase(t *testing.T) {
	b := base{place: make([]uint16, 128)}
	for _, words := range [][]uint64{{0, 0}, {3, 4}, {5, 4}} {
		b.keep(127, words)
		b.keep(7, []uint64{0, 0})
	}
	b.keep(3, []uint64{0, 1})
	if len(b.words) != 4 || b.of(7, 2) != nil || !slices.Equal(b.of(127, 2), []uint64{5, 4}) || !slices.Equal(b.of(3, 2), []uint64{0, 1}) {
		t.Errorf("%v, %v", b.words, b.place)
	}
}
