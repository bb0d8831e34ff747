// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"homenode/internal/action"
	"homenode/internal/actuate"
	"homenode/internal/journal"
	"homenode/internal/kernel"
	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/unix"
	"homenode/internal/policy/mao"
	"homenode/internal/set"
	"homenode/internal/window"
)

// stuck hangs at one of the counted calls, until it is released.
type stuck struct {
	at    int64 // number of the call that hangs
	calls atomic.Int64
	hangs chan bool // closed when it hangs
	go_   chan bool
}

func newStuck(at int64) *stuck {
	return &stuck{at: at, hangs: make(chan bool), go_: make(chan bool)}
}

func (s *stuck) call() {
	if s.calls.Add(1) == s.at {
		close(s.hangs)
		<-s.go_
	}
}

// cpusets is an owner of two cgroups whose reads and writes may hang.
type cpusets struct {
	mu          sync.Mutex
	files       map[journal.Setting]string
	writes      int
	read, write *stuck
	move        *stuck
}

var cpusOfA = journal.Setting{Cgroup: "/demo/a", File: "cpuset.cpus"}

func newCpusets() *cpusets {
	return &cpusets{files: map[journal.Setting]string{cpusOfA: "0-3", {Cgroup: "/demo/b", File: "cpuset.cpus"}: "0-3"},
		read: newStuck(0), write: newStuck(0), move: newStuck(0)}
}

func (c *cpusets) Plan(_ context.Context, step action.Step) ([]journal.Change, error) {
	return []journal.Change{{Setting: journal.Setting{Cgroup: step.Workload, File: "cpuset.cpus"}, New: step.CPUs.String()}}, nil
}

func (c *cpusets) Read(s journal.Setting) (journal.Current, error) {
	c.read.call()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.files[s]; !ok {
		return journal.Current{}, fmt.Errorf("read %s: %w", s, kernel.ErrGone)
	}
	return journal.Current{Value: c.files[s], ID: 7}, nil
}

func (c *cpusets) Same(_ journal.Setting, current, recorded string) bool { return current == recorded }

func (c *cpusets) Write(_ journal.Permit, s journal.Setting, value string) error {
	c.write.call()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[s], c.writes = value, c.writes+1
	return nil
}

func (c *cpusets) Equivalent(journal.Setting, string) (string, error) { return "0-3", nil }

func (c *cpusets) Move(context.Context, journal.Permit, action.Step) action.Outcome {
	c.move.call()
	return action.Outcome{}
}

func (c *cpusets) have() (map[journal.Setting]string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.files), c.writes
}

// boundAgent returns an agent that has bound /demo/a, with its records.
func boundAgent(t *testing.T, reader Reader) (*Agent, *cpusets) {
	t.Helper()
	dir, owner := t.TempDir(), newCpusets()
	j, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Period: testPeriod, CalmPeriod: testPeriod, StateDir: dir, MAO: mao.DefaultConfig(), Actuate: actuate.DefaultConfig()}
	a := &Agent{o: Options{Config: c, Log: slog.New(slog.DiscardHandler)}, reader: reader, journal: j, owner: owner, apply: j.Wrap(owner), past: map[string][]Decision{}}
	a.restoreAnew = func(ctx context.Context) ([]journal.Restored, error) {
		j, err := journal.Open(dir)
		if err != nil {
			return nil, err
		}
		all, err := j.Restore(ctx, owner)
		return all, errors.Join(err, j.Compact(), j.Close())
	}
	if o := a.apply.Apply(t.Context(), bind("/demo/a")); o.Status != action.Done {
		t.Fatal(o)
	}
	return a, owner
}

func bind(workload string) action.Step {
	return action.Step{Kind: action.SetCPUs, Workload: workload, CPUs: set.FromCPUs(2, 3)}
}

// endsWhile runs an agent until something hangs, tells it to end, and returns how it
// ended. Then it releases the call that hung, which must not change anything any more.
func endsWhile(t *testing.T, a *Agent, owner *cpusets, s *stuck) (hung bool, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	select {
	case <-s.hangs:
		hung = true
	case <-time.After(3 * testPeriod):
	}
	began := time.Now()
	cancel()
	err = <-done
	if took := time.Since(began); took > endLimit+putBackLimit {
		t.Errorf("it took %v to end", took)
	}
	files, writes := owner.have()
	close(s.go_)
	time.Sleep(2 * testPeriod) // the loop ends, too
	if after, n := owner.have(); n != writes || !maps.Equal(files, after) {
		t.Errorf("what hung has written after the end: %v, was %v", after, files)
	}
	return hung, err
}

// checkBack checks that all settings are as before, and that no record is left
// on disk.
func checkBack(t *testing.T, what string, a *Agent, owner *cpusets) {
	t.Helper()
	for s, v := range owner.files {
		if v != "0-3" {
			t.Errorf("%s: %s is %q", what, s, v)
		}
	}
	boot, err := kernel.BootID(kernel.At("/"))
	if err != nil {
		t.Fatal(err)
	}
	if left, err := journal.Peek(a.o.Config.StateDir, boot); len(left) > 0 || err != nil {
		t.Errorf("%s: on record are %v, %v", what, left, err)
	}
}

