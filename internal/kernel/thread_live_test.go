// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/kernel/unix"
)

// manyThreads makes this binary a process with this many threads, the first of which
// spin.
const manyThreads, spinning = "HOMENODE_TEST_THREADS", "HOMENODE_TEST_SPINNING"

// fileLimit runs a test of this binary with this many descriptors.
const fileLimit = "HOMENODE_TEST_FILES"

func TestMain(m *testing.M) {
	n, _ := strconv.Atoi(os.Getenv(manyThreads))
	if n == 0 {
		os.Exit(m.Run())
	}
	spin, _ := strconv.Atoi(os.Getenv(spinning))
	ready := make(chan bool)
	for i := range n {
		go func() {
			runtime.LockOSThread()
			ready <- true
			for i < spin { //nolint:staticcheck // it spins until the process ends
			}
			for wait := -1; ; { // with a negative number all wake now and then
				if spin < 0 {
					wait = 1
				}
				sys.Poll(nil, wait)
			}
		}()
		<-ready
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadByte()
	os.Exit(0)
}

func spawn(t testing.TB, threads, spin int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", manyThreads, threads), fmt.Sprintf("%s=%d", spinning, spin))
	out, err1 := cmd.StdoutPipe()
	_, err2 := cmd.StdinPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// softPerf opens the kernel's own events instead of a PMU's: the cost of a read is the
// same except for the counters themselves.
type softPerf struct{ unix.LivePerf }

func (p softPerf) OpenInGroup(attr *sys.PerfEventAttr, tid, group int) (int, error) {
	soft := *attr
	soft.Type, soft.Config = sys.PERF_TYPE_SOFTWARE, sys.PERF_COUNT_SW_TASK_CLOCK
	if group >= 0 {
		soft.Config = sys.PERF_COUNT_SW_PAGE_FAULTS
	}
	return p.LivePerf.OpenInGroup(&soft, tid, group)
}

func liveReader(t testing.TB, pid int) *ThreadReader {
	r, err := NewThreadReader(ThreadConfig{PIDs: []int{pid}, Perf: softPerf{}, Discover: time.Hour})
	if err != nil {
		t.Skipf("no threads can be read here: %v", err)
	}
	t.Cleanup(r.Close)
	if r.opened == 0 {
		t.Skipf("no perf here: %v", r.err)
	}
	return r
}

// Time on a CPU by perf is the time of the process's clock.
func TestLiveTime(t *testing.T) {
	pid := spawn(t, 3, 1)
	r := liveReader(t, pid)
	ctx := context.Background()
	for try := 1; ; try++ { // a host that takes its CPUs away counts that time for one and not for the other
		first := processTime(t, pid) // the two are not read at once: there may be a wait between them
		r.Read(ctx)
		before := processTime(t, pid)
		for end := time.Now().Add(time.Minute); processTime(t, pid)-before < 300*time.Millisecond && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		least := (processTime(t, pid) - before).Seconds()
		w, err := r.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		most := (processTime(t, pid) - first).Seconds()
		used := 0.0
		for _, th := range w.Workloads[0].Threads {
			used += th.Used.Or(0) * w.Length.Seconds()
		}
		t.Logf("%d threads, %.3f s by perf, %.3f to %.3f s by the process's clock", len(w.Workloads[0].Threads), used, least, most)
		if used >= least-0.05 && used <= most+0.05 && used > 0 {
			return
		}
		if try == 5 {
			t.Fatal("perf's time is not the process's, five times")
		}
	}
}

// With fewer descriptors than threads every thread is still read, in each window, and
// the number of uncounted ones is reported.
func TestLiveFilesRunOut(t *testing.T) {
	limit, err := strconv.ParseUint(os.Getenv(fileLimit), 10, 64)
	if err == nil {
		filesRunOut(t, limit)
		return
	}
	for _, limit := range []string{"60", "400"} { // in a process of its own: a hard limit cannot be raised again
		cmd := exec.Command(os.Args[0], "-test.run=^TestLiveFilesRunOut$", "-test.v")
		cmd.Env = append(os.Environ(), fileLimit+"="+limit)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("limit %s: %v\n%s", limit, err, out)
		}
	}
}

func filesRunOut(t *testing.T, limit uint64) {
	pid := spawn(t, 100, 0)
	if err := sys.Setrlimit(sys.RLIMIT_NOFILE, &sys.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Skip(err)
	}
	r, err := NewThreadReader(ThreadConfig{PIDs: []int{pid}, Perf: softPerf{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all := 0
	var reported []string
	for range 4 {
		w, err := r.Read(context.Background())
		if err != nil || len(w.Workloads) != 1 {
			t.Fatalf("%v, %d workloads, %q", err, len(w.Workloads), w.Problems)
		}
		n := len(w.Workloads[0].Threads)
		if reported = append(reported, w.Problems...); n < 100 || n < all || n != r.Threads() {
			t.Errorf("%d threads of %d, %d", n, all, r.Threads())
		}
		all = max(all, n)
	}
	reported = slices.DeleteFunc(reported, func(s string) bool { return strings.Contains(s, "cpuset") })
	uncounted, of := 0, 0 // when it was reported: the runtime of Go starts threads later on, too
	if len(reported) == 1 {
		fmt.Sscanf(reported[0], "%d of %d threads are not counted: ", &uncounted, &of)
	}
	if of < 100 || of > all || uncounted != of-r.opened {
		t.Errorf("%d of %d are counted: %q", r.opened, all, reported)
	}
}

// processTime is by the process's CPU clock, ~pid << 3 | 2 (clock_getcpuclockid(3)).
func processTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	var ts sys.Timespec
	if err := sys.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// The cost of a window, by thread.
func BenchmarkRead(b *testing.B) {
	for _, c := range []struct{ threads, spin int }{{64, 0}, {64, 2}, {64, -1}, {1000, 0}} {
		b.Run(fmt.Sprintf("%d threads, %d run", c.threads, c.spin), func(b *testing.B) {
			r := liveReader(b, spawn(b, c.threads, c.spin))
			ctx := context.Background()
			r.Read(ctx)
			cpu := r.CPUTime()
			for b.Loop() {
				if c.spin < 0 {
					time.Sleep(10 * time.Millisecond)
				}
				if _, err := r.Read(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(r.CPUTime()-cpu)/float64(b.N)/float64(r.Threads()), "ns-cpu/thread")
		})
	}
}
