// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/set"
)

// On this kernel a real thread is pinned, moved on, and put back.
func TestLive(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	a, err := New(kernel.Live(), nil, errors.New("threads only"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Skip(err)
	}
	defer j.Close()
	tid := cmd.Process.Pid
	before, err := a.Read(Setting(tid))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := set.ParseCPUs(before.Value)
	first, _ := all.First()
	for _, release := range []bool{true, false, true, false} {
		if o := j.Wrap(a).Apply(ctx, pin(tid, release, first)); o.Status != action.Done {
			t.Fatalf("%s: %s", o.Status, o.Detail)
		}
		want := set.FromCPUs(first).String()
		if release {
			want = before.Value
		}
		if got, err := a.Read(Setting(tid)); err != nil || got.Value != want || got.ID != before.ID {
			t.Errorf("release %v: %v, %v", release, got, err)
		}
	}
	if got, err := j.Restore(ctx, a); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := a.Read(Setting(tid)); err != nil || got != before {
		t.Errorf("%v, %v, was %v", got, err, before)
	}
}

// Measures the cost of a move, with its records.
func BenchmarkMove(b *testing.B) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		b.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	a, _ := New(kernel.Live(), nil, errors.New("threads only"))
	j, err := journal.Open(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Skip(err)
	}
	defer j.Close()
	apply := j.Wrap(a)
	for b.Loop() {
		if o := apply.Apply(ctx, pin(cmd.Process.Pid, true, 0)); o.Status != action.Done {
			b.Fatal(o.Detail)
		}
	}
}

// breeder has this binary start threads without end. After two rounds of GiveBack each
// thread reports whether it may run on fewer CPUs than the first one. The test announces
// each round, and breeder answers with the number of such reports.
const breeder = "HOMENODE_TEST_BREEDER"

func TestMain(m *testing.M) {
	if os.Getenv(breeder) == "" {
		os.Exit(m.Run())
	}
	breed()
}

func breed() {
	var made, narrow, rounds atomic.Int64
	var ending atomic.Bool
	var all sys.CPUSet
	if err := sys.SchedGetaffinity(0, &all); err != nil {
		panic(err)
	}
	gate := make(chan bool, 256)
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	in.ReadByte()
	old := map[string]bool{} // these threads will be moved, and are on fewer CPUs at times
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		panic(err)
	}
	for _, e := range tasks {
		old[e.Name()] = true
	}
	go func() {
		for b, _ := in.ReadByte(); b == 'r'; b, _ = in.ReadByte() {
			rounds.Add(1)
			fmt.Println(made.Load())
		}
		ending.Store(true)
	}()
	for !ending.Load() {
		gate <- true
		go func() {
			runtime.LockOSThread()       // it ends with its goroutine
			due := rounds.Load() + 1 + 2 // the present round may have missed it
			for rounds.Load() < due && !ending.Load() {
				sys.Nanosleep(&sys.Timespec{Nsec: 50e6}, nil)
			}
			var mine sys.CPUSet
			if rounds.Load() >= due && !old[strconv.Itoa(sys.Gettid())] {
				if sys.SchedGetaffinity(0, &mine) == nil && mine.Count() < all.Count() {
					narrow.Add(1)
				}
				made.Add(1)
			}
			<-gate
		}()
	}
	for range cap(gate) { // all have ended
		gate <- true
	}
	fmt.Println(made.Load(), narrow.Load())
	os.Exit(0)
}

// A process that keeps starting threads is moved and released, over and over: threads
// born between the two calls get their CPUs back soon.
func TestLiveHeirs(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), breeder+"=1")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	lines := bufio.NewReader(out)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	a, err1 := New(kernel.Live(), nil, errors.New("threads only"))
	j, err2 := journal.Open(filepath.Join(t.TempDir(), "journal"))
	if err := errors.Join(err1, err2); err != nil {
		t.Skip(err)
	}
	defer j.Close()
	workload := fmt.Sprintf("pid:%d", cmd.Process.Pid)
	first, err := a.tasks(workload)
	if err != nil {
		t.Fatal(err)
	}
	in.Write([]byte("\n"))
	apply, moves, inherited, made, narrow := j.Wrap(a), 0, 0, 0, 0
	over := func() { // a round, which the next one waits for
		in.Write([]byte("r"))
		if text, err := lines.ReadString('\n'); err != nil {
			t.Fatal(text, err)
		} else if _, err := fmt.Sscan(text, &made); err != nil {
			t.Fatal(text, err)
		}
	}
	var looked time.Time
	for rounds := 0; rounds < 25 || made == 0; time.Sleep(5 * time.Millisecond) {
		for _, tid := range first {
			step := pin(tid, true, moves%2)
			step.Workload = workload
			if apply.Apply(ctx, step).Status == action.Done {
				moves++
			}
		}
		if time.Since(looked) < 100*time.Millisecond {
			continue
		}
		looked = time.Now()
		got, err := j.GiveBack(a)
		if err != nil {
			t.Error(err)
		}
		inherited += len(got)
		over()
		rounds++
	}
	restored, err := j.Restore(ctx, a)
	if err != nil {
		t.Error(err)
	}
	t.Logf("the last look: %d", len(restored))
	over()
	in.Write([]byte("\n"))
	text, err := lines.ReadString('\n')
	if _, bad := fmt.Sscan(text, &made, &narrow); err != nil || bad != nil || narrow != 0 {
		t.Errorf("%d of %d threads keep what they inherited (%v, %v)", narrow, made, err, bad)
	}
	t.Logf("%d moves, %d heirs were given back, %d threads", moves, inherited, made)
}
