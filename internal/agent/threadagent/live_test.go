// SPDX-License-Identifier: Apache-2.0

package threadagent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sys "golang.org/x/sys/unix"

	"homenode/internal/action"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/machine"
	"homenode/internal/owner/affinity"
	"homenode/internal/set"
	"homenode/internal/window"
)

// softPerf opens the kernel's software events in place of a PMU's.
type softPerf struct{ unix.LivePerf }

func (p softPerf) OpenInGroup(attr *sys.PerfEventAttr, tid, group int) (int, error) {
	soft := *attr
	soft.Type, soft.Config = sys.PERF_TYPE_SOFTWARE, sys.PERF_COUNT_SW_TASK_CLOCK
	return p.LivePerf.OpenInGroup(&soft, tid, group)
}

// The whole loop runs on this kernel every 10 ms, with a policy that moves a thread
// to and fro. At the end the thread may run where it could before, whether it was
// held or not.
func TestLiveLoop(t *testing.T) {
	kerneltest.InMemory(t)
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	owner, err := affinity.New(kernel.Live(), nil, errors.New("threads only"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := owner.Read(affinity.Setting(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	cpus, _ := set.ParseCPUs(before.Value)
	for _, hold := range []bool{false, true} {
		a, left, err := Open(context.Background(), t.TempDir(), owner)
		if err != nil || len(left) != 0 {
			t.Skip(err)
		}
		r, err := kernel.NewThreadReader(kernel.ThreadConfig{PIDs: []int{cmd.Process.Pid}, Perf: softPerf{}, Ours: a.Ours, Discover: 100 * time.Millisecond})
		if err != nil {
			t.Skipf("no threads can be read here: %v", err)
		}
		ctx, enough := context.WithCancel(context.Background())
		windows, n, ours := 0, 0, 0
		toAndFro := func(_ machine.Machine, w window.Window) (all []action.Action, _ []action.Reason) {
			for _, th := range w.Workloads[0].Threads {
				if th.Ours {
					ours++
				}
				if th.Pinned {
					t.Errorf("an affinity of ours is taken for another process's: %+v", th)
				}
				to := cpus.IDs()[n%cpus.Len()]
				n++
				all = append(all, action.Action{Kind: action.Pin, Workload: w.Workloads[0].ID, Thread: th.ID, CPUs: set.FromCPUs(to), Release: !hold})
			}
			if windows++; windows > 45 && (ours > 0 || !hold || cpus.Len() == 1) {
				enough()
			}
			return all, nil
		}
		sum, err := Run(ctx, Options{Reader: r, Policy: toAndFro, Actor: a, Period: MinPeriod, For: time.Minute, Hold: hold, Say: func(line string) { t.Log(line) }})
		enough()
		r.Close()
		sum.Problems = slices.DeleteFunc(sum.Problems, func(p string) bool { return strings.Contains(p, " is too short for ") }) // a busy host
		if err := errors.Join(err, a.Close()); err != nil || sum.Windows < 2 || sum.Moves < 2 || len(sum.Problems) != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
		t.Logf("hold %v: %d windows, %d late, %d moves, %v to read a thread, %.3f s of CPU", hold, sum.Windows, sum.Late, sum.Moves, sum.ReadCost, sum.CPUSeconds)
		if after, err := owner.Read(affinity.Setting(cmd.Process.Pid)); err != nil || after != before {
			t.Errorf("hold %v: %v, %v, was %v", hold, after, err, before)
		}
		if cpus.Len() > 1 && (ours > 0) != hold {
			t.Errorf("hold %v: it was ours %d times", hold, ours)
		}
	}
}

// An affinity of ours belongs to one thread, not to the next one with the same
// number.
func TestOursIsOfAStart(t *testing.T) {
	cmd := exec.Command("sleep", "30")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	owner, err := affinity.New(kernel.Live(), nil, errors.New("threads only"))
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := Open(context.Background(), t.TempDir(), owner)
	if err != nil {
		t.Skip(err)
	}
	defer a.Close()
	tid := cmd.Process.Pid
	before, err := owner.Read(affinity.Setting(tid))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := set.ParseCPUs(before.Value)
	if all.Len() < 2 {
		t.Skip("one CPU only")
	}
	first, _ := all.First()
	one := set.FromCPUs(first)
	if o := a.Apply(context.Background(), action.Step{Kind: action.PinThread, Workload: "x", Thread: tid, Start: before.ID, CPUs: one}); o.Status != action.Done {
		t.Fatal(o.Detail)
	}
	if !a.Ours(tid, before.ID, one) || a.Ours(tid, before.ID+9, one) || a.Ours(tid, before.ID, all) {
		t.Error("the start of the thread is not compared")
	}
	if _, err := a.PutBack(context.Background()); err != nil || a.Ours(tid, before.ID, one) {
		t.Error(err)
	}
}

// parent makes this binary start a thread every 10 ms, each of which stays. It reports
// when there are atFirst of them, and starts two more for each byte of its input: a
// slow test has no more threads to handle than a quick one.
const parent = "HOMENODE_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parent) == "" {
		os.Exit(m.Run())
	}
	var made, most atomic.Int64
	most.Store(atFirst)
	go func() {
		for in := bufio.NewReader(os.Stdin); ; most.Add(2) {
			if _, err := in.ReadByte(); err != nil {
				os.Exit(0)
			}
		}
	}()
	for n := int64(0); ; time.Sleep(10 * time.Millisecond) {
		if n == most.Load() {
			continue
		}
		n++
		go func() {
			runtime.LockOSThread()
			if made.Add(1) == atFirst {
				fmt.Println("ready")
			}
			sys.Pause()
		}()
	}
}

// atFirst is how many threads exist when the program is ready. These are moved.
const atFirst = 5

// giving counts the threads whose own affinity is restored after they inherited
// one.
type giving struct {
	*Journalled
	n int
}

func (g *giving) GiveBack() ([]journal.Restored, error) {
	all, err := g.Journalled.GiveBack()
	for _, r := range all {
		if r.Result == journal.PutBack {
			g.n++
		}
	}
	return all, err
}

// All threads that a held process starts have their own affinity at the end, whether
// they were found while it ran or by the last search. The reader, owner and journal
// are real.
func TestLiveHoldLeavesNothing(t *testing.T) {
	kerneltest.InMemory(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parent+"=1")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Skip(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	owner, err := affinity.New(kernel.Live(), nil, errors.New("threads only"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := owner.Read(affinity.Setting(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	cpus, _ := set.ParseCPUs(before.Value)
	if cpus.Len() < 2 {
		t.Skip("one CPU only")
	}
	a, _, err := Open(context.Background(), t.TempDir(), owner)
	if err != nil {
		t.Skip(err)
	}
	defer a.Close()
	r, err := kernel.NewThreadReader(kernel.ThreadConfig{PIDs: []int{cmd.Process.Pid}, Perf: softPerf{}, Ours: a.Ours, Discover: 100 * time.Millisecond})
	if err != nil {
		t.Skipf("no threads can be read here: %v", err)
	}
	defer r.Close()
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	n, inherited := 0, &giving{Journalled: a}
	holdFirst := func(_ machine.Machine, w window.Window) (all []action.Action, _ []action.Reason) {
		in.Write([]byte{0})
		if n++; n%5 == 1 && n < 90 { // to and fro: the threads of the start
			for _, th := range w.Workloads[0].Threads[:atFirst] {
				all = append(all, action.Action{Kind: action.Pin, Workload: w.Workloads[0].ID, Thread: th.ID, CPUs: set.FromCPUs(cpus.IDs()[n/5%2])})
			}
		}
		if n >= 100 && inherited.n > 0 {
			enough()
		}
		return all, nil
	}
	sum, err := Run(ctx, Options{Reader: r, Policy: holdFirst, Actor: inherited, Period: MinPeriod, For: time.Minute, Hold: true, Say: func(line string) { t.Log(line) }})
	if err != nil || sum.Moves < 5 || sum.Refused+sum.Drifted > 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	narrow := 0
	for _, e := range tasks {
		tid, _ := strconv.Atoi(e.Name())
		if now, err := owner.Read(affinity.Setting(tid)); err == nil && now.Value != before.Value {
			narrow++
		}
	}
	if narrow > 0 || sum.Inherited == 0 {
		t.Errorf("%d of %d threads are not as before; %d were given back while it ran", narrow, len(tasks), sum.Inherited)
	}
	t.Logf("%d threads, %d had inherited", len(tasks), sum.Inherited)
}