func hostFiles() kerneltest.Files {
	const top = "/sys/fs/cgroup"
	return kerneltest.TwoNodes().With(kerneltest.Files{
		"/proc/self/mountinfo": "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", top + "/cgroup.controllers": "cpuset cpu memory\n",
		top + "/cpuset.cpus.effective": "0-3\n", top + "/cpuset.mems.effective": "0-1\n", top + "/demo/a/cgroup.procs": "10\n", top + "/demo/a/cgroup.threads": "10\n",
		top + "/demo/a/cpu.stat": "usage_usec 1000000\n", top + "/demo/a/cpuset.cpus": "2-3\n", top + "/demo/a/cpuset.cpus.effective": "2-3\n",
		top + "/demo/a/cpuset.mems": "\n", top + "/demo/a/cpuset.mems.effective": "0-1\n", "/proc/10/numa_maps": "1000 default anon=90 N0=90\n", "/proc/10/cgroup": "0::/demo/a\n",
		"/proc/10/stat": "10 (x) S 1 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 99 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0\n",
	})
}

// Whatever file of the kernel a round hangs in, the agent ends when it is told to, and
// everything is restored.
func TestEndsWhateverReadingHangs(t *testing.T) {
	kerneltest.InMemory(t)
	root := kerneltest.Tree(t, hostFiles())
	defer func() { unix.Interfere = nil }()
	hangs, at := 0, int64(1)
	for ; ; at++ {
		var hung bool
		synctest.Test(t, func(t *testing.T) {
			unix.Interfere = nil
			reader, err := kernel.NewReader(kernel.Config{Root: root, Roots: []string{"/demo/*"}})
			if err != nil {
				t.Fatal(err)
			}
			a, owner := boundAgent(t, reader)
			s := newStuck(at)
			unix.Interfere = func(path string) {
				if !strings.Contains(path, "boot_id") {
					s.call()
				}
			}
			if hung, err = endsWhile(t, a, owner, s); err != nil {
				t.Errorf("call %d: %v", at, err)
			}
			unix.Interfere = nil
			checkBack(t, fmt.Sprint("call ", at), a, owner)
		})
		if !hung {
			break
		}
		hangs++
	}
	if t.Logf("%d calls of rounds hung", hangs); hangs < 30 {
		t.Errorf("only %d calls hung: nothing was tried", hangs)
	}
}

// acting takes a step during each reading, as the loop does after it.
type acting struct {
	*world
	act func(context.Context)
}

func (r *acting) Read(ctx context.Context) (window.Window, error) {
	r.act(ctx)
	return r.world.Read(ctx)
}

// hangsIn makes the owner hang in one of its calls, within a step.
func hangsIn(t *testing.T, kind action.StepKind, hang func(*cpusets) *stuck) (a *Agent, owner *cpusets, s *stuck) {
	_, w := newLoop(t, 1, 1<<30)
	r := &acting{world: w}
	a, owner = boundAgent(t, r)
	step := bind("/demo/b")
	step.Kind = kind
	r.act = func(ctx context.Context) { a.applier().Apply(ctx, []action.Step{step}, a.noteStep) }
	s = hang(owner)
	s.at = s.calls.Load() + 1
	return a, owner, s
}

// An owner's read hangs while the journal is locked, or a move of pages hangs.
func TestEndsWhateverOwnerHangs(t *testing.T) {
	kerneltest.InMemory(t)
	for kind, hang := range map[action.StepKind]func(*cpusets) *stuck{
		action.SetCPUs: func(c *cpusets) *stuck { return c.read }, action.MovePages: func(c *cpusets) *stuck { return c.move },
	} {
		synctest.Test(t, func(t *testing.T) {
			a, owner, s := hangsIn(t, kind, hang)
			if hung, err := endsWhile(t, a, owner, s); !hung || err != nil {
				t.Errorf("%s: hung %v, %v", kind, hung, err)
			}
			checkBack(t, string(kind), a, owner)
		})
	}
}

// While a write hangs nothing is restored, because the write may still land. The agent
// reports that and ends. The write is on record for the next agent.
func TestEndsWhileAWriteHangs(t *testing.T) {
	kerneltest.InMemory(t)
	synctest.Test(t, func(t *testing.T) {
		a, _, s := hangsIn(t, action.SetCPUs, func(c *cpusets) *stuck { return c.write })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		<-s.hangs
		cancel()
		if err := <-done; !errors.Is(err, journal.ErrHangs) {
			t.Errorf("%v", err)
		}
		boot, err := kernel.BootID(kernel.At("/"))
		if err != nil {
			t.Fatal(err)
		}
		if left, err := journal.Peek(a.o.Config.StateDir, boot); len(left) != 2 || err != nil {
			t.Errorf("on record are %v, %v", left, err)
		}
		close(s.go_)
		time.Sleep(2 * testPeriod)
	})
}

// A workload that ends while it is bound leaves no record, while the agent runs.
func TestRecordOfTheGoneEnds(t *testing.T) {
	kerneltest.InMemory(t)
	synctest.Test(t, func(t *testing.T) {
		_, w := newLoop(t, 1, 1<<30)
		a, owner := boundAgent(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		time.Sleep(2 * testPeriod)
		if left := a.journal.Outstanding(); len(left) != 1 {
			t.Errorf("it is there, and on record are %v", left)
		}
		owner.mu.Lock()
		delete(owner.files, cpusOfA)
		owner.mu.Unlock()
		time.Sleep(2 * testPeriod)
		if left := a.journal.Outstanding(); len(left) != 0 {
			t.Errorf("it is gone, and on record are %v", left)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
